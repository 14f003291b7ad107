//! Positions of extremes: TensorFlow's ArgMax and ArgMin.

use crate::parallel::{DisjointMut, Pool};
use crate::{DType, Error, Result};

/// The extreme to find.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extreme {
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
}

/// The number of elements of a task.
const TASK: usize = 1 << 14;

/// Finds the position of the first extreme along the middle axis of a dense array
/// `[outer, n, inner]`, as `i32` or `i64`.
///
/// NaN is never an extreme; if there is nothing else, and if `n` is 0, the position is 0. Returns
/// an error if the dtype has no order or the index dtype cannot hold positions.
///
/// # Safety
/// `x` must hold `outer * n * inner` elements, and `out` must have room for `outer * inner`
/// elements of `index`, both aligned.
#[allow(clippy::too_many_arguments)] // a shape of three and two arrays with their dtypes
pub unsafe fn arg_extreme(
    pool: &Pool,
    extreme: Extreme,
    dtype: DType,
    [outer, n, inner]: [usize; 3],
    x: *const u8,
    index: DType,
    out: *mut u8,
) -> Result<()> {
    macro_rules! of {
        ($t:ty, $i:ty) => {{
            // SAFETY: the arrays have these elements by the contract.
            let (x, out) = unsafe {
                (
                    std::slice::from_raw_parts(x.cast::<$t>(), outer * n * inner),
                    std::slice::from_raw_parts_mut(out.cast::<$i>(), outer * inner),
                )
            };
            match extreme {
                Extreme::Max => positions(pool, [outer, n, inner], x, out, |i| i as $i, |x, best| x > best),
                Extreme::Min => positions(pool, [outer, n, inner], x, out, |i| i as $i, |x, best| x < best),
            }
        }};
    }
    match (dtype, index) {
        (DType::F32, DType::I32) => of!(f32, i32),
        (DType::F32, DType::I64) => of!(f32, i64),
        (DType::F64, DType::I32) => of!(f64, i32),
        (DType::F64, DType::I64) => of!(f64, i64),
        (DType::I32, DType::I32) => of!(i32, i32),
        (DType::I32, DType::I64) => of!(i32, i64),
        (DType::I64, DType::I32) => of!(i64, i32),
        (DType::I64, DType::I64) => of!(i64, i64),
        (DType::U8, DType::I32) => of!(u8, i32),
        (DType::U8, DType::I64) => of!(u8, i64),
        _ => {
            let message = format!("the position of the largest or smallest {dtype} cannot be computed as {index}");
            return Err(Error::dtype(None, dtype, message));
        }
    }
    Ok(())
}

fn positions<T: Copy + PartialOrd + Sync, I: Copy + Send>(
    pool: &Pool,
    [outer, n, inner]: [usize; 3],
    x: &[T],
    out: &mut [I],
    position: impl Fn(usize) -> I + Sync,
    better: impl Fn(T, T) -> bool + Sync,
) {
    let per_task = (TASK / (n * inner).max(1)).max(1);
    let out = DisjointMut::new(out);
    pool.run(outer.div_ceil(per_task), &|task| {
        for o in task * per_task..((task + 1) * per_task).min(outer) {
            // SAFETY: only one task writes the results of each `o`.
            let out = unsafe { out.slice(o * inner, inner) };
            for (c, out) in out.iter_mut().enumerate() {
                let column = x[o * n * inner..(o + 1) * n * inner].iter().skip(c).step_by(inner).copied();
                *out = position(first_best(column, &better));
            }
        }
    });
}

/// The position of the first element that no other element beats. Elements that do not equal
/// themselves are ignored.
fn first_best<T: Copy + PartialOrd>(column: impl Iterator<Item = T>, better: &impl Fn(T, T) -> bool) -> usize {
    let mut best: Option<(usize, T)> = None;
    for (i, x) in column.enumerate() {
        #[allow(clippy::eq_op)] // NaN
        if x == x && best.is_none_or(|(_, b)| better(x, b)) {
            best = Some((i, x));
        }
    }
    best.map_or(0, |(i, _)| i)
}
