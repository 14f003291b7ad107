//! The learned values of columns in the model folder: `adapted.json`.
//!
//! ```json
//! {"version": 1, "learnt": [
//!   {"feature": "age", "asked": "z_score", "values": [{"float": 38.6}, {"float": 13.6}]},
//!   {"feature": "age", "asked": "boundaries of 10 ranges", "values": [{"float": 22.0}, {"float": 26.0}]},
//!   {"feature": "job", "asked": "1000 terms, at least 1 of each", "values": ["clerk", {"bytes": "ff00"}]}]}
//! ```
//!
//! Values have the format of a checkpoint's manifest. Each answer is stored separately, by its
//! question. If a column is added to a program later, it is learned from the data of that day, and
//! the others keep their values.

use std::path::{Path, PathBuf};

use estimand_checkpoint as checkpoint;
use estimand_graph::meaning::Listed;
use estimand_tensor::{Error, Result};
use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use crate::manifest::{listed_from_json, listed_to_json};
use crate::model_folder::read_up_to;

/// The version that is written. A newer version is refused.
const VERSION: u64 = 1;

/// The maximum size of the file in bytes. Ten million terms of twenty letters fit; `adapt` makes no
/// larger vocabulary.
const MAX_BYTES: u64 = 256 << 20;

/// Answers by feature and question.
pub(super) type Answers = IndexMap<(String, String), Vec<Listed>>;

/// Returns the path of the file in a model folder.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("adapted.json")
}

/// Reads the answers of a model folder; `None` if there is no file.
pub(super) fn read(folder: &Path) -> Result<Option<Answers>> {
    let path = path(folder);
    let Some(bytes) = read_up_to(&path, MAX_BYTES)? else { return Ok(None) };
    parse(&bytes).map(Some).map_err(|e| e.in_file(&path))
}

fn parse(bytes: &[u8]) -> Result<Answers> {
    let damaged = |what: &str| {
        Error::data(format!("the file of learnt values cannot be read: {what}"))
            .help("restore the file from a copy: the checkpoints in its folder depend on these values")
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(&format!("it has more than {MAX_BYTES} bytes")));
    }
    let json: Json = serde_json::from_slice(bytes).map_err(|e| damaged(&format!("it is not JSON: {e}")))?;
    let version = json.get("version").and_then(Json::as_u64).ok_or_else(|| damaged("it has no version"))?;
    if version > VERSION {
        let message = format!("the file of learnt values has version {version}; this library reads up to {VERSION}");
        return Err(Error::unsupported(message).help("use the version of Estimand that wrote it, or a newer one"));
    }
    let learnt = json.get("learnt").and_then(Json::as_array).ok_or_else(|| damaged("`learnt` is not a list"))?;
    let mut answers = Answers::new();
    for (i, one) in learnt.iter().enumerate() {
        let text = |key: &str| one.get(key).and_then(Json::as_str).map(str::to_string);
        let values = one.get("values").and_then(Json::as_array);
        let values = values.and_then(|values| values.iter().map(listed_from_json).collect::<Option<Vec<Listed>>>());
        let (Some(feature), Some(asked), Some(values)) = (text("feature"), text("asked"), values) else {
            return Err(damaged(&format!("entry {i} lacks its feature, its question or its values")));
        };
        if answers.insert((feature, asked), values).is_some() {
            return Err(damaged(&format!("entry {i} repeats an earlier entry")));
        }
    }
    Ok(answers)
}

/// Writes all answers. The old file is replaced by the complete new one or stays unchanged.
pub(super) fn write(folder: &Path, answers: &Answers) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make", &e))?;
    let one = |((feature, asked), values): (&(String, String), &Vec<Listed>)| {
        let values: Vec<Json> = values.iter().map(listed_to_json).collect();
        json!({ "feature": feature, "asked": asked, "values": values }).to_string()
    };
    let lines: Vec<String> = answers.iter().map(one).collect();
    // One line per answer, for people and for version control.
    let text = format!("{{\"version\": {VERSION}, \"learnt\": [\n{}\n]}}\n", lines.join(",\n"));
    checkpoint::write_text(path(folder), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_an_error_that_names_what_is_wrong() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        for (text, part) in [
            ("", "it is not JSON"),
            (deep.as_str(), "it is not JSON"),
            ("{}", "it has no version"),
            (r#"{"version": 2}"#, "version 2; this library reads up to 1"),
            (r#"{"version": 1}"#, "`learnt` is not a list"),
            (r#"{"version": 1, "learnt": [{}]}"#, "entry 0 lacks its feature"),
            (
                r#"{"version": 1, "learnt": [{"feature": "a", "asked": "b", "values": [null]}]}"#,
                "entry 0 lacks its feature",
            ),
            (
                r#"{"version": 1, "learnt": [{"feature": "a", "asked": "b", "values": []}, {"feature": "a", "asked": "b", "values": []}]}"#,
                "entry 1 repeats an earlier entry",
            ),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
