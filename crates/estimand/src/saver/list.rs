//! The list of a folder's checkpoints: which to keep, which to remove, and which one the next run
//! resumes from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use estimand_checkpoint::{self as checkpoint, CheckpointState};
use estimand_tensor::{Error, Result};

use super::Retention;
use crate::model_folder::best::{BestCheckpoint, noted, of_evaluator};

/// The name of the state file.
const STATE_FILE: &str = "checkpoint";

/// The prefix of a comment that names a checkpoint whose files are being removed.
const EVICTED: &str = "# evicted: ";

/// The checkpoints that the state file lists.
#[derive(Clone)]
pub(super) struct List {
    retention: Retention,
    /// Their names, oldest first, and the time when each was saved.
    kept: Vec<(String, SystemTime)>,
    /// The newest checkpoint with finite numbers only. The next run resumes from it, so it is never
    /// removed.
    newest_good: Option<String>,
    /// The checkpoints of the best evaluations. They are never removed either.
    best: Vec<BestCheckpoint>,
    /// An evicted checkpoint that was saved after this time is kept.
    deadline: SystemTime,
}

impl List {
    /// Reads the folder's state file.
    pub(super) fn read(folder: &Path, retention: Retention) -> Result<List> {
        let state = checkpoint::read_state(folder)?.unwrap_or_default();
        let saved = |name: &str| fs::metadata(folder.join(format!("{name}.index"))).and_then(|m| m.modified());
        let names = state.all_model_checkpoint_paths.into_iter();
        let kept = names.filter_map(|name| saved(&name).ok().map(|time| (name, time))).collect();
        let newest_good = Some(state.model_checkpoint_path).filter(|name| !name.is_empty());
        let deadline = SystemTime::now() + hours(retention.keep_every_n_hours);
        Ok(List { retention, kept, newest_good, best: noted(folder), deadline })
    }

    /// Adds a checkpoint, and notes the best checkpoints so far; `None` if they are those before.
    /// Returns the names of those that leave the list and whose files are to be removed.
    ///
    /// A checkpoint that is not finite changes no best one: the next run does not resume from it.
    pub(super) fn add(
        &mut self,
        folder: &Path,
        name: &str,
        is_finite: bool,
        best: Option<Vec<BestCheckpoint>>,
    ) -> Vec<String> {
        self.kept.retain(|(kept, _)| kept != name);
        self.kept.push((name.to_string(), SystemTime::now()));
        if is_finite {
            self.newest_good = Some(name.to_string());
        } else if self.newest_good.as_deref() == Some(name) {
            // It was saved again, and is no longer good.
            self.newest_good = None;
        }
        if let Some(best) = best.filter(|_| is_finite) {
            self.best = best;
        }
        // An evaluation between two checkpoints has none, if checkpoints are saved by a schedule
        // only.
        self.best.retain(|best| self.kept.iter().any(|(kept, _)| *kept == best.checkpoint));
        self.evict(&of_evaluator(folder))
    }

    /// Makes the checkpoint of a best evaluation the one that the next run resumes from. Returns
    /// whether it is there.
    pub(super) fn restore(&mut self, name: &str) -> bool {
        let is_kept = self.kept.iter().any(|(kept, _)| kept == name);
        if is_kept {
            self.newest_good = Some(name.to_string());
        }
        is_kept
    }

    /// Returns the checkpoint that the next run resumes from.
    pub(super) fn newest_good(&self) -> Option<&str> {
        self.newest_good.as_deref()
    }

    /// Writes the state file. Its comments name the best checkpoints, and those that have left the
    /// list. If a
    /// process is killed before it has removed their files, [`finish_removals`] removes them later.
    pub(super) fn write(&self, folder: &Path, evicted: &[String]) -> Result<()> {
        let mut text = self.state().to_string();
        self.best.iter().for_each(|best| text += &best.line());
        for name in evicted.iter().filter(|name| is_plain(name) && !name.contains(char::is_control)) {
            text += &format!("{EVICTED}{name}\n");
        }
        checkpoint::write_text(folder.join(STATE_FILE), &text)
    }

    fn state(&self) -> CheckpointState {
        CheckpointState {
            model_checkpoint_path: self.newest_good.clone().unwrap_or_default(),
            all_model_checkpoint_paths: self.kept.iter().map(|(name, _)| name.clone()).collect(),
            ..CheckpointState::default()
        }
    }

    fn evict(&mut self, best_of_evaluator: &[BestCheckpoint]) -> Vec<String> {
        let keep = self.retention.keep_max.filter(|&n| n > 0).unwrap_or(usize::MAX);
        let n_old = self.kept.len().saturating_sub(keep);
        let mut gone = Vec::new();
        let newest = self.kept.split_off(n_old);
        for (name, saved) in std::mem::replace(&mut self.kept, newest).into_iter().rev() {
            let is_best = self.best.iter().chain(best_of_evaluator).any(|best| best.checkpoint == name);
            if is_best || self.newest_good.as_deref() == Some(&name) {
                self.kept.insert(0, (name, saved));
            } else if saved > self.deadline {
                self.deadline += hours(self.retention.keep_every_n_hours);
            } else {
                gone.push(name);
            }
        }
        gone
    }
}

