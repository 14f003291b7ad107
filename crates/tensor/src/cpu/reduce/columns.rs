//! Column sums that are updated while the data is computed: the pooled filter gradient adds up its
//! images while they are in the cache.

use super::STRIP;
use super::kernel::{CHAIN, Kernels, LANES};
use super::layout::Layout;
use crate::cpu::isa::Isa;
use crate::{DType, Reduction};

/// The sums over all axes except the last of `x[images, .., width]`. The images arrive in groups of
/// consecutive ones.
///
/// The bits are those of [`reduce`](super::reduce) over the whole array.
pub(in crate::cpu) struct ColumnSums {
    kernels: Kernels,
    width: usize,
    n_rows: usize,
    /// The rows of a group.
    unit_rows: usize,
}

impl ColumnSums {
    /// The sums for groups of `images` images, of `batch`, with `rows` rows each. Returns `None` if
    /// [`reduce`](super::reduce) would cut the array in other places, since its bits would differ.
    pub fn new(batch: usize, rows: usize, width: usize, images: usize) -> Option<Self> {
        // The layout drops axes of size one.
        let layout = Layout::new(&[batch, rows, width], 0b011);
        let same_spans = layout.span_rows() == images * rows || (layout.n_spans() == 1 && images >= batch);
        let whole_chains = rows.is_multiple_of(CHAIN) || batch == 1;
        let fits = same_spans && whole_chains && (2..=STRIP).contains(&width) && batch * rows > 0;
        let kernels = Kernels::new(Reduction::Sum, DType::F32, Isa::active())?;
        fits.then_some(ColumnSums { kernels, width, n_rows: batch * rows, unit_rows: images * rows })
    }

    /// The sums or means over all axes but the last of an array, in groups of [`unit_rows`] rows.
    /// `None` if there are too many columns, or too few.
    ///
    /// [`unit_rows`]: ColumnSums::unit_rows
    pub fn of(kind: Reduction, dims: &[usize]) -> Option<ColumnSums> {
        let (&width, others) = dims.split_last()?;
        let layout = Layout::new(dims, (1 << others.len()) - 1);
        if !(2..=STRIP).contains(&width) || !matches!(kind, Reduction::Sum | Reduction::Mean) {
            return None;
        }
        // A chain of each column is one addition to its sum, so that chains can be groups of their
        // own. Narrow rows have several chains.
        let unit_rows = match layout.n_spans() {
            1 if width >= LANES => CHAIN,
            _ => layout.span_rows(),
        };
        let kernels = Kernels::new(kind, DType::F32, Isa::active())?;
        Some(ColumnSums { kernels, width, n_rows: layout.n, unit_rows })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub fn unit_rows(&self) -> usize {
        self.unit_rows
    }

    /// The number of groups. Without rows there is an empty one.
    pub fn n_units(&self) -> usize {
        self.n_rows.div_ceil(self.unit_rows).max(1)
    }

    /// Starts the sums of a group.
    pub fn start(&self, sums: &mut [f64]) {
        assert_eq!(sums.len(), self.width);
        // SAFETY: there are `width` accumulators, which are f64 for sums of f32.
        unsafe { (self.kernels.start)(self.width, sums.as_mut_ptr().cast()) };
    }

    /// Adds the next rows of the group. Elements after them in `rows` may be read and are ignored.
    pub fn add(&self, rows: &[f32], n_rows: usize, sums: &mut [f64]) {
        assert!(sums.len() == self.width && n_rows * self.width <= rows.len());
        // SAFETY: as above; the rows lie one after the other in `rows`.
        unsafe {
            let x = rows.as_ptr().cast();
            (self.kernels.fold)(x, n_rows, self.width, self.width, rows.len(), sums.as_mut_ptr().cast());
        }
    }

    /// Computes the total from the sums of all groups, which are in `sums` in order.
    pub fn finish(&self, sums: &mut [f64], out: &mut [f32]) {
        assert_eq!(out.len(), self.width);
        let (first, rest) = sums.split_at_mut(self.width);
        for more in rest.chunks_exact(self.width) {
            // SAFETY: both have `width` accumulators.
            unsafe { (self.kernels.merge)(first.as_mut_ptr().cast(), more.as_ptr().cast(), self.width) };
        }
        // SAFETY: `width` accumulators and results.
        unsafe { (self.kernels.finish)(first.as_ptr().cast(), self.width, self.n_rows, out.as_mut_ptr().cast()) };
    }
}
