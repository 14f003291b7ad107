//! The packed layout of the right operand of a product.
//!
//! B is cut into panels of 32 columns. Each panel is stored row after row, so that a kernel reads
//! it front to back. The last panel holds the remaining 16, 32 or 48 columns, padded with zeros.
//! [`matmul`](super::matmul::matmul) packs B into its scratch memory if that is faster; a weight
//! that is used often can be packed once and passed to
//! [`matmul_packed`](super::matmul::matmul_packed).

use super::pack::{self, Block};
use super::size::product;
use crate::parallel::{DisjointMut, Pool};

/// The number of columns of every panel except the last.
const PANEL: usize = 32;

/// Copies of fewer floats than this run on one thread.
const PARALLEL_FROM: usize = 1 << 16;

/// The shape of a packed `B[k, n]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackedShape {
    /// The number of rows of B.
    pub k: usize,
    /// The number of columns of B.
    pub n: usize,
}

/// One panel: its position in the packed matrix and the columns it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub start: usize,
    pub stride: usize,
    pub column: usize,
    pub columns: usize,
}

impl PackedShape {
    /// The number of floats in the packed matrix.
    pub fn packed_len(&self) -> usize {
        product(&[self.k, self.n.div_ceil(16), 16])
    }

    pub(crate) fn n_panels(&self) -> usize {
        // If there is an odd number of sixteens, the last panel is 48 wide: a tile of 16 columns
        // would be limited by loads, not by the multipliers.
        (self.n.div_ceil(16) / 2).max(1)
    }

    pub(crate) fn panel(&self, index: usize) -> Panel {
        let column = index * PANEL;
        let columns = if index + 1 == self.n_panels() { self.n - column } else { PANEL };
        Panel { start: column * self.k, stride: columns.next_multiple_of(16), column, columns }
    }

    /// Packs `b`, stored as `[k, n]`, or as `[n, k]` if `transposed`.
    pub fn pack(&self, pool: &Pool, b: &[f32], transposed: bool, packed: &mut [f32]) {
        assert_eq!((b.len(), packed.len()), (product(&[self.k, self.n]), self.packed_len()), "pack {self:?}");
        self.panels(pool, b, packed, |panel, to| {
            let to = Block { start: to.as_mut_ptr(), stride: panel.stride };
            // SAFETY: `b` holds the columns of the panel in all k rows, and `to` has room for them
            // and the padding.
            unsafe {
                if transposed {
                    let from = Block { start: b.as_ptr().add(panel.column * self.k), stride: self.k };
                    pack::transpose(from, to, self.k, panel.columns);
                } else {
                    let from = Block { start: b.as_ptr().add(panel.column), stride: self.n };
                    pack::copy(from, to, self.k, panel.columns);
                }
            }
        });
    }

    /// Calls `fill` for each panel, unless `b` is empty.
    fn panels(&self, pool: &Pool, b: &[f32], packed: &mut [f32], fill: impl Fn(Panel, &mut [f32]) + Sync) {
        if b.is_empty() {
            return;
        }
        let out = DisjointMut::new(packed);
        let one = |index: usize| {
            let panel = self.panel(index);
            // SAFETY: panels do not overlap, and each task takes one.
            fill(panel, unsafe { out.slice(panel.start, self.k * panel.stride) });
        };
        if b.len() < PARALLEL_FROM {
            (0..self.n_panels()).for_each(one);
        } else {
            pool.run(self.n_panels(), &one);
        }
    }
}

impl PackedShape {
    /// Packs a B that is stored in pieces of `rows` rows, each transposed. Piece `i` becomes the
    /// rows from `first(i)`.
    pub(crate) fn pack_pieces(
        &self,
        pool: &Pool,
        b: &[f32],
        rows: usize,
        first: &(dyn Fn(usize) -> usize + Sync),
        packed: &mut [f32],
    ) {
        assert_eq!((b.len(), packed.len()), (product(&[self.k, self.n]), self.packed_len()), "pieces of {self:?}");
        let len = product(&[self.n, rows]);
        self.panels(pool, b, packed, |panel, to| {
            for (i, piece) in b.chunks_exact(len).enumerate() {
                let from = Block { start: piece[panel.column * rows..].as_ptr(), stride: rows };
                let to = Block {
                    start: to[first(i) * panel.stride..][..rows * panel.stride].as_mut_ptr(),
                    stride: panel.stride,
                };
                // SAFETY: the piece holds the panel's columns as rows, and the panel has the rows.
                unsafe { pack::transpose(from, to, rows, panel.columns) };
            }
        });
    }
}

/// A packed matrix as the right operand of products over blocks of k.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    pub shape: PackedShape,
    pub packed: &'a [f32],
}

/// The part of a panel that one block of k reads.
pub(crate) struct Strip {
    pub start: *const f32,
    pub stride: usize,
    pub column: usize,
    pub columns: usize,
}

impl Right<'_> {
    /// Panel `index` from row `first`.
    pub fn strip(&self, index: usize, first: usize) -> Strip {
        let Panel { start, stride, column, columns } = self.shape.panel(index);
        Strip { start: self.packed[start + first * stride..].as_ptr(), stride, column, columns }
    }

    /// All panels from row `first`.
    pub fn strips(&self, first: usize) -> impl Iterator<Item = Strip> {
        (0..self.shape.n_panels()).map(move |index| self.strip(index, first))
    }
}
