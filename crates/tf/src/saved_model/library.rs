//! The functions of a graph and the signatures of its ops.
//!
//! TensorFlow 2 saves a model as functions. In the body of a function an input is named
//! `node:output:index`, where `output` is a name from the op's signature. In a graph it is
//! `node:number`. So the signatures are needed to put a function's nodes into a graph.

use std::cell::Cell;
use std::collections::HashMap;

use estimand_tensor::{Error, Result};
use estimand_wire::function_def::{ArgDef, OpDef};
use estimand_wire::graph_def::Attr;
use estimand_wire::{FunctionDef, GraphDef, Message, NameAttrList, NodeDef};

use super::limits::ReadLimits;

/// The functions of a graph by name, and the signatures of the ops that their nodes use.
pub(super) struct Library<'a> {
    functions: HashMap<&'a str, &'a FunctionDef>,
    ops: HashMap<&'a str, &'a OpDef>,
    limits: &'a ReadLimits,
    n_nodes: Cell<usize>,
    n_bytes: Cell<usize>,
}

impl<'a> Library<'a> {
    pub(super) fn new(graph: &'a GraphDef, ops: &'a [OpDef], limits: &'a ReadLimits) -> Library<'a> {
        let functions = graph.library.iter().flat_map(|library| &library.function);
        let functions = functions.filter_map(|def| Some((def.signature.as_ref()?.name.as_str(), def))).collect();
        let ops = ops.iter().map(|op| (op.name.as_str(), op)).collect();
        Library { functions, ops, limits, n_nodes: Cell::new(graph.node.len()), n_bytes: Cell::new(0) }
    }

    /// The function with a name.
    pub(super) fn function(&self, name: &str) -> Option<&'a FunctionDef> {
        self.functions.get(name).copied()
    }

    /// The function that an attribute of a node names.
    pub(super) fn function_of(&self, def: &NodeDef, key: &str) -> Result<&'a FunctionDef> {
        let Some(Attr::Func(named)) = def.attr.get(key).and_then(|attr| attr.value.as_ref()) else {
            return Err(Error::config(format!("the node has no attribute `{key}` that names a function")));
        };
        self.find(&named.name)
    }

    pub(super) fn find(&self, name: &str) -> Result<&'a FunctionDef> {
        self.function(name).ok_or_else(|| Error::unknown("function", name, self.functions.keys().copied()))
    }

    /// The name and the attributes of the function that a node calls. `None` if it is no call.
    pub(super) fn called<'n>(&self, def: &'n NodeDef) -> Result<Option<(&'n str, Attributes<'n>)>> {
        match def.op.as_str() {
            "PartitionedCall" | "StatefulPartitionedCall" => match def.attr.get("f").and_then(|f| f.value.as_ref()) {
                Some(Attr::Func(NameAttrList { name, attr })) => Ok(Some((name, attr))),
                _ => Err(Error::config("the call does not name its function in the attribute `f`")),
            },
            // Older graphs use the function's name as the op.
            op if self.functions.contains_key(op) => Ok(Some((op, &def.attr))),
            _ => Ok(None),
        }
    }

    /// Adds a node that is about to be copied to the sums, and checks the sums.
    pub(super) fn add(&self, def: &NodeDef, prefix: usize) -> Result<()> {
        // The prefix stands before the name and before each input.
        let names = prefix.saturating_mul(def.input.len() + 1);
        self.n_nodes.set(self.n_nodes.get().saturating_add(1));
        self.n_bytes.set(self.n_bytes.get().saturating_add(def.encoded_len()).saturating_add(names));
        self.limits.check_copies(self.n_nodes.get(), self.n_bytes.get())
    }

    /// Adds nodes that a node is about to become to the sum, and checks the sum.
    pub(super) fn add_parts(&self, n: usize) -> Result<()> {
        self.n_nodes.set(self.n_nodes.get().saturating_add(n));
        self.limits.check_parts(self.n_nodes.get())
    }

    /// The number of an output among all outputs of a node, by its name in the op's signature.
    pub(super) fn output(&self, def: &NodeDef, name: &str, index: usize) -> Result<usize> {
        let outputs: &[ArgDef] = match (self.ops.get(def.op.as_str()), self.function(&def.op)) {
            (Some(op), _) => &op.output_arg,
            (None, Some(function)) => function.signature.as_ref().map_or(&[], |signature| &signature.output_arg),
            // TF: files do not describe ops that only the steps of loops use.
            (None, None) => return undescribed(def, name, index),
        };
        let mut first = 0usize;
        for output in outputs {
            let n = n_tensors(def, output)?;
            if output.name == name {
                if index >= n {
                    return Err(Error::index(format!("the output `{name}` of `{}` has {n} tensors", def.name)));
                }
                return Ok(first.saturating_add(index));
            }
            first = first.saturating_add(n);
        }
        let known = outputs.iter().map(|output| output.name.as_str());
        Err(Error::unknown("output", name, known).context(format!("in node `{}` ({})", def.name, def.op)))
    }
}

