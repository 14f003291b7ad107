//! What the evaluations of a folder have found, read back from its event files.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use indexmap::IndexMap;
use tracing::warn;

use super::{EventReader, SummaryValue, What};

/// What the names of event files begin with.
const FILES: &str = "events.out.tfevents.";

/// The metrics of every evaluated step, from all event files of a folder, in the order of steps.
///
/// Numbers are as they were stored: `f32`. If a step was evaluated twice, the later file wins. Behind a damaged record the rest of a
/// file is left out, with a warning; a folder that is not there has no evaluations yet.
///
/// ```
/// use estimand::events::{EventWriter, read_eval_metrics};
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-eval-metrics-{}", std::process::id()));
/// EventWriter::create(&folder)?.scalar(100, "loss", 0.9)?;
/// assert_eq!(read_eval_metrics(&folder)?[&100]["loss"], 0.9_f32);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), estimand::prelude::Error>(())
/// ```
pub fn read_eval_metrics(folder: impl AsRef<Path>) -> Result<BTreeMap<u64, IndexMap<String, f32>>> {
    let mut all = BTreeMap::<u64, IndexMap<String, f32>>::new();
    for path in event_files(folder.as_ref())? {
        for event in EventReader::open(&path)? {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    warn!("The rest of {} is left out: {}", path.display(), error.message());
                    break;
                }
            };
            let Some(What::Summary(summary)) = event.what else { continue };
            for value in summary.value {
                if let Some(SummaryValue::SimpleValue(number)) = value.value {
                    all.entry(u64::try_from(event.step).unwrap_or(0)).or_default().insert(value.tag, number);
                }
            }
        }
    }
    Ok(all)
}

/// The event files of a folder, sorted by name, which begins with the time.
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
