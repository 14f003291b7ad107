//! SipHash-2-4: the keyed hash of TensorFlow's `StringToHashBucketStrong`.
//!
//! Without the secret key, no one can construct strings that share a bucket. It costs several times
//! as much as a fingerprint.

/// The hash of a string under a key of two words.
pub fn siphash24(key: [u64; 2], s: &[u8]) -> u64 {
    // "somepseudorandomlygeneratedbytes": the constants of the algorithm's authors.
    let mut state = State([
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ]);
    let (words, tail) = s.as_chunks();
    for word in words {
        state.absorb(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    last[7] = s.len() as u8;
    state.absorb(u64::from_le_bytes(last));
    state.0[2] ^= 0xff;
    (0..4).for_each(|_| state.round());
    state.0[0] ^ state.0[1] ^ state.0[2] ^ state.0[3]
}

struct State([u64; 4]);

impl State {
    #[inline(always)]
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    #[inline(always)]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        self.0 = [a, b, c.rotate_left(32), d];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vector() {
        // The example of the paper (Aumasson and Bernstein 2012, appendix A): key 00 01 .. 0f,
        // message 00 01 .. 0e.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(siphash24(key, &message), 0xa129_ca61_49be_45e5);
    }
}
