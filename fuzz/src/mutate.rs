//! Reproducible mutations of seeds, used by the ordinary tests of the fuzz targets.

/// A small pseudo-random generator.
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Returns a number below `n`, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % n.max(1) as u64) as usize
    }
}

/// Byte strings that break parsers: boundary values of bytes and varints, huge lengths, all tags of
/// the first fields.
const PIECES: [&[u8]; 16] = [
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x0a\x00",
    b"\x0b\x0c",
    b"\x12\x00",
    b"\x1a\x03\x0a\x01\x05",
    b"\x0d\x00\x00\xc0\x7f",
];

/// Returns one of the seeds with one to four mutations.
pub fn damaged(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = at + dice.below((bytes.len() - at).min(16) + 1);
        let piece = PIECES[dice.below(PIECES.len())];
        match dice.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            2 => drop(bytes.splice(at..end, piece.iter().copied())),
            3 => drop(bytes.splice(at..at, piece.iter().copied())),
            4 => drop(bytes.drain(at..end)),
            5 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            6 => bytes.truncate(at),
            _ => {
                let other = &seeds[dice.below(seeds.len())];
                let from = dice.below(other.len() + 1);
                let to = from + dice.below(other.len() - from + 1);
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
        }
    }
    bytes
}
