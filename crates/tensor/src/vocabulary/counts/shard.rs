//! A shard of the counts: the terms whose hashes belong to it, each with its count.

use crate::vocabulary::index::{Index, MAX_TERMS};
use crate::vocabulary::keyed_hash::KeyedHash;
use crate::vocabulary::terms::Text;
use crate::{Error, Result, StringSlice};

/// The distance, in strings, at which slots of the table are prefetched.
const AHEAD: usize = 8;

#[derive(Debug)]
pub(super) struct Shard {
    index: Index,
    text: Text,
    counts: Vec<u64>,
}

impl Shard {
    pub fn new(hash: KeyedHash) -> Shard {
        Shard { index: Index::empty(hash), text: Text::default(), counts: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn byte_len(&self) -> usize {
        self.text.byte_len()
    }

    pub fn term(&self, number: usize) -> &[u8] {
        self.text.get(number)
    }

    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.counts.iter().enumerate().map(|(number, &count)| (self.text.get(number), count))
    }

    #[inline]
    pub fn add(&mut self, hashed: u64, term: &[u8], n: u64) -> Result<()> {
        let Shard { index, text, counts } = self;
        if let Some(number) = index.find(hashed, |number| text.get(number) == term) {
            counts[number] = counts[number].saturating_add(n);
            return Ok(());
        }
        if counts.len() >= MAX_TERMS {
            return Err(Error::config("there are more distinct terms than can be counted").help("lower max_terms"));
        }
        text.push(term)?;
        let hash = index.hash;
        index.push(counts.len(), hashed, |number| hash.of(text.get(number)));
        counts.push(n);
        Ok(())
    }

    /// Counts some of the strings, given their hashes and their positions relative to `first`.
    pub fn add_all(&mut self, members: &[(u64, u32)], strings: StringSlice<'_>, first: usize) -> Result<()> {
        for (i, &(hashed, position)) in members.iter().enumerate() {
            if let Some(&(ahead, _)) = members.get(i + AHEAD) {
                self.index.prefetch(ahead);
            }
            self.add(hashed, strings.get(first + position as usize), 1)?;
        }
        Ok(())
    }

    pub fn count(&self, hashed: u64, term: &[u8]) -> u64 {
        self.index.find(hashed, |number| self.text.get(number) == term).map_or(0, |number| self.counts[number])
    }

    /// Subtracts `n` from every count, and removes terms whose count reaches zero.
    pub fn reduce(&mut self, n: u64) -> Result<()> {
        let mut rest = Shard::new(self.index.hash);
        for (term, count) in self.iter().filter(|&(_, count)| count > n) {
            rest.add(self.index.hash.of(term), term, count - n)?;
        }
        *self = rest;
        Ok(())
    }
}
