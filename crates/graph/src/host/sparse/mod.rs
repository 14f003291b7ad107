//! TensorFlow's sparse tensors: (indices `[n, rank]`, values `[n]`, dense shape `[rank]`), as its
//! exported graphs compute with them.
//!
//! Only graphs read from TensorFlow contain them; graphs built here use ragged tensors instead.
//! These ops therefore have TensorFlow's order, defaults and checks, and no gradients.

mod concat;
mod cross;
mod elements;
mod fill_empty_rows;
mod from_ragged;
mod partition;
mod reorder;
mod reshape;
mod segment_splits;
mod slice;
mod to_dense;
mod top;
mod where_true;

pub use concat::SparseConcat;
pub use cross::{CrossOutput, SparseCross};
pub use fill_empty_rows::SparseFillEmptyRows;
pub use from_ragged::RaggedToSparse;
pub use partition::{PartitionPlaces, StitchPlaces};
pub use reorder::SparseReorder;
pub use reshape::SparseReshape;
pub use segment_splits::SegmentSplits;
pub use slice::SparseSlice;
pub use to_dense::SparseToDense;
pub use top::Top;
pub use where_true::Where;

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};

use crate::op::expect::{expect_dtype, expect_rank};

/// Checks the specs of a sparse tensor's indices, values and dense shape. Returns the number of
/// axes.
fn expect_sparse(indices: &TensorSpec, values: &TensorSpec, shape: &TensorSpec) -> Result<usize> {
    expect_dtype(DType::I64, indices, "list of indices")?;
    expect_rank(2, indices, "list of indices")?;
    expect_rank(1, values, "list of values")?;
    expect_dtype(DType::I64, shape, "dense shape")?;
    expect_rank(1, shape, "dense shape")?;
    let (a, b) = (indices.shape.dims()[1], shape.shape.dims()[0]);
    match (a.known(), b.known()) {
        (Some(a), Some(b)) if a != b => Err(Error::shape(format!(
            "each index has {a} numbers, but the dense shape has {b}; expected the same number"
        ))),
        (Some(rank), _) | (_, Some(rank)) => Ok(rank),
        _ => Err(Error::shape(format!("the indices are {}; the number of axes must be known", indices.shape))),
    }
}

/// The shape of a list of indices.
fn index_shape(n: Dim, rank: usize) -> Shape {
    Shape::from([n, Dim::Known(rank)])
}

/// A spec.
fn spec(dtype: DType, shape: impl Into<Shape>) -> TensorSpec {
    TensorSpec { dtype, shape: shape.into() }
}

/// The parts of a sparse tensor: its concatenated indices, the number of axes, and their sizes.
struct Sparse<'a> {
    indices: &'a [i64],
    rank: usize,
    sizes: Vec<usize>,
}

impl<'a> Sparse<'a> {
    /// Checks that there is one index for each value, that indices have the rank of the dense
    /// shape, and that sizes are not negative.
    fn new(indices: &'a Array, n_values: usize, shape: &Array) -> Result<Sparse<'a>> {
        let sizes = sizes(shape)?;
        let rank = sizes.len();
        if indices.dims() != [n_values, rank] {
            return Err(Error::shape(format!(
                "the indices are {:?}; expected [{n_values}, {rank}] for {n_values} values and {rank} axes",
                indices.dims()
            )));
        }
        Ok(Sparse { indices: indices.as_slice()?, rank, sizes })
    }

    fn len(&self) -> usize {
        self.indices.len().checked_div(self.rank).unwrap_or(0)
    }

    fn index(&self, i: usize) -> &'a [i64] {
        &self.indices[i * self.rank..(i + 1) * self.rank]
    }

    /// Returns an index after checking that it lies inside the dense shape.
    fn checked(&self, i: usize) -> Result<&'a [i64]> {
        let index = self.index(i);
        let inside = |(&k, &size): (&i64, &usize)| usize::try_from(k).is_ok_and(|k| k < size);
        if index.iter().zip(&self.sizes).all(inside) {
            return Ok(index);
        }
        Err(Error::index(format!("index {i}, {index:?}, is outside the dense shape {:?}", self.sizes)))
    }
}

/// The sizes in a list of i32 or i64.
fn sizes(shape: &Array) -> Result<Vec<usize>> {
    let negative = |n: i64| Error::shape(format!("a size is {n}; expected 0 or more"));
    integers(shape)?.into_iter().map(|n| usize::try_from(n).map_err(|_| negative(n))).collect()
}

/// A list of i32 or i64 as i64.
fn integers(list: &Array) -> Result<Vec<i64>> {
    Ok(match list.dtype() {
        DType::I32 => list.as_slice::<i32>()?.iter().map(|&v| v.into()).collect(),
        _ => list.as_slice::<i64>()?.to_vec(),
    })
}

/// A list of sizes as an array.
fn size_list(sizes: &[usize]) -> Array {
    Array::from(sizes.iter().map(|&n| n as i64).collect::<Vec<i64>>())
}
