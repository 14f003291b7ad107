//! Runs a program over the iteration space, tile by tile.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::parallel::Pool;

use super::broadcast::{OVERRUN, Space, Spread, spread_periodic, spread_scalar};
use super::stream::{fence, prefetch, stream};
use super::{InputView, TILE, TileProgram};

/// The largest number of places of a program: tiles, constants, inputs, outputs.
const MAX_PLACES: usize =
    TileProgram::MAX_TILES + TileProgram::MAX_CONSTANTS + TileProgram::MAX_INPUTS + TileProgram::MAX_OUTPUTS;

/// The bytes of tile memory for the largest program: a tile of 8-byte elements for every place.
const SCRATCH: usize = MAX_PLACES * (TILE + 64) * 8;

/// Memory aligned to cache lines; never initialised as a whole.
#[repr(align(64))]
struct Scratch(UnsafeCell<MaybeUninit<[u8; SCRATCH]>>);

thread_local! {
    /// Tile memory. It is not on the stack, because entering a frame of this size would touch every
    /// page of it.
    static TILES: Scratch = const { Scratch(UnsafeCell::new(MaybeUninit::uninit())) };
}

/// Results of at least this many output bytes bypass the caches.
const STREAM_FROM: usize = 8 << 20;
/// Work of less than this time, in picoseconds, runs on one thread. Tasks take about half of it.
const ALONE: usize = 20_000_000;
/// The largest number of tiles in a task.
const MAX_TASK_TILES: usize = 32;

/// One call of [`TileProgram::run`], shared by its tasks.
pub(super) struct Run<'a> {
    program: &'a TileProgram,
    space: Space,
    inputs: &'a [InputView],
    spreads: [Spread; TileProgram::MAX_INPUTS],
    outputs: &'a [*mut u8],
    /// Whether outputs bypass the caches.
    pub(super) streams: bool,
    /// Whether each output is computed in a tile and copied at its end. This holds for outputs that
    /// bypass the caches, and for those that overwrite an input which a later step may still read.
    staged: [bool; TileProgram::MAX_OUTPUTS],
    /// The number of bytes from one tile of the scratch memory to the next.
    stride: usize,
    /// The number of the first integer division by 0; `NONE` if there was none.
    by_zero: AtomicUsize,
}

/// The value for no division by 0.
const NONE: usize = usize::MAX;

// SAFETY: the pointers are used within the contract of `TileProgram::run`; tasks write disjoint
// ranges of the outputs.
unsafe impl Sync for Run<'_> {}

impl TileProgram {
    /// Computes the program at every point of the row-major iteration space `dims`, of at most 8
    /// axes.
    ///
    /// Outputs are dense in the space. Nothing is allocated. Large spaces are cut into tasks of a
    /// fixed size for the pool.
    ///
    /// Returns `None`, or the number of the first division of integers with a divisor of 0. It is
    /// counted among those of the program ([`is_integer_division`](super::is_integer_division)).
    /// The quotient and remainder are 0 there.
    ///
    /// # Safety
    /// The number and dtypes of `inputs` and `outputs` must be those of the program. They must be
    /// aligned and valid: inputs for every index of the space under their strides, outputs for all
    /// elements of the space. An output may be the same memory as an input that is dense in the
    /// space and has elements of the same size. Apart from that, no output may overlap anything.
    pub unsafe fn run(&self, pool: &Pool, dims: &[usize], inputs: &[InputView], outputs: &[*mut u8]) -> Option<usize> {
        let run = Run::new(self, dims, inputs, outputs, &[]);
        let len = run.space.len;
        if len == 0 {
            return None;
        }
        if self.runs_alone(len) {
            // SAFETY: the caller's contract.
            unsafe { run.range(0..len, run.outputs()) };
            return run.divided_by_zero();
        }
        let task = (ALONE / 2 / (self.cost * TILE)).clamp(1, MAX_TASK_TILES) * TILE;
        pool.run(len.div_ceil(task), &|i| {
            // SAFETY: the caller's contract; tasks are disjoint.
            unsafe { run.range(i * task..((i + 1) * task).min(len), run.outputs()) };
        });
        run.divided_by_zero()
    }

    /// Whether so little work runs on one thread.
    pub(super) fn runs_alone(&self, len: usize) -> bool {
        len <= TILE || len.saturating_mul(self.cost) < ALONE
    }

