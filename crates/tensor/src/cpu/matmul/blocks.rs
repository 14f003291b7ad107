//! The loop nest of a product: parts of C for the pool, blocks of k, strips of B for the tile
//! kernels.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{COPY_FROM_ROWS, Epilogue, Only, Pieces, Product};
use crate::cpu::microkernel::{BLOCK_K, Finish, Kernels, Segment, Tile};
use crate::cpu::pack::{self, Block};
use crate::cpu::packed::{PackedShape, Right, Strip};
use crate::parallel::Pool;

/// The number of tasks that a large product is cut into at least, if possible, so that the threads
/// finish together.
const TASKS: usize = 8;
/// The number of rows of a part of C: with a block of k they fit the second-level cache together
/// with a panel of B.
const PART_ROWS: usize = 256;
/// From this number of rows on, parts are as tall as possible.
const MANY_ROWS: usize = 4 * PART_ROWS;
/// A part with fewer rows is not cut further: the tiles would not be full, and each part reads B
/// again.
const LEAST_ROWS: usize = 32;
/// The number of columns of a part is a multiple of this; a panel of B is half of it.
const PART_COLUMNS: usize = 64;

/// The storage of B.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    InPlace(&'a [f32]),
    Pieces(&'a [f32], Pieces<'a>),
    Packed(Right<'a>),
}

/// A block of C: the rows and columns one task computes.
#[derive(Clone, Copy)]
struct OutputBlock {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

/// The operands of one product, shared by its tasks.
struct Operands<'a> {
    product: Product,
    only: Only<'a>,
    a: &'a [f32],
    b: Source<'a>,
    c: *mut f32,
    epilogue: Epilogue<'a>,
}

// SAFETY: the tasks write disjoint parts of C and only read the rest.
unsafe impl Sync for Operands<'_> {}

/// A block of A in the form that the kernels read: element `(i, kk)` is at
/// `start + i * row + kk * k`.
#[derive(Clone, Copy)]
struct Left {
    start: *const f32,
    row: usize,
    k: usize,
}

/// Cuts C into parts and computes them. The operands must have the sizes of the product.
pub(super) fn run(pool: &Pool, product: &Product, only: Only, a: &[f32], b: Source, c: &mut [f32], epilogue: Epilogue) {
    let Product { m, n, .. } = *product;
    if m == 0 || n == 0 {
        return;
    }
    let operands = Operands { product: *product, only, a, b, c: c.as_mut_ptr(), epilogue };
    if !product.is_parallel() {
        return operands.compute(OutputBlock { row: 0, rows: m, column: 0, columns: n });
    }
    // With many rows the parts are as tall as possible, since every part reads B again, or copies
    // it. With fewer rows they are cut until there are enough tasks.
    let tallest = m.div_ceil(PART_ROWS);
    let enough = match b {
        Source::InPlace(_) if !product.copies_right() => TASKS,
        Source::Packed(_) => TASKS,
        Source::InPlace(_) | Source::Pieces(..) => TASKS.div_ceil(n.div_ceil(PART_COLUMNS)),
    };
    let row_parts = if m >= MANY_ROWS { tallest } else { tallest.max(enough.min(m / LEAST_ROWS)) };
    // Parts side by side would write to the same cache lines if rows do not fill whole lines.
    let side_by_side = n.is_multiple_of(16) || row_parts < TASKS / 2;
    let column_parts = if side_by_side { TASKS.div_ceil(row_parts).min(n.div_ceil(PART_COLUMNS)) } else { 1 };
    let (rows, columns) = (m.div_ceil(row_parts), n.div_ceil(column_parts).next_multiple_of(PART_COLUMNS));
    let (row_parts, column_parts) = (m.div_ceil(rows), n.div_ceil(columns));
    pool.run(row_parts * column_parts, &|task| {
        let (row, column) = (task / column_parts * rows, task % column_parts * columns);
        operands.compute(OutputBlock { row, rows: rows.min(m - row), column, columns: columns.min(n - column) });
    });
}

/// The number of floats between the rows of a copied block of A. It is not a power of two, so that
/// the rows do not share cache sets.
const COPY_STRIDE: usize = BLOCK_K + 16;

#[repr(align(64))]
struct LeftCopy(MaybeUninit<[f32; PART_ROWS * COPY_STRIDE]>);

/// The columns of B after the last whole vector, padded.
#[repr(align(64))]
struct TailCopy(MaybeUninit<[f32; BLOCK_K * 16]>);

/// The widest panel of B, over one block of k.
#[repr(align(64))]
struct StripCopy(MaybeUninit<[f32; BLOCK_K * 48]>);

