//! Appends events to a new file.
//!
//! An event is one `write`, without a buffer. TensorBoard sees it at once, and a process that dies
//! loses none. At one event per hundred steps, the call costs less than a hundredth of a
//! microsecond per step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use estimand_tensor::cpu::text::fingerprint64;
use estimand_tensor::{Array, Error, Result, warn};
use estimand_wire::event::{Event, FILE_VERSION, SessionLog, SessionStatus, SourceMetadata, Summary, Value, What};
use estimand_wire::plugin::RunStatus;
use estimand_wire::record::RecordWriter;
use estimand_wire::temporary::{folder_of, make_folders, sync_folder};
use estimand_wire::{GraphDef, Message, MetaGraphDef, TensorProto};

use super::host::host_name;
use crate::HParams;
use crate::summary::{self, Converted, SummaryKind};

/// The maximum number of files that are tried for one second and host.
const MOST_FILES: usize = 1000;

/// Writes one event file.
///
/// If a write fails, for example because the disk is full, the incomplete event is removed from the
/// file, and the next write may succeed.
#[derive(Debug)]
pub struct EventWriter {
    file: File,
    path: PathBuf,
    /// The size in bytes of the complete events.
    n_bytes: u64,
    payload: Vec<u8>,
    record: Vec<u8>,
    /// Whether the start of training was written.
    started: bool,
    /// A fingerprint of the last written graph.
    graph: Option<u64>,
    /// Whether the file's name would survive a power failure.
    is_name_synced: bool,
}

impl EventWriter {
    /// Starts a new file in a folder, which is created if needed.
    pub fn create(folder: impl AsRef<Path>) -> Result<EventWriter> {
        let folder = folder.as_ref();
        make_folders(folder).map_err(|e| Error::io(folder, "make the folder", &e))?;
        let (file, path) = new_file(folder, now() as u64)?;
        let (payload, record) = (Vec::new(), Vec::new());
        let (started, graph, is_name_synced) = (false, None, false);
        let mut writer = EventWriter { file, path, n_bytes: 0, payload, record, started, graph, is_name_synced };
        let source = SourceMetadata { writer: "estimand".to_string() };
        let version = What::FileVersion(FILE_VERSION.to_string());
        writer.write(&Event { wall_time: now(), step: 0, what: Some(version), source_metadata: Some(source) })?;
        Ok(writer)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a scalar, such as the loss, at a global step.
    pub fn scalar(&mut self, step: u64, tag: &str, value: f32) -> Result<()> {
        self.summary(step, vec![Value::scalar(tag, value)])
    }

    /// Writes a histogram of an array, with TensorFlow's buckets. Numbers that are not finite are
    /// left out, with a warning.
    pub fn histogram(&mut self, step: u64, tag: &str, array: &Array) -> Result<()> {
        self.show(step, tag, SummaryKind::Histogram, array)
    }

    /// Writes the first `max_outputs` images of `[n, height, width, channels]`, u8 or f32, scaled
    /// as in [`Summaries::image`](crate::Summaries::image).
    pub fn image(&mut self, step: u64, tag: &str, array: &Array, max_outputs: usize) -> Result<()> {
        self.show(step, tag, SummaryKind::Image { max_outputs }, array)
    }

    /// Writes a text in Markdown.
    pub fn text(&mut self, step: u64, tag: &str, text: &str) -> Result<()> {
        self.show(step, tag, SummaryKind::Text, &Array::from_strings([0_usize; 0], [text])?)
    }

    /// Writes a precision-recall curve at `num_thresholds` thresholds from 0 to 1. Labels are true
    /// unless they are 0.
    pub fn pr_curve(
        &mut self,
        step: u64,
        tag: &str,
        labels: &Array,
        predictions: &Array,
        num_thresholds: usize,
        weights: Option<&Array>,
    ) -> Result<()> {
        let curve = summary::pr_curve(tag, labels, predictions, num_thresholds, weights)
            .map_err(|e| e.context(format!("in summary `{tag}`")))?;
        self.summary(step, vec![curve])
    }

    /// Writes an array that TensorBoard does not show; programs can read it.
    pub fn tensor(&mut self, step: u64, tag: &str, array: &Array) -> Result<()> {
        self.summary(step, vec![Value::tensor(tag, TensorProto::from_array(array))])
    }

    /// Writes the parameters of the run in this folder: a row of TensorBoard's HParams page. Its
    /// metrics are the last scalars of this folder and of those below it.
    pub fn hparams(&mut self, params: &HParams) -> Result<()> {
        self.summary(0, vec![summary::session_start(params, now())])
    }

    /// Writes how the run with these parameters ended.
    pub fn hparams_end(&mut self, status: RunStatus) -> Result<()> {
        self.summary(0, vec![summary::session_end(status, now())])
    }

    /// Writes which parameters and metrics the HParams page shows for all runs below a folder; use
    /// it for a file in that folder. Without it, which is the usual case, the page shows everything
    /// that the runs have. A metric is a pair of a folder below that of a run and a tag:
    /// `("eval", "accuracy")`.
    pub fn experiment(&mut self, params: &HParams, metrics: &[(&str, &str)]) -> Result<()> {
        self.summary(0, vec![summary::experiment(params, metrics, now())])
    }

    fn show(&mut self, step: u64, tag: &str, kind: SummaryKind, array: &Array) -> Result<()> {
        let Converted { values, n_odd } =
            kind.convert(tag, array).map_err(|e| e.context(format!("in summary `{tag}`")))?;
        if n_odd > 0 {
            warn!("{n_odd} numbers of summary `{tag}` at step {step} are not finite, and left out");
        }
        if values.is_empty() { Ok(()) } else { self.summary(step, values) }
    }

    /// Writes several values of one global step as one event.
    pub fn summary(&mut self, step: u64, values: Vec<Value>) -> Result<()> {
        self.event(step, What::Summary(Summary { value: values }))
    }

    /// Begins another run of the same estimator in the same file.
    pub(crate) fn begin_run(&mut self) {
        self.started = false;
    }

    /// Returns whether the file still exists at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        crate::model_folder::is_in_place(&self.file, &self.path)
    }

