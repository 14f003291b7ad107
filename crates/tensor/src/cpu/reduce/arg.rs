//! Positions of extremes: TensorFlow's ArgMax and ArgMin.

use crate::cpu::isa::Isa;
use crate::cpu::twins::twins;
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
        (DType::F32, DType::I64) if inner == 1 && n < u32::MAX as usize => {
            // SAFETY: as in the macro.
            let (x, out) = unsafe {
                (
                    std::slice::from_raw_parts(x.cast::<f32>(), outer * n),
                    std::slice::from_raw_parts_mut(out.cast::<i64>(), outer),
                )
            };
            positions_in_rows(pool, extreme, n, x, out);
        }
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

/// The number of elements that are compared at once.
const LANES: usize = 16;
/// The place of an element that does not exist.
const NOWHERE: u32 = u32::MAX;

/// Same as [`positions`], for rows of f32.
fn positions_in_rows(pool: &Pool, extreme: Extreme, n: usize, x: &[f32], out: &mut [i64]) {
    if n == 0 {
        return out.fill(0);
    }
    let rows = match extreme {
        Extreme::Max => largest_in_rows(Isa::active()),
        Extreme::Min => smallest_in_rows(Isa::active()),
    };
    let (outer, per_task) = (out.len(), (TASK / n).max(1));
    let out = DisjointMut::new(out);
    pool.run(outer.div_ceil(per_task), &|task| {
        let (first, end) = (task * per_task, ((task + 1) * per_task).min(outer));
        // SAFETY: only one task writes the results of each row, and `Isa::active` names an
        // instruction set that this processor supports.
        unsafe { rows(&x[first * n..end * n], n, out.slice(first, end - first)) };
    });
}

twins! {
    fn largest_in_rows[](x: &[f32], n: usize, out: &mut [i64]) = in_rows::<true>
}

twins! {
    fn smallest_in_rows[](x: &[f32], n: usize, out: &mut [i64]) = in_rows::<false>
}

/// Writes the position of the first extreme of each row of `n` elements. Each lane keeps the first
/// extreme of its own elements.
#[inline(always)]
fn in_rows<const MAX: bool>(x: &[f32], n: usize, out: &mut [i64]) {
    for (row, out) in x.chunks_exact(n).zip(out) {
        let worst = if MAX { f32::NEG_INFINITY } else { f32::INFINITY };
        let (mut best, mut places) = ([worst; LANES], [NOWHERE; LANES]);
        let chunks = row.chunks_exact(LANES);
        let rest = chunks.remainder();
        let mut first = 0;
        for chunk in chunks {
            for lane in 0..LANES {
                let is_better = beats::<MAX>(chunk[lane], best[lane]);
                best[lane] = if is_better { chunk[lane] } else { best[lane] };
                places[lane] = if is_better { first + lane as u32 } else { places[lane] };
            }
            first += LANES as u32;
        }
        for lane in 0..rest.len() {
            if beats::<MAX>(rest[lane], best[lane]) {
                (best[lane], places[lane]) = (rest[lane], first + lane as u32);
            }
        }
        let (mut value, mut place) = (worst, NOWHERE);
        for lane in 0..LANES {
            if beats::<MAX>(best[lane], value) || (best[lane] == value && places[lane] < place) {
                (value, place) = (best[lane], places[lane]);
            }
        }
        // Nothing beats the worst number: the first element that is not NaN counts.
        *out = if place == NOWHERE { first_number(row) } else { i64::from(place) };
    }
}

#[inline(always)]
fn beats<const MAX: bool>(x: f32, best: f32) -> bool {
    if MAX { x > best } else { x < best }
}

fn first_number(row: &[f32]) -> i64 {
    row.iter().position(|x| !x.is_nan()).unwrap_or(0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of all lengths with equal numbers, NaN and infinities: as one comparison after another.
    #[test]
    fn lanes_find_the_first_extreme() {
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 2.0];
        let mut state = 1u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for n in 1..70 {
            let few = 1 + number() % odd.len();
            let x: Vec<f32> = (0..9 * n).map(|_| odd[number() % few]).collect();
            for extreme in [Extreme::Max, Extreme::Min] {
                let mut found = [0; 9];
                positions_in_rows(&Pool::new(2), extreme, n, &x, &mut found);
                let expected: Vec<i64> = x
                    .chunks(n)
                    .map(|row| match extreme {
                        Extreme::Max => first_best(row.iter().copied(), &|x, best| x > best) as i64,
                        Extreme::Min => first_best(row.iter().copied(), &|x, best| x < best) as i64,
                    })
                    .collect();
                assert_eq!(found[..], expected, "{extreme:?} of {x:?}");
            }
        }
    }
}
