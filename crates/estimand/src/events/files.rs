//! Keeps one event file for each folder that an estimator writes events to, over any number of
//! calls.
//!
//! TensorFlow also keeps one writer per folder. A file is lent to one run at a time; a concurrent
//! second run gets its own file.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use estimand_tensor::Result;

use super::EventWriter;

/// The event files that are not in use, by folder.
type Idle = Mutex<BTreeMap<PathBuf, EventWriter>>;

/// The event files of an estimator.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFiles(Arc<Idle>);

impl EventFiles {
    /// Returns the file of a folder if it is free and still exists; otherwise a new one.
    pub(crate) fn open(&self, folder: &Path) -> Result<LentEvents> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(folder);
        let writer = match idle.filter(EventWriter::is_in_place) {
            Some(writer) => writer,
            None => EventWriter::create(folder)?,
        };
        Ok(LentEvents { writer: Some(writer), folder: folder.to_path_buf(), idle: self.0.clone() })
    }
}

/// An event file in use. It is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct LentEvents {
    /// Always `Some` until the drop.
    writer: Option<EventWriter>,
    folder: PathBuf,
    idle: Arc<Idle>,
}

impl Deref for LentEvents {
    type Target = EventWriter;

    fn deref(&self) -> &EventWriter {
        self.writer.as_ref().expect("only drop takes it")
    }
}

impl DerefMut for LentEvents {
    fn deref_mut(&mut self) -> &mut EventWriter {
        self.writer.as_mut().expect("only drop takes it")
    }
}

impl Drop for LentEvents {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.insert(std::mem::take(&mut self.folder), writer);
        }
    }
}
