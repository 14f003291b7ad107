//! Packed files that would grow.

use std::io::Write;

use estimand_data::{Csv, Dataset, Files, Limits, npy};

use crate::memory::Turn;
use crate::{Folder, says};

/// A gzip member of 16 MiB of `byte` in 16 kB; members one after another are one file.
fn gzip(byte: u8) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![byte; 16 << 20]).unwrap();
    gzip.finish().unwrap()
}

fn zlib(byte: u8) -> Vec<u8> {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&vec![byte; 64 << 20]).unwrap();
    zlib.finish().unwrap()
}

/// A frame of blocks that each repeat one byte 128 KiB times, in four bytes: 4 MiB in 141.
fn zstd(byte: u8) -> Vec<u8> {
    // Magic; no content size, no checksum, a window of 1 MiB (exponent 10 above 2^10).
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 10 << 3];
    for i in 0..32u32 {
        // Last block, type 1 (repeat), size.
        let header = u32::from(i == 31) | 1 << 1 | (128 << 10) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(byte);
    }
    frame
}

#[test]
fn a_file_read_whole_stops_at_the_ratio() {
    let turn = Turn::take();
    let folder = Folder::new("whole");
    let limits = Limits { free_bytes: 1 << 20, ratio: 20, ..Limits::default() };
    for (name, bytes) in [("x.gz", gzip(0)), ("x.zlib", zlib(0)), ("x.zst", zstd(0))] {
        let path = folder.file(name, &bytes);
        let files = Files::new(&path).limits(limits);
        let error = turn.within(8 << 20, || files.read(&path).unwrap_err());
        says(&error, &[name, "the limit is 20 (`ratio`)", "Limits {"]);
    }
}

/// 1 GiB in a megabyte, which was read to its end.
#[test]
fn a_bomb_stops_with_the_defaults_and_in_little_memory_where_it_is_streamed() {
    let turn = Turn::take();
    let folder = Folder::new("streamed");
    let member = gzip(b'\n');
    let path = folder.file("x.csv.gz", [b"".as_slice(), &member.repeat(64)].concat());
    let csv = || Csv::new(&path).header(false).column_names(["a", "b"]).dataset();
    let error = turn.within(256 << 20, || csv().iter().find_map(Result::err).expect("an error"));
    says(&error, &["x.csv.gz", "(`ratio`)"]);
}

#[test]
fn a_file_read_whole_stops_at_the_bytes() {
    let turn = Turn::take();
    let folder = Folder::new("bytes");
    let path = folder.file("x.npy.gz", gzip(0));
    let limits = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
    let files = Files::new(&path).limits(limits);
    let error = turn.within(8 << 20, || Dataset::from_npy(files).spec().unwrap_err());
    says(&error, &["x.npy.gz", "the limit is 1048576 (`unpacked_bytes`)"]);
}

/// What people have is read: zeros pack well, and the first bytes are free.
#[test]
fn an_array_of_zeros_is_no_bomb() {
    let _turn = Turn::take();
    let folder = Folder::new("zeros");
    let path = folder.0.join("x.npy.gz");
    let zeros = estimand_tensor::Array::zeros(estimand_tensor::DType::U8, [64 << 20]).unwrap();
    npy::write(&path, &zeros).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
    assert_eq!(npy::read(&path).unwrap().len(), 64 << 20);
}

/// A stream may be longer than what fits into memory: only its ratio counts.
#[test]
fn a_long_stream_is_read() {
    let _turn = Turn::take();
    let folder = Folder::new("long");
    let rows: String = (0..400_000u64).map(|i| format!("{},{}\n", i.wrapping_mul(0x9e37_79b9) % 100_003, i)).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(rows.as_bytes()).unwrap();
    let path = folder.file("x.csv.gz", gzip.finish().unwrap());
    let limits = Limits { unpacked_bytes: 1000, free_bytes: 1000, ..Limits::default() };
    let csv = Csv::new(&path).limits(limits).header(false).column_names(["a", "b"]);
    let n_rows: usize = csv.dataset().batch(1000).iter().map(|batch| batch.unwrap().n_rows()).sum();
    assert_eq!(n_rows, 400_000);
}

/// A device never ends.
#[cfg(target_os = "linux")]
#[test]
fn a_device_is_read_up_to_the_limit() {
    let turn = Turn::take();
    let limits = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
    let files = Files::new("/dev/zero").limits(limits);
    let error = turn.within(8 << 20, || Dataset::from_npy(files).spec().unwrap_err());
    says(&error, &["/dev/zero", "(`unpacked_bytes`)"]);
}
