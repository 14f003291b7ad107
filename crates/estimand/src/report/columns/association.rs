//! Measures how well one column predicts another, as the share of wrong guesses that it avoids.

use std::collections::HashMap;

use super::table::{Column, MISSING};

/// Values with fewer rows than this are grouped together: a single row always predicts its own
/// label.
const SUPPORT: usize = 5;
/// Numbers with more distinct values than this are split into about this number of ranges.
const MAX_GROUPS: usize = 256;
/// The group of rare values.
const RARE: u32 = MISSING - 1;

/// Returns the group of each row, by value or by range of a number. Missing values form a group,
/// and so do rare values.
pub(super) fn groups(column: &Column) -> Vec<u32> {
    let has_rare = column.values.values().any(|&n| n < SUPPORT);
    if column.is_number() && (has_rare || column.values.len() > MAX_GROUPS) {
        return ranges(&column.numbers);
    }
    let is_rare = |code: u32| column.values.get_index(code as usize).is_some_and(|(_, &n)| n < SUPPORT);
    column.codes.iter().map(|&code| if is_rare(code) { RARE } else { code }).collect()
}

/// Splits numbers into ranges with about the same number of rows; equal numbers share a range.
fn ranges(numbers: &[f64]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..numbers.len()).filter(|&row| !numbers[row].is_nan()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    let size = SUPPORT.max(order.len() / MAX_GROUPS);
    let mut groups = vec![MISSING; numbers.len()];
    let (mut group, mut n, mut last) = (0, 0, f64::NAN);
    for row in order {
        if n >= size && numbers[row] != last {
            (group, n) = (group + 1, 0);
        }
        groups[row] = group;
        (n, last) = (n + 1, numbers[row]);
    }
    groups
}

/// The share of right guesses of classes, without and with the groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Guesses {
    pub(super) without: f64,
    pub(super) with: f64,
}

impl Guesses {
    /// Guesses the most frequent class of all rows, and the most frequent class of each group. Rows
    /// without a class do not count.
    pub(super) fn of(groups: &[u32], classes: &[u32]) -> Guesses {
        let mut pairs: HashMap<(u32, u32), usize> = HashMap::new();
        let mut totals: HashMap<u32, usize> = HashMap::new();
        for (&group, &class) in groups.iter().zip(classes).filter(|(_, class)| **class != MISSING) {
            *pairs.entry((group, class)).or_default() += 1;
            *totals.entry(class).or_default() += 1;
        }
        let n: usize = totals.values().sum();
        let mut best: HashMap<u32, usize> = HashMap::new();
        for (&(group, _), &n) in &pairs {
            let most = best.entry(group).or_default();
            *most = n.max(*most);
        }
        let share = |n_right: usize| n_right as f64 / n.max(1) as f64;
        let without = totals.values().max().copied().unwrap_or(0);
        Guesses { without: share(without), with: share(best.values().sum()) }
    }

    /// The share of wrong guesses that the groups avoid.
    pub(super) fn saved(self) -> f64 {
        if self.without < 1.0 { (self.with - self.without) / (1.0 - self.without) } else { 0.0 }
    }
}

/// Returns the share of the variance of numbers that their groups explain.
pub(super) fn explained(groups: &[u32], numbers: &[f64]) -> f64 {
    let rows = || groups.iter().zip(numbers).filter(|(_, number)| number.is_finite());
    let n = rows().count() as f64;
    let mean = rows().map(|(_, number)| number).sum::<f64>() / n;
    let total: f64 = rows().map(|(_, number)| (number - mean).powi(2)).sum();
    let mut sums: HashMap<u32, (f64, f64)> = HashMap::new();
    for (&group, &number) in rows() {
        let (n, sum) = sums.entry(group).or_default();
        (*n, *sum) = (*n + 1.0, *sum + number);
    }
    let guess = |group: &u32| sums.get(group).map_or(mean, |(n, sum)| sum / n);
    let left: f64 = rows().map(|(group, number)| (number - guess(group)).powi(2)).sum();
    if total > 0.0 { 1.0 - left / total } else { 0.0 }
}

/// Returns Pearson's correlation of two lists of numbers, over the rows that have both; 0 if one of
/// them does not vary.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let rows = || a.iter().zip(b).filter(|(a, b)| a.is_finite() && b.is_finite());
    let n = rows().count() as f64;
    let (sum_a, sum_b) = rows().fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
    let (mean_a, mean_b) = (sum_a / n, sum_b / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in rows() {
        let (a, b) = (a - mean_a, b - mean_b);
        (ab, aa, bb) = (ab + a * b, aa + a * a, bb + b * b);
    }
    if aa > 0.0 && bb > 0.0 { ab / (aa.sqrt() * bb.sqrt()) } else { 0.0 }
}

