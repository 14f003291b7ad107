//! Philox4x32-10 (Salmon et al., 2011): 128 bits of counter and 64 of key in, 128 random bits out.
//!
//! The counter of a block is [block in the row, attempt, row, row >> 32]; a row's values take its blocks in order.

use std::array::from_fn;

/// Blocks computed side by side: one AVX-512 register of 32-bit words, two of AVX2.
pub(super) const LANES: usize = 16;

/// The four words of `LANES` blocks.
pub(super) type Words = [[u32; LANES]; 4];

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// One block.
pub(super) fn block(key: u64, counter: [u32; 4]) -> [u32; 4] {
    blocks(key, counter.map(|word| [word; 1])).map(|word| word[0])
}

/// `N` blocks, word by word.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // four arrays walk in step
fn blocks<const N: usize>(key: u64, mut counter: [[u32; N]; 4]) -> [[u32; N]; 4] {
    let mut k = [key as u32, (key >> 32) as u32];
    for _ in 0..ROUNDS {
        for lane in 0..N {
            let a = u64::from(counter[0][lane]) * u64::from(MULTIPLIERS[0]);
            let b = u64::from(counter[2][lane]) * u64::from(MULTIPLIERS[1]);
            counter[0][lane] = (b >> 32) as u32 ^ counter[1][lane] ^ k[0];
            counter[1][lane] = b as u32;
            counter[2][lane] = (a >> 32) as u32 ^ counter[3][lane] ^ k[1];
            counter[3][lane] = a as u32;
        }
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// Fills rows of `width` values, of which a block yields `PER`; `draw` turns words into values.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // as above
pub(super) fn draw_rows<T: Copy, const PER: usize>(
    key: u64,
    first_row: u64,
    width: usize,
    out: &mut [T],
    draw: impl Fn(&Words) -> [[T; PER]; LANES],
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
            // The blocks run over the end of the row, perhaps of several.
            index = chunk_index;
            for lane in 0..LANES {
                if index == blocks_per_row {
                    (row, index) = (row.wrapping_add(1), 0);
                }
                (counter[0][lane], counter[2][lane], counter[3][lane]) = (index as u32, row as u32, (row >> 32) as u32);
                index += 1;
            }
        }
        let values = draw(&blocks(key, counter));

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

/// Compiles a function for AVX-512, AVX2 and the baseline and calls the widest the CPU has.
///
/// The bits agree: integers are exact, and Rust never contracts a product and a sum into one rounding.
macro_rules! per_cpu {
    (fn $name:ident($($arg:ident: $type:ty),*) $body:block) => {
        fn $name($($arg: $type),*) {
            #[inline(always)]
            fn body($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512($($arg: $type),*) {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) {
                    body($($arg),*)
                }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the CPU has the features, as just asked.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}
pub(super) use per_cpu;
