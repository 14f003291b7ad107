//! Fills every empty row with a default.

use estimand_tensor::{Array, DType, Dim, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::elements::picked;
use super::{Sparse, expect_sparse, index_shape, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_rank, same_dtype};
use crate::op::spelling::{Spelling, typed};

/// (indices, values, dense shape, default) -> (indices, values, which rows were empty, the new
/// position of each value).
///
/// A row without values gets the default at its first position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseFillEmptyRows {
    /// The number of rows, if it is known.
    pub rows: Option<Dim>,
}

/// The largest number of rows. A dense shape with more is taken to be damaged or hostile.
const MAX_ROWS: usize = 1 << 26;

impl HostRules for SparseFillEmptyRows {
    fn name(&self) -> &'static str {
        "SparseFillEmptyRows"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let rank = expect_sparse(x[0], x[1], x[2])?;
        if rank == 0 {
            return Err(Error::shape("the sparse tensor has no axes, so it has no rows"));
        }
        same_dtype(x[1], x[3])?;
        expect_rank(0, x[3], "default")?;
        let n = inference.axis(0, 0);
        let rows = self.rows.unwrap_or_else(|| inference.axis(2, 0));
        Ok(smallvec![
            spec(DType::I64, index_shape(n, rank)),
            spec(x[1].dtype, [n]),
            spec(DType::Bool, [rows]),
            spec(DType::I64, [x[1].shape.dims()[0]])
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let sparse = Sparse::new(x[0], x[1].len(), x[2])?;
        let n_rows = sparse.sizes[0];
        if n_rows > MAX_ROWS {
            return Err(Error::shape(format!("the sparse tensor has {n_rows} rows; at most {MAX_ROWS} can be filled")));
        }
        let row = |i: usize| -> Result<usize> {
            let row = sparse.index(i)[0];
            usize::try_from(row)
                .ok()
                .filter(|&row| row < n_rows)
                .ok_or_else(|| Error::index(format!("indices({i}, 0) is {row}, but there are {n_rows} rows")))
        };
        let mut counts = vec![0usize; n_rows];
        for i in 0..sparse.len() {
            counts[row(i)?] += 1;
        }
        // The offset of each row; an empty row takes one position.
        let mut next = Vec::with_capacity(n_rows);
        let mut total = 0;
        for &count in &counts {
            next.push(total);
            total += count.max(1);
        }
        // Within a row values keep their order; defaults stay at [row, 0, ...].
        let mut source: Vec<Option<usize>> = vec![None; total];
        let mut indices = vec![0i64; total * sparse.rank];
        for (row, (&first, _)) in next.iter().zip(&counts).enumerate().filter(|(_, (_, count))| **count == 0) {
            indices[first * sparse.rank] = row as i64;
        }
        let mut went = Vec::with_capacity(sparse.len());
        for i in 0..sparse.len() {
            let place = &mut next[row(i)?];
            source[*place] = Some(i);
            indices[*place * sparse.rank..(*place + 1) * sparse.rank].copy_from_slice(sparse.index(i));
            went.push(*place as i64);
            *place += 1;
        }
        let empty: Vec<bool> = counts.iter().map(|&count| count == 0).collect();
        Ok(vec![
            Array::from_vec([total, sparse.rank], indices)?,
            picked(x[1], &[total], source.into_iter(), x[3])?,
            Array::from(empty),
            Array::from(went),
        ])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 1)))
    }
}