/// Removes the files of checkpoints that a killed process had removed from the list. Only the owner
/// of the folder may call it.
pub(crate) fn finish_removals(folder: &Path) -> Result<()> {
    let Ok(text) = fs::read_to_string(folder.join(STATE_FILE)) else { return Ok(()) };
    let listed = checkpoint::read_state(folder)?.unwrap_or_default().all_model_checkpoint_paths;
    let evicted = text.lines().filter_map(|line| line.strip_prefix(EVICTED)).map(str::to_string);
    remove_files(folder, &evicted.filter(|name| !listed.contains(name)).collect::<Vec<_>>())
}

fn hours(n: f64) -> Duration {
    // A time too large to represent is never reached.
    Duration::try_from_secs_f64(n * 3600.0).unwrap_or(Duration::from_secs(u64::MAX >> 8))
}

/// Returns whether a name of the list is a file of the folder itself. A copied folder may list
/// files of the original, by absolute or `../` names. They are read, but never removed.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

/// Removes the files of checkpoints that left the list: first the index, without which the other
/// files are not read.
pub(super) fn remove_files(folder: &Path, names: &[String]) -> Result<()> {
    let names: BTreeSet<&str> = names.iter().map(String::as_str).filter(|name| is_plain(name)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut files: Vec<String> = names.iter().map(|name| format!("{name}.index")).collect();
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, "list", &e))? {
        let Ok(file) = entry.map_err(|e| Error::io(folder, "list", &e))?.file_name().into_string() else { continue };
        // TensorFlow may have written several data files, and a graph.
        let prefix = file.strip_suffix(".meta").or_else(|| file.rsplit_once(".data-").map(|(prefix, _)| prefix));
        if prefix.is_some_and(|prefix| names.contains(prefix)) {
            files.push(file);
        }
    }
    for file in files {
        let path = folder.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&path, "remove", &error));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keep_max: usize) -> List {
        let retention = Retention { keep_max: Some(keep_max), ..Retention::default() };
        let deadline = SystemTime::now() + hours(1.0);
        List { retention, kept: Vec::new(), newest_good: None, best: Vec::new(), deadline }
    }

    fn add(list: &mut List, name: &str, is_finite: bool) -> Vec<String> {
        list.add(Path::new("no such folder"), name, is_finite, None)
    }

    fn names(list: &List) -> Vec<&str> {
        list.kept.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn the_last_good_checkpoint_outlives_all_bad_ones() {
        let mut list = list(2);
        assert!(add(&mut list, "a", true).is_empty());
        assert!(add(&mut list, "b", true).is_empty());
        assert_eq!(add(&mut list, "c", false), ["a"]);
        assert!(add(&mut list, "d", false).is_empty(), "b is old, and the last that is good");
        assert_eq!(add(&mut list, "e", false), ["c"]);
        assert_eq!((names(&list), list.newest_good()), (vec!["b", "d", "e"], Some("b")));
        assert_eq!(list.state().model_checkpoint_path, "b");
        // Once there is a good one again, it is removed like all others.
        assert_eq!(add(&mut list, "f", true), ["d", "b"]);
        assert_eq!(names(&list), ["e", "f"]);
    }

    #[test]
    fn the_best_checkpoint_stays_until_there_is_a_better_one() {
        let mut list = list(2);
        let best = |step: u64| Some(vec![BestCheckpoint::new("test", step)]);
        let mut save = |step: u64, is_finite, best| {
            list.add(Path::new("no such folder"), &format!("model.ckpt-{step}"), is_finite, best)
        };
        assert!(save(1, true, best(1)).is_empty());
        assert!(save(2, true, best(1)).is_empty());
        assert!(save(3, true, best(1)).is_empty(), "1 is old, and the best");
        assert_eq!(save(4, true, best(1)), ["model.ckpt-2"]);
        // A training without evaluations knows nothing about the best.
        assert_eq!(save(5, true, None), ["model.ckpt-3"]);
        // Not finite: the next run resumes from 5, whose best is 1.
        assert_eq!(save(6, false, best(6)), ["model.ckpt-4"]);
        assert_eq!(save(7, true, best(7)), ["model.ckpt-5", "model.ckpt-1"]);
        // Nobody saved step 8.
        assert_eq!(save(9, true, best(8)), ["model.ckpt-6"]);
        assert_eq!(list.best, []);
        assert_eq!(names(&list), ["model.ckpt-7", "model.ckpt-9"]);
    }

    #[test]
    fn names_that_leave_the_folder_are_not_plain() {
        for name in ["/a/model.ckpt-1", "../model.ckpt-1", "eval/model.ckpt-1", "..", ".", "", "./a"] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(is_plain("model.ckpt-1"));
    }
}
