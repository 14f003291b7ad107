//! Writes the answers of the protocol.

use estimand_tensor::{Array, TensorSpec};

use super::{binary, datatype};
use crate::json::{Writer, write_elements};
use crate::model::{Models, Signature};
use crate::rest::Reply;
use crate::status::Answer;

/// The answer to `/v2`.
pub(super) fn server() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw("{\"name\":").text(super::SERVER.as_bytes());
    writer.raw(",\"version\":").text(env!("CARGO_PKG_VERSION").as_bytes());
    writer.raw(",\"extensions\":[\"").raw(&super::EXTENSIONS.join("\",\"")).raw("\"]}");
    writer.out
}

pub(super) fn flag(name: &str, value: bool) -> Vec<u8> {
    format!("{{\"{name}\":{value}}}").into_bytes()
}

pub(super) fn model_ready(name: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw("{\"name\":").text(name.as_bytes()).raw(",\"ready\":true}");
    writer.out
}

/// The answer to `/v2/repository/index`: every version that is known.
pub(super) fn index(models: &Models) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw("[");
    let mut is_first = true;
    for (name, model) in models.all().iter() {
        for one in model.statuses() {
            writer.raw(if is_first { "" } else { "," });
            is_first = false;
            let state = super::state(one.state);
            let reason = one.error.map(|error| error.message).unwrap_or_default();
            writer.raw("{\"name\":").text(name.as_bytes()).raw(",\"version\":\"").integer(one.version);
            writer.raw("\",\"state\":\"").raw(state).raw("\",\"reason\":").text(reason.as_bytes()).raw("}");
        }
    }
    writer.raw("]");
    writer.out
}

/// The answer to `/v2/models/NAME`.
pub(super) fn model(name: &str, versions: &[i64], signature: &Signature) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw("{\"name\":").text(name.as_bytes()).raw(",\"versions\":[");
    for (i, version) in versions.iter().enumerate() {
        writer.raw(if i > 0 { ",\"" } else { "\"" }).integer(*version).raw("\"");
    }
    writer.raw("],\"platform\":\"").raw(super::PLATFORM).raw("\",\"inputs\":[");
    let inputs = signature.inputs.iter().zip(&signature.specs).map(|(input, spec)| (input.name.as_str(), spec));
    tensors(&mut writer, inputs);
    writer.raw("],\"outputs\":[");
    tensors(&mut writer, signature.outputs.iter().map(|(name, spec)| (name.as_str(), spec)));
    writer.raw("]}");
    writer.out
}

fn tensors<'a>(writer: &mut Writer, all: impl Iterator<Item = (&'a str, &'a TensorSpec)>) {
    for (i, (name, spec)) in all.enumerate() {
        writer.raw(if i > 0 { ",{\"name\":" } else { "{\"name\":" }).text(name.as_bytes());
        writer.raw(",\"datatype\":\"").raw(datatype(spec.dtype)).raw("\",\"shape\":[");
        for (k, dim) in spec.shape.dims().iter().enumerate() {
            writer.raw(if k > 0 { "," } else { "" });
            writer.integer(dim.known().and_then(|size| i64::try_from(size).ok()).unwrap_or(-1));
        }
        writer.raw("]}");
    }
}

/// The answer to `infer`. Binary outputs follow the JSON.
pub(super) fn outputs<'a>(
    model: &str,
    version: i64,
    id: Option<&str>,
    outputs: impl Iterator<Item = (&'a str, &'a Array, bool)>,
) -> Answer<Reply> {
    let mut writer = Writer::default();
    let mut bytes = Vec::new();
    let mut has_binary = false;
    writer.raw("{\"model_name\":").text(model.as_bytes()).raw(",\"model_version\":\"").integer(version).raw("\"");
    if let Some(id) = id {
        writer.raw(",\"id\":").text(id.as_bytes());
    }
    writer.raw(",\"outputs\":[");
    for (i, (name, array, is_binary)) in outputs.enumerate() {
        writer.raw(if i > 0 { ",{\"name\":" } else { "{\"name\":" }).text(name.as_bytes());
        writer.raw(",\"datatype\":\"").raw(datatype(array.dtype())).raw("\",\"shape\":[");
        for (k, &size) in array.dims().iter().enumerate() {
            writer.raw(if k > 0 { "," } else { "" }).integer(size as i64);
        }
        if is_binary {
            has_binary = true;
            let before = bytes.len();
            binary::write(array, &mut bytes)?;
            writer.raw("],\"parameters\":{\"binary_data_size\":").integer((bytes.len() - before) as i64).raw("}}");
        } else {
            writer.raw("],\"data\":[");
            write_elements(&mut writer, array)?;
            writer.raw("]}");
        }
    }
    writer.raw("]}");
    let mut reply = Reply::json(writer.out);
    if has_binary {
        reply.content_type = "application/octet-stream";
        reply.json_length = Some(reply.body.len());
        reply.body.append(&mut bytes);
    }
    Ok(reply)
}
