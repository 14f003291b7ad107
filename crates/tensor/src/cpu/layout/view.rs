//! A strided view: maps each output position to an element of a dense array.
//!
//! Transpose, slice, reverse, broadcast and tile differ only in their view; one loop copies them
//! all.

use super::axis::{Axes, Axis, locate};
use super::{by_size, transpose};
use crate::cpu::size::product;
use crate::cpu::split::{for_each_part, grain};
use crate::parallel::{DisjointMut, Pool};
use smallvec::SmallVec;

/// Positions in a dense array, as axes with strides.
///
/// [`View::write`] relies on this property: two positions that differ on an axis whose stride is
/// not 0 are different elements. It holds for a dense array, whose strides are those of mixed-radix
/// digits. Reordering axes, keeping some positions of an axis and reversing it do not change that,
/// which is why [`View::transpose`] and [`View::slice`] refuse an axis twice and positions outside.
/// An axis that repeats elements has stride 0, and `write` refuses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    axes: Axes,
    offset: usize,
}

impl View {
    /// The view of a whole array of `dims`, in its order.
    pub fn dense(dims: &[usize]) -> View {
        // The strides are products of some of these dims. In an empty array they may wrap around,
        // but are never used.
        product(dims);
        let mut stride = 1_isize;
        let mut axes: Axes = dims
            .iter()
            .rev()
            .map(|&len| {
                let axis = Axis { len, stride };
                stride = stride.wrapping_mul(len as isize);
                axis
            })
            .collect();
        axes.reverse();
        View { axes, offset: 0 }
    }

    /// Reorders axes: axis `k` becomes the old axis `perm[k]`.
    pub fn transpose(&self, perm: &[usize]) -> View {
        let is_permutation = perm.len() == self.axes.len() && (0..perm.len()).all(|k| perm.contains(&k));
        assert!(is_permutation, "{perm:?} does not name each of {} axes once", self.axes.len());
        View { axes: perm.iter().map(|&k| self.axes[k]).collect(), offset: self.offset }
    }

    /// Takes `size[k]` positions of each axis, from `begin[k]` in steps of `strides[k]`; without
    /// strides, steps are 1.
    pub fn slice(&self, begin: &[usize], strides: &[isize], size: &[usize]) -> View {
        let rank = self.axes.len();
        assert!(begin.len() == rank && size.len() == rank, "a slice of {rank} axes from {begin:?}, size {size:?}");
        let mut view = View { axes: Axes::new(), offset: self.offset };
        for (k, axis) in self.axes.iter().enumerate() {
            let step = strides.get(k).copied().unwrap_or(1);
            // i128 is wide enough for any three numbers.
            let last = begin[k] as i128 + size[k].saturating_sub(1) as i128 * step as i128;
            let inside = begin[k] < axis.len && last >= 0 && last < axis.len as i128;
            assert!(size[k] == 0 || inside, "positions {}..={last} of an axis of {}", begin[k], axis.len);
            // The stride wraps around only if there is no second position, or no first.
            view.axes.push(Axis { len: size[k], stride: axis.stride.wrapping_mul(step) });
            view.offset = view.offset.wrapping_add_signed((begin[k] as isize).wrapping_mul(axis.stride));
        }
        view
    }

    /// Reverses the named axes.
    pub fn reverse(&self, axes: &[usize]) -> View {
        let mut view = self.clone();
        for &k in axes {
            let axis = &mut view.axes[k];
            let last = (axis.len.saturating_sub(1) as isize).wrapping_mul(axis.stride);
            view.offset = view.offset.wrapping_add_signed(last);
            axis.stride = axis.stride.wrapping_neg();
        }
        view
    }

    /// Stretches axes of length 1, and puts new axes in front, to reach `dims`.
    pub fn broadcast_to(&self, dims: &[usize]) -> View {
        let new = dims.len().checked_sub(self.axes.len());
        let new = new.unwrap_or_else(|| panic!("{} axes do not stretch to {dims:?}", self.axes.len()));
        let axes = dims.iter().enumerate().map(|(k, &len)| match k.checked_sub(new).map(|k| self.axes[k]) {
            Some(axis) if axis.len == len => axis,
            Some(axis) => {
                assert_eq!(axis.len, 1, "an axis of {} does not stretch to {len}", axis.len);
                Axis { len, stride: 0 }
            }
            None => Axis { len, stride: 0 },
        });
        View { axes: axes.collect(), offset: self.offset }
    }

    /// Repeats each axis: a repetition is an axis of stride 0 before the axis itself.
    pub fn tile(&self, multiples: &[usize]) -> View {
        assert_eq!(multiples.len(), self.axes.len(), "one multiple for each axis");
        let axes = self.axes.iter().zip(multiples).flat_map(|(&axis, &len)| [Axis { len, stride: 0 }, axis]);
        View { axes: axes.filter(|axis| axis.len != 1).collect(), offset: self.offset }
    }

    /// The number of positions of the view.
    pub fn count(&self) -> usize {
        product(&self.axes.iter().map(|axis| axis.len).collect::<SmallVec<[usize; 16]>>())
    }

    /// Computes `out[i] = x[position i]`.
    pub fn read(&self, pool: &Pool, elem_size: usize, x: &[u8], out: &mut [u8]) {
        assert_eq!(out.len(), product(&[self.count(), elem_size]), "output of a view of {} elements", self.count());
        if !out.is_empty() {
            let axes = collapse(&self.axes);
            by_size!(elem_size, N => {
                read::<N>(pool, &axes, self.offset, x.as_chunks().0, out.as_chunks_mut().0)
            });
        }
    }

