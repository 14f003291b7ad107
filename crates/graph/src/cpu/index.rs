//! Steps that index: gather, scatter, segments, one-hot.

use estimand_tensor::cpu::combine::{self, Lookups};
use estimand_tensor::cpu::gather::{self, GatherDims};
use estimand_tensor::cpu::index::BadIndex;
use estimand_tensor::cpu::{layout, scatter, segment};
use estimand_tensor::{Error, Result};

use super::call::{Call, with_id, with_number};
use crate::op::{Op, Reduction};

/// Bytes of scratch memory of a segment reduction.
pub(super) fn scratch_bytes(op: &Op, y: &[usize]) -> usize {
    match op {
        Op::UnsortedSegment { kind, .. } => segment::unsorted_segment_scratch_len(kernel(*kind), y[0]) * 4,
        _ => 0,
    }
}

fn kernel(kind: Reduction) -> segment::Reduction {
    match kind {
        Reduction::Max => segment::Reduction::Max,
        Reduction::Min => segment::Reduction::Min,
        Reduction::Prod => segment::Reduction::Prod,
        _ => segment::Reduction::Sum,
    }
}

fn out_of_range(bad: BadIndex) -> Error {
    Error::index(bad.to_string()).help("check the ids against the size of the table or the number of classes")
}

impl Call<'_> {
    pub(super) fn index(&mut self) -> Result<()> {
        let (pool, x) = (self.pool, &self.x);
        let y = &mut self.y[0];
        match &self.node.op {
            Op::Gather { axis, batch_dims } => {
                let (params, ids) = (x[0], x[1]);
                let product = |d: &[usize]| d.iter().product::<usize>();
                let dims = GatherDims {
                    batch: product(&params.dims[..*batch_dims]),
                    outer: product(&params.dims[*batch_dims..*axis]),
                    limit: params.dims[*axis],
                    n_ids: product(&ids.dims[*batch_dims..]),
                    inner: product(&params.dims[axis + 1..]),
                };
                with_id!(ids.dtype, I => {
                    gather::gather::<I>(pool, dims, params.dtype.size(), params.bytes, ids.as_slice(), y.bytes)
                })
                .map_err(out_of_range)
            }
            Op::GatherNd => {
                let (params, ids) = (x[0], x[1]);
                let depth = ids.dims[ids.rank() - 1];
                let (indexed, rest) = params.dims.split_at(depth);
                let inner = rest.iter().product();
                with_id!(ids.dtype, I => {
                    gather::gather_nd::<I>(pool, indexed, inner, params.dtype.size(), params.bytes, ids.as_slice(), y.bytes)
                })
                .map_err(out_of_range)
            }
            Op::ScatterNd(_) => {
                let (ids, updates) = (x[0], x[1]);
                let depth = ids.dims[ids.rank() - 1];
                let dims = y.dims;
                let (indexed, rest) = dims.split_at(depth);
                let inner = rest.iter().product();
                with_number!(updates.dtype, T => with_id!(ids.dtype, I => {
                    scatter::scatter_nd::<T, I>(pool, indexed, inner, ids.as_slice(), updates.as_slice(), y.as_mut_slice())
                }))
                .map_err(out_of_range)
            }
            Op::UnsortedSegment { kind, .. } => {
                let (data, ids) = (x[0], x[1]);
                let width = data.dims[ids.rank()..].iter().product();
                // SAFETY: the scratch buffer is aligned to 64 bytes; any bits are a u32.
                let scratch = unsafe {
                    std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast::<u32>(), self.scratch.len() / 4)
                };
                with_number!(data.dtype, T => with_id!(ids.dtype, I => {
                    let (ids, data) = (ids.as_slice::<I>(), data.as_slice::<T>());
                    segment::unsorted_segment(pool, kernel(*kind), width, ids, data, y.as_mut_slice(), scratch)
                }))
                .map_err(out_of_range)
            }
            Op::SparseSegment(combiner) | Op::SparseSegmentGrad(combiner, _) => {
                let width = y.dims[1..].iter().product();
                let (weights, splits) = (x.get(3).map(|w| w.as_slice::<f32>()), x[2].as_slice::<i64>());
                let (from, to) = (x[0].as_slice::<f32>(), y.as_mut_slice::<f32>());
                with_id!(x[1].dtype, I => {
                    let lookups = Lookups { index: x[1].as_slice::<I>(), splits, weights };
                    match self.node.op {
                        Op::SparseSegment(_) => combine::combine(pool, *combiner, width, from, lookups, to),
                        _ => combine::combine_gradient(pool, *combiner, width, from, lookups, to),
                    }
                })
                .map_err(|bad| Error::index(bad.to_string()))
            }
            Op::OneHot { axis, depth } => {
                let ids = x[0];
                let (prefix, suffix) = ids.dims.split_at(*axis);
                let dims = [prefix.iter().product(), *depth, suffix.iter().product()];
                with_id!(ids.dtype, I => layout::one_hot::<I>(pool, dims, ids.as_slice(), x[1].bytes, x[2].bytes, y.bytes));
                Ok(())
            }
            other => Err(Error::internal(format!("{} indexes nothing", other.name()))),
        }
    }
}
