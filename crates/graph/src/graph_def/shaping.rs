//! Nodes that move elements: what our ops hold as data, TensorFlow takes as inputs.

use estimand_tensor::{Array, DType, Dim, Result, Shape};
use estimand_wire::NodeDef;

use super::{Writer, index_number, typed};
use crate::graph::Node;
use crate::op::{Axes, AxisSet};

impl Writer<'_> {
    pub(super) fn reshape(&mut self, def: NodeDef, node: &Node, shape: &Shape) -> Result<NodeDef> {
        let sizes = self.shape_with_gap(&def.name, "shape", shape.dims())?;
        Ok(typed(typed(def.input(sizes), "T", self.dtype(node, 0)), "Tshape", DType::I32))
    }

    pub(super) fn broadcast_to(&mut self, def: NodeDef, node: &Node, shape: &Shape) -> Result<NodeDef> {
        let sizes = self.shape(&def.name, "shape", shape.dims(), DType::I32)?;
        Ok(typed(typed(def.input(sizes), "T", self.dtype(node, 0)), "Tidx", DType::I32))
    }

    /// TensorFlow has no such op: the axes to sum over come from comparing both shapes, as in its own gradients.
    pub(super) fn sum_to(&mut self, def: NodeDef, node: &Node) -> NodeDef {
        let dtype = self.dtype(node, 0);
        let (wide, narrow) = (def.input[0].clone(), def.input[1].clone());
        let mut shape_of = |role: &str, tensor: &str| {
            let def = self.part(&def.name, role, "Shape").input(tensor);
            self.add(typed(typed(def, "T", dtype), "out_type", DType::I32))
        };
        let (from, to) = (shape_of("from", &wide), shape_of("to", &narrow));
        let axes = self.part(&def.name, "axes", "BroadcastGradientArgs").input(to.clone()).input(from);
        let axes = self.add(typed(axes, "T", DType::I32));
        let sum = self.part(&def.name, "sum", "Sum").input(wide).input(axes).attr("keep_dims", false);
        let sum = self.add(typed(typed(sum, "T", dtype), "Tidx", DType::I32));
        let def = NodeDef::new(def.name, "Reshape").input(sum).input(to);
        typed(typed(def, "T", dtype), "Tshape", DType::I32)
    }

    pub(super) fn transpose(&mut self, def: NodeDef, node: &Node, perm: &Axes) -> Result<NodeDef> {
        let perm = self.ints(&def.name, "perm", perm.iter().map(|&a| i64::from(a)))?;
        Ok(typed(typed(def.input(perm), "T", self.dtype(node, 0)), "Tperm", DType::I32))
    }

    pub(super) fn concat(&mut self, def: NodeDef, node: &Node, axis: usize) -> Result<NodeDef> {
        let axis = self.int(&def.name, "axis", axis)?;
        let def = def.input(axis).attr("N", node.inputs.len() as i64);
        Ok(typed(typed(def, "T", self.dtype(node, 0)), "Tidx", DType::I32))
    }

    pub(super) fn slice(&mut self, def: NodeDef, node: &Node, begin: &[usize], size: &Shape) -> Result<NodeDef> {
        let first = self.ints(&def.name, "begin", begin.iter().map(|&b| b as i64))?;
        let whole = &self.body.spec(node.inputs[0]).shape;
        // An unknown size that reaches to the end of its axis is -1 to TensorFlow.
        let to_end = |i: usize| begin[i] == 0 && size.dims()[i] == whole.dims()[i];
        let sizes: Option<Vec<i64>> = (0..begin.len())
            .map(|i| size.dims()[i].known().map(|n| n as i64).or_else(|| to_end(i).then_some(-1)))
            .collect();
        let sizes = match sizes {
            Some(sizes) => self.ints(&def.name, "size", sizes)?,
            None => self.shape(&def.name, "size", size.dims(), DType::I32)?,
        };
        let def = def.input(first).input(sizes);
        Ok(typed(typed(def, "T", self.dtype(node, 0)), "Index", DType::I32))
    }

    pub(super) fn strided_slice(
        &mut self,
        def: NodeDef,
        node: &Node,
        begin: &[usize],
        strides: &[i64],
        size: &[usize],
    ) -> Result<NodeDef> {
        let def = self.strided_bounds(def, begin, strides, size)?;
        Ok(typed(def, "T", self.dtype(node, 0)))
    }

    pub(super) fn strided_slice_grad(
        &mut self,
        def: NodeDef,
        node: &Node,
        begin: &[usize],
        strides: &[i64],
        shape: &Shape,
    ) -> Result<NodeDef> {
        // infer.rs has refused a strided slice of unknown size.
        let size = self.body.spec(node.inputs[0]).shape.known().unwrap_or_default();
        let dy = def.input[0].clone();
        let shape = self.shape(&def.name, "shape", shape.dims(), DType::I32)?;
        let def = NodeDef::new(def.name, def.op).input(shape);
        let def = self.strided_bounds(def, begin, strides, &size)?.input(dy);
        Ok(typed(def, "T", self.dtype(node, 0)))
    }

    /// Adds begin, end and strides. Going down past 0 has no end to name: -1 would be the last element.
    fn strided_bounds(&mut self, def: NodeDef, begin: &[usize], strides: &[i64], size: &[usize]) -> Result<NodeDef> {
        let (mut ends, mut open) = (Vec::new(), 0i64);
        for (i, ((&b, &stride), &n)) in begin.iter().zip(strides).zip(size).enumerate() {
            let last = b as i64 + stride * (n as i64 - 1);
            let end = if n == 0 { b as i64 } else { last + stride.signum() };
            open |= i64::from(end < 0) << i;
            ends.push(end.max(0));
        }
        let begin = self.ints(&def.name, "begin", begin.iter().map(|&b| b as i64))?;
        let end = self.ints(&def.name, "end", ends)?;
        let strides = self.ints(&def.name, "strides", strides.iter().copied())?;
        let def = def.input(begin).input(end).input(strides).attr("end_mask", open);
        Ok(typed(def, "Index", DType::I32))
    }

    pub(super) fn pad(&mut self, mut def: NodeDef, node: &Node, before: &Shape, after: &Shape) -> Result<NodeDef> {
        let paddings = match (before.known(), after.known()) {
            (Some(before), Some(after)) => self.known_paddings(&def.name, before.into_iter().zip(after))?,
            _ => {
                let pairs: Vec<Dim> = before.dims().iter().zip(after.dims()).flat_map(|(&b, &a)| [b, a]).collect();
                let flat = self.shape(&def.name, "paddings/flat", &pairs, DType::I32)?;
                let shape = self.ints(&def.name, "paddings/shape", [-1, 2])?;
                let rows = self.part(&def.name, "paddings", "Reshape").input(flat).input(shape);
                self.add(typed(typed(rows, "T", DType::I32), "Tshape", DType::I32))
            }
        };
        def.input.insert(1, paddings);
        Ok(typed(typed(def, "T", self.dtype(node, 0)), "Tpaddings", DType::I32))
    }

    pub(super) fn mirror_pad(
        &mut self,
        def: NodeDef,
        node: &Node,
        paddings: &[(usize, usize)],
        symmetric: bool,
    ) -> Result<NodeDef> {
        let paddings = self.known_paddings(&def.name, paddings.iter().copied())?;
        let mode = if symmetric { "SYMMETRIC" } else { "REFLECT" };
        let def = def.input(paddings).attr("mode", mode);
        Ok(typed(typed(def, "T", self.dtype(node, 0)), "Tpaddings", DType::I32))
    }

    /// (before, after) of each axis, as rows of two.
    fn known_paddings(&mut self, owner: &str, paddings: impl Iterator<Item = (usize, usize)>) -> Result<String> {
        let flat = paddings.flat_map(|(b, a)| [b, a]).map(|n| index_number(n as i64)).collect::<Result<Vec<i32>>>()?;
        self.constant(owner, "paddings", &Array::from_vec([flat.len() / 2, 2], flat)?)
    }

    pub(super) fn tile(&mut self, def: NodeDef, node: &Node, multiples: &[usize]) -> Result<NodeDef> {
        let multiples = self.ints(&def.name, "multiples", multiples.iter().map(|&m| m as i64))?;
        Ok(typed(typed(def.input(multiples), "T", self.dtype(node, 0)), "Tmultiples", DType::I32))
    }

    pub(super) fn reverse(&mut self, def: NodeDef, node: &Node, axes: AxisSet) -> Result<NodeDef> {
        let axes = self.ints(&def.name, "axis", axes.iter().map(|a| a as i64))?;
        Ok(typed(typed(def.input(axes), "T", self.dtype(node, 0)), "Tidx", DType::I32))
    }
}
