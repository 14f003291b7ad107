//! The arena layout: buffers that are alive at the same time never overlap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use estimand_graph::looks::look;

/// Buffers are aligned to cache lines.
const ALIGN: usize = 64;

/// The largest number of buffers that are compared pairwise. More buffers are placed in order of
/// time, which wastes slightly more memory.
const MAX_COMPARED: usize = 1024;

/// The steps during which a buffer is in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub first: usize,
    pub last: usize,
}

/// Returns offsets for buffers of these capacities and the total size. Buffers that are alive at
/// the same time do not overlap. `None` if the total exceeds the address space.
pub(crate) fn arrange(lifetimes: &[Lifetime], capacities: &[usize]) -> Option<(Vec<usize>, usize)> {
    let order: Vec<usize> = (0..lifetimes.len()).filter(|&i| capacities[i] > 0).collect();
    let mut offsets = vec![0; lifetimes.len()];
    let total = match order.len() <= MAX_COMPARED {
        true => largest_first(lifetimes, capacities, order, &mut offsets),
        false => in_time(lifetimes, capacities, order, &mut offsets),
    };
    // An allocation is limited to `isize::MAX` bytes.
    total.filter(|&total| isize::try_from(total).is_ok()).map(|total| (offsets, total))
}

/// Places the largest buffers first, each at the lowest offset that is free during its lifetime.
fn largest_first(
    lifetimes: &[Lifetime],
    capacities: &[usize],
    mut order: Vec<usize>,
    offsets: &mut [usize],
) -> Option<usize> {
    order.sort_by_key(|&i| (Reverse(capacities[i]), i));
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for i in order {
        look(placed.len());
        let together =
            |j: &&usize| lifetimes[**j].first <= lifetimes[i].last && lifetimes[i].first <= lifetimes[**j].last;
        let mut taken: Vec<(usize, usize)> =
            placed.iter().filter(together).map(|&j| (offsets[j], offsets[j] + capacities[j])).collect();
        taken.sort_unstable();
        let mut at: usize = 0;
        for (begin, end) in taken {
            if at.checked_add(capacities[i])? <= begin {
                break;
            }
            at = at.max(end.checked_next_multiple_of(ALIGN)?);
        }
        offsets[i] = at;
        total = total.max(at.checked_add(capacities[i])?);
        placed.push(i);
    }
    Some(total)
}

/// Places buffers in the order of their first use, each in the smallest gap that is large enough.
fn in_time(
    lifetimes: &[Lifetime],
    capacities: &[usize],
    mut order: Vec<usize>,
    offsets: &mut [usize],
) -> Option<usize> {
    order.sort_by_key(|&i| (lifetimes[i].first, Reverse(capacities[i]), i));
    let mut gaps = Gaps::default();
    let mut alive: BinaryHeap<Reverse<(usize, usize, usize)>> = BinaryHeap::new();
    for i in order {
        look(1);
        while let Some(&Reverse((last, offset, len))) = alive.peek()
            && last < lifetimes[i].first
        {
            look(1);
            alive.pop();
            gaps.give_back(offset, len);
        }
        let len = capacities[i].checked_next_multiple_of(ALIGN)?;
        offsets[i] = gaps.take(len)?;
        alive.push(Reverse((lifetimes[i].last, offsets[i], len)));
    }
    Some(gaps.end)
}

/// The free gaps below the end of the used space.
#[derive(Default)]
struct Gaps {
    by_offset: BTreeMap<usize, usize>,
    by_len: BTreeSet<(usize, usize)>,
    end: usize,
}

impl Gaps {
    fn take(&mut self, len: usize) -> Option<usize> {
        if let Some(&(gap, offset)) = self.by_len.range((len, 0)..).next() {
            self.remove(offset, gap);
            if gap > len {
                self.insert(offset + len, gap - len);
            }
            return Some(offset);
        }
        // If the last gap reaches the end, it grows.
        let offset = match self.by_offset.last_key_value() {
            Some((&offset, &gap)) if offset + gap == self.end => {
                self.remove(offset, gap);
                offset
            }
            _ => self.end,
        };
        self.end = offset.checked_add(len)?;
        Some(offset)
    }

    /// Frees a range and merges it with the gaps around it.
    fn give_back(&mut self, mut offset: usize, mut len: usize) {
        if let Some((&before, &gap)) = self.by_offset.range(..offset).next_back()
            && before + gap == offset
        {
            self.remove(before, gap);
            (offset, len) = (before, gap + len);
        }
        if let Some(&gap) = self.by_offset.get(&(offset + len)) {
            self.remove(offset + len, gap);
            len += gap;
        }
        self.insert(offset, len);
    }

    fn insert(&mut self, offset: usize, len: usize) {
        self.by_offset.insert(offset, len);
        self.by_len.insert((len, offset));
    }

    fn remove(&mut self, offset: usize, len: usize) {
        self.by_offset.remove(&offset);
        self.by_len.remove(&(len, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_lives_get_distinct_places() {
        // 0 and 1 live together, 2 only after 0 has died.
        let lives = [(0, 1), (1, 2), (2, 3)].map(|(first, last)| Lifetime { first, last });
        let (offsets, total) = arrange(&lives, &[128, 128, 128]).unwrap();
        assert_eq!((offsets[0], offsets[2], total), (0, 0, 256));
        assert_eq!(offsets[1], 128);
        assert!(arrange(&lives, &[1 << 62, 1 << 62, 1 << 62]).is_none());
        let mut offsets = vec![0; 3];
        assert_eq!(in_time(&lives, &[128, 128, 128], vec![0, 1, 2], &mut offsets), Some(256));
        assert_eq!(offsets, [0, 128, 0]);
    }

    #[test]
    fn many_buffers_never_overlap_and_waste_little() {
        // Lifetimes and capacities from a linear congruential generator, enough of them to be
        // placed in order of time.
        let mut dice = 1u64;
        let mut roll = |n: usize| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as usize % n
        };
        let n = 3 * MAX_COMPARED;
        let lives: Vec<Lifetime> =
            (0..n).map(|i| Lifetime { first: i, last: i + roll(if i % 7 == 0 { 300 } else { 3 }) }).collect();
        let capacities: Vec<usize> = (0..n).map(|_| 64 << roll(8)).collect();
        let (offsets, total) = arrange(&lives, &capacities).unwrap();
        let alive = |step: usize| {
            let lives = &lives;
            (0..n).filter(move |&i| (lives[i].first..=lives[i].last).contains(&step))
        };
        let mut most = 0;
        for step in 0..n {
            let mut ranges: Vec<(usize, usize)> =
                alive(step).map(|i| (offsets[i], offsets[i] + capacities[i])).collect();
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "step {step}: {ranges:?}");
            most = most.max(ranges.iter().map(|(begin, end)| end - begin).sum());
        }
        // No layout needs less than the maximum that is alive at the same time.
        assert!(total >= most && total <= most * 3 / 2, "{total} bytes for {most}");
    }
}
