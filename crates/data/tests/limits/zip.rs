//! NPZ archives that would grow.

use std::io::Write;

use estimand_data::{Dataset, Files, Limits, npy, npz};
use estimand_tensor::{Array, DType};

use crate::memory::Turn;
use crate::{Folder, says};

/// A member as it lies in the archive: a local header and the deflated bytes of an array.
struct Member {
    packed: Vec<u8>,
    size: usize,
    crc: u32,
}

impl Member {
    /// An array of this many zero bytes.
    fn zeros(n: usize) -> Member {
        let file = npy::to_bytes(&Array::zeros(DType::U8, [n]).unwrap()).unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        deflate.write_all(&file).unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(&file);
        Member { packed: deflate.finish().unwrap(), size: file.len(), crc: crc.sum() }
    }

    /// Method 8, no time, checksum and sizes: what a local header and an entry share.
    fn sizes(&self) -> Vec<u8> {
        let numbers = [self.crc, self.packed.len() as u32, self.size as u32];
        [&[8, 0, 0, 0, 0, 0][..], &numbers.map(u32::to_le_bytes).concat()].concat()
    }

    fn local(&self) -> Vec<u8> {
        [b"PK\x03\x04\x14\0\0\0", &self.sizes()[..], &[0; 4], &self.packed].concat()
    }

    fn entry(&self, name: &str, offset: u32) -> Vec<u8> {
        let head = [b"PK\x01\x02\x14\0\x14\0\0\0", &self.sizes()[..], &(name.len() as u16).to_le_bytes(), &[0; 12]];
        [&head.concat()[..], &offset.to_le_bytes(), name.as_bytes()].concat()
    }
}

/// Members one after another, each named by as many entries as it says.
fn archive(members: &[(&Member, usize)]) -> Vec<u8> {
    let (mut bytes, mut directory, mut n) = (Vec::new(), Vec::new(), 0u16);
    for (member, n_entries) in members {
        for _ in 0..*n_entries {
            directory.extend(member.entry(&format!("a{n}.npy"), bytes.len() as u32));
            n += 1;
        }
        bytes.extend(member.local());
    }
    let offset = (bytes.len() as u32).to_le_bytes();
    bytes.extend_from_slice(&directory);
    let counts = [n.to_le_bytes(), n.to_le_bytes()].concat();
    bytes.extend(
        [b"PK\x05\x06\0\0\0\0", &counts[..], &(directory.len() as u32).to_le_bytes(), &offset, &[0; 2]].concat(),
    );
    bytes
}

/// 1,000 names for one member of a megabyte: 63 kB that grew to a gigabyte.
#[test]
fn entries_over_the_same_bytes_are_refused() {
    let turn = Turn::take();
    let bytes = archive(&[(&Member::zeros(1 << 20), 1_000)]);
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    let error = turn.within(1 << 20, || npz::from_bytes(&bytes).unwrap_err());
    says(&error, &["`a0.npy`", "`a1.npy`", "overlap"]);
}

/// Members that lie apart and beside each other are no overlap.
#[test]
fn members_in_a_row_are_read() {
    let _turn = Turn::take();
    let (large, small) = (Member::zeros(1000), Member::zeros(3));
    let arrays = npz::from_bytes(&archive(&[(&large, 1), (&small, 1), (&large, 1)])).unwrap();
    let lengths: Vec<_> = arrays.iter().map(|(name, array)| (name.as_str(), array.len())).collect();
    assert_eq!(lengths, [("a0", 1000), ("a1", 3), ("a2", 1000)]);
}

#[test]
fn sizes_are_counted_before_anything_is_unpacked() {
    let turn = Turn::take();
    let member = Member::zeros(4 << 20);
    let bytes = archive(&[(&member, 1), (&member, 1), (&member, 1)]);
    // Two of the three would still be within the limit.
    let limits = Limits { unpacked_bytes: 10 << 20, ..Limits::default() };
    let error = turn.within(1 << 20, || npz::from_bytes_within(&bytes, &limits).unwrap_err());
    says(&error, &["3 members unpack to 12583", "the limit is 10485760", "`unpacked_bytes`", "Limits {"]);

    let limits = Limits { free_bytes: 1 << 20, ratio: 100, ..Limits::default() };
    let error = turn.within(1 << 20, || npz::from_bytes_within(&bytes, &limits).unwrap_err());
    says(&error, &["`ratio`", "the limit is 100"]);

    let limits = Limits { entries: 2, ..Limits::default() };
    says(&npz::from_bytes_within(&bytes, &limits).unwrap_err(), &["3 members", "the limit is 2 (`entries`)"]);
}

/// The limits of `Files` reach the reader, and the error names the file.
#[test]
fn a_dataset_has_the_limits_of_its_files() {
    let turn = Turn::take();
    let folder = Folder::new("npz");
    let path = folder.file("x.npz", archive(&[(&Member::zeros(4 << 20), 1)]));
    let limits = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
    let error = turn.within(1 << 20, || Dataset::from_npz(Files::new(&path).limits(limits)).spec().unwrap_err());
    says(&error, &["`unpacked_bytes`", "x.npz"]);
    assert_eq!(Dataset::from_npz(&path).spec().unwrap().len(), 1);
    let error = Dataset::from_npz([&path, &path]).spec().unwrap_err();
    says(&error, &["2 files", "expected one"]);
}

/// A directory of as many names as there can be: found equal or different without comparing each
/// with each.
#[test]
fn many_members_are_no_quadratic_work() {
    let _turn = Turn::take();
    let member = Member::zeros(0);
    let members = vec![(&member, 1); 65_535];
    let started = std::time::Instant::now();
    assert_eq!(npz::from_bytes(&archive(&members)).unwrap().len(), 65_535);
    assert!(started.elapsed().as_secs() < 60);
}