/// The ops with several outputs, and the names of these. Other ops have one output.
const SEVERAL: [(&str, &[&str]); 19] = [
    ("FusedBatchNorm", &BATCH_NORM),
    ("FusedBatchNormV2", &BATCH_NORM),
    ("FusedBatchNormV3", &BATCH_NORM),
    ("BroadcastGradientArgs", &["r0", "r1"]),
    ("RaggedTensorToSparse", &["sparse_indices", "sparse_values", "sparse_dense_shape"]),
    ("SoftmaxCrossEntropyWithLogits", &["loss", "backprop"]),
    ("SparseSoftmaxCrossEntropyWithLogits", &["loss", "backprop"]),
    ("SparseConcat", &SPARSE),
    ("SparseCross", &SPARSE),
    ("SparseCrossV2", &SPARSE),
    ("SparseSlice", &SPARSE),
    ("SparseFillEmptyRows", &["output_indices", "output_values", "empty_row_indicator", "reverse_index_map"]),
    ("SparseReorder", &["output_indices", "output_values"]),
    ("SparseReshape", &["output_indices", "output_shape"]),
    ("StringSplitV2", &["indices", "values", "shape"]),
    ("TopKV2", &["values", "indices"]),
    ("Unique", &["y", "idx"]),
    ("ParseExample", &[]),
    ("ParseExampleV2", &[]),
];

const BATCH_NORM: [&str; 6] =
    ["y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"];

const SPARSE: [&str; 3] = ["output_indices", "output_values", "output_shape"];

/// The number of an output of an op that the file does not describe.
fn undescribed(def: &NodeDef, name: &str, index: usize) -> Result<usize> {
    let Some((_, names)) = SEVERAL.iter().find(|(op, _)| *op == def.op) else { return Ok(index) };
    let place = names.iter().position(|known| *known == name).filter(|_| index == 0);
    place.ok_or_else(|| {
        Error::config(format!(
            "the output `{name}:{index}` of node `{}` cannot be found: the file does not describe the op {}",
            def.name, def.op
        ))
    })
}

/// Attributes that a call passes to a function.
pub(super) type Attributes<'n> = &'n std::collections::BTreeMap<String, estimand_wire::AttrValue>;

/// The number of tensors of one output.
fn n_tensors(def: &NodeDef, output: &ArgDef) -> Result<usize> {
    let attr = |key: &str| def.attr.get(key).and_then(|attr| attr.value.as_ref());
    let wrong = |key: &str| Error::config(format!("node `{}` ({}) has a wrong attribute `{key}`", def.name, def.op));
    if !output.number_attr.is_empty() {
        let key = &output.number_attr;
        return match attr(key) {
            Some(Attr::I(n)) => usize::try_from(*n).map_err(|_| wrong(key)),
            _ => Err(wrong(key)),
        };
    }
    if !output.type_list_attr.is_empty() {
        let key = &output.type_list_attr;
        return match attr(key) {
            Some(Attr::List(list)) => Ok(list.r#type.len()),
            None => Ok(0),
            _ => Err(wrong(key)),
        };
    }
    Ok(1)
}
