//! Combines embedding rows by ragged row: the sum, mean or "sqrtn" of the rows that each example
//! looks up, and the gradient.
//!
//! Row `b` of the result combines `rows[index[n]]` for `n` in `splits[b]..splits[b + 1]`, in that
//! order, in one task. An empty row is zero.

use std::fmt;

use super::index::{self, Id};
use super::scatter::Cut;
use super::split::for_each_rows;
use crate::parallel::{DisjointMut, Pool};

/// The number of columns that are added up in registers.
const COLUMNS: usize = 16;
/// The number of rows that are added up before they join the total.
const GROUP: usize = 8;

/// The way the rows that an example looks up are combined. With weights `w`, the sum is `sum(w x)`;
/// it is divided by `sum(w)` for the mean and by `sqrt(sum(w^2))` for sqrtn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Combiner {
    /// The sum of the rows.
    Sum,
    /// The mean of the rows.
    #[default]
    Mean,
    /// The sum divided by the square root of the number of rows.
    SqrtN,
}

impl Combiner {
    /// TensorFlow's name of the combiner.
    pub fn tf_name(self) -> &'static str {
        match self {
            Combiner::Sum => "sum",
            Combiner::Mean => "mean",
            Combiner::SqrtN => "sqrtn",
        }
    }

    /// The divisor for the sum of `n` rows with these weights (by default 1 each).
    pub fn divisor(self, n: usize, weights: Option<&[f32]>) -> f32 {
        match (self, weights) {
            (Combiner::Sum, _) => 1.0,
            (Combiner::Mean, None) => n as f32,
            (Combiner::SqrtN, None) => (n as f32).sqrt(),
            (Combiner::Mean, Some(w)) => w.iter().sum(),
            (Combiner::SqrtN, Some(w)) => w.iter().map(|w| w * w).sum::<f32>().sqrt(),
        }
    }
}

/// The lookups of a batch, by ragged row.
#[derive(Clone, Copy)]
pub struct Lookups<'a, I> {
    /// The row that each lookup reads.
    pub index: &'a [I],
    /// The start of each ragged row, followed by the number of lookups.
    pub splits: &'a [i64],
    /// The weight of each lookup.
    pub weights: Option<&'a [f32]>,
}

/// The reason why lookups are invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadLookups {
    /// The splits do not rise from 0 to the number of lookups.
    Splits(String),
    /// There is no such row.
    Index {
        /// The position among the lookups.
        position: usize,
        /// The requested row.
        row: i64,
        /// The number of rows.
        n_rows: usize,
    },
}

impl fmt::Display for BadLookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadLookups::Splits(what) => write!(f, "invalid row_splits: {what}"),
            BadLookups::Index { position, row, n_rows } => {
                write!(f, "lookup {position} reads row {row}, but there are {n_rows} rows")
            }
        }
    }
}

impl std::error::Error for BadLookups {}

/// Checks that splits rise from 0 to `n`.
pub fn check_splits(splits: &[i64], n: usize) -> Result<(), BadLookups> {
    let bad = |what: String| Err(BadLookups::Splits(what));
    match (splits.first(), splits.last()) {
        (None, _) | (_, None) => return bad("empty; expected at least [0]".into()),
        (Some(&first), _) if first != 0 => return bad(format!("starts at {first}, expected 0")),
        (_, Some(&last)) if last != n as i64 => return bad(format!("ends at {last}, but there are {n} values")),
        _ => {}
    }
    match splits.windows(2).position(|w| w[0] > w[1]) {
        Some(i) => bad(format!("falls from {} to {} at row {i}", splits[i], splits[i + 1])),
        None => Ok(()),
    }
}

