//! Reductions over any set of axes.
//!
//! `layout` merges axes until a dense piece of rows and columns is left, which is repeated. `fold`
//! has the arithmetic of one reduction, `kernel` the loops over a piece, `arg` the positions of
//! extremes.
//!
//! Sums are computed in chains of at most 64 elements in the array's own precision, and the chains
//! are added in `f64`: ten million numbers lose no more than a few units of the last place. The
//! boundaries of chains depend on the shape alone. So the bits depend neither on the threads nor on
//! the instruction set, and the result of a row does not depend on the other rows.

mod arg;
mod columns;
mod fold;
mod kernel;
mod layout;

use crate::cpu::isa::Isa;
use crate::cpu::size::product;
use crate::parallel::Pool;
use crate::{DType, Error, Reduction, Result};

pub use arg::{Extreme, arg_extreme};
pub(in crate::cpu) use columns::ColumnSums;
pub(in crate::cpu) use fold::{Fold, Max, Sum};
pub(in crate::cpu) use kernel::fold_row;

use kernel::Kernels;
use layout::Layout;

/// The number of elements of a task. Less work runs on one thread.
const TASK: usize = 1 << 15;

/// The number of columns that one task folds at a time.
const STRIP: usize = 512;

/// The largest number of columns of [`ColumnSums`].
pub(in crate::cpu) const MAX_WIDTH: usize = STRIP;

/// The number of bytes of the widest accumulator.
const WIDE: usize = 8;

/// The number of bytes of scratch memory that [`reduce`] needs for this shape.
pub fn scratch_len(dims: &[usize], axes: u32) -> usize {
    scratch_of(&Layout::new(dims, axes))
}

fn scratch_of(layout: &Layout) -> usize {
    if layout.n_spans() > 1 { product(&[layout.n_spans(), layout.outer.len, layout.inner, WIDE]) } else { 0 }
}

/// Reduces a dense array over the axes whose bits are set in `axes`. `out` receives the other axes,
/// dense.
///
/// Returns an error if the reduction is not defined on the dtype.
///
/// # Safety
/// `x` must hold the elements of `dims` (at most 8 axes), and `out` must have room for those of the
/// remaining axes. Both must be aligned for the dtype and must not overlap. `scratch` must be
/// aligned to 8.
///
/// # Panics
/// If `scratch` has fewer than [`scratch_len`] bytes.
#[allow(clippy::too_many_arguments)] // what, of what, from where, to where
pub unsafe fn reduce(
    pool: &Pool,
    kind: Reduction,
    dtype: DType,
    dims: &[usize],
    axes: u32,
    x: *const u8,
    out: *mut u8,
    scratch: &mut [u8],
) -> Result<()> {
    let kernels = Kernels::new(kind, dtype, Isa::active())
        .ok_or_else(|| Error::dtype(None, dtype, format!("{kind:?} is not defined on {dtype}")))?;
    let layout = Layout::new(dims, axes);
    let needed = scratch_of(&layout);
    assert!(scratch.len() >= needed, "{} bytes of scratch for a reduction that needs {needed}", scratch.len());
    debug_assert!(needed == 0 || scratch.as_ptr().cast::<f64>().is_aligned(), "scratch is aligned to 8");
    let job = Job { kernels, layout: &layout, size: dtype.size(), x, out, scratch: scratch.as_mut_ptr() };
    // SAFETY: the caller upholds the contract.
    unsafe { job.run(pool) };
    Ok(())
}

/// One reduction, shared by its tasks.
struct Job<'a> {
    kernels: Kernels,
    layout: &'a Layout,
    /// The number of bytes of an element.
    size: usize,
    x: *const u8,
    out: *mut u8,
    scratch: *mut u8,
}

// SAFETY: the pointers are used within the contract of `reduce`; tasks write disjoint parts of
// `out` and of the scratch memory.
unsafe impl Sync for Job<'_> {}

/// The accumulators of a strip, on the stack and uninitialised until `start`.
#[repr(align(64))]
struct Accumulators(std::mem::MaybeUninit<[u8; STRIP * WIDE]>);

