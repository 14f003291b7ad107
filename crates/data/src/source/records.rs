//! TFRecord files. The framing delimits the records, and a parser turns their contents into rows.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, ErrorKind, FeatureSpec, Limits, Result};
use estimand_wire::record;

use crate::Position;
use crate::files::Files;
use crate::files::chunk::{Bad, Chunk, Cut, Damage, Format, Parsed};
use crate::files::stream::FileStream;
use crate::stage::{InputContext, Stage, Stream};

/// The stage that reads TFRecord files.
pub(super) struct RecordSource<P> {
    /// The kind of content of the records, for `explain`.
    what: &'static str,
    files: Files,
    spec: BatchSpec,
    format: Result<Arc<Records<P>>>,
}

impl<P: RowParser> RecordSource<P> {
    pub(super) fn new(what: &'static str, files: Files, spec: BatchSpec, parser: Result<P>) -> RecordSource<P> {
        let record_bytes = files.reading_limits().record_bytes;
        RecordSource { what, files, spec, format: parser.map(|parser| Arc::new(Records { parser, record_bytes })) }
    }
}

/// Refuses a padded feature: its width would depend on the rows that are read together, and so on
/// the position where reading began.
pub(super) fn check_not_padded(name: &str, spec: &FeatureSpec) -> Result<()> {
    if matches!(spec, FeatureSpec::Padded { .. }) {
        return Err(Error::unsupported(format!(
            "feature `{name}` has a padded spec, but rows cannot be padded before `batch`"
        ))
        .help("read it with FeatureSpec::ragged, and pad with `padded_batch`"));
    }
    Ok(())
}

impl<P: RowParser> Stage for RecordSource<P> {
    fn describe(&self) -> String {
        format!("{}: {} features from {}", self.what, self.spec.len(), self.files.describe())
    }

    fn identity(&self, cx: &InputContext) -> String {
        self.describe() + &self.files.identity(cx)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.files.resolve()?.to_vec())
    }

    fn check(&self) -> Result<()> {
        self.format.as_ref().map(|_| ()).map_err(Error::clone)
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.spec.clone())
    }

    fn reshuffles(&self) -> bool {
        self.files.is_shuffled()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        Ok(Box::new(FileStream::open(&self.files, self.format.clone()?, cx, from)?))
    }
}

/// Parses the contents of records into rows.
pub(super) trait RowParser: Send + Sync + 'static {
    fn batch<'a>(&self, records: impl Iterator<Item = &'a [u8]>) -> Result<Batch>;
}

/// The format of TFRecord files with a parser of the contents.
struct Records<P> {
    parser: P,
    /// The largest number of bytes in a record's payload.
    record_bytes: usize,
}

impl<P: RowParser> Format for Records<P> {
    const RECORD: &'static str = "record";

    /// A longer record is refused by its length field, which has a checksum.
    fn longest(limits: &Limits) -> (usize, &'static str) {
        (limits.record_bytes.saturating_add(record::FRAME_LEN), "record_bytes")
    }

    fn cut(&self, bytes: &[u8], _: u64, is_last: bool) -> Cut {
        let mut end = 0;
        loop {
            let rest = &bytes[end..];
            let damaged = |damage: String| Some(format!("the record is damaged: {damage}").into());
            let damage = match record::frame_len(rest) {
                Ok(Some(length)) if length.saturating_sub(record::FRAME_LEN as u64) > self.record_bytes as u64 => {
                    let found = format!("the record has {} bytes", length - record::FRAME_LEN as u64);
                    Some(Damage::limit("record_bytes", self.record_bytes, &found))
                }
                Ok(Some(length)) if length <= rest.len() as u64 => {
                    end += length as usize;
                    continue;
                }
                Ok(_) if is_last && !rest.is_empty() => damaged(record::truncation(rest)),
                Ok(_) => None,
                Err(damage) => damaged(damage),
            };
            return Cut { end, damage };
        }
    }

    fn parse(&self, chunk: &Chunk) -> Parsed {
        let mut parsed = Parsed::default();
        let mut good = Vec::new();
        let mut start = 0;
        while let Ok(Some(length)) = record::frame_len(&chunk.bytes[start..]) {
            let end = (start as u64).saturating_add(length).min(chunk.bytes.len() as u64) as usize;
            match record::payload(&chunk.bytes[start..end]) {
                Ok(payload) => good.push(Good { payload, place: start..end }),
                Err(damage) => {
                    let message = format!("the record is damaged: {damage}");
                    let column = None;
                    parsed.bad.push_back(Bad { n_good: good.len(), start, end, column, message, help: None });
                }
            }
            start = end;
        }
        match self.batch(&good) {
            Ok(batch) => parsed.batch = batch,
            Err(_) => self.sort_out(&mut good, &mut parsed),
        }
        parsed.ends = good.iter().map(|good| good.place.end).collect();
        parsed
    }
}

/// A record whose checksum is valid.
struct Good<'a> {
    payload: &'a [u8],
    place: Range<usize>,
}

impl<P: RowParser> Records<P> {
    fn batch(&self, records: &[Good<'_>]) -> Result<Batch> {
        self.parser.batch(records.iter().map(|record| record.payload))
    }

    /// Finds the records that do not fit the spec, and parses the others.
    fn sort_out(&self, good: &mut Vec<Good<'_>>, parsed: &mut Parsed) {
        let mut bad: Vec<Bad> = parsed.bad.drain(..).collect();
        let mut kept = Vec::new();
        for record in good.drain(..) {
            match self.parser.batch(std::iter::once(record.payload)) {
                Ok(_) => kept.push(record),
                Err(error) => {
                    let column = match error.kind() {
                        ErrorKind::Data { column, .. } => column.clone(),
                        _ => None,
                    };
                    let Range { start, end } = record.place;
                    let message = error.message().to_string();
                    bad.push(Bad { n_good: 0, start, end, column, message, help: None });
                }
            }
        }
        bad.sort_by_key(|bad| bad.start);
        for bad in &mut bad {
            bad.n_good = kept.partition_point(|record| record.place.start < bad.start);
        }
        parsed.bad = bad.into();
        // Each record can be parsed alone, so all can be parsed together. If not, none is yielded
        // and the first reports the error.
        match self.batch(&kept) {
            Ok(batch) => parsed.batch = batch,
            Err(error) => {
                let message = error.message().to_string();
                parsed.bad.push_front(Bad { n_good: 0, start: 0, end: 0, column: None, message, help: None });
                kept.clear();
            }
        }
        *good = kept;
    }
}
