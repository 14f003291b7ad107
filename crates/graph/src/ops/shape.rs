//! Shapes: reshape, transpose, join, slice, pad, repeat.

use std::panic::Location;

use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::options::Mirror;
use crate::graph::Graph;
use crate::op::{
    Axes, AxisSet, BandPart, BroadcastTo, Concat, DimSize, MirrorPad, Op, Pad, Range, Reshape, Reverse, Slice,
    StridedSlice, Tile, Transpose,
};
use crate::tensor::Tensor;

/// Resolves an axis, which counts from the end if negative, to an index below `rank`.
fn resolve_axis(axis: i64, rank: usize) -> Result<usize> {
    let resolved = if axis < 0 { axis + rank as i64 } else { axis };
    if (0..rank as i64).contains(&resolved) {
        return Ok(resolved as usize);
    }
    Err(Error::shape(format!(
        "axis {axis} is out of range for a tensor with {rank} axes; expected {} to {}",
        -(rank as i64),
        rank as i64 - 1
    )))
}

impl Tensor {
    /// Resolves an axis or records the error.
    pub(crate) fn axis(&self, axis: i64, site: &'static Location<'static>) -> Option<usize> {
        if self.is_poisoned() {
            return None;
        }
        resolve_axis(axis, self.rank()).map_err(|e| self.graph().record(e.context(self.describe()), site)).ok()
    }

    pub(crate) fn axes(&self, axes: &[i64], site: &'static Location<'static>) -> Option<AxisSet> {
        axes.iter().map(|&a| self.axis(a, site)).collect()
    }

    /// The size of an axis as an i64 tensor, for sizes known only at run time.
    #[track_caller]
    pub fn size(&self, axis: i64) -> Tensor {
        let site = Location::caller();
        match self.axis(axis, site) {
            Some(axis) => self.dim_size(self.shape().dims()[axis], DType::I64, site),
            None => self.graph().poison(),
        }
    }

    pub(crate) fn dim_size(&self, dim: Dim, dtype: DType, site: &'static Location<'static>) -> Tensor {
        match dim {
            Dim::Known(n) => self.graph().number(dtype, n as f64, site),
            Dim::Sym(_) => self.graph().node(DimSize { dim, dtype }, &[], site),
        }
    }

    /// Reshapes the tensor. One size may be -1; it is computed from the others.
    #[track_caller]
    pub fn reshape(&self, dims: impl AsRef<[i64]>) -> Tensor {
        let site = Location::caller();
        let mut shape = Shape::scalar();
        for &d in dims.as_ref() {
            match usize::try_from(d) {
                Ok(n) => shape.0.push(Dim::Known(n)),
                Err(_) if d == -1 => shape.0.push(Graph::ANY),
                Err(_) => return self.record(Error::shape(format!("a size is {d}; expected -1 or more")), site),
            }
        }
        self.reshape_to(shape, site)
    }

    /// Reshapes the tensor to a shape that may contain symbols of other tensors.
    #[track_caller]
    pub fn reshape_as(&self, shape: impl Into<Shape>) -> Tensor {
        self.reshape_to(shape.into(), Location::caller())
    }

    pub(crate) fn reshape_to(&self, shape: Shape, site: &'static Location<'static>) -> Tensor {
        if shape == *self.shape() {
            return self.clone();
        }
        // -1 is resolved here, so that the node holds the shape of its result.
        if self.is_poisoned() {
            return self.clone();
        }
        let result = self.then(Reshape { shape: shape.clone() }, &[], site);
        if result.is_poisoned() || result.shape() == &shape {
            return result;
        }
        let resolved = result.shape().clone();
        self.graph().amend(&result, Op::Reshape(Reshape { shape: resolved }));
        result
    }