    /// Starts a new file if this one was deleted. Returns whether it was.
    pub(crate) fn keep(&mut self) -> Result<bool> {
        let is_gone = !self.is_in_place();
        if is_gone {
            *self = EventWriter::create(folder_of(&self.path))?;
        }
        Ok(is_gone)
    }

    /// Writes the graph of the model. A graph that is already in the file is not written again:
    /// TensorBoard shows one per file.
    pub fn graph(&mut self, graph: &GraphDef) -> Result<()> {
        let bytes = graph.encode_to_vec();
        let fingerprint = fingerprint64(&bytes);
        if self.graph != Some(fingerprint) {
            self.event(0, What::GraphDef(bytes))?;
            self.graph = Some(fingerprint);
        }
        Ok(())
    }

    /// Writes the graph of the model with its metadata.
    pub fn meta_graph(&mut self, graph: &MetaGraphDef) -> Result<()> {
        self.event(0, What::MetaGraphDef(graph.encode_to_vec()))
    }

    /// Writes that training started or stopped, or saved a checkpoint to a path.
    ///
    /// At a start TensorBoard discards the events of an earlier run for this and later steps,
    /// because those steps are repeated.
    pub fn session_log(&mut self, step: u64, status: SessionStatus, checkpoint_path: &str) -> Result<()> {
        let checkpoint_path = checkpoint_path.to_string();
        self.event(step, What::SessionLog(SessionLog { status: status.into(), checkpoint_path, msg: String::new() }))
    }

    /// Writes that training starts with this step; only the first call writes it.
    pub(crate) fn start(&mut self, step: u64) -> Result<()> {
        if !std::mem::replace(&mut self.started, true) {
            self.session_log(step, SessionStatus::Start, "")?;
        }
        Ok(())
    }

    /// Writes that training stopped, and why.
    pub(crate) fn stop(&mut self, step: u64, reason: &str) -> Result<()> {
        let (status, msg) = (SessionStatus::Stop.into(), reason.to_string());
        self.event(step, What::SessionLog(SessionLog { status, checkpoint_path: String::new(), msg }))
    }

