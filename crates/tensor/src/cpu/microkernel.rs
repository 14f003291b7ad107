//! The innermost loops of every product: a tile of C, kept in registers, is computed over one block
//! of k.
//!
//! `matmul` and `conv` cut their problems into tiles; this file handles only tiles. All products
//! follow one arithmetic rule. Within a block, each element of C is one chain of fused
//! multiply-adds over ascending k, starting at zero. The results of the blocks are added to C in
//! ascending order. The rule does not mention the shape of the tile, the width of the vectors or
//! the thread, so none of them changes the bits.

use super::isa::Isa;
use super::prefetch;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};
use super::simd::{Portable, Simd};

/// The length of a block of k.
pub(crate) const BLOCK_K: usize = 256;

/// The number of rows of B between the one that is read and the one that is prefetched. A panel of
/// B and the rows of A do not both fit the first-level cache.
const B_AHEAD: usize = 8;

/// One block product `C (+)= A * B`, with the operands read in place.
///
/// A is read element by element at `a + row * a_row + segment.start + kk * a_k` for `kk` in
/// `0..segment.len`, segment after segment. B is read row by row at `b + k * b_row`, where k
/// continues over the segments. Each row of B is read to the end of its last vector: values beyond
/// `columns` are ignored, but masked loads would cost a tenth. A matrix is a single segment; a
/// convolution reads its input in place as one segment per filter row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'a> {
    pub a: *const f32,
    pub a_row: usize,
    pub a_k: usize,
    pub segments: &'a [Segment],
    pub b: *const f32,
    pub b_row: usize,
    pub c: *mut f32,
    pub c_row: usize,
    /// The number of columns of B and C.
    pub columns: usize,
    /// Whether to add to C instead of overwriting it.
    pub accumulate: bool,
    /// What is applied to C at the end.
    pub finish: Finish,
}

/// Some consecutive k of A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// The offset from the beginning of a row of A.
    pub start: usize,
    pub len: usize,
}

/// The last operations on a result. Each row of floats has as many as C has columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish {
    /// A row that is added to each row of C; null for none.
    pub bias: *const f32,
    /// Then a row that is multiplied with each row of C, and one that is added; null for none.
    pub scale: [*const f32; 2],
    /// Whether to replace negative results by zero.
    pub relu: bool,
}

impl Finish {
    pub const NONE: Finish = Finish { bias: std::ptr::null(), scale: [std::ptr::null(); 2], relu: false };
}

/// Repeats a product for several left operands, such as the rows of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub n: usize,
    /// The distance from one left operand to the next.
    pub a_step: usize,
    /// The distance from one result to the next.
    pub c_step: usize,
}

/// The part of a [`Tile`] that one kernel computes: `columns` columns from `column`, with A and C
/// from the given offsets.
///
/// It is passed separately from the tile: a copy of the tile with other pointers would be read
/// before its stores have reached the cache.
#[derive(Clone, Copy)]
struct Place {
    a: usize,
    c: usize,
    column: usize,
    columns: usize,
}

/// Computes a tile of a fixed number of rows and vectors.
type Kernel = unsafe fn(&Tile, Place);

/// The tile kernels of one instruction set.
pub(crate) struct Kernels {
    /// The number of floats in a vector.
    pub lanes: usize,
    /// `by_vectors[v - 1][r - 1]` computes r rows of v vectors.
    by_vectors: &'static [&'static [Kernel]],
}

