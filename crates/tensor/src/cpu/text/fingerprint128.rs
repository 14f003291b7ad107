//! Fingerprint128: the hash of the example ids of TensorFlow's `LinearSDCA`, FarmHash's stable
//! 128-bit function.
//!
//! Tables in trained models depend on it, so it never changes.

use super::fingerprint::{K0, K1, State, fingerprint64, fold, mix, rotate, weak_pair, word};

/// The factor of [`mix`] in this function.
const M: u64 = 0x9ddf_ea08_eb38_2d69;
/// Strings from this length on, after the 16 bytes of the seed, are read in blocks of this length.
const LONG: usize = 128;

/// The fingerprint of a byte string: its lower and its upper 64 bits.
pub fn fingerprint128(s: &[u8]) -> (u64, u64) {
    let (seed, rest) = match s.split_first_chunk::<16>() {
        Some((first, rest)) => ((word(first, 0), word(first, 8).wrapping_add(K0)), rest),
        None => ((K0, K1), s),
    };
    match rest.len() < LONG {
        true => short(rest, seed),
        false => long(rest, seed),
    }
}

/// A string of less than 128 bytes.
fn short(s: &[u8], (mut a, mut b): (u64, u64)) -> (u64, u64) {
    let n = s.len();
    let (mut c, mut d);
    if n <= 16 {
        a = scramble(a);
        c = b.wrapping_mul(K1).wrapping_add(fingerprint64(s));
        d = fold(a.wrapping_add(if n >= 8 { word(s, 0) } else { c }));
    } else {
        c = mix(word(s, n - 8).wrapping_add(K1), a, M);
        d = mix(b.wrapping_add(n as u64), c.wrapping_add(word(s, n - 16)), M);
        a = a.wrapping_add(d);
        // The last 16 bytes were read above, and again if they end a whole pair of words.
        for at in (0..n - 16).step_by(16) {
            a = (a ^ scramble(word(s, at))).wrapping_mul(K1);
            b ^= a;
            c = (c ^ scramble(word(s, at + 8))).wrapping_mul(K1);
            d ^= c;
        }
    }
    let (a, b) = (mix(a, c, M), mix(d, b, M));
    (a ^ b, mix(b, a, M))
}

/// A string of 128 bytes or more.
fn long(s: &[u8], (x, y): (u64, u64)) -> (u64, u64) {
    let n = s.len();
    let z = (n as u64).wrapping_mul(K1);
    let v = rotate(y ^ K1, 49).wrapping_mul(K1).wrapping_add(word(s, 0));
    let v = (v, rotate(v, 42).wrapping_mul(K1).wrapping_add(word(s, 8)));
    let w = rotate(y.wrapping_add(z), 35).wrapping_mul(K1).wrapping_add(x);
    let w = (w, rotate(x.wrapping_add(word(s, 88)), 53).wrapping_mul(K1));
    let mut state = State { x, y, z, v, w };
    let (blocks, rest) = s.as_chunks::<LONG>();
    for block in blocks {
        for half in block.as_chunks().0 {
            state.absorb(half, K1, 1);
        }
    }
    let State { mut x, mut y, mut z, mut v, mut w } = state;
    x = x.wrapping_add(rotate(v.0.wrapping_add(z), 49).wrapping_mul(K0));
    y = y.wrapping_mul(K0).wrapping_add(rotate(w.1, 37));
    z = z.wrapping_mul(K0).wrapping_add(rotate(w.0, 27));
    w.0 = w.0.wrapping_mul(9);
    v.0 = v.0.wrapping_mul(K0);
    // The rest in pieces of 32 bytes from the end. The last piece may begin in the block before.
    for piece in 1..=rest.len().div_ceil(32) {
        let at = n - 32 * piece;
        y = rotate(x.wrapping_add(y), 42).wrapping_mul(K0).wrapping_add(v.1);
        w.0 = w.0.wrapping_add(word(s, at + 16));
        x = x.wrapping_mul(K0).wrapping_add(w.0);
        z = z.wrapping_add(w.1).wrapping_add(word(s, at));
        w.1 = w.1.wrapping_add(v.0);
        v = weak_pair([0, 8, 16, 24].map(|i| word(s, at + i)), v.0.wrapping_add(z), v.1);
        v.0 = v.0.wrapping_mul(K0);
    }
    let (x, y) = (mix(x, v.0, M), mix(y.wrapping_add(z), w.0, M));
    let low = mix(x.wrapping_add(v.1), w.1, M).wrapping_add(y);
    (low, mix(x.wrapping_add(w.1), y.wrapping_add(v.1), M))
}

/// Spreads the bits of a word.
fn scramble(x: u64) -> u64 {
    fold(x.wrapping_mul(K1)).wrapping_mul(K1)
}
