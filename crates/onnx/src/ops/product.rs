//! Products of matrices.

use estimand_graph::op::{BatchMatMul, MatMul};
use estimand_tensor::Result;

use super::At;
use crate::message::AttributeProto;

/// Product of two matrices.
pub(super) fn matmul(at: &mut At<'_, '_, '_, '_>, op: &MatMul) -> Result<String> {
    let (a, b) = (at.x(0)?, at.x(1)?);
    if !op.transpose_a && !op.transpose_b {
        return Ok(at.add("MatMul", &[&a, &b]));
    }
    let flag = |name: &str, is_set: bool| AttributeProto::int(name, is_set.into());
    Ok(at.add_with("Gemm", &[&a, &b], vec![flag("transA", op.transpose_a), flag("transB", op.transpose_b)]))
}

/// Products of matrices in the last two axes.
pub(super) fn batch_matmul(at: &mut At<'_, '_, '_, '_>, op: &BatchMatMul) -> Result<String> {
    let mut sides = [at.x(0)?, at.x(1)?];
    for (i, is_transposed) in [op.adjoint_x, op.adjoint_y].into_iter().enumerate() {
        if is_transposed {
            let rank = at.rank(i);
            let mut perm: Vec<usize> = (0..rank).collect();
            perm.swap(rank - 2, rank - 1);
            sides[i] = at.transpose(&sides[i], &perm);
        }
    }
    Ok(at.add("MatMul", &[&sides[0], &sides[1]]))
}