impl<I: Id> Lookups<'_, I> {
    /// Checks all lookups before anything is written.
    fn check(&self, n_rows: usize) -> Result<(), BadLookups> {
        if !self.has_one_each() {
            check_splits(self.splits, self.index.len())?;
        }
        match index::check(self.index, n_rows) {
            Err(bad) => Err(BadLookups::Index { position: bad.position, row: bad.index, n_rows }),
            Ok(()) => Ok(()),
        }
    }

    /// Whether every ragged row has exactly one lookup, as a feature of one value has.
    fn has_one_each(&self) -> bool {
        // Without an early exit, the comparison vectorises.
        self.splits.len() == self.index.len() + 1
            && self.splits.iter().zip(0i64..).fold(true, |all, (&split, n)| all & (split == n))
    }

    /// Whether the index numbers all rows in order of first appearance, as
    /// [`unique`](super::scatter::unique) does.
    fn is_numbered(&self, n_rows: usize) -> bool {
        let mut n_seen = 0;
        let in_order = self.index.iter().all(|id| {
            let row = id.widen() as usize;
            n_seen += usize::from(row == n_seen);
            row < n_seen
        });
        in_order && n_seen == n_rows
    }

    /// The lookups of a ragged row.
    fn row(&self, b: usize) -> std::ops::Range<usize> {
        self.splits[b] as usize..self.splits[b + 1] as usize
    }

    /// The weighted sum of a ragged row with few lookups.
    fn short_total(&self, b: usize, rows: &[f32], sum: &mut [f32]) {
        let width = sum.len();
        let row = self.row(b);
        let read = |n: usize| &rows[self.index[n].widen() as usize * width..][..width];
        match self.weights {
            None => {
                sum.copy_from_slice(read(row.start));
                (row.start + 1..row.end).for_each(|n| sum.iter_mut().zip(read(n)).for_each(|(s, x)| *s += x));
            }
            Some(w) => {
                sum.iter_mut().zip(read(row.start)).for_each(|(s, x)| *s = w[row.start] * x);
                (row.start + 1..row.end).for_each(|n| sum.iter_mut().zip(read(n)).for_each(|(s, x)| *s += w[n] * x));
            }
        }
    }

    /// Like `short_total`, for many lookups: works in blocks of columns that stay in registers.
    fn long_total(&self, b: usize, rows: &[f32], sum: &mut [f32]) {
        let width = sum.len();
        for column in (0..width).step_by(COLUMNS) {
            let to = &mut sum[column..width.min(column + COLUMNS)];
            match <&mut [f32; COLUMNS]>::try_from(&mut *to) {
                Ok(to) => *to = self.total::<COLUMNS>(b, rows, width, column),
                Err(_) => {
                    for (i, to) in to.iter_mut().enumerate() {
                        [*to] = self.total::<1>(b, rows, width, column + i);
                    }
                }
            }
        }
    }

    /// The weighted sum of `N` columns of a ragged row's lookups. It is added up in groups, so that
    /// long rows lose less to rounding.
    fn total<const N: usize>(&self, b: usize, rows: &[f32], width: usize, column: usize) -> [f32; N] {
        let mut total = [0.0; N];
        let row = self.row(b);
        for first in row.clone().step_by(GROUP) {
            let mut part = [0.0; N];
            for n in first..row.end.min(first + GROUP) {
                let x = &rows[self.index[n].widen() as usize * width + column..][..N];
                match self.weights {
                    None => part.iter_mut().zip(x).for_each(|(p, x)| *p += x),
                    Some(w) => part.iter_mut().zip(x).for_each(|(p, x)| *p += w[n] * x),
                }
            }
            total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
        total
    }

    /// [`combine`] for rows of a width known at compile time: the sums stay in registers.
    fn combine_fixed<const W: usize>(&self, combiner: Combiner, rows: &[f32], first: usize, out: &mut [f32]) {
        let (table, out) = (rows.as_chunks::<W>().0, out.as_chunks_mut::<W>().0);
        if self.weights.is_none() && self.has_one_each() {
            // A single row is its own sum, and the divisor is 1.
            return out.iter_mut().zip(&self.index[first..]).for_each(|(to, id)| *to = table[id.widen() as usize]);
        }
        for (b, (sum, bound)) in out.iter_mut().zip(self.splits[first..].windows(2)).enumerate() {
            let row = bound[0] as usize..bound[1] as usize;
            let read = |n: usize| table[self.index[n].widen() as usize];
            *sum = match (row.len(), self.weights) {
                (0, _) => [0.0; W],
                (1..=GROUP, None) => (row.start + 1..row.end).fold(read(row.start), |mut sum, n| {
                    sum.iter_mut().zip(read(n)).for_each(|(s, x)| *s += x);
                    sum
                }),
                (1..=GROUP, Some(w)) => {
                    let first = read(row.start).map(|x| w[row.start] * x);
                    (row.start + 1..row.end).fold(first, |mut sum, n| {
                        sum.iter_mut().zip(read(n)).for_each(|(s, x)| *s += w[n] * x);
                        sum
                    })
                }
                _ => self.total::<W>(first + b, rows, W, 0),
            };
            match combiner.divisor(row.len(), self.weights.map(|w| &w[row])) {
                1.0 => {}
                0.0 => *sum = [0.0; W],
                divisor => *sum = sum.map(|s| s / divisor),
            }
        }
    }

    /// [`combine_gradient`] in one task, if there is a loop for rows of this width; otherwise
    /// returns `false`.
    fn scatter_known(&self, combiner: Combiner, width: usize, dy: &[f32], numbered: bool, out: &mut [f32]) -> bool {
        match width {
            1 => self.scatter_fixed::<1>(combiner, dy, numbered, out),
            4 => self.scatter_fixed::<4>(combiner, dy, numbered, out),
            8 => self.scatter_fixed::<8>(combiner, dy, numbered, out),
            16 => self.scatter_fixed::<16>(combiner, dy, numbered, out),
            _ => return false,
        }
        true
    }

    fn scatter_fixed<const W: usize>(&self, combiner: Combiner, dy: &[f32], is_numbered: bool, out: &mut [f32]) {
        let (dy, out) = (dy.as_chunks::<W>().0, out.as_chunks_mut::<W>().0);
        let mut n_seen = 0;
        if self.weights.is_none() && self.has_one_each() {
            // The share of a single row is 1.
            for (id, dy) in self.index.iter().zip(dy) {
                let to = id.widen() as usize;
                let is_first = is_numbered && to == n_seen;
                n_seen += usize::from(is_first);
                match is_first {
                    true => out[to] = *dy,
                    false => out[to].iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy),
                }
            }
            return;
        }
        for (bound, dy) in self.splits.windows(2).zip(dy) {
            let row = bound[0] as usize..bound[1] as usize;
            let divisor = combiner.divisor(row.len(), self.weights.map(|w| &w[row.clone()]));
            for n in row {
                let to = self.index[n].widen() as usize;
                let is_first = is_numbered && to == n_seen;
                n_seen += usize::from(is_first);
                let share = if divisor == 0.0 { 0.0 } else { self.weight(n) / divisor };
                match is_first {
                    true => out[to] = dy.map(|dy| share * dy),
                    false => out[to].iter_mut().zip(dy).for_each(|(sum, dy)| *sum += share * dy),
                }
            }
        }
    }

    fn weight(&self, n: usize) -> f32 {
        self.weights.map_or(1.0, |w| w[n])
    }

    fn divisor(&self, combiner: Combiner, b: usize) -> f32 {
        let row = self.row(b);
        combiner.divisor(row.len(), self.weights.map(|w| &w[row]))
    }
}

