//! The document of an export, `assets.extra/estimand.json`: what the model is, beyond its graph.
//!
//! It has the formats of the features, their statistics, the manifest, the files that the model was
//! trained on, the tensors that show what each column made of its inputs, and rows with the answers
//! that the model gives. TensorFlow ignores the file; [`verify`] and servers read it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use estimand_graph::meaning::{ColumnValue, Meaning};
use estimand_tensor::{Array, Error, Result, Sha256};
use estimand_tf::saved_model::SavedModel;
use estimand_tf::saved_model_writer::WrittenGraph;
use serde_json::{Map, Value as Json, json};

use super::Built;
use super::feeds::Feed;
use super::guard::{Answers, Golden};
use crate::array_json::{array_from_json, array_to_json};
use crate::kept_rows::{InputFile, TrainingRows, specs_to_json};
use crate::manifest::Manifest;
use crate::model_folder::read_up_to;

/// The version that is written. A newer one is refused.
const VERSION: u64 = 1;
/// The name of the file below `assets.extra`.
pub(super) const NAME: &str = "estimand.json";
/// The most bytes that are read.
const MAX_BYTES: u64 = 256 << 20;
/// Files of the input are hashed up to this sum of bytes.
const MAX_HASHED: u64 = 1 << 30;

/// The parts of a document.
pub(super) struct Document<'a> {
    pub(super) global_step: u64,
    pub(super) manifest: &'a Manifest,
    pub(super) kept: Option<&'a TrainingRows>,
    /// The statistics of features by name, if there are any.
    pub(super) statistics: Option<Json>,
    pub(super) built: &'a [Built],
    pub(super) written: &'a WrittenGraph,
    pub(super) golden: &'a Golden,
}

impl Document<'_> {
    /// Returns the text of the file. It is the same for the same model.
    pub(super) fn text(&self) -> Result<String> {
        let manifest: Json = serde_json::from_str(&self.manifest.to_json())
            .map_err(|e| Error::internal(format!("the manifest is no JSON: {e}")))?;
        let document = json!({
            "version": VERSION,
            "library": concat!("estimand ", env!("CARGO_PKG_VERSION")),
            "global_step": self.global_step,
            "features": self.kept.map(|kept| specs_to_json(&kept.features)),
            "statistics": self.statistics(),
            "manifest": manifest,
            "lineage": self.kept.map(lineage),
            "columns": self.columns(),
            "feeds": self.golden.feeds.iter().map(feed_to_json).collect::<Result<Vec<_>>>()?,
            "signatures": self.answers()?,
        });
        serde_json::to_string(&document)
            .map(|text| text + "\n")
            .map_err(|e| Error::internal(format!("the document is no JSON: {e}")))
    }

    /// The statistics of each feature; `null` for one that has none.
    fn statistics(&self) -> Json {
        let Some(kept) = self.kept else { return self.statistics.clone().unwrap_or(Json::Null) };
        let of = |name: &String| self.statistics.as_ref().and_then(|all| all.get(name)).cloned().unwrap_or(Json::Null);
        Json::Object(kept.features.keys().map(|name| (name.clone(), of(name))).collect())
    }

    /// The tensors of ids and buckets, for each graph.
    fn columns(&self) -> Vec<Json> {
        let mut columns = Vec::new();
        for (i, built) in self.built.iter().enumerate() {
            let signatures: Vec<&str> = built.signatures.iter().map(|signature| signature.name.as_str()).collect();
            for value in built.body.column_values() {
                if let Some(tensor) = self.written.tensor_name(i, value.value) {
                    columns.push(column_to_json(&value, &tensor, &signatures));
                }
            }
        }
        columns
    }

    fn answers(&self) -> Result<Json> {
        let mut signatures = Map::new();
        for answers in &self.golden.answers {
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
}

fn column_to_json(value: &ColumnValue, tensor: &str, signatures: &[&str]) -> Json {
    let inputs: Vec<&str> = value.inputs.iter().map(|(_, name)| name.as_str()).collect();
    let mut json = json!({ "column": value.column, "inputs": inputs, "signatures": signatures });
    for (aspect, meaning) in &value.facts {
        match (aspect.as_str(), meaning) {
            ("vocabulary", Meaning::List(terms)) => (json["id"], json["n_terms"]) = (json!(tensor), json!(terms.len())),
            ("id of unknown terms", Meaning::Int(id)) => json["unknown_id"] = json!(id),
            ("out-of-vocabulary buckets", Meaning::Int(n)) => json["n_unknown_ids"] = json!(n),
            ("hash buckets", Meaning::Int(n)) => (json["id"], json["n_buckets"]) = (json!(tensor), json!(n)),
            ("boundaries", Meaning::List(ends)) => {
                (json["bucket"], json["n_buckets"]) = (json!(tensor), json!(ends.len() + 1));
            }
            _ => {}
        }
    }
    json
}

/// The files that the model was trained on, with their hashes as far as they are unchanged.
fn lineage(kept: &TrainingRows) -> Json {
    let mut n_left = MAX_HASHED;
    let mut file = |file: &InputFile| {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hashed = file.n_bytes <= n_left && std::fs::metadata(&file.path).is_ok_and(|now| now.len() == file.n_bytes);
        let hash = if hashed { hash(&file.path) } else { None };
        n_left -= if hash.is_some() { file.n_bytes } else { 0 };
        json!({ "name": name, "bytes": file.n_bytes, "sha256": hash })
    };
    json!({ "n_files": kept.n_files, "files": kept.files.iter().map(&mut file).collect::<Vec<_>>() })
}

/// Hashes a file; `None` if it cannot be read.
fn hash(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk).ok()? {
            0 => return Some(hash.finish()),
            n => hash = hash.update(&chunk[..n]),
        }
    }
}