/// Returns the share of pairs of a true and a false row in which the true row has the larger
/// number; ties count half. Also returns the count of rows that have a number. `None` if fewer than
/// five rows are true, or fewer than five are false.
pub(super) fn auc(numbers: &[f64], truth: &[Option<bool>]) -> Option<(f64, usize)> {
    let mut rows: Vec<(f64, bool)> =
        numbers.iter().zip(truth).filter_map(|(&x, &y)| Some((x, y?))).filter(|(x, _)| !x.is_nan()).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n_true = rows.iter().filter(|(_, y)| *y).count();
    let n_false = rows.len() - n_true;
    if n_true.min(n_false) < SUPPORT {
        return None;
    }
    // Count in halves, so that all counts are whole numbers.
    let (mut won, mut n_below) = (0_u64, 0_u64);
    for equal in rows.chunk_by(|a, b| a.0 == b.0) {
        let trues = equal.iter().filter(|(_, y)| *y).count() as u64;
        let falses = equal.len() as u64 - trues;
        won += trues * (2 * n_below + falses);
        n_below += falses;
    }
    Some((won as f64 / (2.0 * n_true as f64 * n_false as f64), rows.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight rows of classes 0 and 1: 5 and 3, so without groups 5/8 of the guesses are right.
    /// Group 0 has classes 0 0 0 1, group 1 has 0 1 1, and one row of class 0 is alone: with groups
    /// (3 + 2 + 1) / 8, which saves 1/8 of 3/8.
    #[test]
    fn guesses_by_hand() {
        let groups = [0, 0, 0, 0, 1, 1, 1, RARE, 0];
        let classes = [0, 0, 0, 1, 0, 1, 1, 0, MISSING];
        let guesses = Guesses::of(&groups, &classes);
        assert_eq!(guesses, Guesses { without: 5.0 / 8.0, with: 6.0 / 8.0 });
        assert!((guesses.saved() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Guesses::of(&[0, 1], &[0, 0]).saved(), 0.0);
        assert_eq!(Guesses::of(&[], &[]).saved(), 0.0);
    }

    /// Numbers 1 3 | 5 7 in two groups: mean 4, squares 9 + 1 + 1 + 9 = 20; within the groups 1 +
    /// 1 + 1 + 1 = 4.
    #[test]
    fn explained_variance_by_hand() {
        assert!((explained(&[0, 0, 1, 1], &[1.0, 3.0, 5.0, 7.0]) - 0.8).abs() < 1e-12);
        assert_eq!(explained(&[0, 1], &[2.0, 2.0]), 0.0);
        assert_eq!(explained(&[0, 1], &[f64::NAN, f64::NAN]), 0.0);
    }

    /// Of 5 x 5 pairs: true 1 2 3 4 9, false 0 0 0 0 2. 1 beats 4; 2 beats 4 and is equal to one;
    /// 3, 4 and 9 beat 5 each.
    #[test]
    fn auc_by_hand() {
        let numbers = [1.0, 2.0, 3.0, 4.0, 9.0, 0.0, 0.0, -0.0, 0.0, 2.0, f64::NAN, 7.0];
        let truth: Vec<Option<bool>> =
            (0..12).map(|row| if row == 11 { None } else { Some(row < 5 || row == 10) }).collect();
        assert_eq!(auc(&numbers, &truth), Some((23.5 / 25.0, 10)));
        assert_eq!(auc(&numbers[..4], &truth[..4]), None);
    }

    #[test]
    fn correlation_by_hand() {
        assert!((correlation(&[1.0, 2.0, 3.0, f64::NAN], &[-2.0, -4.0, -6.0, 1.0]) + 1.0).abs() < 1e-12);
        // Deviations -1 0 1 and -1 2 -1: no sum of products.
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[0.0, 3.0, 0.0]), 0.0);
        assert_eq!(correlation(&[1.0, 1.0], &[0.0, 3.0]), 0.0);
    }

    #[test]
    fn ranges_keep_equal_numbers_together() {
        let numbers: Vec<f64> = (0..12).map(|i| f64::from(i / 7)).chain([f64::NAN]).collect();
        let groups = ranges(&numbers);
        assert_eq!(groups, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, MISSING]);
    }
}
