//! What operations compute.

use estimand_graph::{Axes, Graph, Tensor};
use estimand_nn::config::Dialect;
use estimand_tensor::{Array, DType, Error, Result};

use super::{Elementwise, Function, Number, Operand, Operation, Reduction, is_whole};

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
        let are_floats = self.makes_floats(values);
        let widened = |x: &Tensor| if are_floats && is_whole(x.dtype()) { x.cast(DType::F32) } else { x.clone() };
        let dtype = widened(first).dtype();
        let mut rest = values.iter().map(widened);
        let operands = self.operands.iter().map(|operand| match operand {
            Operand::Value => rest.next().ok_or_else(|| Error::internal("an operand without a value")),
            Operand::Number(number) => self.constant(graph, dtype, *number),
        });
        let operands = operands.collect::<Result<Vec<Tensor>>>()?;
        let x = &operands[0];
        Ok(match &self.function {
            Function::Elementwise(function) => match operands.get(1) {
                Some(y) => self.of_two(*function, x, y)?,
                None => self.of_one(*function, x)?,
            },
            Function::Reduce { how: Reduction::Sum, .. } if x.dtype() == DType::U8 => {
                let text = format!("the operation {} adds up values of {}", self.class(), x.dtype());
                return Err(Error::unsupported(text).help("cast them to int32 or float32 before it"));
            }
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

    /// Whether whole numbers become floats before they are computed with.
    fn makes_floats(&self, values: &[Tensor]) -> bool {
        let is_of_keras_3 = self.rules == Dialect::Keras3;
        match &self.function {
            // TF: the quotient of whole numbers is a float.
            Function::Elementwise(Elementwise::Divide) => true,
            Function::Elementwise(function) => {
                let is_float = |operand: &Operand| matches!(operand, Operand::Number(Number::Float(_)));
                let has_float = self.operands.iter().any(is_float) || values.iter().any(|x| x.dtype().is_float());
                is_of_keras_3 && (has_float || function.makes_floats())
            }
            Function::Reduce { how: Reduction::Mean, .. } => is_of_keras_3,
            _ => false,
        }
    }

    fn of_two(&self, function: Elementwise, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        Ok(match function {
            Elementwise::Add => x + y,
            Elementwise::Subtract => x - y,
            Elementwise::Multiply => x * y,
            Elementwise::Divide => x / y,
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
    fn constant(&self, graph: &Graph, dtype: DType, number: Number) -> Result<Tensor> {
        let float = match number {
            Number::Whole(number) => number as f64,
            Number::Float(number) => number,
        };
        let constant = match (dtype, number) {
            (DType::F32, _) => Some(Array::scalar(float as f32)),
            (DType::F64, _) => Some(Array::scalar(float)),
            (DType::I32, Number::Whole(number)) => i32::try_from(number).ok().map(Array::scalar),
            (DType::I64, Number::Whole(number)) => Some(Array::scalar(number)),
            _ => None,
        };
        let refused = || {
            let text = format!("the operation {} has a value of {dtype} and the number {float}", self.class());
            Error::unsupported(text).help("cast the value to float32 before it")
        };
        constant.map(|number| graph.constant(number)).ok_or_else(refused)
    }
}
