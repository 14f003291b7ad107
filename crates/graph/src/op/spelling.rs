//! The interface that ops use to write themselves as TensorFlow nodes, one node at a time.

use estimand_tensor::{Array, DType, Dim, Error, Result, TensorSpec};
use estimand_wire::{AttrValue, DataType, NodeDef, TensorProto};

use super::function::Function;
use crate::body::{Body, Node};
use crate::graph::Graph;
use crate::table::LookupTable;
use crate::tensor::Tensor;
use crate::value::Value;
use crate::variables::VarId;

/// A writer of TensorFlow graphs. Names are those of nodes in the written graph.
pub trait Spelling {
    /// Our graph, which is being written.
    fn body(&self) -> &Body;

    /// The name of a value: `node`, or `node:1` for a second output.
    fn name_of(&self, value: Value) -> String;

    /// Starts a node that belongs to another: `owner/role`.
    fn part(&mut self, owner: &str, role: &str, op: &str) -> NodeDef;

    /// Writes a node and returns the name of its first output.
    fn add(&mut self, def: NodeDef) -> String;

    /// A single size, an i32 scalar. A known size is a constant of `owner`.
    fn size(&mut self, dim: Dim, owner: &str, role: &str) -> Result<String>;

    /// The node that holds a variable's handle.
    fn handle(&mut self, id: VarId) -> String;

    /// The nodes that read a variable.
    fn readers(&mut self, id: VarId) -> &mut Vec<String>;

    /// The handle of a table, written once for all lookups in it. With `reverse`, from ids to
    /// terms.
    fn table(&mut self, table: &LookupTable, reverse: bool) -> Result<String>;

    /// Writes another graph in place of a node. Its placeholders, in order, are the node's inputs,
    /// and its results become those of the node.
    fn in_place(&mut self, def: NodeDef, graph: &Graph, results: &[&Tensor]) -> Result<NodeDef>;

    /// Writes a function that nodes may call, and returns its name, which begins with `name`.
    fn function(&mut self, name: &str, function: Function) -> Result<String>;

    /// The nodes of another graph, for a function: with names of their own. The values are named
    /// `inputs`, in the order of the graph's placeholders. Returns the names of the results too.
    fn nodes_of(&self, graph: &Graph, inputs: &[String], results: &[&Tensor]) -> Result<(Vec<NodeDef>, Vec<String>)>;

    /// Dtype and shape of one of a node's inputs.
    fn spec(&self, node: &Node, input: usize) -> &TensorSpec {
        self.body().spec(node.inputs[input])
    }

    /// The dtype of one of a node's inputs.
    fn dtype(&self, node: &Node, input: usize) -> DType {
        self.spec(node, input).dtype
    }

    /// A constant that belongs to a node.
    fn constant(&mut self, owner: &str, role: &str, value: &Array) -> Result<String> {
        let def = self.part(owner, role, "Const");
        Ok(self.add(constant(def, value)))
    }

    /// An i32 constant, TensorFlow's usual index type, that belongs to a node.
    fn int(&mut self, owner: &str, role: &str, value: usize) -> Result<String> {
        let value = index_number(value as i64)?;
        self.constant(owner, role, &Array::scalar(value))
    }

    /// A list of i32, TensorFlow's usual index type, that belongs to a node.
    fn ints(&mut self, owner: &str, role: &str, values: &mut dyn Iterator<Item = i64>) -> Result<String> {
        let values = values.map(index_number).collect::<Result<Vec<i32>>>()?;
        self.constant(owner, role, &Array::from_vec([values.len()], values)?)
    }

