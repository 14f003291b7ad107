//! Nodes that reduce, scan or rank an axis.

use estimand_tensor::{DType, Result};
use estimand_wire::NodeDef;

use super::{Writer, typed};
use crate::graph::Node;
use crate::op::{AxisSet, Reduction};

impl Writer<'_> {
    pub(super) fn reduce(
        &mut self,
        def: NodeDef,
        node: &Node,
        kind: Reduction,
        axes: AxisSet,
        keep_dims: bool,
    ) -> Result<NodeDef> {
        let axes = self.ints(&def.name, "reduction_indices", axes.iter().map(|a| a as i64))?;
        let def = typed(def.input(axes).attr("keep_dims", keep_dims), "Tidx", DType::I32);
        Ok(match kind {
            Reduction::All | Reduction::Any => def,
            _ => typed(def, "T", self.dtype(node, 0)),
        })
    }

    pub(super) fn arg_max(&mut self, def: NodeDef, node: &Node, axis: usize, output: DType) -> Result<NodeDef> {
        let axis = self.int(&def.name, "dimension", axis)?;
        let def = typed(typed(def.input(axis), "Tidx", DType::I32), "output_type", output);
        Ok(typed(def, "T", self.dtype(node, 0)))
    }

    pub(super) fn cumulate(
        &mut self,
        def: NodeDef,
        node: &Node,
        axis: usize,
        exclusive: bool,
        reverse: bool,
    ) -> Result<NodeDef> {
        let axis = self.int(&def.name, "axis", axis)?;
        let def = def.input(axis).attr("exclusive", exclusive).attr("reverse", reverse);
        Ok(typed(typed(def, "T", self.dtype(node, 0)), "Tidx", DType::I32))
    }

    pub(super) fn top_k(&mut self, def: NodeDef, node: &Node, k: usize) -> Result<NodeDef> {
        let k = self.int(&def.name, "k", k)?;
        Ok(typed(def.input(k).attr("sorted", true), "T", self.dtype(node, 0)))
    }
}
