//! Dropping rare terms: how much to subtract from every count.

use std::sync::{Mutex, PoisonError};

use super::TermCounts;
use super::shard::Shard;
use crate::Result;
use crate::cpu::split::for_each_part;
use crate::parallel::Pool;

impl TermCounts {
    /// Drops rare terms if there are too many. About half of the allowed terms remain, so the next
    /// time is far away.
    ///
    /// Subtracting m from every count subtracts at least m from each of the more than
    /// `max_terms / 2` largest ones. So in a stream of n strings, no more than 2 n / `max_terms`
    /// can be subtracted in total.
    pub(super) fn make_room(&mut self, pool: &Pool) -> Result<()> {
        let n_bytes: usize = self.shards.iter().map(Shard::byte_len).sum();
        if self.len() <= self.max_terms && n_bytes <= self.max_bytes {
            return Ok(());
        }
        let reduction = reduction(&self.shards, self.max_terms.div_ceil(2), self.max_bytes / 2);
        self.undercount = self.undercount.saturating_add(reduction);
        let error = Mutex::new(None);
        for_each_part(pool, &mut self.shards, 1, &|_, shards| {
            for shard in shards {
                if let Err(what) = shard.reduce(reduction) {
                    error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
                }
            }
        });
        error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// The smallest number such that at most `n_terms` terms with at most `n_bytes` bytes have a larger
/// count.
fn reduction(shards: &[Shard], n_terms: usize, n_bytes: usize) -> u64 {
    let numbered = |shard: &'_ Shard| shard.iter().map(|(term, count)| (count, term.len())).collect::<Vec<_>>();
    let mut terms: Vec<(u64, usize)> = shards.iter().flat_map(numbered).collect();
    terms.sort_unstable_by(|a, b| b.cmp(a));
    // The count of the first term that does not fit. All terms with this count are dropped.
    let mut bytes = 0_usize;
    let fits = |(i, &(_, len)): (usize, &(u64, usize))| {
        bytes = bytes.saturating_add(len);
        i < n_terms && bytes <= n_bytes
    };
    let n_fit = terms.iter().enumerate().map(fits).take_while(|&fits| fits).count();
    terms.get(n_fit).map_or(0, |&(count, _)| count)
}