    /// The indices of the first constant, input and output in the table of places, and its length.
    fn place_borders(&self) -> [usize; 4] {
        let constants = self.n_tiles;
        let inputs = constants + self.constants.len();
        let outputs = inputs + self.inputs.len();
        [constants, inputs, outputs, outputs + self.outputs.len()]
    }
}

impl<'a> Run<'a> {
    /// Outputs among `direct` are written where they belong, and never past the caches.
    pub(super) fn new(
        program: &'a TileProgram,
        dims: &[usize],
        inputs: &'a [InputView],
        outputs: &'a [*mut u8],
        direct: &[usize],
    ) -> Run<'a> {
        debug_assert_eq!((inputs.len(), outputs.len()), (program.inputs.len(), program.outputs.len()));
        let space = Space::new(dims, inputs);
        let len = space.len;
        let mut spreads = [Spread::Dense; TileProgram::MAX_INPUTS];
        for (spread, input) in spreads.iter_mut().zip(inputs) {
            *spread = space.spread(input);
        }
        let streams = program.outputs.iter().map(|d| d.size() * len).sum::<usize>() >= STREAM_FROM;
        let mut staged = [streams; TileProgram::MAX_OUTPUTS];
        for (staged, output) in staged.iter_mut().zip(outputs) {
            *staged |= inputs.iter().any(|input| std::ptr::addr_eq(input.ptr, *output));
        }
        for &output in direct {
            staged[output] = false;
        }
        // A multiple of a cache line, with room for the overrun of expanded inputs.
        let stride = (len.min(TILE) + OVERRUN).next_multiple_of(64) * program.widest;
        Run { program, space, inputs, spreads, outputs, streams, staged, stride, by_zero: AtomicUsize::new(NONE) }
    }
}

