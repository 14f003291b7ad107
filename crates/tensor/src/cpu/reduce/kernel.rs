//! The loops over a dense piece of an array.

use crate::DType;
use crate::cpu::isa::Isa;
use crate::cpu::twins::twins;

use super::STRIP;
use super::fold::{All, Any, Fold, Max, Mean, Min, Prod, Sum};
use crate::Reduction;

/// The number of virtual lanes of a row: element i belongs to lane `i % 16`, whatever the vector
/// width of the processor.
pub(super) const LANES: usize = 16;
/// The number of elements of a chain.
pub(super) const CHAIN: usize = 64;

/// The compiled loops of one reduction. Accumulators are contiguous `Fold::Wide` values.
pub(super) struct Kernels {
    /// `(x, n_rows, n, count, out)`: reduces consecutive rows of `n` elements to their results.
    pub rows: unsafe fn(*const u8, usize, usize, usize, *mut u8),
    /// `(width, wide)`: initialises accumulators.
    pub start: unsafe fn(usize, *mut u8),
    /// `(x, n, stride, width, readable, wide)`: folds `n` rows of `width` columns, `stride` apart,
    /// into accumulators. `readable` elements may be read from `x`.
    pub fold: unsafe fn(*const u8, usize, usize, usize, usize, *mut u8),
    /// `(wide, more, width)`: folds accumulators into accumulators.
    pub merge: unsafe fn(*mut u8, *const u8, usize),
    /// `(wide, width, count, out)`: turns accumulators into results.
    pub finish: unsafe fn(*const u8, usize, usize, *mut u8),
}

impl Kernels {
    /// The loops of a reduction, or `None` if it is not defined on the dtype.
    pub fn new(kind: Reduction, dtype: DType, isa: Isa) -> Option<Kernels> {
        macro_rules! number {
            ($fold:ident) => {
                match dtype {
                    DType::F32 => Kernels::of::<$fold<f32>>(isa),
                    DType::F64 => Kernels::of::<$fold<f64>>(isa),
                    DType::I32 => Kernels::of::<$fold<i32>>(isa),
                    DType::I64 => Kernels::of::<$fold<i64>>(isa),
                    DType::U8 => Kernels::of::<$fold<u8>>(isa),
                    DType::Bool | DType::Str => return None,
                }
            };
        }
        Some(match kind {
            Reduction::Sum => number!(Sum),
            Reduction::Mean => number!(Mean),
            Reduction::Max => number!(Max),
            Reduction::Min => number!(Min),
            Reduction::Prod => number!(Prod),
            Reduction::All if dtype == DType::Bool => Kernels::of::<All>(isa),
            Reduction::Any if dtype == DType::Bool => Kernels::of::<Any>(isa),
            Reduction::All | Reduction::Any => return None,
        })
    }

    fn of<F: Fold>(isa: Isa) -> Kernels {
        Kernels {
            rows: rows_kernel::<F>(isa),
            start: start::<F>,
            fold: fold_kernel::<F>(isa),
            merge: merge::<F>,
            finish: finish::<F>,
        }
    }
}

twins! { fn rows_kernel[F: Fold](x: *const u8, n_rows: usize, n: usize, count: usize, out: *mut u8) = rows::<F> }
twins! {
    fn fold_kernel[F: Fold](x: *const u8, n: usize, stride: usize, width: usize, readable: usize, wide: *mut u8)
        = fold_columns::<F>
}

/// See [`Kernels::rows`].
#[inline(always)]
unsafe fn rows<F: Fold>(x: *const u8, n_rows: usize, n: usize, count: usize, out: *mut u8) {
    let (x, out) = (x.cast::<F::Element>(), out.cast::<F::Element>());
    for row in 0..n_rows {
        // SAFETY: `x` has `n_rows` rows of `n` elements, `out` one element for each.
        unsafe {
            let row_elements = std::slice::from_raw_parts(x.add(row * n), n);
            out.add(row).write(F::finish(fold_row::<F>(row_elements), count));
        }
    }
}

