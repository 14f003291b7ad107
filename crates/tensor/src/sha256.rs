//! SHA-256, as FIPS 180-4 defines it, for checking that bytes are the expected ones.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
const START: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// A digest in progress, for bytes that arrive in pieces.
///
/// ```
/// use estimand_tensor::Sha256;
/// let digest = Sha256::new().update(b"a").update(b"").finish();
/// assert_eq!(digest, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
/// ```
#[derive(Clone, Debug)]
pub struct Sha256 {
    state: [u32; 8],
    /// Bytes that do not fill a block yet.
    rest: Vec<u8>,
    n_bytes: u64,
}

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256::new()
    }
}

impl Sha256 {
    /// Starts a digest without any bytes.
    pub fn new() -> Sha256 {
        Sha256 { state: START, rest: Vec::with_capacity(64), n_bytes: 0 }
    }

    /// Adds bytes to the digest.
    #[must_use]
    pub fn update(mut self, mut bytes: &[u8]) -> Sha256 {
        self.n_bytes += bytes.len() as u64;
        if !self.rest.is_empty() {
            let (filling, more) = bytes.split_at(bytes.len().min(64 - self.rest.len()));
            self.rest.extend_from_slice(filling);
            bytes = more;
            if let Some(block) = self.rest.as_chunks::<64>().0.first().copied() {
                compress(&mut self.state, &block);
                self.rest.clear();
            }
        }
        let (blocks, rest) = bytes.as_chunks::<64>();
        blocks.iter().for_each(|block| compress(&mut self.state, block));
        self.rest.extend_from_slice(rest);
        self
    }

    /// The digest in hex.
    pub fn finish(mut self) -> String {
        // The padding: a one bit, zeros, and the number of bits, up to the end of a block.
        let n = self.rest.len();
        self.rest.push(0x80);
        self.rest.resize((n + 9).next_multiple_of(64) - 8, 0);
        self.rest.extend((self.n_bytes * 8).to_be_bytes());
        self.rest.as_chunks::<64>().0.iter().for_each(|block| compress(&mut self.state, block));
        self.state.map(|word| format!("{word:08x}")).concat()
    }
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..64 {
        let (w15, w2) = (words[i - 15], words[i - 2]);
        let s0 = w15.rotate_right(7) ^ w15.rotate_right(18) ^ (w15 >> 3);
        let s1 = w2.rotate_right(17) ^ w2.rotate_right(19) ^ (w2 >> 10);
        words[i] = words[i - 16].wrapping_add(s0).wrapping_add(words[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in ROUNDS.iter().zip(words) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(*round).wrapping_add(word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(s0.wrapping_add(majority)));
    }
    for (sum, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's `hashlib.sha256(b"a" * n).hexdigest()`, for lengths around the size of a block.
    #[test]
    fn digests_as_python_gives_them() {
        for (n, digest) in [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
            (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
            (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
            (63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"),
            (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
            (65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"),
            (1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"),
        ] {
            let bytes = vec![b'a'; n];
            assert_eq!(Sha256::new().update(&bytes).finish(), digest, "{n} bytes");
            for piece in [1, 7, 63, 64, 65] {
                let pieces = bytes.chunks(piece).fold(Sha256::new(), Sha256::update);
                assert_eq!(pieces.finish(), digest, "{n} bytes in pieces of {piece}");
            }
        }
    }
}
