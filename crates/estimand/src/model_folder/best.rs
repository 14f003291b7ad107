//! Finds the checkpoint of the best evaluation.
//!
//! A trainer that evaluates notes its best checkpoints as comments in the state file `checkpoint`,
//! in the same write that lists the checkpoints; TensorFlow ignores comments. An evaluator process
//! keeps its results in a file of its own.

use std::fs;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use serde_json::{Value, json};

use super::BASENAME;
use super::best_so_far::stored;
use super::newest::is_there;

/// The file in which an evaluator process keeps the state of its evaluations. It writes no
/// checkpoints.
pub(crate) const EVALUATOR_STATE: &str = "evaluations.json";

/// The name of the state file.
const STATE_FILE: &str = "checkpoint";

/// The prefix of a comment that names the checkpoint of a best evaluation.
const BEST: &str = "# best: ";

/// The checkpoint of the best evaluation of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BestCheckpoint {
    /// The name of the evaluation; empty if it has none.
    pub(crate) evaluation: String,
    /// The name of the checkpoint in the folder: `model.ckpt-3000`.
    pub(crate) checkpoint: String,
}

impl BestCheckpoint {
    /// The checkpoint of a step.
    pub(crate) fn new(evaluation: &str, step: u64) -> BestCheckpoint {
        BestCheckpoint { evaluation: evaluation.to_string(), checkpoint: format!("{BASENAME}-{step}") }
    }

    /// Returns the comment for the state file.
    pub(crate) fn line(&self) -> String {
        format!("{BEST}{}\n", json!({"checkpoint": self.checkpoint, "evaluation": self.evaluation}))
    }

    fn parse(line: &str) -> Option<BestCheckpoint> {
        let value: Value = serde_json::from_str(line.strip_prefix(BEST)?).ok()?;
        let text = |name: &str| value.get(name)?.as_str().map(str::to_string);
        Some(BestCheckpoint { evaluation: text("evaluation")?, checkpoint: text("checkpoint")? })
    }
}

/// Reads the best checkpoints that the trainer has noted, in the order of its evaluations.
pub(crate) fn noted(folder: &Path) -> Vec<BestCheckpoint> {
    let text = fs::read_to_string(folder.join(STATE_FILE)).unwrap_or_default();
    text.lines().filter_map(BestCheckpoint::parse).collect()
}

/// Reads the best checkpoints that an evaluator process has found.
pub(crate) fn of_evaluator(folder: &Path) -> Vec<BestCheckpoint> {
    let text = fs::read_to_string(folder.join(EVALUATOR_STATE)).unwrap_or_default();
    let Ok(Value::Object(all)) = serde_json::from_str(&text) else { return Vec::new() };
    let step = |state: &Value| Some(stored(state.get("best")?)?.1?.global_step());
    all.iter().filter_map(|(name, state)| Some(BestCheckpoint::new(name, step(state)?))).collect()
}

/// Returns the prefix of the checkpoint of the best evaluation of this name, or of the first
/// evaluation, and the name; `None` if nothing is noted.
pub(crate) fn best(folder: &Path, evaluation: Option<&str>) -> Result<Option<(PathBuf, String)>> {
    let mut before = None;
    loop {
        let mut all = noted(folder);
        if all.is_empty() {
            all = of_evaluator(folder);
        }
        let found = match evaluation {
            None => all.first(),
            Some(name) => all.iter().find(|best| best.evaluation == name),
        };
        let Some(found) = found else {
            return match evaluation {
                Some(name) if !all.is_empty() => {
                    Err(Error::unknown("best evaluation named", name, all.iter().map(|best| &*best.evaluation)))
                }
                _ => Ok(None),
            };
        };
        let prefix = folder.join(&found.checkpoint);
        if is_there(&prefix) {
            return Ok(Some((prefix, found.evaluation.clone())));
        }
        // A trainer may have found a better one and removed this one since the list was read.
        if before.as_ref() == Some(found) {
            return Err(Error::checkpoint(
                &prefix,
                "this is the checkpoint of the best evaluation, but it does not exist",
            )
            .help("put the files back, or use the newest checkpoint"));
        }
        before = Some(found.clone());
    }
}

/// Calls `read` with the checkpoint of the best evaluation. If that fails because a trainer has
/// removed the checkpoint meanwhile, calls it with the better one.
pub(crate) fn read_best<T>(
    folder: &Path,
    evaluation: Option<&str>,
    mut read: impl FnMut(&Path) -> Result<T>,
) -> Result<(PathBuf, T)> {
    loop {
        let Some((prefix, _)) = best(folder, evaluation)? else {
            return Err(Error::config(format!("there is no best checkpoint in {}", folder.display())).help(
                "train_and_evaluate keeps the checkpoint of the best evaluation; use the newest checkpoint instead",
            ));
        };
        match read(&prefix) {
            Ok(value) => return Ok((prefix, value)),
            Err(_) if !is_there(&prefix) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_any_name() {
        for name in ["", "test", "two words", "a \"b\"\n# best: {}", "é"] {
            let best = BestCheckpoint::new(name, 7);
            let line = best.line();
            assert_eq!(line.lines().count(), 1, "{line}");
            assert_eq!(BestCheckpoint::parse(line.trim_end()), Some(best));
        }
        for other in ["", "# best: ", "# best: {}", "# best: {\"checkpoint\":7}", "# evicted: model.ckpt-1"] {
            assert_eq!(BestCheckpoint::parse(other), None, "{other}");
        }
    }
}
