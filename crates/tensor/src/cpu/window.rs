//! The window that convolutions and poolings move over an image.

use std::ops::Range;

use super::size::sum;

/// Size, steps and margins of a sliding window; every pair is (rows, columns).
///
/// The caller computes the margins for TensorFlow's `SAME` and `VALID`; here they are plain
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Rows and columns of the window.
    pub size: [usize; 2],
    /// The step from one position to the next, at least 1.
    pub stride: [usize; 2],
    /// The distance between the elements that the window sees; 1 for neighbours.
    pub dilation: [usize; 2],
    /// The margin before the first row and column.
    pub padding_before: [usize; 2],
    /// The margin after the last row and column.
    pub padding_after: [usize; 2],
}

impl Window {
    /// A dense window of `size` without margins.
    pub fn new(size: [usize; 2], stride: [usize; 2]) -> Self {
        Window { size, stride, dilation: [1, 1], padding_before: [0, 0], padding_after: [0, 0] }
    }

    /// The number of rows or columns from the first element that the window sees to the last, both
    /// included.
    pub(crate) fn span(&self, axis: usize) -> usize {
        // A window that is larger than any array fits nowhere, whatever its exact size.
        (self.size[axis].max(1) - 1).saturating_mul(self.dilation[axis]).saturating_add(1)
    }

    /// The number of elements of an axis of `len` elements, including its margins.
    pub(crate) fn padded(&self, axis: usize, len: usize) -> usize {
        sum(&[len, self.padding_before[axis], self.padding_after[axis]])
    }

    /// The number of positions of the window along an axis of `len` elements.
    ///
    /// Every kernel calls this when it checks its operands. After that,
    /// `position * stride + tap * dilation` cannot overflow: it is below the sum of `len` and the
    /// margins.
    ///
    /// # Panics
    /// If stride or dilation is 0, or if the axis with its margins is larger than any array.
    pub fn positions(&self, axis: usize, len: usize) -> usize {
        assert!(self.stride[axis] > 0 && self.dilation[axis] > 0, "stride and dilation of {self:?} must be at least 1");
        let (padded, span) = (self.padded(axis, len), self.span(axis));
        if padded < span { 0 } else { (padded - span) / self.stride[axis] + 1 }
    }

    /// Whether the window has a margin.
    pub(crate) fn is_padded(&self) -> bool {
        self.padding_before != [0, 0] || self.padding_after != [0, 0]
    }

    /// The taps that lie inside an axis of `len` elements when the window is at `position`.
    pub(crate) fn taps_inside(&self, axis: usize, position: usize, len: usize) -> Range<usize> {
        let (start, before, dilation) = (position * self.stride[axis], self.padding_before[axis], self.dilation[axis]);
        let end = (len + before).saturating_sub(start).div_ceil(dilation).min(self.size[axis]);
        before.saturating_sub(start).div_ceil(dilation).min(end)..end
    }

    /// The positions, of `positions`, whose tap `tap` lies inside an axis of `len` elements.
    pub(crate) fn positions_inside(&self, axis: usize, tap: usize, len: usize, positions: usize) -> Range<usize> {
        let (start, before, stride) = (tap * self.dilation[axis], self.padding_before[axis], self.stride[axis]);
        let end = (len + before).saturating_sub(start).div_ceil(stride).min(positions);
        before.saturating_sub(start).div_ceil(stride).min(end)..end
    }

    /// The positions, of `positions`, at which all taps lie inside an axis of `len` elements.
    pub(crate) fn positions_whole(&self, axis: usize, len: usize, positions: usize) -> Range<usize> {
        let first = self.positions_inside(axis, 0, len, positions);
        let last = self.positions_inside(axis, self.size[axis].max(1) - 1, len, positions);
        first.start..last.end
    }

    /// The element that tap `tap` sees at `position`; the element must lie inside.
    #[inline(always)]
    pub(crate) fn element(&self, axis: usize, position: usize, tap: usize) -> usize {
        position * self.stride[axis] + tap * self.dilation[axis] - self.padding_before[axis]
    }

