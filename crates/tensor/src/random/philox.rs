//! Philox4x32-10 (Salmon et al., 2011): maps 128 bits of counter and 64 bits of key to 128 random
//! bits.
//!
//! The counter of a block is [block in the row, attempt, row, row >> 32]; the values of a row use
//! its blocks in order.

use std::array::from_fn;

/// The number of blocks computed together: one AVX-512 register of 32-bit words, two of AVX2.
pub(super) const LANES: usize = 16;

/// The four words of `LANES` blocks.
pub(super) type Words = [[u32; LANES]; 4];

const ROUNDS: usize = 10;
const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Computes one block.
pub(super) fn block(key: u64, counter: [u32; 4]) -> [u32; 4] {
    blocks(key, counter.map(|word| [word; 1])).map(|word| word[0])
}

/// Computes `N` blocks, word by word.
///
/// A word is kept in the low half of 64 bits and the upper half is ignored, as the vector
/// multiplication does. So no round has to narrow or widen.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // four arrays walk in step
fn blocks<const N: usize>(key: u64, counter: [[u32; N]; 4]) -> [[u32; N]; 4] {
    const LOW: u64 = 0xffff_ffff;
    let mut words = [[0; N]; 4];
    for (wide, narrow) in words.as_flattened_mut().iter_mut().zip(counter.as_flattened()) {
        *wide = u64::from(*narrow);
    }
    let mut k = [key as u32, (key >> 32) as u32];
    for _ in 0..ROUNDS {
        for lane in 0..N {
            let a = (words[0][lane] & LOW) * MULTIPLIERS[0];
            let b = (words[2][lane] & LOW) * MULTIPLIERS[1];
            words[0][lane] = (b >> 32) ^ words[1][lane] ^ u64::from(k[0]);
            words[1][lane] = b;
            words[2][lane] = (a >> 32) ^ words[3][lane] ^ u64::from(k[1]);
            words[3][lane] = a;
        }
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    let mut out = [[0; N]; 4];
    for (narrow, wide) in out.as_flattened_mut().iter_mut().zip(words.as_flattened()) {
        *narrow = *wide as u32;
    }
    out
}

/// A distribution: turns the words of a block into `PER` values. It is a trait and not a closure,
/// since only a method can be forced inline into the function that enables the vector instructions.
pub(super) trait Draw<T, const PER: usize> {
    fn draw(&self, words: &Words) -> [[T; PER]; LANES];
}

/// Fills rows of `width` values.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // as above
pub(super) fn draw_rows<T: Copy, const PER: usize>(
    key: u64,
    first_row: u64,
    width: usize,
    out: &mut [T],
    distribution: &impl Draw<T, PER>,
) {
    if width == 0 {
        return;
    }
    let blocks_per_row = width.div_ceil(PER);
    let (mut row, mut index, mut start) = (first_row, 0, 0);
    while start < out.len() {
        let (chunk_row, chunk_index) = (row, index);
        let mut counter =
            [from_fn(|lane| (index + lane) as u32), [0; LANES], [row as u32; LANES], [(row >> 32) as u32; LANES]];
        index += LANES;
        if index > blocks_per_row {
            // The blocks pass the end of the row, possibly of several rows.
            index = chunk_index;
            for lane in 0..LANES {
                if index == blocks_per_row {
                    (row, index) = (row.wrapping_add(1), 0);
                }
                (counter[0][lane], counter[2][lane], counter[3][lane]) = (index as u32, row as u32, (row >> 32) as u32);
                index += 1;
            }
        }
        let values = distribution.draw(&blocks(key, counter));

        let whole_blocks = width.is_multiple_of(PER) || chunk_row == row && index < blocks_per_row;
        if whole_blocks && start + LANES * PER <= out.len() {
            out[start..start + LANES * PER].copy_from_slice(values.as_flattened());
            start += LANES * PER;
        } else {
            let mut at = chunk_index;
            for block in values {
                if at == blocks_per_row {
                    at = 0;
                }
                let count = PER.min(width - at * PER).min(out.len() - start);
                out[start..start + count].copy_from_slice(&block[..count]);
                start += count;
                at += 1;
            }
        }
        if index == blocks_per_row {
            (row, index) = (row.wrapping_add(1), 0);
        }
    }
}
