//! One row of an image: its result, its input's gradient, and its part of the filter's gradient.

use std::ops::Range;

use super::DepthwiseShape;
use super::nine::{Nine, correlated, weighted};
use crate::cpu::simd::{Simd, for_every_isa};

for_every_isa! {
    /// Computes one output row from an expanded image.
    ///
    /// # Safety
    /// The operands must have the sizes of the shape.
    pub(super) unsafe fn forward_row(shape: &DepthwiseShape, row: usize, x: *const f32, filter: *const f32, y: *mut f32) = forward_row_generic
}

for_every_isa! {
    /// Computes one expanded input row from the gradient of an image's output.
    ///
    /// # Safety
    /// The operands must have the sizes of the shape.
    pub(super) unsafe fn input_row(shape: &DepthwiseShape, row: usize, dy: *const f32, filter: *const f32, dx: *mut f32) = input_row_generic
}

for_every_isa! {
    /// Adds the contribution of one output row of an expanded image to the filter's gradient.
    ///
    /// # Safety
    /// The operands must have the sizes of the shape.
    pub(super) unsafe fn filter_row(shape: &DepthwiseShape, row: usize, x: *const f32, dy: *const f32, dfilter: *mut f32) = filter_row_generic
}

/// The positions of a row that see all of 3 x 3 taps; none if the filter has other sizes, or if the
/// row does not see all of its rows.
fn whole(shape: &DepthwiseShape, row: usize) -> Range<usize> {
    let window = &shape.window;
    if window.size != [3, 3] || window.taps_inside(0, row, shape.height) != (0..3) {
        return 0..0;
    }
    window.positions_whole(1, shape.width, shape.out_width())
}

/// What the position of an output row at `column` sees in an expanded image.
fn seen(shape: &DepthwiseShape, row: usize, column: usize, x: *const f32) -> Nine {
    let (window, channels) = (&shape.window, shape.out_channels());
    let at = window.element(0, row, 0) * shape.width + window.element(1, column, 0);
    Nine {
        start: x.wrapping_add(at * channels),
        step: (window.stride[1] * channels) as isize,
        row: (window.dilation[0] * shape.width * channels) as isize,
        column: (window.dilation[1] * channels) as isize,
    }
}

#[inline(always)]
unsafe fn forward_row_generic<S: Simd>(
    shape: &DepthwiseShape,
    row: usize,
    x: *const f32,
    filter: *const f32,
    y: *mut f32,
) {
    let DepthwiseShape { height, width, window, .. } = *shape;
    let (channels, out_width) = (shape.out_channels(), shape.out_width());
    let whole = whole(shape, row);
    if !whole.is_empty() {
        let nine = seen(shape, row, whole.start, x);
        // SAFETY: these positions see elements inside the image.
        unsafe { weighted::<S>(nine, whole.len(), filter, y.add(whole.start * channels), channels) };
    }
    let rows = window.taps_inside(0, row, height);
    for ox in (0..out_width).filter(|ox| !whole.contains(ox)) {
        let columns = window.taps_inside(1, ox, width);
        let mut channel = 0;
        while channel < channels {
            // SAFETY: the taps lie inside the image; vectors are masked to the channels that are
            // left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let mut sum = S::splat(0.0);
                for ky in rows.clone() {
                    for kx in columns.clone() {
                        let at = window.element(0, row, ky) * width + window.element(1, ox, kx);
                        let x = S::load_masked(x.add(at * channels + channel), mask);
                        let tap = (ky * window.size[1] + kx) * channels + channel;
                        sum = S::fma(x, S::load_masked(filter.add(tap), mask), sum);
                    }
                }
                S::store_masked(y.add(ox * channels + channel), sum, mask);
            }
            channel += S::LANES;
        }
    }
}

/// The columns of an input row that all of 3 x 3 taps see, if the filter moves by one pixel.
fn wholly_seen(shape: &DepthwiseShape, n_rows: usize) -> Range<usize> {
    let window = &shape.window;
    if window.size != [3, 3] || window.stride != [1, 1] || n_rows != 3 {
        return 0..0;
    }
    // Column c is seen by the positions from `c + margin` back to two taps before.
    let (first, end) = ((2 * window.dilation[1]).checked_sub(window.padding_before[1]), shape.out_width());
    let Some(first) = first else { return 0..0 };
    first..end.saturating_sub(window.padding_before[1]).min(shape.width).max(first)
}

