//! Byte strings in one piece of memory: offsets and bytes.

/// A list of byte strings. Not necessarily UTF-8: what a file holds is kept as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strings {
    /// One longer than the list; string `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<u64>,
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// An empty list with room for `n` strings.
    pub fn with_capacity(n: usize) -> Strings {
        let mut offsets = Vec::with_capacity(n + 1);
        offsets.push(0);
        Strings { offsets, bytes: Vec::new() }
    }

    /// Appends one string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.offsets.push(self.bytes.len() as u64);
    }

    /// Appends all strings of another list.
    pub fn append(&mut self, other: &Strings) {
        let shift = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&other.bytes);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| offset + shift));
    }

    /// Keeps the first `n` strings; does nothing if there are no more.
    pub fn truncate(&mut self, n: usize) {
        if n < self.len() {
            self.offsets.truncate(n + 1);
            self.bytes.truncate(self.offsets[n] as usize);
        }
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The string at an index.
    ///
    /// # Panics
    /// If there is no such string, as indexing a slice does.
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Strings {
        let mut all = Strings::default();
        for s in strings {
            all.push(s.as_ref());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn append_and_truncate() {
        let mut all: Strings = ["a", "", "bc"].into_iter().collect();
        all.append(&["", "def"].into_iter().collect());
        assert_eq!(all.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc", b"", b"def"]);
        all.truncate(3);
        all.truncate(7);
        assert_eq!(all, ["a", "", "bc"].into_iter().collect());
        all.append(&Strings::with_capacity(4));
        assert_eq!(all.len(), 3);
    }
}
