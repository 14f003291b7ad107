//! Saves checkpoints of a run: writes them in the background, lists them in the state file, and
//! removes the oldest.
//!
//! `list.rs` decides which are kept; `finite.rs` finds numbers that are not finite.

mod finite;
mod list;

pub(crate) use finite::NotFinite;
pub(crate) use list::finish_removals;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use estimand_checkpoint::{self as checkpoint, BundleWriter, CheckpointState};
use estimand_tensor::{Array, Error, ErrorKind, Result, warn};
use tracing::info;

use crate::memory;
use crate::model_folder::BASENAME;
use crate::model_folder::best::BestCheckpoint;
use crate::own_entries::{MARK, is_own};
use list::{List, remove_files};

/// The policy of which checkpoints are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retention {
    /// The number of newest checkpoints to keep; `None` for all.
    pub keep_max: Option<usize>,
    /// Of those to be removed, one is kept forever per this number of hours.
    pub keep_every_n_hours: f64,
}

impl Default for Retention {
    /// Keeps the newest 5, and one every 10,000 hours.
    fn default() -> Retention {
        Retention { keep_max: Some(5), keep_every_n_hours: 10_000.0 }
    }
}

/// A callback that receives the named values of a checkpoint, one by one.
pub(crate) type Each<'a> = &'a mut dyn FnMut(String, Array) -> Result<()>;

/// The variables that may be infinite or NaN, because their initial values were.
pub(crate) type Unjudged = Arc<BTreeSet<String>>;

/// Writes checkpoints of one folder.
pub(crate) struct Saver {
    folder: PathBuf,
    list: List,
    /// Whether the folder has a state file.
    has_state: bool,
    /// The save in progress, and its step.
    writing: Option<(u64, JoinHandle<Result<Written>>)>,
    last_step: Option<u64>,
    /// The step of the last checkpoint and its first bad number, if it is not finite.
    bad: Option<(u64, NotFinite)>,
    /// The event file to sync before the next checkpoint is listed.
    events: Option<Arc<File>>,
    /// The best checkpoints as of the next checkpoint.
    best: Option<Vec<BestCheckpoint>>,
}

impl Saver {
    /// Makes a saver that continues the list in the folder's state file.
    pub(crate) fn new(folder: &Path, retention: Retention) -> Result<Saver> {
        let list = List::read(folder, retention)?;
        let has_state = checkpoint::read_state(folder)?.is_some();
        let folder = folder.to_path_buf();
        Ok(Saver { folder, list, has_state, writing: None, last_step: None, bad: None, events: None, best: None })
    }

    /// The step of the last save of this run.
    pub(crate) fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Records that the state of a step is already on disk.
    pub(crate) fn is_saved(&mut self, step: u64) {
        self.last_step = Some(step);
    }

    /// The path of a step's checkpoint.
    pub(crate) fn prefix(&self, step: u64) -> PathBuf {
        self.folder.join(format!("{BASENAME}-{step}"))
    }