    /// Waits until all events are on disk, not only in the operating system's cache.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.path, "sync", &e))?;
        if !std::mem::replace(&mut self.is_name_synced, true) {
            sync_folder(&self.path)?;
        }
        Ok(())
    }

    /// Returns the file, for a caller that syncs it to disk.
    pub(crate) fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| Error::io(&self.path, "open", &e))
    }

    fn event(&mut self, step: u64, what: What) -> Result<()> {
        // A step beyond the range of the format cannot come from a real training.
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.write(&Event { wall_time: now(), step, what: Some(what), source_metadata: None })
    }

    /// Appends any event.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        self.append(event).map_err(|e| Error::io(&self.path, "write to", &e))
    }

    fn append(&mut self, event: &Event) -> io::Result<()> {
        self.payload.clear();
        event.encode(&mut self.payload).map_err(io::Error::other)?;
        self.record.clear();
        RecordWriter::new(&mut self.record).write(&self.payload)?;
        if let Err(error) = self.file.write_all(&self.record) {
            self.take_back();
            return Err(error);
        }
        self.n_bytes += self.record.len() as u64;
        Ok(())
    }

    /// Cuts off an incomplete record, which would make everything after it unreadable.
    fn take_back(&mut self) {
        // If this fails too, the error of the write reports the cause.
        let _ = self.file.set_len(self.n_bytes);
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Creates a file that no other process writes. TensorBoard reads the files of a folder in the
/// order of their names, so the file of a second writer in the same second sorts after the first.
fn new_file(folder: &Path, secs: u64) -> Result<(File, PathBuf)> {
    let name = format!("events.out.tfevents.{secs:010}.{}", host_name());
    for n in 0..MOST_FILES {
        let path = folder.join(if n == 0 { name.clone() } else { format!("{name}.{n:03}") });
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(&path, "create", &e)),
        }
    }
    Err(Error::config(format!("{} already has {MOST_FILES} event files of the same second", folder.display()))
        .help("write to one file, not to a new one for each event"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::events::EventReader;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-events-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn read(path: &Path) -> Vec<Event> {
        EventReader::open(path).unwrap().collect::<Result<_>>().unwrap()
    }

    #[test]
    fn events_are_in_the_file_as_soon_as_they_are_written() {
        let folder = folder("order");
        let mut writer = EventWriter::create(&folder).unwrap();
        let started = now();
        writer.graph(&GraphDef::default()).unwrap();
        writer.session_log(0, SessionStatus::Checkpoint, "m/model.ckpt").unwrap();
        writer.session_log(1, SessionStatus::Start, "").unwrap();
        writer.summary(100, vec![Value::scalar("loss", 0.5), Value::scalar("accuracy", 1.0)]).unwrap();
        writer.text(100, "checkpoint_path", "m/model.ckpt-100").unwrap();

        // The writer is still open: it buffers nothing.
        let events = read(writer.path());
        assert_eq!(events.iter().map(|event| event.step).collect::<Vec<_>>(), [0, 0, 0, 1, 100, 100]);
        assert_eq!(events[0].what, Some(What::FileVersion("brain.Event:2".to_string())));
        let Some(What::Summary(summary)) = &events[4].what else { panic!("{:?}", events[4]) };
        assert_eq!(summary.value, [Value::scalar("loss", 0.5), Value::scalar("accuracy", 1.0)]);
        assert!(events.iter().all(|event| (event.wall_time - started).abs() < 60.0));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_say_when_and_where_and_never_meet() {
        let folder = folder("names");
        fs::create_dir_all(&folder).unwrap();
        let names: Vec<_> = (0..12)
            .map(|_| new_file(&folder, 1_700_000_000).unwrap().1.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names[0], format!("events.out.tfevents.1700000000.{}", host_name()));
        assert_eq!(names[11], format!("{}.011", names[0]));
        assert!(names.is_sorted(), "TensorBoard reads them in the order they were made: {names:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_failed_is_taken_back() {
        let folder = folder("failed");
        let mut writer = EventWriter::create(&folder).unwrap();
        writer.scalar(1, "loss", 1.0).unwrap();
        // An incomplete record, as on a full disk.
        writer.file.write_all(b"half").unwrap();
        writer.take_back();
        writer.scalar(2, "loss", 1.0).unwrap();
        // And a file that refuses writes.
        let refusing = File::open(writer.path()).unwrap();
        let good = std::mem::replace(&mut writer.file, refusing);
        let error = writer.scalar(9, "loss", 1.0).unwrap_err().to_string();
        assert!(error.starts_with("cannot write to") && error.contains("events.out.tfevents."), "{error}");
        writer.file = good;
        writer.scalar(3, "loss", 1.0).unwrap();
        assert_eq!(read(writer.path()).iter().map(|event| event.step).collect::<Vec<_>>(), [0, 1, 2, 3]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = folder("file");
        fs::write(&folder, b"").unwrap();
        let error = EventWriter::create(folder.join("eval")).unwrap_err().to_string();
        assert!(error.contains("cannot make the folder") && error.contains("eval"), "{error}");
        fs::remove_file(folder).unwrap();
    }
}
