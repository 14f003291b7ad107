//! Steps that index: gather, scatter, segments, one-hot.

use estimand_graph::op::{Combiner, Gather, OneHot, Reduction, UnsortedSegment};
use estimand_tensor::cpu::combine::{self, Lookups};
use estimand_tensor::cpu::gather::{self, GatherDims};
use estimand_tensor::cpu::index::BadIndex;
use estimand_tensor::cpu::{layout, scatter, segment};
use estimand_tensor::{Error, Result};

use super::operands::{KernelCall, with_id, with_number};

/// Bytes of scratch memory of a segment reduction.
pub(super) fn segment_scratch_bytes(op: &UnsortedSegment, y: &[usize]) -> usize {
    segment::unsorted_segment_scratch_len(kernel(op.kind), y[0]) * 4
}

fn kernel(kind: Reduction) -> segment::Reduction {
    match kind {
        Reduction::Max => segment::Reduction::Max,
        Reduction::Min => segment::Reduction::Min,
        Reduction::Prod => segment::Reduction::Prod,
        Reduction::Sum | Reduction::Mean | Reduction::All | Reduction::Any => segment::Reduction::Sum,
    }
}

fn out_of_range(bad: BadIndex) -> Error {
    Error::index(bad.to_string()).help("check the ids against the size of the table or the number of classes")
}

impl KernelCall<'_, '_> {
    pub(super) fn gather(&mut self, op: &Gather) -> Result<()> {
        let (params, ids, y) = (self.x[0], self.x[1], &mut self.y[0]);
        let Gather { axis, batch_dims } = *op;
        let product = |d: &[usize]| d.iter().product::<usize>();
        let dims = GatherDims {
            batch: product(&params.dims[..batch_dims]),
            outer: product(&params.dims[batch_dims..axis]),
            limit: params.dims[axis],
            n_ids: product(&ids.dims[batch_dims..]),
            inner: product(&params.dims[axis + 1..]),
        };
        let (size, from, to) = (params.dtype.size(), params.bytes, &mut y.bytes);
        with_id!(ids.dtype, I => gather::gather::<I>(self.pool, dims, size, from, ids.as_slice(), to))
            .map_err(out_of_range)
    }

    pub(super) fn gather_nd(&mut self) -> Result<()> {
        let (params, ids, y) = (self.x[0], self.x[1], &mut self.y[0]);
        let (indexed, rest) = params.dims.split_at(ids.dims[ids.rank() - 1]);
        let (inner, size, from, to) = (rest.iter().product(), params.dtype.size(), params.bytes, &mut y.bytes);
        with_id!(ids.dtype, I => gather::gather_nd::<I>(self.pool, indexed, inner, size, from, ids.as_slice(), to))
            .map_err(out_of_range)
    }

    pub(super) fn scatter_nd(&mut self) -> Result<()> {
        let (ids, updates, y) = (self.x[0], self.x[1], &mut self.y[0]);
        let dims = y.dims;
        let (indexed, rest) = dims.split_at(ids.dims[ids.rank() - 1]);
        let inner = rest.iter().product();
        with_number!(updates.dtype, T => with_id!(ids.dtype, I => {
            let (ids, updates) = (ids.as_slice(), updates.as_slice());
            scatter::scatter_nd::<T, I>(self.pool, indexed, inner, ids, updates, y.as_mut_slice())
        }))
        .map_err(out_of_range)
    }

    pub(super) fn unsorted_segment(&mut self, op: &UnsortedSegment) -> Result<()> {
        let (data, ids, y) = (self.x[0], self.x[1], &mut self.y[0]);
        let width = data.dims[ids.rank()..].iter().product();
        // SAFETY: the scratch buffer is aligned to 64 bytes; any bits are a u32.
        let scratch =
            unsafe { std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast::<u32>(), self.scratch.len() / 4) };
        with_number!(data.dtype, T => with_id!(ids.dtype, I => {
            let (ids, data) = (ids.as_slice::<I>(), data.as_slice::<T>());
            segment::unsorted_segment(self.pool, kernel(op.kind), width, ids, data, y.as_mut_slice(), scratch)
        }))
        .map_err(out_of_range)
    }

    pub(super) fn sparse_segment(&mut self, combiner: Combiner, is_gradient: bool) -> Result<()> {
        let (pool, x, y) = (self.pool, &self.x, &mut self.y[0]);
        let width = y.dims[1..].iter().product();
        let (weights, splits) = (x.get(3).map(|w| w.as_slice::<f32>()), x[2].as_slice::<i64>());
        let (from, to) = (x[0].as_slice::<f32>(), y.as_mut_slice::<f32>());
        with_id!(x[1].dtype, I => {
            let lookups = Lookups { index: x[1].as_slice::<I>(), splits, weights };
            match is_gradient {
                false => combine::combine(pool, combiner, width, from, lookups, to),
                true => combine::combine_gradient(pool, combiner, width, from, lookups, to),
            }
        })
        .map_err(|bad| Error::index(bad.to_string()))
    }

    pub(super) fn one_hot(&mut self, op: &OneHot) -> Result<()> {
        let (pool, ids, y) = (self.pool, self.x[0], &mut self.y[0]);
        let (on, off) = (self.x[1].bytes, self.x[2].bytes);
        let (prefix, suffix) = ids.dims.split_at(op.axis);
        let dims = [prefix.iter().product(), op.depth, suffix.iter().product()];
        with_id!(ids.dtype, I => layout::one_hot::<I>(pool, dims, ids.as_slice(), on, off, y.bytes));
        Ok(())
    }
}
