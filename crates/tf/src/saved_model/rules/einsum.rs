//! Sums of products over named axes: `abc,cde->abde`.
//!
//! The axes of two operands are sorted into axes of both and the result (rows of a batch), of the
//! left one, of the right one, and of both but not the result (summed). So the sum is a product of
//! matrices.

use std::ops::Range;

use estimand_graph::op::reading::{Reading, refuse, with_size};
use estimand_graph::{Axes, Tensor};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::super::node_reader::{NodeReader, Outputs, one};

/// The first label of axes that an ellipsis stands for. Other labels are letters.
const ELLIPSIS: u32 = 1 << 16;

pub(super) fn einsum(call: &mut NodeReader<'_, '_>) -> Outputs {
    let equation = call.text_or("equation", "")?;
    let place = |e: Error| e.context(format!("in the equation `{equation}`"));
    let (inputs, result) = equation
        .split_once("->")
        .ok_or_else(|| place(Error::config("there is no `->`; expected a form such as `ab,bc->ac`")))?;
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != call.n_inputs() {
        return Err(place(Error::config(format!("there are {} inputs; expected {}", call.n_inputs(), inputs.len()))));
    }
    let tensors = call.tensors(0..inputs.len())?;
    let more = |(text, tensor): (&&str, &Tensor)| match text.contains("...") {
        true => tensor.rank().saturating_sub(text.chars().filter(|c| c.is_ascii_alphabetic()).count()),
        false => 0,
    };
    let more: Vec<usize> = inputs.iter().zip(&tensors).map(more).collect();
    let n_more = more.iter().copied().max().unwrap_or_default();
    if n_more > 0 && !result.contains("...") {
        return Err(place(Error::config("an input has axes of `...`, which the result does not have")));
    }
    let mut operands = Vec::new();
    for ((text, tensor), n) in inputs.iter().zip(tensors).zip(more) {
        let labels = labels(text, n_more - n..n_more).map_err(place)?;
        if labels.len() != tensor.rank() {
            return Err(place(Error::shape(format!("`{text}` does not have the axes of {}", tensor.spec()))));
        }
        operands.push(Operand { tensor, labels });
    }
    let result = labels(result, 0..n_more).map_err(place)?;
    let made = match &mut operands[..] {
        [only] => only.keep(&result),
        [left, right] => {
            left.keep(&[&result[..], &right.labels[..]].concat());
            right.keep(&[&result[..], &left.labels[..]].concat());
            product(call, left, right, &result).map_err(place)?;
            left
        }
        _ => return Err(refuse(format!("a sum of products of {} tensors", inputs.len()))),
    };
    one(made.sorted(&result).map_err(place)?)
}

/// The labels of the axes, where an ellipsis stands for some of the axes of the longest one. A
/// shorter ellipsis has the last of them.
fn labels(text: &str, more: Range<usize>) -> Result<Vec<u32>> {
    let more: Vec<u32> = more.map(|i| ELLIPSIS + i as u32).collect();
    let (before, after) = text.split_once("...").unwrap_or((text, ""));
    let letters = |part: &str| -> Result<Vec<u32>> {
        let label = |c: char| match c.is_ascii_alphabetic() {
            true => Ok(c as u32),
            false => Err(Error::config(format!("`{c}` is not the name of an axis; expected a letter"))),
        };
        part.chars().filter(|c| *c != ' ').map(label).collect()
    };
    let mut labels = letters(before)?;
    if text.contains("...") {
        labels.extend(more);
    }
    labels.extend(letters(after)?);
    let repeated = labels.iter().enumerate().any(|(i, label)| labels[..i].contains(label));
    if repeated {
        return Err(Error::unsupported(format!("`{text}` names an axis twice: diagonals cannot be read")));
    }
    Ok(labels)
}

/// A tensor and the names of its axes.
struct Operand {
    tensor: Tensor,
    labels: Vec<u32>,
}

impl Operand {
    /// Sums over the axes that are not in a list.
    fn keep(&mut self, kept: &[u32]) -> &mut Operand {
        let dropped = self.labels.iter().enumerate().filter(|(_, label)| !kept.contains(label));
        let axes: Vec<i64> = dropped.map(|(axis, _)| axis as i64).collect();
        if !axes.is_empty() {
            self.tensor = self.tensor.sum_axes(Axes::of(axes));
            self.labels.retain(|label| kept.contains(label));
        }
        self
    }

