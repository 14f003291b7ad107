//! The marker of an unfinished training in its model folder.
//!
//! A checkpoint holds everything that was known when it was saved. It does not record later events:
//! exporters and listeners are notified, the run ends, and its caller receives the reason.
//! Therefore a file marks a run as under way, and is removed when the run has ended. A process that
//! finds the file continues that run: it notifies listeners of a checkpoint they were not notified
//! of, and ends where the run had decided to end.

use std::path::{Path, PathBuf};

use estimand_checkpoint as checkpoint;
use estimand_tensor::{Error, Result, warn};
use serde_json::{Value, json};

/// The name of the file that exists while a run is under way.
const FILE: &str = "unfinished.json";

/// A run that is under way, or was killed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unfinished {
    folder: PathBuf,
    /// The step at which the run began; `None` if there was no checkpoint.
    began_at: Option<u64>,
    /// The number of steps that were requested, and the step at which they end.
    steps: Option<(u64, u64)>,
    /// The last checkpoint that listeners were notified of.
    told: Option<u64>,
}

impl Unfinished {
    /// Finds the run that saved the checkpoint of this step and was killed later; `None` if the
    /// folder has none.
    pub(crate) fn of(folder: &Path, checkpoint: Option<u64>) -> Option<Unfinished> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).ok()?;
        let Some(run) = parse(folder, &text) else {
            warn!("{} cannot be read; the run that wrote it counts as ended", path.display());
            return None;
        };
        // The checkpoint at which a run began was saved by the run before it.
        checkpoint.is_some_and(|step| run.began_at.is_none_or(|began| step > began)).then_some(run)
    }

    /// Marks a run as under way. It begins at a step, or continues an earlier run.
    pub(crate) fn begin(
        folder: &Path,
        checkpoint: Option<u64>,
        earlier: Option<Unfinished>,
        steps: Option<(u64, u64)>,
    ) -> Result<Unfinished> {
        let folder = folder.to_path_buf();
        let run = match earlier {
            Some(earlier) => Unfinished { steps, ..earlier },
            None => Unfinished { folder, began_at: checkpoint, steps, told: None },
        };
        run.write()?;
        Ok(run)
    }

    /// Returns the step at which a run of `n_steps` ends, if the same number was requested before.
    pub(crate) fn last_step(&self, n_steps: u64) -> Option<u64> {
        self.steps.filter(|(n, _)| *n == n_steps).map(|(_, last)| last)
    }

    /// Returns whether all listeners were notified of a checkpoint.
    pub(crate) fn is_told(&self, step: u64) -> bool {
        self.told == Some(step)
    }

    /// Records that all listeners were notified of a checkpoint.
    pub(crate) fn told(&mut self, step: u64) -> Result<()> {
        self.told = Some(step);
        self.write()
    }

    /// Records that the run has ended.
    pub(crate) fn end(self) -> Result<()> {
        let path = self.folder.join(FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&path, "remove", &error)),
            _ => Ok(()),
        }
    }

    fn write(&self) -> Result<()> {
        let Unfinished { folder, began_at, steps, told } = self;
        let text = json!({"began_at": began_at, "steps": steps, "told": told}).to_string() + "\n";
        checkpoint::write_text(folder.join(FILE), &text)
    }
}

fn parse(folder: &Path, text: &str) -> Option<Unfinished> {
    let state: Value = serde_json::from_str(text).ok()?;
    let number = |value: &Value| if value.is_null() { Some(None) } else { value.as_u64().map(Some) };
    let steps = match state.get("steps")? {
        Value::Null => None,
        pair => Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?)),
    };
    let (began_at, told) = (number(state.get("began_at")?)?, number(state.get("told")?)?);
    Some(Unfinished { folder: folder.to_path_buf(), began_at, steps, told })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_until_it_ends() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("estimand-unfinished-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(Unfinished::of(&folder, Some(7)), None);
        let mut run = Unfinished::begin(&folder, Some(7), None, Some((10, 17)))?;
        assert_eq!(Unfinished::of(&folder, Some(7)), None, "the checkpoint of the run before");
        assert_eq!(Unfinished::of(&folder, Some(9)), Some(run.clone()));
        run.told(9)?;
        let found = Unfinished::of(&folder, Some(9)).unwrap();
        assert!(found.is_told(9) && !found.is_told(7));
        assert_eq!((found.last_step(10), found.last_step(11)), (Some(17), None));
        let again = Unfinished::begin(&folder, Some(9), Some(found), None)?;
        assert_eq!(again.began_at, Some(7));
        again.end()?;
        assert_eq!(Unfinished::of(&folder, Some(9)), None);

        let fresh = Unfinished::begin(&folder, None, None, None)?;
        assert_eq!(Unfinished::of(&folder, Some(0)), Some(fresh));
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        for n in 0..text.len() - 1 {
            std::fs::write(folder.join(FILE), &text[..n]).unwrap();
            assert_eq!(Unfinished::of(&folder, Some(0)), None, "damage counts as none");
        }
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    }
}
