//! Tables of named numbers, with aligned decimal points.

use std::fmt;

/// Named numbers, displayed one per line, or in several columns below a header.
///
/// ```
/// use estimand::console::Table;
///
/// let table = Table::new([("loss", 12.5), ("accuracy", 0.96875), ("global_step", 200.0)]);
/// assert_eq!(table.to_string(), "\
/// accuracy       0.96875
/// global_step  200
/// loss          12.5");
///
/// let table = Table::with_header(["op"], ["calls", "ms"])
///     .row(["MatMul"], [Some(10.0), Some(0.25)])
///     .row(["Reshape"], [Some(2.0), None]);
/// assert_eq!(table.to_string(), "\
/// op       calls    ms
/// MatMul      10  0.25
/// Reshape      2");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of columns; none if there is no header.
    header: Vec<String>,
    /// The number of text columns; the others are numbers.
    n_texts: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table of these numbers, sorted by name, with six significant digits.
    pub fn new<N: Into<String>>(values: impl IntoIterator<Item = (N, f64)>) -> Table {
        let mut rows: Vec<_> = values.into_iter().map(|(name, value)| vec![name.into(), number(value)]).collect();
        rows.sort();
        Table { header: Vec::new(), n_texts: 1, rows }
    }

    /// Makes a table without rows, with text columns followed by number columns.
    pub fn with_header<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        numbers: impl IntoIterator<Item = &'a str>,
    ) -> Table {
        let mut header: Vec<String> = texts.into_iter().map(str::to_string).collect();
        let n_texts = header.len();
        header.extend(numbers.into_iter().map(str::to_string));
        Table { header, n_texts, rows: Vec::new() }
    }

    /// Appends a row. A missing number leaves its cell empty.
    #[must_use]
    pub fn row<T: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = T>,
        numbers: impl IntoIterator<Item = Option<f64>>,
    ) -> Table {
        let numbers = numbers.into_iter().map(|value| value.map_or(String::new(), number));
        self.rows.push(texts.into_iter().map(Into::into).chain(numbers).collect());
        self
    }

    /// Returns the formatted cells of a column: all of one width, except for trailing spaces.
    fn column(&self, i: usize) -> Vec<String> {
        let cells = || self.rows.iter().map(|row| row.get(i).map_or("", String::as_str));
        let name = self.header.get(i);
        let mut shown: Vec<String> = if i < self.n_texts {
            name.map(String::as_str).into_iter().chain(cells()).map(str::to_string).collect()
        } else {
            let before_point = |number: &str| number.find(['.', 'e']).unwrap_or(number.len());
            let before = cells().map(before_point).max().unwrap_or(0);
            let mut numbers: Vec<String> =
                cells().map(|cell| format!("{:indent$}{cell}", "", indent = before - before_point(cell))).collect();
            if let Some(name) = name {
                // The header ends where the column ends; a long header pushes the numbers to the
                // right.
                let width = numbers.iter().map(String::len).max().unwrap_or(0);
                let pushed = " ".repeat(name.len().saturating_sub(width));
                numbers.iter_mut().for_each(|number| number.insert_str(0, &pushed));
                numbers.insert(0, format!("{name:>width$}"));
            }
            numbers
        };
        let width = shown.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        shown.iter_mut().for_each(|cell| cell.push_str(&" ".repeat(width - cell.chars().count())));
        shown
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.header.len());
        let columns: Vec<Vec<String>> = (0..n_columns).map(|i| self.column(i)).collect();
        let n_lines = self.rows.len() + usize::from(!self.header.is_empty());
        for line in 0..n_lines {
            let cells: Vec<&str> = columns.iter().filter_map(|column| Some(column.get(line)?.as_str())).collect();
            let new_line = if line > 0 { "\n" } else { "" };
            write!(f, "{new_line}{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Formats a number with six significant digits and no trailing zeros; very large and very small
/// ones with an exponent.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        // A count, such as the global step, keeps all of its digits.
        return value.to_string();
    }
    // The exponent after rounding: 0.9999999 is 1.
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-5..15).contains(&exponent) {
        let digits = trimmed(digits);
        return format!("{digits}e{exponent}");
    }
    let n_decimals = usize::try_from(5 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.n_decimals$}")).to_string()
}

/// Removes trailing zeros of the decimals.
fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits_that_count() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (2.0 / 3.0, "0.666667"),
            (0.999_999_9, "1"),
            (123.456_789, "123.457"),
            (1_234_567.25, "1234567"),
            (20_000_000.0, "20000000"),
            (0.000_012_345_678, "0.0000123457"),
            (1.5e-9, "1.5e-9"),
            (6.02214e23, "6.02214e23"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn points_stand_one_below_the_other() {
        let table = Table::new([("b", 10.25), ("a/long", -0.5), ("c", f64::NAN), ("d", 1e-9)]);
        assert_eq!(table.to_string(), "a/long   -0.5\nb        10.25\nc       NaN\nd         1e-9");
        assert_eq!(Table::new::<String>([]).to_string(), "");
    }
}
