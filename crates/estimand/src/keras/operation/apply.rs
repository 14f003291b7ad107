//! What operations compute.

use estimand_graph::{Axes, Graph, Tensor};
use estimand_tensor::{Array, DType, Error, Result};

use super::{Elementwise, Function, Operand, Operation, Reduction};

impl Operation {
    /// Adds its nodes. A mistake gives a tensor that stands for it.
    pub fn apply(&self, graph: &Graph, values: &[Tensor]) -> Tensor {
        self.computed(graph, values).unwrap_or_else(|error| graph.error(error))
    }

    fn computed(&self, graph: &Graph, values: &[Tensor]) -> Result<Tensor> {
        let wanted = self.operands.iter().filter(|operand| **operand == Operand::Value).count();
        let Some(first) = values.first().filter(|_| values.len() == wanted) else {
            let text = format!("the operation {} got {} values; expected {wanted}", self.class(), values.len());
            return Err(Error::config(text).help("call it with as many values as its model does"));
        };
        let mut rest = values.iter();
        let operands = self.operands.iter().map(|operand| match operand {
            Operand::Value => rest.next().cloned().ok_or_else(|| Error::internal("an operand without a value")),
            Operand::Number(number) => self.constant(graph, first.dtype(), *number),
        });
        let operands = operands.collect::<Result<Vec<Tensor>>>()?;
        let x = &operands[0];
        Ok(match &self.function {
            Function::Elementwise(function) => match operands.get(1) {
                Some(y) => self.of_two(*function, x, y)?,
                None => self.of_one(*function, x)?,
            },
            Function::Reduce { how, axes, keep_dims } => {
                let all = || (0..x.rank() as i64).collect();
                let axes = Axes::of(axes.clone().unwrap_or_else(all));
                let axes = if *keep_dims { axes.keep_dims() } else { axes };
                match how {
                    Reduction::Mean => x.mean_axes(axes),
                    Reduction::Sum => x.sum_axes(axes),
                    Reduction::Max => x.max_axes(axes),
                    Reduction::Min => x.min_axes(axes),
                }
            }
            Function::Softmax { axis } if *axis == -1 || *axis == x.rank() as i64 - 1 => x.softmax(),
            Function::Softmax { axis } => {
                let part = (x - x.max_axes(Axes::of(*axis).keep_dims())).exp();
                &part / part.sum_axes(Axes::of(*axis).keep_dims())
            }
            Function::Clip { low, high } => x.clip(*low, *high),
            Function::Reshape { sizes } => x.reshape(sizes),
            Function::ExpandDims { axis } => x.expand_dims(*axis),
            Function::Squeeze { axes } => x.squeeze(axes.as_deref().unwrap_or_default()),
            Function::Transpose { axes: Some(axes) } => x.transpose(axes),
            Function::Transpose { axes: None } => x.transpose(&(0..x.rank()).rev().collect::<Vec<_>>()),
            Function::Concatenate { axis } => Tensor::concat(&operands.iter().collect::<Vec<_>>(), *axis),
            Function::GetItem { parts } => super::slice::apply(x, parts)?,
        })
    }

    fn of_two(&self, function: Elementwise, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        Ok(match function {
            Elementwise::Add => x + y,
            Elementwise::Subtract => x - y,
            Elementwise::Multiply => x * y,
            // TF: the quotient of whole numbers is a float.
            Elementwise::Divide if x.dtype().is_float() => x / y,
            Elementwise::Divide => x.cast(DType::F32) / y.cast(DType::F32),
            Elementwise::Maximum => x.maximum(y),
            Elementwise::Minimum => x.minimum(y),
            Elementwise::Power => x.pow(y),
            _ => return Err(self.miscounted()),
        })
    }

    fn of_one(&self, function: Elementwise, x: &Tensor) -> Result<Tensor> {
        Ok(match function {
            Elementwise::Negative => -x,
            Elementwise::Absolute => x.abs(),
            Elementwise::Square => x.square(),
            Elementwise::Sqrt => x.sqrt(),
            Elementwise::Exp => x.exp(),
            Elementwise::Log => x.log(),
            Elementwise::Relu => x.relu(),
            Elementwise::Relu6 => x.relu6(),
            Elementwise::Sigmoid => x.sigmoid(),
            Elementwise::Tanh => x.tanh(),
            Elementwise::Silu => x.swish(),
            Elementwise::Softplus => x.softplus(),
            _ => return Err(self.miscounted()),
        })
    }

    fn miscounted(&self) -> Error {
        let text = format!("the operation {} has {} arguments", self.class(), self.operands.len());
        Error::config(text).help("expected one for a function such as `exp`, two for one such as `add`")
    }

    /// A number beside a value of this dtype.
    fn constant(&self, graph: &Graph, dtype: DType, number: f64) -> Result<Tensor> {
        let refused = |text: String| Err(Error::unsupported(text).help("cast the value to float32 before it"));
        match dtype {
            DType::F32 => Ok(graph.constant(Array::scalar(number as f32))),
            DType::F64 => Ok(graph.constant(Array::scalar(number))),
            DType::I32 | DType::I64 if number.fract() != 0.0 => {
                refused(format!("the operation {} has a value of {dtype} and the number {number}", self.class()))
            }
            DType::I32 => Ok(graph.constant(Array::scalar(number as i32))),
            DType::I64 => Ok(graph.constant(Array::scalar(number as i64))),
            other => refused(format!("the operation {} has a value of {other} and a number", self.class())),
        }
    }
}
