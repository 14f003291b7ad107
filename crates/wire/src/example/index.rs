//! A hash table, built once, from the names of features (as bytes) to their numbers.

/// An empty slot of the table.
const EMPTY: u32 = u32::MAX;

/// A table from names to their numbers.
#[derive(Debug)]
pub(super) struct Index {
    names: Vec<Box<[u8]>>,
    /// Open addressing, at most a quarter full.
    places: Box<[u32]>,
}

impl Index {
    /// Numbers the names in order. A duplicate name is returned as the error.
    pub(super) fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Index, N> {
        let names: Vec<N> = names.into_iter().collect();
        let n_places = (4 * names.len()).next_power_of_two();
        let mut index = Index { names: Vec::with_capacity(names.len()), places: vec![EMPTY; n_places].into() };
        for name in names {
            let bytes = name.as_ref().as_bytes();
            if index.find(bytes).is_some() {
                return Err(name);
            }
            let mut place = index.first_place(bytes);
            while index.places[place] != EMPTY {
                place = (place + 1) % n_places;
            }
            index.places[place] = index.names.len() as u32;
            index.names.push(bytes.into());
        }
        Ok(index)
    }

    /// Whether name number `i` is `name`.
    #[inline]
    pub(super) fn is(&self, i: usize, name: &[u8]) -> bool {
        self.names.get(i).is_some_and(|own| **own == *name)
    }

    /// The number of a name.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        let mut place = self.first_place(name);
        // Ends at an empty slot; most slots are empty.
        while self.places[place] != EMPTY {
            let i = self.places[place] as usize;
            if self.is(i, name) {
                return Some(i);
            }
            place = (place + 1) & (self.places.len() - 1);
        }
        None
    }

    #[inline]
    fn first_place(&self, name: &[u8]) -> usize {
        (hash(name) >> 32) as usize & (self.places.len() - 1)
    }
}

/// Hashes eight bytes at a time. Names of features come from the model and not from the data, so
/// nobody can force collisions.
#[inline]
fn hash(name: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |h: u64, word: u64| (h.rotate_left(25) ^ word).wrapping_mul(MULTIPLIER);
    let (words, tail) = name.as_chunks::<8>();
    let h = words.iter().fold(name.len() as u64, |h, word| mix(h, u64::from_le_bytes(*word)));
    let h = mix(h, tail.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    h ^ h >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_all_and_nothing_else() {
        let names: Vec<String> = (0..1000).map(|i| format!("{}feature{i}", "x".repeat(i % 20))).collect();
        let index = Index::new(&names).unwrap();
        for (i, name) in names.iter().enumerate() {
            assert_eq!(index.find(name.as_bytes()), Some(i));
            assert!(index.is(i, name.as_bytes()) && !index.is(i + 1, name.as_bytes()));
        }
        assert_eq!(index.find(b""), None);
        assert_eq!(index.find(b"feature1000"), None);
        assert_eq!(Index::new([""; 0]).unwrap().find(b"a"), None);
        assert_eq!(Index::new([""]).unwrap().find(b""), Some(0));
        assert_eq!(Index::new(["a", "b", "a"]).unwrap_err(), "a");
    }
}
