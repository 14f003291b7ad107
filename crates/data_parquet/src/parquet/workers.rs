//! Decodes row groups on several threads, and yields them in order.
//!
//! A thread takes the next row group under a lock, and puts the group's receiver into the queue
//! under the same lock. The reader empties one receiver after another. Both kinds of queues are
//! short, so the memory for decoded rows is bounded for files of any size.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use estimand_tensor::{Batch, Error, Limits, Result};

use super::file::ParquetFile;
use crate::columns::Columns;
use crate::guard::caught;

/// The number of decoded pieces of one row group that may wait.
const PIECES_AHEAD: usize = 128;

/// The place where reading begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) file: usize,
    pub(super) group: usize,
    pub(super) row: u64,
}

/// The pieces of a row group, received as they are decoded.
pub(super) struct Group {
    pub(super) start: Start,
    /// The number of rows in the whole row group.
    pub(super) n_rows: u64,
    pub(super) pieces: Receiver<Result<Batch>>,
}

pub(super) struct Workers {
    groups: Option<Receiver<Result<Group>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads. `first` is the open file that `start` refers to.
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

    /// Stops: no more row groups are taken.
    pub(super) fn stop(&mut self) {
        self.groups = None;
    }

    /// The next row group; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Group>> {
        let next = self.groups.as_ref().and_then(|groups| groups.recv().ok());
        next.transpose()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Threads end when nobody receives their pieces.
        self.stop();
        for thread in self.threads.drain(..) {
            // The reader saw a panic as a row group that ended too early, or no longer needs it.
            let _ = thread.join();
        }
    }
}

/// Selects the next row group.
struct Schedule {
    paths: Arc<[PathBuf]>,
    columns: Arc<Columns>,
    /// The file of the next row group, once it is open.
    file: Option<Arc<ParquetFile>>,
    next: Start,
    /// `None` when no more row groups are needed.
    queue: Option<SyncSender<Result<Group>>>,
    /// The approximate number of bytes in a piece.
    piece_size: usize,
    limits: Limits,
}

/// A row group to decode.
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
                // The next row group reports its own error, or nobody asks for it.
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

    /// Finds the next row group, and opens the next file if necessary.
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
