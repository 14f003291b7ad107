//! Rows of at most 16 classes, 16 rows at once.
//!
//! The group is transposed, so that a vector holds one class of all rows. No lane is idle, and
//! every row is computed in the order of its classes.

use crate::cpu::reduce::Fold;

use super::{Job, LANES, Real, SoftmaxOutput};

/// One group: 16 elements per class.
type Group<T> = [[T; LANES]; LANES];

/// Computes up to 16 rows, starting with `row`.
///
/// # Safety
/// The job's arrays must have these rows, and no other thread may work on them.
#[inline(always)]
pub(super) unsafe fn group<T: Real>(job: &Job<T>, row: usize, n_rows: usize) {
    let classes = job.classes;
    let zero = T::constant(0.0);
    // SAFETY: the rows exist by the contract.
    let mut shifted = unsafe { transposed(job.logits.add(row * classes), n_rows, classes) };
    let mut largest = shifted[0];
    for x in &shifted[1..classes] {
        for l in 0..LANES {
            largest[l] = T::Max::join(largest[l], x[l]);
        }
    }
    let mut powers = [[zero; LANES]; LANES];
    let mut sum = [zero; LANES];
    for c in 0..classes {
        for l in 0..LANES {
            shifted[c][l] = shifted[c][l] - largest[l];
            powers[c][l] = shifted[c][l].exp();
            sum[l] = sum[l] + powers[c][l];
        }
    }
    // SAFETY: results and labels have these rows.
    unsafe {
        let out = job.out.add(row * classes);
        match job.kind {
            SoftmaxOutput::Softmax => {
                divide(&mut powers[..classes], &sum);
                write_transposed(&powers, n_rows, classes, out);
            }
            SoftmaxOutput::LogSoftmax => {
                let log = logarithms(&sum);
                for x in &mut shifted[..classes] {
                    for l in 0..LANES {
                        x[l] = x[l] - log[l];
                    }
                }
                write_transposed(&shifted, n_rows, classes, out);
            }
            SoftmaxOutput::Dense { labels, loss } => {
                let labels = transposed(labels.add(row * classes), n_rows, classes);
                let log = logarithms(&sum);
                let mut losses = [zero; LANES];
                divide(&mut powers[..classes], &sum);
                for c in 0..classes {
                    for l in 0..LANES {
                        losses[l] = losses[l] + labels[c][l] * (log[l] - shifted[c][l]);
                        powers[c][l] = powers[c][l] - labels[c][l];
                    }
                }
                write_transposed(&powers, n_rows, classes, out);
                std::ptr::copy_nonoverlapping(losses.as_ptr(), loss.add(row), n_rows);
            }
            SoftmaxOutput::Sparse { labels, loss } => {
                let log = logarithms(&sum);
                divide(&mut powers[..classes], &sum);
                for l in 0..n_rows {
                    let class = labels.at(row + l) as usize;
                    powers[class][l] = powers[class][l] - T::constant(1.0);
                    loss.add(row + l).write(log[l] - shifted[class][l]);
                }
                write_transposed(&powers, n_rows, classes, out);
            }
        }
    }
}

#[inline(always)]
fn divide<T: Real>(powers: &mut [[T; LANES]], sum: &[T; LANES]) {
    for p in powers {
        for l in 0..LANES {
            p[l] = p[l] / sum[l];
        }
    }
}

#[inline(always)]
fn logarithms<T: Real>(sum: &[T; LANES]) -> [T; LANES] {
    let mut logs = *sum;
    for log in &mut logs {
        *log = log.log();
    }
    logs
}

/// # Safety
/// `x` must have `n_rows` rows of `classes` elements, at most 16 of each.
#[inline(always)]
unsafe fn transposed<T: Real>(x: *const T, n_rows: usize, classes: usize) -> Group<T> {
    let mut group = [[T::constant(0.0); LANES]; LANES];
    for l in 0..n_rows {
        for (c, lanes) in group[..classes].iter_mut().enumerate() {
            // SAFETY: l < n_rows and c < classes.
            lanes[l] = unsafe { *x.add(l * classes + c) };
        }
    }
    group
}

/// # Safety
/// `out` must have room for `n_rows` rows of `classes` elements, at most 16 of each.
#[inline(always)]
unsafe fn write_transposed<T: Real>(group: &Group<T>, n_rows: usize, classes: usize, out: *mut T) {
    for l in 0..n_rows {
        for (c, lanes) in group[..classes].iter().enumerate() {
            // SAFETY: l < n_rows and c < classes.
            unsafe { out.add(l * classes + c).write(lanes[l]) };
        }
    }
}
