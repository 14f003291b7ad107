//! Reductions, running sums, the places of the largest elements, shares of a line.

use estimand_tensor::{Array, DType, Error, Result};

use super::call::Call;
use super::values::{Lines, Numbers, axis, longs, strides, sums, whole};

/// Reduces axes: those of an attribute, or of the second input of `ReduceSum`. None are all.
pub(super) fn reduce(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    if !matches!(call.op(), "ReduceMax" | "ReduceMin") {
        no_bytes(x)?;
    }
    let axes = match call.op() {
        "ReduceSum" if call.optional(1).is_some() => call.ints_of(1)?,
        "ReduceSum" => Vec::new(),
        _ => call.ints("axes")?.unwrap_or_default().to_vec(),
    };
    let axes = axes.into_iter().map(|number| axis(number, x.rank())).collect::<Result<Vec<usize>>>()?;
    let is_reduced = |axis: usize| axes.is_empty() || axes.contains(&axis);
    let kept: Vec<usize> = (0..x.rank()).map(|i| if is_reduced(i) { 1 } else { x.dims()[i] }).collect();
    let strides = strides(&kept);
    let target = |i: usize| if is_reduced(i) { vec![Some(0); x.dims()[i]] } else { whole(kept[i], strides[i]) };
    let targets: Vec<usize> = sums(&(0..x.rank()).map(target).collect::<Vec<_>>()).into_iter().flatten().collect();
    let n: usize = kept.iter().product();
    let count = (0..x.rank()).filter(|&i| is_reduced(i)).map(|i| x.dims()[i]).product::<usize>();

    let numbers = match (Numbers::of(x)?, x.dtype()) {
        (_, DType::Bool) => return Err(Error::dtype(None, DType::Bool, "the operator takes numbers")),
        (Numbers::Floats(v), _) => {
            let (first, fold): (f64, fn(f64, f64) -> f64) = match call.op() {
                "ReduceSum" | "ReduceMean" => (0.0, |a, b| a + b),
                "ReduceProd" => (1.0, |a, b| a * b),
                "ReduceMax" => (f64::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b }),
                _ => (f64::INFINITY, |a, b| if a.is_nan() || a < b { a } else { b }),
            };
            let mut all = vec![first; n];
            targets.iter().zip(&v).for_each(|(&to, &v)| all[to] = fold(all[to], v));
            if call.op() == "ReduceMean" {
                all.iter_mut().for_each(|sum| *sum /= count as f64);
            }
            Numbers::Floats(all)
        }
        (Numbers::Ints(v), dtype) => {
            let is_wide = dtype == DType::I64;
            let (first, fold): (i64, fn(i64, i64) -> i64) = match call.op() {
                "ReduceSum" => (0, i64::wrapping_add),
                "ReduceProd" => (1, i64::wrapping_mul),
                "ReduceMax" => (if is_wide { i64::MIN } else { i32::MIN.into() }, i64::max),
                "ReduceMin" => (if is_wide { i64::MAX } else { i32::MAX.into() }, i64::min),
                _ => return Err(Error::unsupported("this library does not write a mean of integers")),
            };
            let mut all = vec![first; n];
            targets.iter().zip(&v).for_each(|(&to, &v)| all[to] = fold(all[to], v));
            Numbers::Ints(all)
        }
    };
    let left: Vec<usize> = (0..x.rank()).filter(|&i| !is_reduced(i)).map(|i| x.dims()[i]).collect();
    let dims = if call.flag("keepdims", true)? { kept } else { left };
    numbers.array(x.dtype(), &dims)
}

/// ONNX does not define sums and products of bytes.
fn no_bytes(x: &Array) -> Result<()> {
    match x.dtype() {
        DType::U8 => Err(Error::dtype(Some(DType::I64), DType::U8, "the operator takes no bytes")),
        _ => Ok(()),
    }
}

/// The place of the largest or smallest element, the first of equals.
pub(super) fn arg_max(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let along = axis(call.int("axis", 0)?, x.rank())?;
    let is_max = call.op() == "ArgMax";
    let lines = Lines::new(x.dims(), along);
    if lines.n == 0 {
        return Err(Error::data("there is no largest element of none"));
    }
    let numbers = Numbers::of(x)?;
    let beats = |a: usize, b: usize| match &numbers {
        Numbers::Floats(v) => {
            if is_max {
                v[a] > v[b]
            } else {
                v[a] < v[b]
            }
        }
        Numbers::Ints(v) => {
            if is_max {
                v[a] > v[b]
            } else {
                v[a] < v[b]
            }
        }
    };
    let best = |line: Vec<usize>| (1..lines.n).fold(0, |best, i| if beats(line[i], line[best]) { i } else { best });
    let found: Vec<i64> = lines.each().map(|line| best(line) as i64).collect();
    let mut dims = x.dims().to_vec();
    match call.flag("keepdims", true)? {
        true => dims[along] = 1,
        false => _ = dims.remove(along),
    }
    longs(&dims, found)
}

/// Running sums along an axis.
pub(super) fn cum_sum(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    no_bytes(x)?;
    let along = axis(call.int_of(1)?, x.rank())?;
    let (exclusive, reverse) = (call.flag("exclusive", false)?, call.flag("reverse", false)?);
    let lines = Lines::new(x.dims(), along);
    let mut numbers = Numbers::of(x)?;
    for mut line in lines.each() {
        if reverse {
            line.reverse();
        }
        match &mut numbers {
            Numbers::Floats(v) => {
                let mut sum = 0.0;
                for i in line {
                    let next = sum + v[i];
                    v[i] = if exclusive { sum } else { next };
                    sum = next;
                }
            }
            Numbers::Ints(v) => {
                let mut sum = 0i64;
                for i in line {
                    let next = sum.wrapping_add(v[i]);
                    v[i] = if exclusive { sum } else { next };
                    sum = next;
                }
            }
        }
    }
    numbers.array(x.dtype(), x.dims())
}

/// `Softmax` and `LogSoftmax` along an axis.
pub(super) fn softmax(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let along = axis(call.int("axis", -1)?, x.rank())?;
    let Numbers::Floats(mut v) = Numbers::of(x)? else {
        return Err(Error::dtype(Some(DType::F32), x.dtype(), "the operator takes floats"));
    };
    for line in Lines::new(x.dims(), along).each() {
        let largest = line.iter().map(|&i| v[i]).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = line.iter().map(|&i| (v[i] - largest).exp()).sum();
        for i in line {
            v[i] -= largest;
            v[i] = if call.op() == "Softmax" { v[i].exp() / sum } else { v[i] - sum.ln() };
        }
    }
    Numbers::Floats(v).array(x.dtype(), x.dims())
}
