//! Numbers with names, as people read them: sorted by name, decimal points one below the other.

use std::fmt;

/// Named numbers, displayed one on a line.
///
/// ```
/// use estimand::console::Table;
///
/// let table = Table::new([("loss", 12.5), ("accuracy", 0.96875), ("global_step", 200.0)]);
/// assert_eq!(table.to_string(), "\
/// accuracy       0.96875
/// global_step  200
/// loss          12.5");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    rows: Vec<(String, String)>,
}

impl Table {
    /// A table of these numbers, with six digits that count.
    pub fn new<N: Into<String>>(values: impl IntoIterator<Item = (N, f64)>) -> Table {
        let mut rows: Vec<_> = values.into_iter().map(|(name, value)| (name.into(), number(value))).collect();
        rows.sort();
        Table { rows }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name_width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let before_point = |number: &str| number.find(['.', 'e']).unwrap_or(number.len());
        let width = self.rows.iter().map(|(_, number)| before_point(number)).max().unwrap_or(0);
        for (i, (name, number)) in self.rows.iter().enumerate() {
            let new_line = if i > 0 { "\n" } else { "" };
            let indent = width - before_point(number);
            write!(f, "{new_line}{name:name_width$}  {:indent$}{number}", "")?;
        }
        Ok(())
    }
}

/// A number with six digits that count and none that do not; very large and very small ones with an exponent.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        // A count, such as the global step: all of its digits.
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

/// Without zeros at the end of the decimals.
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
