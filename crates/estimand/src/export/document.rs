//! The document of an export, `assets.extra/estimand.json`: what the model is, beyond its graph.
//!
//! It has the formats of the features, their statistics and defaults, the manifest, the files that
//! the model was trained on, the tensors that show what each column made of its inputs, and rows
//! with the answers that the model gives. TensorFlow ignores the file; [`verify`](super::verify)
//! and servers read it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use estimand_graph::meaning::{ColumnValue, Meaning};
use estimand_tensor::{Array, BatchSpec, DType, Error, FeatureSpec, Result, Sha256};
use estimand_tf::array_json::array_to_json;
use estimand_tf::golden::{Golden, VERSION};
use estimand_tf::saved_model_writer::WrittenGraph;
use serde_json::{Map, Value as Json, json};

use super::Built;
use super::receiver::only_examples;
use crate::Input;
use crate::kept_rows::{InputFile, TrainingRows, specs_to_json};
use crate::manifest::Manifest;

/// Files of the input are hashed up to this sum of bytes.
const MAX_HASHED: u64 = 1 << 30;

/// The parts of a document.
pub(super) struct Document<'a> {
    pub(super) global_step: u64,
    pub(super) manifest: &'a Manifest,
    pub(super) kept: Option<&'a TrainingRows>,
    /// The features as the model's columns read them.
    pub(super) read: Option<&'a BatchSpec>,
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
            "defaults": self.defaults()?,
            "manifest": manifest,
            "lineage": self.kept.map(lineage),
            "columns": self.columns(),
            "tensors": self.tensors(),
            "feeds": self.golden.feeds_to_json()?,
            "signatures": self.golden.answers_to_json()?,
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

    /// The values of features that a caller leaves out: those that columns declare, and for
    /// categories the value that stands for nothing. Other features have none.
    fn defaults(&self) -> Result<Json> {
        let mut defaults = Map::new();
        for (name, spec) in self.read.into_iter().flatten() {
            let default = match spec {
                FeatureSpec::Dense { default, .. } => default.clone(),
                FeatureSpec::Ragged { dtype } | FeatureSpec::Padded { dtype, .. } => nothing(*dtype)?,
            };
            if let Some(default) = default {
                defaults.insert(name.clone(), array_to_json(&default)?);
            }
        }
        Ok(Json::Object(defaults))
    }

    /// The tensors of features that are parsed from Examples. Other features are inputs.
    fn tensors(&self) -> Vec<Json> {
        let mut tensors = Vec::new();
        for (i, built) in self.built.iter().enumerate() {
            if only_examples(&built.receiver.receiver_tensors).is_none() {
                continue;
            }
            let signatures: Vec<&str> = built.signatures.iter().map(|signature| signature.name.as_str()).collect();
            for (feature, input) in &built.receiver.features {
                let value = match input {
                    Input::Dense(tensor) => tensor.value(),
                    Input::Ragged(ragged) => ragged.values.value(),
                };
                if let Some(tensor) = self.written.tensor_name(i, value) {
                    tensors.push(json!({ "feature": feature, "signatures": signatures, "tensor": tensor }));
                }
            }
        }
        tensors
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
}

/// The value that stands for nothing in a categorical feature; `None` for numbers.
fn nothing(dtype: DType) -> Result<Option<Array>> {
    Ok(match dtype {
        DType::Str => Some(Array::from_strings([], [""])?),
        DType::I64 => Some(Array::from_vec([], vec![-1i64])?),
        DType::I32 => Some(Array::from_vec([], vec![-1i32])?),
        DType::F32 | DType::F64 | DType::U8 | DType::Bool => None,
    })
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
