//! `head`: the first rows of a dataset, printed as a table.

use std::fmt;

use estimand_tensor::{Array, Batch, DType, Feature, Result};

use crate::rows::slice;
use crate::stage::{InputContext, PIECE};
use crate::{Dataset, Position};

/// The largest number of columns that are printed: the first and the last half of them.
const COLUMNS: usize = 20;

/// The number of values that are printed of a row with several.
const VALUES: usize = 4;

/// The longest string that is printed whole, in characters.
const LONGEST: usize = 24;

/// The longest name that is printed whole, in characters.
const LONGEST_NAME: usize = 40;

/// The first rows of a dataset, from [`Dataset::head`]. Prints itself as a table.
#[derive(Clone, PartialEq)]
pub struct FirstRows {
    /// Pieces of rows, which may be padded to different sizes.
    pieces: Vec<Batch>,
}

impl Dataset {
    /// Reads the first `n` rows. The result prints itself as a table with the names, types and
    /// values of all columns.
    ///
    /// After [`batch`](Dataset::batch), these are the first rows of the first batches. The rows are
    /// those that a training with seed 0 sees first. Later passes over the dataset are not
    /// affected.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_arrays([
    ///     ("age", Array::from([39i64, 50, 38])),
    ///     ("job", Array::from_strings([3], ["clerk", "farmer", "clerk"])?),
    ///     ("rich", Array::from([0i64, 1, 0])),
    /// ]);
    /// assert_eq!(format!("\n{}", data.label("rich").batch(3).head(2)?), r#"
    ///    age  job       rich (label)
    ///    i64  string             i64
    /// 0   39  "clerk"              0
    /// 1   50  "farmer"             1
    /// "#);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn head(&self, n: usize) -> Result<FirstRows> {
        let cx = InputContext { n_threads: 1, ..InputContext::default() };
        let mut stream = self.open(&cx, &Position::default())?;
        let (mut pieces, mut n_left) = (Vec::new(), n);
        while n_left > 0 {
            let Some(item) = stream.pull(n_left.min(PIECE))? else { break };
            let n_rows = item.batch.n_rows().min(n_left);
            pieces.push(slice(&item.batch, 0..n_rows)?);
            n_left -= n_rows;
        }
        Ok(FirstRows { pieces })
    }
}

impl FirstRows {
    /// The number of rows; smaller than asked for if the dataset has fewer.
    pub fn n_rows(&self) -> usize {
        self.pieces.iter().map(Batch::n_rows).sum()
    }

    fn columns(&self) -> Vec<Column> {
        let Some(first) = self.pieces.first() else { return Vec::new() };
        let mut columns = Vec::new();
        for name in first.features().keys() {
            let find = |batch: &Batch| batch.features().get(name).cloned();
            columns.push(Column::new(shown_name(name), name, self.pieces.iter().map(|b| (b, find(b)))));
        }
        for name in first.labels().keys() {
            let find = |batch: &Batch| batch.labels().get(name).cloned();
            let title = format!("{} (label)", shown_name(name));
            columns.push(Column::new(title, name, self.pieces.iter().map(|b| (b, find(b)))));
        }
        if first.weights().is_some() {
            let find = |batch: &Batch| batch.weights().cloned().map(Feature::Dense);
            columns.push(Column::new("(weights)".to_string(), "", self.pieces.iter().map(|b| (b, find(b)))));
        }
        columns
    }
}

/// One column of the table.
struct Column {
    title: String,
    kind: String,
    cells: Vec<String>,
    /// Whether cells are single numbers, which are aligned on the right.
    is_number: bool,
}

impl Column {
    fn new<'a>(title: String, name: &str, pieces: impl Iterator<Item = (&'a Batch, Option<Feature>)>) -> Column {
        let mut column = Column { title, kind: String::new(), cells: Vec::new(), is_number: true };
        for (batch, feature) in pieces {
            // Rows of another kind, which only a function of batches can make.
            let Some(feature) = feature else {
                column.cells.extend((0..batch.n_rows()).map(|_| String::new()));
                continue;
            };
            let kind = kind(&feature);
            if column.kind.is_empty() {
                column.kind = kind;
            } else if column.kind != kind {
                column.kind = format!("{} padded", feature.dtype());
            }
            column.is_number &= is_single(&feature) && feature.dtype() != DType::Str;
            let missing = batch.missing(name).and_then(|missing| missing.as_slice::<bool>().ok());
            for row in 0..batch.n_rows() {
                let is_missing = missing.is_some_and(|missing| missing[row]);
                let mark = if is_missing { " (missing)" } else { "" };
                column.cells.push(format!("{}{mark}", cell(&feature, row)));
            }
        }
        column
    }

    /// A column that stands for others.
    fn gap(n_rows: usize) -> Column {
        let dots = || "...".to_string();
        Column { title: dots(), kind: dots(), cells: vec![dots(); n_rows], is_number: false }
    }

    fn width(&self) -> usize {
        let texts = [&self.title, &self.kind].into_iter().chain(&self.cells);
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn aligned(&self, text: &str, width: usize) -> String {
        if self.is_number { format!("{text:>width$}") } else { format!("{text:width$}") }
    }
}

