//! Writes LIBSVM (SVMlight) files.

use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};

use estimand_tensor::{Array, Batch, DType, Error, Feature, Ragged, Result};

use super::output::{Output, publish};
use super::{Written, each_piece};
use crate::source::libsvm::QID;
use crate::transform::sparse_to_dense::{IDS, VALUES};
use crate::{Compression, Dataset};

/// Writes the rows of a dataset to a LIBSVM file, which [`LibSvm`](crate::LibSvm) and
/// scikit-learn's `load_svmlight_file` can read.
///
/// - Rows have one label: a number, or for multilabel rows a ragged feature of integers.
/// - The pairs come from the ragged features `ids` and `values`, sorted by their id, or from one
///   dense feature of numbers, whose zeros are left out.
/// - A feature `qid` of integers becomes the query of each row.
/// - A float is the shortest text that parses to the same bits: `1`, `0.1`, `1e-7`, `NaN`.
///
/// Any other feature is refused, since the format has no place for it.
///
/// ```
/// use estimand_data::{Dataset, LibSvm, writer::LibSvmWriter};
/// use estimand_tensor::Array;
///
/// let x = Array::from_vec([2, 3], vec![0.5f32, 0.0, 2.0, 0.0, 0.0, 0.0])?;
/// let data = Dataset::from_arrays([("x", x), ("y", Array::from([1i64, -1]))]).label("y");
/// # let path = std::env::temp_dir().join(format!("estimand-libsvm-writer-{}.svm", std::process::id()));
/// assert_eq!(LibSvmWriter::new(&path).write(&data)?.n_rows, 2);
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "1 1:0.5 3:2\n-1\n");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LibSvmWriter {
    path: PathBuf,
    base: u64,
    compression: Option<Compression>,
}

impl LibSvmWriter {
    /// Writes to a path. Missing folders are created.
    pub fn new(path: impl AsRef<Path>) -> LibSvmWriter {
        LibSvmWriter { path: path.as_ref().to_path_buf(), base: 1, compression: None }
    }

    /// Gives the first feature the index 0. By default, it has index 1, as the format defines it.
    ///
    /// Name the base when you read the file: if the index 0 does not occur in it, it cannot be
    /// found.
    pub fn zero_based(self) -> LibSvmWriter {
        LibSvmWriter { base: 0, ..self }
    }

    /// Compresses the file. By default, the extension decides: `.gz` is gzip, `.zlib` zlib.
    pub fn compression(self, compression: Compression) -> LibSvmWriter {
        LibSvmWriter { compression: Some(compression), ..self }
    }

    /// Writes all rows of a dataset.
    pub fn write(&self, data: &Dataset) -> Result<Written> {
        let compression = self.compression.unwrap_or_else(|| Compression::of(&self.path));
        let mut file = Output::create(&self.path, compression)?;
        let mut text = Vec::new();
        let n_rows = each_piece(data, |first, batch| {
            let columns = Columns::of(batch)?;
            for row in 0..batch.n_rows() {
                let written = columns.write(row, self.base, &mut text);
                written.map_err(|e| e.context(format!("in row {} of the dataset", first + row as u64 + 1)))?;
                text.push(b'\n');
            }
            file.write(&text)?;
            text.clear();
            Ok(())
        })?;
        let (n_bytes, paths) = publish(vec![file])?;
        Ok(Written { n_rows, n_bytes, paths })
    }
}

impl Dataset {
    /// Writes all rows to a LIBSVM file with indices from 1, compressed if the name ends in `.gz`
    /// or `.zlib`. [`LibSvmWriter`] says which features it takes, and has options.
    pub fn write_libsvm(&self, path: impl AsRef<Path>) -> Result<Written> {
        LibSvmWriter::new(path).write(self)
    }
}

/// The parts of rows that the format has.
struct Columns<'a> {
    label: &'a Feature,
    query: Option<&'a [i64]>,
    pairs: Pairs<'a>,
}