/// Combines rows of `width` floats. `out` has one row for each ragged row.
pub fn combine<I: Id>(
    pool: &Pool,
    combiner: Combiner,
    width: usize,
    rows: &[f32],
    lookups: Lookups<'_, I>,
    out: &mut [f32],
) -> Result<(), BadLookups> {
    lookups.check(rows.len().checked_div(width).unwrap_or(usize::MAX))?;
    if width == 0 {
        return Ok(());
    }
    for_each_rows(pool, out, width, &|first, part| {
        match width {
            1 => return lookups.combine_fixed::<1>(combiner, rows, first, part),
            4 => return lookups.combine_fixed::<4>(combiner, rows, first, part),
            8 => return lookups.combine_fixed::<8>(combiner, rows, first, part),
            16 => return lookups.combine_fixed::<16>(combiner, rows, first, part),
            _ => {}
        }
        for (b, sum) in part.chunks_exact_mut(width).enumerate() {
            let b = first + b;
            match lookups.row(b).len() {
                0 => sum.fill(0.0),
                1..=GROUP => lookups.short_total(b, rows, sum),
                _ => lookups.long_total(b, rows, sum),
            }
            // If the weights add up to zero, the row is zero, as in TensorFlow.
            match lookups.divisor(combiner, b) {
                1.0 => {}
                0.0 => sum.fill(0.0),
                divisor => sum.iter_mut().for_each(|s| *s /= divisor),
            }
        }
    });
    Ok(())
}

