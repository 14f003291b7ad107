//! The gradient of a broadcast whose axes are known only at run time.

use super::rules::*;

/// (x, like): sums x over the axes along which `like` was broadcast to get x's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SumTo;

impl OpRules for SumTo {
    fn name(&self) -> &'static str {
        "SumTo"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        same_dtype(x[0], x[1])?;
        same(x[1])
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        spreads_to(x[1], x[0])
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let spread = back.dy(0).broadcast_shape(back.x[0].shape().clone(), back.site);
        Ok(vec![Gradient::Dense(spread), Gradient::None])
    }

    /// Only the shape of the second input is read.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        Cost { read: operands.x_bytes[0], written: operands.written(), flops: product(operands.x[0]) }
    }

    /// TensorFlow has no such op. As in its own gradients, the axes to sum over come from comparing
    /// both shapes.
    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let dtype = writer.dtype(node, 0);
        let (wide, narrow) = (def.input[0].clone(), def.input[1].clone());
        let mut shape_of = |role: &str, tensor: &str| {
            let def = writer.part(&def.name, role, "Shape").input(tensor);
            writer.add(typed(typed(def, "T", dtype), "out_type", DType::I32))
        };
        let (from, to) = (shape_of("from", &wide), shape_of("to", &narrow));
        let axes = writer.part(&def.name, "axes", "BroadcastGradientArgs").input(to.clone()).input(from);
        let axes = writer.add(typed(axes, "T", DType::I32));
        let sum = writer.part(&def.name, "sum", "Sum").input(wide).input(axes).attr("keep_dims", false);
        let sum = writer.add(typed(typed(sum, "T", dtype), "Tidx", DType::I32));
        let def = NodeDef::new(def.name, "Reshape").input(sum).input(to);
        Ok(typed(typed(def, "T", dtype), "Tshape", DType::I32))
    }
}
