//! The outcome of a run, compared with that of an undisturbed run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use estimand::graph::checkpoint::{self, BundleReader};

use crate::victim::{End, Ran};

/// The files of a folder by name, and the program's output.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub said: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Outcome {
    /// Reads the files of a folder.
    pub fn read(work: &Path, said: &str) -> Result<Outcome, String> {
        let mut files = BTreeMap::new();
        read_folder(work, "", &mut files).map_err(|e| format!("{} cannot be read: {e}", work.display()))?;
        Ok(Outcome { said: said.to_string(), files })
    }

    /// Returns the outcome of a run that must have ended well.
    pub fn of(ran: &Ran, work: &Path) -> Result<Outcome, String> {
        match ran.end {
            End::Code(0) => Outcome::read(work, &ran.stdout),
            _ => Err(format!("the run ended with {:?}: {}", ran.end, brief(&ran.stderr))),
        }
    }

    /// Returns an error with the differences from an undisturbed outcome, if there are any.
    pub fn check_same(&self, undisturbed: &Outcome) -> Result<(), String> {
        let mut differences = Vec::new();
        let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
        let (mine, other) = (lines(&self.said), lines(&undisturbed.said));
        if mine.len() != other.len() {
            differences.push(format!("it said {} lines instead of {}", mine.len(), other.len()));
        }
        for (mine, other) in mine.iter().zip(&other).filter(|(mine, other)| mine != other) {
            differences.push(format!("it said `{}` instead of `{}`", brief(mine), brief(other)));
        }
        for name in self.files.keys().filter(|name| name.contains(".tmp")) {
            differences.push(format!("{name} is left over"));
        }
        let all = self.files.keys().chain(undisturbed.files.keys().filter(|name| !self.files.contains_key(*name)));
        for name in all.filter(|name| !name.contains(".tmp")) {
            match (self.files.get(name), undisturbed.files.get(name)) {
                (Some(mine), Some(other)) if is_compared(name) && mine != other => {
                    differences.push(format!("{name} has other bytes ({} instead of {})", mine.len(), other.len()));
                }
                (Some(_), Some(_)) => {}
                (None, _) => differences.push(format!("{name} is missing")),
                (_, None) => differences.push(format!("{name} is there, which an undisturbed run does not leave")),
            }
        }
        match differences.is_empty() {
            true => Ok(()),
            false => Err(differences.join("; ")),
        }
    }

    /// Checks that others can read a folder at this moment: the listed checkpoints are complete,
    /// and so is every file that other processes read.
    pub fn check_whole(work: &Path, undisturbed: &Outcome) -> Result<(), String> {
        check_checkpoints(&work.join("model"))?;
        let now = Outcome::read(work, "")?;
        for (name, bytes) in now.files.iter().filter(|(name, _)| !name.contains(".tmp")) {
            let is_data = name.starts_with("data/") || name.starts_with("cache/");
            if is_data && undisturbed.files.get(name).is_none_or(|whole| whole != bytes) {
                return Err(format!("{name} is not whole ({} bytes)", bytes.len()));
            }
            let ending: &[u8] = match name {
                name if name.starts_with("model/export/") => b"end\n",
                name if name.ends_with(".html") => b"</html>\n",
                name if name.ends_with("graph.pbtxt") || name.ends_with("estimator.json") => b"}\n",
                _ => b"",
            };
            if !bytes.ends_with(ending) {
                return Err(format!("{name} is not whole: it does not end with {}", ending.escape_ascii()));
            }
        }
        Ok(())
    }

    /// Checks that the files that a successful run guarantees exist: checkpoints, their list,
    /// written data.
    pub fn check_kept(&self, undisturbed: &Outcome) -> Result<(), String> {
        let is_promised = |name: &str| {
            name.starts_with("data/") || name.starts_with("model/model.ckpt-") || name == "model/checkpoint"
        };
        for (name, bytes) in undisturbed.files.iter().filter(|(name, _)| is_promised(name)) {
            match self.files.get(name) {
                None => return Err(format!("{name} is lost")),
                Some(mine) if mine != bytes => return Err(format!("{name} has other bytes")),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Checks that every listed checkpoint can be read to its last byte.
pub fn check_checkpoints(model: &Path) -> Result<(), String> {
    let state = checkpoint::read_state(model).map_err(|e| format!("the list of checkpoints: {e}"))?;
    let Some(state) = state else { return Ok(()) };
    let newest = Some(&state.model_checkpoint_path).filter(|name| !name.is_empty());
    for name in state.all_model_checkpoint_paths.iter().chain(newest) {
        let read = || -> estimand::tensor::Result<()> {
            let reader = BundleReader::open(model.join(name))?;
            let names: Vec<String> = reader.names().map(ToString::to_string).collect();
            names.iter().try_for_each(|name| reader.read(name).map(drop))
        };
        read().map_err(|e| format!("the list names {name}, which is not whole: {}", brief(&e.to_string())))?;
    }
    Ok(())
}

/// Returns whether the bytes of a file must be the same in every run. Files that contain times,
/// hosts or processes are excluded.
fn is_compared(name: &str) -> bool {
    !(name.ends_with("/events") || name.ends_with("report.html") || name.contains("lock"))
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            read_folder(&entry.path(), &format!("{prefix}{name}/"), files)?;
            continue;
        }
        // A disturbed run has one more event file for each start.
        let name = if name.contains("tfevents") { "events".to_string() } else { name };
        files.insert(format!("{prefix}{name}"), fs::read(entry.path())?);
    }
    Ok(())
}

/// Shortens a text to one line for a report.
pub fn brief(text: &str) -> String {
    let line = text.trim().replace('\n', " | ");
    match line.char_indices().nth(400) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}
