//! Reading counts: terms ordered by frequency or by name. The order depends on nothing else.

use std::cmp::Reverse;

use super::TermCounts;
use crate::Strings;

impl TermCounts {
    /// The `k` most frequent terms with a count of at least `min_count`, and their counts. The most
    /// frequent come first; of equally frequent terms, the smaller comes first.
    pub fn top(&self, k: usize, min_count: u64) -> (Strings, Vec<u64>) {
        let mut places = self.places(|count| count >= min_count);
        let key = |&place: &Place| (Reverse(self.count_at(place)), self.term_at(place));
        if k < places.len() {
            places.select_nth_unstable_by(k, |a, b| key(a).cmp(&key(b)));
            places.truncate(k);
        }
        places.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        (self.strings(&places), places.iter().map(|&place| self.count_at(place)).collect())
    }

    /// All distinct terms in ascending order.
    pub fn distinct(&self) -> Strings {
        let mut places = self.places(|_| true);
        places.sort_unstable_by_key(|&place| self.term_at(place));
        self.strings(&places)
    }

    fn places(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<Place> {
        let mut places = Vec::new();
        for (shard, counts) in (0..).zip(self.shards.iter().map(|shard| shard.counts())) {
            places.extend(
                (0..).zip(counts).filter(|&(_, &count)| is_wanted(count)).map(|(number, _)| Place { shard, number }),
            );
        }
        places
    }

    fn term_at(&self, place: Place) -> &[u8] {
        self.shards[place.shard as usize].term(place.number as usize)
    }

    fn count_at(&self, place: Place) -> u64 {
        self.shards[place.shard as usize].counts()[place.number as usize]
    }

    fn strings(&self, places: &[Place]) -> Strings {
        places.iter().map(|&place| self.term_at(place)).collect()
    }
}

/// The position of a term.
#[derive(Clone, Copy)]
struct Place {
    shard: u32,
    number: u32,
}
