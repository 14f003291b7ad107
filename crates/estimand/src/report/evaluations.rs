//! Reads the evaluations of a model folder, and finds the best of each input.

use std::fs;
use std::path::Path;

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Error, Result};
use serde_json::Value;

use super::log::Log;
use crate::criterion::Criterion;
use crate::model_folder::best::EVALUATOR_STATE;
use crate::model_folder::best_so_far::stored;
use crate::own_entries::hook_state;
use crate::train_and_evaluate::EVALUATIONS;
use crate::{Evaluated, Metrics};

/// Reads the evaluations in the folders `eval` and `eval_<name>`, the one without a name first. The
/// best is not known yet.
pub(super) fn read(model_dir: &Path, log: &mut Log) -> Result<Vec<Evaluated>> {
    let mut names: Vec<Option<String>> = Vec::new();
    let entries = match fs::read_dir(model_dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| Error::io(model_dir, "list", &e))?,
    };
    for entry in entries {
        let name = entry.map_err(|e| Error::io(model_dir, "list", &e))?.file_name().to_string_lossy().into_owned();
        match name.strip_prefix("eval_") {
            Some(set) => names.push(Some(set.to_string())),
            None if name == "eval" => names.push(None),
            None => {}
        }
    }
    names.sort();
    let mut all = Vec::new();
    for name in names {
        let folder = model_dir.join(name.as_ref().map_or("eval".to_string(), |name| format!("eval_{name}")));
        let history = if folder.is_dir() { log.evaluations(&folder)? } else { Vec::new() };
        if !history.is_empty() {
            all.push(Evaluated { name, by: String::new(), history, best: None });
        }
    }
    Ok(all)
}

/// Finds the best evaluation of each input: the one that the training stored in its checkpoint, or
/// else the one with the lowest loss.
pub(super) fn choose(
    all: &mut [Evaluated],
    model_dir: &Path,
    checkpoint: Option<&BundleReader>,
    notes: &mut Vec<String>,
) {
    let state = state(model_dir, checkpoint).unwrap_or_else(|error| {
        notes.push(format!("which evaluations were the best is not known: {}", error.message()));
        Value::Null
    });
    for set in all {
        let kept = state.get(set.name.as_deref().unwrap_or_default()).and_then(|state| stored(state.get("best")?));
        (set.by, set.best) = kept.unwrap_or_else(|| (Criterion::default().to_string(), lowest_loss(&set.history)));
    }
}

/// Reads the state of the evaluations that a training or an evaluator process stored.
fn state(model_dir: &Path, checkpoint: Option<&BundleReader>) -> Result<Value> {
    let of_training = checkpoint.map(|reader| hook_state(reader, EVALUATIONS)).transpose()?.flatten();
    let text = of_training.or_else(|| fs::read(model_dir.join(EVALUATOR_STATE)).ok());
    let parse = |text: Vec<u8>| {
        serde_json::from_slice(&text)
            .map_err(|e| Error::data(format!("the stored state of the evaluations cannot be read: {e}")))
    };
    text.map_or(Ok(Value::Null), parse)
}

fn lowest_loss(history: &[Metrics]) -> Option<Metrics> {
    let loss = |metrics: &Metrics| metrics.get("loss").ok().filter(|loss| !loss.is_nan());
    let with_loss = history.iter().filter_map(|metrics| Some((loss(metrics)?, metrics)));
    with_loss.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, metrics)| metrics.clone())
}