    /// Writes a checkpoint after the previous one is written. It writes in the background from a
    /// copy, or at once if `n_bytes` are too many to copy. `values` passes all values of the
    /// checkpoint.
    ///
    /// `best` are the best checkpoints so far, which are kept; `None` if they are those before.
    ///
    /// A variable that is not finite marks the checkpoint, unless it is `unjudged`. No later run
    /// resumes from a marked checkpoint.
    pub(crate) fn save(
        &mut self,
        step: u64,
        n_bytes: u64,
        unjudged: Unjudged,
        best: Option<Vec<BestCheckpoint>>,
        values: impl FnOnce(Each<'_>) -> Result<()>,
    ) -> Result<()> {
        self.wait()?;
        self.best = best;
        if !memory::has_room(n_bytes) {
            info!("Training waits for the checkpoint: there is no room for a copy of its {n_bytes} bytes.");
            return self.save_at_once(step, unjudged, values);
        }
        let mut snapshot = Vec::new();
        values(&mut |name, value| {
            snapshot.push((name, value));
            Ok(())
        })?;
        self.save_in_background(step, unjudged, snapshot)
    }

    fn save_in_background(&mut self, step: u64, unjudged: Unjudged, snapshot: Vec<(String, Array)>) -> Result<()> {
        let save = self.begin(step, unjudged);
        let write = move || save.write(|each| snapshot.into_iter().try_for_each(|(name, value)| each(name, value)));
        match thread::Builder::new().name("checkpoint".to_string()).spawn(write.clone()) {
            Ok(thread) => {
                self.writing = Some((step, thread));
                Ok(())
            }
            // Without a thread, saving only takes longer.
            Err(_) => self.take(step, write()),
        }
    }

    fn save_at_once(
        &mut self,
        step: u64,
        unjudged: Unjudged,
        values: impl FnOnce(Each<'_>) -> Result<()>,
    ) -> Result<()> {
        let written = self.begin(step, unjudged).write(values);
        self.take(step, written)
    }

    /// Syncs an event file to disk before the next checkpoint is listed. A run that resumes from
    /// the checkpoint does not write these events again.
    pub(crate) fn sync_before(&mut self, events: File) {
        self.events = Some(Arc::new(events));
    }

    fn begin(&mut self, step: u64, unjudged: Unjudged) -> Save {
        self.last_step = Some(step);
        let (folder, has_state) = (self.folder.clone(), self.has_state);
        let (events, best) = (self.events.take(), self.best.take());
        Save { folder, name: format!("{BASENAME}-{step}"), list: self.list.clone(), has_state, unjudged, events, best }
    }

    /// Takes the new list from a finished write.
    fn take(&mut self, step: u64, written: Result<Written>) -> Result<()> {
        let Written { list, bad } = written.map_err(|e| self.failed(step, e))?;
        (self.list, self.has_state) = (list, true);
        if let Some(bad) = &bad {
            warn!("The checkpoint of step {step} is marked as not finite: {bad}. {}", self.way_back());
        }
        self.bad = bad.map(|bad| (step, bad));
        Ok(())
    }

    /// Returns an error if the last checkpoint is not finite. Call [`wait`](Self::wait) first.
    pub(crate) fn check_finite(&self) -> Result<()> {
        let Some((step, bad)) = &self.bad else { return Ok(()) };
        Err(Error::new(ErrorKind::Diverged, format!("the weights of step {step} are not finite: {bad}")).help(format!(
            "lower the learning rate, clip gradients, or look for NaN and infinite numbers in the input. {}",
            self.way_back()
        )))
    }

    /// The newest checkpoint that is finite. Call [`wait`](Self::wait) first.
    pub(crate) fn newest_good(&self) -> Option<PathBuf> {
        self.list.newest_good().map(|name| self.folder.join(name))
    }

    fn way_back(&self) -> String {
        match self.newest_good() {
            Some(prefix) => {
                format!("A later run resumes from {}, the last checkpoint that is finite", prefix.display())
            }
            None => "There is no checkpoint before it: a later run starts at step 0".to_string(),
        }
    }

    /// Makes the checkpoint of a step the one that readers and later runs use, although there are
    /// newer ones. Call [`wait`](Self::wait) first. Returns whether there is such a checkpoint.
    pub(crate) fn restore(&mut self, step: u64) -> Result<bool> {
        let is_there = self.list.restore(&format!("{BASENAME}-{step}"));
        if is_there {
            self.list.write(&self.folder, &[])?;
        }
        Ok(is_there)
    }

    /// Returns the error of a write that failed in the background. It is called after every step,
    /// because a training must not continue for hours without checkpoints.
    #[inline]
    pub(crate) fn check(&mut self) -> Result<()> {
        match &self.writing {
            Some((_, thread)) if thread.is_finished() => self.wait(),
            _ => Ok(()),
        }
    }

    /// Waits for the write in progress.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let Some((step, thread)) = self.writing.take() else { return Ok(()) };
        match thread.join() {
            Ok(written) => self.take(step, written),
            Err(_) => Err(Error::internal("the thread that writes checkpoints panicked")),
        }
    }

    /// Returns the error of a save, with the last valid checkpoint.
    pub(crate) fn failed(&self, step: u64, error: Error) -> Error {
        let error = match checkpoint::latest_checkpoint(&self.folder).ok().flatten() {
            Some(prefix) => error.help(format!(
                "the last whole checkpoint is {}; when the disk can be written, run the program again to resume from it",
                prefix.display()
            )),
            None => error.help("there is no checkpoint before it; once the disk can be written, run the program again"),
        };
        error.context(format!("while the checkpoint of step {step} was saved"))
    }
}

/// A checkpoint that is not on disk yet.
#[derive(Clone)]
struct Save {
    folder: PathBuf,
    name: String,
    list: List,
    has_state: bool,
    unjudged: Unjudged,
    events: Option<Arc<File>>,
    best: Option<Vec<BestCheckpoint>>,
}

/// The changes by a written checkpoint.
struct Written {
    list: List,
    bad: Option<NotFinite>,
}

impl Save {
    /// Writes the checkpoint, then the list that names it, and then removes the files that the list
    /// no longer names. If it stops at any point, the list is valid.
    fn write(mut self, values: impl FnOnce(Each<'_>) -> Result<()>) -> Result<Written> {
        if !self.has_state {
            // Write an empty list first. If the process is killed before the real list is written,
            // the files do not look as if their list was lost.
            checkpoint::write_state(&self.folder, &CheckpointState::default())?;
        }
        let mut writer = BundleWriter::create(self.folder.join(&self.name))?;
        let mut bad = None;
        values(&mut |name, value| {
            if bad.is_none() && !is_own(&name) && !self.unjudged.contains(&name) {
                bad = NotFinite::find(&name, &value);
            }
            writer.add(&name, &value)?;
            Ok(())
        })?;
        if let Some(bad) = &bad {
            writer.add_bytes(MARK, bad.to_string().as_bytes())?;
        }
        writer.finish()?;
        if let Some(events) = &self.events {
            events.sync_data().map_err(|e| Error::io(&self.folder, "sync the events of", &e))?;
        }
        let evicted = self.list.add(&self.folder, &self.name, bad.is_none(), self.best);
        self.list.write(&self.folder, &evicted)?;
        remove_files(&self.folder, &evicted)?;
        Ok(Written { list: self.list, bad })
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        // The caller of `wait` has received any error. During a panic nobody can receive it.
        let _ = self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-saver-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn values(each: Each<'_>) -> Result<()> {
        each("a".to_string(), Array::from([1.0f32, 2.0]))?;
        each("b".to_string(), Array::scalar(3i64))
    }

    #[test]
    fn both_ways_write_the_same_files() -> Result<()> {
        let (background, at_once) = (folder("background"), folder("at-once"));
        let mut saver = Saver::new(&background, Retention::default())?;
        saver.save(7, 16, Unjudged::default(), None, values)?;
        saver.wait()?;
        Saver::new(&at_once, Retention::default())?.save_at_once(7, Unjudged::default(), values)?;
        for name in ["checkpoint", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001"] {
            let read = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(read(&background), read(&at_once), "{name}");
        }
        [background, at_once].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        Ok(())
    }

    /// A folder in the place of the file, which a file cannot replace.
    #[test]
    fn a_failed_save_is_told_once_it_is_over_and_names_what_is_left() -> Result<()> {
        let folder = folder("failed");
        let mut saver = Saver::new(&folder, Retention::default())?;
        saver.save(1, 16, Unjudged::default(), None, values)?;
        saver.wait()?;
        std::fs::create_dir_all(folder.join("model.ckpt-2.data-00000-of-00001/x")).unwrap();
        saver.save(2, 16, Unjudged::default(), None, values)?;
        let error = loop {
            // As training does after every step.
            match saver.check() {
                Ok(()) => thread::yield_now(),
                Err(error) => break error.to_string(),
            }
        };
        for part in ["step 2", "model.ckpt-2.data", "last whole checkpoint is", "model.ckpt-1;"] {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
        saver.check()?;
        assert_eq!(checkpoint::latest_checkpoint(&folder)?, Some(folder.join("model.ckpt-1")));
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    }
}
