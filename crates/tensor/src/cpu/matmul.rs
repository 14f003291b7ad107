//! Matrix products `C = epilogue(A * B)`.
//!
//! The executor calls [`matmul`] for every dense layer and its gradients. C is cut into blocks that go to the pool; a
//! block walks k in steps of 256 and hands strips of B to the tile kernels of `microkernel`, whose arithmetic law
//! holds for every element: chains of fused multiply-adds over 256 ascending k, added up in order. There is one
//! exception: `n == 1` with A not transposed follows the law of `matvec`.

use std::mem::MaybeUninit;

use super::matvec::matvec;
use super::microkernel::{BLOCK_K, Kernels, Tile};
use super::pack::{self, Block};
pub use super::packed::PackedShape;
use crate::parallel::{DisjointMut, Pool};

/// Sizes and layout of `C[m, n] = A[m, k] * B[k, n]`, all row-major.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// A is stored as `[k, m]`.
    pub transpose_a: bool,
    /// B is stored as `[n, k]`.
    pub transpose_b: bool,
}

/// What happens to a result before it is stored: `relu(row + bias)`, each part if asked for.
#[derive(Clone, Copy, Default, Debug)]
pub struct Epilogue<'a> {
    /// Added to each row, one value per column.
    pub bias: Option<&'a [f32]>,
    /// Replaces negative results by zero.
    pub relu: bool,
}

/// Products of fewer multiply-adds (about 15 us) are not worth handing to another thread.
const PARALLEL_FROM: usize = 1 << 20;
/// Tasks a large product is cut into at least, so that the threads finish together.
const TASKS: usize = 8;
/// Rows of a block of C: with 256 columns of A they fit the second-level cache beside the panels of B.
const BLOCK_ROWS: usize = 96;
/// Columns of a block of C where there are too few rows to make tasks of.
const BLOCK_COLUMNS: usize = 64;
/// With fewer rows than this, B is read too few times to be worth packing.
const PACK_FROM_ROWS: usize = 24;
/// Floats of B up to which it is read where it lies, since it stays in the second-level cache.
const IN_PLACE: usize = 1 << 18;

impl Product {
    /// Both operands as they are.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Product { m, n, k, transpose_a: false, transpose_b: false }
    }

    /// Floats of scratch that [`matmul`] needs.
    pub fn scratch_len(&self) -> usize {
        if self.packs() { PackedShape { k: self.k, n: self.n }.packed_len() } else { 0 }
    }

    /// Whether B is packed first.
    fn packs(&self) -> bool {
        let Product { m, n, k, transpose_b, .. } = *self;
        let worth_it = m >= PACK_FROM_ROWS && (!n.is_multiple_of(16) || k * n > IN_PLACE);
        n > 1 && (transpose_b || worth_it)
    }

    fn is_parallel(&self) -> bool {
        self.m * self.n * self.k >= PARALLEL_FROM
    }
}

/// `C = epilogue(A * B)`. `scratch` holds at least [`Product::scratch_len`] floats.
pub fn matmul(
    pool: &Pool,
    product: &Product,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    let Product { m, n, k, transpose_a, transpose_b } = *product;
    check(product, a, b.len() == k * n, c, epilogue);
    if n == 1 {
        return one_column(pool, product, a, b, c, epilogue);
    }
    if product.packs() {
        let shape = PackedShape { k, n };
        let packed = &mut scratch[..shape.packed_len()];
        shape.pack(pool, b, transpose_b, packed);
        return matmul_packed(pool, m, transpose_a, a, shape, packed, c, epilogue);
    }
    run(pool, product, a, Right::InPlace(b), c, epilogue);
}

