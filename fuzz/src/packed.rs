//! gzip, zlib and zstd files: any input unpacks to no more than the limits allow, or gives an
//! error.

use std::path::PathBuf;

use estimand_data::{Compression, Files, Limits};

/// The first byte selects the compression of the others: gzip, zlib or zstd.
pub const GZIP: u8 = 0;
pub const ZLIB: u8 = 1;
pub const ZSTD: u8 = 2;

fn path() -> PathBuf {
    std::env::temp_dir().join(format!("estimand-fuzz-packed-{}", std::process::id()))
}

/// Unpacks the bytes from the beginning, and from the middle.
pub fn check(input: &[u8]) {
    let Some((&mode, packed)) = input.split_first() else { return };
    let path = path();
    std::fs::write(&path, packed).expect("a file in the temporary folder");
    let compression = [Compression::Gzip, Compression::Zlib, Compression::Zstd][usize::from(mode) % 3];
    let limits = Limits { unpacked_bytes: 1 << 20, free_bytes: 64 << 10, ratio: 50, ..Limits::default() };
    let files = Files::new(&path).compression(compression).limits(limits);
    if let Ok(bytes) = files.read(&path) {
        assert!(bytes.len() as u64 <= limits.unpacked_bytes, "{} bytes of {}", bytes.len(), packed.len());
        let mut rest = Vec::new();
        let middle = bytes.len() / 2;
        let mut reader = files.open(&path, middle as u64).expect("it could be read before");
        std::io::Read::read_to_end(&mut reader, &mut rest).expect("it could be read before");
        assert!(rest == bytes[middle..], "another end from the middle");
    }
}
