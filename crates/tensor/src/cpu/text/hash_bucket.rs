//! Puts strings and integers into buckets by their hash: `StringToHashBucketFast`, `-Strong`, and
//! the legacy op.

use super::{Buckets, Decimal, fingerprint64, legacy_hash64, siphash24};
use crate::StringSlice;

/// The bucket of each string: its [fingerprint](fingerprint64) modulo the number of buckets,
/// unsigned.
pub fn hash_bucket_fast(strings: StringSlice<'_>, buckets: Buckets, out: &mut [i64]) {
    each(strings, buckets, out, fingerprint64);
}

/// The bucket of each integer's decimal text, as in a hashed column of integers.
pub fn hash_bucket_fast_ints(values: &[i64], buckets: Buckets, out: &mut [i64]) {
    assert_eq!(values.len(), out.len(), "one bucket for each value");
    for (&value, out) in values.iter().zip(out) {
        *out = buckets.of(fingerprint64(Decimal::new(value).as_bytes()));
    }
}

/// The bucket of each string by a hash under a secret key: [`siphash24`].
pub fn hash_bucket_strong(strings: StringSlice<'_>, key: [u64; 2], buckets: Buckets, out: &mut [i64]) {
    each(strings, buckets, out, |string| siphash24(key, string));
}

/// The bucket of each string by [`legacy_hash64`].
pub fn hash_bucket_legacy(strings: StringSlice<'_>, buckets: Buckets, out: &mut [i64]) {
    each(strings, buckets, out, legacy_hash64);
}

#[inline(always)]
fn each(strings: StringSlice<'_>, buckets: Buckets, out: &mut [i64], hash: impl Fn(&[u8]) -> u64) {
    assert_eq!(strings.len(), out.len(), "one bucket for each string");
    for (string, out) in strings.iter().zip(out) {
        *out = buckets.of(hash(string));
    }
}
