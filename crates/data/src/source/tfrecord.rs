//! `tf.Example`s in TFRecord files, file after file.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, ErrorKind, Feature, FeatureSpec, Result, Strings};
use estimand_wire::ExampleParser;
use estimand_wire::record::{RecordError, RecordReader};

use crate::Position;
use crate::stage::{InputContext, Item, PIECE, Stage, Stream};

const BUFFER: usize = 256 << 10;

/// The bytes of a record beside its payload: length and two checksums.
const FRAME: u64 = 16;

/// The position is the file, the byte and the number of the next record in it.
pub(crate) struct TfRecord {
    paths: Arc<[PathBuf]>,
    features: Vec<(String, FeatureSpec)>,
    parser: Result<Arc<ExampleParser>>,
}

impl TfRecord {
    pub(crate) fn new(paths: Arc<[PathBuf]>, features: Vec<(String, FeatureSpec)>) -> TfRecord {
        TfRecord { parser: parser(&features).map(Arc::new), paths, features }
    }
}

fn parser(features: &[(String, FeatureSpec)]) -> Result<ExampleParser> {
    if features.is_empty() {
        return Err(Error::config("no features to read from the records").help("name at least one in the spec"));
    }
    for (name, spec) in features {
        // Its width would depend on which rows are read together, and so on where reading began.
        if matches!(spec, FeatureSpec::Padded { .. }) {
            return Err(Error::unsupported(format!("feature `{name}` is padded, which rows before `batch` cannot be"))
                .help("read it with FeatureSpec::ragged"));
        }
    }
    ExampleParser::new(features.iter().cloned())
}

impl Stage for TfRecord {
    fn describe(&self) -> String {
        let files = match &*self.paths {
            [] => "no file".to_string(),
            [path] => path.display().to_string(),
            [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()),
        };
        format!("tfrecord: {} features from {files}", self.features.len())
    }

    fn check(&self) -> Result<()> {
        if self.paths.is_empty() {
            return Err(Error::config("a dataset of no TFRecord files").help("name at least one path"));
        }
        self.parser.as_ref().map(|_| ()).map_err(Error::clone)
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.features.iter().cloned().collect())
    }

    fn open(&self, _cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([file, offset, record], []) = from.parts()?;
        let n_files = self.paths.len();
        let file = usize::try_from(file).ok().filter(|&file| file <= n_files).ok_or_else(|| {
            Error::config(format!("a position in file number {file} of {n_files}"))
                .help("a position continues only the files it was taken from")
        })?;
        let mut records = Records {
            paths: self.paths.clone(),
            parser: self.parser.clone()?,
            file,
            record,
            offset,
            base: 0,
            reader: None,
            error: None,
        };
        if file < n_files {
            records.open_file(offset)?;
        }
        Ok(Box::new(records))
    }
}

struct Records {
    paths: Arc<[PathBuf]>,
    parser: Arc<ExampleParser>,
    file: usize,
    /// Records of the file already read.
    record: u64,
    /// Where the next record begins.
    offset: u64,
    /// Where the reader began.
    base: u64,
    reader: Option<RecordReader<BufReader<File>>>,
    /// Met behind rows that were still good.
    error: Option<Error>,
}

impl Records {
    fn open_file(&mut self, offset: u64) -> Result<()> {
        let path = &self.paths[self.file];
        let mut file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
        if offset > 0 {
            let length = file.metadata().map_err(|e| Error::io(path, "read", &e))?.len();
            if offset > length {
                return Err(Error::config(format!(
                    "a position at byte {offset} of {}, which has {length}",
                    path.display()
                ))
                .help("the file has changed since the position was taken"));
            }
            file.seek(SeekFrom::Start(offset)).map_err(|e| Error::io(path, "read", &e))?;
        }
        (self.base, self.offset) = (offset, offset);
        self.reader = Some(RecordReader::new(BufReader::with_capacity(BUFFER, file)));
        Ok(())
    }

    /// Up to `want` records of the file that is open.
    fn read(&mut self, want: usize) -> Strings {
        let mut records = Strings::default();
        let Some(reader) = &mut self.reader else { return records };
        while records.len() < want {
            match reader.read() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(error) => {
                    let number = self.record.saturating_add(records.len() as u64 + 1);
                    self.error = Some(damaged(&self.paths[self.file], number, self.base, error));
                    break;
                }
            }
        }
        records
    }

    /// The features of records, and of how many: those before the first that cannot be parsed.
    fn parse(&mut self, records: &Strings) -> Result<(Vec<Feature>, usize)> {
        if let Ok(features) = self.parser.parse(records.iter()) {
            return Ok((features, records.len()));
        }
        let first_bad =
            records.iter().enumerate().find_map(|(i, record)| Some((i, self.parser.parse([record]).err()?)));
        let Some((n_good, error)) = first_bad else {
            return Err(Error::internal("records can be parsed alone but not together"));
        };
        let error = unreadable(&self.paths[self.file], self.record.saturating_add(n_good as u64 + 1), &error);
        if n_good == 0 {
            return Err(error);
        }
        self.error = Some(error);
        Ok((self.parser.parse(records.iter().take(n_good))?, n_good))
    }
}

impl Stream for Records {
    fn pull(&mut self, want: usize) -> Result<Option<Item>> {
        loop {
            if let Some(error) = self.error.take() {
                self.reader = None;
                self.file = self.paths.len();
                return Err(error);
            }
            if self.file >= self.paths.len() {
                return Ok(None);
            }
            let records = self.read(want.min(PIECE));
            if !records.is_empty() {
                let (features, n) = self.parse(&records)?;
                self.record = self.record.saturating_add(n as u64);
                self.offset += records.iter().take(n).map(|record| FRAME + record.len() as u64).sum::<u64>();
                let mut batch = Batch::new();
                for (name, feature) in self.parser.names().zip(features) {
                    batch = batch.with_feature(name, feature)?;
                }
                let after = Position::new([self.file as u64, self.offset, self.record], []);
                return Ok(Some(Item { batch, after }));
            }
            if self.error.is_none() {
                self.file += 1;
                self.record = 0;
                if self.file < self.paths.len() {
                    self.open_file(0)?;
                }
            }
        }
    }
}

/// A record whose frame is broken; `base` is where the reader of the file began.
fn damaged(path: &Path, record: u64, base: u64, error: RecordError) -> Error {
    match error {
        RecordError::Io(error) => Error::io(path, "read", &error),
        RecordError::Corrupt { offset, message } => {
            let place = format!("in record {record} of {}, at byte {}", path.display(), base + offset);
            let kind = ErrorKind::Data { path: Some(path.to_path_buf()), row: Some(record), column: None };
            let error = Error::new(kind, format!("the record is damaged: {message}")).context(place);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("gz" | "gzip" | "zlib" | "zst") if record == 1 => {
                    error.help("compressed files are not read yet: unpack it first")
                }
                _ => error,
            }
        }
    }
}

/// A whole record that does not fit the spec.
fn unreadable(path: &Path, record: u64, error: &Error) -> Error {
    let column = match error.kind() {
        ErrorKind::Data { column, .. } => column.clone(),
        _ => None,
    };
    let kind = ErrorKind::Data { path: Some(path.to_path_buf()), row: Some(record), column };
    Error::new(kind, error.message()).context(format!("in record {record} of {}", path.display()))
}
