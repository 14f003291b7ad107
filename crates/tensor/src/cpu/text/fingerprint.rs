//! Fingerprint64: the hash of TensorFlow's hashed and crossed columns, FarmHash's stable 64-bit
//! function. Fingerprint128, the hash of its example ids, is in `fingerprint128.rs`.
//!
//! Ids in trained models depend on it, so it never changes. Every length class loads its words from
//! both ends of the string, with overlap, so that none needs a loop over bytes.

use crate::StringSlice;

pub(super) const K0: u64 = 0xc3a5_c85c_97cb_3127;
pub(super) const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The fingerprint of a byte string: `tf.fingerprint`, and the hash of
/// `tf.strings.to_hash_bucket_fast`.
#[inline]
pub fn fingerprint64(s: &[u8]) -> u64 {
    match s.len() {
        8..=16 => {
            let m = multiplier(s);
            let (a, b) = (word(s, 0).wrapping_add(K2), word(s, s.len() - 8));
            mix(rotate(b, 37).wrapping_mul(m).wrapping_add(a), rotate(a, 25).wrapping_add(b).wrapping_mul(m), m)
        }
        4..=7 => {
            let (first, last) = (half_word(s, 0), half_word(s, s.len() - 4));
            mix((s.len() as u64).wrapping_add(first << 3), last, multiplier(s))
        }
        1..=3 => {
            let (first, middle, last) = (s[0], s[s.len() / 2], s[s.len() - 1]);
            let y = u64::from(first) + (u64::from(middle) << 8);
            let z = s.len() as u64 + (u64::from(last) << 2);
            fold(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        0 => K2,
        17..=32 => {
            let ends = Ends::new(s, K1);
            mix(ends.y(), ends.z(), ends.m)
        }
        33..=64 => up_to_64(s),
        _ => long(s),
    }
}

/// Computes the fingerprints of all strings of a slice.
pub fn fingerprints(strings: StringSlice<'_>, out: &mut [u64]) {
    assert_eq!(strings.len(), out.len(), "one fingerprint for each string");
    for (string, out) in strings.iter().zip(out) {
        *out = fingerprint64(string);
    }
}

/// The fingerprint of a pair of fingerprints. The order matters.
#[inline]
pub fn fingerprint_cat64(a: u64, b: u64) -> u64 {
    const K: u64 = 0xc6a4_a793_5bd1_e995;
    let mixed = (a ^ K ^ fold(b.wrapping_mul(K)).wrapping_mul(K)).wrapping_mul(K);
    fold(fold(mixed).wrapping_mul(K))
}

/// Eight bytes from `at`, little-endian.
#[inline(always)]
pub(super) fn word(s: &[u8], at: usize) -> u64 {
    s[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Four bytes from `at`, little-endian.
#[inline(always)]
fn half_word(s: &[u8], at: usize) -> u64 {
    s[at..].first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
}

#[inline(always)]
pub(super) fn rotate(x: u64, by: u32) -> u64 {
    x.rotate_right(by)
}

#[inline(always)]
pub(super) fn fold(x: u64) -> u64 {
    x ^ (x >> 47)
}

/// The factor that depends on the length.
#[inline(always)]
fn multiplier(s: &[u8]) -> u64 {
    K2.wrapping_add(2 * s.len() as u64)
}

/// Hashes two words into one.
#[inline(always)]
pub(super) fn mix(u: u64, v: u64, m: u64) -> u64 {
    let a = fold((u ^ v).wrapping_mul(m));
    fold((v ^ a).wrapping_mul(m)).wrapping_mul(m)
}

/// The first and the last 16 bytes of a string, multiplied: the first step for 17 to 64 bytes.
struct Ends {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    m: u64,
}

impl Ends {
    #[inline(always)]
    fn new(s: &[u8], factor: u64) -> Ends {
        let (n, m) = (s.len(), multiplier(s));
        Ends {
            a: word(s, 0).wrapping_mul(factor),
            b: word(s, 8),
            c: word(s, n - 8).wrapping_mul(m),
            d: word(s, n - 16).wrapping_mul(K2),
            m,
        }
    }

    #[inline(always)]
    fn y(&self) -> u64 {
        rotate(self.a.wrapping_add(self.b), 43).wrapping_add(rotate(self.c, 30)).wrapping_add(self.d)
    }

    #[inline(always)]
    fn z(&self) -> u64 {
        self.a.wrapping_add(rotate(self.b.wrapping_add(K2), 18)).wrapping_add(self.c)
    }
}

fn up_to_64(s: &[u8]) -> u64 {
    let (n, ends) = (s.len(), Ends::new(s, K2));
    let (m, y) = (ends.m, ends.y());
    let z = mix(y, ends.z(), m);
    let (e, f) = (word(s, 16).wrapping_mul(m), word(s, 24));
    let g = y.wrapping_add(word(s, n - 32)).wrapping_mul(m);
    let h = z.wrapping_add(word(s, n - 24)).wrapping_mul(m);
    let u = rotate(e.wrapping_add(f), 43).wrapping_add(rotate(g, 30)).wrapping_add(h);
    mix(u, e.wrapping_add(rotate(f.wrapping_add(ends.a), 18)).wrapping_add(g), m)
}

/// The state of the hash of a long string: 56 bytes that every block of 64 bytes updates.
pub(super) struct State {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) z: u64,
    pub(super) v: (u64, u64),
    pub(super) w: (u64, u64),
}

impl State {
    /// Updates the state with a block. `m` is `K1`, except for the final block, where it depends on
    /// the state and two words count ninefold.
    #[inline(always)]
    pub(super) fn absorb(&mut self, block: &[u8; 64], m: u64, nine: u64) {
        let at = |i: usize| word(block, 8 * i);
        let State { x, y, z, v, w } = self;
        *x = rotate(x.wrapping_add(*y).wrapping_add(v.0).wrapping_add(at(1)), 37).wrapping_mul(m);
        *y = rotate(y.wrapping_add(v.1).wrapping_add(at(6)), 42).wrapping_mul(m);
        *x ^= w.1.wrapping_mul(nine);
        *y = y.wrapping_add(v.0.wrapping_mul(nine)).wrapping_add(at(5));
        *z = rotate(z.wrapping_add(w.0), 33).wrapping_mul(m);
        *v = weak_pair([at(0), at(1), at(2), at(3)], v.1.wrapping_mul(m), x.wrapping_add(w.0));
        *w = weak_pair([at(4), at(5), at(6), at(7)], z.wrapping_add(w.1), y.wrapping_add(at(2)));
        std::mem::swap(x, z);
    }
}

#[inline(always)]
pub(super) fn weak_pair([w, x, y, z]: [u64; 4], a: u64, b: u64) -> (u64, u64) {
    let a = a.wrapping_add(w);
    let b = rotate(b.wrapping_add(a).wrapping_add(z), 21);
    let sum = a.wrapping_add(x).wrapping_add(y);
    (sum.wrapping_add(z), b.wrapping_add(rotate(sum, 44)).wrapping_add(a))
}

fn long(s: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let z = fold(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let mut state = State { x: SEED.wrapping_mul(K2).wrapping_add(word(s, 0)), y, z, v: (0, 0), w: (0, 0) };
    // The last block is the last 64 bytes, so it may overlap the block before.
    for block in s[..s.len() - 1].as_chunks().0 {
        state.absorb(block, K1, 1);
    }
    let m = K1.wrapping_add((state.z & 0xff) << 1);
    state.w.0 = state.w.0.wrapping_add((s.len() as u64 - 1) & 63);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    if let Some(last) = s.last_chunk() {
        state.absorb(last, m, 9);
    }
    let State { x, y, z, v, w } = state;
    let u = mix(v.0, w.0, m).wrapping_add(fold(y).wrapping_mul(K0)).wrapping_add(z);
    mix(u, mix(v.1, w.1, m).wrapping_add(x), m)
}
