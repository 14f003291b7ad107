//! Creates arrays by rule: one value, a one-hot code, an arithmetic sequence.

use super::by_size;
use crate::cpu::index::Id;
use crate::cpu::number::Number;
use crate::cpu::size::product;
use crate::cpu::split::{for_each_part, for_each_rows, grain};
use crate::parallel::Pool;

/// Sets every element of `out` to `value`, the bytes of one element.
pub fn fill(pool: &Pool, value: &[u8], out: &mut [u8]) {
    by_size!(value.len(), N => {
        let value = element::<N>(value);
        for_each_part(pool, out.as_chunks_mut::<N>().0, grain(N), &|_, part| part.fill(value));
    });
}

/// Sets `out[p, d, s]` to `on` if `d` equals `ids[p, s]`, otherwise to `off`. An id outside
/// 0..depth sets nothing.
///
/// `dims` is [prefix, depth, suffix]; with a suffix of 1 the new axis is the last.
pub fn one_hot<I: Id>(pool: &Pool, dims: [usize; 3], ids: &[I], on: &[u8], off: &[u8], out: &mut [u8]) {
    let [prefix, depth, suffix] = dims;
    assert_eq!(ids.len(), product(&[prefix, suffix]), "ids of a one-hot code of {dims:?}");
    assert_eq!(out.len(), product(&[prefix, depth, suffix, on.len()]), "output of a one-hot code of {dims:?}");
    if out.is_empty() {
        return;
    }
    by_size!(on.len(), N => {
        let (on, off) = (element::<N>(on), element::<N>(off));
        let width = depth * suffix;
        for_each_rows(pool, out.as_chunks_mut::<N>().0, width, &|first, part| {
            part.fill(off);
            for (row, ids) in part.chunks_mut(width).zip(ids[first * suffix..].chunks(suffix)) {
                for (s, id) in ids.iter().enumerate() {
                    if let Some(d) = id.position(depth) {
                        row[d * suffix + s] = on;
                    }
                }
            }
        });
    });
}

/// Computes `out[i] = start + i * delta`.
pub fn range<T: Number>(start: T, delta: T, out: &mut [T]) {
    for (i, value) in out.iter_mut().enumerate() {
        *value = start.plus(T::from_count(i).times(delta));
    }
}

/// One element from its bytes.
pub(super) fn element<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut element = [0; N];
    element.copy_from_slice(bytes);
    element
}
