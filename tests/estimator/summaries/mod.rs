//! Summaries: the values written for tensors, the steps at which they are written, and that they do
//! not change training.

mod evaluation;
mod hparams;
mod oracle;
mod running;
mod training;

use std::path::Path;

use estimand::events::{Event, EventReader, Value, What};

/// The events of a folder's only file, or of its files in order.
fn events(folder: &Path) -> Vec<Event> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().contains("tfevents"));
    files.sort();
    files.iter().flat_map(|path| EventReader::open(path).unwrap().map(Result::unwrap)).collect()
}

/// The values of a folder's summaries, with their steps.
fn values(folder: &Path) -> Vec<(i64, Value)> {
    let summary = |event: Event| match event.what {
        Some(What::Summary(summary)) => summary.value.into_iter().map(|value| (event.step, value)).collect(),
        _ => Vec::new(),
    };
    events(folder).into_iter().flat_map(summary).collect()
}