impl Operands<'_> {
    fn compute(&self, part: OutputBlock) {
        self.clear(part);
        // SAFETY: the callers of `run` have checked that the operands have the product's sizes.
        unsafe { if self.copies_left(part) { self.compute_copied(part) } else { self.compute_in_place(part) } }
    }

    /// Sets rows of the part that are left out to zero.
    fn clear(&self, part: OutputBlock) {
        let Only::Rows(pieces) = self.only else { return };
        for row in pieces.within(part.row..part.row + part.rows).flat_map(|[_, out]| out) {
            // SAFETY: these columns of this row belong to the part.
            unsafe { self.c.add(row * self.product.n + part.column).write_bytes(0, part.columns) };
        }
    }

    /// Whether the part's block of A should be copied. Rows that lie a multiple of 1 KiB apart
    /// evict each other from the cache, and a transposed A takes a page per k. A copy pays off if
    /// it is used for many columns.
    fn copies_left(&self, part: OutputBlock) -> bool {
        let Product { m, k, transpose_a, .. } = self.product;
        let awkward = if transpose_a { m >= 1024 } else { k >= 1024 && k.is_multiple_of(256) };
        k > 0 && awkward && part.columns >= 256 && (COPY_FROM_ROWS..=PART_ROWS).contains(&part.rows)
    }

    unsafe fn compute_in_place(&self, part: OutputBlock) {
        let Product { m, k, transpose_a, .. } = self.product;
        let (row, step) = if transpose_a { (1, m) } else { (k, 1) };
        let mut first = 0;
        // At least once: with k = 0 there is still a bias to store.
        loop {
            let block = first..k.min(first + BLOCK_K);
            first = block.end;
            // SAFETY: the part lies within A, and the block within k.
            unsafe {
                let start = self.a.as_ptr().add(part.row * row + block.start * step);
                self.block_of_k(part, Left { start, row, k: step }, block);
            }
            if first == k {
                break;
            }
        }
    }

    /// Separate from [`Self::compute_in_place`] because of its stack frame of 280 KiB, which small
    /// products should not touch.
    #[inline(never)]
    unsafe fn compute_copied(&self, part: OutputBlock) {
        let Product { m, k, transpose_a, .. } = self.product;
        let mut buffer = LeftCopy(MaybeUninit::uninit());
        let copy: *mut f32 = buffer.0.as_mut_ptr().cast();
        for first in (0..k).step_by(BLOCK_K) {
            let block = first..k.min(first + BLOCK_K);
            // SAFETY: the part lies within A; the copy has room for `PART_ROWS` padded rows of
            // `BLOCK_K`, or the other way round.
            unsafe {
                let left = if transpose_a {
                    let from = Block { start: self.a.as_ptr().add(first * m + part.row), stride: m };
                    pack::copy(from, Block { start: copy, stride: PART_ROWS }, block.len(), part.rows);
                    Left { start: copy, row: 1, k: PART_ROWS }
                } else {
                    let from = Block { start: self.a.as_ptr().add(part.row * k + first), stride: k };
                    pack::copy(from, Block { start: copy, stride: COPY_STRIDE }, part.rows, block.len());
                    Left { start: copy, row: COPY_STRIDE, k: 1 }
                };
                self.block_of_k(part, left, block);
            }
        }
    }

    /// Computes all columns of the part over one block of k.
    unsafe fn block_of_k(&self, part: OutputBlock, a: Left, k: Range<usize>) {
        let end = part.column + part.columns;
        match self.b {
            Source::Packed(right) => {
                // Parts begin at multiples of 64 and panels at multiples of 32, but the last panel
                // may be wider than the rest of a part. It belongs to the part it begins in.
                let is_mine = |strip: &Strip| (part.column..end).contains(&strip.column);
                for strip in right.strips(k.start).filter(is_mine) {
                    // SAFETY: panels are padded to whole vectors.
                    unsafe { self.strip(part, a, k.clone(), &strip) };
                }
            }
            // SAFETY: as for this function.
            Source::InPlace(b) if self.product.copies_right() || matches!(self.only, Only::Terms(_)) => unsafe {
                self.copied_strips(part, a, k, b, None);
            },
            // SAFETY: as above.
            Source::Pieces(b, pieces) => unsafe { self.copied_strips(part, a, k, b, Some(pieces)) },
            Source::InPlace(b) => {
                let n = self.product.n;
                let whole = part.columns / 16 * 16;
                // SAFETY: the first strip has whole vectors only; the rest is copied and padded.
                unsafe {
                    let start = b.as_ptr().add(k.start * n + part.column);
                    if whole > 0 {
                        self.strip(
                            part,
                            a,
                            k.clone(),
                            &Strip { start, stride: n, column: part.column, columns: whole },
                        );
                    }
                    if whole < part.columns {
                        let mut buffer = TailCopy(MaybeUninit::uninit());
                        let tail: *mut f32 = buffer.0.as_mut_ptr().cast();
                        let columns = part.columns - whole;
                        let from = Block { start: start.add(whole), stride: n };
                        pack::copy(from, Block { start: tail, stride: 16 }, k.len(), columns);
                        self.strip(
                            part,
                            a,
                            k,
                            &Strip { start: tail, stride: 16, column: part.column + whole, columns },
                        );
                    }
                }
            }
        }
    }

    /// Computes all columns of the part over one block of k, from copies of strips of B that stay
    /// in the first-level cache. Separate because of its stack frame.
    #[inline(never)]
    unsafe fn copied_strips(&self, part: OutputBlock, a: Left, k: Range<usize>, b: &[f32], pieces: Option<Pieces>) {
        let n = self.product.n;
        let mut segments = [Segment { start: 0, len: 0 }; BLOCK_K];
        let segments = self.segments(a, k.clone(), &mut segments);
        let len = segments.iter().map(|segment| segment.len).sum();
        let columns = PackedShape { k: len, n: part.columns };
        let mut buffer = StripCopy(MaybeUninit::uninit());
        let to: *mut f32 = buffer.0.as_mut_ptr().cast();
        for index in 0..columns.n_panels() {
            let panel = columns.panel(index);
            let column = part.column + panel.column;
            // Copies rows of B from `first` on, after the `at` rows that were copied before.
            let copy = |first: usize, at: usize, rows: usize| {
                let from = Block { start: b[first * n + column..].as_ptr(), stride: n };
                // SAFETY: B has the rows, the panel lies within its columns, and the copy has room
                // for the widest panel.
                unsafe {
                    let to = Block { start: to.add(at * panel.stride), stride: panel.stride };
                    pack::copy(from, to, rows, panel.columns);
                }
            };
            match pieces {
                None => {
                    let mut at = 0;
                    for segment in segments {
                        copy(k.start + segment.start / a.k, at, segment.len);
                        at += segment.len;
                    }
                }
                Some(pieces) => {
                    let mut at = k.start;
                    while at < k.end {
                        let piece = pieces.piece(at);
                        let end = k.end.min(pieces.ends[piece] as usize);
                        copy(piece * pieces.step + at - pieces.start(piece), at - k.start, end - at);
                        at = end;
                    }
                }
            }
            // SAFETY: the copy has the rows and columns of the panel.
            unsafe {
                self.segments_of_strip(
                    part,
                    a,
                    k.clone(),
                    segments,
                    &Strip { start: to, stride: panel.stride, column, columns: panel.columns },
                );
            }
        }
    }

    /// The terms of a block of k that are computed, as segments of A.
    fn segments<'s>(&self, a: Left, k: Range<usize>, segments: &'s mut [Segment; BLOCK_K]) -> &'s [Segment] {
        let mut n = 0;
        let mut add = |terms: Range<usize>| {
            if !terms.is_empty() {
                segments[n] = Segment { start: (terms.start - k.start) * a.k, len: terms.len() };
                n += 1;
            }
        };
        match self.only {
            Only::Terms(pieces) => pieces.within(k.clone()).for_each(|[taken, _]| add(taken)),
            Only::Everything | Only::Rows(_) => add(k.clone()),
        }
        &segments[..n]
    }

    /// Computes all rows of the part in the columns of `strip`, whose rows must be readable to the
    /// end of their last vector.
    unsafe fn strip(&self, part: OutputBlock, a: Left, k: Range<usize>, strip: &Strip) {
        let segments = [Segment { start: 0, len: k.len() }];
        // SAFETY: as for this function.
        unsafe { self.segments_of_strip(part, a, k, &segments, strip) };
    }

    /// As [`Self::strip`], over some terms of the block. `strip` holds only those.
    unsafe fn segments_of_strip(
        &self,
        part: OutputBlock,
        a: Left,
        k: Range<usize>,
        segments: &[Segment],
        strip: &Strip,
    ) {
        let is_last = k.end == self.product.k;
        let compute = |rows: Range<usize>| {
            // SAFETY: the strip lies within C and the bias; the caller guarantees A and B.
            unsafe {
                let tile = Tile {
                    a: a.start.wrapping_add((rows.start - part.row) * a.row),
                    a_row: a.row,
                    a_k: a.k,
                    segments,
                    b: strip.start,
                    b_row: strip.stride,
                    c: self.c.add(rows.start * self.product.n + strip.column),
                    c_row: self.product.n,
                    columns: strip.columns,
                    accumulate: k.start > 0,
                    finish: if is_last { self.epilogue.finish(strip.column) } else { Finish::NONE },
                };
                Kernels::active().run(&tile, rows.len());
            }
        };
        let rows = part.row..part.row + part.rows;
        match self.only {
            Only::Rows(pieces) => {
                let taken = pieces.within(rows).map(|[taken, _]| taken);
                taken.filter(|taken| !taken.is_empty()).for_each(compute);
            }
            Only::Everything | Only::Terms(_) => compute(rows),
        }
    }
}
