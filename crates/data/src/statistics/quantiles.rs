//! Quantiles of a stream of numbers: exact while there are few distinct values, then from a sketch
//! with a known error.
//!
//! Values are stored as keys: integers in the order of the numbers ([`key_of`]). So integers lose
//! no digits, and sorting is fast.

/// The largest number of distinct values that are kept with their counts.
const MAX_DISTINCT: usize = 1 << 16;

/// The number of values of one weight in the sketch; must be even.
const ROOM: usize = 1 << 13;

/// The key of a number, in the order of all numbers. The bit operation is its own inverse. Both
/// zeros have one key.
pub(super) fn key_of(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The number of a key.
pub(super) fn value_of(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// The keys seen so far.
#[derive(Debug)]
pub(super) enum Sketch {
    /// Distinct keys, sorted, with their counts.
    Counted(Vec<(i64, u64)>),
    /// Some of the keys, each with the weight of the values it represents.
    Compacted(Compactors),
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch::Counted(Vec::new())
    }
}

impl Sketch {
    /// Adds a sorted block.
    pub(super) fn absorb(&mut self, block: &[i64]) {
        match self {
            Sketch::Compacted(compactors) => compactors.add(0, block),
            Sketch::Counted(counted) => {
                *counted = merge(counted, block);
                if counted.len() > MAX_DISTINCT {
                    *self = Sketch::Compacted(Compactors::of(counted));
                }
            }
        }
    }

    /// The sorted keys, each with the number of values up to and including it, and the error bound
    /// of that number.
    pub(super) fn finish(self) -> Ranks {
        let (mut weighted, error) = match self {
            Sketch::Counted(counted) => (counted, 0),
            Sketch::Compacted(compactors) => (compactors.weighted(), compactors.error),
        };
        let mut end = 0;
        for (_, weight) in &mut weighted {
            end += *weight;
            *weight = end;
        }
        Ranks { ends: weighted, error }
    }
}

/// Merges counts of distinct keys with a sorted block.
fn merge(counted: &[(i64, u64)], block: &[i64]) -> Vec<(i64, u64)> {
    let mut merged = Vec::with_capacity(counted.len() + block.len());
    let mut old = counted.iter().copied().peekable();
    for equal in block.chunk_by(|a, b| a == b) {
        let key = equal[0];
        while let Some(entry) = old.next_if(|entry| entry.0 < key) {
            merged.push(entry);
        }
        let before = old.next_if(|entry| entry.0 == key).map_or(0, |entry| entry.1);
        merged.push((key, before + equal.len() as u64));
    }
    merged.extend(old);
    merged
}

/// The sketch. Level h holds keys of weight 2^h. When a level is full, it is sorted and every
/// second key moves one level up.
///
/// A move changes the number of values below any point by at most the weight of the level, in
/// either direction. `error` adds these up, so the bound always holds and is not one of
/// probability. A level is emptied once in `ROOM` of its weights, so `n` values make an error of at
/// most `n / ROOM` in each of 1 + log2(n / ROOM) levels: 0.2 % of 10^9 values. The choice between
/// odd and even keys alternates, so that errors of one level mostly cancel out.
#[derive(Debug, Default)]
pub(super) struct Compactors {
    levels: Vec<Level>,
    error: u64,
}

#[derive(Debug, Default)]
struct Level {
    keys: Vec<i64>,
    keeps_second: bool,
}

impl Compactors {
    /// Converts counted keys without error: a count is a sum of powers of two.
    fn of(counted: &[(i64, u64)]) -> Compactors {
        let mut compactors = Compactors::default();
        for level in 0..u64::BITS as usize {
            let keys: Vec<i64> =
                counted.iter().filter(|(_, count)| count >> level & 1 == 1).map(|&(key, _)| key).collect();
            keys.chunks(ROOM).for_each(|keys| compactors.add(level, keys));
        }
        compactors
    }

    fn add(&mut self, level: usize, keys: &[i64]) {
        if keys.is_empty() {
            return;
        }
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Level::default);
        }
        let Level { keys: kept, keeps_second } = &mut self.levels[level];
        kept.extend_from_slice(keys);
        if kept.len() < ROOM {
            return;
        }
        // The stable sort is fast on sorted runs that lie one after another, as they do here.
        kept.sort();
        let even = kept.len() & !1;
        let up: Vec<i64> = kept[..even].iter().skip(usize::from(*keeps_second)).step_by(2).copied().collect();
        kept.drain(..even);
        *keeps_second = !*keeps_second;
        self.error += 1 << level;
        self.add(level + 1, &up);
    }

    /// All keys, sorted, with their weights; equal keys are merged.
    fn weighted(&self) -> Vec<(i64, u64)> {
        let mut all: Vec<(i64, u64)> = Vec::new();
        for (level, Level { keys, .. }) in self.levels.iter().enumerate() {
            all.extend(keys.iter().map(|&key| (key, 1 << level)));
        }
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        all
    }
}

