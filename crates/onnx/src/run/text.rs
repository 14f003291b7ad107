//! Operators on strings: vocabularies and the case of letters.

use std::collections::HashMap;

use estimand_tensor::{Array, DType, Error, Result};

use super::call::Call;
use super::values::{integers, longs, strings};

/// A key or a value of a vocabulary.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Entry<'a> {
    Text(&'a [u8]),
    Int(i64),
}

/// The entries of one of two attributes: texts or integers.
fn entries<'a>(call: &Call<'a>, of: &str) -> Result<Vec<Entry<'a>>> {
    let texts = call.texts(&format!("{of}_strings"))?;
    match (texts, call.ints(&format!("{of}_int64s"))?) {
        (Some(texts), None) => Ok(texts.iter().map(|text| Entry::Text(text)).collect()),
        (None, Some(ints)) => Ok(ints.iter().map(|&int| Entry::Int(int)).collect()),
        _ => Err(Error::config(format!("the {of} are neither texts nor integers, or both"))),
    }
}

/// The value of each key. A key that is not listed gets the default.
pub(super) fn label_encoder(call: &Call<'_>) -> Result<Array> {
    let (x, keys, values) = (call.x(0)?, entries(call, "keys")?, entries(call, "values")?);
    if keys.len() != values.len() {
        return Err(Error::config(format!("{} keys and {} values", keys.len(), values.len())));
    }
    let of_texts = matches!(values.first(), Some(Entry::Text(_)));
    let default = match of_texts {
        true => Entry::Text(call.bytes("default_string")?.unwrap_or(b"_Unused")),
        false => Entry::Int(call.int("default_int64", -1)?),
    };
    let table: HashMap<Entry<'_>, &Entry<'_>> = keys.into_iter().zip(&values).collect();
    let asked: Vec<Entry<'_>> = match x.dtype() {
        DType::Str => strings(x)?.into_iter().map(Entry::Text).collect(),
        _ => integers(x)?.into_iter().map(Entry::Int).collect(),
    };
    let found = asked.iter().map(|key| table.get(key).copied().unwrap_or(&default));
    match of_texts {
        true => Array::from_strings(x.dims(), found.map(|v| if let Entry::Text(text) = v { text } else { &b""[..] })),
        false => longs(x.dims(), found.map(|value| if let Entry::Int(int) = value { *int } else { 0 }).collect()),
    }
}

/// ASCII letters in upper or lower case.
pub(super) fn string_normalizer(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let (action, locale) = (call.word("case_change_action", "NONE")?, call.word("locale", "")?);
    if locale != "C" {
        return call.unknown_word("locale", locale);
    }
    let change: fn(&[u8]) -> Vec<u8> = match action {
        "LOWER" => <[u8]>::to_ascii_lowercase,
        "UPPER" => <[u8]>::to_ascii_uppercase,
        other => return call.unknown_word("case_change_action", other),
    };
    // onnxruntime refuses an empty list, too; by the standard it becomes one empty string.
    if x.rank() != 1 || x.is_empty() {
        return Err(Error::shape(format!("{:?} is no list of strings", x.dims())));
    }
    Array::from_strings(x.dims(), strings(x)?.into_iter().map(change))
}
