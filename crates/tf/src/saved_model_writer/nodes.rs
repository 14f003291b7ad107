//! The nodes that a SavedModel needs beside the model: those that initialize, save and restore
//! variables, and the one that fills all tables.

use std::collections::HashSet;

use estimand_graph::op::spelling::{constant, type_list, typed};
use estimand_tensor::{Array, DType, Result};
use estimand_wire::{GraphDef, NodeDef, TensorShapeProto};

use crate::graph_def::Handle;

/// Appends nodes to a graph under names that are not taken.
struct Nodes<'a> {
    graph: &'a mut GraphDef,
    taken: HashSet<String>,
}

impl<'a> Nodes<'a> {
    fn of(graph: &'a mut GraphDef) -> Nodes<'a> {
        let taken = graph.node.iter().map(|node| node.name.clone()).collect();
        Nodes { graph, taken }
    }

    fn start(&mut self, name: &str, op: &str) -> NodeDef {
        let mut free = name.to_string();
        let mut n = 0;
        while !self.taken.insert(free.clone()) {
            n += 1;
            free = format!("{name}_{n}");
        }
        NodeDef::new(free, op)
    }

    fn add(&mut self, node: NodeDef) -> String {
        let name = node.name.clone();
        self.graph.node.push(node);
        name
    }

    fn strings(&mut self, name: &str, dims: &[usize], texts: &[&str]) -> Result<String> {
        let node = self.start(name, "Const");
        Ok(self.add(constant(node, &Array::from_strings(dims, texts)?)))
    }
}

/// Adds the node that runs when the model is loaded: it fills all tables and sets all local
/// variables to zero.
pub(super) fn main_op<'a>(graph: &mut GraphDef, initializers: impl Iterator<Item = &'a String>) -> String {
    let mut nodes = Nodes::of(graph);
    let node = nodes.start("init_all_tables", "NoOp");
    let node = initializers.fold(node, |node, name| node.input(format!("^{name}")));
    nodes.add(node)
}

/// Adds a node with the value of a tensor, which runs an op too.
pub(super) fn after(graph: &mut GraphDef, tensor: &str, op: &str, dtype: DType) -> String {
    let mut nodes = Nodes::of(graph);
    let owner = tensor.split(':').next().unwrap_or(tensor);
    let node = nodes.start(&format!("{owner}/after_update"), "Identity").input(tensor).input(format!("^{op}"));
    nodes.add(typed(node, "T", dtype))
}

/// The nodes of a variable's initial value.
pub(super) struct Initial {
    pub(super) value: String,
    pub(super) assign: String,
    pub(super) read: String,
}

/// Adds the initial value of each variable. It is zero: whoever loads the model restores them.
pub(super) fn initializers(graph: &mut GraphDef, variables: Vec<Handle>) -> Result<Vec<(Handle, Initial)>> {
    let mut nodes = Nodes::of(graph);
    let mut all = Vec::new();
    for variable in variables {
        let Handle { node: handle, dtype, dims, .. } = &variable;
        let zero = Array::zeros(*dtype, &[0_usize; 0][..])?;
        let node = nodes.start(&format!("{handle}/Initializer/value"), "Const");
        let zero = nodes.add(constant(node, &zero));
        let sizes: Vec<i64> = dims.iter().map(|&n| n as i64).collect();
        let node = nodes.start(&format!("{handle}/Initializer/shape"), "Const");
        let shape = nodes.add(constant(node, &Array::from_vec([sizes.len()], sizes)?));
        let node = nodes.start(&format!("{handle}/Initializer/zeros"), "Fill").input(shape).input(zero);
        let value = nodes.add(typed(typed(node, "T", *dtype), "index_type", DType::I64));
        let node = nodes.start(&format!("{handle}/Assign"), "AssignVariableOp").input(handle).input(&value);
        let assign = nodes.add(typed(node, "dtype", *dtype));
        let node = nodes.start(&format!("{handle}/Read/ReadVariableOp"), "ReadVariableOp").input(handle);
        let read = nodes.add(typed(node, "dtype", *dtype));
        all.push((variable, Initial { value, assign, read }));
    }
    Ok(all)
}

/// The nodes that save and restore all variables.
pub(super) struct Saver {
    pub(super) filename: String,
    pub(super) save: String,
    pub(super) restore: String,
}

impl Saver {
    /// Adds the nodes. A model without variables has them too, because TensorFlow asks for them.
    pub(super) fn add(graph: &mut GraphDef, all: &[(Handle, Initial)]) -> Result<Saver> {
        let (variables, initial): (Vec<&Handle>, Vec<&Initial>) =
            all.iter().filter(|(handle, _)| !handle.is_local).map(|(handle, initial)| (handle, initial)).unzip();
        let mut nodes = Nodes::of(graph);
        let prefix = nodes.strings("save/filename/input", &[], &["model"])?;
        let node = nodes.start("save/filename", "PlaceholderWithDefault").input(prefix);
        let node = typed(node, "dtype", DType::Str).attr("shape", TensorShapeProto::of([0; 0]));
        let filename = nodes.add(node);
        let (names, n): (Vec<&str>, _) = (variables.iter().map(|v| v.variable.as_str()).collect(), variables.len());
        let dtypes: Vec<DType> = variables.iter().map(|v| v.dtype).collect();
        let lists = |nodes: &mut Nodes<'_>, op: &str| -> Result<[String; 2]> {
            let names = nodes.strings(&format!("save/{op}/tensor_names"), &[n], &names)?;
            let slices = nodes.strings(&format!("save/{op}/shape_and_slices"), &[n], &vec![""; n])?;
            Ok([names, slices])
        };
        let mut saved = nodes.start("save/control_dependency", "Identity").input(&filename);
        let mut restored = Vec::new();
        if n > 0 {
            let [names, slices] = lists(&mut nodes, "SaveV2")?;
            let node = nodes.start("save/SaveV2", "SaveV2").input(&filename).input(names).input(slices);
            let node = initial.iter().fold(node, |node, initial| node.input(&initial.read));
            let save = nodes.add(node.attr("dtypes", type_list(&dtypes)));
            saved = saved.input(format!("^{save}"));

            let [names, slices] = lists(&mut nodes, "RestoreV2")?;
            let node = nodes.start("save/RestoreV2", "RestoreV2").input(&filename).input(names).input(slices);
            let restore = nodes.add(node.attr("dtypes", type_list(&dtypes)));
            for (i, handle) in variables.iter().enumerate() {
                let value = if i == 0 { restore.clone() } else { format!("{restore}:{i}") };
                let node = nodes.start("save/Identity", "Identity").input(value);
                let value = nodes.add(typed(node, "T", handle.dtype));
                let node = nodes.start("save/AssignVariableOp", "AssignVariableOp").input(&handle.node).input(value);
                restored.push(nodes.add(typed(node, "dtype", handle.dtype)));
            }
        }
        let save = nodes.add(typed(saved, "T", DType::Str));
        let node = nodes.start("save/restore_all", "NoOp");
        let restore = nodes.add(restored.iter().fold(node, |node, assign| node.input(format!("^{assign}"))));
        Ok(Saver { filename: format!("{filename}:0"), save: format!("{save}:0"), restore })
    }
}
