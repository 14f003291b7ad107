//! Steps that multiply matrices.

use estimand_graph::op::{BatchMatMul, MatMul};
use estimand_tensor::Result;
use estimand_tensor::cpu::matmul::{Epilogue, Only, Pieces, Product, batched_matmul, matmul, matmul_of};
use estimand_tensor::cpu::recurrent::ends;

use super::kernel::{After, Ended};
use super::operands::{KernelCall, View, floats};

/// Bytes of scratch memory of a product.
pub(super) fn scratch_bytes(op: &MatMul, after: After, x: &[&[usize]]) -> usize {
    let n_ends = if after.ended == Ended::Computed { 0 } else { mask_of(x)[0] };
    (matrix_product(x[0], x[1], op.transpose_a, op.transpose_b).scratch_len() + n_ends) * 4
}

/// The last input of a product that leaves something out.
fn mask_of<T: Copy>(x: &[T]) -> T {
    x[x.len() - 1]
}

/// Bytes of scratch memory of many products.
pub(super) fn batch_scratch_bytes(op: &BatchMatMul, x: &[&[usize]], y: &[usize]) -> usize {
    let product = matrix_product(x[0], x[1], op.adjoint_x, op.adjoint_y);
    y[..y.len() - 2].iter().product::<usize>() * product.scratch_len() * 4
}

/// The sizes of the product of the last two axes.
fn matrix_product(a: &[usize], b: &[usize], transpose_a: bool, transpose_b: bool) -> Product {
    let last_two = |d: &[usize], transposed: bool| {
        let d = &d[d.len() - 2..];
        if transposed { (d[1], d[0]) } else { (d[0], d[1]) }
    };
    let ((m, k), (_, n)) = (last_two(a, transpose_a), last_two(b, transpose_b));
    Product { m, n, k, transpose_a, transpose_b }
}

impl KernelCall<'_, '_> {
    /// Computes a matrix product and the operations on it.
    pub(super) fn matmul(&mut self, op: &MatMul, after: After) -> Result<()> {
        let (x, y) = (&self.x, &mut self.y[0]);
        let epilogue = after.epilogue(&x[2..]);
        let product = matrix_product(x[0].dims, x[1].dims, op.transpose_a, op.transpose_b);
        let (scratch, rest) = floats(self.scratch).split_at_mut(product.scratch_len());
        let only = match after.ended {
            Ended::Computed => Only::Everything,
            Ended::Rows | Ended::Terms => {
                let (mask, step) = (mask_of(x), mask_of(x).dims[1]);
                // SAFETY: all bits are valid in both types, which are aligned alike.
                let (_, counts, _) = unsafe { rest[..mask.dims[0]].align_to_mut::<u32>() };
                ends(mask.as_slice(), step, counts);
                let pieces = Pieces { ends: counts, step };
                if after.ended == Ended::Rows { Only::Rows(pieces) } else { Only::Terms(pieces) }
            }
        };
        let (a, b, c) = (x[0].as_slice(), x[1].as_slice(), y.as_mut_slice());
        matmul_of(self.pool, &product, only, a, b, c, epilogue, scratch);
        Ok(())
    }

    pub(super) fn batch_matmul(&mut self, op: &BatchMatMul) -> Result<()> {
        let (pool, x, y) = (self.pool, &self.x, &mut self.y[0]);
        let scratch = floats(self.scratch);
        let product = matrix_product(x[0].dims, x[1].dims, op.adjoint_x, op.adjoint_y);
        let lead = &y.dims[..y.dims.len() - 2];
        let (a, b, c) = (x[0].as_slice::<f32>(), x[1].as_slice::<f32>(), y.as_mut_slice::<f32>());
        let own = |v: &View<'_>| v.dims[..v.rank() - 2] == *lead;
        if own(&x[0]) && own(&x[1]) {
            batched_matmul(pool, lead.iter().product(), &product, a, b, c, scratch);
            return Ok(());
        }
        let (sa, sb) = (product.m * product.k, product.k * product.n);
        for (i, c) in c.chunks_exact_mut((product.m * product.n).max(1)).enumerate() {
            let (ia, ib) = (matrix_of(i, lead, x[0].dims), matrix_of(i, lead, x[1].dims));
            let (a, b) = (&a[ia * sa..(ia + 1) * sa], &b[ib * sb..(ib + 1) * sb]);
            matmul(pool, &product, a, b, c, Epilogue::default(), scratch);
        }
        Ok(())
    }
}

/// The index of the matrix in a broadcast stack that is a factor of the i-th product.
fn matrix_of(i: usize, lead: &[usize], dims: &[usize]) -> usize {
    let own = &dims[..dims.len() - 2];
    let (mut rest, mut stride, mut at) = (i, 1, 0);
    for axis in (0..lead.len()).rev() {
        let index = rest % lead[axis];
        rest /= lead[axis];
        if let Some(k) = (axis + own.len()).checked_sub(lead.len()) {
            at += if own[k] == 1 { 0 } else { index * stride };
            stride *= own[k];
        }
    }
    at
}