    /// The window positions, of `positions`, that see element `at` (not counting the margin), and
    /// the tap that sees it.
    pub(crate) fn seen_by(&self, axis: usize, at: usize, positions: usize) -> Seen {
        let (stride, dilation, size) = (self.stride[axis], self.dilation[axis], self.size[axis]);
        // `position * stride + tap * dilation = at`: from one solution to the next, both change by
        // fixed steps.
        let at = at + self.padding_before[axis];
        if (stride, dilation) == (1, 1) {
            // The common case, without the divisions below, which are noticeable if there are few
            // channels.
            let tap = (at + 1).saturating_sub(positions);
            let count = if positions == 0 { 0 } else { size.saturating_sub(tap).min(at + 1 - tap) };
            return Seen { tap, position: at - tap.min(at), tap_step: 1, position_step: 1, count };
        }
        let common = gcd(stride, dilation);
        let mut seen =
            Seen { tap: 0, position: 0, tap_step: stride / common, position_step: dilation / common, count: 0 };
        let first = (0..seen.tap_step.min(size))
            .find(|tap| at >= tap * dilation && (at - tap * dilation).is_multiple_of(stride));
        let Some(tap) = first else { return seen };
        let position = (at - tap * dilation) / stride;
        let skipped = (position + 1).saturating_sub(positions).div_ceil(seen.position_step);
        let Some(position) = position.checked_sub(skipped * seen.position_step) else { return seen };
        (seen.tap, seen.position) = (tap + skipped * seen.tap_step, position);
        if seen.tap < size && positions > 0 {
            seen.count = ((size - 1 - seen.tap) / seen.tap_step).min(position / seen.position_step) + 1;
        }
        seen
    }
}

/// `count` window positions that see an element. The first sees it as tap `tap`; each further one
/// lies `position_step` before the last and sees it as a tap `tap_step` later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub tap: usize,
    pub position: usize,
    pub tap_step: usize,
    pub position_step: usize,
    pub count: usize,
}

impl Seen {
    /// The pairs of tap and position, with ascending taps.
    #[inline(always)]
    pub fn pairs(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.count).map(move |i| (self.tap + i * self.tap_step, self.position - i * self.position_step))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks against the definition: position p sees element
    /// `p * stride + tap * dilation - padding`.
    #[test]
    fn an_element_is_seen_by_the_positions_that_reach_it() {
        for (size, stride, dilation, before, len) in [
            (3, 1, 1, 0, 7),
            (3, 2, 1, 1, 8),
            (4, 3, 2, 2, 11),
            (2, 4, 3, 0, 9),
            (5, 2, 2, 3, 6),
            (1, 3, 1, 0, 5),
            (3, 2, 4, 5, 4),
        ] {
            let window = Window {
                size: [size, 1],
                stride: [stride, 1],
                dilation: [dilation, 1],
                padding_before: [before, 0],
                padding_after: [1, 0],
            };
            let positions = window.positions(0, len);
            for at in 0..len {
                let sees = |tap: usize, position: usize| position * stride + tap * dilation == at + before;
                let pairs = (0..size).flat_map(|tap| (0..positions).map(move |position| (tap, position)));
                let want: Vec<_> = pairs.filter(|&(tap, position)| sees(tap, position)).collect();
                let got: Vec<_> = window.seen_by(0, at, positions).pairs().collect();
                assert_eq!(got, want, "{window:?}, element {at} of {len}");
            }
            for position in 0..positions {
                let is_whole = position * stride >= before && position * stride + (size - 1) * dilation < before + len;
                let whole = window.positions_whole(0, len, positions);
                assert_eq!(whole.contains(&position), is_whole, "{window:?}");
            }
            for (tap, position) in (0..size).flat_map(|tap| (0..positions).map(move |position| (tap, position))) {
                let is_inside = (before..before + len).contains(&(position * stride + tap * dilation));
                assert_eq!(window.taps_inside(0, position, len).contains(&tap), is_inside, "{window:?}");
                assert_eq!(
                    window.positions_inside(0, tap, len, positions).contains(&position),
                    is_inside,
                    "{window:?}"
                );
            }
        }
    }
}
