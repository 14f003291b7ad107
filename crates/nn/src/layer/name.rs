//! How layers are called: `dense`, `dense_1`, ..., counted per graph, as Keras does in a fresh one.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use estimand_graph::Graph;

/// The names of a graph's layers. They are counted apart from those of nodes, so that a placeholder
/// called `dense` changes no variable's name.
#[derive(Default)]
struct Names {
    /// How many layers of a kind have got a made name.
    made: RefCell<HashMap<String, usize>>,
    given: RefCell<HashSet<String>>,
}

/// Notes a name that the user gave. Two layers may have the same: if both have weights, their
/// variables are in conflict, which the graph reports.
pub(super) fn given(graph: &Graph, name: &str) {
    graph.attachment::<Names>().given.borrow_mut().insert(name.to_string());
}

/// The next free name of a kind.
pub(crate) fn made(graph: &Graph, kind: &str) -> String {
    let names = graph.attachment::<Names>();
    let given = names.given.borrow();
    let mut made = names.made.borrow_mut();
    let count = made.entry(kind.to_string()).or_default();
    loop {
        let name = match *count {
            0 => kind.to_string(),
            n => format!("{kind}_{n}"),
        };
        *count += 1;
        if !given.contains(&name) {
            return name;
        }
    }
}
