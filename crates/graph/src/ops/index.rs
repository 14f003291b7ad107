//! Indexing: gather, scatter, segments, one-hot, masks.

use std::panic::Location;

use estimand_tensor::{DType, Dim, Error, Shape};

use crate::host::check::Between;
use crate::host::sparse::Where;
use crate::host::{Agree, HostOp, Unique};
use crate::op::{Gather, GatherNd, OneHot, Reduction, ScatterNd, UnsortedSegment};
use crate::tensor::Tensor;

impl Tensor {
    /// Gathers the rows at these indices: an embedding lookup. Its gradient is sparse.
    #[track_caller]
    pub fn gather(&self, indices: &Tensor) -> Tensor {
        self.then(Gather { axis: 0, batch_dims: 0 }, &[indices], Location::caller())
    }

    /// Gathers slices of an axis. The first `batch_dims` axes of both tensors are matched.
    #[track_caller]
    pub fn gather_axis(&self, indices: &Tensor, axis: i64, batch_dims: usize) -> Tensor {
        let site = Location::caller();
        match self.axis(axis, site) {
            Some(axis) => self.then(Gather { axis, batch_dims }, &[indices], site),
            None => self.graph().poison(),
        }
    }

    /// Gathers the elements or slices at the coordinates in the last axis of the indices.
    #[track_caller]
    pub fn gather_nd(&self, indices: &Tensor) -> Tensor {
        self.then(GatherNd, &[indices], Location::caller())
    }

    /// Adds this tensor to zeros of a shape, at the coordinates in the last axis of the indices.
    #[track_caller]
    pub fn scatter_nd(&self, indices: &Tensor, shape: impl Into<Shape>) -> Tensor {
        indices.then(ScatterNd { shape: shape.into() }, &[self], Location::caller())
    }

    /// The sum of the rows with the same id; ids below 0 are dropped.
    #[track_caller]
    pub fn segment_sum(&self, ids: &Tensor, num_segments: impl Into<Dim>) -> Tensor {
        self.segments(Reduction::Sum, ids, num_segments.into(), Location::caller())
    }

    /// The maximum of the rows with the same id; the lowest number for an id without rows.
    #[track_caller]
    pub fn segment_max(&self, ids: &Tensor, num_segments: impl Into<Dim>) -> Tensor {
        self.segments(Reduction::Max, ids, num_segments.into(), Location::caller())
    }

    /// The minimum of the rows with the same id; the highest number for an id without rows.
    #[track_caller]
    pub fn segment_min(&self, ids: &Tensor, num_segments: impl Into<Dim>) -> Tensor {
        self.segments(Reduction::Min, ids, num_segments.into(), Location::caller())
    }

    /// The mean of the rows with the same id; 0 for an id without rows.
    #[track_caller]
    pub fn segment_mean(&self, ids: &Tensor, num_segments: impl Into<Dim>) -> Tensor {
        let site = Location::caller();
        let n = num_segments.into();
        let sum = self.segments(Reduction::Sum, ids, n, site);
        let one = self.number(1.0, site);
        let ones = one.broadcast_shape(ids.shape().clone(), site);
        let count = ones.segments(Reduction::Sum, ids, n, site);
        let count = count.binary(estimand_tensor::Binary::Maximum, &one, site);
        let mut shape = count.shape().clone();
        shape.0.resize(sum.rank(), Dim::Known(1));
        sum.binary(estimand_tensor::Binary::Div, &count.reshape_to(shape, site), site)
    }

    pub(crate) fn segments(
        &self,
        kind: Reduction,
        ids: &Tensor,
        num_segments: Dim,
        site: &'static Location<'static>,
    ) -> Tensor {
        self.then(UnsortedSegment { kind, num_segments }, &[ids], site)
    }

    /// Returns the distinct values of a list in order of first appearance, and the index (i32) of
    /// each element among them.
    #[track_caller]
    pub fn unique(&self) -> (Tensor, Tensor) {
        let op = HostOp::new(Unique { places: DType::I32 });
        let distinct = self.then(op, &[], Location::caller());
        let places = self.graph().output(&distinct, 1);
        (distinct, places)
    }

