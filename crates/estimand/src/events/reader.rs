//! Reads event files, including those of TensorFlow.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use estimand_wire::record::{RecordError, RecordReader};
use estimand_wire::{Event, Message};

/// An iterator over the events of a file. It ends after the first error, because the start of the
/// record after a damaged one is unknown.
///
/// A file that is being written may end in an incomplete record, which is such an error too.
#[derive(Debug)]
pub struct EventReader {
    records: Option<RecordReader<BufReader<File>>>,
    path: PathBuf,
}

impl EventReader {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<EventReader> {
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(|e| Error::io(&path, "open", &e))?;
        Ok(EventReader { records: Some(RecordReader::new(BufReader::new(file))), path })
    }
}

impl Iterator for EventReader {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        let records = self.records.as_mut()?;
        let offset = records.offset();
        let event = match records.read() {
            Ok(None) => return None,
            Ok(Some(payload)) => Event::decode(payload).map_err(|e| {
                Error::data(format!("the record at byte {offset} is not an event: {e}")).in_file(&self.path)
            }),
            Err(RecordError::Io(e)) => Err(Error::io(&self.path, "read", &e)),
            Err(e) => Err(Error::data(e.to_string()).in_file(&self.path)),
        };
        if event.is_err() {
            self.records = None;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn fixture() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/wire_events.tfevents")
    }

    #[test]
    fn a_file_of_tensorflow() {
        // The steps chosen by oracles/gen/events.py.
        let steps: Vec<_> = EventReader::open(fixture()).unwrap().map(|event| event.unwrap().step).collect();
        assert_eq!(steps, [0, 0, 0, 0, 1, 1 << 40, 3, 4]);
    }

    #[test]
    fn a_damaged_end_comes_after_what_is_whole() {
        let bytes = fs::read(fixture()).unwrap();
        let path = std::env::temp_dir().join(format!("estimand-events-damaged-{}", std::process::id()));
        for length in [bytes.len() - 1, bytes.len() - 20] {
            fs::write(&path, &bytes[..length]).unwrap();
            let events: Vec<_> = EventReader::open(&path).unwrap().collect();
            assert_eq!(events.len(), 8);
            assert!(events[..7].iter().all(Result::is_ok));
            let error = events[7].as_ref().unwrap_err().to_string();
            assert!(error.contains("the file ends after") && error.contains("estimand-events-damaged"), "{error}");
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_is_not_there() {
        let error = EventReader::open("no/such/file").unwrap_err().to_string();
        assert!(error.starts_with("cannot open no/such/file"), "{error}");
    }
}
