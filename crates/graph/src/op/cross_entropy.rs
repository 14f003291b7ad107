//! Cross entropies of logits with labels.

use smallvec::smallvec;

use super::LogSoftmax;
use super::rules::*;

/// (logits, labels) of one shape -> (loss per row, gradient of logits).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SoftmaxCrossEntropy;

impl OpRules for SoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        "SoftmaxCrossEntropyWithLogits"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        expect_rank(2, x[0], "tensor of logits")?;
        expect_equal("labels", &x[1].shape, &x[0].shape)?;
        losses(x[0])
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[1] == x[0]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let dy = loss_gradient(back)?;
        let dlogits = Gradient::Dense(back.binary(Binary::Mul, &dy, &back.y[1]));
        let dlabels = match back.wanted[1] {
            true => {
                let log = back.unary(Unary::Neg, &back.node(LogSoftmax, &[&back.x[0]]));
                Gradient::Dense(back.binary(Binary::Mul, &dy, &log))
            }
            false => Gradient::None,
        };
        Ok(vec![dlogits, dlabels])
    }

    /// The cost of a softmax, of the gradient, and of a product and a sum for the loss.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(&[8, count(operands.x[0])]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("SoftmaxCrossEntropyWithLogits", read)]
    }
}

/// (logits `[n, classes]`, labels `[n]` integers) -> (loss per row, gradient of logits).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseSoftmaxCrossEntropy;

impl OpRules for SparseSoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        "SparseSoftmaxCrossEntropyWithLogits"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        floats(&x[..1])?;
        expect_rank(2, x[0], "tensor of logits")?;
        integer_ids(x[1], "labels")?;
        if x[1].shape.dims() != &x[0].shape.dims()[..1] {
            return Err(Error::shape(format!(
                "the labels are {} for logits {}; expected one label per row, [{}]",
                x[1].shape,
                x[0].shape,
                x[0].shape.dims()[0]
            )));
        }
        losses(x[0])
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[1][0] == x[0][0]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let dy = loss_gradient(back)?;
        Ok(vec![Gradient::Dense(back.binary(Binary::Mul, &dy, &back.y[1])), Gradient::None])
    }

    /// The cost of a softmax; gradient and loss change only the element of the label.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(&[5, count(operands.x[0])]) + product(&[2, count(operands.x[1])]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Tlabels", writer.dtype(node, 1)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("SparseSoftmaxCrossEntropyWithLogits", read_sparse)]
    }
}

/// A loss for each row, and the gradient of the logits.
fn losses(logits: &TensorSpec) -> Result<Specs> {
    let rows = Shape::from([logits.shape.dims()[0]]);
    Ok(smallvec![TensorSpec { dtype: logits.dtype, shape: rows }, logits.clone()])
}

/// The gradient of the losses as a column. The op's second output, the logits' gradient, has no
/// gradient itself.
fn loss_gradient(back: &Backprop<'_>) -> Result<Tensor> {
    match back.upstream[1] {
        None => Ok(back.dy(0).expand_dims(-1)),
        Some(_) => Err(not_differentiable("the second derivative of a cross entropy")),
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (logits, labels) = (reading.tensor(0)?, reading.tensor(1)?);
    reading.add(SoftmaxCrossEntropy, &[&logits, &labels])
}

fn read_sparse(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (logits, labels) = (reading.tensor(0)?, reading.tensor(1)?);
    let rows = logits.shape().dims().first().copied().unwrap_or(Dim::Known(1));
    reading.add(SparseSoftmaxCrossEntropy, &[&logits, &with_rows(&labels, rows)])
}