    /// Flattens all axes but the first: `[batch, ...]` becomes `[batch, n]`.
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        let site = Location::caller();
        match self.shape().dims() {
            [] => self.reshape_to(Shape::from([Dim::Known(1), Dim::Known(1)]), site),
            [rows] => self.reshape_to(Shape::from([*rows, Dim::Known(1)]), site),
            [rows, rest @ ..] => {
                let rest = rest.to_vec();
                match self.graph().symbols_mut(|s| s.product(&rest)) {
                    Ok(width) => self.reshape_to(Shape::from([*rows, width]), site),
                    Err(e) => self.record(e, site),
                }
            }
        }
    }

    /// Inserts an axis of size 1.
    #[track_caller]
    pub fn expand_dims(&self, axis: i64) -> Tensor {
        self.expand_dims_at(axis, Location::caller())
    }

    pub(crate) fn expand_dims_at(&self, axis: i64, site: &'static Location<'static>) -> Tensor {
        match resolve_axis(axis, self.rank() + 1) {
            Ok(axis) => {
                let mut shape = self.shape().clone();
                shape.0.insert(axis, Dim::Known(1));
                self.reshape_to(shape, site)
            }
            Err(e) => self.record(e.context(self.describe()), site),
        }
    }

    /// Removes these axes of size 1; all axes of size 1 if the list is empty.
    #[track_caller]
    pub fn squeeze(&self, axes: &[i64]) -> Tensor {
        let site = Location::caller();
        let Some(set) = self.axes(axes, site) else { return self.graph().poison() };
        let mut shape = Shape::scalar();
        for (axis, &d) in self.shape().dims().iter().enumerate() {
            match (set.contains(axis), d) {
                (true, Dim::Known(1)) => {}
                (true, _) => {
                    let e = Error::shape(format!(
                        "cannot squeeze axis {axis} of {}: its size is {d}, not 1",
                        self.describe()
                    ));
                    return self.record(e, site);
                }
                (false, Dim::Known(1)) if axes.is_empty() => {}
                (false, _) => shape.0.push(d),
            }
        }
        self.reshape_to(shape, site)
    }

    /// Permutes axes; an empty list reverses them.
    #[track_caller]
    pub fn transpose(&self, perm: &[usize]) -> Tensor {
        let perm: Axes = match perm {
            [] => (0..self.rank() as u8).rev().collect(),
            _ => perm.iter().map(|&a| a.min(255) as u8).collect(),
        };
        self.then(Transpose { perm }, &[], Location::caller())
    }

    /// Broadcasts axes of size 1 (or missing ones) to a shape.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        self.broadcast_shape(shape.into(), Location::caller())
    }

    pub(crate) fn broadcast_shape(&self, shape: Shape, site: &'static Location<'static>) -> Tensor {
        if *self.shape() == shape { self.clone() } else { self.then(BroadcastTo { shape }, &[], site) }
    }

    /// Concatenates tensors along an axis.
    #[track_caller]
    pub fn concat(tensors: &[&Tensor], axis: i64) -> Tensor {
        let site = Location::caller();
        let Some(first) = tensors.first() else {
            // There is no graph to keep the error: a new empty graph reports it when it is used.
            return Graph::new().fail(Error::config("concat was given no tensors; expected at least one"), site);
        };
        match (first.axis(axis, site), tensors) {
            (None, _) => first.graph().poison(),
            (Some(_), [single]) => (*single).clone(),
            (Some(axis), _) => first.graph().node(Concat { axis }, tensors, site),
        }
    }

    /// Stacks tensors of one shape along a new axis.
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], axis: i64) -> Tensor {
        let site = Location::caller();
        let wide: Vec<Tensor> = tensors.iter().map(|t| t.expand_dims(axis)).collect();
        match wide.first().map(|t| t.axis(axis, site)) {
            None => Graph::new().fail(Error::config("stack was given no tensors; expected at least one"), site),
            Some(None) => wide[0].graph().poison(),
            Some(Some(_)) if wide.len() == 1 => wide[0].clone(),
            Some(Some(axis)) => wide[0].graph().node(Concat { axis }, &wide.iter().collect::<Vec<_>>(), site),
        }
    }

    /// Splits an axis of known size into its slices, without that axis.
    #[track_caller]
    pub fn unstack(&self, axis: i64) -> Vec<Tensor> {
        let site = Location::caller();
        let Some(axis) = self.axis(axis, site) else { return Vec::new() };
        let parts = self.split(&vec![1; self.dim(axis)], axis as i64);
        parts.iter().map(|p| p.squeeze(&[axis as i64])).collect()
    }

    /// Splits an axis into parts of these sizes.
    #[track_caller]
    pub fn split(&self, sizes: &[usize], axis: i64) -> Vec<Tensor> {
        let site = Location::caller();
        let Some(axis) = self.axis(axis, site) else { return vec![self.graph().poison(); sizes.len()] };
        if let Dim::Known(n) = self.shape().dims()[axis]
            && sizes.iter().sum::<usize>() != n
        {
            let e = Error::shape(format!(
                "cannot split axis {axis} of {} into {sizes:?}: the sum of the sizes is not {n}",
                self.describe()
            ));
            return vec![self.record(e, site); sizes.len()];
        }
        let mut first = 0;
        let part = |&size: &usize| {
            let mut begin = vec![0; self.rank()];
            let mut shape = self.shape().clone();
            begin[axis] = first;
            shape.0[axis] = Dim::Known(size);
            first += size;
            self.then(Slice { begin, size: shape }, &[], site)
        };
        sizes.iter().map(part).collect()
    }

    /// A slice from `begin`, of `size`; a size of -1 reaches to the end of the axis.
    #[track_caller]
    pub fn slice(&self, begin: &[usize], size: &[i64]) -> Tensor {
        let site = Location::caller();
        if begin.len() != self.rank() || size.len() != self.rank() {
            let e = Error::shape(format!(
                "slice was given {} begins and {} sizes for {}; expected one of each for each axis",
                begin.len(),
                size.len(),
                self.describe()
            ));
            return self.record(e, site);
        }
        let mut shape = Shape::scalar();
        for (axis, (&b, &n)) in begin.iter().zip(size).enumerate() {
            let d = self.shape().dims()[axis];
            match (usize::try_from(n), d) {
                (Ok(n), _) => shape.0.push(Dim::Known(n)),
                (Err(_), Dim::Known(d)) if n == -1 && b > d => {
                    return self.record(
                        Error::index(format!("the slice begins at {b} of axis {axis}, which has size {d}")),
                        site,
                    );
                }
                (Err(_), _) if n == -1 => {
                    let rest = self.graph().symbols_mut(|s| s.sub(d, Dim::Known(b)));
                    shape.0.push(rest);
                }
                _ => {
                    return self
                        .record(Error::shape(format!("the size of the slice is {n}; expected -1 or more")), site);
                }
            }
        }
        if shape == *self.shape() && begin.iter().all(|&b| b == 0) {
            return self.clone();
        }
        self.then(Slice { begin: begin.to_vec(), size: shape }, &[], site)
    }

    /// The slice `begin..end` by `stride` on each axis, as in NumPy: negative positions count from
    /// the end. The sizes must be known.
    #[track_caller]
    pub fn strided_slice(&self, ranges: &[(i64, i64, i64)]) -> Tensor {
        let site = Location::caller();
        if self.is_poisoned() {
            return self.clone();
        }
        let Some(dims) = self.shape().known().filter(|d| d.len() == ranges.len()) else {
            let e = Error::shape(format!(
                "strided_slice was given {} ranges for {}; expected one for each axis, all of known size",
                ranges.len(),
                self.describe()
            ));
            return self.record(e, site);
        };
        let (mut starts, mut strides, mut size) = (Vec::new(), Vec::new(), Vec::new());
        for (&(begin, end, stride), &d) in ranges.iter().zip(&dims) {
            if stride == 0 {
                return self.record(Error::config("a stride is 0; expected any other number"), site);
            }
            let d = d as i64;
            let clamp = |p: i64| {
                let p = if p < 0 { p.saturating_add(d) } else { p };
                if stride > 0 { p.clamp(0, d) } else { p.clamp(-1, d - 1) }
            };
            let (b, e) = (clamp(begin), clamp(end));
            let span = if stride > 0 { e - b } else { b - e };
            size.push((span.max(0) as usize).div_ceil(stride.unsigned_abs() as usize));
            starts.push(b.max(0) as usize);
            strides.push(stride);
        }
        self.then(StridedSlice { begin: starts, strides, size }, &[], site)
    }

    /// At most the first `n` places of an axis, which may have fewer.
    ///
    /// ```
    /// use estimand_engine::Eval;
    /// use estimand_graph::Graph;
    /// use estimand_tensor::Array;
    /// let g = Graph::new();
    /// let x = g.constant([1.0f32, 2.0, 3.0]);
    /// assert_eq!(x.truncate(0, 2).eval()?, Array::from([1.0f32, 2.0]));
    /// assert_eq!(x.truncate(0, 5).eval()?, Array::from([1.0f32, 2.0, 3.0]));
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn truncate(&self, axis: i64, n: usize) -> Tensor {
        let site = Location::caller();
        let Some(axis) = self.axis(axis, site) else { return self.graph().poison() };
        let mut size = self.shape().clone();
        // The smaller of both: a difference is not below 0.
        size.0[axis] = self.graph().symbols_mut(|s| {
            let rest = s.sub(size.0[axis], Dim::Known(n));
            s.sub(size.0[axis], rest)
        });
        if size == *self.shape() {
            return self.clone();
        }
        self.then(Slice { begin: vec![0; self.rank()], size }, &[], site)
    }

    /// Removes borders: (before, after) for each axis. The inverse of [`Tensor::pad`].
    #[track_caller]
    pub fn crop(&self, borders: &[(usize, usize)]) -> Tensor {
        let site = Location::caller();
        if self.is_poisoned() {
            return self.clone();
        }
        if borders.len() != self.rank() {
            let e = Error::shape(format!(
                "crop was given {} borders for {}; expected one for each axis",
                borders.len(),
                self.describe()
            ));
            return self.record(e, site);
        }
        let mut size = Shape::scalar();
        for (axis, (&d, &(before, after))) in self.shape().dims().iter().zip(borders).enumerate() {
            let cut = before.checked_add(after);
            let Some(cut) = cut.filter(|&cut| d.known().is_none_or(|d| cut <= d)) else {
                let text =
                    format!("cannot crop {before} and {after} from axis {axis} of {}: it is shorter", self.describe());
                return self.record(Error::shape(text), site);
            };
            size.0.push(self.graph().symbols_mut(|s| s.sub(d, Dim::Known(cut))));
        }
        self.then(Slice { begin: borders.iter().map(|b| b.0).collect(), size }, &[], site)
    }

    /// Pads with a constant: (before, after) for each axis.
    #[track_caller]
    pub fn pad(&self, paddings: &[(usize, usize)], value: f64) -> Tensor {
        let site = Location::caller();
        let before = paddings.iter().map(|p| Dim::Known(p.0)).collect();
        let after = paddings.iter().map(|p| Dim::Known(p.1)).collect();
        self.then(Pad { before, after }, &[&self.number(value, site)], site)
    }

    /// Pads with values mirrored from the inside.
    #[track_caller]
    pub fn mirror_pad(&self, paddings: &[(usize, usize)], mirror: Mirror) -> Tensor {
        let symmetric = mirror == Mirror::Symmetric;
        self.then(MirrorPad { paddings: paddings.to_vec(), symmetric }, &[], Location::caller())
    }

    /// Repeats the whole tensor along each axis.
    #[track_caller]
    pub fn tile(&self, multiples: &[usize]) -> Tensor {
        self.then(Tile { multiples: multiples.to_vec() }, &[], Location::caller())
    }

    /// Reverses axes.
    #[track_caller]
    pub fn reverse(&self, axes: &[i64]) -> Tensor {
        let site = Location::caller();
        match self.axes(axes, site) {
            Some(set) => self.then(Reverse { axes: set }, &[], site),
            None => self.graph().poison(),
        }
    }

    /// Sets elements of the last two axes to 0 if they are more than `lower` below the diagonal or
    /// more than `upper` above it. `None` keeps all on that side. `band_part(None, Some(0))` is a
    /// causal mask: a token may attend to itself and the tokens before it.
    ///
    /// ```
    /// use estimand_engine::Eval;
    /// use estimand_graph::Graph;
    /// use estimand_tensor::{Array, DType};
    /// let g = Graph::new();
    /// let seen = g.fill([3, 3], DType::F32, 1.0).band_part(None, Some(0));
    /// assert_eq!(seen.eval()?, Array::from_vec([3, 3], vec![1.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])?);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn band_part(&self, lower: Option<usize>, upper: Option<usize>) -> Tensor {
        self.then(BandPart { lower, upper }, &[], Location::caller())
    }
}

impl Graph {
    /// 0, 1, 2, ... below `limit`.
    #[track_caller]
    pub fn range(&self, limit: impl Into<Dim>, dtype: DType) -> Tensor {
        self.node(Range { size: limit.into(), dtype }, &[], Location::caller())
    }

    /// A tensor filled with one number.
    #[track_caller]
    pub fn fill(&self, shape: impl Into<Shape>, dtype: DType, value: f64) -> Tensor {
        let site = Location::caller();
        let number = self.number(dtype, value, site);
        if number.is_poisoned() { number } else { number.broadcast_shape(shape.into(), site) }
    }
}

impl Tensor {
    /// Zeros of this tensor's shape and dtype.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        let site = Location::caller();
        self.number(0.0, site).broadcast_shape(self.shape().clone(), site)
    }

    /// Ones of this tensor's shape and dtype.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        let site = Location::caller();
        self.number(1.0, site).broadcast_shape(self.shape().clone(), site)
    }
}