    fn size(&self, label: u32) -> Result<Dim> {
        let axis = self.labels.iter().position(|known| *known == label);
        axis.map(|axis| self.tensor.shape().dims()[axis]).ok_or_else(|| Error::internal("an axis without a size"))
    }

    /// Gives one axis the size that it has in the other operand. The product of matrices compares
    /// only the sizes of several axes together.
    fn resize(&mut self, label: u32, size: Dim) {
        if let Some(axis) = self.labels.iter().position(|known| *known == label) {
            self.tensor = with_size(&self.tensor, axis, size);
        }
    }

    /// Broadcasts one axis to a size.
    fn widen(&mut self, label: u32, size: Dim) {
        if let Some(axis) = self.labels.iter().position(|known| *known == label) {
            let mut shape = self.tensor.shape().clone();
            shape.0[axis] = size;
            self.tensor = self.tensor.broadcast_to(shape);
        }
    }

    /// The tensor with its axes in another order.
    fn sorted(&self, order: &[u32]) -> Result<Tensor> {
        let axis = |label: &u32| self.labels.iter().position(|known| known == label);
        let axes: Option<Vec<usize>> = order.iter().map(axis).collect();
        let axes = axes.filter(|axes| axes.len() == self.labels.len());
        let axes = axes.ok_or_else(|| Error::config("the result has an axis that no input has"))?;
        let is_sorted = axes.iter().enumerate().all(|(i, &axis)| i == axis);
        Ok(if is_sorted { self.tensor.clone() } else { self.tensor.transpose(&axes) })
    }
}

/// Replaces the left operand by the product of both.
fn product(call: &NodeReader<'_, '_>, left: &mut Operand, right: &mut Operand, result: &[u32]) -> Result<()> {
    let known = right.labels.clone();
    let both = |label: &u32| known.contains(label);
    let (batch, summed): (Vec<u32>, Vec<u32>) =
        left.labels.iter().copied().filter(both).partition(|label| result.contains(label));
    let rows: Vec<u32> = left.labels.iter().copied().filter(|label| !both(label)).collect();
    let columns: Vec<u32> = right.labels.iter().copied().filter(|label| !left.labels.contains(label)).collect();
    // Only axes of `...` may be broadcast. A product of matrices broadcasts one such axis, but
    // not one of several that become one.
    let mut sizes = Vec::new();
    for &label in batch.iter().chain(&summed).filter(|&&label| label < ELLIPSIS) {
        right.resize(label, left.size(label)?);
        call.graph().check()?;
    }
    for &label in &batch {
        let (a, b) = (left.size(label)?, right.size(label)?);
        let size = match label >= ELLIPSIS {
            true => call.graph().symbols_mut(|s| s.broadcast(a, b)),
            false => Some(a),
        };
        sizes.push(size.ok_or_else(|| Error::shape(format!("an axis of `...` has the sizes {a} and {b}")))?);
    }
    if batch.len() > 1 {
        for (&label, &size) in batch.iter().zip(&sizes).filter(|(label, _)| **label >= ELLIPSIS) {
            left.widen(label, size);
            right.widen(label, size);
        }
    }
    let merged = |operand: &Operand, groups: [&[u32]; 3]| -> Result<Tensor> {
        let sizes = groups.map(|group| -> Result<Dim> {
            let dims = group.iter().map(|&label| operand.size(label)).collect::<Result<Vec<Dim>>>()?;
            call.graph().symbols_mut(|s| s.product(&dims))
        });
        let mut shape = Shape::scalar();
        for (i, size) in sizes.into_iter().enumerate() {
            // Without rows of a batch it is a product of plain matrices.
            if i > 0 || !groups[0].is_empty() {
                shape.0.push(size?);
            }
        }
        Ok(operand.sorted(&groups.concat())?.reshape_as(shape))
    };
    let (a, b) = (merged(left, [&batch, &rows, &summed])?, merged(right, [&batch, &summed, &columns])?);
    for (operand, group) in [(&*left, &rows), (&*right, &columns)] {
        for &label in group {
            sizes.push(operand.size(label)?);
        }
    }
    left.tensor = a.matmul(&b).reshape_as(sizes.into_iter().collect::<Shape>());
    left.labels = [batch, rows, columns].concat();
    Ok(())
}
