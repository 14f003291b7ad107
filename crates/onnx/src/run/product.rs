//! Products of matrices. Those of f32 take the kernels of the models, so that files are checked in
//! the time that the models need.

use estimand_tensor::cpu::matmul::{Epilogue, Product, matmul};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, DType, Element, Error, Result};

use super::call::Call;
use super::values::{Numbers, broadcast, expand};

/// A type of elements of matrices.
pub(super) trait Entry: Element + Default {
    /// The product of two matrices. Both slices fit the sizes.
    fn product(sizes: &Product, a: &[Self], b: &[Self]) -> Vec<Self>;
}

impl Entry for f32 {
    fn product(sizes: &Product, a: &[f32], b: &[f32]) -> Vec<f32> {
        let mut c = vec![0.0; sizes.m * sizes.n];
        if !c.is_empty() {
            let mut scratch = vec![0.0; sizes.scratch_len()];
            matmul(Pool::global(), sizes, a, b, &mut c, Epilogue::default(), &mut scratch);
        }
        c
    }
}

/// One row of the result after the other, so that rows of B are read in order.
fn by_rows<T: Copy>(sizes: &Product, a: &[T], b: &[T], zero: T, add: impl Fn(T, T, T) -> T) -> Vec<T> {
    let Product { m, n, k, transpose_a, transpose_b } = *sizes;
    let mut c = vec![zero; m * n];
    for (i, row) in c.chunks_exact_mut(n.max(1)).enumerate() {
        for l in 0..k {
            let factor = if transpose_a { a[l * m + i] } else { a[i * k + l] };
            match transpose_b {
                true => row.iter_mut().enumerate().for_each(|(j, sum)| *sum = add(*sum, factor, b[j * k + l])),
                false => row.iter_mut().zip(&b[l * n..]).for_each(|(sum, &b)| *sum = add(*sum, factor, b)),
            }
        }
    }
    c
}

impl Entry for f64 {
    fn product(sizes: &Product, a: &[f64], b: &[f64]) -> Vec<f64> {
        by_rows(sizes, a, b, 0.0, |sum, a, b| sum + a * b)
    }
}

impl Entry for i64 {
    fn product(sizes: &Product, a: &[i64], b: &[i64]) -> Vec<i64> {
        by_rows(sizes, a, b, 0, |sum, a, b| sum.wrapping_add(a.wrapping_mul(b)))
    }
}

/// The last two sizes: rows and columns.
fn sides(x: &Array) -> Result<(&[usize], usize, usize)> {
    match x.dims() {
        [batch @ .., rows, columns] => Ok((batch, *rows, *columns)),
        dims => Err(Error::shape(format!("a product of {dims:?}, which is no matrix"))),
    }
}

/// Products of the matrices in the last two axes; the other axes are broadcast.
pub(super) fn mat_mul(call: &Call<'_>) -> Result<Array> {
    let (a, b) = (call.x(0)?, call.x(1)?);
    let ((batch_a, m, k), (batch_b, rows, n)) = (sides(a)?, sides(b)?);
    if k != rows || a.dtype() != b.dtype() {
        let of = |x: &Array| format!("{}{:?}", x.dtype(), x.dims());
        return Err(Error::shape(format!("a product of {} and {}", of(a), of(b))));
    }
    let batch = broadcast(batch_a, batch_b)?;
    let (a, b) = (expand(a, &[&batch[..], &[m, k]].concat())?, expand(b, &[&batch[..], &[k, n]].concat())?);
    let dims = [&batch[..], &[m, n]].concat();
    products(batch.iter().product(), &Product::new(m, n, k), &a, &b, &dims)
}

/// The product of two matrices, either of which may be transposed.
pub(super) fn gemm(call: &Call<'_>) -> Result<Array> {
    let (a, b) = (call.x(0)?, call.x(1)?);
    let (transpose_a, transpose_b) = (call.flag("transA", false)?, call.flag("transB", false)?);
    let ((batch_a, rows_a, columns_a), (batch_b, rows_b, columns_b)) = (sides(a)?, sides(b)?);
    let (m, k) = if transpose_a { (columns_a, rows_a) } else { (rows_a, columns_a) };
    let (inner, n) = if transpose_b { (columns_b, rows_b) } else { (rows_b, columns_b) };
    if k != inner || !batch_a.is_empty() || !batch_b.is_empty() || a.dtype() != b.dtype() {
        let of = |x: &Array| format!("{}{:?}", x.dtype(), x.dims());
        return Err(Error::shape(format!("a product of {} and {}", of(a), of(b))));
    }
    products(1, &Product { m, n, k, transpose_a, transpose_b }, a, b, &[m, n])
}

fn products(count: usize, sizes: &Product, a: &Array, b: &Array, dims: &[usize]) -> Result<Array> {
    fn all<T: Entry>(count: usize, sizes: &Product, a: &[T], b: &[T]) -> Vec<T> {
        let (of_a, of_b) = (sizes.m * sizes.k, sizes.k * sizes.n);
        let one = |i: usize| T::product(sizes, &a[i * of_a..(i + 1) * of_a], &b[i * of_b..(i + 1) * of_b]);
        (0..count).flat_map(one).collect()
    }
    if a.dtype() == DType::F32 {
        return Array::from_vec(dims, all(count, sizes, a.as_slice::<f32>()?, b.as_slice::<f32>()?));
    }
    let numbers = match (Numbers::of(a)?, Numbers::of(b)?) {
        (Numbers::Floats(a), Numbers::Floats(b)) => Numbers::Floats(all(count, sizes, &a, &b)),
        (Numbers::Ints(a), Numbers::Ints(b)) => Numbers::Ints(all(count, sizes, &a, &b)),
        _ => return Err(Error::internal("two inputs of one type have numbers of two kinds")),
    };
    numbers.array(a.dtype(), dims)
}
