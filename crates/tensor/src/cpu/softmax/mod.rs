//! Softmax and cross entropy over the last axis.
//!
//! Arrays have `rows x classes` elements, row after row. `wide` computes rows of many classes, with
//! vectors along the classes; `narrow` computes 16 rows of few classes at once, with vectors across
//! the rows. The number of classes alone decides which one is used, and lanes do not mix, so a
//! row's bits do not depend on the other rows.

mod narrow;
mod wide;

use crate::cpu::elementwise::Float;
use crate::cpu::isa::Isa;
use crate::cpu::reduce::{Fold, Max, Sum};
use crate::cpu::twins::twins;
use crate::parallel::Pool;
use crate::{DType, Error, Result};

/// The number of elements of a task.
const TASK: usize = 1 << 13;

/// The number of rows that `narrow` computes at once, and the largest number of classes it
/// supports.
const LANES: usize = 16;

/// `f32` or `f64`, with the reductions of a row.
trait Real: Float {
    type Max: Fold<Element = Self, Wide = Self>;
    type Sum: Fold<Element = Self, Wide = f64>;
}

impl Real for f32 {
    type Max = Max<f32>;
    type Sum = Sum<f32>;
}

impl Real for f64 {
    type Max = Max<f64>;
    type Sum = Sum<f64>;
}

/// The results to compute from the logits.
#[derive(Clone, Copy)]
enum SoftmaxOutput<T> {
    Softmax,
    LogSoftmax,
    /// Loss and gradient against a distribution over the classes.
    Dense {
        labels: *const T,
        loss: *mut T,
    },
    /// Loss and gradient against one class per row.
    Sparse {
        labels: Labels,
        loss: *mut T,
    },
}

/// Class indices, checked.
#[derive(Clone, Copy)]
enum Labels {
    I32(*const i32),
    I64(*const i64),
}

impl Labels {
    /// # Safety
    /// There must be a label for the row.
    unsafe fn at(self, row: usize) -> i64 {
        // SAFETY: by the contract.
        unsafe {
            match self {
                Labels::I32(labels) => i64::from(*labels.add(row)),
                Labels::I64(labels) => *labels.add(row),
            }
        }
    }
}

/// One call, shared by its tasks.
struct Job<T> {
    kind: SoftmaxOutput<T>,
    classes: usize,
    logits: *const T,
    out: *mut T,
}

// SAFETY: the pointers are used within the contracts of the public functions; tasks write the
// results of disjoint rows.
unsafe impl<T> Sync for Job<T> {}

impl<T: Real> Job<T> {
    /// # Safety
    /// All arrays must have `rows` rows.
    unsafe fn run(&self, pool: &Pool, rows: usize) {
        if rows == 0 || self.classes == 0 {
            return;
        }
        let kernel = rows_kernel::<T>(Isa::active());
        // Whole groups of rows, so that only the last task has an incomplete group.
        let per_task = (TASK / self.classes).next_multiple_of(LANES).max(LANES);
        pool.run(rows.div_ceil(per_task), &|task| {
            // SAFETY: each task has its own rows.
            unsafe { kernel(self, task * per_task, ((task + 1) * per_task).min(rows)) };
        });
    }
}

twins! { fn rows_kernel[T: Real](job: &Job<T>, from: usize, to: usize) = rows_of::<T> }

/// # Safety
/// The job's arrays must have the rows `from..to`, and no other thread may work on them.
#[inline(always)]
unsafe fn rows_of<T: Real>(job: &Job<T>, from: usize, to: usize) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if job.classes <= LANES {
            for row in (from..to).step_by(LANES) {
                narrow::group(job, row, (to - row).min(LANES));
            }
        } else {
            let mut piece = [T::constant(0.0); wide::PIECE];
            for row in from..to {
                wide::row(job, row, &mut piece);
            }
        }
    }
}

/// Runs `$body` with `$t` being the Rust type of a float dtype.
macro_rules! with_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $t = f32;
                Ok($body)
            }
            DType::F64 => {
                type $t = f64;
                Ok($body)
            }
            dtype => Err(Error::dtype(None, dtype, format!("softmax is not defined on {dtype}"))),
        }
    };
}