/// The gradient of [`combine`] with respect to its rows. `out` has one row for each of them.
pub fn combine_gradient<I: Id>(
    pool: &Pool,
    combiner: Combiner,
    width: usize,
    dy: &[f32],
    lookups: Lookups<'_, I>,
    out: &mut [f32],
) -> Result<(), BadLookups> {
    let n_rows = out.len().checked_div(width).unwrap_or(usize::MAX);
    lookups.check(n_rows)?;
    if width == 0 || out.is_empty() {
        return Ok(());
    }
    // If rows are numbered by first appearance, the first contribution to a row is written, so
    // `out` need not be zeroed first.
    let is_numbered = lookups.is_numbered(n_rows);
    if !is_numbered {
        out.fill(0.0);
    }
    let cut = Cut::new(lookups.index.len(), width, n_rows, size_of::<f32>());
    if cut.is_one_task() && lookups.scatter_known(combiner, width, dy, is_numbered, out) {
        return Ok(());
    }
    let out = DisjointMut::new(out);
    cut.run(pool, &|columns, rows| {
        let mut n_seen = 0;
        for (b, dy) in dy.chunks_exact(width).enumerate() {
            let divisor = lookups.divisor(combiner, b);
            for n in lookups.row(b) {
                let row = lookups.index[n].widen() as usize;
                let is_first = is_numbered && row == n_seen;
                n_seen += usize::from(is_first);
                if !rows.contains(&row) {
                    continue;
                }
                let share = if divisor == 0.0 { 0.0 } else { lookups.weight(n) / divisor };
                // SAFETY: tasks of one cut share no (row, column) of the output.
                let sums = unsafe { out.slice(row * width + columns.start, columns.len()) };
                let pairs = sums.iter_mut().zip(&dy[columns.clone()]);
                match is_first {
                    true => pairs.for_each(|(sum, dy)| *sum = share * dy),
                    false => pairs.for_each(|(sum, dy)| *sum += share * dy),
                }
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the specification's cases 36-39: rows [0, 1], [2, 2], [], [3, 0, 1].
    const TABLE: [f32; 8] = [1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0];
    const LOOKUPS: Lookups<'static, i32> =
        Lookups { index: &[0, 1, 2, 2, 3, 0, 1], splits: &[0, 2, 4, 4, 7], weights: None };

    fn combined(combiner: Combiner, lookups: Lookups<'_, i32>) -> Vec<f32> {
        let mut out = vec![f32::NAN; 2 * (lookups.splits.len() - 1)];
        combine(&Pool::new(2), combiner, 2, &TABLE, lookups, &mut out).unwrap();
        out
    }

    fn assert_near(actual: &[f32], expected: &[f32]) {
        let near = actual.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-5);
        assert!(near && actual.len() == expected.len(), "{actual:?} instead of {expected:?}");
    }

    #[test]
    fn cases_36_and_37() {
        assert_near(&combined(Combiner::Mean, LOOKUPS), &[2.0, 3.5, 7.0, 11.0, 0.0, 0.0, 5.666667, 8.0]);
        assert_near(&combined(Combiner::Sum, LOOKUPS), &[4.0, 7.0, 14.0, 22.0, 0.0, 0.0, 17.0, 24.0]);
        let sqrtn = [2.828427, 4.949748, 9.899495, 15.556349, 0.0, 0.0, 9.814955, 13.856406];
        assert_near(&combined(Combiner::SqrtN, LOOKUPS), &sqrtn);
    }

    #[test]
    fn case_39() {
        // Ids [0, 1], [2, 2], [3, 0] with weights [2, 1], [1, 3], [-1, 2]; mean and sqrtn drop the
        // weight below 0.
        let all = Lookups {
            index: &[0, 1, 2, 2, 3, 0],
            splits: &[0, 2, 4, 6],
            weights: Some(&[2.0, 1.0, 1.0, 3.0, -1.0, 2.0]),
        };
        assert_near(&combined(Combiner::Sum, all), &[5.0, 9.0, 28.0, 44.0, -11.0, -13.0]);
        let kept =
            Lookups { index: &[0, 1, 2, 2, 0], splits: &[0, 2, 4, 5], weights: Some(&[2.0, 1.0, 1.0, 3.0, 2.0]) };
        assert_near(&combined(Combiner::Mean, kept), &[1.666667, 3.0, 7.0, 11.0, 1.0, 2.0]);
        assert_near(&combined(Combiner::SqrtN, kept), &[2.236068, 4.024922, 8.854378, 13.914021, 1.0, 2.0]);
    }

    #[test]
    fn long_rows_of_any_width() {
        // Whole numbers: exact in any order. Row r has the columns r, r + 1, ...
        for width in [1, 15, 16, 17, 35] {
            let rows: Vec<f32> = (0..5).flat_map(|r| (0..width).map(move |c| (r + c) as f32)).collect();
            let index: Vec<i32> = (0..1000).map(|n| n % 5).collect();
            let lookups = Lookups { index: &index, splits: &[0, 1000], weights: None };
            let mut out = vec![f32::NAN; width];
            combine(&Pool::new(1), Combiner::Mean, width, &rows, lookups, &mut out).unwrap();
            assert_eq!(out, (0..width).map(|c| c as f32 + 2.0).collect::<Vec<_>>(), "width {width}");
        }
    }

    /// Some widths have their own loops. They must give the same bits as the same columns of wider
    /// rows.
    #[test]
    fn known_widths_are_as_others() {
        // Rows of 1, 0, 3, 20 and 1 lookups, or of one each, with indices in any order and numbered
        // by first appearance.
        let one_each: Vec<i64> = (0..=25).collect();
        let all_splits = [&[0, 1, 1, 4, 24, 25][..], &one_each];
        let weights: Vec<f32> = (0..25).map(|n| (n as f32 - 6.0) / 7.0).collect();
        let table = |width: usize| -> Vec<f32> {
            let row = |r: usize| (0..width).map(move |c| if c < 16 { 1.0 / (r * 3 + c + 3) as f32 } else { 9.0 });
            (0..25).flat_map(row).collect()
        };
        let columns = |x: &[f32], width: usize, n: usize| -> Vec<u32> {
            x.chunks_exact(width).flat_map(|row| row[..n].iter().map(|x| x.to_bits())).collect()
        };
        for (width, numbered, weighted) in [1, 4, 8, 16]
            .into_iter()
            .flat_map(|w| [(w, false, false), (w, false, true), (w, true, false), (w, true, true)])
        {
            let index: Vec<i64> = (0..25).map(|n| if numbered && n < 7 { n } else { n * 5 % 7 }).collect();
            let combiners = [Combiner::Sum, Combiner::Mean, Combiner::SqrtN];
            for (splits, combiner) in all_splits.into_iter().flat_map(|splits| combiners.map(|c| (splits, c))) {
                let lookups = Lookups { index: &index, splits, weights: weighted.then_some(&weights[..]) };
                let (pool, n) = (Pool::new(2), splits.len() - 1);
                let run = |width: usize| {
                    let (mut y, mut dx) = (vec![f32::NAN; n * width], vec![f32::NAN; 7 * width]);
                    combine(&pool, combiner, width, &table(width)[..7 * width], lookups, &mut y).unwrap();
                    combine_gradient(&pool, combiner, width, &table(width)[..n * width], lookups, &mut dx).unwrap();
                    (y, dx)
                };
                let ((y, dx), (wide_y, wide_dx)) = (run(width), run(17));
                assert_eq!(columns(&y, width, width), columns(&wide_y, 17, width), "{width}, {combiner:?}");
                assert_eq!(columns(&dx, width, width), columns(&wide_dx, 17, width), "{width}, {combiner:?}");
            }
        }
    }

    #[test]
    fn gradients_go_back_to_the_rows() {
        // dy = 1, 2, 3, 4 in both columns. Mean: row 0 gets 1/2 + 4/3, row 1 the same, row 2 gets
        // 2/2 twice, row 3 gets 4/3.
        let dy = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0];
        let mut out = [f32::NAN; 8];
        combine_gradient(&Pool::new(2), Combiner::Mean, 2, &dy, LOOKUPS, &mut out).unwrap();
        let third = 4.0 / 3.0;
        assert_near(&out, &[0.5 + third, 0.5 + third, 0.5 + third, 0.5 + third, 2.0, 2.0, third, third]);
        // A row without lookups gets zeros, and an index that comes before its turn changes
        // nothing.
        let mut out = [f32::NAN; 6];
        let lookups = Lookups { index: &[2, 0, 2], splits: &[0, 2, 2, 3, 3], weights: None };
        combine_gradient(&Pool::new(2), Combiner::Sum, 2, &dy, lookups, &mut out).unwrap();
        assert_near(&out, &[1.0, 1.0, 0.0, 0.0, 4.0, 4.0]);
    }

    #[test]
    fn bad_lookups_are_named() {
        let run = |index: &[i32], splits: &[i64]| {
            let lookups = Lookups { index, splits, weights: None };
            let mut out = vec![0.0; 2 * splits.len().saturating_sub(1)];
            combine(&Pool::new(1), Combiner::Sum, 2, &TABLE, lookups, &mut out).unwrap_err().to_string()
        };
        assert_eq!(run(&[4], &[0, 1]), "lookup 0 reads row 4, but there are 4 rows");
        assert_eq!(run(&[0, -1], &[0, 2]), "lookup 1 reads row -1, but there are 4 rows");
        assert_eq!(run(&[0], &[0, 2]), "invalid row_splits: ends at 2, but there are 1 values");
        assert_eq!(run(&[0], &[0, 2, 1]), "invalid row_splits: falls from 2 to 1 at row 1");
        assert_eq!(run(&[], &[]), "invalid row_splits: empty; expected at least [0]");
    }
}
