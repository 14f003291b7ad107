//! Kernels that move elements. Each maps an element of the result to its source.

use estimand_graph::op::AxisSet;
use estimand_tensor::{Dims, Error, Result};

use super::value::{Data, Wide, broadcast_position, check_broadcast, check_dims, count, index_of, indices, position};

pub(super) fn transpose(x: &Wide, perm: &[u8]) -> Wide {
    let dims: Dims = perm.iter().map(|&axis| x.dims[axis as usize]).collect();
    x.pick(&dims, |index| {
        let mut from: Dims = x.dims.clone();
        for (&axis, &i) in perm.iter().zip(index) {
            from[axis as usize] = i;
        }
        position(&x.dims, &from)
    })
}

pub(super) fn concat(axis: usize, parts: &[&Wide]) -> Result<Wide> {
    let mut dims = parts[0].dims.clone();
    for part in &parts[1..] {
        let mut expected = dims.clone();
        expected[axis] = part.dims[axis];
        check_dims("joined tensor", part.dims(), &expected)?;
        dims[axis] += part.dims[axis];
    }
    // Copies one row of each part in turn: a row is all elements of one index of the leading axes.
    let lead = count(&dims[..axis]);
    fn join<'a, T: Clone + 'a>(lead: usize, parts: &[&'a [T]]) -> Vec<T> {
        let row = |part: &&'a [T], i: usize| {
            let n = part.len() / lead;
            part[i * n..(i + 1) * n].to_vec()
        };
        (0..lead).flat_map(|i| parts.iter().flat_map(move |part| row(part, i))).collect()
    }
    let data = match &parts[0].data {
        Data::Float(_) => Data::Float(join(lead, &parts.iter().map(|p| p.as_floats()).collect::<Result<Vec<_>>>()?)),
        Data::Int(_) => Data::Int(join(lead, &parts.iter().map(|p| p.as_ints()).collect::<Result<Vec<_>>>()?)),
        Data::Bool(_) => Data::Bool(join(lead, &parts.iter().map(|p| p.as_bools()).collect::<Result<Vec<_>>>()?)),
        Data::Str(_) => Data::Str(join(lead, &parts.iter().map(|p| p.as_strings()).collect::<Result<Vec<_>>>()?)),
    };
    Ok(Wide { dtype: parts[0].dtype, dims, data })
}

pub(super) fn slice(x: &Wide, begin: &[usize], size: &[usize]) -> Result<Wide> {
    strided_slice(x, begin, &vec![1; begin.len()], size)
}

/// Maps an index of a strided slice to its source.
fn strided(begin: &[usize], strides: &[i64], index: &[usize]) -> Dims {
    let place = |((&b, &s), &i): ((&usize, &i64), &usize)| b.wrapping_add_signed(s as isize * i as isize);
    begin.iter().zip(strides).zip(index).map(place).collect()
}

/// Checks that the first and the last element of a slice lie inside its source. Sizes may be known
/// only now.
fn check_slice(dims: &[usize], begin: &[usize], strides: &[i64], size: &[usize]) -> Result<()> {
    for (axis, &n) in dims.iter().enumerate() {
        let last = begin[axis] as i128 + i128::from(strides[axis]) * (size[axis] as i128 - 1);
        if size[axis] > 0 && (begin[axis] >= n || !(0..n as i128).contains(&last)) {
            return Err(Error::index(format!(
                "the slice of {} elements from {} with stride {} is outside axis {axis}, which has size {n}",
                size[axis], begin[axis], strides[axis]
            )));
        }
    }
    Ok(())
}

pub(super) fn strided_slice(x: &Wide, begin: &[usize], strides: &[i64], size: &[usize]) -> Result<Wide> {
    check_slice(x.dims(), begin, strides, size)?;
    Ok(x.pick(size, |index| position(&x.dims, &strided(begin, strides, index))))
}

/// Zeros of `dims` with `dy` at the positions of the slice.
pub(super) fn strided_slice_grad(dy: &Wide, begin: &[usize], strides: &[i64], dims: &[usize]) -> Result<Wide> {
    check_slice(dims, begin, strides, dy.dims())?;
    scatter(dy, dims, |index| Some(position(dims, &strided(begin, strides, index))))
}

/// Adds every element of `x` to zeros of `dims`, at the position that `to` returns: the adjoint of
/// `pick`.
pub(super) fn scatter(x: &Wide, dims: &[usize], to: impl Fn(&[usize]) -> Option<usize>) -> Result<Wide> {
    let targets = indices(x.dims()).map(|index| to(&index));
    match &x.data {
        Data::Float(values) => {
            let mut sums = vec![0.0; count(dims)];
            for (at, value) in targets.zip(values) {
                if let Some(at) = at {
                    sums[at] += value;
                }
            }
            Ok(Wide::floats(x.dtype, dims, sums))
        }
        Data::Int(values) => {
            let mut sums = vec![0i64; count(dims)];
            for (at, value) in targets.zip(values) {
                if let Some(at) = at {
                    sums[at] = sums[at].wrapping_add(*value);
                }
            }
            Ok(Wide::ints(x.dtype, dims, sums))
        }
        _ => Err(x.wrong_kind("numbers")),
    }
}

