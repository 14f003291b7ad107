//! Signatures: the ways to call a graph.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use estimand_graph::{Body, Value};
use estimand_tensor::{Error, Result, TensorSpec};
use estimand_wire::{DataType, GraphDef, NodeDef, SignatureDef, TensorInfo, TensorShapeProto};

use super::{SignedGraph, nodes};
use crate::graph_def::Names;

/// Names that TensorFlow keeps for its own ops.
const RESERVED: [&str; 2] = ["__saved_model_init_op", "__saved_model_train_op"];

/// A way to call a graph.
#[derive(Clone, Debug, Default)]
pub struct SignatureOf {
    /// The name of the signature.
    pub name: String,
    /// The kind of request that it answers, such as [`PREDICT`](super::PREDICT).
    pub method: String,
    /// The values to feed, by the names that callers use.
    pub inputs: Vec<(String, Value)>,
    /// The values to fetch, by the names that callers use.
    pub outputs: Vec<(String, Value)>,
    /// Ops that run whenever an output is fetched, by the name of the output.
    pub effects: Vec<(String, Value)>,
}

impl SignatureOf {
    /// The values that the graph must have.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> {
        [&self.inputs, &self.outputs, &self.effects].into_iter().flatten().map(|(_, value)| *value)
    }
}

/// Returns the signatures of graphs, whose nodes have these names. Adds the nodes that run effects.
pub(super) fn messages(
    graph_def: &mut GraphDef,
    graphs: &[SignedGraph<'_>],
    names: &[Names],
) -> Result<BTreeMap<String, SignatureDef>> {
    let mut all = BTreeMap::new();
    for (graph, names) in graphs.iter().zip(names) {
        for signature in &graph.signatures {
            let message = message(graph_def, graph.body, names, signature)
                .map_err(|e| e.context(format!("in signature `{}`", signature.name)))?;
            if all.insert(signature.name.clone(), message).is_some() {
                return Err(Error::config(format!("two signatures are named `{}`", signature.name)));
            }
        }
    }
    let nodes = graph_def.node.iter().map(|node| (node.name.as_str(), node)).collect();
    for (name, signature) in &all {
        check_fed(&nodes, signature).map_err(|e| e.context(format!("in signature `{name}`")))?;
    }
    Ok(all)
}

/// Returns an error if the outputs need a placeholder that is not among the inputs.
fn check_fed(nodes: &HashMap<&str, &NodeDef>, signature: &SignatureDef) -> Result<()> {
    let name = |info: &TensorInfo| info.name().unwrap_or_default().to_string();
    let fed: HashSet<String> = signature.inputs.values().map(name).collect();
    let mut stack: Vec<String> = signature.outputs.values().map(name).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    while let Some(tensor) = stack.pop() {
        if fed.contains(&tensor) || fed.contains(&format!("{tensor}:0")) {
            continue;
        }
        let node = tensor.trim_start_matches('^').split(':').next().unwrap_or_default();
        let Some(node) = nodes.get(node).filter(|node| seen.insert(&node.name)) else { continue };
        if node.op == "Placeholder" {
            let text = format!("the outputs need the placeholder `{}`, which is not an input", node.name);
            return Err(Error::config(text).help("add it to the tensors that callers feed"));
        }
        stack.extend(node.input.iter().cloned());
    }
    Ok(())
}

fn message(graph_def: &mut GraphDef, body: &Body, names: &Names, signature: &SignatureOf) -> Result<SignatureDef> {
    check(signature)?;
    let infos = |values: &[(String, Value)]| -> BTreeMap<String, TensorInfo> {
        let info = |(name, value): &(String, Value)| (name.clone(), info(body.spec(*value), &names.tensor(*value)));
        values.iter().map(info).collect()
    };
    let mut outputs = infos(&signature.outputs);
    for (name, effect) in &signature.effects {
        let value = signature.outputs.iter().find(|(output, _)| output == name).map(|(_, value)| *value);
        let value =
            value.ok_or_else(|| Error::config(format!("an op runs with the output `{name}`, which is missing")))?;
        let spec = body.spec(value);
        let after = nodes::after(graph_def, &names.tensor(value), names.node(effect.node), spec.dtype);
        outputs.insert(name.clone(), info(spec, &after));
    }
    Ok(SignatureDef {
        inputs: infos(&signature.inputs),
        outputs,
        method_name: signature.method.clone(),
        ..SignatureDef::default()
    })
}

fn check(signature: &SignatureOf) -> Result<()> {
    if signature.outputs.is_empty() {
        return Err(Error::config("the signature has no outputs").help("give it at least one tensor to fetch"));
    }
    if RESERVED.contains(&signature.name.as_str()) || signature.name.is_empty() {
        let text = format!("the signature is named `{}`, which TensorFlow refuses", signature.name);
        return Err(Error::config(text).help("choose another name; TensorFlow has two of its own, and none is empty"));
    }
    for (what, values) in [("input", &signature.inputs), ("output", &signature.outputs)] {
        let mut seen = BTreeSet::new();
        for (name, _) in values {
            if name.is_empty() {
                return Err(Error::config(format!("an {what} has no name")).help("callers address tensors by names"));
            }
            if !seen.insert(name) {
                return Err(Error::config(format!("two {what}s are named `{name}`")).help("rename one of them"));
            }
        }
    }
    Ok(())
}

/// A tensor of a signature. Sizes that are not known are -1.
fn info(spec: &TensorSpec, name: &str) -> TensorInfo {
    let name = if name.contains(':') { name.to_string() } else { format!("{name}:0") };
    let sizes = spec.shape.dims().iter().map(|dim| dim.known().map_or(-1, |n| n as i64));
    TensorInfo::dense(name, DataType::from(spec.dtype), TensorShapeProto::of(sizes))
}
