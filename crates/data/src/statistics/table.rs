//! Prints statistics as a table.

use std::fmt;

use super::{ColumnStatistics, NumberStatistics, Role, Statistics, TermStatistics};

/// The number of terms shown per column.
const SHOWN: usize = 3;

/// The longest term that is shown whole, in characters.
const LONGEST: usize = 24;

/// Prints numbers and strings in separate tables.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rows", self.n_rows())?;
        let numbers = self.columns().iter().filter_map(|column| Some(number_line(column, column.numbers.as_ref()?)));
        let header =
            ["numbers", "type", "missing", "zeros", "mean", "std", "min", "25%", "50%", "75%", "max", "distinct"];
        table(f, &header, numbers.collect())?;
        let is_text = |column: &&ColumnStatistics| column.numbers.is_none();
        let text =
            self.columns().iter().filter(is_text).filter_map(|column| Some(term_line(column, column.terms.as_ref()?)));
        table(f, &["strings", "type", "missing", "distinct", "length", "most frequent"], text.collect())
    }
}

fn number_line(column: &ColumnStatistics, numbers: &NumberStatistics) -> Vec<String> {
    let quartiles = [0.25, 0.5, 0.75].map(|q| short(numbers.quantile(q)));
    let mut line = vec![name(column), kind(column), numbers.n_missing.to_string(), numbers.n_zeros.to_string()];
    line.extend([numbers.mean, numbers.std, numbers.min].map(short));
    line.extend(quartiles);
    line.push(short(numbers.max));
    let distinct = column.terms.as_ref().map_or(numbers.n_distinct(), TermStatistics::n_distinct);
    line.push(distinct.map_or("many".to_string(), |n| n.to_string()));
    line
}

fn term_line(column: &ColumnStatistics, terms: &TermStatistics) -> Vec<String> {
    let frequent = terms.top(SHOWN, 1).into_iter().map(|(term, count)| format!("{} {count}", quoted(&term)));
    vec![
        name(column),
        kind(column),
        terms.n_missing.to_string(),
        terms.n_distinct().map_or("many".to_string(), |n| n.to_string()),
        short(terms.mean_length),
        frequent.collect::<Vec<_>>().join(", "),
    ]
}

fn name(column: &ColumnStatistics) -> String {
    match column.role {
        Role::Feature => column.name.clone(),
        Role::Label => format!("{} (label)", column.name),
        Role::Weights => "(weights)".to_string(),
    }
}

fn kind(column: &ColumnStatistics) -> String {
    match (&column.lengths, &column.dims) {
        (Some(lengths), _) => format!("{} ragged {}..{}", column.dtype, lengths.min, lengths.max),
        (None, Some(dims)) if dims.is_empty() => column.dtype.to_string(),
        (None, Some(dims)) => format!("{}{dims:?}", column.dtype),
        (None, None) => format!("{} padded", column.dtype),
    }
}

/// Formats integers in full, other numbers to five digits.
fn short(value: f64) -> String {
    if value.is_nan() {
        return "-".to_string();
    }
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        return format!("{value}");
    }
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => digits.to_string(),
    };
    if !(1e-4..1e15).contains(&size) {
        let text = format!("{value:.4e}");
        return text.split_once('e').map_or(text.clone(), |(digits, power)| format!("{}e{power}", trimmed(digits)));
    }
    let digits = (4 - size.log10().floor() as i32).clamp(0, 8) as usize;
    trimmed(&format!("{value:.digits$}"))
}

fn quoted(term: &str) -> String {
    let shown: String = term.chars().take(LONGEST).collect();
    if shown.len() < term.len() { format!("{shown:?}..") } else { format!("{shown:?}") }
}

fn table(f: &mut fmt::Formatter<'_>, header: &[&str], lines: Vec<Vec<String>>) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    let header = header.iter().map(|name| name.to_string()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(header).chain(lines).collect();
    let widths: Vec<usize> =
        (0..lines[0].len()).map(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0)).collect();
    writeln!(f)?;
    for line in lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        writeln!(f, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
