//! Element-wise programs whose results are added up at once: the sums of batch normalisation and
//! its gradient read nothing from memory that was just computed.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::run::Run;
use super::stream::{fence, stream};
use super::{InputView, TileProgram};
use crate::Reduction;
use crate::cpu::reduce::{ColumnSums, MAX_WIDTH};
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};

/// An output that is added up over all axes but the last.
#[derive(Clone, Copy, Debug)]
pub struct OutputSum {
    /// A sum or a mean.
    pub kind: Reduction,
    /// The index of the output.
    pub output: usize,
    /// The result.
    pub out: *mut f32,
}

// SAFETY: a run writes the result on one thread, after its tasks.
unsafe impl Sync for OutputSum {}

/// The number of `f64` that [`TileProgram::run_and_sum`] needs for `n` sums over this space.
pub fn sums_scratch_len(dims: &[usize], n: usize) -> usize {
    ColumnSums::of(Reduction::Sum, dims).map_or(0, |columns| product(&[columns.n_units(), columns.width(), n]))
}

/// The largest number of sums of a run.
pub const MAX_SUMS: usize = 2;
/// The largest number of columns that are added up.
pub const MAX_SUM_WIDTH: usize = MAX_WIDTH;

/// The number of elements that are computed before they are added up, if whole chains are so short.
const BUFFERED: usize = 8 << 10;
/// The number of rows of a chain of sums.
const ROWS: usize = 64;
/// The elements of a buffer: a chain of the widest rows.
const BUFFER: usize = ROWS * MAX_WIDTH;

thread_local! {
    /// The memory of outputs that are added up: a buffer for each sum, made when it is needed.
    static BUFFERS: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function with this thread's buffers.
fn with_buffers(body: impl FnOnce(*mut f32)) {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers.resize(MAX_SUMS * BUFFER, 0.0);
        body(buffers.as_mut_ptr());
    });
}

impl TileProgram {
    /// Like [`run`](TileProgram::run), and adds up some outputs over all axes but the last while
    /// they are in the cache. Outputs that are null are only added up.
    ///
    /// The bits of a sum are those of [`reduce`](crate::cpu::reduce::reduce) over the output.
    ///
    /// # Safety
    /// As [`run`](TileProgram::run), for outputs that are not null; those that are added up are
    /// `f32` and overlap with no input. Each sum must have room for the last axis, and overlap with
    /// nothing.
    ///
    /// # Panics
    /// If the last axis has fewer than 2 or more than [`MAX_SUM_WIDTH`] elements, a reduction is
    /// neither a sum nor a mean, or `scratch` is shorter than [`sums_scratch_len`].
    pub unsafe fn run_and_sum(
        &self,
        pool: &Pool,
        dims: &[usize],
        inputs: &[InputView],
        outputs: &[*mut u8],
        sums: &[OutputSum],
        scratch: &mut [f64],
    ) -> Option<usize> {
        let direct: SmallVec<[usize; TileProgram::MAX_OUTPUTS]> = sums.iter().map(|sum| sum.output).collect();
        let run = Run::new(self, dims, inputs, outputs, &direct);
        let columns: SmallVec<[ColumnSums; MAX_SUMS]> =
            sums.iter().map(|sum| ColumnSums::of(sum.kind, dims).expect("sums over these axes")).collect();
        let first = columns.first()?;
        let (width, n_rows, unit_rows, n_units) = (first.width(), first.n_rows(), first.unit_rows(), first.n_units());
        assert!(scratch.len() >= n_units * width * sums.len(), "too little scratch for {} sums", sums.len());
        let partial = DisjointMut::new(&mut *scratch);
        // Whole chains of rows that fit into a buffer. An output that is added up twice has one.
        let chunk = (BUFFERED / width / ROWS * ROWS).max(ROWS);
        let buffer_of = |sum: &OutputSum| sums.iter().position(|other| other.output == sum.output).unwrap_or(0);
        let add_unit = |unit: usize, buffers: *mut f32| {
            let end = ((unit + 1) * unit_rows).min(n_rows);
            // SAFETY: each unit has sums of its own.
            let of_unit = |k: usize| unsafe { partial.slice((k * n_units + unit) * width, width) };
            let mut of_unit: SmallVec<[&mut [f64]; MAX_SUMS]> = (0..sums.len()).map(of_unit).collect();
            of_unit.iter_mut().zip(&columns).for_each(|(sums, columns)| columns.start(sums));
            for row in (unit * unit_rows..end).step_by(chunk) {
                let n = chunk.min(end - row);
                let range = row * width..(row + n) * width;
                let start = range.start * size_of::<f32>();
                let mut to: SmallVec<[*mut u8; TileProgram::MAX_OUTPUTS]> = run.outputs().into();
                // What is stored in the caches is added up where it is.
                for sum in sums.iter().filter(|sum| run.streams || run.outputs()[sum.output].is_null()) {
                    to[sum.output] = buffers.wrapping_add(buffer_of(sum) * BUFFER).cast::<u8>().wrapping_sub(start);
                }
                // SAFETY: the caller's contract; the buffers have room for a chunk, and units are
                // disjoint.
                unsafe { run.range(range.clone(), &to) };
                for (k, (sum, columns)) in sums.iter().zip(&columns).enumerate() {
                    let from = to[sum.output].wrapping_add(start).cast::<f32>();
                    // SAFETY: the range has just been computed, and no other thread writes to it.
                    columns.add(unsafe { std::slice::from_raw_parts(from, range.len()) }, n, of_unit[k]);
                    let stored = run.outputs()[sum.output];
                    if run.streams && !stored.is_null() && buffer_of(sum) == k {
                        // SAFETY: the output has room for the space.
                        unsafe { stream(from.cast(), range.len() * size_of::<f32>(), stored.wrapping_add(start)) };
                    }
                }
            }
            if run.streams {
                fence();
            }
        };
        let is_buffered = run.streams || sums.iter().any(|sum| run.outputs()[sum.output].is_null());
        let add_unit = |unit: usize| match is_buffered {
            true => with_buffers(|buffers| add_unit(unit, buffers)),
            false => add_unit(unit, std::ptr::null_mut()),
        };
        match self.runs_alone(n_rows * width) {
            true => (0..n_units).for_each(add_unit),
            false => pool.run(n_units, &add_unit),
        }
        for (k, (sum, columns)) in sums.iter().zip(&columns).enumerate() {
            // SAFETY: the sum has room for the last axis.
            let out = unsafe { std::slice::from_raw_parts_mut(sum.out, width) };
            columns.finish(&mut scratch[k * n_units * width..][..n_units * width], out);
        }
        run.divided_by_zero()
    }
}
