//! Writes CSV files, quoted according to RFC 4180.

mod line;

use std::path::{Path, PathBuf};

use estimand_tensor::{Batch, Error, Feature, Result};

use self::line::{Column, Line};
use super::output::{Output, publish};
use super::{Written, columns, each_piece};
use crate::{Compression, Dataset};

/// Writes the rows of a dataset to a CSV file, which [`Csv`](crate::Csv) can read.
///
/// - A float is the shortest text that parses to the same bits, with a point or an exponent: `1.0`,
///   `1e-7`, `inf`. NaN, which means missing, is an empty field.
/// - A string is written byte by byte. It is quoted if it holds the delimiter, a quote or a line
///   end, or begins or ends with a space.
/// - Booleans are 1 and 0.
/// - A row of several values has a column for each, named `pair_0`, `pair_1`, or with several axes
///   `image_0_0`, `image_0_1`.
/// - Ragged features are refused. Labels come after the features, then the weights.
///
/// A dataset without rows makes an empty file, because the columns are known only from rows.
///
/// ```no_run
/// use estimand_data::{Dataset, writer::CsvWriter};
/// # fn write(data: &Dataset) -> estimand_tensor::Result<()> {
/// let written = CsvWriter::new("rows.tsv.gz").delimiter(b'\t').header(false).write(data)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CsvWriter {
    path: PathBuf,
    delimiter: u8,
    header: bool,
    compression: Option<Compression>,
    weights: Option<String>,
}

impl CsvWriter {
    /// Writes to a path. Missing folders are created.
    pub fn new(path: impl AsRef<Path>) -> CsvWriter {
        let path = path.as_ref().to_path_buf();
        CsvWriter { path, delimiter: b',', header: true, compression: None, weights: None }
    }

    /// The delimiter of fields. By default, a comma.
    pub fn delimiter(self, delimiter: u8) -> CsvWriter {
        CsvWriter { delimiter, ..self }
    }

    /// Whether the first line is a header with the names. By default, it is.
    pub fn header(self, header: bool) -> CsvWriter {
        CsvWriter { header, ..self }
    }

    /// Compresses the file. By default, the extension decides: `.gz` is gzip, `.zlib` zlib.
    pub fn compression(self, compression: Compression) -> CsvWriter {
        CsvWriter { compression: Some(compression), ..self }
    }

    /// Also writes the weights of the rows, as the last column, with this name. Required if rows
    /// have weights.
    pub fn weights(self, name: impl Into<String>) -> CsvWriter {
        CsvWriter { weights: Some(name.into()), ..self }
    }

    /// Writes all rows of a dataset.
    pub fn write(&self, data: &Dataset) -> Result<Written> {
        if !self.delimiter.is_ascii() || matches!(self.delimiter, b'"' | b'\r' | b'\n') {
            let delimiter = char::from(self.delimiter);
            return Err(Error::config(format!("the delimiter {delimiter:?} cannot separate fields"))
                .help("use an ASCII character that is neither a quote nor a line end"));
        }
        let compression = self.compression.unwrap_or_else(|| Compression::of(&self.path));
        let mut file = Output::create(&self.path, compression)?;
        let mut names: Option<Vec<String>> = None;
        let mut text = Vec::new();
        let n_rows = each_piece(data, |first, batch| {
            let columns = columns(batch, self.weights.as_deref())?;
            let found = field_names(&columns)?;
            match &names {
                None => {
                    if self.header {
                        let mut line = Line::new(self.delimiter, &mut text);
                        found.iter().for_each(|name| line.text(name.as_bytes()));
                        line.end();
                    }
                    names = Some(found);
                }
                Some(names) if *names != found => {
                    return Err(Error::shape(format!(
                        "the rows from row {} on have the columns {found:?}; earlier rows have {names:?}",
                        first + 1
                    )));
                }
                Some(_) => {}
            }
            self.rows(batch, &columns, &mut text)?;
            file.write(&text)?;
            text.clear();
            Ok(())
        })?;
        let (n_bytes, paths) = publish(vec![file])?;
        Ok(Written { n_rows, n_bytes, paths })
    }

    fn rows(&self, batch: &Batch, columns: &[(String, Feature)], out: &mut Vec<u8>) -> Result<()> {
        let columns = columns.iter().map(|(name, feature)| Column::new(name, feature)).collect::<Result<Vec<_>>>()?;
        let mut line = Line::new(self.delimiter, out);
        for row in 0..batch.n_rows() {
            columns.iter().for_each(|column| column.write(row, &mut line));
            line.end();
        }
        Ok(())
    }
}

/// The names of the fields; a row of several values has several fields.
fn field_names(columns: &[(String, Feature)]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, feature) in columns {
        let Feature::Dense(array) = feature else {
            return Err(Error::unsupported(format!(
                "`{name}` is ragged, but all rows of a CSV file have the same number of fields"
            ))
            .help("leave it out with `map`, or write TFRecord files"));
        };
        names.extend(numbered(name, array.dims().get(1..).unwrap_or_default()));
    }
    if names.is_empty() {
        return Err(Error::shape("the rows have no values to write"));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::config(format!("two columns would have the name `{}`", pair[0]))),
        None => Ok(names),
    }
}

/// `name_0_0`, `name_0_1`, ... in the order of the values.
fn numbered(name: &str, dims: &[usize]) -> Vec<String> {
    dims.iter().fold(vec![name.to_string()], |names, &size| {
        names.iter().flat_map(|name| (0..size).map(move |i| format!("{name}_{i}"))).collect()
    })
}

impl Dataset {
    /// Writes all rows to a CSV file with a header, compressed if the name ends in `.gz` or
    /// `.zlib`. [`CsvWriter`] has options.
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<Written> {
        CsvWriter::new(path).write(self)
    }
}
