//! Counts terms to learn a vocabulary: in parallel, in bounded memory, and always with the same
//! result.
//!
//! Terms are distributed to shards by hash. A shard counts its terms in the order they arrive, so
//! threads never share a count. `shard` holds one shard, `prune` makes room when there are too many
//! terms, `ranking` reads the result.

mod prune;
mod ranking;
mod shard;

use std::sync::{Mutex, PoisonError};

use super::keyed_hash::KeyedHash;
use crate::cpu::split::for_each_part;
use crate::parallel::Pool;
use crate::{Error, Result, StringSlice};
use shard::Shard;

/// The number of shards: enough for the threads of a large machine to finish together.
const SHARDS: usize = 32;

/// The number of terms is checked each time this number of strings has been read, counted from the
/// start of the stream. It is not checked after each batch, since the dropped terms must not depend
/// on how the stream is cut.
const CHECK: u64 = 65_536;

/// The number of strings that are sorted by shard at a time.
const SORTED: usize = 4096;

/// Counts how often terms occur in a stream of strings.
///
/// Counts are exact as long as there are at most `max_terms` distinct terms. Beyond that, rare
/// terms are dropped by the algorithm of Misra and Gries: a number is subtracted from every count,
/// and terms whose count reaches zero are dropped. A count is then too small by at most
/// [`undercount`](TermCounts::undercount). The undercount never exceeds twice the number of strings
/// seen divided by `max_terms`, unless [`max_bytes`](TermCounts::max_bytes) required more room. A
/// term that occurs more often than that is never missing.
///
/// ```
/// use estimand_tensor::{Strings, parallel::Pool, vocabulary::{TermCounts, Vocabulary}};
/// let words: Strings = ["b", "a", "b", "c", "a", "b"].into_iter().collect();
/// let mut counts = TermCounts::new(1_000_000)?;
/// counts.add(Pool::global(), words.as_slice())?;
/// let (terms, n) = counts.top(2, 1);
/// assert_eq!((&terms, n), (&["b", "a"].into_iter().collect(), vec![3, 2]));
/// let vocabulary = Vocabulary::from_strings(terms)?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct TermCounts {
    shards: Vec<Shard>,
    hash: KeyedHash,
    max_terms: usize,
    max_bytes: usize,
    n_seen: u64,
    undercount: u64,
}

impl TermCounts {
    /// Keeps at most `max_terms` distinct terms, plus up to 65,536 new ones between checks.
    pub fn new(max_terms: usize) -> Result<TermCounts> {
        if max_terms == 0 {
            return Err(Error::config("the largest number of terms is 0; expected at least 1"));
        }
        let hash = KeyedHash::random();
        let shards = (0..SHARDS).map(|_| Shard::new(hash)).collect();
        Ok(TermCounts { shards, hash, max_terms, max_bytes: 1 << 30, n_seen: 0, undercount: 0 })
    }

    /// Also makes room if the text of the terms has more bytes than this. By default, a gigabyte.
    pub fn max_bytes(self, max_bytes: usize) -> TermCounts {
        TermCounts { max_bytes, ..self }
    }

    /// Counts more strings. The result depends on all strings and their order. It depends neither
    /// on how they are split into calls nor on the number of threads.
    pub fn add(&mut self, pool: &Pool, strings: StringSlice<'_>) -> Result<()> {
        let mut start = 0;
        while start < strings.len() {
            let until_check = (CHECK - self.n_seen % CHECK) as usize;
            let end = strings.len().min(start.saturating_add(until_check));
            self.add_block(pool, strings.range(start..end))?;
            self.n_seen += (end - start) as u64;
            start = end;
            if self.n_seen.is_multiple_of(CHECK) {
                self.make_room(pool)?;
            }
        }
        Ok(())
    }

    /// Counts the strings between two checks: they are sorted by shard in parallel, then counted in
    /// parallel.
    fn add_block(&mut self, pool: &Pool, strings: StringSlice<'_>) -> Result<()> {
        let hash = self.hash;
        if strings.len() < SORTED {
            for string in strings {
                let hashed = hash.of(string);
                self.shards[shard_of(hashed)].add(hashed, string, 1)?;
            }
            return Ok(());
        }
        let mut groups = vec![Group::default(); strings.len().div_ceil(SORTED)];
        for_each_part(pool, &mut groups, 1, &|i, groups| {
            let first = i * SORTED;
            let range = strings.range(first..strings.len().min(first + SORTED));
            groups.fill_with(|| Group::sort(hash, range));
        });
        let error = Mutex::new(None);
        for_each_part(pool, &mut self.shards, 1, &|i, shards| {
            for shard in shards {
                let mut sections = groups.iter().enumerate();
                let result = sections.try_for_each(|(g, group)| shard.add_all(group.section(i), strings, g * SORTED));
                if let Err(what) = result {
                    error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
                }
            }
        });
        error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Adds the counts of another part of the stream.
    ///
    /// Strings seen and undercounts add up. Terms are then dropped if there are more than this
    /// value's limits allow.
    pub fn merge(&mut self, pool: &Pool, other: &TermCounts) -> Result<()> {
        for shard in &other.shards {
            for (term, count) in shard.iter() {
                let hashed = self.hash.of(term);
                self.shards[shard_of(hashed)].add(hashed, term, count)?;
            }
        }
        self.n_seen = self.n_seen.saturating_add(other.n_seen);
        self.undercount = self.undercount.saturating_add(other.undercount);
        self.make_room(pool)
    }

    /// The number of distinct terms kept.
    pub fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    /// Whether no terms are kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of strings counted.
    pub fn n_seen(&self) -> u64 {
        self.n_seen
    }

    /// The most by which a count may be too small, also that of a dropped term; 0 while counts are
    /// exact.
    pub fn undercount(&self) -> u64 {
        self.undercount
    }

    /// The count of one term; 0 if it is not kept.
    pub fn count(&self, term: &[u8]) -> u64 {
        let hashed = self.hash.of(term);
        self.shards[shard_of(hashed)].count(hashed, term)
    }
}

/// The shard of a hash. It uses bits that barely affect the position and the tag in a table.
#[inline(always)]
fn shard_of(hashed: u64) -> usize {
    (hashed >> 32) as usize % SHARDS
}

/// Up to [`SORTED`] strings, sorted by shard; within a shard they keep their order.
#[derive(Clone, Default)]
struct Group {
    /// Hash and position.
    members: Vec<(u64, u32)>,
    /// The start of each shard's members, followed by the end of the last.
    starts: Vec<u32>,
}

impl Group {
    fn sort(hash: KeyedHash, strings: StringSlice<'_>) -> Group {
        let hashes: Vec<u64> = strings.iter().map(|string| hash.of(string)).collect();
        let mut starts = vec![0; SHARDS + 1];
        hashes.iter().for_each(|&hashed| starts[shard_of(hashed) + 1] += 1);
        (0..SHARDS).for_each(|shard| starts[shard + 1] += starts[shard]);
        let mut next = starts.clone();
        let mut members = vec![(0, 0); hashes.len()];
        for (position, &hashed) in (0..).zip(&hashes) {
            let at = &mut next[shard_of(hashed)];
            members[*at as usize] = (hashed, position);
            *at += 1;
        }
        Group { members, starts }
    }

    fn section(&self, shard: usize) -> &[(u64, u32)] {
        &self.members[self.starts[shard] as usize..self.starts[shard + 1] as usize]
    }
}
