//! Caches rows: in memory, or in a file that later runs read too.
//!
//! Rows are stored in pieces of [`PIECE`], and batches one by one, so a position in a cache is a
//! number. The input is always read as in epoch 0, so the contents of a cache do not depend on when
//! it was made.
//!
//! `batch_bytes.rs` encodes a piece, and `file.rs` is the file.

mod batch_bytes;
mod file;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::{concat, count, slice};
use crate::stage::{InputContext, PIECE, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};
use file::{CacheFile, CacheWriter};

impl Dataset {
    /// Caches the elements in memory. The first complete pass reads the input; later passes read
    /// the cache. An incomplete pass leaves nothing in the cache.
    ///
    /// A shuffle before `cache` gives the same order in every epoch; put the shuffle after it. The
    /// memory is freed with the plan.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_array(Array::from([1i64, 2, 3])).shuffle(10, 7).cache().repeat(2).batch(3);
    /// let epochs: Vec<_> = data.iter().collect::<Result<_, estimand_tensor::Error>>()?;
    /// assert_eq!(epochs[0], epochs[1]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn cache(&self) -> Dataset {
        Dataset::new(Cache { input: self.clone(), store: Store::Memory(Arc::default()) })
    }

    /// Caches the elements like [`cache`](Dataset::cache), in a file. The first complete pass
    /// writes it; later passes and later runs read it.
    ///
    /// The file records its plan, by [`fingerprint`](Dataset::fingerprint), and is refused by
    /// another plan. It does not notice changes of rows in files, values of arrays or functions
    /// before it: delete the file after such a change.
    pub fn cache_to(&self, path: impl Into<PathBuf>) -> Dataset {
        Dataset::new(Cache { input: self.clone(), store: Store::File(path.into()) })
    }
}

/// The stage of `cache`. The position is the number of elements yielded.
struct Cache {
    input: Dataset,
    store: Store,
}

enum Store {
    Memory(Arc<Kept>),
    File(PathBuf),
}

/// The complete passes in memory, one per input context; its epoch and threads do not matter.
type Kept = Mutex<Vec<(InputContext, Arc<[Batch]>)>>;

impl Stage for Cache {
    fn describe(&self) -> String {
        let place = match &self.store {
            Store::Memory(_) => "in memory".to_string(),
            Store::File(path) => format!("in {}", path.display()),
        };
        format!(
            "cache: {place}; all epochs in the order of the first, which going on reads from its beginning until it is kept"
        )
    }

    /// The place where rows are cached does not affect them.
    fn identity(&self, _cx: &InputContext) -> String {
        "cache".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    /// All passes have the order of the first.
    fn reshuffles(&self) -> bool {
        false
    }

    fn has_incomplete_cache(&self) -> bool {
        match &self.store {
            Store::Memory(kept) => lock(kept).is_empty(),
            Store::File(path) => !path.exists(),
        }
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([given], []) = from.parts()?;
        let first = InputContext { epoch: 0, ..*cx };
        let first_pass = || -> Result<FirstPass> {
            let input = self.input.stage().open(&first, &Position::default())?;
            Ok(FirstPass { input, unit: self.unit(), error: None, ended: false })
        };
        let source = match &self.store {
            Store::Memory(kept) => {
                let reader = InputContext { n_threads: 0, ..first };
                let found = lock(kept).iter().find(|(of, _)| *of == reader).map(|(_, pieces)| pieces.clone());
                match found {
                    Some(pieces) => Source::Memory(pieces),
                    None => Source::ToMemory { pass: first_pass()?, pieces: Vec::new(), kept: kept.clone(), reader },
                }
            }
            Store::File(path) => {
                let identity = self.input.identity(&first);
                match CacheFile::open(path, &identity)? {
                    Some(file) => Source::File(file),
                    None => {
                        let writer = CacheWriter::new(path, &identity)?;
                        Source::ToFile {
                            pass: first_pass()?,
                            writer: Some(Box::new(writer)),
                            n_pieces: 0,
                            n_elements: 0,
                        }
                    }
                }
            }
        };
        Ok(Box::new(CacheStream { source, unit: self.unit(), given, current: None }))
    }
}

fn lock(kept: &Kept) -> MutexGuard<'_, Vec<(InputContext, Arc<[Batch]>)>> {
    // Entries are added whole, so the list is valid even after a panic.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the input in pieces of the size that the cache stores.
struct FirstPass {
    input: Box<dyn Stream>,
    unit: Unit,
    /// An error found after good rows. The rows are yielded first.
    error: Option<Error>,
    ended: bool,
}

impl FirstPass {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(error) = self.error.take() {
            self.ended = true;
            return Err(error);
        }
        let want = if self.unit == Unit::Row { PIECE } else { 1 };
        let (mut parts, mut n) = (Vec::new(), 0);
        while n < want && !self.ended && self.error.is_none() {
            match self.input.pull(want - n) {
                Ok(Some(item)) => {
                    n += count(self.unit, &item.batch) as usize;
                    parts.push(item.batch);
                }
                Ok(None) => self.ended = true,
                Err(error) if parts.is_empty() => return Err(error),
                Err(error) => self.error = Some(error),
            }
        }
        if parts.is_empty() { Ok(None) } else { concat(parts).map(Some) }
    }
}

