//! The guard of an export. Before a folder gets its name, the export is loaded, and its answers and
//! its variables are compared with those of the live model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use estimand_checkpoint::BundleReader;
use estimand_engine::Compiled;
use estimand_graph::{Executor, NodeId, Program, RunArgs, State, Value};
use estimand_tensor::{Array, DType, Error, Result};
use estimand_tf::saved_model::{SavedModel, SignatureModel};
use estimand_tf::saved_model_writer::SignatureOf;
use tracing::info;

use super::Built;
use super::feeds::{Feed, feeds};
use crate::kept_rows::TrainingRows;

/// The largest difference of a float, relative to the larger of 1 and the number.
const TOLERANCE: f64 = 1e-5;

/// Inputs, and the answers that the live model gives.
#[derive(Clone, Debug, Default)]
pub(super) struct Golden {
    pub(super) feeds: Vec<Feed>,
    pub(super) answers: Vec<Answers>,
}

/// The answers of one signature.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    pub(super) signature: String,
    /// Another signature with the same inputs and outputs, whose answers these are.
    pub(super) same_as: Option<String>,
    /// The feeds, by their numbers, each with all outputs.
    pub(super) of: Vec<(usize, Vec<(String, Array)>)>,
}

impl Golden {
    /// Asks the live model. Rows that it refuses are left out.
    pub(super) fn ask(
        built: &[Built],
        kept: Option<&TrainingRows>,
        with_rows: bool,
        executor: &dyn Executor,
        state: &dyn State,
    ) -> Result<Golden> {
        let mut golden = Golden::default();
        for one in built {
            let mut fetches: Vec<Value> = Vec::new();
            for (_, value) in one.signatures.iter().flat_map(|signature| &signature.outputs) {
                if !fetches.contains(value) {
                    fetches.push(*value);
                }
            }
            let compiled = Compiled::new(executor, Program::new(one.body.clone(), &fetches)?)?;
            let mut answered: Vec<(usize, Vec<Array>)> = Vec::new();
            for feed in feeds(&one.receiver, kept, with_rows) {
                match one.run(&compiled, state, &feed) {
                    Ok(outputs) => {
                        answered.push((golden.feeds.len(), outputs));
                        golden.feeds.push(feed);
                    }
                    Err(error) => info!("The export is not checked with rows `{}`: {error}", feed.rows),
                }
            }
            let alike = |a: &SignatureOf, b: &SignatureOf| a.inputs == b.inputs && a.outputs == b.outputs;
            for (i, signature) in one.signatures.iter().enumerate() {
                let earlier = one.signatures[..i].iter().find(|earlier| alike(earlier, signature));
                let mut answers = Answers {
                    signature: signature.name.clone(),
                    same_as: earlier.map(|earlier| earlier.name.clone()),
                    of: Vec::new(),
                };
                let place = |value: &Value| fetches.iter().position(|fetch| fetch == value).unwrap_or(0);
                // Alternatives take values from the middle of the graph.
                let is_fed = signature.inputs.iter().all(|(_, value)| one.receives(*value));
                for (feed, outputs) in answered.iter().filter(|_| is_fed && earlier.is_none()) {
                    let named = |(name, value): &(String, Value)| (name.clone(), outputs[place(value)].clone());
                    answers.of.push((*feed, signature.outputs.iter().map(named).collect()));
                }
                golden.answers.push(answers);
            }
        }
        Ok(golden)
    }

    /// Compares the answers of an export's graph with these. `load` reads a signature.
    pub(super) fn check(&self, load: impl Fn(&str) -> Result<SignatureModel>) -> Result<()> {
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
                    if let Some(difference) = difference(expected, found) {
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

/// Compares an export that has no name yet with the live model: its graph on the live values, and
/// the files of its variables by their checksums.
pub(super) fn check(
    folder: &Path,
    golden: &Golden,
    state: &Arc<dyn State>,
    checksums: &BTreeMap<String, u32>,
) -> Result<()> {
    let refused = |e: Error| {
        e.context("the export was refused, because it is not what the model is")
            .help("nothing was published; this is a defect of the disk or of Estimand: please report it")
    };
    if !golden.answers.is_empty() {
        let model = SavedModel::open(folder).map_err(refused)?;
        golden.check(|name| model.signature_on(name, state.clone())).map_err(refused)?;
    }
    if !checksums.is_empty() {
        let reader = BundleReader::open(folder.join("variables").join("variables")).map_err(refused)?;
        for (name, checksum) in checksums {
            if reader.verify(name).map_err(refused)? != *checksum {
                return Err(refused(Error::data(format!(
                    "the values of variable `{name}` are not those of the model"
                ))));
            }
        }
    }
    Ok(())
}

impl Built {
    /// Whether a caller feeds this value.
    fn receives(&self, value: Value) -> bool {
        self.receiver.receiver_tensors.values().any(|tensor| tensor.value() == value)
    }

    /// Runs the live model on a feed.
    fn run(&self, compiled: &Compiled, state: &dyn State, feed: &Feed) -> Result<Vec<Array>> {
        let value = |id: &NodeId| {
            let of = |(_, tensor): &(&String, &estimand_graph::Tensor)| tensor.value().node == *id;
            let (name, _) = self.receiver.receiver_tensors.iter().find(of)?;
            feed.inputs.iter().find(|(known, _)| known == name).map(|(_, array)| array.clone())
        };
        let program = compiled.program();
        let missing = |id: &NodeId| {
            Error::config(format!("placeholder `{}` is not an input of the receiver", program.body().node(*id).name))
        };
        let placeholders = program.placeholders().iter().map(|id| value(id).ok_or_else(|| missing(id)));
        let placeholders = placeholders.collect::<Result<Vec<_>>>()?;
        let mut outputs = Vec::new();
        compiled.forward(state, RunArgs { feeds: &placeholders, ..RunArgs::default() }, &mut outputs)?;
        Ok(outputs)
    }
}

/// Describes the first difference of two arrays, if there is one: floats may differ by rounding.
fn difference(expected: &Array, found: &Array) -> Option<String> {
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
    let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(1.0);
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
        assert_eq!(difference(&a, &floats([1.000_001, f32::NAN, 1.000_001e9, f32::INFINITY])), None);
        let b = floats([1.0, f32::NAN, 1e9, 2.0]);
        assert_eq!(difference(&a, &b).unwrap(), "row 1: expected inf, found 2");
        assert_eq!(difference(&a, &floats([1.0, 0.0, 1e9, 0.0])).unwrap(), "row 0: expected NaN, found 0");
        let (a, b) = (Array::from([1i64, 2]), Array::from([1i64, 3]));
        assert_eq!(difference(&a, &b).unwrap(), "row 1: expected 2, found 3");
        assert_eq!(difference(&a, &Array::from([1i64])).unwrap(), "expected i64[2], found i64[1]");
        let words = |word: &[u8]| Array::from_strings([1], [word]).unwrap();
        assert_eq!(difference(&words(b"a"), &words(b"\xff")).unwrap(), "row 0: expected \"a\", found \"\\xff\"");
        let (a, b) = (Array::from([true]), Array::from([false]));
        assert!(difference(&a, &b).is_some());
    }
}
