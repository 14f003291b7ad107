//! Golden rows: inputs of an export with the answers that the exported model gave. They are in the
//! file `assets.extra/estimand.json`, which Estimand writes beside a SavedModel.
//!
//! Whoever loads the export can ask it again and compare: [`verify`] does so for a folder,
//! [`Golden::check`] for signatures that are loaded.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use estimand_tensor::{Array, DType, Error, Result};
use serde_json::{Map, Value as Json, json};

use crate::array_json::{array_from_json, array_to_json};
use crate::saved_model::{SavedModel, SignatureModel};

/// The name of the document below `assets.extra`.
pub const DOCUMENT: &str = "estimand.json";
/// The version of the document that this library writes. A newer one is refused.
pub const VERSION: u64 = 1;
/// The most bytes of a document that are read.
const MAX_BYTES: u64 = 256 << 20;
/// The largest difference of a float, relative to the larger of 1 and the number.
const TOLERANCE: f64 = 1e-5;

/// Rows in the form that the inputs of a signature take.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    /// What the rows are, for messages: `training`, `missing`, `unknown`, `largest`, `smallest`.
    pub rows: String,
    /// A value for each input, by its name.
    pub inputs: Vec<(String, Array)>,
}

/// The answers of one signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The name of the signature.
    pub signature: String,
    /// Another signature with the same inputs and outputs, whose answers these are.
    pub same_as: Option<String>,
    /// The feeds, by their numbers, each with all outputs.
    pub of: Vec<(usize, Vec<(String, Array)>)>,
}

/// Inputs, and the answers that the model gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Golden {
    /// The inputs.
    pub feeds: Vec<Feed>,
    /// The answers by signature.
    pub answers: Vec<Answers>,
}

impl Golden {
    /// Reads the golden rows of an export; `None` if it has no document.
    pub fn read(folder: impl AsRef<Path>) -> Result<Option<Golden>> {
        let folder = folder.as_ref();
        let Some(document) = read_document(folder)? else { return Ok(None) };
        Golden::of(&document).map(Some).map_err(|e| e.in_file(path(folder)))
    }

    /// The golden rows of a document.
    pub fn of(document: &Json) -> Result<Golden> {
        let mut golden = Golden::default();
        for feed in document.get("feeds").and_then(Json::as_array).ok_or_else(|| damaged("`feeds` is not a list"))? {
            golden.feeds.push(Feed {
                rows: feed.get("rows").and_then(Json::as_str).unwrap_or("other").to_string(),
                inputs: arrays(feed.get("inputs"))?,
            });
        }
        let signatures = document.get("signatures").and_then(Json::as_object);
        for (name, json) in signatures.ok_or_else(|| damaged("`signatures` is not an object"))? {
            let mut answers = Answers {
                signature: name.clone(),
                same_as: json.get("same_as").and_then(Json::as_str).map(str::to_string),
                of: Vec::new(),
            };
            for one in json.get("answers").and_then(Json::as_array).into_iter().flatten() {
                let feed = one.get("feed").and_then(Json::as_u64).and_then(|feed| usize::try_from(feed).ok());
                answers.of.push((feed.ok_or_else(|| damaged("an answer has no feed"))?, arrays(one.get("outputs"))?));
            }
            golden.answers.push(answers);
        }
        Ok(golden)
    }

    /// The inputs as JSON, for the document's `feeds`.
    pub fn feeds_to_json(&self) -> Result<Json> {
        let one = |feed: &Feed| Ok(json!({ "rows": feed.rows, "inputs": arrays_to_json(&feed.inputs)? }));
        Ok(Json::Array(self.feeds.iter().map(one).collect::<Result<_>>()?))
    }

    /// The answers as JSON, for the document's `signatures`.
    pub fn answers_to_json(&self) -> Result<Json> {
        let mut signatures = Map::new();
        for answers in &self.answers {
            let json = match &answers.same_as {
                Some(other) => json!({ "same_as": other }),
                None => {
                    let of = |(feed, outputs): &(usize, Vec<(String, Array)>)| -> Result<Json> {
                        Ok(json!({ "feed": feed, "outputs": arrays_to_json(outputs)? }))
                    };
                    json!({ "answers": answers.of.iter().map(of).collect::<Result<Vec<_>>>()? })
                }
            };
            signatures.insert(answers.signature.clone(), json);
        }
        Ok(Json::Object(signatures))
    }

