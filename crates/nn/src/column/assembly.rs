//! The first steps of every layer of columns: check and order the columns, and name the scopes of
//! their variables.

use estimand_graph::Graph;
use estimand_tensor::{Error, Result};

use super::{Columns, FeatureColumn};
use crate::layer::name;

/// Checks the columns and sorts them by the bytes of their names. Duplicate names are an error.
pub(super) fn sorted(columns: impl Into<Columns>) -> Result<Vec<FeatureColumn>> {
    let Columns(mut columns) = columns.into();
    if columns.is_empty() {
        return Err(Error::config("the list of feature columns is empty").help("give the model at least one column"));
    }
    columns.iter().try_for_each(|column| column.check())?;
    columns.sort_by_key(|column| column.name());
    for pair in columns.windows(2) {
        if let [a, b] = pair
            && a.name() == b.name()
        {
            let site = a.site();
            let text =
                format!("two columns are called `{}`; the other was made at {}:{}", a.name(), site.file(), site.line());
            return Err(b.place(Error::config(text).help("give the model each column once")));
        }
    }
    Ok(columns)
}

/// The name of the next layer of a kind inside the open scope: `input_layer`, `input_layer_1`, ...
pub(super) fn layer_name(graph: &Graph, kind: &str) -> String {
    let path = graph.scope_path();
    if path.is_empty() {
        return name::made(graph, kind);
    }
    let full = name::made(graph, &format!("{path}/{kind}"));
    full.strip_prefix(&format!("{path}/")).unwrap_or(&full).to_string()
}

/// Converts a column's name to the name of a scope.
///
/// TF: characters that are not allowed in the name of a scope become `_`.
pub(super) fn scope_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}