impl Job<'_> {
    /// # Safety
    /// The contract of [`reduce`].
    unsafe fn run(&self, pool: &Pool) {
        let Layout { outer, n, inner, repeats, .. } = self.layout;
        let (n_spans, n_strips) = (self.layout.n_spans(), inner.div_ceil(STRIP));
        // Whole rows at a time.
        if *inner == 1 && n_spans == 1 && repeats.len == 1 && outer.is_dense_by(*n) {
            let rows = (TASK / n.max(&1)).max(1);
            return in_tasks(pool, outer.len, rows, *n, &|from, to| {
                // SAFETY: the rows from..to lie one after the other in `x`, their results in `out`.
                unsafe {
                    let (x, out) = (self.x.add(from * n * self.size), self.out.add(from * self.size));
                    (self.kernels.rows)(x, to - from, *n, self.layout.count, out);
                }
            });
        }
        let work = (*n).min(self.layout.span_rows()) * repeats.len * (*inner).min(STRIP);
        let units = outer.len * n_spans * n_strips;
        in_tasks(pool, units, (TASK / work.max(1)).max(1), work, &|from, to| {
            for unit in from..to {
                let (rest, strip) = (unit / n_strips, unit % n_strips);
                // SAFETY: the indices are within the layout.
                unsafe { self.piece(rest / n_spans, rest % n_spans, strip) };
            }
        });
        if n_spans > 1 {
            for o in 0..outer.len {
                for strip in 0..n_strips {
                    // SAFETY: all pieces of the strip have been folded.
                    unsafe { self.join(o, strip) };
                }
            }
        }
    }

    /// Folds a strip of columns over one span of rows: into the result or, if there are several
    /// spans, into scratch memory.
    ///
    /// # Safety
    /// The contract of [`reduce`]; no other thread may work on the piece.
    unsafe fn piece(&self, o: usize, span: usize, strip: usize) {
        let Layout { outer, repeats, n, inner, count, .. } = self.layout;
        let column = strip * STRIP;
        let width = (inner - column).min(STRIP);
        let first = span * self.layout.span_rows();
        let rows = (n - first).min(self.layout.span_rows());
        let mut accumulators = Accumulators(std::mem::MaybeUninit::uninit());
        let wide: *mut u8 = accumulators.0.as_mut_ptr().cast();
        // SAFETY: offsets of walks, rows and columns stay within the array; the accumulators have
        // room for a strip.
        unsafe {
            (self.kernels.start)(width, wide);
            // An empty array has results but nothing to read.
            for r in 0..if self.layout.len > 0 { repeats.len } else { 0 } {
                let at = outer.offset(o) + repeats.offset(r) + first * inner + column;
                let readable = self.layout.len - at;
                (self.kernels.fold)(self.x.add(at * self.size), rows, *inner, width, readable, wide);
            }
            if self.layout.n_spans() == 1 {
                (self.kernels.finish)(wide, width, *count, self.out.add((o * inner + column) * self.size));
            } else {
                std::ptr::copy_nonoverlapping(wide, self.partial(o, span, column), width * WIDE);
            }
        }
    }

    /// Merges the spans of a strip in ascending order.
    ///
    /// # Safety
    /// The contract of [`reduce`]; all pieces of the strip must have been folded.
    unsafe fn join(&self, o: usize, strip: usize) {
        let Layout { inner, count, .. } = self.layout;
        let column = strip * STRIP;
        let width = (inner - column).min(STRIP);
        // SAFETY: the partial results of all spans are in the scratch memory; the first one
        // accumulates.
        unsafe {
            let wide = self.partial(o, 0, column);
            for span in 1..self.layout.n_spans() {
                (self.kernels.merge)(wide, self.partial(o, span, column), width);
            }
            (self.kernels.finish)(wide, width, *count, self.out.add((o * inner + column) * self.size));
        }
    }

    fn partial(&self, o: usize, span: usize, column: usize) -> *mut u8 {
        self.scratch.wrapping_add(((o * self.layout.n_spans() + span) * self.layout.inner + column) * WIDE)
    }
}

/// Calls `body(from, to)` for ranges of `per_task` units; on the caller if there is little work.
fn in_tasks(pool: &Pool, units: usize, per_task: usize, unit_work: usize, body: &(dyn Fn(usize, usize) + Sync)) {
    if units.saturating_mul(unit_work) <= 2 * TASK {
        body(0, units);
    } else {
        pool.run(units.div_ceil(per_task), &|task| body(task * per_task, ((task + 1) * per_task).min(units)));
    }
}
