//! The examples of a batch as rows of numbers, each with the index of its weight.

use estimand_tensor::{Array, DType, Error, Result};

/// How far rounding may move a sketch, for a row of length 1.
const ROUNDED: f64 = 1e-6;

/// A number from -1 to 1 that an index always has: the mixing of splitmix64.
fn random(index: u32) -> f64 {
    let mut x = (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) as i64) as f64 / -(i64::MIN as f64)
}

/// Rows of a batch. Weights of all columns have consecutive indices; the last is the bias.
#[derive(Default)]
pub(super) struct Rows {
    /// Row `i` has the entries from `starts[i]` to `starts[i + 1]`.
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    squared_norms: Vec<f64>,
}

/// The values of a column in a batch.
pub(super) enum Values<'a> {
    /// A fixed number of numbers in each row.
    Dense(&'a [f32]),
    /// Ids, and their weights.
    Ids { ids: Ids<'a>, row_splits: &'a [i64], weights: Option<&'a [f32]> },
}

/// Ids of rows one after another.
#[derive(Clone, Copy)]
pub(super) enum Ids<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'a> Ids<'a> {
    pub(super) fn of(array: &'a Array) -> Result<Ids<'a>> {
        match array.dtype() {
            DType::I32 => Ok(Ids::I32(array.as_slice()?)),
            _ => Ok(Ids::I64(array.as_slice()?)),
        }
    }

    fn len(self) -> usize {
        match self {
            Ids::I32(ids) => ids.len(),
            Ids::I64(ids) => ids.len(),
        }
    }

    fn at(self, i: usize) -> i64 {
        match self {
            Ids::I32(ids) => ids[i].into(),
            Ids::I64(ids) => ids[i],
        }
    }
}

/// A column: its values, the index of its first weight, and the number of its weights.
pub(super) struct Column<'a> {
    pub(super) values: Values<'a>,
    pub(super) first: u32,
    pub(super) n: usize,
}

impl Rows {
    /// The indices and values of a row.
    pub(super) fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The squared length of a row.
    pub(super) fn squared_norm(&self, i: usize) -> f64 {
        self.squared_norms[i]
    }

    /// A number that tells the features of a row: the sum of its values, each times a random number
    /// of its index. Features that differ by rounding have nearly the same.
    pub(super) fn sketch(&self, i: usize) -> f64 {
        let (indices, values) = self.row(i);
        indices.iter().zip(values).map(|(index, value)| random(*index) * f64::from(*value)).sum()
    }

    /// Whether two sketches of a row can be those of the same features.
    pub(super) fn is_same_sketch(&self, i: usize, one: f64, other: f64) -> bool {
        (one - other).abs() <= ROUNDED * self.squared_norms[i].sqrt()
    }

    /// The indices of all rows, one after another.
    pub(super) fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Replaces all rows. Each row ends with a 1 for the bias.
    pub(super) fn fill(&mut self, n_rows: usize, columns: &[Column<'_>], bias: u32) -> Result<()> {
        let Rows { starts, indices, values, squared_norms } = self;
        starts.clear();
        indices.clear();
        values.clear();
        squared_norms.clear();
        columns.iter().try_for_each(|column| column.check(n_rows))?;
        let mut found: Vec<(u32, f32)> = Vec::new();
        starts.push(0);
        for row in 0..n_rows {
            for column in columns {
                match &column.values {
                    Values::Dense(numbers) => {
                        let numbers = &numbers[row * column.n..(row + 1) * column.n];
                        indices.extend(column.first..column.first + column.n as u32);
                        values.extend_from_slice(numbers);
                    }
                    Values::Ids { ids, row_splits, weights } => {
                        found.clear();
                        for i in row_splits[row] as usize..row_splits[row + 1] as usize {
                            let id = ids.at(i);
                            if id < 0 {
                                continue;
                            }
                            if id >= column.n as i64 {
                                return Err(Error::internal(format!("id {id} of {} was let through", column.n)));
                            }
                            found.push((column.first + id as u32, weights.map_or(1.0, |weights| weights[i])));
                        }
                        // An id that a row has twice counts as one with the sum of both weights.
                        if found.len() > 1 {
                            found.sort_by_key(|(index, _)| *index);
                            found.dedup_by(|next, kept| {
                                let is_same = next.0 == kept.0;
                                if is_same {
                                    kept.1 += next.1;
                                }
                                is_same
                            });
                        }
                        indices.extend(found.iter().map(|(index, _)| *index));
                        values.extend(found.iter().map(|(_, value)| *value));
                    }
                }
            }
            indices.push(bias);
            values.push(1.0);
            let start = starts[row];
            squared_norms.push(values[start..].iter().map(|value| f64::from(*value) * f64::from(*value)).sum());
            starts.push(values.len());
        }
        Ok(())
    }
}

impl Column<'_> {
    /// Checks that sizes fit each other.
    fn check(&self, n_rows: usize) -> Result<()> {
        let fits = match &self.values {
            Values::Dense(numbers) => numbers.len() == n_rows * self.n,
            Values::Ids { ids, row_splits, weights } => {
                row_splits.len() == n_rows + 1
                    && row_splits.first().is_some_and(|first| *first >= 0)
                    && row_splits.is_sorted()
                    && row_splits.last().is_some_and(|last| *last as usize <= ids.len())
                    && weights.is_none_or(|weights| weights.len() == ids.len())
            }
        };
        match fits {
            true => Ok(()),
            false => Err(Error::internal(format!("the values of a column do not fit {n_rows} rows"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_numbers_ids_and_the_bias() -> Result<()> {
        let ids = Ids::I64(&[2, -1, 0, 2, 1]);
        let columns = [
            Column { values: Values::Dense(&[1.0, 2.0, 3.0, 4.0]), first: 0, n: 2 },
            Column {
                values: Values::Ids { ids, row_splits: &[0, 4, 5], weights: Some(&[0.5, 9.0, 1.0, 2.0, 3.0]) },
                first: 2,
                n: 3,
            },
        ];
        let mut rows = Rows::default();
        for _ in 0..2 {
            rows.fill(2, &columns, 5)?;
            assert_eq!(rows.row(0), (&[0, 1, 2, 4, 5][..], &[1.0, 2.0, 1.0, 2.5, 1.0][..]));
            assert_eq!(rows.row(1), (&[0, 1, 3, 5][..], &[3.0, 4.0, 3.0, 1.0][..]));
            assert_eq!((rows.squared_norm(0), rows.squared_norm(1)), (13.25, 35.0));
        }
        Ok(())
    }

    /// The rows (x, bias): the same, one rounding apart, another number, another id.
    #[test]
    fn sketches_tell_rows_apart() -> Result<()> {
        let sketch_of = |x: f32, id: i64| {
            let mut rows = Rows::default();
            let ids = [id];
            let columns = [
                Column { values: Values::Dense(&[x]), first: 0, n: 1 },
                Column {
                    values: Values::Ids { ids: Ids::I64(&ids), row_splits: &[0, 1], weights: None },
                    first: 1,
                    n: 9,
                },
            ];
            rows.fill(1, &columns, 10).map(|()| (rows.sketch(0), rows))
        };
        let (known, rows) = sketch_of(0.3, 4)?;
        for (x, id, is_same) in [(0.3, 4, true), (0.3f32.next_up(), 4, true), (0.301, 4, false), (0.3, 5, false)] {
            assert_eq!(rows.is_same_sketch(0, known, sketch_of(x, id)?.0), is_same, "{x}, {id}");
        }
        Ok(())
    }
}
