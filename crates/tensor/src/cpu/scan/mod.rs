//! Running sums and products along an axis: `Cumsum`, `Cumprod`.

use super::number::Number;
use super::size::product;
use super::split::for_each_rows;
use crate::parallel::Pool;

/// The operation of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Running {
    /// `Cumsum`
    Sum,
    /// `Cumprod`
    Prod,
}

/// The options of a scan. By default it includes the element itself and runs forwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Direction {
    /// Whether to exclude the element itself: the first output is then 0, or 1 for a product.
    pub exclusive: bool,
    /// Whether to start at the end of the axis.
    pub reverse: bool,
}

/// Computes running totals along the middle axis of `dims` = [outer, n, inner].
pub fn cumulative<T: Number>(
    pool: &Pool,
    running: Running,
    direction: Direction,
    dims: [usize; 3],
    x: &[T],
    out: &mut [T],
) {
    match running {
        Running::Sum => scan(pool, direction, dims, x, out, T::ZERO, &T::plus),
        Running::Prod => scan(pool, direction, dims, x, out, T::ONE, &T::times),
    }
}

fn scan<T: Number>(
    pool: &Pool,
    Direction { exclusive, reverse }: Direction,
    dims: [usize; 3],
    x: &[T],
    out: &mut [T],
    start: T,
    combine: &(impl Fn(T, T) -> T + Sync),
) {
    let len = product(&dims);
    assert_eq!((x.len(), out.len()), (len, len), "input and output of {dims:?}");
    if len == 0 {
        return;
    }
    let [_, n, inner] = dims;
    let plane = n * inner;
    for_each_rows(pool, out, plane, &|first, part| {
        for (out, x) in part.chunks_exact_mut(plane).zip(x[first * plane..].chunks_exact(plane)) {
            let row = |step: usize| if reverse { n - 1 - step } else { step } * inner;
            for column in 0..inner {
                out[row(0) + column] = if exclusive { start } else { combine(start, x[row(0) + column]) };
            }
            for step in 1..n {
                let (at, before) = (row(step), row(step - 1));
                let operand = if exclusive { before } else { at };
                for column in 0..inner {
                    out[at + column] = combine(out[before + column], x[operand + column]);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests;
