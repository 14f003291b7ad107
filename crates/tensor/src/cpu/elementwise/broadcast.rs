//! The iteration space of one run, and the broadcasting of inputs that are smaller than it.
//!
//! Neighbouring axes that have the same layout in all inputs are merged, so most programs see one
//! axis and most inputs are read in place. The other inputs are expanded into tiles here.

use std::ops::Range;

use crate::MAX_RANK;

use super::InputView;

/// The axes of a run after merging.
pub(super) struct Space {
    /// The number of elements in the space.
    pub len: usize,
    rank: usize,
    dims: [usize; MAX_RANK],
    /// For each merged axis, the original axis whose strides it has.
    axis: [usize; MAX_RANK],
}

/// The way an input covers the space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spread {
    /// The input has every element, in order.
    Dense,
    /// One element for the whole space.
    Scalar,
    /// The input's elements repeat in order, with this period.
    Periodic(usize),
    /// Any other layout, read by strides.
    Strided,
}

impl Space {
    /// Merges axes. Axes of one element are dropped, and two axes are merged if in every input the
    /// outer stride follows from the inner one.
    pub fn new(dims: &[usize], inputs: &[InputView]) -> Space {
        debug_assert!(dims.len() <= MAX_RANK);
        let mut space = Space { len: 1, rank: 0, dims: [1; MAX_RANK], axis: [0; MAX_RANK] };
        for (axis, &dim) in dims.iter().enumerate() {
            space.len *= dim;
            if dim == 1 {
                continue;
            }
            if space.rank > 0 {
                let last = space.rank - 1;
                let outer = space.axis[last];
                if inputs.iter().all(|input| input.strides[outer] == input.strides[axis] * dim) {
                    space.dims[last] *= dim;
                    space.axis[last] = axis;
                    continue;
                }
            }
            space.dims[space.rank] = dim;
            space.axis[space.rank] = axis;
            space.rank += 1;
        }
        space
    }

    /// The way an input covers this space.
    pub fn spread(&self, input: &InputView) -> Spread {
        // From the innermost axis outwards: first the dense part, then the constant part.
        let mut dense = 1;
        let mut g = self.rank;
        while g > 0 && input.strides[self.axis[g - 1]] == dense {
            dense *= self.dims[g - 1];
            g -= 1;
        }
        let constant_outside = (0..g).all(|g| input.strides[self.axis[g]] == 0);
        match (g, constant_outside) {
            (0, _) => Spread::Dense,
            (_, false) => Spread::Strided,
            (_, true) if g == self.rank => Spread::Scalar,
            (_, true) => Spread::Periodic(dense),
        }
    }

    /// Writes the elements of a strided input at the flat positions `range` of the space.
    ///
    /// # Safety
    /// The view must be valid for the space, `range` must lie within it, and `out` must have room
    /// for its elements and [`OVERRUN`] more.
    pub unsafe fn spread_strided<T: Copy>(&self, input: &InputView, range: Range<usize>, out: *mut T) {
        let source = input.ptr.cast::<T>();
        let mut index = [0; MAX_RANK];
        let mut offset = 0;
        let mut flat = range.start;
        for g in (0..self.rank).rev() {
            index[g] = flat % self.dims[g];
            flat /= self.dims[g];
            offset += index[g] * input.strides[self.axis[g]];
        }
        let inner = self.rank - 1;
        let step = input.strides[self.axis[inner]];
        let (mut at, end) = (0, range.len());
        while at < end {
            let run = (self.dims[inner] - index[inner]).min(end - at);
            // SAFETY: the run lies within the innermost axis of the view and within `out`.
            unsafe { spread_run(source.add(offset), step, run, out.add(at)) };
            at += run;
            offset += run * step;
            index[inner] += run;
            // Carry into the outer axes.
            let mut g = inner;
            while g > 0 && index[g] == self.dims[g] {
                offset -= index[g] * input.strides[self.axis[g]];
                index[g] = 0;
                g -= 1;
                index[g] += 1;
                offset += input.strides[self.axis[g]];
            }
        }
    }
}

/// The number of elements that [`Space::spread_strided`] may write past the end of a tile.
pub(super) const OVERRUN: usize = 16;

/// Computes `out[i] = source[i * step]` for i below `len`; may overrun.
///
/// # Safety
/// `source` must be valid for those elements, `out` for `len + OVERRUN`.
#[inline(always)]
unsafe fn spread_run<T: Copy>(source: *const T, step: usize, len: usize, out: *mut T) {
    // SAFETY: by the contract.
    unsafe {
        match step {
            // A fixed count compiles to one or two vector stores; the next run overwrites the
            // surplus.
            0 if len <= OVERRUN => out.cast::<[T; OVERRUN]>().write([*source; OVERRUN]),
            0 => std::slice::from_raw_parts_mut(out, len).fill(*source),
            1 => std::ptr::copy_nonoverlapping(source, out, len),
            _ => (0..len).for_each(|i| out.add(i).write(*source.add(i * step))),
        }
    }
}

/// Fills `out` with one element.
///
/// # Safety
/// `out` must have room for `len` elements.
pub(super) unsafe fn spread_scalar<T: Copy>(element: T, len: usize, out: *mut T) {
    // SAFETY: by the contract; `T` has no invalid values to read, since `fill` only writes.
    unsafe { (0..len).for_each(|i| out.add(i).write(element)) };
}

/// Writes `len` elements of an endless repetition of `source`, starting at `phase`.
///
/// # Safety
/// `source` must hold `period` elements and `out` have room for `len`.
pub(super) unsafe fn spread_periodic<T: Copy>(source: *const T, period: usize, phase: usize, len: usize, out: *mut T) {
    // SAFETY: each copy stays within its source's length and the `len` of `out`.
    unsafe {
        let first = (period - phase).min(len);
        std::ptr::copy_nonoverlapping(source.add(phase), out, first);
        let second = phase.min(len - first);
        std::ptr::copy_nonoverlapping(source, out.add(first), second);
        // One period is written; copies of the written part are appended until the tile is full.
        let mut done = first + second;
        while done < len {
            let n = done.min(len - done);
            std::ptr::copy_nonoverlapping(out, out.add(done), n);
            done += n;
        }
    }
}
