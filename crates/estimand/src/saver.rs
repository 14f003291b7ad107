//! Checkpoints of a run: written in the background, listed in the state file, the oldest removed.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use estimand_graph::checkpoint::{self, BundleWriter, CheckpointState};
use estimand_tensor::{Array, Error, Result};
use tracing::info;

use crate::memory;

/// Which checkpoints are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retention {
    /// The newest so many; `None` for all.
    pub keep_max: Option<usize>,
    /// Of those that would be removed, one for every so many hours stays for ever.
    pub keep_every_n_hours: f64,
}

impl Default for Retention {
    /// The newest 5, and one every 10,000 hours.
    fn default() -> Retention {
        Retention { keep_max: Some(5), keep_every_n_hours: 10_000.0 }
    }
}

/// Takes what is in a checkpoint, one named value after the other.
pub(crate) type Each<'a> = &'a mut dyn FnMut(String, Array) -> Result<()>;

/// Writes checkpoints of one folder.
pub(crate) struct Saver {
    folder: PathBuf,
    retention: Retention,
    /// The listed checkpoints, oldest first, and when each was saved.
    kept: Vec<(String, SystemTime)>,
    /// An evicted checkpoint that was saved after this stays.
    deadline: SystemTime,
    /// What is being written, and the step it is of.
    writing: Option<(u64, JoinHandle<Result<()>>)>,
    last_step: Option<u64>,
}

const BASENAME: &str = "model.ckpt";

/// A checkpoint's files.
fn files(prefix: &Path) -> [PathBuf; 3] {
    ["index", "data-00000-of-00001", "meta"].map(|ending| {
        let mut name = prefix.as_os_str().to_os_string();
        name.push(format!(".{ending}"));
        PathBuf::from(name)
    })
}

impl Saver {
    /// Goes on with what the folder's state file lists.
    pub(crate) fn new(folder: &Path, retention: Retention) -> Result<Saver> {
        let mut kept = Vec::new();
        if let Some(state) = checkpoint::read_state(folder)? {
            for name in state.all_model_checkpoint_paths {
                let index = &files(&folder.join(&name))[0];
                if let Ok(saved) = std::fs::metadata(index).and_then(|m| m.modified()) {
                    kept.push((name, saved));
                }
            }
        }
        let deadline = SystemTime::now() + hours(retention.keep_every_n_hours);
        Ok(Saver { folder: folder.to_path_buf(), retention, kept, deadline, writing: None, last_step: None })
    }

    /// The step of the last save of this run.
    pub(crate) fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Says that the state of a step is on disk already.
    pub(crate) fn is_saved(&mut self, step: u64) {
        self.last_step = Some(step);
    }

    /// The path of a step's checkpoint.
    pub(crate) fn prefix(&self, step: u64) -> PathBuf {
        self.folder.join(format!("{BASENAME}-{step}"))
    }