/// Computes `R` rows of `NV` vectors; the last vector may be partial.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // registers are named by number, and the loops unroll
unsafe fn tile<S: Simd, const R: usize, const NV: usize>(t: &Tile, place: Place) {
    let Place { column, columns, .. } = place;
    debug_assert!(columns > (NV - 1) * S::LANES && columns <= NV * S::LANES);
    // SAFETY: the caller (see `Kernels::run`) guarantees the operands; masked lanes are not
    // accessed.
    unsafe {
        let mask = S::mask(columns - (NV - 1) * S::LANES);
        let load = |from: *const f32, v: usize| match v + 1 == NV {
            true => S::load_masked(from.add(v * S::LANES), mask),
            false => S::load(from.add(v * S::LANES)),
        };
        let mut sum = [[S::splat(0.0); NV]; R];
        // With k = 0 there is no A or B to point into.
        let (first, mut b) = (t.a.wrapping_add(place.a), t.b.wrapping_add(column));
        for &segment in t.segments {
            let mut a = first.add(segment.start);
            for _ in 0..segment.len {
                let mut right = [S::splat(0.0); NV];
                for v in 0..NV {
                    prefetch::line(b.wrapping_add(B_AHEAD * t.b_row + v * S::LANES));
                    right[v] = S::load(b.add(v * S::LANES));
                }
                for r in 0..R {
                    let x = S::splat(*a.add(r * t.a_row));
                    for v in 0..NV {
                        sum[r][v] = S::fma(x, right[v], sum[r][v]);
                    }
                }
                a = a.add(t.a_k);
                b = b.add(t.b_row);
            }
        }
        let c = t.c.add(place.c);
        // All of C is read before any of it is written. The store of a row's last, masked vector
        // overlaps the next row, and the load of that row would have to wait until the store has
        // left the store buffer.
        if t.accumulate {
            for r in 0..R {
                for v in 0..NV {
                    sum[r][v] = S::add(load(c.add(r * t.c_row), v), sum[r][v]);
                }
            }
        }
        let Finish { bias, scale: [scale, shift], relu } = t.finish;
        if !bias.is_null() {
            for v in 0..NV {
                let bias = load(bias.add(column), v);
                for r in 0..R {
                    sum[r][v] = S::add(sum[r][v], bias);
                }
            }
        }
        if !scale.is_null() {
            for v in 0..NV {
                let (scale, shift) = (load(scale.add(column), v), load(shift.add(column), v));
                for r in 0..R {
                    sum[r][v] = S::add(S::mul(sum[r][v], scale), shift);
                }
            }
        }
        for r in 0..R {
            let c = c.add(r * t.c_row);
            for v in 0..NV {
                let x = if relu { S::max(S::splat(0.0), sum[r][v]) } else { sum[r][v] };
                match v + 1 == NV {
                    true => S::store_masked(c.add(v * S::LANES), x, mask),
                    false => S::store(c.add(v * S::LANES), x),
                }
            }
        }
    }
}

