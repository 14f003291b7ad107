//! Sets the elements outside of a band around the diagonal of matrices to zero.

use crate::cpu::size::product;
use crate::cpu::split::{for_each_part, grain};
use crate::parallel::Pool;

/// Keeps element (i, j) of each matrix of `[rows, columns]` if `i - j <= lower` and
/// `j - i <= upper`; the others become zero bytes.
pub fn band_part(
    pool: &Pool,
    [rows, columns]: [usize; 2],
    lower: usize,
    upper: usize,
    elem_size: usize,
    x: &[u8],
    out: &mut [u8],
) {
    assert_eq!(x.len(), out.len(), "as many elements as before");
    let width = product(&[columns, elem_size]);
    if out.is_empty() {
        return;
    }
    assert!(width > 0 && out.len().is_multiple_of(product(&[rows, width])), "whole matrices");
    // Whole rows, as many as make a task.
    let part_len = (grain(1) / width).max(1) * width;
    for_each_part(pool, out, part_len, &|start, part| {
        for (k, row) in part.chunks_exact_mut(width).enumerate() {
            let first = start + k * width;
            let i = first / width % rows;
            let from = i.saturating_sub(lower).min(columns) * elem_size;
            let to = i.saturating_add(upper).saturating_add(1).min(columns) * elem_size;
            row[..from].fill(0);
            row[from..to].copy_from_slice(&x[first + from..first + to]);
            row[to..].fill(0);
        }
    });
}
