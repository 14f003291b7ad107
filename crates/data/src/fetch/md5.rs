//! MD5 (RFC 1321), for the checksums that Keras publishes. It is no protection against forgery.

/// The rotations of the four rounds.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The checksum of the bytes so far.
pub(super) struct Md5 {
    state: [u32; 4],
    /// Bytes of a block that is not complete.
    rest: Vec<u8>,
    n_bytes: u64,
    /// The integer parts of `2^32 * |sin(i + 1)|`.
    table: [u32; 64],
}

impl Md5 {
    pub fn new() -> Md5 {
        Md5 {
            state: [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476],
            rest: Vec::with_capacity(64),
            n_bytes: 0,
            table: std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32),
        }
    }

    pub fn update(&mut self, mut bytes: &[u8]) {
        self.n_bytes = self.n_bytes.wrapping_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let n = bytes.len().min(64 - self.rest.len());
            self.rest.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.rest.len() == 64 {
                self.block();
                self.rest.clear();
            }
        }
    }

    /// The checksum as hexadecimal digits.
    pub fn finish(mut self) -> String {
        let n_bits = self.n_bytes.wrapping_mul(8);
        let n_zeros = (119 - self.rest.len()) % 64;
        self.update(&[0x80]);
        self.update(&[0; 64][..n_zeros]);
        self.update(&n_bits.to_le_bytes());
        self.state.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
    }

    fn block(&mut self) {
        let mut words = [0u32; 16];
        for (word, bytes) in words.iter_mut().zip(self.rest.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        }
        let [mut a, mut b, mut c, mut d] = self.state;
        for i in 0..64 {
            let (mixed, word) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, 5 * i + 1),
                2 => (b ^ c ^ d, 3 * i + 5),
                _ => (c ^ (b | !d), 7 * i),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(self.table[i]).wrapping_add(words[word % 16]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(ROTATIONS[i / 16][i % 4])));
        }
        for (word, more) in self.state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of RFC 1321, and lengths around a block by Python's hashlib.
    #[test]
    fn known_checksums() {
        let of = |bytes: &[u8]| {
            let mut whole = Md5::new();
            whole.update(bytes);
            let mut parts = Md5::new();
            bytes.chunks(7).for_each(|part| parts.update(part));
            let found = whole.finish();
            assert_eq!(found, parts.finish());
            found
        };
        assert_eq!(of(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(of(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(of(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let digits = b"12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(of(digits), "57edf4a22be3c955ac49da2e2107b67a");
        for (n, expected) in [
            (55, "ef1772b6dff9a122358552954ad0df65"),
            (56, "3b0c8ac703f828b04c6c197006d17218"),
            (63, "b06521f39153d618550606be297466d5"),
            (64, "014842d480b571495a4a0363793f7367"),
            (65, "c743a45e0d2e6a95cb859adae0248435"),
            (119, "8a7bd0732ed6a28ce75f6dabc90e1613"),
            (120, "5f61c0ccad4cac44c75ff505e1f1e537"),
            (1000, "cabe45dcc9ae5b66ba86600cca6b8ba8"),
        ] {
            assert_eq!(of(&vec![b'a'; n]), expected, "{n}");
        }
    }
}
