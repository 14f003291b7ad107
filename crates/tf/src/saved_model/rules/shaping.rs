//! Ops that move elements. TensorFlow's attributes are inputs; ours are data.

use estimand_graph::op::reading::{Reading, axis as axis_of};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::{Number, Numbers};

pub(super) fn expand_dims(call: &mut NodeReader<'_, '_>) -> Outputs {
    let axis = call.integer(1)?;
    if let Some(numbers) = call.numbers(0)? {
        let at = axis_of(axis, numbers.dims.len() + 1)?;
        let mut dims = numbers.dims.clone();
        dims.insert(at, 1);
        return one(Numbers { dims, ..numbers });
    }
    one(call.tensor(0)?.expand_dims(axis))
}

pub(super) fn squeeze(call: &mut NodeReader<'_, '_>) -> Outputs {
    let axes = call.list("squeeze_dims")?.i;
    let axes = if axes.is_empty() { call.list("axis")?.i } else { axes };
    if let Some(numbers) = call.numbers(0)? {
        let axes = axes.iter().map(|&a| axis_of(a, numbers.dims.len())).collect::<Result<Vec<_>>>()?;
        let dropped = |(i, &d): (usize, &usize)| d == 1 && (axes.is_empty() || axes.contains(&i));
        let dims = numbers.dims.iter().enumerate().filter(|&at| !dropped(at)).map(|(_, &d)| d as i64);
        if let Some(numbers) = numbers.reshape(&dims.collect::<Vec<_>>()) {
            return one(numbers);
        }
    }
    let tensor = call.tensor(0)?;
    // An axis of unknown size that is squeezed must have size 1; the run checks it.
    let set = axes.iter().map(|&a| axis_of(a, tensor.rank())).collect::<Result<Vec<_>>>()?;
    let kept = |(i, d): &(usize, &Dim)| match set.contains(i) {
        true => false,
        false => !(set.is_empty() && **d == Dim::Known(1)),
    };
    let shape: Shape = tensor.shape().dims().iter().enumerate().filter(kept).map(|(_, &d)| d).collect();
    one(tensor.reshape_as(shape))
}

/// Repeats axes. Our op needs known repeat counts. For others, a new axis of size 1 is broadcast.
pub(super) fn tile(call: &mut NodeReader<'_, '_>) -> Outputs {
    let multiples = call.sizes(1, false)?;
    let tensor = call.tensor(0)?;
    if multiples.len() != tensor.rank() {
        return Err(Error::shape(format!(
            "there are {} multiples for a tensor with {} axes",
            multiples.len(),
            tensor.rank()
        )));
    }
    let known = |d: &Dim| d.known();
    if let Some(multiples) = multiples.iter().map(known).collect::<Option<Vec<usize>>>() {
        return one(if multiples.iter().all(|&m| m == 1) { tensor } else { tensor.tile(&multiples) });
    }
    let (mut narrow, mut wide, mut result) = (Shape::scalar(), Shape::scalar(), Shape::scalar());
    for (&multiple, &size) in multiples.iter().zip(tensor.shape().dims()) {
        if multiple != Dim::Known(1) && size != Dim::Known(1) {
            narrow.0.push(Dim::Known(1));
            wide.0.push(multiple);
        }
        narrow.0.push(size);
        wide.0.push(if size == Dim::Known(1) { multiple } else { size });
        result.0.push(call.graph().symbols_mut(|s| s.mul(multiple, size))?);
    }
    one(tensor.reshape_as(narrow).broadcast_to(wide).reshape_as(result))
}

/// The axes to sum a gradient over, to get back to the shape before a broadcast.
pub(super) fn broadcast_gradient_axes(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (a, b) = (call.elements(0)?, call.elements(1)?);
    let dtype = call.dtype_or("T", Some(DType::I32))?;
    match (a.known(), b.known()) {
        (Some(x), Some(y)) => {
            let rank = x.len().max(y.len());
            let at = |sizes: &[i64], i: usize| (i + sizes.len()).checked_sub(rank).map_or(1, |k| sizes[k]);
            // TF: an axis of size 1 is summed over even if both shapes have it.
            let axes = |sizes: &[i64]| {
                let axes = (0..rank).filter(|&i| at(sizes, i) == 1).map(|i| Number::Known(i as i64));
                Numbers::list(dtype, axes.collect()).into()
            };
            Ok(vec![axes(&x), axes(&y)])
        }
        // The axes are known only at run time; our own op finds them.
        _ => Ok(vec![NodeOutput::AxesTo(Box::new(a)), NodeOutput::AxesTo(Box::new(b))]),
    }
}