impl Run<'_> {
    /// Runs the steps on each tile of a range. Outputs begin where position 0 of the space is.
    ///
    /// # Safety
    /// The contract of [`TileProgram::run`], for the positions of the range; no other thread may
    /// work on the range.
    pub(super) unsafe fn range(&self, range: Range<usize>, outputs: &[*mut u8]) {
        // Kernels call nothing back, so no other code uses this thread's tiles until the range is
        // done.
        let scratch = TILES.with(|tiles| tiles.0.get().cast::<u8>());
        let program = self.program;
        let [first_constant, first_input, first_output, n_places] = program.place_borders();
        // At first every place is a tile. Places of inputs and outputs that are used in place
        // advance from tile to tile below.
        let mut places = [null_mut::<u8>(); MAX_PLACES];
        for (i, place) in places[..n_places].iter_mut().enumerate() {
            *place = scratch.wrapping_add(i * self.stride);
        }
        let longest = range.len().min(TILE);
        for (place, (dtype, bits)) in places[first_constant..].iter().zip(&program.constants) {
            // SAFETY: a tile has room for `longest` elements. The narrower element is the low end
            // of `bits`.
            unsafe {
                match dtype.size() {
                    1 => spread_scalar(*bits as u8, longest, *place),
                    4 => spread_scalar(*bits as u32, longest, place.cast()),
                    _ => spread_scalar(*bits, longest, place.cast()),
                }
            }
        }
        let mut at = range.start;
        let mut filled = [None; TileProgram::MAX_INPUTS];
        while at < range.end {
            let len = (range.end - at).min(TILE);
            for i in 0..self.inputs.len() {
                let tile = scratch.wrapping_add((first_input + i) * self.stride);
                // SAFETY: the input is valid at the flat positions at..at + len; its tile has room
                // for them.
                places[first_input + i] = unsafe {
                    match program.inputs[i].size() {
                        1 => self.input::<u8>(i, at, len, tile, &mut filled[i]),
                        4 => self.input::<u32>(i, at, len, tile, &mut filled[i]),
                        _ => self.input::<u64>(i, at, len, tile, &mut filled[i]),
                    }
                };
            }
            for (i, output) in outputs.iter().enumerate() {
                if !self.staged[i] {
                    places[first_output + i] = output.wrapping_add(at * program.outputs[i].size());
                }
            }
            for (i, step) in program.steps.iter().enumerate() {
                if self.streams {
                    self.prefetch_part(at + len, i);
                }
                let [x, y, z] = step.operands.map(|o| places[usize::from(o)].cast_const());
                if let Some((number, dtype)) = step.division {
                    // SAFETY: the divisor has been computed, `len` elements of this dtype.
                    if unsafe { has_zero(dtype.size(), y, len) } {
                        self.by_zero.fetch_min(number, Ordering::Relaxed);
                    }
                }
                // SAFETY: `program` laid the places out so that operands are written before they
                // are read and no step writes what it reads; all of them hold `len` elements.
                unsafe { (step.kernel)(len, x, y, z, places[usize::from(step.dst)]) };
            }
            for (i, output) in outputs.iter().enumerate().filter(|(i, _)| self.staged[*i]) {
                let size = program.outputs[i].size();
                let (tile, out) = (places[first_output + i], output.wrapping_add(at * size));
                // SAFETY: the tile holds the `len` results, and the output has room for them at
                // `at`.
                unsafe {
                    if self.streams {
                        stream(tile, len * size, out);
                    } else {
                        std::ptr::copy_nonoverlapping(tile, out, len * size);
                    }
                }
            }
            at += len;
        }
        if self.streams {
            fence();
        }
    }

    pub(super) fn outputs(&self) -> &[*mut u8] {
        self.outputs
    }

    pub(super) fn divided_by_zero(&self) -> Option<usize> {
        Some(self.by_zero.load(Ordering::Relaxed)).filter(|&number| number != NONE)
    }

    /// Prefetches the dense inputs of the tile at `at`, the share that is due at step `i`:
    /// prefetching all at once would block the loads of this tile.
    fn prefetch_part(&self, at: usize, i: usize) {
        let n_steps = self.program.steps.len();
        for (k, input) in self.inputs.iter().enumerate().filter(|(k, _)| self.spreads[*k] == Spread::Dense) {
            let size = self.program.inputs[k].size();
            let lines = TILE * size / 64;
            prefetch(input.ptr.wrapping_add(at * size), lines * i / n_steps..lines * (i + 1) / n_steps);
        }
    }

    /// The address of an input's elements at the flat positions `at..at + len`: in the input itself
    /// or, expanded, in `tile`.
    ///
    /// `filled` records across calls the contents of the tile: the phase of a period and its
    /// length.
    ///
    /// # Safety
    /// As [`Run::range`]; `tile` must have room for `len` elements and the overrun, `T` must have
    /// the size of the input's elements.
    #[inline(always)]
    unsafe fn input<T: Copy>(
        &self,
        i: usize,
        at: usize,
        len: usize,
        tile: *mut u8,
        filled: &mut Option<(usize, usize)>,
    ) -> *mut u8 {
        let input = &self.inputs[i];
        let source = input.ptr.cast::<T>();
        let holds = |phase| filled.is_some_and(|(p, n)| p == phase && n >= len);
        // SAFETY: reads stay within the view, which is valid for the space; writes within the tile.
        unsafe {
            match self.spreads[i] {
                Spread::Dense => return source.add(at).cast_mut().cast(),
                Spread::Scalar if !holds(0) => {
                    spread_scalar(source.read(), len, tile.cast());
                    *filled = Some((0, len));
                }
                Spread::Periodic(period) => {
                    let phase = at % period;
                    if phase + len <= period {
                        return source.add(phase).cast_mut().cast();
                    }
                    if !holds(phase) {
                        spread_periodic(source, period, phase, len, tile.cast());
                        *filled = Some((phase, len));
                    }
                }
                Spread::Strided => self.space.spread_strided::<T>(input, at..at + len, tile.cast()),
                Spread::Scalar => {}
            }
        }
        tile
    }
}

/// Whether one of `len` integers of 1, 4 or 8 bytes is 0.
///
/// # Safety
/// `x` must hold `len` of them, aligned.
unsafe fn has_zero(size: usize, x: *const u8, len: usize) -> bool {
    // Without an early exit the comparison vectorises.
    macro_rules! any_zero {
        ($t:ty) => {
            // SAFETY: by the contract.
            unsafe { std::slice::from_raw_parts(x.cast::<$t>(), len) }.iter().fold(false, |zero, &x| zero | (x == 0))
        };
    }
    match size {
        1 => any_zero!(u8),
        4 => any_zero!(i32),
        _ => any_zero!(i64),
    }
}