enum Source {
    Memory(Arc<[Batch]>),
    File(CacheFile),
    ToMemory {
        pass: FirstPass,
        pieces: Vec<Batch>,
        kept: Arc<Kept>,
        reader: InputContext,
    },
    ToFile {
        pass: FirstPass,
        /// `None` once the file is complete.
        writer: Option<Box<CacheWriter>>,
        n_pieces: u64,
        n_elements: u64,
    },
}

impl Source {
    /// Reads a piece by its number, which never decreases from call to call; `None` after the last.
    fn piece(&mut self, number: u64) -> Result<Option<Batch>> {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        match self {
            Source::Memory(pieces) => Ok(pieces.get(at).cloned()),
            Source::File(file) => file.piece(at),
            Source::ToMemory { pass, pieces, kept, reader } => {
                while pieces.len() <= at {
                    let Some(piece) = pass.next()? else {
                        let all: Arc<[Batch]> = std::mem::take(pieces).into();
                        lock(kept).push((*reader, all.clone()));
                        *self = Source::Memory(all);
                        return Ok(None);
                    };
                    pieces.push(piece);
                }
                Ok(pieces.get(at).cloned())
            }
            Source::ToFile { pass, writer, n_pieces, n_elements } => {
                while let Some(out) = writer {
                    let Some(piece) = pass.next()? else {
                        if let Some(writer) = writer.take() {
                            writer.finish(*n_elements)?;
                        }
                        break;
                    };
                    out.add(&piece)?;
                    *n_elements += count(pass.unit, &piece);
                    *n_pieces += 1;
                    if *n_pieces > number {
                        return Ok(Some(piece));
                    }
                }
                Ok(None)
            }
        }
    }

    /// The number of elements. Valid once all pieces are known.
    fn n_elements(&self, unit: Unit) -> u64 {
        match self {
            Source::Memory(pieces) => pieces.iter().map(|piece| count(unit, piece)).sum(),
            Source::File(file) => file.n_elements(),
            Source::ToMemory { pieces, .. } => pieces.iter().map(|piece| count(unit, piece)).sum(),
            Source::ToFile { n_elements, .. } => *n_elements,
        }
    }
}

struct CacheStream {
    source: Source,
    unit: Unit,
    given: u64,
    /// The last piece read, and its number.
    current: Option<(u64, Batch)>,
}

impl CacheStream {
    fn piece(&mut self, number: u64) -> Result<Option<&Batch>> {
        if self.current.as_ref().is_none_or(|(at, _)| *at != number) {
            self.current = self.source.piece(number)?.map(|piece| (number, piece));
        }
        Ok(self.current.as_ref().map(|(_, piece)| piece))
    }

    fn end(&self) -> Result<Option<StreamItem>> {
        let n = self.source.n_elements(self.unit);
        if self.given > n {
            return Err(Error::config(format!(
                "the position is after element {}, but the cache has {n} elements",
                self.given
            ))
            .help("resume with the plan and the data that the position was taken from"));
        }
        Ok(None)
    }
}

impl Stream for CacheStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let (given, size) = (self.given, PIECE as u64);
        let batch = match self.unit {
            Unit::Batch => match self.piece(given)? {
                Some(batch) => batch.clone(),
                None => return self.end(),
            },
            Unit::Row => {
                let start = (given % size) as usize;
                match self.piece(given / size)? {
                    Some(piece) if start < piece.n_rows() => {
                        slice(piece, start..start.saturating_add(want).min(piece.n_rows()))?
                    }
                    // After the rows of the last piece comes the end, or the error that cut the
                    // piece short.
                    Some(_) => match self.piece(given / size + 1)? {
                        Some(_) => return Err(Error::internal("a piece of a cache is too short")),
                        None => return self.end(),
                    },
                    None => return self.end(),
                }
            }
        };
        self.given += count(self.unit, &batch);
        Ok(Some(StreamItem { batch, after: Position::new([self.given], []) }))
    }
}
