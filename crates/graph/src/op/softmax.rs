//! Softmax over the last axis, and its logarithm.

use super::Op;
use super::rules::*;
use crate::Axes;

/// `exp(x) / sum(exp(x))`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Softmax;

impl OpRules for Softmax {
    fn name(&self) -> &'static str {
        "Softmax"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        rows(x)
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        // dx = (dy - sum(dy * y)) * y
        let (y, dy) = (&back.y[0], back.dy(0));
        let dot = back.binary(Binary::Mul, &dy, y).sum_axes(Axes::of([-1]).keep_dims());
        dense([back.binary(Binary::Mul, &back.binary(Binary::Sub, &dy, &dot), y)])
    }

    /// Maximum, difference, exponential, sum, quotient.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(&[5, count(operands.x[0])]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Softmax", |reading| read(reading, Softmax.into()))]
    }
}

/// `x - log(sum(exp(x)))`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogSoftmax;

impl OpRules for LogSoftmax {
    fn name(&self) -> &'static str {
        "LogSoftmax"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        rows(x)
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        // dx = dy - sum(dy) * softmax(x)
        let dy = back.dy(0);
        let total = dy.sum_axes(Axes::of([-1]).keep_dims());
        let share = back.binary(Binary::Mul, &total, &back.unary(Unary::Exp, &back.y[0]));
        dense([back.binary(Binary::Sub, &dy, &share)])
    }

    /// Maximum, difference, exponential, sum, difference.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(&[5, count(operands.x[0])]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("LogSoftmax", |reading| read(reading, LogSoftmax.into()))]
    }
}

fn rows(x: &[&TensorSpec]) -> Result<Specs> {
    floats(x)?;
    if x[0].shape.rank() == 0 {
        return Err(Error::shape("the input is a single number; expected at least one axis"));
    }
    same(x[0])
}

fn read(reading: &mut dyn Reading, op: Op) -> Result<Vec<Tensor>> {
    let x = reading.tensor(0)?;
    reading.add(op, &[&x])
}
