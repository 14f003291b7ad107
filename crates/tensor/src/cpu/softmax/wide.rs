//! Computes a row of more than 16 classes, in pieces that stay in the first-level cache.

use crate::cpu::reduce::fold_row;

use super::{Job, Real, SoftmaxOutput};

/// The number of classes of a piece.
pub(super) const PIECE: usize = 1024;
/// A piece is computed in multiples of this, so that no element is left to scalar code.
const BLOCK: usize = 64;

/// Computes one row; `piece` is working memory.
///
/// # Safety
/// The job's arrays must have the row, and no other thread may work on it.
#[inline(always)]
pub(super) unsafe fn row<T: Real>(job: &Job<T>, row: usize, piece: &mut [T; PIECE]) {
    let classes = job.classes;
    // SAFETY: by the contract. `x` is read piece by piece, because a softmax may overwrite it.
    let (x, out) = unsafe { (job.logits.add(row * classes), job.out.add(row * classes)) };
    // SAFETY: nothing has been written yet.
    let largest = fold_row::<T::Max>(unsafe { std::slice::from_raw_parts(x, classes) });
    let mut sum = 0.0;
    for from in (0..classes).step_by(PIECE) {
        let len = (classes - from).min(PIECE);
        // SAFETY: the piece lies within the row.
        unsafe { std::ptr::copy_nonoverlapping(x.add(from), piece.as_mut_ptr(), len) };
        for p in &mut piece[..len.next_multiple_of(BLOCK)] {
            *p = (*p - largest).exp();
        }
        sum += fold_row::<T::Sum>(&piece[..len]);
        if !matches!(job.kind, SoftmaxOutput::LogSoftmax) {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), out.add(from), len) };
        }
    }
    let sum = T::constant(sum);
    // SAFETY: `out` has the row, and if it is the same memory as `x`, `x` is not read any more.
    let out = unsafe { std::slice::from_raw_parts_mut(out, classes) };
    // SAFETY: except for softmax, `x` and `out` do not overlap.
    let x = || unsafe { std::slice::from_raw_parts(x, classes) };
    match job.kind {
        SoftmaxOutput::Softmax => divide(out, sum),
        SoftmaxOutput::LogSoftmax => {
            let log = sum.log();
            for (out, x) in out.iter_mut().zip(x()) {
                *out = (*x - largest) - log;
            }
        }
        SoftmaxOutput::Dense { labels, loss } => {
            // SAFETY: the row has as many labels as logits.
            let labels = unsafe { std::slice::from_raw_parts(labels.add(row * classes), classes) };
            let log = sum.log();
            let mut total = 0.0;
            for (x, labels) in x().chunks(PIECE).zip(labels.chunks(PIECE)) {
                let terms = &mut piece[..x.len()];
                for ((term, x), label) in terms.iter_mut().zip(x).zip(labels) {
                    *term = *label * (log - (*x - largest));
                }
                total += fold_row::<T::Sum>(terms);
            }
            for (p, label) in out.iter_mut().zip(labels) {
                *p = *p / sum - *label;
            }
            // SAFETY: there is a loss for every row.
            unsafe { loss.add(row).write(T::constant(total)) };
        }
        SoftmaxOutput::Sparse { labels, loss } => {
            divide(out, sum);
            // SAFETY: there are a label and a loss for every row, and labels were checked against
            // the classes.
            unsafe {
                let class = labels.at(row) as usize;
                out[class] = out[class] - T::constant(1.0);
                loss.add(row).write(sum.log() - (x()[class] - largest));
            }
        }
    }
}

#[inline(always)]
fn divide<T: Real>(powers: &mut [T], sum: T) {
    for p in powers {
        *p = *p / sum;
    }
}