enum Pairs<'a> {
    Sparse { ids: &'a [i64], splits: &'a [i64], values: &'a Array },
    Dense { values: &'a Array, width: usize },
}

impl<'a> Columns<'a> {
    fn of(batch: &'a Batch) -> Result<Columns<'a>> {
        if batch.weights().is_some() {
            return Err(Error::unsupported("the rows have weights, which LIBSVM files cannot hold"));
        }
        let mut labels = batch.labels().values();
        let (Some(label), None) = (labels.next(), labels.next()) else {
            let n = batch.labels().len();
            return Err(Error::config(format!("the rows have {n} labels; a line of a LIBSVM file begins with one"))
                .help("name the label with label(..)"));
        };
        let dtype = label.dtype();
        let fits = match label {
            Feature::Dense(array) => array.rank() == 1 && dtype != DType::Str,
            Feature::Ragged(_) => dtype.is_integer(),
        };
        if !fits {
            return Err(Error::config(format!("the label is {}; expected a number, or ragged integers", text(label))));
        }
        let query = match batch.features().get(QID) {
            Some(Feature::Dense(query)) if query.dtype() == DType::I64 && query.rank() == 1 => Some(query.as_slice()?),
            Some(other) => {
                return Err(Error::config(format!("the feature `{QID}` is {}; expected i64", text(other))));
            }
            None => None,
        };
        let mut others = batch.features().iter().filter(|(name, _)| ***name != *QID);
        let pairs = match (batch.features().get(IDS), batch.features().get(VALUES)) {
            (Some(Feature::Ragged(ids)), Some(Feature::Ragged(values))) => {
                others
                    .find(|(name, _)| ***name != *IDS && ***name != *VALUES)
                    .map_or(Ok(()), |one| Err(surplus(one)))?;
                Pairs::sparse(ids, values)?
            }
            _ => match (others.next(), others.next()) {
                (Some((name, feature)), None) => Pairs::dense(name, feature)?,
                (Some(_), Some(one)) => return Err(surplus(one)),
                (None, _) => return Err(Error::config("the rows have no features to write")),
            },
        };
        Ok(Columns { label, query, pairs })
    }

    fn write(&self, row: usize, base: u64, out: &mut Vec<u8>) -> Result<()> {
        match self.label {
            Feature::Dense(array) => number(array, row, out)?,
            Feature::Ragged(labels) => {
                let labels = labels.row(row)?;
                for i in 0..labels.len() {
                    if i > 0 {
                        out.push(b',');
                    }
                    number(&labels, i, out)?;
                }
            }
        }
        if let Some(query) = self.query {
            plain(format_args!(" qid:{}", query[row]), out);
        }
        match &self.pairs {
            Pairs::Dense { values, width } => {
                for id in 0..*width {
                    let place = row * width + id;
                    if !is_zero(values, place)? {
                        pair(id as u64, base, values, place, out)?;
                    }
                }
            }
            Pairs::Sparse { ids, splits, values } => {
                let mut places: Vec<usize> = (splits[row] as usize..splits[row + 1] as usize).collect();
                places.sort_by_key(|&place| ids[place]);
                if let Some(twice) = places.windows(2).find(|pair| ids[pair[0]] == ids[pair[1]]) {
                    return Err(Error::data(format!("the id {} occurs twice in a row", ids[twice[0]]))
                        .help("add up its values: a line may have each index once"));
                }
                for place in places {
                    let id = u64::try_from(ids[place]);
                    let id = id.map_err(|_| Error::data(format!("an id is {}; expected 0 or more", ids[place])))?;
                    pair(id, base, values, place, out)?;
                }
            }
        }
        if out.last().is_none_or(|&byte| byte == b'\n') {
            return Err(Error::data("the row has neither labels nor values; readers skip an empty line"));
        }
        Ok(())
    }
}

impl<'a> Pairs<'a> {
    fn sparse(ids: &'a Ragged, values: &'a Ragged) -> Result<Pairs<'a>> {
        if ids.values().dtype() != DType::I64 || ids.values().rank() != 1 || ids.row_splits() != values.row_splits() {
            return Err(Error::config(format!(
                "the feature `{IDS}` is {}; expected ragged i64 with the row lengths of `{VALUES}`",
                text(&ids.clone().into())
            )));
        }
        let all = values.values();
        if !all.dtype().is_number() || all.rank() != 1 {
            let found = text(&values.clone().into());
            return Err(Error::config(format!("the feature `{VALUES}` is {found}; expected ragged numbers")));
        }
        Ok(Pairs::Sparse { ids: ids.values().as_slice()?, splits: ids.row_splits(), values: all })
    }

    fn dense(name: &str, feature: &'a Feature) -> Result<Pairs<'a>> {
        match feature {
            Feature::Dense(array) if array.dtype() != DType::Str => {
                let width = array.dims().iter().skip(1).product();
                Ok(Pairs::Dense { values: array, width })
            }
            _ => Err(Error::config(format!("the feature `{name}` is {}; expected dense numbers", text(feature)))
                .help(format!("sparse rows are the ragged features `{IDS}` and `{VALUES}`"))),
        }
    }
}

fn surplus((name, feature): (&std::sync::Arc<str>, &Feature)) -> Error {
    Error::unsupported(format!("the feature `{name}` ({}) has no place in a LIBSVM file", text(feature)))
        .help("keep one dense feature, or `ids` and `values`; leave others out with `map`")
}

fn text(feature: &Feature) -> String {
    match feature {
        Feature::Dense(array) => format!("{}{:?}", array.dtype(), array.dims().get(1..).unwrap_or_default()),
        Feature::Ragged(ragged) => format!("ragged {}", ragged.values().dtype()),
    }
}

fn pair(id: u64, base: u64, values: &Array, place: usize, out: &mut Vec<u8>) -> Result<()> {
    let index = id.checked_add(base).filter(|&index| i64::try_from(index).is_ok());
    let index = index.ok_or_else(|| Error::data(format!("the id {id} is too large for an index")))?;
    plain(format_args!(" {index}:"), out);
    number(values, place, out)
}

fn is_zero(values: &Array, i: usize) -> Result<bool> {
    Ok(match values.dtype() {
        DType::F32 => values.as_slice::<f32>()?[i] == 0.0,
        DType::F64 => values.as_slice::<f64>()?[i] == 0.0,
        DType::I32 => values.as_slice::<i32>()?[i] == 0,
        DType::I64 => values.as_slice::<i64>()?[i] == 0,
        DType::U8 => values.as_slice::<u8>()?[i] == 0,
        DType::Bool => !values.as_slice::<bool>()?[i],
        DType::Str => return Err(Error::internal("a string that was not refused")),
    })
}

fn number(values: &Array, i: usize, out: &mut Vec<u8>) -> Result<()> {
    match values.dtype() {
        DType::F32 => float(values.as_slice::<f32>()?[i], out),
        DType::F64 => float(values.as_slice::<f64>()?[i], out),
        DType::I32 => plain(format_args!("{}", values.as_slice::<i32>()?[i]), out),
        DType::I64 => plain(format_args!("{}", values.as_slice::<i64>()?[i]), out),
        DType::U8 => plain(format_args!("{}", values.as_slice::<u8>()?[i]), out),
        DType::Bool => plain(format_args!("{}", u8::from(values.as_slice::<bool>()?[i])), out),
        DType::Str => return Err(Error::internal("a string that was not refused")),
    }
    Ok(())
}

/// `Debug` prints the shortest digits that parse to the same bits.
fn float(value: impl Debug, out: &mut Vec<u8>) {
    plain(format_args!("{value:?}"), out);
    if out.ends_with(b".0") {
        out.truncate(out.len() - 2);
    }
}

fn plain(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}
