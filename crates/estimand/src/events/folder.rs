//! Reads all event files of a folder in order.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result, warn};

use super::{Event, EventReader};

/// The prefix of the names of event files.
const FILES: &str = "events.out.tfevents.";

/// Calls a function with every event of a folder and the number of its file. Files are read in the
/// order of their names, which begin with the time.
///
/// After a damaged record the rest of a file is skipped, with a warning, which is also returned. A
/// folder that does not exist has no events yet.
pub(crate) fn each_event(folder: &Path, mut each: impl FnMut(usize, Event)) -> Result<Vec<String>> {
    let mut damaged = Vec::new();
    for (i, path) in event_files(folder)?.iter().enumerate() {
        for event in EventReader::open(path)? {
            match event {
                Ok(event) => each(i, event),
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    warn!("The rest of {} is left out: {}", path.display(), error.message());
                    damaged.push(format!("the rest of {name} is left out: {}", error.message()));
                }
            }
        }
    }
    Ok(damaged)
}

/// The event files of a folder, sorted by name.
fn event_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: &std::io::Error| Error::io(folder, "list", e);
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| failed(&e))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| failed(&e))?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(FILES)) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