    /// The number of rows of all inputs.
    pub fn n_rows(&self) -> usize {
        self.feeds.iter().filter_map(|feed| feed.inputs.first()?.1.dims().first().copied()).sum()
    }

    /// Compares the answers of an export's graph with these. `load` reads a signature.
    pub fn check(&self, load: impl Fn(&str) -> Result<SignatureModel>) -> Result<()> {
        for answers in self.answers.iter().filter(|answers| answers.same_as.is_none()) {
            let model = load(&answers.signature)?;
            for (feed, expected) in &answers.of {
                let feed = self.feeds.get(*feed).ok_or_else(|| Error::data(format!("there is no feed {feed}")))?;
                // A signature may use other names for the inputs than the receiver.
                let inputs: Vec<(&str, Array)> = match (model.inputs().len(), feed.inputs.as_slice()) {
                    (1, [(_, only)]) => model.inputs().keys().map(|name| (name.as_str(), only.clone())).collect(),
                    _ => feed.inputs.iter().map(|(name, array)| (name.as_str(), array.clone())).collect(),
                };
                let found = model.run(&inputs)?;
                for (name, expected) in expected {
                    let found = found
                        .get(name)
                        .ok_or_else(|| Error::unknown("output", name, found.keys().map(String::as_str)))?;
                    if let Some(difference) = difference(expected, found, 0.0) {
                        return Err(Error::data(format!(
                            "signature `{}` answers differently from the model: output `{name}`, {} rows, {difference}",
                            answers.signature, feed.rows
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The number of rows and signatures that an export was checked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The number of rows.
    pub n_rows: usize,
    /// The number of signatures.
    pub n_signatures: usize,
}

/// Loads an export, asks it the questions in its document, and compares its answers with those of
/// the model that was exported. An error names the signature, the output, the row and both values.
pub fn verify(folder: impl AsRef<Path>) -> Result<Verified> {
    let folder = folder.as_ref();
    let Some(golden) = Golden::read(folder)? else {
        return Err(Error::config(format!("there is no {}", path(folder).display()))
            .help("only exports of this library have it; another export can be loaded, but not verified"));
    };
    let model = SavedModel::open(folder)?;
    golden.check(|name| model.signature(name)).map_err(|e| {
        e.context(format!("in the export {}", folder.display()))
            .help("export the model again: its files were changed, or this version computes other numbers")
    })?;
    Ok(Verified { n_rows: golden.n_rows(), n_signatures: golden.answers.len() })
}

/// The path of the document in an export.
fn path(folder: &Path) -> PathBuf {
    folder.join("assets.extra").join(DOCUMENT)
}

fn arrays_to_json(arrays: &[(String, Array)]) -> Result<Json> {
    let named = |(name, array): &(String, Array)| Ok((name.clone(), array_to_json(array)?));
    Ok(Json::Object(arrays.iter().map(named).collect::<Result<_>>()?))
}

fn damaged(what: &str) -> Error {
    Error::data(format!("the document of the export cannot be read: {what}"))
}

/// Reads the document of an export, `assets.extra/estimand.json`; `None` if it has none.
pub fn read_document(folder: impl AsRef<Path>) -> Result<Option<Json>> {
    let path = path(folder.as_ref());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(&path, "open", &error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Error::io(&path, "read", &e))?;
    parse(&bytes).map(Some).map_err(|e| e.in_file(&path))
}

fn parse(bytes: &[u8]) -> Result<Json> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(&format!("it has more than {MAX_BYTES} bytes")));
    }
    let json: Json = serde_json::from_slice(bytes).map_err(|e| damaged(&format!("it is not JSON: {e}")))?;
    let version = json.get("version").and_then(Json::as_u64).ok_or_else(|| damaged("it has no version"))?;
    if version > VERSION {
        let message = format!("the document of the export has version {version}; this library reads up to {VERSION}");
        return Err(Error::unsupported(message).help("use the version of Estimand that wrote it, or a newer one"));
    }
    Ok(json)
}

fn arrays(json: Option<&Json>) -> Result<Vec<(String, Array)>> {
    let object = json.and_then(Json::as_object).ok_or_else(|| Error::data("arrays by name are missing"))?;
    object.iter().map(|(name, json)| Ok((name.clone(), array_from_json(json)?))).collect()
}

/// Describes the first difference of two arrays, if there is one: the row and both values. Floats
/// may differ by 1e-5 of the larger of 1 and the number, or by `rounding`, if that is more.
pub fn difference(expected: &Array, found: &Array, rounding: f64) -> Option<String> {
    if expected.dtype() != found.dtype() || expected.dims() != found.dims() {
        let of = |array: &Array| format!("{}{:?}", array.dtype(), array.dims());
        return Some(format!("expected {}, found {}", of(expected), of(found)));
    }
    let row_len = expected.dims().iter().skip(1).product::<usize>().max(1);
    let text = |i: usize, a: String, b: String| Some(format!("row {}: expected {a}, found {b}", i / row_len));
    if expected.dtype() == DType::Str {
        let pairs = expected.strings().ok()?.zip(found.strings().ok()?);
        let (i, (a, b)) = pairs.enumerate().find(|(_, (a, b))| a != b)?;
        return text(i, format!("\"{}\"", a.escape_ascii()), format!("\"{}\"", b.escape_ascii()));
    }
    if expected.bytes() == found.bytes() {
        return None;
    }
    let (a, b) = (expected.to_f64_vec().ok()?, found.to_f64_vec().ok()?);
    let close = |a: f64, b: f64| (a - b).abs() <= rounding.max(TOLERANCE * a.abs().max(1.0));
    let size = expected.dtype().size();
    let bytes = |array: &Array, i: usize| array.bytes()[i * size..(i + 1) * size].to_vec();
    let differs = |i: usize| match (expected.dtype().is_float(), a[i].is_finite() && b[i].is_finite()) {
        (true, true) => !close(a[i], b[i]),
        (true, false) => a[i] != b[i] && !(a[i].is_nan() && b[i].is_nan()),
        // Not every i64 is an f64.
        (false, _) => bytes(expected, i) != bytes(found, i),
    };
    let i = (0..a.len()).find(|&i| differs(i))?;
    let number = |v: f64| if expected.dtype() == DType::F32 { (v as f32).to_string() } else { v.to_string() };
    text(i, number(a[i]), number(b[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_row_and_both_values() {
        let floats = |values: [f32; 4]| Array::from_vec([2, 2], values.to_vec()).unwrap();
        let a = floats([1.0, f32::NAN, 1e9, f32::INFINITY]);
        assert_eq!(difference(&a, &floats([1.000_001, f32::NAN, 1.000_001e9, f32::INFINITY]), 0.0), None);
        let b = floats([1.0, f32::NAN, 1e9, 2.0]);
        assert_eq!(difference(&a, &b, 0.0).unwrap(), "row 1: expected inf, found 2");
        assert_eq!(difference(&a, &floats([1.0, 0.0, 1e9, 0.0]), 0.0).unwrap(), "row 0: expected NaN, found 0");
        // Not NaN or an infinity.
        assert_eq!(difference(&a, &floats([1.5, f32::NAN, 1e9, f32::INFINITY]), 0.5), None);
        assert_eq!(difference(&a, &floats([1.5, 0.0, 1e9, 0.0]), 9.0).unwrap(), "row 0: expected NaN, found 0");
        let (a, b) = (Array::from([1i64, 2]), Array::from([1i64, 3]));
        assert_eq!(difference(&a, &b, 0.0).unwrap(), "row 1: expected 2, found 3");
        assert_eq!(difference(&a, &Array::from([1i64]), 0.0).unwrap(), "expected i64[2], found i64[1]");
        let words = |word: &[u8]| Array::from_strings([1], [word]).unwrap();
        assert_eq!(difference(&words(b"a"), &words(b"\xff"), 0.0).unwrap(), "row 0: expected \"a\", found \"\\xff\"");
        let (a, b) = (Array::from([true]), Array::from([false]));
        assert!(difference(&a, &b, 0.0).is_some());
    }
}
