//! Custom Rust code as an op.

use super::rules::*;
use crate::custom::CustomOp;

impl OpRules for CustomOp {
    fn name(&self) -> &'static str {
        "Custom"
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Ok(self.outputs.iter().cloned().collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let Some(kernel) = &self.gradient else {
            return Err(not_differentiable(&format!("custom op `{}`", self.name))
                .help("give it a gradient with CustomOp::gradient, or use stop_gradient"));
        };
        let gradient = CustomOp {
            name: format!("{}/gradient", self.name).into(),
            outputs: back.x.iter().map(|x| x.spec().clone()).collect(),
            kernel: kernel.clone(),
            gradient: None,
        };
        let dys: Vec<Tensor> = (0..back.y.len()).map(|i| back.dy(i)).collect();
        let inputs: Vec<&Tensor> = back.x.iter().chain(&dys).collect();
        let first = back.node(gradient, &inputs);
        Ok((0..back.x.len())
            .map(|i| match back.x[i].dtype().is_float() {
                true => Gradient::Dense(back.graph.output(&first, i as u16)),
                false => Gradient::None,
            })
            .collect())
    }

    /// The operations of the closure are unknown, so none are counted.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, _def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Err(Error::unsupported(format!("custom op `{}` is Rust code, which TensorFlow cannot run", self.name))
            .help("build it from tensor operations, or fetch its inputs and apply it outside the graph"))
    }

    fn has_effect(&self) -> bool {
        true
    }
}