/// Folds one row: in order if it is short, otherwise in 16 lanes that are merged as a tree.
#[inline(always)]
pub(in crate::cpu) fn fold_row<F: Fold>(x: &[F::Element]) -> F::Wide {
    if x.len() <= LANES {
        let mut chain = F::EMPTY;
        for x in x {
            chain = F::step(chain, *x);
        }
        return F::merge(F::START, chain);
    }
    let mut wide = [F::START; LANES];
    for block in x.chunks(CHAIN * LANES) {
        let mut lanes = [F::EMPTY; LANES];
        let mut groups = block.chunks_exact(LANES);
        for group in &mut groups {
            for l in 0..LANES {
                lanes[l] = F::step(lanes[l], group[l]);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(groups.remainder()) {
            *lane = F::step(*lane, *x);
        }
        // As an array in memory, the lanes become one vector. If the compiler saw the wider sums
        // that follow, it would split them into pairs.
        let lanes = std::hint::black_box(lanes);
        for l in 0..LANES {
            wide[l] = F::merge(wide[l], lanes[l]);
        }
    }
    let mut wide = std::hint::black_box(wide);
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            wide[l] = F::join(wide[l], wide[l + half]);
        }
        half /= 2;
    }
    wide[0]
}

/// See [`Kernels::fold`].
#[inline(always)]
unsafe fn fold_columns<F: Fold>(x: *const u8, n: usize, stride: usize, width: usize, readable: usize, wide: *mut u8) {
    let (x, wide) = (x.cast::<F::Element>(), wide.cast::<F::Wide>());
    // SAFETY: by the contract of `Kernels::fold` the rows are readable and `wide` has `width`
    // accumulators, at most a strip.
    unsafe {
        if stride == 1 {
            wide.write(F::join(*wide, fold_row::<F>(std::slice::from_raw_parts(x, n))));
            return;
        }
        let wide = std::slice::from_raw_parts_mut(wide, width);
        let mut row = 0;
        while row < n {
            let rows = (n - row).min(CHAIN);
            let (from, readable) = (x.add(row * stride), readable - row * stride);
            match width.div_ceil(LANES) {
                _ if width < LANES => fold_narrow::<F>(from, rows, stride, readable, wide),
                1 => fold_middle::<F, 1>(from, rows, stride, readable, wide),
                2 => fold_middle::<F, 2>(from, rows, stride, readable, wide),
                3 => fold_middle::<F, 3>(from, rows, stride, readable, wide),
                4 => fold_middle::<F, 4>(from, rows, stride, readable, wide),
                _ => fold_wide::<F>(from, rows, stride, wide),
            }
            row += rows;
        }
    }
}

/// Folds fewer than 16 columns: a whole vector is read from each row and its surplus lanes are
/// ignored. Row i belongs to chain `i % 4` of its column, because a single chain would wait for
/// every addition.
///
/// # Safety
/// As [`fold_wide`]; `readable` elements must be readable from `x`.
#[inline(always)]
unsafe fn fold_narrow<F: Fold>(
    x: *const F::Element,
    rows: usize,
    stride: usize,
    readable: usize,
    wide: &mut [F::Wide],
) {
    const CHAINS: usize = 4;
    let mut chains = [[F::EMPTY; LANES]; CHAINS];
    // The rows from whose start 16 elements may be read, in whole rounds of the chains.
    let whole = rows_in_vectors(rows, stride, readable, 1) / CHAINS * CHAINS;
    for row in (0..whole).step_by(CHAINS) {
        for (k, chain) in chains.iter_mut().enumerate() {
            // SAFETY: 16 elements are readable from here.
            let elements = unsafe { x.add((row + k) * stride).cast::<[F::Element; LANES]>().read_unaligned() };
            for l in 0..LANES {
                chain[l] = F::step(chain[l], elements[l]);
            }
        }
    }
    let mut chains = std::hint::black_box(chains);
    for row in whole..rows {
        for (l, chain) in chains[row % CHAINS].iter_mut().take(wide.len()).enumerate() {
            // SAFETY: the row has as many columns as there are accumulators.
            *chain = F::step(*chain, unsafe { *x.add(row * stride + l) });
        }
    }
    for (l, wide) in wide.iter_mut().enumerate() {
        for chain in &chains {
            *wide = F::merge(*wide, chain[l]);
        }
    }
}

