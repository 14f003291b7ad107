//! Matrix products `C = epilogue(A * B)`.
//!
//! The executor calls [`matmul`] for every dense layer and its gradients. C is cut into blocks that
//! go to the pool. A block processes k in steps of 256 and passes strips of B to the tile kernels
//! of `microkernel`. Their arithmetic rule holds for every element: chains of fused multiply-adds
//! over 256 ascending k, added up in order. There is one exception: `n == 1` with A not transposed
//! follows the rule of `matvec`.

mod blocks;
mod pieces;

use blocks::{Source, run};
pub use pieces::{Only, Pieces};

use super::matvec::matvec;
use super::microkernel::Finish;
pub use super::packed::PackedShape;
use super::packed::Right;
use super::size::product;
use crate::parallel::{DisjointMut, Pool};

/// Sizes and layout of `C[m, n] = A[m, k] * B[k, n]`, all row-major.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    /// The number of rows of A and C.
    pub m: usize,
    /// The number of columns of B and C.
    pub n: usize,
    /// The number of columns of A and rows of B.
    pub k: usize,
    /// Whether A is stored as `[k, m]`.
    pub transpose_a: bool,
    /// Whether B is stored as `[n, k]`.
    pub transpose_b: bool,
}

/// The operations on a result before it is stored: `relu((row + bias) * factor + shift)`. Each part
/// is optional.
#[derive(Clone, Copy, Default, Debug)]
pub struct Epilogue<'a> {
    /// One value per column, added to each row.
    pub bias: Option<&'a [f32]>,
    /// A factor for each column, and a number that is added after it.
    pub scale: Option<[&'a [f32]; 2]>,
    /// Whether to replace negative results by zero.
    pub relu: bool,
}

impl Epilogue<'_> {
    /// Whether each part has a number for each of `n` columns.
    pub(crate) fn fits(&self, n: usize) -> bool {
        self.bias.is_none_or(|bias| bias.len() == n)
            && self.scale.is_none_or(|scale| scale.iter().all(|part| part.len() == n))
    }

    /// The operations on the columns from `column` on.
    pub(crate) fn finish(&self, column: usize) -> Finish {
        let row = |part: &[f32]| part[column..].as_ptr();
        Finish {
            bias: self.bias.map_or(Finish::NONE.bias, row),
            scale: self.scale.map_or(Finish::NONE.scale, |scale| scale.map(row)),
            relu: self.relu,
        }
    }
}

/// Products with fewer multiply-adds (about 15 us) run on one thread.
const PARALLEL_FROM: usize = 1 << 20;
/// With fewer rows than this, B is read too few times to be worth copying.
const COPY_FROM_ROWS: usize = 24;
/// Up to this number of floats B is read in place, since it stays in the second-level cache.
const IN_PLACE: usize = 1 << 18;

impl Product {
    /// A product of operands that are not transposed.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Product { m, n, k, transpose_a: false, transpose_b: false }
    }

    /// The number of floats of scratch memory that [`matmul`] needs.
    pub fn scratch_len(&self) -> usize {
        if self.packs() { PackedShape { k: self.k, n: self.n }.packed_len() } else { 0 }
    }

    /// Whether B is packed first.
    fn packs(&self) -> bool {
        self.n > 1 && self.transpose_b
    }

    /// Whether strips of B are copied before they are read, if B is not packed.
    fn copies_right(&self) -> bool {
        let Product { m, n, k, .. } = *self;
        m >= COPY_FROM_ROWS && (!n.is_multiple_of(16) || k.saturating_mul(n) > IN_PLACE)
    }

    /// The number of multiply-adds.
    fn work(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }

    fn is_parallel(&self) -> bool {
        self.work() >= PARALLEL_FROM
    }
}

/// Computes `C = epilogue(A * B)`. `scratch` must hold at least [`Product::scratch_len`] floats.
pub fn matmul(
    pool: &Pool,
    sizes: &Product,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    matmul_of(pool, sizes, Only::Everything, a, b, c, epilogue, scratch);
}

/// Computes a part of [`matmul`]. What is computed has the same bits, if the terms that are left
/// out are zero.
#[allow(clippy::too_many_arguments)] // three operands with their shapes: a struct would only rename them
pub fn matmul_of(
    pool: &Pool,
    sizes: &Product,
    only: Only,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    let Product { m, n, k, transpose_b, .. } = *sizes;
    check(sizes, a, b.len() == product(&[k, n]), c, epilogue);
    match only {
        Only::Everything => {}
        Only::Rows(pieces) => assert!(pieces.fits(m), "pieces of the rows of {sizes:?}"),
        Only::Terms(pieces) => assert!(pieces.fits(k), "pieces of the terms of {sizes:?}"),
    }
    if n == 1 {
        one_column(pool, sizes, a, b, c, epilogue);
        if let Only::Rows(pieces) = only {
            pieces.within(0..m).for_each(|[_, out]| c[out].fill(0.0));
        }
        return;
    }
    if sizes.packs() {
        let shape = PackedShape { k, n };
        let packed = &mut scratch[..shape.packed_len()];
        shape.pack(pool, b, transpose_b, packed);
        let sizes = Product { transpose_b: false, ..*sizes };
        // Terms that are left out add zeros: only products that read B in place gain from that.
        let only = if matches!(only, Only::Terms(_)) { Only::Everything } else { only };
        return run(pool, &sizes, only, a, Source::Packed(Right { shape, packed }), c, epilogue);
    }
    run(pool, sizes, only, a, Source::InPlace(b), c, epilogue);
}

