//! Random orders: a shuffle in memory and a keyed bijection computed index by index.

use super::philox::block;
use super::{GOLDEN, mix};

/// Fisher and Yates' shuffle of 0..out.len(), two draws per Philox block.
pub(super) fn fill(key: u64, out: &mut [u64]) {
    for (i, value) in out.iter_mut().enumerate() {
        *value = i as u64;
    }
    for last in (1..out.len()).rev() {
        let pair = (last / 2) as u64;
        let words = block(key, [pair as u32, (pair >> 32) as u32, 0, 0]);
        let half = last % 2 * 2;
        let bits = u64::from(words[half]) | u64::from(words[half + 1]) << 32;
        let chosen = ((u128::from(bits) * (last as u128 + 1)) >> 64) as usize;
        out.swap(last, chosen);
    }
}

/// Feistel rounds: four make a pseudo-random permutation of large halves, the others serve tiny domains.
const ROUNDS: u64 = 8;

/// A Feistel network on the smallest power of two that holds n, walked until it lands in 0..n: less than two
/// applications on average.
pub(super) fn permute(key: u64, i: u64, n: u64) -> u64 {
    if i >= n || n < 2 {
        return i;
    }
    let bits = (u64::BITS - (n - 1).leading_zeros()).max(2);
    let mut value = i;
    loop {
        value = feistel(key, value, bits);
        if value < n {
            return value;
        }
    }
}

/// A bijection of `bits` bits: the halves trade places every round, and their widths with them.
fn feistel(key: u64, value: u64, bits: u32) -> u64 {
    let (mut low_bits, mut high_bits) = (bits / 2, bits - bits / 2);
    let mut low = value & ((1 << low_bits) - 1);
    let mut high = value >> low_bits;
    for round in 0..ROUNDS {
        let round_key = mix(key.wrapping_add((round + 1).wrapping_mul(GOLDEN)));
        high ^= mix(round_key ^ low) & ((1 << high_bits) - 1);
        (low, high) = (high, low);
        (low_bits, high_bits) = (high_bits, low_bits);
    }
    high << low_bits | low
}
