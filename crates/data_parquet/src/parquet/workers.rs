//! Row groups on several threads, handed on in their order.
//!
//! A thread takes the next row group under a lock that also puts its receiver into the queue; the
//! reader empties one receiver after another. Both kinds of queues are short, so that what lies
//! ready is bounded however large the files are.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use estimand_tensor::{Batch, Error, Limits, Result};

use super::file::ParquetFile;
use crate::columns::Columns;
use crate::guard::caught;

/// Pieces of one row group that may lie ready.
const PIECES_AHEAD: usize = 128;

/// Where to begin.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) file: usize,
    pub(super) group: usize,
    pub(super) row: u64,
}

/// The pieces of a row group, as they come.
pub(super) struct Group {
    pub(super) start: Start,
    /// The rows of the whole row group.
    pub(super) n_rows: u64,
    pub(super) pieces: Receiver<Result<Batch>>,
}

pub(super) struct Workers {
    groups: Option<Receiver<Result<Group>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// `first` is the open file that `start` lies in.
    pub(super) fn begin(
        paths: Arc<[PathBuf]>,
        columns: Arc<Columns>,
        first: Arc<ParquetFile>,
        start: Start,
        n_threads: usize,
        piece_size: usize,
    ) -> Result<Workers> {
        let (queue, groups) = sync_channel(n_threads);
        let limits = first.limits;
        let schedule =
            Schedule { paths, limits, columns, file: Some(first), next: start, queue: Some(queue), piece_size };
        let schedule = Arc::new(Mutex::new(schedule));
        let mut workers = Workers { groups: Some(groups), threads: Vec::new() };
        for _ in 0..n_threads {
            let schedule = schedule.clone();
            let thread = thread::Builder::new().name("parquet".to_string()).spawn(move || work(&schedule));
            let thread = thread.map_err(|e| Error::config(format!("cannot start a thread to read Parquet: {e}")))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Nothing comes any more.
    pub(super) fn stop(&mut self) {
        self.groups = None;
    }

    /// The next row group; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Group>> {
        let next = self.groups.as_ref().and_then(|groups| groups.recv().ok());
        next.transpose()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Threads end when nobody takes what they make.
        self.stop();
        for thread in self.threads.drain(..) {
            // The reader has seen that a row group ended too early, or did not care.
            let _ = thread.join();
        }
    }
}

/// Which row group comes next.
struct Schedule {
    paths: Arc<[PathBuf]>,
    columns: Arc<Columns>,
    /// The file that `next` lies in, once it is open.
    file: Option<Arc<ParquetFile>>,
    next: Start,
    /// Gone when nothing comes any more.
    queue: Option<SyncSender<Result<Group>>>,
    /// About the bytes of a piece.
    piece_size: usize,
    limits: Limits,
}

/// A row group to be decoded.
struct Task {
    file: Arc<ParquetFile>,
    columns: Arc<Columns>,
    start: Start,
    pieces: SyncSender<Result<Batch>>,
    piece_size: usize,
}

fn work(schedule: &Mutex<Schedule>) {
    loop {
        let task = schedule.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Task { file, columns, start, pieces, piece_size }) = task else { return };
        let mut rows = match caught(&file.origin, || file.read(&columns, start.group, start.row, piece_size)) {
            Ok(rows) => rows,
            Err(error) => {
                // The next row group fails by itself, or nobody asks for it.
                let _ = pieces.send(Err(error));
                continue;
            }
        };
        while let Some(piece) = caught(&file.origin, || rows.next().transpose()).transpose() {
            let is_last = piece.is_err();
            if pieces.send(piece).is_err() {
                return;
            }
            if is_last {
                break;
            }
        }
    }
}

impl Schedule {
    fn take(&mut self) -> Option<Task> {
        let task = self.find();
        match task {
            Ok(Some(task)) => Some(task),
            Ok(None) => {
                self.queue = None;
                None
            }
            Err(error) => {
                if let Some(queue) = self.queue.take() {
                    let _ = queue.send(Err(error));
                }
                None
            }
        }
    }

    /// The next row group, which may lie in a file that is still to be opened.
    fn find(&mut self) -> Result<Option<Task>> {
        while self.queue.is_some() && self.next.file < self.paths.len() {
            let file = match &self.file {
                Some(file) => file.clone(),
                None => {
                    let file = Arc::new(ParquetFile::open(&self.paths[self.next.file], &self.limits)?);
                    self.columns.check(file.schema(), &file.origin)?;
                    self.file = Some(file.clone());
                    file
                }
            };
            if self.next.group >= file.n_groups() {
                self.file = None;
                self.next = Start { file: self.next.file + 1, group: 0, row: 0 };
                continue;
            }
            let start = self.next;
            let n_rows = file.n_rows(start.group)?;
            self.next = Start { group: start.group + 1, row: 0, ..start };
            let (sender, pieces) = sync_channel(PIECES_AHEAD);
            let sent = self.queue.as_ref().is_some_and(|queue| queue.send(Ok(Group { start, n_rows, pieces })).is_ok());
            if sent {
                let columns = self.columns.clone();
                return Ok(Some(Task { file, columns, start, pieces: sender, piece_size: self.piece_size }));
            }
            self.queue = None;
        }
        Ok(None)
    }
}