    /// The flat indices of the elements that are not 0: i64 values. Their number is known only at
    /// run time.
    ///
    /// The result may depend on feeds, but not on variables.
    #[track_caller]
    pub fn where_true(&self) -> Tensor {
        let site = Location::caller();
        let flat = self.reshape_to(Shape::from([crate::Graph::ANY]), site);
        let places = flat.then(HostOp::new(Where), &[], site);
        places.reshape_to(places.shape().dims().iter().copied().take(1).collect(), site)
    }

    /// Returns the elements or slices where a mask of the first axes holds, concatenated.
    ///
    /// ```
    /// use estimand_engine::Eval;
    /// use estimand_graph::Graph;
    /// use estimand_tensor::Array;
    /// let g = Graph::new();
    /// let x = g.constant(Array::from_vec([2, 2], vec![1.0f32, 2.0, 3.0, 4.0])?);
    /// let large = x.greater(1.5);
    /// assert_eq!(x.boolean_mask(&large).eval()?, Array::from([2.0f32, 3.0, 4.0]));
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn boolean_mask(&self, mask: &Tensor) -> Tensor {
        self.masked(mask, &mask.where_true(), Location::caller())
    }

    /// Like [`Tensor::boolean_mask`], with the positions where the mask holds
    /// ([`Tensor::where_true`]). Several tensors can share the positions, so that the results have
    /// the same size.
    #[track_caller]
    pub fn boolean_mask_at(&self, mask: &Tensor, places: &Tensor) -> Tensor {
        self.masked(mask, places, Location::caller())
    }

    fn masked(&self, mask: &Tensor, places: &Tensor, site: &'static Location<'static>) -> Tensor {
        if self.is_poisoned() || mask.is_poisoned() {
            return self.graph().poison();
        }
        let (own, holds) = (self.shape().dims(), mask.shape().dims());
        let apart = |(a, b): (&Dim, &Dim)| a.known().is_some() && b.known().is_some() && a != b;
        if holds.is_empty() || own.len() < holds.len() || own.iter().zip(holds).any(apart) {
            let error = Error::shape(format!("the mask {} does not fit {}", mask.describe(), self.describe()));
            return self.graph().fail(error.help("give the mask the sizes of the tensor's first axes"), site);
        }
        // The run checks that the mask is as large as the masked axes.
        let rest = || own[holds.len()..].iter().copied();
        let same = self.reshape_to(holds.iter().copied().chain(rest()).collect(), site);
        let flat = same.reshape_to(std::iter::once(crate::Graph::ANY).chain(rest()).collect(), site);
        flat.then(Gather { axis: 0, batch_dims: 0 }, &[places], site)
    }

    /// Checks that all numbers are from `low` to `high`. Another number fails the run; the error
    /// contains `what`, the value and its row. Use it for fed values: numbers that depend on
    /// variables are not checked before a step.
    #[track_caller]
    pub fn ensure_between(&self, low: f64, high: f64, what: &str) -> Tensor {
        self.then(HostOp::new(Between::new(low, high, what, None)), &[], Location::caller())
    }

    /// Like [`ensure_between`](Self::ensure_between). The error also says what to do.
    #[track_caller]
    pub fn ensure_between_or_help(&self, low: f64, high: f64, what: &str, help: &str) -> Tensor {
        self.then(HostOp::new(Between::new(low, high, what, Some(help))), &[], Location::caller())
    }

    /// Returns this list of i64 and checks at run time that the other list is equal. Use it for
    /// lengths or counts that several features must share.
    #[track_caller]
    pub fn agree(&self, other: &Tensor, what: &str) -> Tensor {
        self.then(HostOp::new(Agree { what: what.to_string() }), &[other], Location::caller())
    }

    /// Adds a last axis with 1 at the index and 0 elsewhere. Indices out of range give a row of
    /// zeros.
    #[track_caller]
    pub fn one_hot(&self, depth: usize, dtype: DType) -> Tensor {
        let site = Location::caller();
        let (on, off) = (self.graph().number(dtype, 1.0, site), self.graph().number(dtype, 0.0, site));
        self.then(OneHot { depth, axis: self.rank() }, &[&on, &off], site)
    }
}