/// Sums x over the axes along which `like` was broadcast.
pub(super) fn sum_to(x: &Wide, like: &[usize]) -> Result<Wide> {
    check_broadcast(like, x.dims())?;
    scatter(x, like, |index| Some(broadcast_position(like, index)))
}

pub(super) fn pad(x: &Wide, value: &Wide, before: &[usize], dims: &[usize]) -> Result<Wide> {
    // The border reads the padding value, which is stored after the elements of x.
    let both = concat(0, &[&x.reshape(&[x.len()])?, &value.reshape(&[1])?])?;
    Ok(both.pick(dims, |index| {
        let inside = |((&i, &b), &n): ((&usize, &usize), &usize)| i.checked_sub(b).filter(|&i| i < n);
        let from: Option<Dims> = index.iter().zip(before).zip(&x.dims).map(inside).collect();
        from.map_or(x.len(), |from| position(&x.dims, &from))
    }))
}

/// Maps an index of a mirror-padded array to its source.
fn mirrored(dims: &[usize], paddings: &[(usize, usize)], symmetric: bool, index: &[usize]) -> Dims {
    let edge = i64::from(symmetric);
    let place = |((&n, &(before, _)), &i): ((&usize, &(usize, usize)), &usize)| {
        let (n, i) = (n as i64, i as i64 - before as i64);
        let mirrored = match i {
            i if i < 0 => -i - edge,
            i if i >= n => 2 * n - 2 - i + edge,
            i => i,
        };
        mirrored as usize
    };
    dims.iter().zip(paddings).zip(index).map(place).collect()
}

pub(super) fn mirror_pad(x: &Wide, paddings: &[(usize, usize)], symmetric: bool, dims: &[usize]) -> Wide {
    x.pick(dims, |index| position(&x.dims, &mirrored(&x.dims, paddings, symmetric, index)))
}

pub(super) fn mirror_pad_grad(dy: &Wide, paddings: &[(usize, usize)], symmetric: bool, dims: &[usize]) -> Result<Wide> {
    scatter(dy, dims, |index| Some(position(dims, &mirrored(dims, paddings, symmetric, index))))
}

pub(super) fn tile(x: &Wide, dims: &[usize]) -> Wide {
    x.pick(dims, |index| {
        let from: Dims = index.iter().zip(&x.dims).map(|(&i, &n)| i % n).collect();
        position(&x.dims, &from)
    })
}

pub(super) fn reverse(x: &Wide, axes: AxisSet) -> Wide {
    x.pick(&x.dims, |index| {
        let from = |(axis, &i): (usize, &usize)| if axes.contains(axis) { x.dims[axis] - 1 - i } else { i };
        position(&x.dims, &index.iter().enumerate().map(from).collect::<Dims>())
    })
}

pub(super) fn band_part(x: &Wide, lower: Option<usize>, upper: Option<usize>) -> Wide {
    fn each<T: Copy>(values: &[T], zero: T, dims: &[usize], stays: impl Fn(&[usize]) -> bool) -> Vec<T> {
        indices(dims).zip(values).map(|(index, &value)| if stays(&index) { value } else { zero }).collect()
    }
    let stays = |index: &[usize]| {
        let (i, j) = (index[index.len() - 2], index[index.len() - 1]);
        lower.is_none_or(|lower| i <= j + lower) && upper.is_none_or(|upper| j <= i + upper)
    };
    let data = match &x.data {
        Data::Float(values) => Data::Float(each(values, 0.0, &x.dims, stays)),
        Data::Int(values) => Data::Int(each(values, 0, &x.dims, stays)),
        Data::Bool(values) => Data::Bool(each(values, false, &x.dims, stays)),
        // `infer` has refused strings.
        Data::Str(values) => Data::Str(values.clone()),
    };
    Wide { dtype: x.dtype, dims: x.dims.clone(), data }
}

/// Calls `f` for every row along an axis, with the positions of its elements in order.
pub(super) fn each_row(dims: &[usize], axis: usize, mut f: impl FnMut(Vec<usize>)) {
    let mut lead: Dims = dims.into();
    lead[axis] = 1;
    for at in 0..count(&lead) {
        let mut index = index_of(&lead, at);
        let row = (0..dims[axis]).map(|i| {
            index[axis] = i;
            position(dims, &index)
        });
        f(row.collect());
    }
}
