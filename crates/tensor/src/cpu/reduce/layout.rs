//! The shape of a reduction after merging axes: a dense piece, with loops over the kept and over
//! the reduced axes around it.

use crate::MAX_RANK;
use crate::cpu::size::product;

/// The number of elements of a single column that are folded before partial results are merged.
const SPAN_ELEMENTS: usize = 1 << 16;
/// The number of spans of a piece with several columns, if it has enough rows and elements.
const SPANS: usize = 16;
const SPANS_FROM_ROWS: usize = 1 << 10;
const SPANS_FROM_ELEMENTS: usize = 1 << 16;

/// An array as `outer x repeats` pieces of `n` rows of `inner` columns; rows and repeats are
/// reduced.
pub(super) struct Layout {
    /// The number of elements of the array.
    pub len: usize,
    /// The number of elements of one result.
    pub count: usize,
    pub n: usize,
    pub inner: usize,
    /// The number of rows for one index of the outermost axis in `n`, such as an image of a batch.
    /// A span has a whole number of these.
    slice: usize,
    pub outer: Walk,
    pub repeats: Walk,
}

/// Axes that are iterated in row-major order.
pub(super) struct Walk {
    pub len: usize,
    rank: usize,
    /// The sizes of the axes, innermost first.
    dims: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
}

impl Layout {
    /// Merges neighbouring axes that are all kept or all reduced, and drops axes of one element.
    pub fn new(dims: &[usize], axes: u32) -> Layout {
        assert!(dims.len() <= MAX_RANK, "a reduction of {} axes", dims.len());
        // The sizes below are products of some of these. If an axis is 0 they may overflow, and are
        // then refused where they are computed.
        product(dims);
        let mut layout =
            Layout { len: 1, count: 1, n: 1, inner: 1, slice: 1, outer: Walk::new(), repeats: Walk::new() };
        // From the inside out: columns, rows, then the other axes.
        let mut stage = 0;
        for (axis, &dim) in dims.iter().enumerate().rev() {
            if dim == 1 {
                continue;
            }
            let reduced = axes >> axis & 1 == 1;
            match (stage, reduced) {
                (0, false) => layout.inner = product(&[layout.inner, dim]),
                (0 | 1, true) => {
                    stage = 1;
                    layout.slice = layout.n;
                    layout.n = product(&[layout.n, dim]);
                }
                (_, true) => layout.repeats.push(dim, layout.len),
                (_, false) => {
                    stage = 2;
                    layout.outer.push(dim, layout.len);
                }
            }
            layout.len = product(&[layout.len, dim]);
            layout.count = product(&[layout.count, if reduced { dim } else { 1 }]);
        }
        layout
    }

    /// The number of rows in a span.
    pub fn span_rows(&self) -> usize {
        let Layout { n, inner, slice, .. } = *self;
        match inner {
            1 => SPAN_ELEMENTS,
            _ if n < SPANS_FROM_ROWS || n.saturating_mul(inner) <= SPANS_FROM_ELEMENTS => n.max(1),
            _ => (n / slice).div_ceil(SPANS) * slice,
        }
    }

    /// The number of spans of a piece that are folded separately. A repeated piece is not cut: its
    /// repetitions are enough work.
    pub fn n_spans(&self) -> usize {
        if self.repeats.len == 1 { self.n.div_ceil(self.span_rows()).max(1) } else { 1 }
    }
}

impl Walk {
    fn new() -> Walk {
        Walk { len: 1, rank: 0, dims: [1; MAX_RANK], strides: [0; MAX_RANK] }
    }

    /// Adds an axis outside the others.
    fn push(&mut self, dim: usize, stride: usize) {
        let last = self.rank.wrapping_sub(1);
        if self.rank > 0 && self.strides[last].saturating_mul(self.dims[last]) == stride {
            self.dims[last] = product(&[self.dims[last], dim]);
        } else {
            self.dims[self.rank] = dim;
            self.strides[self.rank] = stride;
            self.rank += 1;
        }
        self.len = product(&[self.len, dim]);
    }

    /// The offset of the element at a position.
    pub fn offset(&self, mut position: usize) -> usize {
        match self.rank {
            0 => 0,
            1 => position * self.strides[0],
            _ => (0..self.rank)
                .map(|g| {
                    let index = position % self.dims[g];
                    position /= self.dims[g];
                    index * self.strides[g]
                })
                .sum(),
        }
    }

    /// Whether the elements follow each other at this distance.
    pub fn is_dense_by(&self, stride: usize) -> bool {
        self.rank == 0 || (self.rank == 1 && self.strides[0] == stride)
    }
}
