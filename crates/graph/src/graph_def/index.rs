//! Nodes that look up, scatter and group by indices.

use estimand_tensor::{DType, Dim, Result, Shape};
use estimand_wire::NodeDef;

use super::{Writer, typed};
use crate::graph::Node;

impl Writer<'_> {
    pub(super) fn gather(&mut self, def: NodeDef, node: &Node, axis: usize, batch_dims: usize) -> Result<NodeDef> {
        let axis = self.int(&def.name, "axis", axis)?;
        let def = NodeDef { op: "GatherV2".into(), ..def }.input(axis).attr("batch_dims", batch_dims as i64);
        let def = typed(typed(def, "Tparams", self.dtype(node, 0)), "Tindices", self.dtype(node, 1));
        Ok(typed(def, "Taxis", DType::I32))
    }

    pub(super) fn scatter_nd(&mut self, def: NodeDef, node: &Node, shape: &Shape) -> Result<NodeDef> {
        // TF: the shape has the dtype of the indices.
        let sizes = self.shape(&def.name, "shape", shape.dims(), self.dtype(node, 0))?;
        Ok(typed(typed(def.input(sizes), "Tindices", self.dtype(node, 0)), "T", self.dtype(node, 1)))
    }

    pub(super) fn unsorted_segment(&mut self, def: NodeDef, node: &Node, num_segments: Dim) -> Result<NodeDef> {
        let n = self.size(num_segments, &def.name, "num_segments")?;
        let def = typed(typed(def.input(n), "Tindices", self.dtype(node, 1)), "Tnumsegments", DType::I32);
        Ok(typed(def, "T", self.dtype(node, 0)))
    }

    pub(super) fn one_hot(&mut self, mut def: NodeDef, node: &Node, depth: usize, axis: usize) -> Result<NodeDef> {
        let depth = self.int(&def.name, "depth", depth)?;
        def.input.insert(1, depth);
        let def = def.attr("axis", axis as i64);
        Ok(typed(typed(def, "TI", self.dtype(node, 0)), "T", self.dtype(node, 1)))
    }
}
