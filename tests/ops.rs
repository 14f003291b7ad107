//! `docs/ops.md` is true: it has every operation of the library with the nodes that it adds, and
//! only such names of TensorFlow as there are.
//!
//! `page.rs` reads the page, `calls.rs` builds each operation, `sources.rs` finds the operations in
//! the code, so that a new one cannot be forgotten. A check returns what is wrong, each complaint
//! with its name, so that it can be checked itself.

mod calls;
mod page;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use estimand::graph::op::ALL_OPS;

use calls::Built;
use page::Page;

const PAGE: &str = include_str!("../docs/ops.md");
const FIXTURE: &str = include_str!("../oracles/fixtures/tf_ops.txt");

fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "docs/ops.md:\n  {}", complaints.join("\n  "));
}

fn tensorflow() -> BTreeSet<&'static str> {
    let names: BTreeSet<&str> = FIXTURE.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(names.len() > 2_000, "the fixture has only {} names", names.len());
    names
}

/// Every operation has one row, with the nodes that it adds.
fn about_nodes(page: &Page, built: &BTreeMap<String, Built>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, built) in built {
        let rows: Vec<_> = page.rows.iter().filter(|row| row.ours.contains(name)).collect();
        let [row] = rows[..] else {
            complaints.push(format!("`{name}` is in {} rows, expected one", rows.len()));
            continue;
        };
        // A row of several operations has the nodes of all.
        let same = |node: &str| row.nodes.iter().any(|listed| listed.trim_end_matches('*') == node);
        let missing: Vec<_> = built.nodes.iter().filter(|node| !same(node)).map(String::as_str).collect();
        if !missing.is_empty() {
            complaints.push(format!("line {}: `{name}` also adds {}", row.line, missing.join(", ")));
        }
    }
    for row in &page.rows {
        for name in row.ours.iter().filter(|name| !built.contains_key(*name)) {
            complaints.push(format!("line {}: we have no `{name}`", row.line));
        }
        let made: BTreeSet<&str> = row
            .ours
            .iter()
            .filter_map(|name| built.get(name))
            .flat_map(|built| built.nodes.iter())
            .map(String::as_str)
            .collect();
        for node in row.nodes.iter().filter(|node| !made.contains(node.trim_end_matches('*'))) {
            complaints.push(format!("line {}: nothing there adds a `{node}`", row.line));
        }
    }
    complaints
}

/// TensorFlow has every name that the page says it has, and none of those that are our own.
fn about_tensorflow(page: &Page, names: &BTreeSet<&str>) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in &page.rows {
        for name in row.tensorflow.iter().filter(|name| !names.contains(name.as_str())) {
            complaints.push(format!("line {}: TensorFlow has no `{name}`", row.line));
        }
    }
    let listed = page.rows.iter().flat_map(|row| &row.nodes).chain(&page.gradients);
    for node in listed.collect::<BTreeSet<_>>() {
        let own = node.strip_suffix('*');
        let raw = format!("raw_ops.{}", own.unwrap_or(node));
        match (own, names.contains(raw.as_str())) {
            (Some(own), true) => complaints.push(format!("`{own}*` is an op of TensorFlow's")),
            (None, false) => complaints.push(format!("`{node}` is no raw op of TensorFlow's, and has no `*`")),
            (Some(own), false) if !page.own.contains(own) => complaints.push(format!("`{own}*` is not explained")),
            _ => {}
        }
    }
    let used = |own: &str| {
        let marked = format!("{own}*");
        page.gradients.contains(&marked) || page.rows.iter().any(|row| row.nodes.contains(&marked))
    };
    let unused = page.own.iter().filter(|own| !used(own));
    complaints.extend(unused.map(|own| format!("`{own}` is explained, and nothing adds it")));
    complaints
}

/// What gradients add beyond the tables of operations.
fn about_gradients(page: &Page, gradients: &BTreeSet<String>) -> Vec<String> {
    let listed: BTreeSet<&str> = page.gradients.iter().map(|node| node.trim_end_matches('*')).collect();
    let made: BTreeSet<&str> = gradients.iter().map(String::as_str).collect();
    let missing = made.difference(&listed).map(|node| format!("gradients add `{node}`, which is not listed"));
    let extra = listed.difference(&made).map(|node| format!("no gradient adds `{node}`"));
    missing.chain(extra).collect()
}

#[test]
fn every_operation_has_a_row_with_its_nodes() {
    assert_none(about_nodes(&Page::read(PAGE), &calls::built()));
}

#[test]
fn every_name_of_tensorflow_exists() {
    assert_none(about_tensorflow(&Page::read(PAGE), &tensorflow()));
}

#[test]
fn gradients_add_what_the_page_says() {
    assert_none(about_gradients(&Page::read(PAGE), &calls::gradient_nodes(&calls::built())));
}

#[test]
fn every_method_of_the_sources_is_built_or_known_to_be_none() {
    let built = calls::built();
    let missing = sources::operations().into_iter().filter(|name| !built.contains_key(name));
    assert_none(missing.map(|name| format!("`{name}` has no call in tests/ops/calls.rs and no row")).collect());
}

#[test]
fn every_op_is_built_or_made_by_a_gradient() {
    let built = calls::built();
    let kinds: BTreeSet<&str> = built.values().flat_map(|built| built.kinds.iter().copied()).collect();
    let missing = ALL_OPS.iter().filter(|kind| !kinds.contains(*kind));
    assert_none(missing.map(|kind| format!("no row and no gradient adds the op `{kind}`")).collect());
}

#[test]
fn a_page_that_is_wrong_is_found_out() {
    let page = Page::read(
        "| `Tensor::abs`, `Tensor::gone` | `math.abs` | `Abs`, `Neg` | |\n| `Tensor::exp` | `math.exq` | `Odd` | |\n\
         ## Ops of gradients\n| `ReluGrad`, `Own*` |\n## Ops of our own\n| `Mine` | text |\n",
    );
    let built = |node: &str| Built { nodes: vec![node.to_string()], ..Built::default() };
    let all = [("Tensor::abs", "Abs"), ("Tensor::exp", "Exp"), ("Tensor::log", "Log")];
    let all = all.map(|(name, node)| (name.to_string(), built(node))).into();
    assert_eq!(
        about_nodes(&page, &all),
        [
            "line 2: `Tensor::exp` also adds Exp",
            "`Tensor::log` is in 0 rows, expected one",
            "line 1: we have no `Tensor::gone`",
            "line 1: nothing there adds a `Neg`",
            "line 2: nothing there adds a `Odd`",
        ]
    );
    let names = ["math.abs", "raw_ops.Abs", "raw_ops.Neg", "raw_ops.ReluGrad"].into();
    assert_eq!(
        about_tensorflow(&page, &names),
        [
            "line 2: TensorFlow has no `math.exq`",
            "`Odd` is no raw op of TensorFlow's, and has no `*`",
            "`Own*` is not explained",
            "`Mine` is explained, and nothing adds it",
        ]
    );
    let gradients = ["ReluGrad", "EluGrad"].map(String::from).into();
    assert_eq!(
        about_gradients(&page, &gradients),
        ["gradients add `EluGrad`, which is not listed", "no gradient adds `Own`"]
    );
}
