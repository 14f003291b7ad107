//! Random permutations: a shuffle in memory, and a keyed bijection computed index by index.

use super::philox::block;
use super::{GOLDEN, mix};

/// The Fisher-Yates shuffle of 0..out.len(), with two draws per Philox block.
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

/// The number of Feistel rounds: four make a pseudo-random permutation of large halves; the others
/// are for tiny domains.
const ROUNDS: usize = 8;

/// The number of indices computed together, so that the processor need not finish one before it
/// starts the next.
const LANES: usize = 8;

/// A random bijection of 0..n, computed index by index: a shuffle of any size without memory.
///
/// It is a Feistel network on the smallest power of two that holds n. It is applied until the
/// result is in 0..n: less than two applications on average.
///
/// ```
/// use estimand_tensor::random::{Key, Stream};
///
/// let order = Stream::new(Key::new(1, "rows"), 0).permutation(5);
/// let mut rows = [0; 5];
/// order.fill(0, &mut rows);
/// assert_eq!(rows[3], order.at(3));
/// rows.sort();
/// assert_eq!(rows, [0, 1, 2, 3, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    bits: u32,
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    pub(super) fn new(key: u64, n: u64) -> Permutation {
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(2);
        let round_key = |round: usize| mix(key.wrapping_add((round as u64 + 1).wrapping_mul(GOLDEN)));
        Permutation { n, bits, round_keys: std::array::from_fn(round_key) }
    }

    /// The image of `i`. An index outside 0..n is returned unchanged.
    pub fn at(&self, i: u64) -> u64 {
        if i >= self.n { i } else { self.walk(self.feistel([i])[0]) }
    }

    /// The images of the indices from `first`.
    pub fn fill(&self, first: u64, out: &mut [u64]) {
        let (chunks, rest) = out.as_chunks_mut::<LANES>();
        for (chunk, start) in chunks.iter_mut().zip((first..).step_by(LANES)) {
            let indices: [u64; LANES] = std::array::from_fn(|lane| start.wrapping_add(lane as u64));
            let values = self.feistel(indices);
            for lane in 0..LANES {
                chunk[lane] = if indices[lane] >= self.n { indices[lane] } else { self.walk(values[lane]) };
            }
        }
        let start = first.wrapping_add((LANES * chunks.len()) as u64);
        for (i, value) in rest.iter_mut().enumerate() {
            *value = self.at(start.wrapping_add(i as u64));
        }
    }

    fn walk(&self, mut value: u64) -> u64 {
        while value >= self.n {
            [value] = self.feistel([value]);
        }
        value
    }

    /// A bijection of `bits` bits. The halves, and with them their widths, are swapped in every
    /// round.
    #[inline(always)]
    fn feistel<const N: usize>(&self, values: [u64; N]) -> [u64; N] {
        let (mut low_bits, mut high_bits) = (self.bits / 2, self.bits - self.bits / 2);
        let mut low = values.map(|value| value & ((1 << low_bits) - 1));
        let mut high = values.map(|value| value >> low_bits);
        for round_key in self.round_keys {
            for lane in 0..N {
                high[lane] ^= mix(round_key ^ low[lane]) & ((1 << high_bits) - 1);
            }
            (low, high) = (high, low);
            (low_bits, high_bits) = (high_bits, low_bits);
        }
        std::array::from_fn(|lane| high[lane] << low_bits | low[lane])
    }
}
