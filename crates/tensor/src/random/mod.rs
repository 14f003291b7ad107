//! Counter-based random numbers: every value is a pure function of its position.
//!
//! A value depends only on (seed, op name, step, row, index in the row). So a batch split over
//! threads, workers or calls draws the same bits as the whole, and a run resumed at step n needs
//! only n.
//!
//! ```
//! use estimand_tensor::random::{Key, Stream};
//!
//! let stream = Stream::new(Key::new(42, "dropout"), 7);
//! let (mut whole, mut third) = ([0.0; 40], [0.0; 10]);
//! stream.fill_uniform_f32(0, 10, &mut whole);
//! stream.fill_uniform_f32(2, 10, &mut third);
//! assert_eq!(whole[20..30], third);
//! ```
//!
//! Key derivation, counter layout and all conversions here are frozen: changing one of them changes
//! users' runs.

mod normal;
mod permutation;
mod philox;

use crate::cpu::isa::Isa;
use crate::cpu::twins::twins;
use normal::Normal;
pub use permutation::Permutation;
use philox::{Draw, LANES, Words, draw_rows};

/// The key of a source of randomness: one per (seed, op).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(u64);

impl Key {
    /// The key of the op `name` in a run with this seed.
    ///
    /// Frozen: `mix(mix(seed + 0x9e3779b97f4a7c15) ^ fnv1a64(name))` with SplitMix64's finaliser as
    /// `mix`.
    pub fn new(seed: u64, name: &str) -> Key {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Key(mix(mix(seed.wrapping_add(GOLDEN)) ^ hash))
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser: a bijection of 64 bits in which every input bit affects every output
/// bit.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The values of one key at one step.
///
/// Each `fill` writes `out.len() / width` rows of `width` values, starting with row `first_row`;
/// the last row may be shorter. A row holds up to 2^33 values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of `key` at `step`. Distinct steps of one key never share a Philox key.
    pub fn new(key: Key, step: u64) -> Stream {
        Stream { key: mix(key.0.wrapping_add(step.wrapping_mul(GOLDEN))) }
    }

    /// Fills with uniform numbers in [0, 1): multiples of 2^-24.
    pub fn fill_uniform_f32(&self, first_row: u64, width: usize, out: &mut [f32]) {
        self.run(uniform_f32(Isa::active()), first_row, width, out);
    }

    /// Fills with normal numbers of mean 0 and deviation 1.
    pub fn fill_normal_f32(&self, first_row: u64, width: usize, out: &mut [f32]) {
        self.run(normal_f32(Isa::active()), first_row, width, out);
    }

    /// Fills with normal numbers, redrawn until they lie in (-2, 2). The deviation of the result is
    /// about 0.88.
    pub fn fill_truncated_normal_f32(&self, first_row: u64, width: usize, out: &mut [f32]) {
        if width == 0 {
            return;
        }
        self.run(normal_f32(Isa::active()), first_row, width, out);
        for (row, values) in (first_row..).zip(out.chunks_mut(width)) {
            for (index, value) in values.iter_mut().enumerate() {
                let mut attempt = 1;
                while value.abs() >= 2.0 {
                    // The attempt is part of the counter, so a redrawn value is still a function of
                    // its position.
                    let words = philox::block(self.key, [(index / 4) as u32, attempt, row as u32, (row >> 32) as u32]);
                    let pair = index % 4 / 2 * 2;
                    *value = normal::pair(words[pair], words[pair + 1])[index % 2];
                    attempt += 1;
                }
            }
        }
    }

    fn run(&self, fill: Fill, first_row: u64, width: usize, out: &mut [f32]) {
        // SAFETY: `Isa::active` names an instruction set that this processor supports.
        unsafe { fill(self.key, first_row, width, out) };
    }

    /// Fills with integers in [low, high); all are `low` if that range is empty.
    pub fn fill_integers_i32(&self, first_row: u64, width: usize, low: i32, high: i32, out: &mut [i32]) {
        draw_rows(self.key, first_row, width, out, &Integers::between(low.into(), high.into()));
    }

    /// Fills with integers in [low, high); all are `low` if that range is empty.
    pub fn fill_integers_i64(&self, first_row: u64, width: usize, low: i64, high: i64, out: &mut [i64]) {
        draw_rows(self.key, first_row, width, out, &Integers::between(low, high));
    }

    /// Fills with the numbers 0..out.len() in random order, by the Fisher-Yates shuffle.
    pub fn fill_permutation(&self, out: &mut [u64]) {
        permutation::fill(self.key, out);
    }

    /// The image of `i` under a random bijection of 0..n: a shuffle of any size without memory.
    ///
    /// The order differs from [`fill_permutation`](Stream::fill_permutation). An `i` outside 0..n
    /// is returned unchanged.
    pub fn permute(&self, i: u64, n: u64) -> u64 {
        self.permutation(n).at(i)
    }

    /// The bijection of [`permute`](Stream::permute), for many indices.
    pub fn permutation(&self, n: u64) -> Permutation {
        Permutation::new(self.key, n)
    }
}

/// A vectorised fill, compiled for one instruction set.
type Fill = unsafe fn(u64, u64, usize, &mut [f32]);

twins! {
    fn uniform_f32[](key: u64, first_row: u64, width: usize, out: &mut [f32]) = |key, first_row, width, out| {
        draw_rows(key, first_row, width, out, &Uniform)
    }
}

twins! {
    fn normal_f32[](key: u64, first_row: u64, width: usize, out: &mut [f32]) = |key, first_row, width, out| {
        draw_rows(key, first_row, width, out, &Normal)
    }
}

/// Multiples of 2^-24 below 1.
struct Uniform;

impl Draw<f32, 4> for Uniform {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [[f32; 4]; LANES] {
        let mut values = [[0.0; 4]; LANES];
        for (lane, block) in values.iter_mut().enumerate() {
            for (value, word) in block.iter_mut().zip(words) {
                *value = (word[lane] >> 8) as i32 as f32 * (1.0 / 16_777_216.0);
            }
        }
        values
    }
}

/// The lowest integer and the number of integers from there. Each is drawn from 64 bits: the bias
/// is below range / 2^64.
struct Integers {
    low: i64,
    range: u64,
}

impl Integers {
    fn between(low: i64, high: i64) -> Integers {
        Integers { low, range: if low < high { high.wrapping_sub(low) as u64 } else { 0 } }
    }
}

impl Draw<i64, 2> for Integers {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [[i64; 2]; LANES] {
        let mut values = [[0; 2]; LANES];
        for (lane, pair) in values.iter_mut().enumerate() {
            for (half, value) in pair.iter_mut().enumerate() {
                let bits = u64::from(words[2 * half][lane]) | u64::from(words[2 * half + 1][lane]) << 32;
                let steps = (u128::from(bits) * u128::from(self.range)) >> 64;
                *value = self.low.wrapping_add(steps as i64);
            }
        }
        values
    }
}

impl Draw<i32, 2> for Integers {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [[i32; 2]; LANES] {
        let wide: [[i64; 2]; LANES] = self.draw(words);
        wide.map(|pair| pair.map(|value| value as i32))
    }
}

#[cfg(test)]
mod tests;
