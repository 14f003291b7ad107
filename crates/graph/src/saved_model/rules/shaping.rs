//! Ops that move elements around: what TensorFlow takes as inputs, ours hold as data.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape};

use super::super::call::{Call, Outputs, one};
use super::super::item::Item;
use super::super::numbers::{Number, Numbers};
use crate::graph::Graph;
use crate::op::Op;
use crate::tensor::Tensor;

pub(super) fn reshape(call: &mut Call<'_, '_>) -> Outputs {
    let sizes = call.elements(1)?;
    if let (Some(numbers), Some(dims)) = (call.numbers(0)?, sizes.known())
        && let Some(numbers) = numbers.reshape(&dims)
    {
        return one(numbers);
    }
    let size = |n: &Number| match n {
        Number::Known(-1) => Ok(Graph::ANY),
        n => call.reader.size(n),
    };
    let shape: Shape = sizes.elements.iter().map(size).collect::<Result<Vec<Dim>>>()?.into_iter().collect();
    one(call.tensor(0)?.reshape_as(shape))
}

pub(super) fn expand_dims(call: &mut Call<'_, '_>) -> Outputs {
    let axis = call.integer(1)?;
    if let Some(numbers) = call.numbers(0)? {
        let at = call.axis(axis, numbers.dims.len() + 1)?;
        let mut dims = numbers.dims.clone();
        dims.insert(at, 1);
        return one(Numbers { dims, ..numbers });
    }
    one(call.tensor(0)?.expand_dims(axis))
}

pub(super) fn squeeze(call: &mut Call<'_, '_>) -> Outputs {
    let axes = call.list("squeeze_dims")?.i;
    let axes = if axes.is_empty() { call.list("axis")?.i } else { axes };
    if let Some(numbers) = call.numbers(0)? {
        let axes = axes.iter().map(|&a| call.axis(a, numbers.dims.len())).collect::<Result<Vec<_>>>()?;
        let dropped = |(i, &d): (usize, &usize)| d == 1 && (axes.is_empty() || axes.contains(&i));
        let dims = numbers.dims.iter().enumerate().filter(|&at| !dropped(at)).map(|(_, &d)| d as i64);
        if let Some(numbers) = numbers.reshape(&dims.collect::<Vec<_>>()) {
            return one(numbers);
        }
    }
    let tensor = call.tensor(0)?;
    // An axis of unknown size that is to be dropped has size 1, or the run says so.
    let set = axes.iter().map(|&a| call.axis(a, tensor.rank())).collect::<Result<Vec<_>>>()?;
    let kept = |(i, d): &(usize, &Dim)| match set.contains(i) {
        true => false,
        false => !(set.is_empty() && **d == Dim::Known(1)),
    };
    let shape: Shape = tensor.shape().dims().iter().enumerate().filter(kept).map(|(_, &d)| d).collect();
    one(tensor.reshape_as(shape))
}

pub(super) fn transpose(call: &mut Call<'_, '_>) -> Outputs {
    let perm = call.integers(1)?;
    let tensor = call.tensor(0)?;
    let perm = perm.iter().map(|&a| call.axis(a, tensor.rank())).collect::<Result<Vec<_>>>()?;
    if perm.len() != tensor.rank() {
        return Err(Error::shape(format!("a permutation {perm:?} of {} axes", tensor.rank())));
    }
    one(if perm.is_empty() { tensor } else { tensor.transpose(&perm) })
}

pub(super) fn broadcast_to(call: &mut Call<'_, '_>) -> Outputs {
    let shape = call.shape(1)?;
    one(call.tensor(0)?.broadcast_to(shape))
}

/// Repeats axes. Ours repeats known numbers of times; other axes are spread from one beside them.
pub(super) fn tile(call: &mut Call<'_, '_>) -> Outputs {
    let multiples = call.sizes(1)?;
    let tensor = call.tensor(0)?;
    if multiples.len() != tensor.rank() {
        return Err(Error::shape(format!("{} multiples for {} axes", multiples.len(), tensor.rank())));
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

/// (before, after) of each axis.
fn paddings(call: &mut Call<'_, '_>) -> Result<Vec<(Dim, Dim)>> {
    let sizes = call.sizes(1)?;
    Ok(sizes.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

pub(super) fn pad(call: &mut Call<'_, '_>) -> Outputs {
    let paddings = paddings(call)?;
    let tensor = call.tensor(0)?;
    let value = match call.n_inputs() {
        2 => call.graph().constant(Array::zeros(tensor.dtype(), [])?),
        _ => call.tensor(2)?,
    };
    let before = paddings.iter().map(|p| p.0).collect();
    let after = paddings.iter().map(|p| p.1).collect();
    one(call.add(Op::Pad { before, after }, &[&tensor, &value])?.remove(0))
}

pub(super) fn mirror_pad(call: &mut Call<'_, '_>) -> Outputs {
    let known = |(b, a): (Dim, Dim)| b.known().zip(a.known());
    let paddings = paddings(call)?.into_iter().map(known).collect::<Option<Vec<_>>>();
    let paddings = paddings.ok_or_else(|| call.refuse("mirror padding by a number that the run computes"))?;
    let symmetric = call.text_or("mode", "REFLECT")? == "SYMMETRIC";
    let tensor = call.tensor(0)?;
    let op = match call.def.op.as_str() {
        "MirrorPad" => Op::MirrorPad { paddings, symmetric },
        _ => Op::MirrorPadGrad { paddings, symmetric },
    };
    one(call.add(op, &[&tensor])?.remove(0))
}

pub(super) fn reverse(call: &mut Call<'_, '_>) -> Outputs {
    let axes = call.integers(1)?;
    one(call.tensor(0)?.reverse(&axes))
}

/// The axes over which a gradient is summed to get back to the shape of what was broadcast.
pub(super) fn broadcast_gradient_axes(call: &mut Call<'_, '_>) -> Outputs {
    let (a, b) = (call.elements(0)?, call.elements(1)?);
    let dtype = call.dtype_or("T", Some(DType::I32))?;
    match (a.known(), b.known()) {
        (Some(x), Some(y)) => {
            let rank = x.len().max(y.len());
            let at = |sizes: &[i64], i: usize| (i + sizes.len()).checked_sub(rank).map_or(1, |k| sizes[k]);
            // TF: an axis of 1 is summed over also where both have it.
            let axes = |sizes: &[i64]| {
                let axes = (0..rank).filter(|&i| at(sizes, i) == 1).map(|i| Number::Known(i as i64));
                Numbers::list(dtype, axes.collect()).into()
            };
            Ok(vec![axes(&x), axes(&y)])
        }
        // Which axes these are only the run knows; our own op finds out.
        _ => Ok(vec![Item::AxesTo(Box::new(a)), Item::AxesTo(Box::new(b))]),
    }
}

/// A tensor with another size for one axis, where both are known only to the run.
pub(super) fn with_rows(tensor: &Tensor, rows: Dim) -> Tensor {
    let mut shape = tensor.shape().clone();
    match shape.0.first_mut() {
        Some(first) if *first != rows => {
            *first = rows;
            tensor.reshape_as(shape)
        }
        _ => tensor.clone(),
    }
}
