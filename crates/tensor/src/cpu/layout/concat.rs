//! Arrays joined along an axis.

use crate::cpu::split::{for_each_part, grain};
use crate::parallel::Pool;

/// Joins inputs of dims [outer, size_i, inner], for any sizes, along the middle axis.
///
/// An input's share of an output row is its length over `outer`, so neither sizes nor dtype need to be said.
pub fn concat(pool: &Pool, outer: usize, inputs: &[&[u8]], out: &mut [u8]) {
    assert_eq!(out.len(), inputs.iter().map(|input| input.len()).sum::<usize>(), "length of the output");
    if out.is_empty() {
        return;
    }
    assert!(inputs.iter().all(|input| input.len().is_multiple_of(outer)), "inputs of whole rows");
    let width = out.len() / outer;
    let part_len = if width < grain(1) { grain(1) / width * width } else { grain(1) };
    for_each_part(pool, out, part_len, &|start, part| {
        let end = start + part.len();
        let mut left = 0;
        for input in inputs {
            let len = input.len() / outer;
            for row in start / width..end.div_ceil(width) {
                // A row wider than a part is cut by the part's ends.
                let first = (row * width + left).max(start);
                let last = (row * width + left + len).min(end);
                if first < last {
                    let from = row * len + first - (row * width + left);
                    part[first - start..last - start].copy_from_slice(&input[from..from + last - first]);
                }
            }
            left += len;
        }
    });
}
