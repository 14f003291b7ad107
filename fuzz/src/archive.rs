//! NPZ archives: any input gives arrays or an error, and no array is larger than the limits allow.
//!
//! Checksums guard the members of an archive. So the first byte chooses: the other bytes are a
//! whole archive, or sizes and offsets of members from which an archive is built.

use estimand_data::{Limits, npz};

/// The bytes are an archive. With another first byte they are directory entries for one member,
/// four bytes each: offset, packed size, size, method.
const FILE: u8 = 0;

const LIMITS: Limits = Limits {
    unpacked_bytes: 1 << 20,
    ratio: 100,
    free_bytes: 64 << 10,
    entries: 100,
    columns: 100,
    field_bytes: 1 << 20,
    line_bytes: 1 << 20,
    record_bytes: 1 << 20,
    text_bytes: 1 << 20,
    pixels: 1 << 20,
};

/// Reads an archive with small limits.
pub fn check(input: &[u8]) {
    let Some((&mode, rest)) = input.split_first() else { return };
    let archive = if mode % 2 == FILE { rest.to_vec() } else { archive_of(rest) };
    if let Ok(arrays) = npz::from_bytes_within(&archive, &LIMITS) {
        assert!(arrays.len() <= LIMITS.entries);
        let n_bytes: usize = arrays.iter().map(|(_, array)| array.len()).sum();
        assert!(n_bytes as u64 <= LIMITS.unpacked_bytes, "{n_bytes} values");
    }
}

/// A stored NPY file of four bytes.
const NPY: &[u8] = b"\x93NUMPY\x01\x00\x36\x00{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}\x01\x02\x03\x04";

/// Builds one local header and file, and the directory that the bytes describe.
fn archive_of(entries: &[u8]) -> Vec<u8> {
    let (entries, _) = entries.as_chunks::<4>();
    let mut archive = [b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0".as_slice(), &[0; 16], NPY].concat();
    let directory = archive.len() as u32;
    for (i, [offset, packed, size, method]) in entries.iter().enumerate() {
        let name = format!("{i}.npy");
        // Sizes close to the right ones.
        let near = |byte: u8| (NPY.len() as u32).wrapping_add_signed(i32::from(byte as i8));
        archive.extend([b"PK\x01\x02\x14\0\x14\0\0\0", &[*method, 0][..], &[0; 8]].concat());
        archive.extend([near(*packed), near(*size)].map(u32::to_le_bytes).concat());
        archive.extend([&(name.len() as u16).to_le_bytes()[..], &[0; 12], &u32::from(*offset).to_le_bytes()].concat());
        archive.extend(name.as_bytes());
    }
    let n = (entries.len() as u16).to_le_bytes();
    archive.extend([b"PK\x05\x06\0\0\0\0", &n[..], &n, &[0; 4], &directory.to_le_bytes(), &[0; 2]].concat());
    archive
}