/// Computes `e^x / sum(e^x)` of every row. Returns an error if the dtype is not a float.
///
/// # Safety
/// `logits` and `out` must hold `rows * classes` elements, aligned, and either be the same memory
/// or not overlap.
pub unsafe fn softmax(
    pool: &Pool,
    dtype: DType,
    [rows, classes]: [usize; 2],
    logits: *const u8,
    out: *mut u8,
) -> Result<()> {
    with_float!(dtype, T => {
        let job = Job::<T> { kind: SoftmaxOutput::Softmax, classes, logits: logits.cast(), out: out.cast() };
        // SAFETY: the caller upholds the contract.
        unsafe { job.run(pool, rows) }
    })
}

/// Computes `x - ln(sum(e^x))` of every row. Returns an error if the dtype is not a float.
///
/// # Safety
/// `logits` and `out` must hold `rows * classes` elements, aligned, without overlap.
pub unsafe fn log_softmax(
    pool: &Pool,
    dtype: DType,
    [rows, classes]: [usize; 2],
    logits: *const u8,
    out: *mut u8,
) -> Result<()> {
    with_float!(dtype, T => {
        let job = Job::<T> { kind: SoftmaxOutput::LogSoftmax, classes, logits: logits.cast(), out: out.cast() };
        // SAFETY: the caller upholds the contract.
        unsafe { job.run(pool, rows) }
    })
}

/// TensorFlow's `SoftmaxCrossEntropyWithLogits`: for every row, the loss
/// `-sum(labels * log_softmax(logits))` and its gradient with respect to the logits,
/// `softmax(logits) - labels`. Returns an error if the dtype is not a float.
///
/// # Safety
/// `logits`, `labels` and `backprop` must hold `rows * classes` elements and `loss` `rows`, all
/// aligned; the results must not overlap anything.
pub unsafe fn cross_entropy(
    pool: &Pool,
    dtype: DType,
    [rows, classes]: [usize; 2],
    logits: *const u8,
    labels: *const u8,
    loss: *mut u8,
    backprop: *mut u8,
) -> Result<()> {
    with_float!(dtype, T => {
        let kind = SoftmaxOutput::Dense { labels: labels.cast(), loss: loss.cast() };
        let job = Job::<T> { kind, classes, logits: logits.cast(), out: backprop.cast() };
        // SAFETY: the caller upholds the contract.
        unsafe { job.run(pool, rows) }
    })
}

/// TensorFlow's `SparseSoftmaxCrossEntropyWithLogits`: like [`cross_entropy`], with the index of
/// one class per row, `i32` or `i64`.
///
/// A label that is not a class is an error that names its row, and nothing is computed. A dtype of
/// the wrong kind is an error too.
///
/// # Safety
/// `logits` and `backprop` must hold `rows * classes` elements, `labels` and `loss` `rows`, all
/// aligned; the results must not overlap anything.
#[allow(clippy::too_many_arguments)] // two inputs with their dtypes, two outputs
pub unsafe fn sparse_cross_entropy(
    pool: &Pool,
    dtype: DType,
    [rows, classes]: [usize; 2],
    logits: *const u8,
    label_dtype: DType,
    labels: *const u8,
    loss: *mut u8,
    backprop: *mut u8,
) -> Result<()> {
    let labels = match label_dtype {
        DType::I32 => Labels::I32(labels.cast()),
        DType::I64 => Labels::I64(labels.cast()),
        dtype => return Err(Error::dtype(None, dtype, format!("the labels are {dtype}; expected i32 or i64"))),
    };
    for row in 0..rows {
        // SAFETY: there is a label for every row.
        let label = unsafe { labels.at(row) };
        if usize::try_from(label).map_or(true, |class| class >= classes) {
            // TF: InvalidArgumentError, "Received a label value of 5 which is outside the valid
            // range of [0, 2)".
            return Err(Error::index(format!(
                "label {label} in row {row} is not a class; expected 0 or more and less than {classes}"
            ))
            .help(
                "there is a logit for each class: set the number of classes with .n_classes(..), or give labels that are \
                 not class numbers a .label_vocabulary([..])",
            ));
        }
    }
    with_float!(dtype, T => {
        let kind = SoftmaxOutput::Sparse { labels, loss: loss.cast() };
        let job = Job::<T> { kind, classes, logits: logits.cast(), out: backprop.cast() };
        // SAFETY: the caller upholds the contract.
        unsafe { job.run(pool, rows) }
    })
}
