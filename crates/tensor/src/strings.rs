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
    /// Appends one string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.offsets.push(self.bytes.len() as u64);
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
