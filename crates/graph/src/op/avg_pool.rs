//! Average pooling and its gradient.

use super::attribute::PoolWindow;
use super::rules::*;
use super::window::{pool_shape, pooled, read_pool_window, spell_pooling};

/// The mean of the elements under a window; padding does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AvgPool {
    /// How the window moves.
    pub window: PoolWindow,
}

impl OpRules for AvgPool {
    fn name(&self) -> &'static str {
        "AvgPool"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        one(x[0].dtype, pool_shape(&self.window, &x[0].shape, inference.symbols)?)
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let op = AvgPoolGrad { window: self.window, shape: back.x[0].shape().clone() };
        dense([back.node(op, &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(pooled(count(operands.y[0]), &self.window))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(spell_pooling(typed(def, "T", writer.dtype(node, 0)), &self.window))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("AvgPool", read)]
    }
}

/// dy -> dx of the given shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AvgPoolGrad {
    /// How the window moved.
    pub window: PoolWindow,
    /// The shape of the images.
    pub shape: Shape,
}

impl OpRules for AvgPoolGrad {
    fn name(&self) -> &'static str {
        "AvgPoolGrad"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        expect_equal("gradient", &x[0].shape, &pool_shape(&self.window, &self.shape, inference.symbols)?)?;
        one(x[0].dtype, self.shape.clone())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.node(AvgPool { window: self.window }, &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(pooled(count(operands.x[0]), &self.window))
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let sizes = writer.shape(&def.name, "sizes", self.shape.dims(), DType::I32)?;
        def.input.insert(0, sizes);
        Ok(spell_pooling(typed(def, "T", writer.dtype(node, 0)), &self.window))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("AvgPoolGrad", read_gradient)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let x = reading.tensor(0)?;
    reading.add(AvgPool { window: read_pool_window(reading)? }, &[&x])
}

fn read_gradient(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (shape, dy) = (reading.shape(0)?, reading.tensor(1)?);
    reading.add(AvgPoolGrad { window: read_pool_window(reading)?, shape }, &[&dy])
}
