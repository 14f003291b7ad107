//! The operations of the library, found in its sources: public methods that make tensors.

use std::path::Path;

/// Files of `crates/graph/src` with operations.
const FILES: [&str; 5] = ["graph.rs", "lookup.rs", "ragged.rs", "table.rs", "tensor.rs"];
const TYPES: [&str; 4] = ["Graph", "LookupTable", "RaggedTensor", "Tensor"];

/// Methods of these files that are no operations: what a tensor is, how a graph is built.
const OTHERS: &[&str] = &[
    "Graph::add_variable",
    "Graph::body",
    "Graph::check",
    "Graph::constrain",
    "Graph::error",
    "Graph::find",
    "Graph::get_variable",
    "Graph::new",
    "Graph::node",
    "Graph::outside",
    "Graph::output",
    "Graph::read",
    "Graph::reopen",
    "Graph::same",
    "Graph::scope",
    "Graph::scope_path",
    "Graph::symbols_mut",
    "LookupTable::default_id",
    "LookupTable::dtype",
    "LookupTable::file",
    "LookupTable::from_file",
    "LookupTable::from_ints",
    "LookupTable::from_list",
    "LookupTable::n_ids",
    "LookupTable::n_oov_buckets",
    "LookupTable::new",
    "LookupTable::unknown",
    "LookupTable::vocabulary",
    "RaggedTensor::feed",
    "RaggedTensor::n_rows",
    "RaggedTensor::new",
    "RaggedTensor::with_values",
    "Tensor::channels",
    "Tensor::describe",
    "Tensor::dim",
    "Tensor::dtype",
    "Tensor::graph",
    "Tensor::is_poisoned",
    "Tensor::name",
    "Tensor::rank",
    "Tensor::shape",
    "Tensor::spec",
    "Tensor::value",
    "Tensor::variable",
];

/// All operations, as `Tensor::abs`.
pub fn operations() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../graph/src");
    let mut paths: Vec<_> = FILES.iter().map(|file| folder.join(file)).collect();
    let ops = std::fs::read_dir(folder.join("ops")).unwrap();
    paths.extend(ops.map(|entry| entry.unwrap().path()));
    let methods = paths.iter().flat_map(|path| methods(&std::fs::read_to_string(path).unwrap()));
    let mut found: Vec<String> = methods.filter(|name| !OTHERS.contains(&name.as_str())).collect();
    found.sort();
    found.dedup();
    assert!(found.len() > 150, "only {} operations in {}", found.len(), folder.display());
    found
}

/// The public methods of a source, also those that a macro makes of lines such as `abs => Abs,`.
fn methods(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut owner, mut in_macro) = ("", false);
    for line in source.lines() {
        if let Some(of) = line.strip_prefix("impl ") {
            owner = of.strip_suffix(" {").filter(|of| TYPES.contains(of)).unwrap_or_default();
        } else if line == "}" {
            (owner, in_macro) = ("", false);
        } else if line.ends_with("_methods! {") || line == "reductions! {" {
            (owner, in_macro) = ("Tensor", true);
        }
        let names = match (line.strip_prefix("    pub fn "), line.split_once(" => ")) {
            (Some(rest), _) => rest.split(['(', '<']).next().unwrap_or_default(),
            (None, Some((names, _))) if in_macro => names.trim(),
            _ => continue,
        };
        if !owner.is_empty() {
            found.extend(names.split(", ").map(|name| format!("{owner}::{name}")));
        }
    }
    found
}

#[test]
fn methods_are_found_however_they_are_made() {
    let source = "impl Tensor {\n    pub fn cast(&self) {}\n    fn own(&self) {}\n        _ => None,\n    pub fn select<T>(\n}\nimpl fmt::Debug for Tensor {\n\
                  unary_methods! {\n    /// Text\n    abs => Abs,\n}\nreductions! {\n    sum, sum_axes => Sum,\n}\nimpl Parsed {\n    pub fn values(&self) {}\n}\n";
    assert_eq!(methods(source), ["Tensor::cast", "Tensor::select", "Tensor::abs", "Tensor::sum", "Tensor::sum_axes"]);
}
