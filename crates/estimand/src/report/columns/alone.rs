//! Examines a single column: constant, mostly missing, or like an id.

use super::table::{Column, Role, Table};
use super::{Finding, MIN_ROWS, Suspicion, percent};

/// Strings with at least this share of distinct values are ids.
const ID_TEXTS: f64 = 0.95;
/// The same for whole numbers: amounts and times can be nearly all distinct too.
const ID_INTS: f64 = 0.99;
/// A column with at least this share of missing values is mostly missing.
const MISSING_SHARE: f64 = 0.5;

/// Returns a finding if the column is suspicious.
pub(super) fn look(column: &Column, table: &Table) -> Option<Finding> {
    constant(column, table).or_else(|| id_like(column, table)).or_else(|| mostly_missing(column, table))
}

fn constant(column: &Column, table: &Table) -> Option<Finding> {
    let n_missing = column.n_missing();
    let evidence = match column.values.first() {
        None => format!("all {} values are missing", table.n_rows),
        Some((value, _)) if column.values.len() == 1 && n_missing == 0 && table.n_rows > 1 => {
            format!("all {} values are `{}`", table.n_rows, value.text())
        }
        _ => return None,
    };
    let advice = match column.role {
        Role::Label => "there is nothing to learn: look at where the labels come from",
        _ => "leave it out, or look at where it comes from",
    };
    Some(finding(column, Suspicion::Constant, evidence, advice))
}

fn id_like(column: &Column, table: &Table) -> Option<Finding> {
    if column.is_float() || column.role == Role::Label || table.n_distinct_rows < MIN_ROWS {
        return None;
    }
    let n_distinct = column.values.len();
    let share = n_distinct as f64 / table.n_distinct_rows as f64;
    let first = column.numbers.get(..table.n_distinct_rows).unwrap_or_default();
    let counts_up = first.windows(2).all(|pair| pair[0] < pair[1]) && !first.is_empty();
    if share < if column.is_number() { ID_INTS } else { ID_TEXTS } {
        return None;
    }
    let order = if counts_up { ", and each is larger than the one before" } else { "" };
    let evidence = format!("{n_distinct} different values in {} different rows{order}", table.n_distinct_rows);
    let advice = "leave it out: a model learns such values by heart, and new rows have others";
    Some(finding(column, Suspicion::IdLike, evidence, advice))
}

fn mostly_missing(column: &Column, table: &Table) -> Option<Finding> {
    let (n_missing, n) = (column.n_missing(), table.n_rows);
    let share = n_missing as f64 / n as f64;
    (share > MISSING_SHARE).then(|| {
        let evidence = format!("{n_missing} of {n} values are missing ({})", percent(share));
        finding(column, Suspicion::MostlyMissing, evidence, "leave it out, or give it a default that says so")
    })
}

pub(super) fn finding(column: &Column, suspicion: Suspicion, evidence: String, advice: &str) -> Finding {
    Finding { column: column.name.clone(), suspicion, evidence, advice: advice.to_string() }
}
