//! Rows combined by ragged row: TensorFlow's sparse segments, whose ids come from the row splits.

use estimand_tensor::{Array, DType, Dim, Result};
use estimand_wire::NodeDef;

use super::{Writer, typed};
use crate::graph::Node;
use crate::op::Combiner;

impl Writer<'_> {
    pub(super) fn sparse_segment(&mut self, mut def: NodeDef, node: &Node, combiner: Combiner) -> Result<NodeDef> {
        let [rows, index] = [def.input[0].clone(), def.input[1].clone()];
        let (dtype, ids) = (self.dtype(node, 0), self.dtype(node, 1));
        let segments = self.segments(&def.name, node)?;
        let n_segments = self.size(node.outputs[0].shape.dims()[0], &def.name, "num_segments")?;
        let Some(weights) = def.input.get(3).cloned() else {
            def.op.push_str("WithNumSegments");
            def.input = vec![rows, index, segments, n_segments];
            let def = typed(typed(def, "T", dtype), "Tidx", ids);
            return Ok(typed(typed(def, "Tsegmentids", DType::I64), "Tnumsegments", DType::I32));
        };
        let owner = def.name.clone();
        let looked_up = self.gather_rows(&owner, "rows", rows, index, dtype, ids)?;
        let column = self.column(&owner, "weights", weights.clone(), dtype, node.outputs[0].shape.rank())?;
        let weighted = self.part(&owner, "weighted", "Mul").input(looked_up).input(column);
        let weighted = self.add(typed(weighted, "T", dtype));
        let sum = self.segment_sum(&owner, "sum", weighted, &segments, &n_segments, dtype);
        match self.divisor(&owner, combiner, weights, &segments, &n_segments, dtype) {
            None => Ok(typed(NodeDef { op: "Identity".into(), input: vec![sum], ..def }, "T", dtype)),
            Some(divisor) => {
                let divisor = self.column(&owner, "divisors", divisor, dtype, node.outputs[0].shape.rank())?;
                Ok(typed(NodeDef { op: "DivNoNan".into(), input: vec![sum, divisor], ..def }, "T", dtype))
            }
        }
    }

    pub(super) fn sparse_segment_grad(
        &mut self,
        mut def: NodeDef,
        node: &Node,
        combiner: Combiner,
        n_rows: Dim,
    ) -> Result<NodeDef> {
        let [dy, index] = [def.input[0].clone(), def.input[1].clone()];
        let (dtype, ids) = (self.dtype(node, 0), self.dtype(node, 1));
        let segments = self.segments(&def.name, node)?;
        let n_rows = self.size(n_rows, &def.name, "num_rows")?;
        let Some(weights) = def.input.get(3).cloned() else {
            def.input = vec![dy, index, segments, n_rows];
            return Ok(typed(typed(typed(def, "T", dtype), "Tidx", ids), "Tsegmentids", DType::I64));
        };
        let owner = def.name.clone();
        let n_segments = self.size(self.body.spec(node.inputs[0]).shape.dims()[0], &owner, "num_segments")?;
        let mut share = weights.clone();
        if let Some(divisor) = self.divisor(&owner, combiner, weights, &segments, &n_segments, dtype) {
            let divisor = self.gather_rows(&owner, "divisor", divisor, segments.clone(), dtype, DType::I64)?;
            let def = self.part(&owner, "share", "DivNoNan").input(share).input(divisor);
            share = self.add(typed(def, "T", dtype));
        }
        let looked_up = self.gather_rows(&owner, "rows", dy, segments, dtype, DType::I64)?;
        let column = self.column(&owner, "shares", share, dtype, node.outputs[0].shape.rank())?;
        let shared = self.part(&owner, "shared", "Mul").input(looked_up).input(column);
        let shared = self.add(typed(shared, "T", dtype));
        let def = NodeDef { op: "UnsortedSegmentSum".into(), input: vec![shared, index, n_rows], ..def };
        Ok(typed(typed(typed(def, "T", dtype), "Tindices", ids), "Tnumsegments", DType::I32))
    }

    /// The number of the ragged row of each lookup.
    fn segments(&mut self, owner: &str, node: &Node) -> Result<String> {
        let (index, splits) = (self.names.tensor(node.inputs[1]), self.names.tensor(node.inputs[2]));
        self.row_ids(owner, splits, index, self.dtype(node, 1))
    }

    /// The number of the row of each of the values of a ragged tensor.
    pub(crate) fn row_ids(&mut self, owner: &str, splits: String, values: String, dtype: DType) -> Result<String> {
        let sparse = self.part(owner, "sparse", "RaggedTensorToSparse").input(splits).input(values);
        let sparse = sparse.attr("RAGGED_RANK", 1i64);
        let sparse = self.add(typed(typed(sparse, "T", dtype), "Tsplits", DType::I64));
        self.first_column(owner, sparse)
    }

    /// The rows of the indices of a sparse tensor.
    pub(crate) fn first_column(&mut self, owner: &str, indices: String) -> Result<String> {
        let first = self.int(owner, "first", 0)?;
        let axis = self.int(owner, "first_axis", 1)?;
        let column = self.part(owner, "row_ids", "GatherV2").input(indices).input(first).input(axis);
        let column = typed(typed(column, "Tparams", DType::I64), "Tindices", DType::I32);
        Ok(self.add(typed(column, "Taxis", DType::I32)))
    }

    /// What the sum of each segment is divided by.
    fn divisor(
        &mut self,
        owner: &str,
        combiner: Combiner,
        weights: String,
        segments: &str,
        n_segments: &str,
        dtype: DType,
    ) -> Option<String> {
        match combiner {
            Combiner::Sum => None,
            Combiner::Mean => Some(self.segment_sum(owner, "weight_sum", weights, segments, n_segments, dtype)),
            Combiner::SqrtN => {
                let square = self.part(owner, "weight_square", "Square").input(weights);
                let square = self.add(typed(square, "T", dtype));
                let sum = self.segment_sum(owner, "weight_sum", square, segments, n_segments, dtype);
                let root = self.part(owner, "weight_root", "Sqrt").input(sum);
                Some(self.add(typed(root, "T", dtype)))
            }
        }
    }

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

    /// Rows of a tensor, or elements of a list.
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

    /// A list that multiplies the rows of a tensor with this many axes.
    fn column(&mut self, owner: &str, role: &str, list: String, dtype: DType, rank: usize) -> Result<String> {
        let mut shape = vec![1i32; rank];
        shape[0] = -1;
        let shape = self.constant(owner, &format!("{role}_shape"), &Array::from_vec([rank], shape)?)?;
        let column = self.part(owner, &format!("{role}_column"), "Reshape").input(list).input(shape);
        Ok(self.add(typed(typed(column, "T", dtype), "Tshape", DType::I32)))
    }
}