/// The number of rows that can be read in whole vectors, `vectors` per row, if `readable` elements
/// may be read from the first.
fn rows_in_vectors(rows: usize, stride: usize, readable: usize, vectors: usize) -> usize {
    readable.checked_sub(vectors * LANES).map_or(0, |beyond| (beyond / stride + 1).min(rows))
}

/// Folds up to `V` vectors of columns, with the chains of [`fold_wide`] in registers. Surplus lanes
/// are read and ignored.
///
/// # Safety
/// As [`fold_narrow`].
#[inline(always)]
unsafe fn fold_middle<F: Fold, const V: usize>(
    x: *const F::Element,
    rows: usize,
    stride: usize,
    readable: usize,
    wide: &mut [F::Wide],
) {
    let mut chains = [[F::EMPTY; LANES]; V];
    let whole = rows_in_vectors(rows, stride, readable, V);
    for row in 0..whole {
        for (v, chain) in chains.iter_mut().enumerate() {
            // SAFETY: V vectors are readable from the row's start.
            let elements = unsafe { x.add(row * stride + v * LANES).cast::<[F::Element; LANES]>().read_unaligned() };
            for l in 0..LANES {
                chain[l] = F::step(chain[l], elements[l]);
            }
        }
    }
    let mut chains = std::hint::black_box(chains);
    for row in whole..rows {
        for (i, chain) in chains.as_flattened_mut().iter_mut().take(wide.len()).enumerate() {
            // SAFETY: the row has as many columns as there are accumulators.
            *chain = F::step(*chain, unsafe { *x.add(row * stride + i) });
        }
    }
    for (wide, chain) in wide.iter_mut().zip(chains.as_flattened()) {
        *wide = F::merge(*wide, *chain);
    }
}

/// Folds with one chain for each column. It processes four rows at a time, which saves loads and
/// stores of the chains and keeps their order.
///
/// # Safety
/// `x` must have `rows` rows, at most a chain of them, `stride` apart, each with a column for every
/// accumulator, at most a strip of them.
#[inline(always)]
unsafe fn fold_wide<F: Fold>(x: *const F::Element, rows: usize, stride: usize, wide: &mut [F::Wide]) {
    let width = wide.len();
    let mut chains = [F::EMPTY; STRIP];
    let chains = &mut chains[..width];
    // SAFETY: all rows have `width` elements.
    let row = |r: usize| unsafe { std::slice::from_raw_parts(x.add(r * stride), width) };
    let fours = rows / 4 * 4;
    for r in (0..fours).step_by(4) {
        let (a, b, c, d) = (row(r), row(r + 1), row(r + 2), row(r + 3));
        for i in 0..width {
            chains[i] = F::step(F::step(F::step(F::step(chains[i], a[i]), b[i]), c[i]), d[i]);
        }
    }
    for r in fours..rows {
        for (chain, x) in chains.iter_mut().zip(row(r)) {
            *chain = F::step(*chain, *x);
        }
    }
    for (wide, chain) in wide.iter_mut().zip(chains) {
        *wide = F::merge(*wide, *chain);
    }
}

/// See [`Kernels::start`].
unsafe fn start<F: Fold>(width: usize, wide: *mut u8) {
    // SAFETY: there is room for `width` accumulators.
    unsafe { (0..width).for_each(|i| wide.cast::<F::Wide>().add(i).write(F::START)) };
}

/// See [`Kernels::merge`].
unsafe fn merge<F: Fold>(wide: *mut u8, more: *const u8, width: usize) {
    let (wide, more) = (wide.cast::<F::Wide>(), more.cast::<F::Wide>());
    for i in 0..width {
        // SAFETY: both have `width` accumulators.
        unsafe { wide.add(i).write(F::join(*wide.add(i), *more.add(i))) };
    }
}

/// See [`Kernels::finish`].
unsafe fn finish<F: Fold>(wide: *const u8, width: usize, count: usize, out: *mut u8) {
    for i in 0..width {
        // SAFETY: both have `width` elements.
        unsafe { out.cast::<F::Element>().add(i).write(F::finish(*wide.cast::<F::Wide>().add(i), count)) };
    }
}