#[inline(always)]
unsafe fn input_row_generic<S: Simd>(
    shape: &DepthwiseShape,
    row: usize,
    dy: *const f32,
    filter: *const f32,
    dx: *mut f32,
) {
    let window = &shape.window;
    let (channels, out_width) = (shape.out_channels(), shape.out_width());
    let rows = window.seen_by(0, row, shape.out_height());
    let whole = wholly_seen(shape, rows.count);
    if !whole.is_empty() {
        let nine = Nine {
            start: dy.wrapping_add((rows.position * out_width + whole.start + window.padding_before[1]) * channels),
            step: channels as isize,
            row: -((window.dilation[0] * out_width * channels) as isize),
            column: -((window.dilation[1] * channels) as isize),
        };
        // SAFETY: all nine positions that see such an element are inside the gradient.
        unsafe { weighted::<S>(nine, whole.len(), filter, dx.add(whole.start * channels), channels) };
    }
    for column in (0..shape.width).filter(|column| !whole.contains(column)) {
        let columns = window.seen_by(1, column, out_width);
        let mut channel = 0;
        while channel < channels {
            // SAFETY: the positions are of this image; vectors are masked to the channels that are
            // left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let mut sum = S::splat(0.0);
                for (ky, oy) in rows.pairs() {
                    for (kx, ox) in columns.pairs() {
                        let dy = S::load_masked(dy.add((oy * out_width + ox) * channels + channel), mask);
                        let tap = (ky * window.size[1] + kx) * channels + channel;
                        sum = S::fma(dy, S::load_masked(filter.add(tap), mask), sum);
                    }
                }
                S::store_masked(dx.add(column * channels + channel), sum, mask);
            }
            channel += S::LANES;
        }
    }
}

#[inline(always)]
unsafe fn filter_row_generic<S: Simd>(
    shape: &DepthwiseShape,
    row: usize,
    x: *const f32,
    dy: *const f32,
    dfilter: *mut f32,
) {
    let (channels, out_width) = (shape.out_channels(), shape.out_width());
    let dy = dy.wrapping_add(row * out_width * channels);
    let whole = whole(shape, row);
    // SAFETY: the operands have the sizes of the shape; the middle positions see elements inside
    // the image.
    unsafe {
        if whole.is_empty() {
            return taps::<S>(shape, row, 0..out_width, x, dy, dfilter);
        }
        taps::<S>(shape, row, 0..whole.start, x, dy, dfilter);
        let nine = seen(shape, row, whole.start, x);
        correlated::<S>(nine, whole.len(), dy.wrapping_add(whole.start * channels), dfilter, channels);
        taps::<S>(shape, row, whole.end..out_width, x, dy, dfilter);
    }
}

/// Adds the contribution of some positions of an output row, whose gradient is `dy`, tap by tap.
#[inline(always)]
unsafe fn taps<S: Simd>(
    shape: &DepthwiseShape,
    row: usize,
    positions: Range<usize>,
    x: *const f32,
    dy: *const f32,
    dfilter: *mut f32,
) {
    let DepthwiseShape { height, width, window, .. } = *shape;
    let (channels, out_width) = (shape.out_channels(), shape.out_width());
    let rows = window.taps_inside(0, row, height);
    for (ky, kx) in rows.flat_map(|ky| (0..window.size[1]).map(move |kx| (ky, kx))) {
        let inside = window.positions_inside(1, kx, width, out_width);
        let positions = inside.start.max(positions.start)..inside.end.min(positions.end);
        let mut channel = 0;
        while channel < channels && !positions.is_empty() {
            // SAFETY: these positions see elements inside the image; vectors are masked to the
            // channels left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let to = dfilter.add((ky * window.size[1] + kx) * channels + channel);
                let mut sum = S::load_masked(to, mask);
                for ox in positions.clone() {
                    let at = window.element(0, row, ky) * width + window.element(1, ox, kx);
                    let x = S::load_masked(x.add(at * channels + channel), mask);
                    let dy = S::load_masked(dy.add(ox * channels + channel), mask);
                    sum = S::fma(x, dy, sum);
                }
                S::store_masked(to, sum, mask);
            }
            channel += S::LANES;
        }
    }
}
