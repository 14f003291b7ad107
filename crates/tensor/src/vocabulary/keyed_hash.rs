//! The hash function of these tables. It has random keys, so no file can be crafted whose terms all
//! collide.
//!
//! The hash only decides the position of a term in a table. Nothing outside this folder depends on
//! it.

use std::hash::{BuildHasher, RandomState};

/// A hash function with random keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyedHash([u64; 3]);

impl KeyedHash {
    pub fn random() -> KeyedHash {
        let state = RandomState::new();
        // A factor must not be 0, and even factors lose bits.
        KeyedHash([state.hash_one(0_u8), state.hash_one(1_u8), state.hash_one(2_u8) | 1])
    }

    #[inline(always)]
    pub fn of(self, s: &[u8]) -> u64 {
        let KeyedHash([k0, k1, k2]) = self;
        let n = s.len();
        let (a, b) = match n {
            8..=16 => (word(s), word(&s[n - 8..])),
            4..=7 => (u64::from(half_word(s)) << 32 | u64::from(half_word(&s[n - 4..])), 0),
            1..=3 => (u64::from(s[0]) << 16 | u64::from(s[n / 2]) << 8 | u64::from(s[n - 1]), 0),
            0 => (0, 0),
            _ => return self.of_long(s),
        };
        multiply(multiply(a ^ k0, b ^ k1) ^ n as u64, k2)
    }

    /// Hashes more than 16 bytes: 16 at a time, then the last 16, which may overlap the ones
    /// before.
    fn of_long(self, s: &[u8]) -> u64 {
        let KeyedHash([k0, k1, k2]) = self;
        let mut state = s.len() as u64;
        let (blocks, _) = s[..s.len() - 1].as_chunks::<16>();
        for block in blocks.iter().chain(s.last_chunk()) {
            state = multiply(state ^ word(block) ^ k0, word(&block[8..]) ^ k1);
        }
        multiply(state, k2)
    }

    #[inline(always)]
    pub fn of_int(self, value: i64) -> u64 {
        let KeyedHash([k0, k1, k2]) = self;
        multiply(multiply(value as u64 ^ k0, k1 | 1), k2)
    }
}

#[inline(always)]
fn word(s: &[u8]) -> u64 {
    s.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline(always)]
fn half_word(s: &[u8]) -> u32 {
    s.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Combines both halves of the product: every bit of the factors affects both ends.
#[inline(always)]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bit of the hashes of 65,536 similar strings is set in about half of them, so buckets
    /// fill evenly.
    #[test]
    fn similar_strings_differ_in_every_bit() {
        let hash = KeyedHash::random();
        let prefixes =
            ["", "i", "abc", "name_of_a_feature_", "a rather long prefix that takes several blocks to get through "];
        for prefix in prefixes {
            let mut ones = [0_u32; 64];
            for i in 0..65_536 {
                let h = hash.of(format!("{prefix}{i}").as_bytes());
                (0..64).for_each(|bit| ones[bit] += (h >> bit & 1) as u32);
            }
            // A fair coin tossed 65,536 times has a standard deviation of 128.
            assert!(ones.iter().all(|n| n.abs_diff(32_768) < 10 * 128), "{prefix:?}: {ones:?}");
        }
    }
}