    /// A list of sizes of a dtype, that belongs to a node.
    fn shape(&mut self, owner: &str, role: &str, dims: &[Dim], dtype: DType) -> Result<String> {
        let known: Option<Vec<i64>> = dims.iter().map(|d| d.known().map(|n| n as i64)).collect();
        match known {
            Some(sizes) if dtype == DType::I64 => self.constant(owner, role, &Array::from_vec([sizes.len()], sizes)?),
            Some(sizes) => self.ints(owner, role, &mut sizes.into_iter()),
            None => {
                let mut list = typed(self.part(owner, role, "Pack"), "T", DType::I32).attr("N", dims.len() as i64);
                let name = list.name.clone();
                for (i, &dim) in dims.iter().enumerate() {
                    list = list.input(self.size(dim, &name, &i.to_string())?);
                }
                let list = self.add(list);
                Ok(self.converted(list, DType::I32, dtype))
            }
        }
    }

    /// The same numbers in another dtype.
    fn converted(&mut self, numbers: String, from: DType, to: DType) -> String {
        if from == to {
            return numbers;
        }
        let cast = self.part(&numbers, "cast", "Cast").input(numbers);
        self.add(typed(typed(cast, "SrcT", from), "DstT", to))
    }
}

/// Helpers for rows of ragged and sparse tensors.
impl dyn Spelling + '_ {
    /// The row id of each value of a ragged tensor.
    pub(crate) fn row_ids(&mut self, owner: &str, splits: String, values: String, dtype: DType) -> Result<String> {
        let sparse = self.part(owner, "sparse", "RaggedTensorToSparse").input(splits).input(values);
        let sparse = sparse.attr("RAGGED_RANK", 1i64);
        let sparse = self.add(typed(typed(sparse, "T", dtype), "Tsplits", DType::I64));
        self.first_column(owner, sparse)
    }

    /// The row of each index of a sparse tensor.
    pub(crate) fn first_column(&mut self, owner: &str, indices: String) -> Result<String> {
        let first = self.int(owner, "first", 0)?;
        let axis = self.int(owner, "first_axis", 1)?;
        let column = self.part(owner, "row_ids", "GatherV2").input(indices).input(first).input(axis);
        let column = typed(typed(column, "Tparams", DType::I64), "Tindices", DType::I32);
        Ok(self.add(typed(column, "Taxis", DType::I32)))
    }

    /// Sums of the values with the same id.
    pub(crate) fn segment_sum(
        &mut self,
        owner: &str,
        role: &str,
        values: String,
        segments: &str,
        n_segments: &str,
        dtype: DType,
    ) -> String {
        let sum = self.part(owner, role, "UnsortedSegmentSum").input(values).input(segments).input(n_segments);
        let sum = typed(typed(sum, "T", dtype), "Tindices", DType::I64);
        self.add(typed(sum, "Tnumsegments", DType::I32))
    }

    /// Gathers rows of a tensor, or elements of a list.
    pub(crate) fn gather_rows(
        &mut self,
        owner: &str,
        role: &str,
        from: String,
        at: String,
        dtype: DType,
        ids: DType,
    ) -> Result<String> {
        let axis = self.int(owner, &format!("{role}_axis"), 0)?;
        let rows = self.part(owner, role, "GatherV2").input(from).input(at).input(axis);
        let rows = typed(typed(rows, "Tparams", dtype), "Tindices", ids);
        Ok(self.add(typed(rows, "Taxis", DType::I32)))
    }
}

/// A node that is a constant.
pub fn constant(def: NodeDef, value: &Array) -> NodeDef {
    typed(def, "dtype", value.dtype()).attr("value", TensorProto::from_array(value))
}

/// A number as an i32, TensorFlow's usual type for axes and sizes.
pub fn index_number(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| {
        Error::unsupported(format!("the size {value} does not fit into the 32 bits that a GraphDef has for sizes"))
    })
}

/// An attribute that is a list of dtypes.
pub fn type_list(dtypes: &[DType]) -> AttrValue {
    dtypes.iter().map(|&dtype| DataType::from(dtype)).collect::<Vec<_>>().into()
}

/// Sets an attribute that is a dtype.
pub fn typed(def: NodeDef, key: &str, dtype: DType) -> NodeDef {
    def.attr(key, AttrValue::from(DataType::from(dtype)))
}