/// A line of names, a line of types, and a line for each row.
impl fmt::Display for FirstRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_rows, mut columns) = (self.n_rows(), self.columns());
        let n_columns = columns.len();
        if n_rows == 0 {
            return writeln!(f, "no rows");
        }
        if n_columns > COLUMNS {
            columns.splice(COLUMNS / 2..n_columns - COLUMNS / 2, [Column::gap(n_rows)]);
        }
        let cells = (0..n_rows).map(|row| row.to_string()).collect();
        columns.insert(0, Column { title: String::new(), kind: String::new(), cells, is_number: false });
        let widths: Vec<usize> = columns.iter().map(Column::width).collect();
        let mut line = |text: &dyn Fn(&Column) -> String| {
            let cells: Vec<String> =
                columns.iter().zip(&widths).map(|(c, &width)| c.aligned(&text(c), width)).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())
        };
        line(&|column| column.title.clone())?;
        line(&|column| column.kind.clone())?;
        for row in 0..n_rows {
            line(&|column| column.cells[row].clone())?;
        }
        if n_columns > COLUMNS {
            writeln!(f, "{n_columns} columns")?;
        }
        Ok(())
    }
}

impl fmt::Debug for FirstRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name in one line. One feature may have the empty name.
fn shown_name(name: &str) -> String {
    if name.is_empty() {
        return "(unnamed)".to_string();
    }
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let more = if name.chars().nth(LONGEST_NAME).is_some() { ".." } else { "" };
    name.chars().take(LONGEST_NAME).map(plain).collect::<String>() + more
}

fn kind(feature: &Feature) -> String {
    match feature {
        Feature::Dense(array) if array.rank() == 1 => array.dtype().to_string(),
        Feature::Dense(array) => format!("{}{:?}", array.dtype(), array.dims().get(1..).unwrap_or_default()),
        Feature::Ragged(ragged) => format!("{} ragged", ragged.values().dtype()),
    }
}

fn is_single(feature: &Feature) -> bool {
    matches!(feature, Feature::Dense(array) if array.rank() == 1)
}

/// The text of one row of a feature.
fn cell(feature: &Feature, row: usize) -> String {
    let values = match feature {
        Feature::Dense(array) => array.rows(row..row + 1),
        Feature::Ragged(ragged) => ragged.row(row),
    };
    let Ok(values) = values else { return String::new() };
    if is_single(feature) {
        return value(&values, 0);
    }
    let shown: Vec<String> = (0..values.len().min(VALUES)).map(|i| value(&values, i)).collect();
    let more = if values.len() > VALUES { ", .." } else { "" };
    format!("[{}{more}]", shown.join(", "))
}

/// The text of the value with a number.
fn value(values: &Array, i: usize) -> String {
    fn at<T: estimand_tensor::Element>(values: &Array, i: usize) -> T {
        values.as_slice::<T>().ok().and_then(|slice| slice.get(i).copied()).unwrap_or_default()
    }
    match values.dtype() {
        DType::F32 => float(at::<f32>(values, i)),
        DType::F64 => float(at::<f64>(values, i)),
        DType::I32 => at::<i32>(values, i).to_string(),
        DType::I64 => at::<i64>(values, i).to_string(),
        DType::U8 => at::<u8>(values, i).to_string(),
        DType::Bool => at::<bool>(values, i).to_string(),
        DType::Str => quoted(values.string_slice().map(|strings| strings.get(i)).unwrap_or_default()),
    }
}

/// The shortest digits that stand for the number; `Debug` writes exponents for very large and very
/// small numbers.
fn float(value: impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// The beginning of a string, in quotes.
fn quoted(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let beginning = &bytes[..bytes.len().min(4 * (LONGEST + 1))];
    let text = String::from_utf8_lossy(beginning);
    let more = if text.chars().nth(LONGEST).is_some() { ".." } else { "" };
    format!("{:?}{more}", text.chars().take(LONGEST).collect::<String>())
}
