//! Shapes that follow from other shapes.

use estimand_tensor::{Dim, Error, Result, Shape, TensorSpec};
use smallvec::smallvec;

use super::expect::{axis_of, expect_rank_of, same_dtype};
use super::{Specs, one};
use crate::symbols::Symbols;

pub(crate) fn broadcast(a: &Shape, b: &Shape, symbols: &mut Symbols) -> Result<Shape> {
    let rank = a.rank().max(b.rank());
    let at = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(Dim::Known(1), |k| s.dims()[k]);
    let dims: Option<Vec<Dim>> = (0..rank).map(|i| symbols.broadcast(at(a, i), at(b, i))).collect();
    dims.map(|d| d.into_iter().collect()).ok_or_else(|| {
        Error::shape(format!("{a} and {b} cannot be broadcast: sizes must be equal or 1, aligned at the last axis"))
    })
}

pub(super) fn reshape(from: &Shape, to: &Shape, symbols: &mut Symbols) -> Result<Shape> {
    let free = to.dims().iter().filter(|d| **d == crate::Graph::ANY).count();
    let cannot = |why: &str| Error::shape(format!("cannot reshape {from} to {}: {why}", display_target(to)));
    let mut shape = to.clone();
    match free {
        0 => {}
        1 => {
            let rest: Vec<Dim> = to.dims().iter().copied().filter(|d| *d != crate::Graph::ANY).collect();
            let dim = match symbols.exact_quotient(from.dims(), &rest)? {
                Some(dim) => dim,
                None if from.known().is_some() && rest.iter().all(|d| d.known().is_some()) => {
                    return Err(cannot("the element count does not divide"));
                }
                None => {
                    let (total, part) = (symbols.product(from.dims())?, symbols.product(&rest)?);
                    if part == Dim::Known(0) {
                        return Err(cannot("-1 beside a size of 0 could be anything"));
                    }
                    symbols.div(total, part)
                }
            };
            for d in shape.0.iter_mut().filter(|d| **d == crate::Graph::ANY) {
                *d = dim;
            }
        }
        _ => return Err(cannot("more than one -1")),
    }
    let (before, after) = (symbols.product(from.dims())?, symbols.product(shape.dims())?);
    match (before.known(), after.known()) {
        (Some(a), Some(b)) if a != b => Err(cannot(&format!("{a} elements are not {b}"))),
        _ => Ok(shape),
    }
}

fn display_target(shape: &Shape) -> String {
    let text = |d: &Dim| if *d == crate::Graph::ANY { "-1".to_string() } else { d.to_string() };
    format!("[{}]", shape.dims().iter().map(text).collect::<Vec<_>>().join(", "))
}

pub(super) fn concat(axis: usize, x: &[&TensorSpec], symbols: &mut Symbols) -> Result<Specs> {
    let Some((first, rest)) = x.split_first() else {
        return Err(Error::config("concat of no tensors; expected at least one"));
    };
    axis_of(axis, first)?;
    let mut shape = first.shape.clone();
    for other in rest {
        same_dtype(first, other)?;
        expect_rank_of(first.shape.rank(), other, "axes")?;
        for i in 0..shape.rank() {
            let (a, b) = (shape.dims()[i], other.shape.dims()[i]);
            if i == axis {
                shape.0[i] = symbols.add(a, b)?;
            } else if a.known().is_some() && b.known().is_some() && a != b {
                return Err(Error::shape(format!(
                    "{} and {} differ on axis {i}, which is not the joined axis {axis}",
                    first.shape, other.shape
                )));
            } else if a.known().is_none() {
                shape.0[i] = b;
            }
        }
    }
    one(first.dtype, shape)
}

pub(super) fn strided_bounds(begin: &[usize], strides: &[i64], size: &[usize], shape: &Shape) -> Result<()> {
    for axis in 0..size.len() {
        let Some(d) = shape.dims()[axis].known() else {
            if begin[axis] == 0 && strides[axis] == 1 {
                continue;
            }
            return Err(Error::shape(format!("strided slice of axis {axis} of {shape}: its size must be known")));
        };
        let last = (begin[axis] as i64).saturating_add(strides[axis].saturating_mul(size[axis] as i64 - 1));
        if strides[axis] == 0 || (size[axis] > 0 && (begin[axis] >= d || !(0..d as i64).contains(&last))) {
            return Err(Error::index(format!(
                "strided slice of axis {axis} of {shape}: {} elements from {} by {} leave it",
                size[axis], begin[axis], strides[axis]
            )));
        }
    }
    Ok(())
}

pub(super) fn mirror_pad(x: &TensorSpec, paddings: &[(usize, usize)], symmetric: bool) -> Result<Specs> {
    expect_rank_of(paddings.len(), x, "paddings")?;
    let mut shape = Shape::scalar();
    for (axis, (&d, &(before, after))) in x.shape.dims().iter().zip(paddings).enumerate() {
        if (before, after) == (0, 0) {
            shape.0.push(d);
            continue;
        }
        let Some(n) = d.known() else {
            return Err(Error::shape(format!("mirror padding of axis {axis} of {}: its size must be known", x.shape)));
        };
        let most = if symmetric { n } else { n.saturating_sub(1) };
        if before > most || after > most {
            return Err(Error::shape(format!(
                "mirror padding ({before}, {after}) of axis {axis} of size {n}: at most {most}"
            )));
        }
        shape.0.push(Dim::Known(n + before + after));
    }
    one(x.dtype, shape)
}

pub(super) fn product_shape(x: &[&TensorSpec], transpose_a: bool, transpose_b: bool) -> Result<Shape> {
    let last_two = |s: &Shape, transpose: bool| {
        let d = &s.dims()[s.rank() - 2..];
        if transpose { (d[1], d[0]) } else { (d[0], d[1]) }
    };
    let ((m, k), (k2, n)) = (last_two(&x[0].shape, transpose_a), last_two(&x[1].shape, transpose_b));
    if let (Some(a), Some(b)) = (k.known(), k2.known())
        && a != b
    {
        let note = |t: bool| if t { " transposed" } else { "" };
        return Err(Error::shape(format!(
            "{}{} times {}{}: the inner sizes {a} and {b} differ",
            x[0].shape,
            note(transpose_a),
            x[1].shape,
            note(transpose_b)
        )));
    }
    Ok(Shape::from([m, n]))
}

pub(super) fn losses(logits: &TensorSpec) -> Result<Specs> {
    let rows = Shape::from([logits.shape.dims()[0]]);
    Ok(smallvec![TensorSpec { dtype: logits.dtype, shape: rows }, logits.clone()])
}
