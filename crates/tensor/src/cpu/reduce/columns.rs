//! Column sums that are updated while the data is computed: the pooled filter gradient adds up its
//! images while they are in the cache.

use super::STRIP;
use super::kernel::{CHAIN, Kernels};
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
        fits.then_some(ColumnSums { kernels, width })
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
        // SAFETY: `width` accumulators and results; a sum does not use the count.
        unsafe { (self.kernels.finish)(first.as_ptr().cast(), self.width, 0, out.as_mut_ptr().cast()) };
    }
}
