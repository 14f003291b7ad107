//! Reductions, arg max, running sums and the k largest.

use estimand_graph::op::{AxisSet, Reduction};
use estimand_tensor::{DType, Dims, Error, Result};

use super::elementwise::{maximum, minimum};
use super::layout::each_row;
use super::value::{Data, Wide, broadcast_position, count, indices};

/// Reduces `axes`. `dims` are the sizes of the result, with or without the reduced axes.
pub(super) fn reduce(kind: Reduction, x: &Wide, axes: AxisSet, dims: &[usize]) -> Result<Wide> {
    let kept: Dims = x.dims.iter().enumerate().map(|(axis, &n)| if axes.contains(axis) { 1 } else { n }).collect();
    let reduced: Dims = axes.iter().map(|axis| x.dims[axis]).collect();
    let n = count(&reduced);
    let fold = Fold { from: x.dims(), to: &kept };
    Ok(match &x.data {
        Data::Float(values) => {
            let mut result = match kind {
                Reduction::Max => fold.run(values, f64::NEG_INFINITY, maximum),
                Reduction::Min => fold.run(values, f64::INFINITY, minimum),
                Reduction::Prod => fold.run(values, 1.0, |a, b| a * b),
                _ => fold.run(values, 0.0, |a, b| a + b),
            };
            if kind == Reduction::Mean {
                result.iter_mut().for_each(|v| *v /= n as f64);
            }
            Wide::floats(x.dtype, dims, result)
        }
        Data::Int(values) => {
            let mut result = match kind {
                Reduction::Max => fold.run(values, limits(x.dtype).0, i64::max),
                Reduction::Min => fold.run(values, limits(x.dtype).1, i64::min),
                Reduction::Prod => fold.run(values, 1, i64::wrapping_mul),
                _ => fold.run(values, 0, i64::wrapping_add),
            };
            if kind == Reduction::Mean {
                if n == 0 && !result.is_empty() {
                    return Err(Error::shape(format!(
                        "the mean of no integers is not defined: {:?} is empty",
                        x.dims()
                    )));
                }
                result.iter_mut().for_each(|v| *v /= n as i64);
            }
            Wide::ints(x.dtype, dims, result)
        }
        Data::Bool(values) if kind == Reduction::All => Wide::bools(dims, fold.run(values, true, |a, b| a && b)),
        Data::Bool(values) => Wide::bools(dims, fold.run(values, false, |a, b| a || b)),
        Data::Str(_) => return Err(x.wrong_kind("numbers")),
    })
}

/// The smallest and the largest integer of a dtype.
pub(super) fn limits(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U8 => (u8::MIN.into(), u8::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Sizes before a reduction, and after with the reduced axes at 1.
struct Fold<'a> {
    from: &'a [usize],
    to: &'a [usize],
}

impl Fold<'_> {
    fn run<T: Copy>(&self, values: &[T], initial: T, step: impl Fn(T, T) -> T) -> Vec<T> {
        let mut result = vec![initial; count(self.to)];
        for (index, &value) in indices(self.from).zip(values) {
            let at = broadcast_position(self.to, &index);
            result[at] = step(result[at], value);
        }
        result
    }
}

/// The index of the first largest (or smallest) element along an axis; NaN is never selected.
pub(super) fn arg_max(x: &Wide, axis: usize, min: bool, output: DType, dims: &[usize]) -> Result<Wide> {
    fn winners<T: PartialOrd + Copy>(values: &[T], dims: &[usize], axis: usize, min: bool) -> Vec<i64> {
        let mut found = Vec::new();
        each_row(dims, axis, |row| {
            let mut best: Option<usize> = None;
            for (i, &at) in row.iter().enumerate() {
                let value = values[at];
                let beats = |b: usize| if min { value < values[row[b]] } else { value > values[row[b]] };
                // A value that does not equal itself is NaN.
                if value.partial_cmp(&value).is_some() && best.is_none_or(beats) {
                    best = Some(i);
                }
            }
            found.push(best.unwrap_or(0) as i64);
        });
        found
    }
    if x.dims[axis] == 0 {
        return Err(Error::shape(format!("axis {axis} of {:?} is empty: there is no largest element", x.dims())));
    }
    let found = match &x.data {
        Data::Float(values) => winners(values, x.dims(), axis, min),
        Data::Int(values) => winners(values, x.dims(), axis, min),
        _ => return Err(x.wrong_kind("numbers")),
    };
    Ok(Wide::ints(output, dims, found))
}

/// Running sums or products along an axis.
pub(super) fn cumulate(x: &Wide, product: bool, axis: usize, exclusive: bool, reverse: bool) -> Result<Wide> {
    let scan = Scan { axis, exclusive, reverse };
    Ok(match (&x.data, product) {
        (Data::Float(v), true) => Wide::floats(x.dtype, &x.dims, scan.run(v, &x.dims, 1.0, |a, b| a * b)),
        (Data::Float(v), false) => Wide::floats(x.dtype, &x.dims, scan.run(v, &x.dims, 0.0, |a, b| a + b)),
        (Data::Int(v), true) => Wide::ints(x.dtype, &x.dims, scan.run(v, &x.dims, 1, i64::wrapping_mul)),
        (Data::Int(v), false) => Wide::ints(x.dtype, &x.dims, scan.run(v, &x.dims, 0, i64::wrapping_add)),
        _ => return Err(x.wrong_kind("numbers")),
    })
}

struct Scan {
    axis: usize,
    exclusive: bool,
    reverse: bool,
}

impl Scan {
    fn run<T: Copy>(&self, values: &[T], dims: &[usize], initial: T, step: impl Fn(T, T) -> T) -> Vec<T> {
        let mut result = values.to_vec();
        each_row(dims, self.axis, |mut row| {
            if self.reverse {
                row.reverse();
            }
            let mut running = initial;
            for at in row {
                let next = step(running, values[at]);
                result[at] = if self.exclusive { running } else { next };
                running = next;
            }
        });
        result
    }
}

/// The k largest of the last axis and their indices. Equal elements keep their order.
pub(super) fn top_k(x: &Wide, k: usize) -> Result<[Wide; 2]> {
    let last = x.dims.len() - 1;
    if k > x.dims[last] {
        return Err(Error::shape(format!("top_k was given k = {k}, but the last axis has {} elements", x.dims[last])));
    }
    let mut dims = x.dims.clone();
    dims[last] = k;
    let mut chosen = Vec::new();
    each_row(&x.dims, last, |mut row| {
        match &x.data {
            // NaN counts as the lowest number, so that the order is total.
            Data::Float(v) => {
                let key = |at: usize| if v[at].is_nan() { f64::NEG_INFINITY } else { v[at] };
                row.sort_by(|&a, &b| key(b).partial_cmp(&key(a)).expect("no NaN is left"));
            }
            Data::Int(v) => row.sort_by_key(|&at| std::cmp::Reverse(v[at])),
            _ => {}
        }
        chosen.extend_from_slice(&row[..k]);
    });
    let indices = chosen.iter().map(|&at| (at % x.dims[last]) as i64);
    let indices = Wide::ints(DType::I32, &dims, indices);
    let values = x.pick(&dims, |index| chosen[super::value::position(&dims, index)]);
    Ok([values, indices])
}
