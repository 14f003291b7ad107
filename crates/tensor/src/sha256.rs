//! SHA-256 in hex: whether bytes are the ones that were meant.

use std::fmt::Write;

use sha2::Digest;

/// A digest in progress, for bytes that arrive in pieces.
///
/// ```
/// use estimand_tensor::Sha256;
/// let digest = Sha256::new().update(b"a").update(b"").finish();
/// assert_eq!(digest, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sha256 {
    digest: sha2::Sha256,
}

impl Sha256 {
    /// Starts a digest without any bytes.
    pub fn new() -> Sha256 {
        Sha256::default()
    }

    /// Adds bytes to the digest.
    #[must_use]
    pub fn update(mut self, bytes: &[u8]) -> Sha256 {
        self.digest.update(bytes);
        self
    }

    /// The digest in hex.
    pub fn finish(self) -> String {
        self.digest.finalize().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
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
