//! Graphs and saved models: any input gives a message or an error, and its constants give arrays or
//! errors.

use estimand_wire::graph_def::Attr;
use estimand_wire::{GraphDef, Message, SavedModel};

/// Decodes a graph and a saved model, and uses them like a reader.
pub fn check(bytes: &[u8]) {
    if let Ok(graph) = GraphDef::decode(bytes) {
        check_graph(&graph);
    }
    let Ok(model) = SavedModel::decode(bytes) else { return };
    settles(&model);
    let _ = model.meta_graph(&["serve"]);
    for graph in &model.meta_graphs {
        let _ = graph.signature("serving_default");
        let _ = graph.assets();
        if let Some(graph) = &graph.graph_def {
            check_graph(graph);
        }
    }
}

fn check_graph(graph: &GraphDef) {
    settles(graph);
    let _ = graph.to_text();
    let functions = graph.library.iter().flat_map(|library| &library.function);
    for node in graph.node.iter().chain(functions.flat_map(|function| &function.node_def)) {
        for value in node.attr.values() {
            match &value.value {
                Some(Attr::Tensor(tensor)) => drop(tensor.to_array()),
                Some(Attr::List(list)) => list.tensor.iter().for_each(|tensor| drop(tensor.to_array())),
                _ => {}
            }
        }
    }
}

/// Checks that a written message is read back unchanged. Bytes are compared, since NaNs are not
/// equal to themselves.
fn settles<M: Message + Default>(message: &M) {
    let written = message.encode_to_vec();
    let again = M::decode(written.as_slice()).expect("what was written can be read");
    assert!(again.encode_to_vec() == written);
}
