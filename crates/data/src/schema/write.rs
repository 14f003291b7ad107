//! Writes an inferred schema as TOML, with the statistics in comments.

use estimand_tensor::DType;

use super::column::{ColumnKind, SchemaColumn, Value};
use crate::Statistics;
use crate::statistics::{ColumnStatistics, Role};

const HEAD: &str = "\
# Each table is a column; what is wrong may be edited, and lines beginning with default, min, max and domain may be removed.
#   role      \"feature\", \"label\" or \"weights\"
#   type      \"f32\", \"f64\", \"i32\", \"i64\", \"u8\", \"bool\" or \"string\"
#   shape     sizes of one row's axes, [] for one value, or \"ragged\"
#   kind      a suggestion: \"numeric\", \"vocabulary\" (some known terms), \"hash\" (very many terms), \"id\" (names rows, nothing to learn)
#   required  whether no value may be missing: NaN, an empty string, a ragged row without values
#   default   what stands for a value that a file does not have
#   min, max, domain   the values that are allowed
";

/// The column where comments begin, if the line is not longer.
const COMMENT: usize = 32;

pub(super) fn text(columns: &[SchemaColumn], statistics: &Statistics) -> String {
    let mut text = format!("# Inferred from {} rows.\n{HEAD}", statistics.n_rows());
    for (column, seen) in columns.iter().zip(statistics.columns()) {
        text.push_str(&format!("\n[columns.{}]\n", key(&column.name)));
        write(column, seen, &mut text);
    }
    text
}

fn write(column: &SchemaColumn, seen: &ColumnStatistics, text: &mut String) {
    let mut line = |key: &str, value: String, comment: String| {
        let line = format!("{key} = {value}");
        match comment.is_empty() {
            true => text.push_str(&format!("{line}\n")),
            false => text.push_str(&format!("{line:COMMENT$} # {comment}\n")),
        }
    };
    if column.role != Role::Feature {
        line("role", quoted(&column.role.to_string()), String::new());
    }
    line("type", quoted(&column.dtype.to_string()), String::new());
    match (&column.dims, &seen.lengths) {
        (None, Some(lengths)) => {
            let comment = format!("{} to {} values, none in {} rows", lengths.min, lengths.max, lengths.n_empty);
            line("shape", quoted("ragged"), comment);
        }
        (None, None) => line("shape", quoted("ragged"), String::new()),
        (Some(dims), _) if dims.is_empty() => {}
        (Some(dims), _) => line("shape", format!("{dims:?}"), String::new()),
    }
    line("kind", quoted(&column.kind.to_string()), why(column, seen));
    line(
        "required",
        column.required.to_string(),
        format!("{} of {} values are missing", seen.n_missing(), seen.n_values() + seen.n_missing()),
    );
    if let Some(default) = &column.default {
        line("default", value(column, default), String::new());
    }
    let numbers = seen.numbers.as_ref().filter(|numbers| numbers.n_values > 0);
    let spread = numbers.map_or(String::new(), |n| format!("mean {:.6}, deviation {:.6}", n.mean, n.std));
    if let Some(min) = &column.min {
        line("min", value(column, min), spread);
    }
    if let Some(max) = &column.max {
        line("max", value(column, max), String::new());
    }
    if let Some(domain) = &column.domain {
        text.push_str("domain = [\n");
        let counts = seen.terms.as_ref().map_or(Vec::new(), |terms| terms.top(domain.len(), 1));
        for (member, (_, count)) in domain.iter().zip(counts) {
            let member = format!("    {},", value(column, member));
            text.push_str(&format!("{member:COMMENT$} # {count} times\n"));
        }
        text.push_str("]\n");
    }
}

/// The reason for the suggested kind.
fn why(column: &SchemaColumn, seen: &ColumnStatistics) -> String {
    let distinct = match (&seen.terms, &seen.numbers) {
        (Some(terms), _) => terms.n_distinct(),
        (None, Some(numbers)) => numbers.n_distinct(),
        (None, None) => None,
    };
    let n = distinct.map_or("very many".to_string(), |n| n.to_string());
    match column.kind {
        ColumnKind::Id => format!("{n} distinct among {} values: nearly every row has its own", seen.n_values()),
        ColumnKind::Vocabulary if column.dtype != DType::Str => format!("{n} distinct values, so they may be codes"),
        _ => format!("{n} distinct values"),
    }
}

/// Formats a value as TOML.
fn value(column: &SchemaColumn, value: &Value) -> String {
    match (value, column.dtype) {
        (Value::Int(int), DType::Bool) => (*int != 0).to_string(),
        (Value::Int(int), _) => int.to_string(),
        // TOML has only this spelling of NaN.
        (Value::Float(float), _) if float.is_nan() => "nan".to_string(),
        (Value::Float(float), DType::F32) => format!("{:?}", *float as f32),
        (Value::Float(float), _) => format!("{float:?}"),
        (Value::Text(text), _) => quoted(text),
    }
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_string() } else { quoted(name) }
}

/// Formats a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
