//! Partitioned variables. Each slice has its own index entry, under a key made of the name and the
//! slice.

use estimand_tensor::{Dims, element_count};
use estimand_wire::bundle::TensorSliceProto;

/// The first byte of the keys of slices; names never begin with it.
pub(super) const KEY_MARK: u8 = 0;

/// The key of a slice's entry: a zero, the name, the rank, then start and length per dimension.
/// Each is encoded so that bytes sort in the order of values.
pub(super) fn key(name: &str, slice: &TensorSliceProto) -> Vec<u8> {
    let mut key = vec![KEY_MARK];
    for byte in name.bytes() {
        match byte {
            0 => key.extend([0, 0xff]),
            0xff => key.extend([0xff, 0]),
            _ => key.push(byte),
        }
    }
    key.extend([0, 1]);
    let rank = slice.extent.len() as u64;
    let rank_len = 8 - rank.leading_zeros() as usize / 8;
    key.push(rank_len as u8);
    key.extend(&rank.to_be_bytes()[8 - rank_len..]);
    for extent in &slice.extent {
        put_ordered(extent.start, &mut key);
        put_ordered(extent.length.unwrap_or(-1), &mut key);
    }
    key
}

/// Appends a signed number in `n` bytes. The first `n` bits are ones (zeros if the number is
/// negative), and the value is in the rest.
fn put_ordered(value: i64, key: &mut Vec<u8>) {
    let magnitude = if value < 0 { !value } else { value } as u64;
    let bits = 64 - magnitude.leading_zeros() as usize;
    // n bytes hold n bits of length, one end bit that is also the sign, and 7 n - 1 bits of value.
    let n = bits / 7 + 1;
    let length_bits = ((1i128 << n) - 1) << (7 * n);
    key.extend(&(i128::from(value) ^ length_bits).to_be_bytes()[16 - n..]);
}

/// A block of a tensor: the first index and the size in each dimension.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Region {
    start: Dims,
    pub(super) size: Dims,
}

impl Region {
    /// The block of a slice in a tensor with these sizes; `None` if it does not lie inside.
    pub(super) fn of(slice: &TensorSliceProto, dims: &[usize]) -> Option<Region> {
        if slice.extent.len() != dims.len() {
            return None;
        }
        let (mut start, mut size) = (Dims::new(), Dims::new());
        for (extent, &dim) in slice.extent.iter().zip(dims) {
            let first = usize::try_from(extent.start).ok()?;
            let length = extent.length.map_or(Some(dim), |length| usize::try_from(length).ok())?;
            first.checked_add(length).filter(|&end| end <= dim)?;
            start.push(first);
            size.push(length);
        }
        Some(Region { start, size })
    }

    fn overlaps(&self, other: &Region) -> bool {
        (0..self.size.len())
            .all(|d| self.start[d] < other.start[d] + other.size[d] && other.start[d] < self.start[d] + self.size[d])
    }

    /// Copies the elements of the block to their places in the whole tensor.
    ///
    /// `part` must have the size of the region, and `whole` the size of the tensor `dims`.
    pub(super) fn place<T: Clone>(&self, part: &[T], whole: &mut [T], dims: &[usize]) {
        let Some((&run, outer)) = self.size.split_last() else {
            return whole.clone_from_slice(part);
        };
        if part.is_empty() {
            return;
        }
        let mut index = vec![0; outer.len()];
        for row in part.chunks_exact(run) {
            let first = index.iter().zip(&self.start).zip(dims).fold(0, |at, ((i, s), dim)| at * dim + i + s);
            let first = first * dims[dims.len() - 1] + self.start[outer.len()];
            whole[first..first + run].clone_from_slice(row);
            for (i, &size) in index.iter_mut().zip(outer).rev() {
                *i += 1;
                if *i < size {
                    break;
                }
                *i = 0;
            }
        }
    }
}

/// Whether the regions cover each of a tensor's `len` elements exactly once.
pub(super) fn is_partition(regions: &[Region], len: usize) -> bool {
    let covered = regions.iter().try_fold(0usize, |n, r| n.checked_add(element_count(&r.size).ok()?));
    covered == Some(len) && regions.iter().enumerate().all(|(i, a)| !regions[..i].iter().any(|b| a.overlaps(b)))
}

#[cfg(test)]
mod tests {
    use estimand_wire::bundle::Extent;

    use super::*;

    fn slice(extents: &[(i64, Option<i64>)]) -> TensorSliceProto {
        TensorSliceProto { extent: extents.iter().map(|&(start, length)| Extent { start, length }).collect() }
    }

    fn ordered(value: i64) -> Vec<u8> {
        let mut key = Vec::new();
        put_ordered(value, &mut key);
        key
    }

    #[test]
    fn ordered_numbers_by_hand() {
        // One byte holds -64..=63 around 0x80; then two bytes around 0xc000.
        assert_eq!(ordered(0), [0x80]);
        assert_eq!(ordered(63), [0xbf]);
        assert_eq!(ordered(-1), [0x7f]);
        assert_eq!(ordered(-64), [0x40]);
        assert_eq!(ordered(64), [0xc0, 0x40]);
        assert_eq!(ordered(-65), [0x3f, 0xbf]);
        // Four bytes: four ones and a zero come first.
        assert_eq!(ordered(0x42_4242), [0xf0, 0x42, 0x42, 0x42]);
        assert_eq!(ordered(-0x800), [0x38, 0x00]);
        // Ten bytes: ten ones and the end bit. The value does not overlap them.
        assert_eq!(ordered(i64::MAX), [0xff, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(ordered(i64::MIN), [0x00, 0x3f, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn order_of_bytes_is_order_of_values() {
        let mut values: Vec<i64> = (0..63).flat_map(|s| [1 << s, (1 << s) - 1, -(1 << s), -(1 << s) - 1]).collect();
        values.sort();
        values.dedup();
        assert!(values.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
    }

    #[test]
    fn key_by_hand() {
        let expected = b"\x00rows\x00\x01\x01\x02\x82\x81\x80\x7f";
        assert_eq!(key("rows", &slice(&[(2, Some(1)), (0, None)])), expected);
        assert_eq!(key("", &slice(&[])), b"\x00\x00\x01\x00");
    }

    #[test]
    fn blocks_find_their_place() {
        // A 3 x 4 matrix, split into columns 0-2 and column 3.
        let dims = [3, 4];
        let left = Region::of(&slice(&[(0, None), (0, Some(3))]), &dims).unwrap();
        let right = Region::of(&slice(&[(0, Some(3)), (3, Some(1))]), &dims).unwrap();
        assert!(is_partition(&[left.clone(), right.clone()], 12));
        let mut whole = [0; 12];
        left.place(&[0, 1, 2, 4, 5, 6, 8, 9, 10], &mut whole, &dims);
        right.place(&[3, 7, 11], &mut whole, &dims);
        assert_eq!(whole, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn gaps_overlaps_and_strays() {
        let dims = [4];
        let region = |start, length| Region::of(&slice(&[(start, Some(length))]), &dims);
        let whole = [region(0, 2).unwrap(), region(2, 2).unwrap()];
        assert!(is_partition(&whole, 4));
        assert!(!is_partition(&whole[..1], 4));
        assert!(!is_partition(&[region(0, 3).unwrap(), region(2, 1).unwrap()], 4));
        for (start, length) in [(3, 2), (-1, 2), (0, -1), (i64::MAX, i64::MAX)] {
            assert_eq!(region(start, length), None);
        }
        assert_eq!(Region::of(&slice(&[]), &dims), None);
    }
}
