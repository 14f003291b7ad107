//! Infers a schema from statistics.

use std::collections::HashSet;

use estimand_tensor::{DType, Error, Result};

use super::column::{ColumnKind, SchemaColumn, Value};
use crate::Statistics;
use crate::statistics::{ColumnStatistics, Role, TermStatistics};

/// The largest number of distinct strings that become a domain.
const MAX_DOMAIN: u64 = 100;

/// The largest number of distinct integers that count as categories, and how often each must occur
/// on average.
const MAX_CODES: u64 = 20;
const CODE_REPEATS: u64 = 10;

/// The largest size of a vocabulary. Hash columns with more terms.
const MAX_VOCABULARY: u64 = 50_000;

/// The percentage of distinct values, and the least number of rows, at which a column counts as an
/// identifier of rows.
const ID_PERCENT: u64 = 95;
const ID_ROWS: u64 = 50;

pub(super) fn columns(statistics: &Statistics) -> Result<Vec<SchemaColumn>> {
    if statistics.n_rows() == 0 {
        return Err(Error::config("the schema cannot be inferred: the data have no rows")
            .help("infer it from data with at least one row"));
    }
    let columns = statistics.columns().iter().map(column).collect::<Result<Vec<_>>>()?;
    let mut names = HashSet::new();
    for column in &columns {
        if !names.insert(column.name.as_str()) {
            return Err(Error::config(format!("two columns of the schema would have the name `{}`", column.name))
                .help("rename one of them; features, labels and the weights (`weights`) need different names"));
        }
    }
    Ok(columns)
}

fn column(found: &ColumnStatistics) -> Result<SchemaColumn> {
    let dims = match (&found.lengths, &found.dims) {
        (Some(_), Some(dims)) if dims.is_empty() => None,
        (None, Some(dims)) => Some(dims.clone()),
        _ => {
            return Err(Error::unsupported(format!(
                "the rows of column `{}` differ in more than one axis",
                found.name
            ))
            .help("infer the schema before rows are padded"));
        }
    };
    let kind = kind(found);
    let is_complete = found.n_missing() == 0 && found.lengths.is_none_or(|lengths| lengths.n_empty == 0);
    let domain = domain(found, kind);
    let (min, max) = match &found.numbers {
        // The domain is stricter than bounds.
        Some(_) if domain.is_some() || found.dtype == DType::Bool => (None, None),
        Some(numbers) => match numbers.int_range() {
            Some((min, max)) => (Some(Value::Int(min)), Some(Value::Int(max))),
            None if numbers.n_values == 0 => (None, None),
            None => (Some(Value::Float(numbers.min)), Some(Value::Float(numbers.max))),
        },
        None => (None, None),
    };
    Ok(SchemaColumn {
        name: if found.role == Role::Weights { "weights".to_string() } else { found.name.clone() },
        role: found.role,
        dtype: found.dtype,
        default: default(found, dims.is_some() && !is_complete),
        dims,
        kind,
        required: is_complete,
        min,
        max,
        domain,
    })
}

fn default(found: &ColumnStatistics, has_default: bool) -> Option<Value> {
    // The default that the rows were read with.
    if let Some(default) = found.numbers.as_ref().and_then(|numbers| numbers.default).filter(|_| has_default) {
        let is_float = matches!(found.dtype, DType::F32 | DType::F64);
        return Some(if is_float { Value::Float(default) } else { Value::Int(default as i64) });
    }
    match found.dtype {
        DType::Str if has_default => Some(Value::Text(String::new())),
        DType::F32 | DType::F64 if has_default => Some(Value::Float(f64::NAN)),
        _ => None,
    }
}

fn kind(found: &ColumnStatistics) -> ColumnKind {
    let Some(terms) = &found.terms else { return ColumnKind::Numeric };
    let is_text = found.dtype == DType::Str;
    if found.role == Role::Weights || found.dtype == DType::Bool {
        return ColumnKind::Numeric;
    }
    let few = if is_text { MAX_DOMAIN } else { MAX_CODES.min(terms.n_values / CODE_REPEATS) };
    match terms.n_distinct() {
        Some(n) if is_id(n, terms) => ColumnKind::Id,
        Some(n) if n <= few => ColumnKind::Vocabulary,
        _ if !is_text => ColumnKind::Numeric,
        Some(n) if n <= MAX_VOCABULARY => ColumnKind::Vocabulary,
        _ => ColumnKind::Hash,
    }
}

fn is_id(n_distinct: u64, terms: &TermStatistics) -> bool {
    terms.n_values >= ID_ROWS && n_distinct.saturating_mul(100) >= terms.n_values.saturating_mul(ID_PERCENT)
}

/// All values, most frequent first, if there are few enough.
fn domain(found: &ColumnStatistics, kind: ColumnKind) -> Option<Vec<Value>> {
    let terms = found.terms.as_ref().filter(|_| kind == ColumnKind::Vocabulary)?;
    let n = terms.n_distinct().filter(|&n| n > 0 && n <= MAX_DOMAIN)? as usize;
    if found.dtype == DType::Str {
        return terms.texts(n).map(|texts| texts.into_iter().map(Value::Text).collect());
    }
    Some(terms.ints(n).into_iter().map(Value::Int).collect())
}
