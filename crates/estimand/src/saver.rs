//! Checkpoints of a run: written in the background, listed in the state file, the oldest removed.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use estimand_graph::checkpoint::{self, BundleWriter, CheckpointState};
use estimand_tensor::{Array, Error, Result};

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

/// The state of a run as it is written: names and values.
pub(crate) type Snapshot = Vec<(String, Array)>;

/// Writes checkpoints of one folder.
pub(crate) struct Saver {
    folder: PathBuf,
    retention: Retention,
    /// The listed checkpoints, oldest first, and when each was saved.
    kept: Vec<(String, SystemTime)>,
    /// An evicted checkpoint that was saved after this stays.
    deadline: SystemTime,
    writing: Option<JoinHandle<Result<()>>>,
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

    /// Begins to write a checkpoint, once the one before is written.
    pub(crate) fn save(&mut self, step: u64, snapshot: Snapshot) -> Result<()> {
        self.wait()?;
        let name = format!("{BASENAME}-{step}");
        self.kept.retain(|(kept, _)| *kept != name);
        self.kept.push((name, SystemTime::now()));
        let evicted = self.evict();
        let (folder, prefix) = (self.folder.clone(), self.prefix(step));
        let names: Vec<String> = self.kept.iter().map(|(name, _)| name.clone()).collect();
        let write = move || write(&folder, &prefix, &snapshot, names, &evicted);
        self.last_step = Some(step);
        match thread::Builder::new().name("checkpoint".to_string()).spawn(write.clone()) {
            Ok(thread) => self.writing = Some(thread),
            // Without a thread it takes longer, no more.
            Err(_) => write()?,
        }
        Ok(())
    }

    /// Waits for what is being written.
    pub(crate) fn wait(&mut self) -> Result<()> {
        match self.writing.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => {
                let usable = checkpoint::latest_checkpoint(&self.folder).ok().flatten();
                Err(match usable {
                    Some(prefix) => error.help(format!("the checkpoint before it, {}, is whole", prefix.display())),
                    None => error,
                }
                .context("while a checkpoint was saved"))
            }
            Some(Err(_)) => Err(Error::internal("the thread that writes checkpoints panicked")),
        }
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

/// First the checkpoint, then the list that names it, then what the list no longer names: whenever this stops, the list is true.
fn write(folder: &Path, prefix: &Path, snapshot: &Snapshot, names: Vec<String>, evicted: &[String]) -> Result<()> {
    let mut writer = BundleWriter::create(prefix)?;
    for (name, value) in snapshot {
        writer.add(name, value)?;
    }
    writer.finish()?;
    let state = CheckpointState {
        model_checkpoint_path: names.last().cloned().unwrap_or_default(),
        all_model_checkpoint_paths: names,
        ..CheckpointState::default()
    };
    checkpoint::write_state(folder, &state)?;
    for name in evicted {
        for file in files(&folder.join(name)) {
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

impl Drop for Saver {
    fn drop(&mut self) {
        // An error was told to whoever called `wait`; what is dropped in a panic has nobody to tell.
        let _ = self.wait();
    }
}