fn arrays_to_json(arrays: &[(String, Array)]) -> Result<Json> {
    let named = |(name, array): &(String, Array)| Ok((name.clone(), array_to_json(array)?));
    Ok(Json::Object(arrays.iter().map(named).collect::<Result<_>>()?))
}

fn feed_to_json(feed: &Feed) -> Result<Json> {
    Ok(json!({ "rows": feed.rows, "inputs": arrays_to_json(&feed.inputs)? }))
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

/// Loads an export of this library, asks it the questions in its document, and compares its answers
/// with those of the model that was exported. An error names the signature, the output, the row and
/// both values.
///
/// ```
/// use estimand::export::{Receiver, verify};
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-verify-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").batch(4);
/// let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.join("model")).build()?;
/// model.train(data.repeat(100))?;
/// let export = model.export_saved_model(folder.join("export"), Receiver::like(&data)?)?;
/// assert_eq!(verify(export)?.n_rows, 8);    // four rows of the training, and four that are made up
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub fn verify(folder: impl AsRef<Path>) -> Result<Verified> {
    let folder = folder.as_ref();
    let path = path(folder);
    let Some(bytes) = read_up_to(&path, MAX_BYTES)? else {
        return Err(Error::config(format!("there is no {}", path.display()))
            .help("only exports of this library have it; another export can be loaded, but not verified"));
    };
    let golden = parse(&bytes).map_err(|e| e.in_file(&path))?;
    let model = SavedModel::open(folder)?;
    golden.check(|name| model.signature(name)).map_err(|e| {
        e.context(format!("in the export {}", folder.display()))
            .help("export the model again: its files were changed, or this version computes other numbers")
    })?;
    let n_rows = golden.feeds.iter().filter_map(|feed| feed.inputs.first()?.1.dims().first().copied());
    Ok(Verified { n_rows: n_rows.sum(), n_signatures: golden.answers.len() })
}

/// The path of the document in an export.
fn path(folder: &Path) -> PathBuf {
    folder.join("assets.extra").join(NAME)
}

fn parse(bytes: &[u8]) -> Result<Golden> {
    let damaged = |what: &str| Error::data(format!("the document of the export cannot be read: {what}"));
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(&format!("it has more than {MAX_BYTES} bytes")));
    }
    let json: Json = serde_json::from_slice(bytes).map_err(|e| damaged(&format!("it is not JSON: {e}")))?;
    let version = json.get("version").and_then(Json::as_u64).ok_or_else(|| damaged("it has no version"))?;
    if version > VERSION {
        let message = format!("the document of the export has version {version}; this library reads up to {VERSION}");
        return Err(Error::unsupported(message).help("use the version of Estimand that wrote it, or a newer one"));
    }
    let mut golden = Golden::default();
    for feed in json.get("feeds").and_then(Json::as_array).ok_or_else(|| damaged("`feeds` is not a list"))? {
        golden.feeds.push(Feed { rows: rows_name(feed), inputs: arrays(feed.get("inputs"))? });
    }
    let signatures = json.get("signatures").and_then(Json::as_object);
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

fn rows_name(feed: &Json) -> &'static str {
    let name = feed.get("rows").and_then(Json::as_str).unwrap_or_default();
    ["training", "missing", "unknown", "largest", "smallest"]
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("other")
}

fn arrays(json: Option<&Json>) -> Result<Vec<(String, Array)>> {
    let object = json.and_then(Json::as_object).ok_or_else(|| Error::data("arrays by name are missing"))?;
    object.iter().map(|(name, json)| Ok((name.clone(), array_from_json(json)?))).collect()
}