/// Keys by rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    /// Sorted keys, each with the number of values that are not greater.
    ends: Vec<(i64, u64)>,
    /// The error bound of a rank; 0 if all ranks are exact.
    pub(super) error: u64,
}

impl Ranks {
    /// The number of values.
    pub(super) fn n(&self) -> u64 {
        self.ends.last().map_or(0, |&(_, end)| end)
    }

    /// The number of distinct values, if it is known.
    pub(super) fn n_distinct(&self) -> Option<u64> {
        (self.error == 0).then_some(self.ends.len() as u64)
    }

    /// The key at a rank, from 0.
    pub(super) fn at(&self, rank: u64) -> Option<i64> {
        let i = self.ends.partition_point(|&(_, end)| end <= rank);
        self.ends.get(i).map(|&(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(values: impl Iterator<Item = i64>) -> Ranks {
        let mut sketch = Sketch::default();
        let values: Vec<i64> = values.collect();
        for block in values.chunks(4096) {
            let mut block = block.to_vec();
            block.sort_unstable();
            sketch.absorb(&block);
        }
        sketch.finish()
    }

    #[test]
    fn keys_keep_the_order_of_numbers() {
        let numbers =
            [f64::NEG_INFINITY, f64::MIN, -1.0, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY];
        let keys: Vec<i64> = numbers.iter().map(|&v| key_of(v)).collect();
        assert!(keys.is_sorted());
        assert!(numbers.iter().zip(keys).all(|(&v, key)| value_of(key) == v));
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    #[test]
    fn few_distinct_values_are_exact() {
        let ranks = sketch((0..1_000_000).map(|i| i % 1000));
        assert_eq!((ranks.n(), ranks.n_distinct(), ranks.error), (1_000_000, Some(1000), 0));
        // Each value has 1,000 ranks.
        assert_eq!([0, 999, 1000, 999_999].map(|rank| ranks.at(rank)), [0, 0, 1, 999].map(Some));
        assert_eq!(ranks.at(1_000_000), None);
    }

    /// A permutation of 0..2^22: the value of a rank is the rank.
    #[test]
    fn ranks_of_many_values_are_within_the_bound() {
        let n = 1u64 << 22;
        let orders: [fn(u64) -> u64; 4] =
            [|i| i, |i| (1 << 22) - 1 - i, |i| i.wrapping_mul(2_654_435_761), |i| i ^ (i >> 1)];
        for order in orders {
            let ranks = sketch((0..n).map(|i| (order(i) % n) as i64));
            assert_eq!((ranks.n(), ranks.n_distinct()), (n, None));
            // 2^22 / ROOM in each of the levels of weight 1 to 2^9: level h gets 2^22 / 2^h keys,
            // and ROOM is 2^13.
            assert!(ranks.error <= 10 * n / ROOM as u64 && ranks.error > 0, "{}", ranks.error);
            let wrong = (0..n).step_by(1009).map(|rank| ranks.at(rank).unwrap().abs_diff(rank as i64)).max().unwrap();
            assert!(wrong <= ranks.error, "{wrong} > {}", ranks.error);
        }
    }

    #[test]
    fn counts_survive_the_change_to_a_sketch() {
        // Value 7 a million times, then too many distinct ones.
        let ranks = sketch(std::iter::repeat_n(7, 1_000_000).chain(0..70_000));
        assert_eq!(ranks.n(), 1_070_000);
        assert_eq!(ranks.at(500_000), Some(7));
    }
}