    /// Writes a checkpoint, once the one before is written: in the background from a copy, or at once if `n_bytes` are too many to
    /// be copied. `values` hands over all that is in it.
    pub(crate) fn save(&mut self, step: u64, n_bytes: u64, values: impl FnOnce(Each<'_>) -> Result<()>) -> Result<()> {
        self.wait()?;
        if !memory::has_room(n_bytes) {
            info!("Training waits for the checkpoint: there is no room for a copy of its {n_bytes} bytes.");
            return self.save_at_once(step, values);
        }
        let mut snapshot = Vec::new();
        values(&mut |name, value| {
            snapshot.push((name, value));
            Ok(())
        })?;
        self.save_in_background(step, snapshot)
    }

    fn save_in_background(&mut self, step: u64, snapshot: Vec<(String, Array)>) -> Result<()> {
        let save = self.begin(step);
        let write = move || save.write(|each| snapshot.into_iter().try_for_each(|(name, value)| each(name, value)));
        match thread::Builder::new().name("checkpoint".to_string()).spawn(write.clone()) {
            Ok(thread) => self.writing = Some((step, thread)),
            // Without a thread it takes longer, no more.
            Err(_) => write().map_err(|e| self.failed(step, e))?,
        }
        Ok(())
    }

    fn save_at_once(&mut self, step: u64, values: impl FnOnce(Each<'_>) -> Result<()>) -> Result<()> {
        self.begin(step).write(values).map_err(|e| self.failed(step, e))
    }

    /// Puts a checkpoint on the list; what is left is to write it.
    fn begin(&mut self, step: u64) -> Save {
        let name = format!("{BASENAME}-{step}");
        self.kept.retain(|(kept, _)| *kept != name);
        self.kept.push((name, SystemTime::now()));
        self.last_step = Some(step);
        let evicted = self.evict();
        let names = self.kept.iter().map(|(name, _)| name.clone()).collect();
        Save { folder: self.folder.clone(), prefix: self.prefix(step), names, evicted }
    }

    /// The error of a write that has failed meanwhile. Asked after every step: a training must not go on for hours without
    /// checkpoints.
    #[inline]
    pub(crate) fn check(&mut self) -> Result<()> {
        match &self.writing {
            Some((_, thread)) if thread.is_finished() => self.wait(),
            _ => Ok(()),
        }
    }

    /// Waits for what is being written.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let Some((step, thread)) = self.writing.take() else { return Ok(()) };
        match thread.join() {
            Ok(written) => written.map_err(|e| self.failed(step, e)),
            Err(_) => Err(Error::internal("the thread that writes checkpoints panicked")),
        }
    }

    /// The error of a save, with the checkpoint that is left.
    pub(crate) fn failed(&self, step: u64, error: Error) -> Error {
        let error = match checkpoint::latest_checkpoint(&self.folder).ok().flatten() {
            Some(prefix) => error.help(format!(
                "the last whole checkpoint is {}; once the disk can be written, run the program again to go on from it",
                prefix.display()
            )),
            None => error.help("there is no checkpoint before it; once the disk can be written, run the program again"),
        };
        error.context(format!("while the checkpoint of step {step} was saved"))
    }

    /// Takes the checkpoints that are no longer kept off the list; returns those whose files go.
    fn evict(&mut self) -> Vec<String> {
        let keep = self.retention.keep_max.filter(|&n| n > 0).unwrap_or(usize::MAX);
        let mut gone = Vec::new();
        while self.kept.len() > keep {
            let (name, saved) = self.kept.remove(0);
            if saved > self.deadline {
                self.deadline += hours(self.retention.keep_every_n_hours);
            } else {
                gone.push(name);
            }
        }
        gone
    }
}

fn hours(n: f64) -> Duration {
    // A time that cannot be told is never reached.
    Duration::try_from_secs_f64(n * 3600.0).unwrap_or(Duration::from_secs(u64::MAX >> 8))
}

/// A checkpoint that is on the list and not yet on the disk.
#[derive(Clone)]
struct Save {
    folder: PathBuf,
    prefix: PathBuf,
    /// The list with it, and what has left the list.
    names: Vec<String>,
    evicted: Vec<String>,
}

impl Save {
    /// First the checkpoint, then the list that names it, then what the list no longer names: whenever this stops, the list is
    /// true.
    fn write(self, values: impl FnOnce(Each<'_>) -> Result<()>) -> Result<()> {
        let mut writer = BundleWriter::create(&self.prefix)?;
        values(&mut |name, value| writer.add(&name, &value))?;
        writer.finish()?;
        let state = CheckpointState {
            model_checkpoint_path: self.names.last().cloned().unwrap_or_default(),
            all_model_checkpoint_paths: self.names,
            ..CheckpointState::default()
        };
        checkpoint::write_state(&self.folder, &state)?;
        for name in &self.evicted {
            for file in files(&self.folder.join(name)) {
                match std::fs::remove_file(&file) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io(&file, "remove", &error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        // An error was told to whoever called `wait`; what is dropped in a panic has nobody to tell.
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
        saver.save(7, 16, values)?;
        saver.wait()?;
        Saver::new(&at_once, Retention::default())?.save_at_once(7, values)?;
        for name in ["checkpoint", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001"] {
            let read = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(read(&background), read(&at_once), "{name}");
        }
        [background, at_once].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        Ok(())
    }

    /// A folder in the place of the file, which no file can replace.
    #[test]
    fn a_failed_save_is_told_once_it_is_over_and_names_what_is_left() -> Result<()> {
        let folder = folder("failed");
        let mut saver = Saver::new(&folder, Retention::default())?;
        saver.save(1, 16, values)?;
        saver.wait()?;
        std::fs::create_dir_all(folder.join("model.ckpt-2.data-00000-of-00001/x")).unwrap();
        saver.save(2, 16, values)?;
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