    /// Computes `out[position i] = x[i]`. The positions of the view must be distinct: there must be
    /// no stretched axis.
    pub fn write(&self, pool: &Pool, elem_size: usize, x: &[u8], out: &mut [u8]) {
        assert_eq!(x.len(), product(&[self.count(), elem_size]), "input to a view of {} elements", self.count());
        if !x.is_empty() {
            assert!(self.axes.iter().all(|axis| axis.len == 1 || axis.stride != 0), "a stretched axis is written");
            let axes = collapse(&self.axes);
            by_size!(elem_size, N => {
                write::<N>(pool, &axes, self.offset, x.as_chunks().0, out.as_chunks_mut().0)
            });
        }
    }
}

/// Converts TensorFlow's begin, end and stride on an axis of `len` positions to the first position
/// and the count.
///
/// `None` stands for a bit set in begin_mask or end_mask. Negative positions count from the end,
/// and out-of-range ones are clamped, as in Python. A stride of 0 selects nothing.
pub fn resolve_range(begin: Option<i64>, end: Option<i64>, stride: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    // When going backwards, the position before the first is a valid end.
    let (lowest, highest) = if stride < 0 { (-1, len - 1) } else { (0, len) };
    let clamp = |at: i64| (if at < 0 { at.saturating_add(len) } else { at }).clamp(lowest, highest);
    let begin = begin.map_or(if stride < 0 { highest } else { lowest }, clamp);
    let end = end.map_or(if stride < 0 { lowest } else { highest }, clamp);
    let distance = if stride < 0 { begin - end } else { end - begin };
    if stride == 0 || distance <= 0 {
        return (0, 0);
    }
    (begin as usize, (distance as u64).div_ceil(stride.unsigned_abs()) as usize)
}

/// Drops axes of length 1 and merges neighbours that together form one arithmetic sequence. The
/// result is never empty.
fn collapse(axes: &[Axis]) -> Axes {
    let mut merged = Axes::new();
    for &axis in axes.iter().filter(|axis| axis.len != 1) {
        match merged.last_mut() {
            Some(last) if last.stride == axis.stride.wrapping_mul(axis.len as isize) => {
                *last = Axis { len: last.len * axis.len, stride: axis.stride };
            }
            _ => merged.push(axis),
        }
    }
    if merged.is_empty() {
        merged.push(Axis { len: 1, stride: 1 });
    }
    merged
}

fn read<const N: usize>(pool: &Pool, axes: &[Axis], offset: usize, x: &[[u8; N]], out: &mut [[u8; N]]) {
    if let Some(plan) = transpose::Plan::new(axes) {
        return plan.run(pool, offset, x, out);
    }
    let stride = axes[axes.len() - 1].stride;
    for_each_part(pool, out, grain(N), &|start, mut part| {
        for_each_row(axes, offset, start, part.len(), &mut |from, _, len| {
            let (row, rest) = std::mem::take(&mut part).split_at_mut(len);
            part = rest;
            match stride {
                1 => row.copy_from_slice(&x[from..from + len]),
                0 => row.fill(x[from]),
                _ => {
                    let mut at = from;
                    for value in row {
                        *value = x[at];
                        at = at.wrapping_add_signed(stride);
                    }
                }
            }
        });
    });
}

fn write<const N: usize>(pool: &Pool, axes: &[Axis], offset: usize, x: &[[u8; N]], out: &mut [[u8; N]]) {
    let stride = axes[axes.len() - 1].stride;
    let out = DisjointMut::new(out);
    let per_task = grain(N);
    pool.run(x.len().div_ceil(per_task), &|task| {
        let start = task * per_task;
        for_each_row(axes, offset, start, per_task.min(x.len() - start), &mut |to, index, len| {
            if stride == 1 {
                // SAFETY: the positions of a view that `View::write` accepts are distinct elements
                // (see `View`), and a position has one `index`, which belongs to one task.
                unsafe { out.slice(to, len) }.copy_from_slice(&x[index..index + len]);
            } else {
                let mut at = to;
                for value in &x[index..index + len] {
                    // SAFETY: as above.
                    unsafe { out.slice(at, 1)[0] = *value };
                    at = at.wrapping_add_signed(stride);
                }
            }
        });
    });
}

/// Cuts the positions [start, start + count) at the ends of the last axis: calls
/// `visit(offset, position, length)` for each run. The coordinates are incremented, since a
/// division per axis and run would cost more than a short copy.
#[inline(always)]
fn for_each_row(axes: &[Axis], offset: usize, start: usize, count: usize, visit: &mut impl FnMut(usize, usize, usize)) {
    let (last, leading) = axes.split_last().expect("a collapsed view has an axis");
    let mut row = start / last.len;
    let mut row_offset = locate(leading, offset, row);
    let mut at: SmallVec<[usize; 8]> = leading.iter().map(|_| 0).collect();
    for (i, axis) in at.iter_mut().zip(leading).rev() {
        *i = row % axis.len;
        row /= axis.len;
    }
    let mut first = start % last.len;
    let (mut index, end) = (start, start + count);
    while index < end {
        let len = (last.len - first).min(end - index);
        visit(row_offset.wrapping_add_signed(first as isize * last.stride), index, len);
        index += len;
        first = 0;
        for (i, axis) in at.iter_mut().zip(leading).rev() {
            *i += 1;
            row_offset = row_offset.wrapping_add_signed(axis.stride);
            if *i < axis.len {
                break;
            }
            *i = 0;
            row_offset = row_offset.wrapping_add_signed(-axis.stride * axis.len as isize);
        }
    }
}
