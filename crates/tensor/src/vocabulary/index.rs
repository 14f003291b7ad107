//! The hash table from terms to their numbers: open addressing, with tag and number in one word.
//!
//! The table does not hold the terms; the caller compares them. It takes 12 bytes per term, at a
//! load of two thirds.

use super::keyed_hash::KeyedHash;

/// The number of terms whose cache lines are prefetched together.
const BLOCK: usize = 32;

/// A table of the numbers `0..n`.
#[derive(Debug)]
pub(super) struct Index {
    /// `tag << 32 | number + 1`; 0 is free. Linear probing.
    slots: Vec<u64>,
    pub hash: KeyedHash,
}

/// Two equal terms.
#[derive(Debug)]
pub(super) struct Duplicate {
    pub first: usize,
    pub second: usize,
}

/// The largest number of terms in one table.
pub(super) const MAX_TERMS: usize = u32::MAX as usize - 1;

impl Index {
    /// Builds the table of `n` terms, at most [`MAX_TERMS`]. `hash_of` returns the hash of a term,
    /// `is_equal` compares two terms.
    pub fn build(
        n: usize,
        hash: KeyedHash,
        hash_of: impl Fn(usize) -> u64,
        is_equal: impl Fn(usize, usize) -> bool,
    ) -> Result<Index, Duplicate> {
        let mut index = Index { slots: vec![0; slots_for(n)], hash };
        let mut hashes = [0; BLOCK];
        for start in (0..n).step_by(BLOCK) {
            let numbers = start..n.min(start + BLOCK);
            for (number, hash) in numbers.clone().zip(&mut hashes) {
                *hash = hash_of(number);
                index.prefetch(*hash);
            }
            for (number, &hash) in numbers.zip(&hashes) {
                index.insert(hash, number, &is_equal)?;
            }
        }
        Ok(index)
    }

    /// An empty table that grows with [`push`](Index::push).
    pub fn empty(hash: KeyedHash) -> Index {
        Index { slots: vec![0; slots_for(0)], hash }
    }

    /// Adds the number `n` to a table that holds the numbers below `n`. The term must not be in the
    /// table yet. `hash_of` returns the hash of any number.
    pub fn push(&mut self, n: usize, hash: u64, hash_of: impl Fn(usize) -> u64) {
        if slots_for(n + 1) > self.slots.len() {
            self.slots = vec![0; slots_for(2 * n + 8)];
            (0..n).for_each(|number| self.place(hash_of(number), number));
        }
        self.place(hash, n);
    }

    fn place(&mut self, hash: u64, number: usize) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.next(at);
        }
        self.slots[at] = slot_of(hash, number);
    }

    fn insert(&mut self, hash: u64, number: usize, is_equal: impl Fn(usize, usize) -> bool) -> Result<(), Duplicate> {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            let first = number_of(self.slots[at]);
            if self.slots[at] >> 32 == hash & TAG && is_equal(first, number) {
                return Err(Duplicate { first, second: number });
            }
            at = self.next(at);
        }
        self.slots[at] = slot_of(hash, number);
        Ok(())
    }

    /// The number of the term with this hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let number = self.candidate_from(&mut at, hash)?;
            if is_it(number) {
                return Some(number);
            }
        }
    }

    /// The first number with the tag of this hash. There is rarely another one.
    #[inline(always)]
    pub fn candidate(&self, hash: u64) -> Option<usize> {
        self.candidate_from(&mut self.home(hash), hash)
    }

    #[inline(always)]
    fn candidate_from(&self, at: &mut usize, hash: u64) -> Option<usize> {
        loop {
            let slot = self.slots[*at];
            if slot == 0 {
                return None;
            }
            *at = self.next(*at);
            if slot >> 32 == hash & TAG {
                return Some(number_of(slot));
            }
        }
    }

    /// Prefetches the slots of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(self.slots.as_ptr().wrapping_add(self.home(hash)));
    }

    /// The slot where the search for a hash starts: its upper half as a fraction of the table. The
    /// tag is its lower half.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    pub fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

const TAG: u64 = 0xffff_ffff;

/// The number of slots for `n` terms: two thirds are used.
fn slots_for(n: usize) -> usize {
    n + n / 2 + 8
}

#[inline(always)]
fn slot_of(hash: u64, number: usize) -> u64 {
    (hash & TAG) << 32 | (number as u64 + 1)
}

#[inline(always)]
fn number_of(slot: u64) -> usize {
    (slot & 0xffff_ffff) as usize - 1
}

/// Prefetches the cache line at an address.
#[inline(always)]
pub(super) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch may name any address and accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All terms have the same slot and tag: slow, but correct.
    #[test]
    fn collisions_are_told_apart() {
        for hash in [0, u64::MAX, 1 << 63] {
            let index = Index::build(100, KeyedHash::random(), |_| hash, |a, b| a == b).unwrap();
            for number in 0..100 {
                assert_eq!(index.find(hash, |n| n == number), Some(number));
            }
            assert_eq!(index.find(hash, |_| false), None);
            assert_eq!(index.find(hash ^ 1, |_| true), None);
        }
    }

    #[test]
    fn the_first_of_two_equal_terms_is_named() {
        let terms = [5, 3, 7, 3];
        let duplicate = Index::build(4, KeyedHash::random(), |i| terms[i], |a, b| terms[a] == terms[b]).unwrap_err();
        assert_eq!((duplicate.first, duplicate.second), (1, 3));
    }

    #[test]
    fn a_growing_table_keeps_what_it_has() {
        let hash = KeyedHash::random();
        let hash_of = |i: usize| hash.of_int(i as i64);
        let mut index = Index::empty(hash);
        for n in 0..1000 {
            assert_eq!(index.find(hash_of(n), |i| i == n), None);
            index.push(n, hash_of(n), hash_of);
            assert!((0..=n).all(|i| index.find(hash_of(i), |j| j == i) == Some(i)));
        }
    }

    #[test]
    fn an_empty_table_finds_nothing() {
        let index = Index::build(0, KeyedHash::random(), |_| 0, |_, _| true).unwrap();
        assert_eq!(index.find(7, |_| true), None);
    }
}
