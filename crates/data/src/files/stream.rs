//! The stream of the rows of files. Threads parse chunks, and the stream yields their rows in
//! order, with the position after every row.

use std::path::PathBuf;
use std::sync::Arc;

use estimand_tensor::{Error, ErrorKind, Result};

use super::chunk::{Bad, Broken, Chunk, Chunks, Damage, Format, NextChunk, Parsed, Reason};
use super::quarantine::{OnError, Quarantined};
use super::{Files, quarantine};
use crate::Position;
use crate::ordered::Ordered;
use crate::rows::slice;
use crate::stage::{InputContext, Stream, StreamItem};

/// The number of chunks that may wait per thread.
const AHEAD_A_THREAD: usize = 2;

/// The rows of files. The position holds four numbers: the file, the offset of the next record in
/// it, the number of records before it in that file, and the number of bad records so far in all
/// files.
pub(crate) struct FileStream<F: Format> {
    files: Files,
    paths: Arc<[PathBuf]>,
    format: Arc<F>,
    chunks: Ordered<NextChunk, Result<(Chunk, Parsed), Broken>>,
    current: Option<Current>,
    file: usize,
    offset: u64,
    /// Records read from the file so far, including bad ones.
    n_records: u64,
    n_bad: u64,
    on_bad: OnBad,
    ended: bool,
}

/// The handling of bad records by a stream.
enum OnBad {
    Fail,
    /// The number of records that this stream left out, and the first of them.
    Skip {
        n: u64,
        first: Option<Error>,
    },
    Quarantine(Quarantined),
}

struct Current {
    chunk: Chunk,
    parsed: Parsed,
    /// Good records already yielded.
    n_given: usize,
}

impl<F: Format> FileStream<F> {
    pub(crate) fn open(files: &Files, format: Arc<F>, cx: &InputContext, from: &Position) -> Result<FileStream<F>> {
        let ([file, offset, n_records, n_bad], []) = from.parts()?;
        let paths = files.order(cx)?;
        let file = usize::try_from(file).ok().filter(|&file| file <= paths.len()).ok_or_else(|| {
            Error::config(format!("the position is in file number {file}, but there are {} files", paths.len()))
                .help("resume with the files that the position was taken from")
        })?;
        let on_bad = match files.policy() {
            OnError::Fail => OnBad::Fail,
            OnError::Skip => OnBad::Skip { n: 0, first: None },
            OnError::Quarantine { file, budget } => OnBad::Quarantine(Quarantined::open(file, *budget, cx, n_bad)?),
        };
        let mut chunks = Chunks::new(files.clone(), paths.clone(), format.clone(), file, offset)?;
        let parser = format.clone();
        let n_threads = cx.threads();
        let chunks = Ordered::new(
            n_threads,
            AHEAD_A_THREAD * n_threads,
            move || chunks.next(),
            move |chunk: NextChunk| {
                let chunk = chunk?;
                let parsed = parser.parse(&chunk);
                Ok((chunk, parsed))
            },
        );
        let files = files.clone();
        Ok(FileStream {
            files,
            paths,
            format,
            chunks,
            current: None,
            file,
            offset,
            n_records,
            n_bad,
            on_bad,
            ended: false,
        })
    }

    /// Makes the next chunk the current one; `false` after the last.
    fn advance(&mut self) -> Result<bool> {
        self.current = None;
        match self.chunks.take()? {
            None => Ok(false),
            Some(Ok((chunk, mut parsed))) => {
                self.enter(chunk.file, chunk.offset);
                if let Some(error) = parsed.fatal.take() {
                    return Err(error.context(format!("in {}", chunk.path.display())));
                }
                self.current = Some(Current { chunk, parsed, n_given: 0 });
                Ok(true)
            }
            Some(Err(Broken { file, offset, reason })) => {
                self.enter(file, offset);
                Err(match reason {
                    Reason::Unreadable(error) => error,
                    Reason::Damage(Damage { message, help }) => {
                        let error = self.error(message, None, offset);
                        match help {
                            Some(help) => error.help(help),
                            None => error,
                        }
                    }
                })
            }
        }
    }