/// Computes `C = epilogue(A * B)` with a B packed by [`PackedShape::pack`].
///
/// The bits are those of [`matmul`], except that `n == 1` follows the rule of the tile kernels.
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
    let sizes = Product { m, n: shape.n, k: shape.k, transpose_a, transpose_b: false };
    check(&sizes, a, packed.len() == shape.packed_len(), c, epilogue);
    run(pool, &sizes, Only::Everything, a, Source::Packed(Right { shape, packed }), c, epilogue);
}

/// Computes `C = A * B`, where the rows of B are those of some pieces of an array.
pub(crate) fn matmul_of_pieces(pool: &Pool, sizes: &Product, a: &[f32], b: &[f32], pieces: Pieces, c: &mut [f32]) {
    let n_rows = pieces.ends.last().map_or(0, |&end| end as usize);
    let fits =
        !sizes.transpose_b && n_rows == sizes.k && b.len() == product(&[pieces.ends.len(), pieces.step, sizes.n]);
    check(sizes, a, fits, c, Epilogue::default());
    run(pool, sizes, Only::Everything, a, Source::Pieces(b, pieces), c, Epilogue::default());
}

/// Computes `C[i] = A[i] * B[i]` for `batch` products of the same sizes, stored one after the
/// other.
///
/// `scratch` must hold at least `batch * sizes.scratch_len()` floats.
pub fn batched_matmul(
    pool: &Pool,
    batch: usize,
    sizes: &Product,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    scratch: &mut [f32],
) {
    let Product { m, n, k, .. } = *sizes;
    let scratch_len = sizes.scratch_len();
    let lens = (product(&[batch, m, k]), product(&[batch, k, n]), product(&[batch, m, n]));
    assert_eq!((a.len(), b.len(), c.len()), lens, "operands of {batch} times {sizes:?}");
    if c.is_empty() {
        return;
    }
    assert!(scratch.len() >= product(&[batch, scratch_len]), "scratch of {batch} times {sizes:?}");
    let (c, scratch) = (DisjointMut::new(c), DisjointMut::new(scratch));
    let one = |i: usize| {
        // SAFETY: only product i uses the i-th parts.
        let (c, scratch) = unsafe { (c.slice(i * m * n, m * n), scratch.slice(i * scratch_len, scratch_len)) };
        let (a, b) = (&a[i * m * k..(i + 1) * m * k], &b[i * k * n..(i + 1) * k * n]);
        matmul(pool, sizes, a, b, c, Epilogue::default(), scratch);
    };
    // Large products use all threads one after the other; small ones run in groups that are large
    // enough for a task.
    if sizes.is_parallel() {
        return (0..batch).for_each(one);
    }
    let group = (PARALLEL_FROM / sizes.work().max(1)).clamp(1, batch.max(1));
    pool.run(batch.div_ceil(group), &|task| (task * group..batch.min((task + 1) * group)).for_each(one));
}

fn check(sizes: &Product, a: &[f32], b_fits: bool, c: &[f32], epilogue: Epilogue) {
    let Product { m, n, k, .. } = *sizes;
    assert!(a.len() == product(&[m, k]) && b_fits && c.len() == product(&[m, n]), "operands of {sizes:?}");
    assert!(epilogue.fits(n), "epilogue of {sizes:?}");
}

/// The product for `n == 1`: dot products with the rows of A or, if A is transposed, the row vector
/// `B` times A as stored.
fn one_column(pool: &Pool, sizes: &Product, a: &[f32], b: &[f32], c: &mut [f32], epilogue: Epilogue) {
    let Product { m, k, transpose_a, .. } = *sizes;
    if transpose_a {
        run(pool, &Product::new(1, m, k), Only::Everything, b, Source::InPlace(a), c, Epilogue::default());
    } else {
        // Bound by memory: a task reads about 64k floats.
        let rows = ((1 << 16) / k.max(1)).max(1);
        let out = DisjointMut::new(c);
        pool.run(m.div_ceil(rows), &|task| {
            let first = task * rows;
            let rows = rows.min(m - first);
            // SAFETY: the tasks own disjoint rows of C; A has `rows` rows from `first`, each k long
            // like B.
            unsafe {
                matvec(a.as_ptr().add(first * k), b.as_ptr(), out.slice(first, rows).as_mut_ptr(), rows, k);
            }
        });
    }
    let (bias, scale) = (epilogue.bias.map(|bias| bias[0]), epilogue.scale.map(|scale| scale.map(|part| part[0])));
    if bias.is_some() || scale.is_some() || epilogue.relu {
        for x in c {
            *x = bias.map_or(*x, |bias| *x + bias);
            *x = scale.map_or(*x, |[factor, shift]| *x * factor + shift);
            // Like the tile kernels: a NaN stays NaN.
            *x = if epilogue.relu && 0.0 > *x { 0.0 } else { *x };
        }
    }
}
