//! The hash of TensorFlow's oldest op for buckets, `StringToHashBucket`. Old graphs use it; new
//! ones should not.

/// TensorFlow's `Hash64` with its default seed.
pub fn legacy_hash64(s: &[u8]) -> u64 {
    const SEED: u64 = 0xdecaf_caffe;
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let shift = |x: u64| x ^ (x >> 47);
    let mut hash = SEED ^ (s.len() as u64).wrapping_mul(M);
    let (words, tail) = s.as_chunks();
    for word in words {
        let mixed = shift(u64::from_le_bytes(*word).wrapping_mul(M)).wrapping_mul(M);
        hash = (hash ^ mixed).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    shift(shift(hash).wrapping_mul(M))
}
