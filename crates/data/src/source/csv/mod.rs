//! CSV files, with the options of TensorFlow's `make_csv_dataset`.
//!
//! `dialect.rs` finds records (`records.rs`) and their fields. `sample.rs` reads the first records,
//! `infer.rs` infers the types of columns, and `column.rs` parses their values. `format.rs`
//! combines these into rows for the chunks of [`Files`]. `counted.rs` counts the values that were
//! missing.

mod column;
mod counted;
mod dialect;
mod format;
mod infer;
mod missing;
mod records;
mod sample;

pub use infer::InferredColumn;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use estimand_tensor::cpu::text::fingerprint64;
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Limits, Result};

use crate::files::stream::FileStream;
use crate::files::{Compression, Files, OnError};
use crate::source::shown;
use crate::stage::{InputContext, Stage, Stream};
use crate::told::Told;
use crate::{Dataset, Position};
use column::{Column, Origin};
use counted::CountedStream;
use dialect::Dialect;
use format::{CsvFormat, Header};
use missing::is_missing;
use sample::Sample;

/// The largest number of columns that a message or a plan lists by name.
const LISTED: usize = 100;

/// CSV files, with options; [`dataset`](Csv::dataset) builds the [`Dataset`].
///
/// The type of an undeclared column is inferred from the first rows of every file: the narrowest of
/// i32, i64, f32, f64 and str that fits. A missing value becomes 0 or the empty string.
/// [`inferred`](Csv::inferred) reports the types and the reasons. After the first pass over the
/// rows, a warning says how many numbers became 0, unless the column was declared.
/// [`Batch::missing`](estimand_tensor::Batch::missing) says which, and
/// [`statistics`](Dataset::statistics) count them as missing.
///
/// ```
/// use estimand_data::Csv;
/// # let path = std::env::temp_dir().join(format!("estimand-csv-doc-{}.csv", std::process::id()));
/// # std::fs::write(&path, "age,job,rich\n39,clerk,0\n?,\"chef, head\",1\n").unwrap();
///
/// let data = Csv::new(&path).na_values(["?"]).label("rich").dataset().batch(2);
/// let batch = data.iter().next().unwrap()?;
/// assert_eq!(batch.features()["age"], estimand_tensor::Array::from([39i32, 0]).into());
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Csv {
    files: Files,
    dialect: Dialect,
    header: bool,
    names: Option<Vec<String>>,
    select: Option<Vec<String>>,
    specs: BatchSpec,
    missing: Arc<[Vec<u8>]>,
    label: Option<String>,
    n_sampled: usize,
    utf8: bool,
}

impl Dataset {
    /// Creates a dataset from CSV files with a header, and infers the types of the columns. [`Csv`]
    /// has options.
    pub fn from_csv(files: impl Into<Files>) -> Dataset {
        Csv::new(files).dataset()
    }
}

impl Csv {
    /// Describes CSV files given by a path, a list or a pattern, read one after another.
    pub fn new(files: impl Into<Files>) -> Csv {
        Csv {
            files: files.into(),
            dialect: Dialect { delimiter: b',', quoting: true },
            header: true,
            names: None,
            select: None,
            specs: BatchSpec::default(),
            missing: Arc::new([]),
            label: None,
            n_sampled: 100,
            utf8: true,
        }
    }

    /// Whether the first record of every file is a header with the names of the columns. By
    /// default, it is.
    pub fn header(mut self, header: bool) -> Csv {
        self.header = header;
        self
    }

