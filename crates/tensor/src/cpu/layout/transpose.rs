//! The transposing copy, for views whose contiguous input axis is not the last axis of the output.
//!
//! Reading or writing such an array element by element touches a cache line per element. Here both
//! sides are processed in squares of `SIDE` x `SIDE`.

use super::axis::{Axes, Axis, locate};
use crate::cpu::split::grain;
use crate::parallel::{DisjointMut, Pool};
use std::array::from_fn;

/// The side of a square: a cache line of 4-byte elements.
const SIDE: usize = 16;

/// The axes of a view, sorted by their role.
pub(super) struct Plan {
    /// All axes except `down` and `across`, with the input's strides and with the output's.
    outer: Axes,
    outer_out: Axes,
    /// The axis that is contiguous in the input.
    down: Axis,
    /// The distance in the output between neighbours on `down`.
    pitch: usize,
    /// The axis that is contiguous in the output.
    across: Axis,
}

impl Plan {
    /// Returns a plan if the view has a contiguous axis which is not its last, and both axes are
    /// long enough for squares.
    pub(super) fn new(axes: &[Axis]) -> Option<Plan> {
        let (&across, others) = axes.split_last()?;
        let chosen = others.iter().position(|axis| axis.stride == 1)?;
        let down = others[chosen];
        if matches!(across.stride, 0 | 1) || across.len < 4 || down.len < 4 {
            return None;
        }
        let mut pitches = Axes::new();
        let mut stride = across.len as isize;
        for axis in others.iter().rev() {
            pitches.insert(0, Axis { len: axis.len, stride });
            stride *= axis.len as isize;
        }
        let mut outer: Axes = others.into();
        outer.remove(chosen);
        let pitch = pitches.remove(chosen).stride as usize;
        Some(Plan { outer, outer_out: pitches, down, pitch, across })
    }

    /// Copies band by band; a band is some rows of `down` over all of `across`.
    pub(super) fn run<const N: usize>(&self, pool: &Pool, offset: usize, x: &[[u8; N]], out: &mut [[u8; N]]) {
        let band = (grain(N) / self.across.len).max(1).next_multiple_of(SIDE).min(self.down.len);
        let bands = self.down.len.div_ceil(band);
        let n_outer: usize = self.outer.iter().map(|axis| axis.len).product();
        // Small planes are grouped, so that a task has enough work.
        let group = (grain(N) / (band * self.across.len)).max(1);
        let n_bands = n_outer * bands;
        let out = DisjointMut::new(out);
        pool.run(n_bands.div_ceil(group), &|task| {
            for number in task * group..n_bands.min((task + 1) * group) {
                let (plane, first) = (number / bands, number % bands * band);
                let from = locate(&self.outer, offset, plane) + first;
                let to = locate(&self.outer_out, 0, plane) + first * self.pitch;
                self.copy_band(band.min(self.down.len - first), from, to, x, &out);
            }
        });
    }

    /// Computes `out[to + i * pitch + j] = x[from + i + j * across.stride]`.
    fn copy_band<const N: usize>(
        &self,
        rows: usize,
        from: usize,
        to: usize,
        x: &[[u8; N]],
        out: &DisjointMut<[u8; N]>,
    ) {
        for i in (0..rows).step_by(SIDE) {
            let height = SIDE.min(rows - i);
            for j in (0..self.across.len).step_by(SIDE) {
                let width = SIDE.min(self.across.len - j);
                let column = |k: usize| {
                    let at = (from + i).wrapping_add_signed((j + k) as isize * self.across.stride);
                    &x[at..at + height]
                };
                // SAFETY: (plane, row of `down`) names one run of `across` in the output, whose
                // length `View::read` has compared with the view's; bands do not share rows.
                let run = |row: usize| unsafe { out.slice(to + (i + row) * self.pitch + j, width) };
                if height == SIDE && width == SIDE {
                    copy_square(column, run);
                } else {
                    copy_corner(height, width, column, run);
                }
            }
        }
    }
}

/// Computes `run(i)[j] = column(j)[i]` for a whole square.
#[inline(always)]
fn copy_square<'a, const N: usize>(column: impl Fn(usize) -> &'a [[u8; N]], run: impl Fn(usize) -> &'a mut [[u8; N]]) {
    #[cfg(target_arch = "x86_64")]
    if N == 4 {
        let (columns, runs) = (from_fn(|j| column(j).as_ptr().cast()), from_fn(|i| run(i).as_mut_ptr().cast()));
        // SAFETY: all columns and runs are slices of SIDE elements of 4 bytes.
        return unsafe { copy_square_of_words(columns, runs) };
    }
    copy_corner(SIDE, SIDE, column, run);
}

/// Copies sixteen 4 x 4 blocks in registers. SSE2 is part of every x86-64.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy_square_of_words(columns: [*const f32; SIDE], runs: [*mut f32; SIDE]) {
    use std::arch::x86_64::*;
    for i in (0..SIDE).step_by(4) {
        for j in (0..SIDE).step_by(4) {
            // SAFETY: i + 4 and j + 4 are at most SIDE, the length of the slice at every pointer;
            // loads and stores may be unaligned.
            unsafe {
                let [a, b, c, d]: [__m128; 4] = from_fn(|k| _mm_loadu_ps(columns[j + k].add(i)));
                let (ab_low, ab_high) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
                _mm_storeu_ps(runs[i].add(j), _mm_movelh_ps(ab_low, cd_low));
                _mm_storeu_ps(runs[i + 1].add(j), _mm_movehl_ps(cd_low, ab_low));
                _mm_storeu_ps(runs[i + 2].add(j), _mm_movelh_ps(ab_high, cd_high));
                _mm_storeu_ps(runs[i + 3].add(j), _mm_movehl_ps(cd_high, ab_high));
            }
        }
    }
}

/// Does the same at the border, where the square is smaller.
fn copy_corner<'a, const N: usize>(
    height: usize,
    width: usize,
    column: impl Fn(usize) -> &'a [[u8; N]],
    run: impl Fn(usize) -> &'a mut [[u8; N]],
) {
    let columns: [&[[u8; N]]; SIDE] = from_fn(|j| column(j.min(width - 1)));
    for i in 0..height {
        for (value, column) in run(i).iter_mut().zip(columns) {
            *value = column[i];
        }
    }
}
