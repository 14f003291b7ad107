//! TensorFlow Serving's REST interface: a path and a body become an answer.

mod describe;
mod path;

use std::sync::Arc;
use std::time::Instant;

use crate::core::Core;
use crate::explain;
use crate::infer::{self, Deadline, Method};
use crate::json::{self, Writer};
use crate::metrics::{Api, Entry};
use crate::model::{Choice, Model};
use crate::status::{Answer, Code, Status};
pub(crate) use path::decode;
use path::{Call, Target};

/// The content type of a page.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// An answer before it becomes an HTTP response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// The length of the JSON before binary data.
    pub(crate) json_length: Option<usize>,
}

impl Reply {
    pub(crate) fn json(body: Vec<u8>) -> Reply {
        Reply { status: 200, content_type: "application/json", body, json_length: None }
    }

    pub(crate) fn text(body: impl Into<Vec<u8>>) -> Reply {
        Reply { content_type: "text/plain; charset=utf-8", ..Reply::json(body.into()) }
    }

    pub(crate) fn html(page: &str) -> Reply {
        Reply { content_type: HTML, ..Reply::json(page.into()) }
    }

    /// A failure as TensorFlow Serving writes it: `{"error": ".."}`.
    pub(crate) fn failure(status: &Status) -> Reply {
        Reply::failure_with(status.code.http(), &status.message)
    }

    /// A failure with a status code of HTTP that has no counterpart in gRPC.
    pub(crate) fn failure_with(code: u16, message: &str) -> Reply {
        let mut writer = Writer::default();
        writer.raw("{\n    \"error\": ").text(message.as_bytes()).raw("\n}");
        Reply { status: code, ..Reply::json(writer.out) }
    }
}

/// Answers a request whose path begins with `/v1`.
pub(crate) async fn answer(
    core: &Core,
    method: &str,
    path: &str,
    query: Option<&str>,
    body: &[u8],
    deadline: Deadline,
) -> Reply {
    let target = match path::parse(method, path) {
        Ok(target) => target,
        Err(status) => return Reply::failure(&status),
    };
    let start = Instant::now();
    let (answer, api) = match target.call {
        Call::Predict => (predict(core, &target, query, body, deadline).await, Some(Api::Predict)),
        Call::Classify => (classify(core, &target, body, deadline, Method::Classify).await, Some(Api::Classify)),
        Call::Regress => (classify(core, &target, body, deadline, Method::Regress).await, Some(Api::Regress)),
        Call::Status => (status(core, &target), None),
        Call::Metadata => (metadata(core, &target), None),
    };
    if let (Some(api), Some(model)) = (api, core.models.find(&target.model)) {
        let code = answer.as_ref().map_or_else(|status| status.code, |_| Code::Ok);
        model.metrics.answered(api, Entry::Rest, code, start.elapsed());
    }
    answer.map_or_else(|status| Reply::failure(&status), Reply::json)
}

async fn predict(
    core: &Core,
    target: &Target,
    query: Option<&str>,
    body: &[u8],
    deadline: Deadline,
) -> Answer<Vec<u8>> {
    let is_explained = explain::is_asked(query)?;
    let mut found = None;
    let request = json::read_predict(body, core.settings.unknown_keys, |name| {
        let (model, loaded) = core.models.loaded(&target.model, &target.choice)?;
        let missing =
            |name: &str| Status::invalid(format!("Serving signature name: \"{name}\" not found in signature def"));
        let signature = loaded.signature(name, missing)?;
        found = Some(model);
        Ok(Inputs(signature))
    })?;
    let model = found.ok_or_else(|| Status::new(Code::Internal, "no model was looked up"))?;
    let signature = request.signature.0;
    let explained =
        if is_explained { Some(infer::long(|| explain::rows(&signature, &request.rows)).await?) } else { None };
    let outputs = infer::run_rows(core, &model, &signature, request.rows, deadline, Api::Predict).await?;
    let named = signature.outputs.iter().zip(&outputs).map(|((name, _), array)| (name.as_str(), array));
    let mut text = json::predictions(named, request.format)?;
    if let Some(explained) = explained {
        // The text is an object that ends with a line of its own.
        text.truncate(text.len() - "\n}".len());
        text.extend_from_slice(b",\n    \"explanations\": ");
        text.extend_from_slice(&explained);
        text.extend_from_slice(b"\n}");
    }
    Ok(text)
}

/// A signature as the reader of requests takes it.
struct Inputs(Arc<crate::model::Signature>);

impl AsRef<[json::Input]> for Inputs {
    fn as_ref(&self) -> &[json::Input] {
        &self.0.inputs
    }
}

async fn classify(core: &Core, target: &Target, body: &[u8], deadline: Deadline, method: Method) -> Answer<Vec<u8>> {
    let request = json::read_examples(body)?;
    let (model, loaded) = core.models.loaded(&target.model, &target.choice)?;
    let signature = infer::example_signature(&loaded, &request.signature_name, method)?;
    let outputs = infer::run_examples(&model, signature, request.serialized, deadline, method).await?;
    Ok(match method {
        Method::Classify => json::classifications(&outputs.classifications()?),
        Method::Regress => json::regressions(outputs.regressions()?),
    })
}

/// The model of a request for information.
fn model(core: &Core, target: &Target) -> Answer<Arc<Model>> {
    if target.model.is_empty() {
        return Err(Status::invalid("Missing model name in request."));
    }
    let name = &target.model;
    core.models.find(name).ok_or_else(|| Status::not_found(format!("Could not find any versions of model {name}")))
}

fn status(core: &Core, target: &Target) -> Answer<Vec<u8>> {
    let model = model(core, target)?;
    let version = match &target.choice {
        Choice::Latest => None,
        Choice::Version(version) => Some(*version),
        Choice::Label(label) => Some(model.version_of(label)?),
    };
    let statuses = crate::core::statuses(&model, version)?;
    Ok(describe::statuses(&statuses))
}

fn metadata(core: &Core, target: &Target) -> Answer<Vec<u8>> {
    model(core, target)?;
    let (_, loaded) = core.models.loaded(&target.model, &target.choice)?;
    Ok(describe::metadata(&target.model, &loaded))
}