    fn enter(&mut self, file: usize, offset: u64) {
        if file != self.file {
            (self.file, self.n_records) = (file, 0);
        }
        self.offset = offset;
    }

    /// Handles a bad record: puts it into the quarantine, or ends the reading.
    fn set_aside(&mut self, chunk: &Chunk, bad: Bad) -> Result<()> {
        let offset = chunk.offset + bad.start as u64;
        let Bad { column, message, help, start, end, .. } = bad;
        let row = self.n_records.saturating_add(1);
        match &mut self.on_bad {
            OnBad::Fail => {
                let error = self.error(message, column, offset);
                return Err(match help {
                    Some(help) => error.help(help),
                    None => error,
                });
            }
            OnBad::Skip { n, first } => {
                *n += 1;
                if first.is_none() {
                    let error = self.error(message, column, offset);
                    if let OnBad::Skip { first, .. } = &mut self.on_bad {
                        *first = Some(error);
                    }
                }
            }
            OnBad::Quarantine(quarantine) => {
                let text = chunk.bytes.get(start..end).unwrap_or_default();
                let record =
                    quarantine::Record { path: &chunk.path, row, column: column.as_deref(), message: &message, text };
                quarantine.add(&record).map_err(|e| match e.kind() {
                    ErrorKind::Data { .. } => e.context(self.format_place(row, offset)),
                    _ => e,
                })?;
            }
        }
        (self.n_records, self.n_bad) = (row, self.n_bad.saturating_add(1));
        self.offset = chunk.offset + end as u64;
        Ok(())
    }

    /// Warns of the records that were left out, once for a source.
    fn tell(&mut self) {
        if let OnBad::Skip { n, first: Some(first) } = &self.on_bad
            && self.files.told.is_first()
        {
            let (n, what) = (*n, if *n == 1 { "row was" } else { "rows were" });
            estimand_tensor::warn!("{n} bad {what} left out of {}; the first: {first}", self.files);
        }
        self.on_bad = match std::mem::replace(&mut self.on_bad, OnBad::Fail) {
            OnBad::Skip { .. } => OnBad::Skip { n: 0, first: None },
            other => other,
        };
    }

    fn error(&self, message: String, column: Option<String>, offset: u64) -> Error {
        let row = self.n_records.saturating_add(1);
        let path = self.paths.get(self.file).cloned();
        Error::new(ErrorKind::Data { path, row: Some(row), column }, message).context(self.format_place(row, offset))
    }

    fn format_place(&self, row: u64, offset: u64) -> String {
        let Some(path) = self.paths.get(self.file) else { return String::new() };
        format!("in {} {row} of {}, {}", F::RECORD, path.display(), self.format.place(&self.files, path, offset))
    }

    fn try_pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        loop {
            let Some(mut current) = self.current.take() else {
                if self.advance()? {
                    continue;
                }
                return Ok(None);
            };
            let Current { chunk, parsed, n_given } = &mut current;
            let next_bad = parsed.bad.front().map_or(parsed.ends.len(), |bad| bad.n_good);
            if *n_given < next_bad {
                let end = n_given.saturating_add(want).min(next_bad);
                let batch = slice(&parsed.batch, *n_given..end)?;
                self.n_records = self.n_records.saturating_add((end - *n_given) as u64);
                self.offset = chunk.offset + parsed.ends.get(end - 1).copied().unwrap_or_default() as u64;
                *n_given = end;
                self.current = Some(current);
                let words = [self.file as u64, self.offset, self.n_records, self.n_bad];
                return Ok(Some(StreamItem { batch, after: Position::new(words, []) }));
            }
            if let Some(bad) = parsed.bad.pop_front() {
                self.set_aside(&current.chunk, bad)?;
                self.current = Some(current);
            }
        }
    }
}

impl<F: Format> Stream for FileStream<F> {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        if self.ended {
            return Ok(None);
        }
        let pulled = self.try_pull(want);
        self.ended = !matches!(pulled, Ok(Some(_)));
        if self.ended {
            self.tell();
        }
        pulled
    }
}

/// A reader may stop before the end.
impl<F: Format> Drop for FileStream<F> {
    fn drop(&mut self) {
        self.tell();
    }
}