/// Defines the kernel `tile` compiled for one instruction set, as a function of its rows and
/// vectors.
macro_rules! compiled {
    ($name:ident, $simd:ty $(, $feature:literal)?) => {
        $(#[target_feature(enable = $feature)])?
        unsafe fn $name<const R: usize, const NV: usize>(t: &Tile, place: Place) {
            // SAFETY: the caller upholds the contract.
            unsafe { tile::<$simd, R, NV>(t, place) }
        }
    };
}

macro_rules! rows {
    ($name:ident, $vectors:literal: $($r:literal)*) => { &[$($name::<$r, $vectors>),*] };
}

compiled!(portable, Portable);
#[cfg(target_arch = "x86_64")]
compiled!(avx2, Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(avx512, Avx512, "avx512f");

static PORTABLE: Kernels =
    Kernels { lanes: Portable::LANES, by_vectors: &[rows!(portable, 1: 1 2 3 4), rows!(portable, 2: 1 2 3 4)] };

#[cfg(target_arch = "x86_64")]
static AVX2: Kernels = Kernels {
    lanes: Avx2::LANES,
    by_vectors: &[
        rows!(avx2, 1: 1 2 3 4 5 6 7 8 9 10),
        rows!(avx2, 2: 1 2 3 4 5 6),
        rows!(avx2, 3: 1 2 3 4),
        rows!(avx2, 4: 1 2 3),
        rows!(avx2, 5: 1 2),
        rows!(avx2, 6: 1 2),
        rows!(avx2, 7: 1),
        rows!(avx2, 8: 1),
    ],
};

#[cfg(target_arch = "x86_64")]
static AVX512: Kernels = Kernels {
    lanes: Avx512::LANES,
    by_vectors: &[
        rows!(avx512, 1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        rows!(avx512, 2: 1 2 3 4 5 6 7 8 9 10 11 12 13),
        rows!(avx512, 3: 1 2 3 4 5 6 7 8),
        rows!(avx512, 4: 1 2 3 4 5 6),
        rows!(avx512, 5: 1 2 3 4),
        rows!(avx512, 6: 1 2 3 4),
        rows!(avx512, 7: 1 2 3),
        rows!(avx512, 8: 1 2 3),
    ],
};

impl Kernels {
    /// The kernels of the active instruction set.
    pub fn active() -> &'static Kernels {
        match Isa::active() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &AVX2,
            _ => &PORTABLE,
        }
    }

    /// The number of columns of the tiles that cover `rows` x `columns`. With few rows tiles are
    /// wide, to have enough independent chains. Otherwise they have two vectors, or three if that
    /// avoids a single last vector.
    fn tile_columns(&self, rows: usize, columns: usize) -> usize {
        let vectors = self.vectors(columns);
        let widest = match rows {
            1..=2 => 8,
            3..=4 => 4,
            _ if vectors.is_multiple_of(2) => 2,
            _ => 3,
        };
        // The portable kernels have at most two vectors.
        let widest = widest.min(self.by_vectors.len());
        if vectors <= widest {
            return vectors * self.lanes;
        }
        vectors.div_ceil(vectors.div_ceil(widest)) * self.lanes
    }

    /// The number of rows of a panel of 16 floats for each k: as many whole tiles of two vectors as
    /// fit.
    pub fn panel_height(&self) -> usize {
        let tile = self.by_vectors[1].len();
        16 / tile * tile
    }

    /// The number of vectors that hold `columns` floats.
    fn vectors(&self, columns: usize) -> usize {
        // The number of lanes is a power of two, but the compiler does not know that.
        (columns + self.lanes - 1) >> self.lanes.trailing_zeros()
    }

    /// Computes `rows` x `tile.columns` of C.
    ///
    /// # Safety
    /// A, B, C and the bias must be valid at every address that [`Tile`] describes, C for writing
    /// and unaliased.
    pub unsafe fn run(&self, tile: &Tile, rows: usize) {
        // SAFETY: the caller upholds the contract.
        unsafe { self.run_repeated(tile, rows, Repeat { n: 1, a_step: 0, c_step: 0 }) };
    }

    /// Like [`Self::run`], for each left operand in turn. A convolution has many small products,
    /// and restarting for each one would make the cost of the divisions noticeable.
    ///
    /// # Safety
    /// As for [`Self::run`], for each left operand.
    pub unsafe fn run_repeated(&self, tile: &Tile, rows: usize, repeat: Repeat) {
        let tile_columns = self.tile_columns(rows, tile.columns);
        let mut column = 0;
        while column < tile.columns {
            let columns = tile_columns.min(tile.columns - column);
            let kernels = self.by_vectors[self.vectors(columns) - 1];
            // Tiles of nearly equal height: a last tile with a single row would waste most of the
            // registers.
            let n_tiles = if rows <= kernels.len() { 1 } else { rows.div_ceil(kernels.len()) };
            let (height, taller) = if n_tiles == 1 { (rows, 0) } else { (rows / n_tiles, rows % n_tiles) };
            for i in 0..repeat.n {
                let (mut a, mut c) = (i * repeat.a_step, i * repeat.c_step + column);
                for i in 0..n_tiles {
                    let height = height + usize::from(i < taller);
                    // SAFETY: within the operands, and the processor has the instruction set, or
                    // `active` would not have chosen it.
                    unsafe { kernels[height - 1](tile, Place { a, c, column, columns }) };
                    (a, c) = (a + height * tile.a_row, c + height * tile.c_row);
                }
            }
            column += columns;
        }
    }
}
