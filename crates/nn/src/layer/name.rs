//! Names of layers: `dense`, `dense_1`, ..., counted per graph, as Keras does in a fresh graph.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use estimand_graph::Graph;

/// The layer names of a graph. They are counted separately from node names, so that a placeholder
/// called `dense` does not change the name of a variable.
#[derive(Default)]
struct Names {
    /// The number of generated names for each kind.
    made: RefCell<HashMap<String, usize>>,
    given: RefCell<HashSet<String>>,
}

/// Records a name that the user gave. Two layers may have the same name; if both have weights, the
/// graph reports the conflict of their variables.
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
