//! Pixels that see all taps of a filter of 3 x 3: the taps stay in registers from pixel to pixel.

use crate::cpu::simd::Simd;

/// The nine elements that a pixel sees: those of the next pixel lie `step` further, the next row
/// and column of taps `row` and `column`. In floats; a gradient goes backwards.
#[derive(Clone, Copy)]
pub(super) struct Nine {
    pub start: *const f32,
    pub step: isize,
    pub row: isize,
    pub column: isize,
}

impl Nine {
    #[inline(always)]
    fn at(self, pixel: usize, tap: usize) -> *const f32 {
        let (row, column) = ((tap / 3) as isize * self.row, (tap % 3) as isize * self.column);
        self.start.wrapping_offset(pixel as isize * self.step + row + column)
    }
}

/// Writes, for `n` pixels of `channels`, the sums of their nine elements times those of the filter.
///
/// # Safety
/// All elements must be readable, the filter must have nine rows of `channels`, and `to` must be
/// writable for the pixels.
#[inline(always)]
pub(super) unsafe fn weighted<S: Simd>(nine: Nine, n: usize, filter: *const f32, to: *mut f32, channels: usize) {
    let mut channel = 0;
    while channel < channels {
        // SAFETY: vectors are masked to the channels that are left.
        unsafe {
            let mask = S::mask((channels - channel).min(S::LANES));
            let mut taps = [S::splat(0.0); 9];
            for (tap, weights) in taps.iter_mut().enumerate() {
                *weights = S::load_masked(filter.add(tap * channels + channel), mask);
            }
            for pixel in 0..n {
                let mut sum = S::splat(0.0);
                for (tap, weights) in taps.iter().enumerate() {
                    sum = S::fma(S::load_masked(nine.at(pixel, tap).wrapping_add(channel), mask), *weights, sum);
                }
                S::store_masked(to.add(pixel * channels + channel), sum, mask);
            }
        }
        channel += S::LANES;
    }
}

/// Adds, for each tap, the elements of `n` pixels times those of `dy` to `sums`.
///
/// # Safety
/// All elements and the pixels of `dy` must be readable, and `sums` must have nine rows of
/// `channels`.
#[inline(always)]
pub(super) unsafe fn correlated<S: Simd>(nine: Nine, n: usize, dy: *const f32, sums: *mut f32, channels: usize) {
    let mut channel = 0;
    while channel < channels {
        // SAFETY: vectors are masked to the channels that are left.
        unsafe {
            let mask = S::mask((channels - channel).min(S::LANES));
            let mut taps = [S::splat(0.0); 9];
            for (tap, sum) in taps.iter_mut().enumerate() {
                *sum = S::load_masked(sums.add(tap * channels + channel), mask);
            }
            for pixel in 0..n {
                let dy = S::load_masked(dy.add(pixel * channels + channel), mask);
                for (tap, sum) in taps.iter_mut().enumerate() {
                    *sum = S::fma(S::load_masked(nine.at(pixel, tap).wrapping_add(channel), mask), dy, *sum);
                }
            }
            for (tap, sum) in taps.into_iter().enumerate() {
                S::store_masked(sums.add(tap * channels + channel), sum, mask);
            }
        }
        channel += S::LANES;
    }
}