    /// The names of all columns of the files. By default, the header has them. If names are given,
    /// the header is skipped; for files without one, call [`header(false)`](Csv::header) too. A
    /// warning says if the skipped line looks like data.
    pub fn column_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Csv {
        self.names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The columns to read. They keep the order of the file. By default, all columns are read.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Csv {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Declares the type of a column. [`FeatureSpec::dense_or`] also sets the value for missing
    /// fields.
    pub fn feature(mut self, name: impl Into<String>, spec: FeatureSpec) -> Csv {
        self.specs.insert(name.into(), spec);
        self
    }

    /// Declares the types of columns, as the spec of feature columns lists them. The types of other
    /// columns are inferred.
    pub fn features<N: Into<String>>(mut self, specs: impl IntoIterator<Item = (N, FeatureSpec)>) -> Csv {
        self.specs.extend(specs.into_iter().map(|(name, spec)| (name.into(), spec)));
        self
    }

    /// Texts that mean a missing value, besides the empty text. By default, there are none. White
    /// space around a text does not count, so `?` also stands for ` ?`.
    pub fn na_values<T: AsRef<[u8]>>(mut self, texts: impl IntoIterator<Item = T>) -> Csv {
        let texts = texts.into_iter().map(|text| text.as_ref().trim_ascii().to_vec());
        // An empty field is always missing; white space alone is text.
        self.missing = texts.filter(|text| !text.is_empty()).collect();
        self
    }

    /// The column that is the label.
    pub fn label(mut self, name: impl Into<String>) -> Csv {
        self.label = Some(name.into());
        self
    }

    /// The byte between fields. By default, a comma.
    pub fn delimiter(mut self, delimiter: u8) -> Csv {
        self.dialect.delimiter = delimiter;
        self
    }

    /// Whether quotes enclose fields. By default, they do.
    pub fn quoting(mut self, quoting: bool) -> Csv {
        self.dialect.quoting = quoting;
        self
    }

    /// The number of rows of every file that are used to infer types. By default, 100.
    pub fn n_rows_for_inference(mut self, n: usize) -> Csv {
        self.n_sampled = n;
        self
    }

    /// Whether text must be UTF-8. By default, other text is an error; with `false`, any bytes are
    /// accepted.
    pub fn utf8(mut self, utf8: bool) -> Csv {
        self.utf8 = utf8;
        self
    }

    /// The compression of the files. By default, it follows from their extensions.
    pub fn compression(mut self, compression: Compression) -> Csv {
        self.files = self.files.compression(compression);
        self
    }

    /// The limits on the number of columns and the length of rows and fields ([`Limits`]). By
    /// default, those of the [`Files`].
    pub fn limits(mut self, limits: Limits) -> Csv {
        self.files = self.files.limits(limits);
        self
    }

    /// The handling of a row that cannot be read. By default, it ends the reading with an error.
    pub fn on_error(mut self, on_error: OnError) -> Csv {
        self.files = self.files.on_error(on_error);
        self
    }

    /// Builds the dataset, with one value per column. Reads nothing yet.
    pub fn dataset(self) -> Dataset {
        let label = self.label.clone();
        let rows = Dataset::new(CsvSource { csv: self, format: OnceLock::new(), told: Told::default() });
        match label {
            Some(label) => rows.label(&label),
            None => rows,
        }
    }

    /// The types that a sample of the files shows for the columns that are read, declared or not.
    pub fn inferred(&self) -> Result<Vec<InferredColumn>> {
        let (names, _) = self.all_names()?;
        let read = self.read_columns(&names)?;
        self.infer(&names, &read)
    }

    /// The names of all columns, and how to treat the header.
    fn all_names(&self) -> Result<(Vec<String>, Header)> {
        self.dialect.check()?;
        let (names, header) = match &self.names {
            Some(names) => (names.clone(), if self.header { Header::Ignored } else { Header::Absent }),
            None if !self.header => {
                return Err(Error::config("the CSV files have no header, and no column names were given")
                    .help("name the columns with column_names([...])"));
            }
            None => {
                let paths = self.files.resolve()?;
                let path = &paths[0];
                let sample = Sample::read(&self.files, path, self.dialect, 1, 1)?;
                let first = sample.rows().next().ok_or_else(|| {
                    Error::config(format!("there is no header in {}: the file is empty or damaged", path.display()))
                })?;
                self.check_columns(first.len()).map_err(|e| e.in_file(path))?;
                let names = (0..first.len()).map(|i| String::from_utf8_lossy(first.field(i)).into_owned());
                (names.collect(), Header::Checked)
            }
        };
        self.check_columns(names.len())?;
        let mut seen = HashSet::with_capacity(names.len());
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(Error::config(format!("two columns are named `{twice}`"))
                .help("give them different names with column_names([...])"));
        }
        Ok((names, header))
    }

    fn check_columns(&self, n: usize) -> Result<()> {
        let limit = self.files.reading_limits().columns;
        if n <= limit {
            return Ok(());
        }
        Err(Limits::exceeded("columns", limit as u64, format!("there are more than {limit} columns")))
    }

    /// The indices of the columns that are read.
    fn read_columns(&self, names: &[String]) -> Result<Vec<usize>> {
        let wanted = self.select.iter().flatten();
        let numbers: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        for name in wanted.chain(self.specs.keys()).chain(&self.label) {
            if !numbers.contains_key(name.as_str()) {
                let error = Error::config(format!("there is no column `{name}` in {}", self.files));
                return Err(error.suggest(name, names.iter().map(String::as_str)));
            }
        }
        let Some(select) = &self.select else { return Ok((0..names.len()).collect()) };
        let mut read: Vec<usize> = select.iter().map(|name| numbers[name.as_str()]).collect();
        if let Some(label) = self.label.as_ref().filter(|label| !read.contains(&numbers[label.as_str()])) {
            return Err(Error::config(format!("the label `{label}` is not among the selected columns"))
                .help("add it to `select`"));
        }
        if select.is_empty() {
            return Err(
                Error::config("no column is selected").help("select at least one, or leave out `select` to read all")
            );
        }
        read.sort_unstable();
        read.dedup();
        Ok(read)
    }

    fn infer(&self, names: &[String], read: &[usize]) -> Result<Vec<InferredColumn>> {
        let mut columns: Vec<_> = read.iter().map(|i| InferredColumn::new(&names[*i])).collect();
        let undeclared: Vec<usize> = (0..read.len()).filter(|i| !self.specs.contains_key(&names[read[*i]])).collect();
        let n_header = usize::from(self.header);
        for (number, path) in self.files.resolve()?.iter().enumerate() {
            let n = self.n_sampled.saturating_add(n_header);
            let sample = Sample::read(&self.files, path, self.dialect, n_header + 1, n)?;
            let path: Arc<Path> = path.as_path().into();
            for (row, fields) in sample.rows().skip(n_header).enumerate() {
                // Errors in other rows are reported when those rows are read.
                for &i in undeclared.iter().filter(|_| fields.len() == names.len()) {
                    columns[i].see(fields.field(read[i]), &self.missing, &path, row + 1, number == 0)?;
                }
            }
        }
        Ok(columns)
    }

    fn format(&self) -> Result<CsvFormat> {
        let (names, header) = self.all_names()?;
        let read = self.read_columns(&names)?;
        let declared = read.iter().all(|i| self.specs.contains_key(&names[*i]));
        let mut found = if declared { Vec::new() } else { self.infer(&names, &read)? }.into_iter();
        // One default is shared by all columns of a type: there may be a million columns.
        let mut specs: HashMap<DType, FeatureSpec> = HashMap::new();
        let mut columns = Vec::with_capacity(read.len());
        for index in read {
            let (name, found) = (&names[index], found.next());
            let (spec, origin) = match (self.specs.get(name), found) {
                (Some(spec), _) => (spec.clone(), Origin::Declared),
                (None, None) => return Err(Error::internal(format!("no type for column `{name}`"))),
                (None, Some(found)) => {
                    let spec = match specs.get(&found.dtype()) {
                        Some(spec) => spec.clone(),
                        None => specs.entry(found.dtype()).or_insert(found.spec()?).clone(),
                    };
                    (spec, Origin::Found(found))
                }
            };
            columns.push(Column::new(name, index, spec, origin, self.missing.clone())?);
        }
        if header == Header::Ignored {
            self.warn_of_lost_row(&names, &columns);
        }
        let limits = *self.files.reading_limits();
        Ok(CsvFormat { dialect: self.dialect, header, names, columns, utf8: self.utf8, limits })
    }
}

impl Csv {
    /// Warns if the line that is skipped as a header looks like data.
    fn warn_of_lost_row(&self, names: &[String], columns: &[Column]) {
        // A file that cannot be read is reported when its rows are.
        let Ok(paths) = self.files.resolve() else { return };
        let n = self.n_sampled.saturating_add(1);
        let Ok(sample) = Sample::read(&self.files, &paths[0], self.dialect, 2, n) else { return };
        let Some(first) = sample.rows().next().filter(|first| first.len() == names.len()) else { return };
        let looks_like = |column: &Column| {
            let text = first.field(column.index);
            match column.dtype {
                DType::Str => {
                    let mut others = sample.rows().skip(1).filter(|row| row.len() == names.len());
                    !text.is_empty() && others.any(|row| row.field(column.index) == text)
                }
                _ => column.is_number(text),
            }
        };
        let is_name = |column: &Column| first.field(column.index).trim_ascii() == column.name.as_bytes();
        let is_text_over_numbers = |column: &Column| {
            let text = first.field(column.index);
            column.dtype != DType::Str && !column.is_number(text) && !is_missing(text, &self.missing)
        };
        if columns.iter().any(looks_like) && !columns.iter().any(|c| is_name(c) || is_text_over_numbers(c)) {
            let fields: Vec<String> = (0..first.len().min(LISTED)).map(|i| shown(first.field(i))).collect();
            estimand_tensor::warn!(
                "the first line of {} is skipped as a header, but it looks like data: {}. If the files have no header, call \
                 header(false) too: column_names alone only replaces the names of a header",
                paths[0].display(),
                fields.join(&char::from(self.dialect.delimiter).to_string())
            );
        }
    }
}

/// Lists the first of many names.
fn listed<T: std::fmt::Display>(names: impl ExactSizeIterator<Item = T>) -> String {
    let n = names.len();
    let text = names.take(LISTED).map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
    if n > LISTED { format!("{text} and {} more", n - LISTED) } else { text }
}

impl From<Csv> for Dataset {
    fn from(csv: Csv) -> Dataset {
        csv.dataset()
    }
}

struct CsvSource {
    csv: Csv,
    format: OnceLock<Result<Arc<CsvFormat>>>,
    /// Whether the warning about missing numbers was given.
    told: Told,
}

impl CsvSource {
    fn format(&self) -> Result<Arc<CsvFormat>> {
        self.format.get_or_init(|| self.csv.format().map(Arc::new)).clone()
    }
}

impl Stage for CsvSource {
    fn describe(&self) -> String {
        let files = self.csv.files.describe();
        match self.format.get() {
            Some(Ok(format)) => {
                let columns = format.columns.iter().map(|c| format!("{} {}", c.name, c.dtype));
                format!("csv: {} from {files}", listed(columns))
            }
            _ => format!("csv: {files}"),
        }
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.csv.files.resolve()?.to_vec())
    }

    fn identity(&self, cx: &InputContext) -> String {
        let mut text = self.describe() + &self.csv.files.identity(cx);
        if let Some(Ok(format)) = self.format.get()
            && format.columns.len() > LISTED
        {
            let all: String = format.columns.iter().map(|c| format!("{} {},", c.name, c.dtype)).collect();
            text += &format!(", columns {:016x}", fingerprint64(all.as_bytes()));
        }
        text
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.format()?.columns.iter().map(|column| (column.name.clone(), column.spec.clone())).collect())
    }

    fn reshuffles(&self) -> bool {
        self.csv.files.is_shuffled()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let format = self.format()?;
        let rows = FileStream::open(&self.csv.files, format.clone(), cx, from)?;
        Ok(Box::new(CountedStream::new(rows, &format, self.csv.files.to_string(), self.told.clone())))
    }
}
