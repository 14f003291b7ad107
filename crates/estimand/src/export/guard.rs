//! The guard of an export. Before a folder gets its name, the export is loaded, and its answers and
//! its variables are compared with those of the live model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use estimand_checkpoint::BundleReader;
use estimand_engine::Compiled;
use estimand_graph::{Executor, NodeId, Program, RunArgs, State, Value};
use estimand_tensor::{Array, Error, Result};
use estimand_tf::golden::{Answers, Feed, Golden};
use estimand_tf::saved_model::SavedModel;
use estimand_tf::saved_model_writer::SignatureOf;
use tracing::info;

use super::Built;
use super::receiver::ServingInputReceiver;

/// Asks the live model. Rows that it refuses are left out. `feeds` makes the rows of a receiver.
pub(super) fn ask(
    built: &[Built],
    feeds: impl Fn(&ServingInputReceiver) -> Vec<Feed>,
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
        for feed in feeds(&one.receiver) {
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
