//! The checksum of metadata blocks in newer files: Bob Jenkins' `lookup3`, with the seed 0.

/// Whether the checksum of some bytes is as expected.
// `.ci/fuzz` sets `fuzzing`.
#[allow(unexpected_cfgs)]
pub(crate) fn is_right(bytes: &[u8], expected: u32) -> bool {
    #[cfg(test)]
    if IGNORED.get() {
        return true;
    }
    // The fuzzer cannot guess checksums.
    cfg!(fuzzing) || lookup3(bytes) == expected
}

// Damaged blocks pass while this is set: tests want to see the code after the check.
#[cfg(test)]
std::thread_local! {
    pub(crate) static IGNORED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The checksum of some bytes.
fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    if bytes.is_empty() {
        return start;
    }
    // The last 1 to 12 bytes are mixed differently.
    let whole = (bytes.len() - 1) / 12 * 12;
    for block in bytes[..whole].chunks_exact(12) {
        add(&mut state, block);
        mix(&mut state);
    }
    let mut last = [0; 12];
    last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
    add(&mut state, &last);
    finish(&mut state);
    state[2]
}

fn add(state: &mut [u32; 3], block: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(block.chunks_exact(4)) {
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        *word = word.wrapping_add(number);
    }
}

/// Six rounds. A round changes one word by the two others.
fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for turns in [4, 6, 8, 16, 19, 4] {
        a = a.wrapping_sub(c) ^ c.rotate_left(turns);
        c = c.wrapping_add(b);
        // The next round has the words in the next places.
        (a, b, c) = (b, c, a);
    }
    *state = [a, b, c];
}

fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for turns in [14, 11, 25, 16, 4, 14, 24] {
        c = (c ^ b).wrapping_sub(b.rotate_left(turns));
        (a, b, c) = (b, c, a);
    }
    // Seven rounds leave the words one place further than two full turns.
    *state = [c, a, b];
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    /// The values are in the comments of Bob Jenkins' lookup3.c: `hashlittle` with the seed 0.
    #[test]
    fn known_checksums() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
