//! Reads an export over Examples with our own reader, and compares its answers with the model's.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand::tensor::{Batch, Feature};
use estimand_wire::record::RecordReader;

/// Returns an error unless all float predictions are within 1e-5 of their size. In an Example an
/// empty string is a value, but in a dense feature it is none: rows with an empty job are left out.
pub fn check(export: &Path, rows: &str, predictions: &Batch, jobs: &Array) -> Result<()> {
    let model = SavedModel::open(export)?;
    let name = model.signatures().find(|(name, _)| *name == "predict").map_or("serving_default", |_| "predict");
    let signature = model.signature(name)?;
    let input = signature.inputs().keys().next().cloned().unwrap_or_default();
    let answers = signature.run(&[(&input, examples(rows)?)])?;
    let mut n_compared = 0;
    for (name, found) in answers.iter().filter(|(_, found)| found.dtype() == DType::F32) {
        let Feature::Dense(expected) = predictions.feature(name)? else { continue };
        let (found, expected) = (found.as_slice::<f32>()?, expected.as_slice::<f32>()?);
        if found.len() != expected.len() {
            return Err(Error::shape(format!("`{name}` has {} numbers; expected {}", found.len(), expected.len())));
        }
        let width = found.len() / jobs.len();
        for (row, job) in jobs.strings()?.enumerate().filter(|(_, job)| !job.is_empty()) {
            let of_row = row * width..(row + 1) * width;
            for (a, b) in found[of_row.clone()].iter().zip(&expected[of_row]) {
                n_compared += 1;
                let is_close = (a - b).abs() <= 1e-5 * b.abs().max(1.0);
                if !is_close {
                    let job = String::from_utf8_lossy(job);
                    return Err(Error::internal(format!("read back, `{name}` of row {row} ({job}) is {a}; not {b}")));
                }
            }
        }
    }
    match n_compared {
        0 => Err(Error::internal("the export has no prediction to compare")),
        _ => Ok(()),
    }
}

fn examples(path: &str) -> Result<Array> {
    let failed = |e: std::io::Error| Error::io(path, "read", &e);
    let mut reader = RecordReader::new(BufReader::new(File::open(path).map_err(failed)?));
    let mut records: Vec<Vec<u8>> = Vec::new();
    while let Some(record) = reader.read().map_err(|e| Error::data(format!("{path}: {e}")))? {
        records.push(record.to_vec());
    }
    Array::from_strings([records.len()], &records)
}
