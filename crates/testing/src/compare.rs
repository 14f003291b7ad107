//! Compares two results, by the same rule as the comparison with TensorFlow
//! (`oracles/live/graphdef.py`).

use estimand_tensor::{Array, DType, Result};

/// The allowed difference of floats, relative to the largest value of their tensor.
const TOLERANCE: f64 = 1e-5;

/// The lower bound of that largest value: sums that cancel keep the rounding of their terms.
const SMALLEST: f64 = 1.0;

/// Returns the reason why two arrays differ by more than rounding; `None` if they do not.
pub fn difference(a: &Array, b: &Array) -> Result<Option<String>> {
    if a.dtype() != b.dtype() || a.dims() != b.dims() {
        let describe = |x: &Array| format!("{}{:?}", x.dtype(), x.dims());
        return Ok(Some(format!("{} is not {}", describe(a), describe(b))));
    }
    if a.dtype() != DType::F32 {
        let same = if a.dtype() == DType::Str { a == b } else { a.bytes() == b.bytes() };
        return Ok((!same).then(|| format!("{a} is not {b}")));
    }
    let (a, b) = (a.as_slice::<f32>()?, b.as_slice::<f32>()?);
    let finite = |x: &[f32]| x.iter().filter(|v| v.is_finite()).fold(0f64, |m, v| m.max(f64::from(v.abs())));
    let largest = finite(a).max(finite(b)).max(SMALLEST);
    for (i, (&x, &y)) in a.iter().zip(b).enumerate() {
        let same = match x.is_finite() && y.is_finite() {
            true => f64::from((x - y).abs()) <= TOLERANCE * largest,
            false => x == y || (x.is_nan() && y.is_nan()),
        };
        if !same {
            return Ok(Some(format!("element {i}: {x} is not {y}; the largest is {largest}")));
        }
    }
    Ok(None)
}
