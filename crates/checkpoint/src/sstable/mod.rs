//! Sorted tables: TensorFlow's variant of LevelDB's immutable table file. The index of a checkpoint
//! has this format.
//!
//! ```text
//! table    data blocks, metaindex block (empty), index block, footer
//! stored   block, type (0 plain, 1 snappy), masked crc32c of both
//! block    entries in order of their keys, offsets of the restarts (u32 each), number of restarts (u32)
//! entry    length shared with the key before, length of the rest, length of the value (varints), rest of the key, value
//! index    a block whose keys separate the data blocks and whose values are their handles
//! handle   offset, size without type and checksum (varints)
//! footer   handle of the metaindex block, handle of the index block, zeros up to 40 bytes, magic number
//! ```
//!
//! An entry at a restart shares no bytes with the key before, so a search can begin there.

mod read;
mod snappy;
mod write;

use estimand_wire::varint;
pub use read::read;
pub use write::TableWriter;

const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const FOOTER_LEN: usize = 48;
/// The length of the type and checksum after each block.
const TRAILER_LEN: usize = 5;
const PLAIN: u8 = 0;
const SNAPPY: u8 = 1;

/// The offset and size of a block in the file.
#[derive(Clone, Copy)]
struct Handle {
    offset: u64,
    size: u64,
}

impl Handle {
    fn put(self, out: &mut Vec<u8>) {
        varint::put(self.offset, out);
        varint::put(self.size, out);
    }

    fn take(bytes: &mut &[u8]) -> Option<Handle> {
        Some(Handle { offset: varint::take(bytes)?, size: varint::take(bytes)? })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn written(pairs: &Pairs) -> Vec<u8> {
        let mut writer = TableWriter::new(Vec::new());
        for (key, value) in pairs {
            writer.add(key, value).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read_back(bytes: &[u8]) -> estimand_tensor::Result<Pairs> {
        read(Path::new("test.index"), bytes, &estimand_tensor::Limits::default())
    }

    #[test]
    fn bytes_by_hand() {
        let table = written(&vec![(b"ab".to_vec(), b"1".to_vec()), (b"ac".to_vec(), b"22".to_vec())]);
        // An entry (0 shared, 2 own, 1 value) "ab" "1"; an entry (1, 1, 2) "c" "22"; one restart at
        // 0; plain.
        assert_eq!(&table[..21], b"\x00\x02\x01ab1\x01\x01\x02c22\0\0\0\0\x01\0\0\0\x00");
        // Blocks of 20, 8 and 14 bytes with 5 each: the metaindex at 25, the index at 38. The
        // index's only key is the shortest that is not below "ac": "b".
        assert_eq!(&table[38..44], b"\x00\x01\x02b\x00\x14");
        let footer = &table[table.len() - 48..];
        assert_eq!(&footer[..5], [25, 8, 38, 14, 0]);
        assert_eq!(&footer[40..], [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb]);
    }

    #[test]
    fn many_blocks_round_trip() {
        let pairs: Pairs =
            (0..30_000).map(|i| (format!("scope/{i:08}").into_bytes(), vec![i as u8; (i % 60) as usize])).collect();
        let table = written(&pairs);
        assert!(table.len() > 3 * 262_144, "{} bytes should be several blocks", table.len());
        assert!(read_back(&table).unwrap() == pairs);
        assert_eq!(read_back(&written(&Vec::new())).unwrap(), Vec::new());
    }

    #[test]
    fn keys_must_ascend() {
        let mut writer = TableWriter::new(Vec::new());
        writer.add(b"", b"").unwrap();
        writer.add(b"b", b"").unwrap();
        assert!(writer.add(b"b", b"").is_err());
        assert!(writer.add(b"a", b"").is_err());
    }

    #[test]
    fn damage_is_an_error_that_names_the_file() {
        let table = written(&(0..40).map(|i| (format!("key{i:02}").into_bytes(), vec![i])).collect());
        for position in 0..table.len() {
            let mut damaged = table.clone();
            damaged[position] ^= 0x41;
            match read_back(&damaged) {
                Err(error) => assert!(error.to_string().contains("test.index"), "{error}"),
                // A change in the padding of the footer or in the metaindex has no effect.
                Ok(pairs) => assert!(pairs == read_back(&table).unwrap(), "byte {position}"),
            }
            assert!(read_back(&table[..position]).is_err(), "cut to {position}");
        }
    }

    #[test]
    fn damage_with_a_right_checksum_is_never_a_panic() {
        let table = written(&(0..40).map(|i| (format!("key{i:02}").into_bytes(), vec![i])).collect());
        let mut footer = &table[table.len() - FOOTER_LEN..];
        let (metaindex, index) = (Handle::take(&mut footer).unwrap(), Handle::take(&mut footer).unwrap());
        let data = Handle { offset: 0, size: metaindex.offset - TRAILER_LEN as u64 };
        for block in [data, index] {
            let (start, end) = (block.offset as usize, (block.offset + block.size) as usize);
            for position in start..=end {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = table.clone();
                    damaged[position] = byte;
                    let checksum = estimand_wire::crc::masked_crc32c(&damaged[start..=end]);
                    damaged[end + 1..end + TRAILER_LEN].copy_from_slice(&checksum.to_le_bytes());
                    let _ = read_back(&damaged);
                }
            }
        }
    }

    #[test]
    fn blocks_must_not_overlap() {
        // Two index entries for one block: a file must not make a reader read it without end.
        let mut writer = TableWriter::new(Vec::new());
        writer.add(b"a", b"1").unwrap();
        let table = writer.finish().unwrap();
        // The block: 5 bytes of entry, 8 of restarts, 5 of trailer.
        let handle = [0, 13];
        let mut index = vec![0, 1, 2, b'b'];
        index.extend(handle);
        index.extend([0, 1, 2, b'c']);
        index.extend(handle);
        index.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        let mut bad = table[..18].to_vec();
        let offset = bad.len() as u64;
        let size = index.len() as u64;
        index.push(PLAIN);
        let crc = estimand_wire::crc::masked_crc32c(&index);
        bad.extend(index);
        bad.extend(crc.to_le_bytes());
        let mut footer = Vec::new();
        Handle { offset: 0, size: 0 }.put(&mut footer);
        Handle { offset, size }.put(&mut footer);
        footer.resize(40, 0);
        bad.extend(footer);
        bad.extend(MAGIC.to_le_bytes());
        let error = read_back(&bad).unwrap_err();
        assert!(error.to_string().contains("overlap"), "{error}");
    }
}