/// `C = epilogue(A * B)` with B packed before by [`PackedShape::pack`].
///
/// The bits are those of [`matmul`], except that for `n == 1` the law of the tile kernels holds.
#[allow(clippy::too_many_arguments)] // three operands with their shapes: a struct would only rename them
pub fn matmul_packed(
    pool: &Pool,
    m: usize,
    transpose_a: bool,
    a: &[f32],
    shape: PackedShape,
    packed: &[f32],
    c: &mut [f32],
    epilogue: Epilogue,
) {
    let product = Product { m, n: shape.n, k: shape.k, transpose_a, transpose_b: false };
    check(&product, a, packed.len() == shape.packed_len(), c, epilogue);
    run(pool, &product, a, Right::Packed(shape, packed), c, epilogue);
}

/// `C[i] = A[i] * B[i]` for `batch` products of the same sizes, which lie one after the other.
///
/// `scratch` holds at least `batch * product.scratch_len()` floats.
pub fn batched_matmul(
    pool: &Pool,
    batch: usize,
    product: &Product,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    scratch: &mut [f32],
) {
    let Product { m, n, k, .. } = *product;
    let scratch_len = product.scratch_len();
    assert_eq!((a.len(), b.len(), c.len()), (batch * m * k, batch * k * n, batch * m * n), "{batch} times {product:?}");
    let (c, scratch) = (DisjointMut::new(c), DisjointMut::new(scratch));
    let one = |i: usize| {
        // SAFETY: product i alone uses the i-th parts.
        let (c, scratch) = unsafe { (c.slice(i * m * n, m * n), scratch.slice(i * scratch_len, scratch_len)) };
        let (a, b) = (&a[i * m * k..(i + 1) * m * k], &b[i * k * n..(i + 1) * k * n]);
        matmul(pool, product, a, b, c, Epilogue::default(), scratch);
    };
    // Large products use all threads one after the other, small ones in groups that are worth a task.
    if product.is_parallel() {
        return (0..batch).for_each(one);
    }
    let group = (PARALLEL_FROM / (m * n * k).max(1)).clamp(1, batch.max(1));
    pool.run(batch.div_ceil(group), &|task| (task * group..batch.min((task + 1) * group)).for_each(one));
}

fn check(product: &Product, a: &[f32], b_fits: bool, c: &[f32], epilogue: Epilogue) {
    let Product { m, n, k, .. } = *product;
    assert!(a.len() == m * k && b_fits && c.len() == m * n, "operands of {product:?}");
    assert!(epilogue.bias.is_none_or(|bias| bias.len() == n), "bias of {product:?}");
}

/// `n == 1`: dot products with the rows of A; if A is transposed, the row vector `B` times A as it is stored.
fn one_column(pool: &Pool, product: &Product, a: &[f32], b: &[f32], c: &mut [f32], epilogue: Epilogue) {
    let Product { m, k, transpose_a, .. } = *product;
    if transpose_a {
        run(pool, &Product::new(1, m, k), b, Right::InPlace(a), c, Epilogue::default());
    } else {
        // Bound by memory: a task reads about 64k floats.
        let rows = ((1 << 16) / k.max(1)).max(1);
        let out = DisjointMut::new(c);
        pool.run(m.div_ceil(rows), &|task| {
            let first = task * rows;
            let rows = rows.min(m - first);
            // SAFETY: the tasks own disjoint rows of C; A has `rows` rows from `first`, each k long like B.
            unsafe {
                matvec(a.as_ptr().add(first * k), b.as_ptr(), out.slice(first, rows).as_mut_ptr(), rows, k);
            }
        });
    }
    let bias = epilogue.bias.map(|bias| bias[0]);
    if bias.is_some() || epilogue.relu {
        for x in c {
            *x = bias.map_or(*x, |bias| *x + bias);
            // As the tile kernels do: a NaN stays.
            *x = if epilogue.relu && 0.0 > *x { 0.0 } else { *x };
        }
    }
}

