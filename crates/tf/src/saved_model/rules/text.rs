//! Ops on strings.

use estimand_graph::host::text;
use estimand_graph::op::reading::Reading;
use estimand_tensor::{DType, Error, Result};

use super::super::node_reader::{NodeReader, Outputs, one};
use super::sparse::sparse_of_ragged;
use estimand_graph::{Axes, Encoding};

pub(super) fn hash_bucket(call: &mut NodeReader<'_, '_>) -> Outputs {
    let strings = call.tensor(0)?;
    let n = call.int_or("num_buckets", 0)?;
    let key = match call.def.op.as_str() {
        "StringToHashBucketStrong" => match call.list("key")?.i[..] {
            [a, b] => Some([a as u64, b as u64]),
            ref other => return Err(Error::config(format!("the hash key has {} numbers; expected 2", other.len()))),
        },
        _ => None,
    };
    one(call.host(text::HashBucket { n, key }, &[&strings])?.remove(0))
}

pub(super) fn as_string(call: &mut NodeReader<'_, '_>) -> Outputs {
    let numbers = call.tensor(0)?;
    let op = text::AsString {
        precision: call.int_or("precision", -1)?,
        scientific: call.flag("scientific", false)?,
        shortest: call.flag("shortest", false)?,
        width: call.int_or("width", -1)?,
        fill: call.text_or("fill", "")?,
    };
    one(call.host(op, &[&numbers])?.remove(0))
}

/// Reads the ops that edit strings: case, strip, substring, regular expression replace.
pub(super) fn edit(call: &mut NodeReader<'_, '_>) -> Outputs {
    let strings = call.tensor(0)?;
    let op = match call.def.op.as_str() {
        "StringLower" => text::Edit::Lower { utf8: is_utf8(call, "encoding", "utf-8")? },
        "StringUpper" => text::Edit::Upper { utf8: is_utf8(call, "encoding", "utf-8")? },
        "StringStrip" => text::Edit::Strip,
        "Substr" => text::Edit::Substr {
            position: call.integer(1)?,
            length: call.integer(2)?,
            utf8: is_utf8(call, "unit", "UTF8_CHAR")?,
        },
        op => {
            let (pattern, rewrite) = match op {
                "StaticRegexReplace" => (call.text_or("pattern", "")?, call.text_or("rewrite", "")?),
                _ => (text_input(call, 1)?, text_input(call, 2)?),
            };
            text::Edit::Replace { pattern, rewrite, global: call.flag("replace_global", true)? }
        }
    };
    one(call.host(op, &[&strings])?.remove(0))
}

/// Whether an attribute chooses UTF-8 over bytes.
fn is_utf8(call: &NodeReader<'_, '_>, key: &str, yes: &str) -> Result<bool> {
    Ok(call.text_or(key, "")? == yes)
}

/// The text of an input that must be a constant.
fn text_input(call: &mut NodeReader<'_, '_>, i: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes_input(call, i)?).into_owned())
}

fn bytes_input(call: &mut NodeReader<'_, '_>, i: usize) -> Result<Vec<u8>> {
    Ok(call.constant(i)?.strings()?.next().unwrap_or_default().to_vec())
}

pub(super) fn full_match(call: &mut NodeReader<'_, '_>) -> Outputs {
    let strings = call.tensor(0)?;
    let pattern = match call.def.op.as_str() {
        "StaticRegexFullMatch" => call.text_or("pattern", "")?,
        _ => text_input(call, 1)?,
    };
    one(call.host(text::FullMatch { pattern }, &[&strings])?.remove(0))
}

pub(super) fn to_number(call: &mut NodeReader<'_, '_>) -> Outputs {
    let strings = call.tensor(0)?;
    one(strings.to_number(call.dtype_or("out_type", Some(DType::F32))?))
}

pub(super) fn length(call: &mut NodeReader<'_, '_>) -> Outputs {
    let strings = call.tensor(0)?;
    let unit = if is_utf8(call, "unit", "UTF8_CHAR")? { Encoding::Utf8 } else { Encoding::Bytes };
    one(strings.string_length(unit))
}

/// (strings, separator) -> the words as a sparse tensor.
pub(super) fn split(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (strings, separator) = (call.tensor(0)?, bytes_input(call, 1)?);
    let words = strings.string_split(separator, call.int_or("maxsplit", -1)?);
    call.graph().check()?;
    Ok(sparse_of_ragged(call, &words.row_splits, &words.values)?.into())
}

pub(super) fn join(call: &mut NodeReader<'_, '_>) -> Outputs {
    let parts = call.tensors(0..call.n_inputs())?;
    let separator = call.bytes_or("separator", b"")?;
    one(call.host(text::StringJoin { separator }, &parts.iter().collect::<Vec<_>>())?.remove(0))
}

pub(super) fn reduce_join(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (strings, axes) = (call.tensor(0)?, call.integers(1)?);
    let (keep_dims, separator) = (call.flag("keep_dims", false)?, call.bytes_or("separator", b"")?);
    let axes = if keep_dims { Axes::of(axes).keep_dims() } else { Axes::of(axes) };
    one(strings.reduce_join(axes, separator))
}
