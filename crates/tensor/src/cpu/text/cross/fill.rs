//! The loops of a cross: block by block if every key has one value in a row, otherwise row by row.

use std::ops::Range;

use super::{Cross, CrossKey, CrossValues};
use crate::cpu::text::{fingerprint_cat64, fingerprint64};

/// The number of rows hashed together: enough independent chains of multiplications to hide each
/// other's latency.
const BLOCK: usize = 256;

impl Cross {
    /// Writes the ids of some rows. `splits` holds the splits of all rows.
    pub(super) fn fill(self, keys: &[CrossKey<'_>], rows: Range<usize>, splits: &[i64], out: &mut [i64]) {
        let single = out.len() == rows.len() && rows.clone().all(|row| splits[row + 1] - splits[row] == 1);
        if single { self.fill_single(keys, rows, out) } else { self.fill_products(keys, rows, out) }
    }

    /// Writes one combination for each row.
    fn fill_single(self, keys: &[CrossKey<'_>], rows: Range<usize>, out: &mut [i64]) {
        let mut hashes = [0; BLOCK];
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = rows.start + block * BLOCK;
            let hashes = &mut hashes[..out.len()];
            hashes.fill(self.hash_key);
            for key in keys {
                key.append_to(first, hashes);
            }
            for (out, hash) in out.iter_mut().zip(hashes) {
                *out = self.buckets.of(*hash);
            }
        }
    }

    /// Writes any number of combinations: an odometer over all keys except the last, whose values
    /// form the inner loop.
    fn fill_products(self, keys: &[CrossKey<'_>], rows: Range<usize>, out: &mut [i64]) {
        let Some(last) = keys.len().checked_sub(1) else { return };
        let mut hashes: Vec<u64> = Vec::new();
        let mut wheels = vec![Wheel::default(); keys.len()];
        let mut written = 0;
        for row in rows {
            hashes.clear();
            for (wheel, key) in wheels.iter_mut().zip(keys) {
                let (first, n) = key.row(row);
                *wheel = Wheel { start: hashes.len(), end: hashes.len() + n, at: hashes.len(), prefix: 0 };
                hashes.extend((first..first + n).map(|i| key.values.hash(i)));
            }
            if wheels.iter().any(|wheel| wheel.start == wheel.end) {
                continue;
            }
            let mut turned = 0;
            loop {
                // Wheels before the one that moved keep their hash.
                for k in turned..=last {
                    wheels[k].prefix = match k {
                        0 => self.hash_key,
                        _ => fingerprint_cat64(wheels[k - 1].prefix, hashes[wheels[k - 1].at]),
                    };
                }
                let Wheel { start, end, prefix, .. } = wheels[last];
                for (out, &hash) in out[written..].iter_mut().zip(&hashes[start..end]) {
                    *out = self.buckets.of(fingerprint_cat64(prefix, hash));
                }
                written += end - start;
                match turn(&mut wheels[..last]) {
                    Some(wheel) => turned = wheel + 1,
                    None => break,
                }
            }
        }
    }
}

/// A key in one row: the range of its hashes, the current one, and the hash of the current values
/// of the wheels before it.
#[derive(Clone, Copy, Default)]
struct Wheel {
    start: usize,
    end: usize,
    at: usize,
    prefix: u64,
}

/// Moves to the next combination. Returns the leftmost wheel that moved, or `None` after the last
/// combination.
fn turn(wheels: &mut [Wheel]) -> Option<usize> {
    for (k, wheel) in wheels.iter_mut().enumerate().rev() {
        wheel.at += 1;
        if wheel.at < wheel.end {
            return Some(k);
        }
        wheel.at = wheel.start;
    }
    None
}

impl CrossValues<'_> {
    #[inline(always)]
    fn hash(&self, i: usize) -> u64 {
        match self {
            CrossValues::Strings(strings) => fingerprint64(strings.get(i)),
            CrossValues::Ints(ints) => ints[i] as u64,
        }
    }
}

impl CrossKey<'_> {
    /// Appends the only value of each row, starting with `first`, to the hash of that row.
    fn append_to(&self, first: usize, hashes: &mut [u64]) {
        // With one value in each row the values are contiguous: dense, or ragged without gaps.
        let (start, n) = (self.row(first).0, hashes.len());
        match self.values {
            CrossValues::Strings(strings) => {
                for (hash, string) in hashes.iter_mut().zip(strings.range(start..start + n)) {
                    *hash = fingerprint_cat64(*hash, fingerprint64(string));
                }
            }
            CrossValues::Ints(ints) => {
                for (hash, &value) in hashes.iter_mut().zip(&ints[start..start + n]) {
                    *hash = fingerprint_cat64(*hash, value as u64);
                }
            }
        }
    }
}