/// Where the kernels find B.
#[derive(Clone, Copy)]
enum Right<'a> {
    InPlace(&'a [f32]),
    Packed(PackedShape, &'a [f32]),
}

/// A block of C: the rows and columns one task computes.
#[derive(Clone, Copy)]
struct Part {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

/// The operands of one product, as the tasks share them.
struct Operands<'a> {
    product: Product,
    a: &'a [f32],
    b: Right<'a>,
    c: *mut f32,
    epilogue: Epilogue<'a>,
}

// SAFETY: the tasks write disjoint parts of C and only read the rest.
unsafe impl Sync for Operands<'_> {}

/// A block of A as the kernels read it: element `(i, kk)` at `start + i * row + kk * k`.
#[derive(Clone, Copy)]
struct Left {
    start: *const f32,
    row: usize,
    k: usize,
}

/// Cuts C into parts and computes them.
fn run(pool: &Pool, product: &Product, a: &[f32], b: Right, c: &mut [f32], epilogue: Epilogue) {
    let Product { m, n, .. } = *product;
    if m == 0 || n == 0 {
        return;
    }
    let operands = Operands { product: *product, a, b, c: c.as_mut_ptr(), epilogue };
    if !product.is_parallel() {
        return operands.compute(Part { row: 0, rows: m, column: 0, columns: n });
    }
    let row_parts = m.div_ceil(BLOCK_ROWS);
    let rows = m.div_ceil(row_parts);
    let column_parts = TASKS.div_ceil(row_parts).min(n.div_ceil(BLOCK_COLUMNS));
    let columns = n.div_ceil(column_parts).next_multiple_of(BLOCK_COLUMNS);
    let (row_parts, column_parts) = (m.div_ceil(rows), n.div_ceil(columns));
    pool.run(row_parts * column_parts, &|task| {
        let (row, column) = (task / column_parts * rows, task % column_parts * columns);
        operands.compute(Part { row, rows: rows.min(m - row), column, columns: columns.min(n - column) });
    });
}

/// Floats between the rows of a copied block of A: not a power of two, so that the rows do not share cache sets.
const COPY_STRIDE: usize = BLOCK_K + 16;

#[repr(align(64))]
struct LeftCopy(MaybeUninit<[f32; BLOCK_ROWS * COPY_STRIDE]>);

/// Columns of B beyond the last whole vector, padded.
#[repr(align(64))]
struct TailCopy(MaybeUninit<[f32; BLOCK_K * 16]>);

impl Operands<'_> {
    fn compute(&self, part: Part) {
        // SAFETY: `check` and `run` have seen to it that the part lies within the operands.
        unsafe { if self.copies_left(part) { self.compute_copied(part) } else { self.compute_in_place(part) } }
    }

    /// Whether the part's block of A should be copied: rows that lie a multiple of 1 KiB apart evict each
    /// other, and a transposed A takes a page per k. It pays if the copy is used for many columns.
    fn copies_left(&self, part: Part) -> bool {
        let Product { m, k, transpose_a, .. } = self.product;
        let awkward = if transpose_a { m >= 1024 } else { k >= 1024 && k.is_multiple_of(256) };
        k > 0 && awkward && part.columns >= 256 && (PACK_FROM_ROWS..=BLOCK_ROWS).contains(&part.rows)
    }

    unsafe fn compute_in_place(&self, part: Part) {
        let Product { m, k, transpose_a, .. } = self.product;
        let (row, step) = if transpose_a { (1, m) } else { (k, 1) };
        let mut first = 0;
        loop {
            let len = BLOCK_K.min(k - first);
            // SAFETY: the part lies within A, and `first` within k.
            unsafe {
                let start = self.a.as_ptr().add(part.row * row + first * step);
                self.block(part, Left { start, row, k: step }, first, len);
            }
            first += len;
            if first == k {
                break;
            }
        }
    }

    /// Apart from [`Self::compute_in_place`] because of its frame of 100 KiB, which small products should not pay for.
    #[inline(never)]
    unsafe fn compute_copied(&self, part: Part) {
        let Product { m, k, transpose_a, .. } = self.product;
        let mut buffer = LeftCopy(MaybeUninit::uninit());
        let copy: *mut f32 = buffer.0.as_mut_ptr().cast();
        let mut first = 0;
        while first < k {
            let len = BLOCK_K.min(k - first);
            // SAFETY: the part lies within A; the copy has room for `BLOCK_ROWS` padded rows of `BLOCK_K`, or the
            // other way round.
            unsafe {
                let left = if transpose_a {
                    let from = Block { start: self.a.as_ptr().add(first * m + part.row), stride: m };
                    pack::copy(from, Block { start: copy, stride: BLOCK_ROWS }, len, part.rows);
                    Left { start: copy, row: 1, k: BLOCK_ROWS }
                } else {
                    let from = Block { start: self.a.as_ptr().add(part.row * k + first), stride: k };
                    pack::copy(from, Block { start: copy, stride: COPY_STRIDE }, part.rows, len);
                    Left { start: copy, row: COPY_STRIDE, k: 1 }
                };
                self.block(part, left, first, len);
            }
            first += len;
        }
    }

    /// One block of k: `len` from `first`.
    unsafe fn block(&self, part: Part, a: Left, first: usize, len: usize) {
        let end = part.column + part.columns;
        // SAFETY: columns stay within the part; rows of B are read to the end of their last vector, which is padded
        // in a packed panel and in the tail copy, and whole otherwise.
        unsafe {
            match self.b {
                Right::Packed(shape, packed) => {
                    for index in 0..shape.n_panels() {
                        let panel = shape.panel(index);
                        // Parts begin and end at multiples of 64 or with the matrix, but the last panel may begin
                        // 32 before the end of a part: it belongs to the part it begins in.
                        if panel.column < part.column || panel.column >= end {
                            continue;
                        }
                        let b = packed.as_ptr().add(panel.start + first * panel.stride);
                        self.strip(part, a, first, len, b, panel.stride, panel.column, panel.columns);
                    }
                }
                Right::InPlace(b) => {
                    let n = self.product.n;
                    let whole = part.columns / 16 * 16;
                    let from = b.as_ptr().add(first * n + part.column);
                    if whole > 0 {
                        self.strip(part, a, first, len, from, n, part.column, whole);
                    }
                    if whole < part.columns {
                        let mut buffer = TailCopy(MaybeUninit::uninit());
                        let tail: *mut f32 = buffer.0.as_mut_ptr().cast();
                        let columns = part.columns - whole;
                        pack::copy(
                            Block { start: from.add(whole), stride: n },
                            Block { start: tail, stride: 16 },
                            len,
                            columns,
                        );
                        self.strip(part, a, first, len, tail, 16, part.column + whole, columns);
                    }
                }
            }
        }
    }

    /// All rows of the part in `columns` columns from `column`, whose rows of B begin at `b`.
    #[allow(clippy::too_many_arguments)] // two operands of the strip with their extent
    unsafe fn strip(
        &self,
        part: Part,
        a: Left,
        first: usize,
        len: usize,
        b: *const f32,
        b_row: usize,
        column: usize,
        columns: usize,
    ) {
        let last = first + len == self.product.k;
        // SAFETY: the strip lies within the part, the bias is n long.
        unsafe {
            let bias = match self.epilogue.bias {
                Some(bias) if last => bias.as_ptr().add(column),
                _ => std::ptr::null(),
            };
            let tile = Tile {
                a: a.start,
                a_row: a.row,
                a_k: a.k,
                segments: &[0],
                segment_len: len,
                b,
                b_row,
                c: self.c.add(part.row * self.product.n + column),
                c_row: self.product.n,
                columns,
                accumulate: first > 0,
                bias,
                relu: last && self.epilogue.relu,
            };
            Kernels::active().run(&tile, part.rows);
        }
    }
}
