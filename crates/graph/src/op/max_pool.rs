//! Max pooling and its gradient.

use super::attribute::PoolWindow;
use super::rules::*;
use super::window::{pool_shape, pooled, read_pool_window, spell_pooling};

/// The largest element under a window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaxPool {
    /// How the window moves.
    pub window: PoolWindow,
}

impl OpRules for MaxPool {
    fn name(&self) -> &'static str {
        "MaxPool"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        one(x[0].dtype, pool_shape(&self.window, &x[0].shape, inference.symbols)?)
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let op = MaxPoolGrad { window: self.window };
        dense([back.node(op, &[&back.x[0], &back.y[0], &back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(pooled(count(operands.y[0]), &self.window))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(spell_pooling(typed(def, "T", writer.dtype(node, 0)), &self.window))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("MaxPool", read)]
    }
}

/// (x, y, dy) -> dx; the first maximum of a window gets the gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaxPoolGrad {
    /// How the window moved.
    pub window: PoolWindow,
}

impl OpRules for MaxPoolGrad {
    fn name(&self) -> &'static str {
        "MaxPoolGrad"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        let pooled = pool_shape(&self.window, &x[0].shape, inference.symbols)?;
        expect_equal("output", &x[1].shape, &pooled)?;
        expect_equal("gradient", &x[2].shape, &pooled)?;
        same(x[0])
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, _back: &Backprop<'_>) -> Result<Found> {
        Err(not_differentiable("the second derivative of max pooling"))
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(pooled(count(operands.x[2]), &self.window))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(spell_pooling(typed(def, "T", writer.dtype(node, 0)), &self.window))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("MaxPoolGrad", read_gradient)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let x = reading.tensor(0)?;
    reading.add(MaxPool { window: read_pool_window(reading)? }, &[&x])
}

fn read_gradient(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (x, y, dy) = (reading.tensor(0)?, reading.tensor(1)?, reading.tensor(2)?);
    reading.add(MaxPoolGrad { window: read_pool_window(reading)? }, &[&x, &y, &dy])
}
