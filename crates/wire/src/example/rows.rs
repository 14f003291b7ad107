//! The rows parsed so far, feature by feature. A parser appends to them, and they become the
//! result.

use estimand_tensor::{Array, Error, Feature, Ragged, Result, Strings, element_count};

use super::plan::{FeaturePlan, Length, Plan};
use super::values::Values;

/// The most values to reserve memory for in advance; large batches grow as they are parsed.
const MAX_RESERVE: usize = 1 << 16;

/// The largest number of bytes of a padded batch: one long row makes all rows long.
const PADDED_LIMIT: usize = 1 << 30;

/// The features of the rows parsed so far.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) n_rows: usize,
    pub(super) columns: Vec<Column>,
}

/// One feature of the rows parsed so far.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) values: Values,
    /// The row splits; unused for features of fixed length.
    splits: Vec<i64>,
    /// The last row, counted from 1, in which the feature was found.
    found_in: usize,
}

impl Rows {
    pub(super) fn new(plan: &Plan, n_rows_hint: usize) -> Rows {
        let column = |feature: &FeaturePlan| {
            let (per_row, n_splits) = match &feature.length {
                Length::Fixed { width, .. } => (*width, 0),
                _ => (1, n_rows_hint.min(MAX_RESERVE) + 1),
            };
            let mut splits = Vec::with_capacity(n_splits);
            splits.resize(n_splits.min(1), 0);
            let capacity = n_rows_hint.saturating_mul(per_row).min(MAX_RESERVE);
            Column { values: Values::new(feature.kind, capacity), splits, found_in: 0 }
        };
        Rows { n_rows: 0, columns: plan.features.iter().map(column).collect() }
    }

    pub(super) fn finish(self, plan: &Plan) -> Result<Vec<Feature>> {
        let n_rows = self.n_rows;
        let features = self.columns.into_iter().zip(&plan.features);
        features.map(|(column, feature)| column.finish(feature, n_rows)).collect()
    }

    /// Joins feature number `i` of a batch that was parsed in parts.
    pub(super) fn join(parts: &[Rows], plan: &Plan, i: usize) -> Result<Feature> {
        let feature = &plan.features[i];
        let columns = || parts.iter().map(|part| &part.columns[i]);
        let mut values = Values::new(feature.kind, columns().map(|column| column.values.len()).sum());
        let mut splits = Vec::with_capacity(columns().map(|column| column.splits.len()).sum());
        for column in columns() {
            let shift = values.len() as i64;
            values.append(&column.values);
            // A part begins where the one before ends.
            splits.extend(column.splits.iter().skip(usize::from(!splits.is_empty())).map(|split| split + shift));
        }
        let n_rows = parts.iter().map(|part| part.n_rows).sum();
        Column { values, splits, found_in: 0 }.finish(feature, n_rows)
    }
}

impl Column {
    /// Whether the feature was found in the current row.
    #[inline]
    pub(super) fn is_found(&self, n_rows: usize) -> bool {
        self.found_in == n_rows + 1
    }

    /// Appends the list of the current row; `None` if the list is damaged or has a wrong number of
    /// values.
    #[inline]
    pub(super) fn read(&mut self, list: &[u8], length: &Length, n_rows: usize) -> Option<()> {
        let before = self.values.len();
        self.values.read(list)?;
        let given = self.values.len() - before;
        match length {
            Length::Fixed { width, .. } if given != *width => return None,
            Length::Padded { width, .. } if !given.is_multiple_of(*width) => return None,
            Length::Fixed { .. } => {}
            _ => self.splits.push(self.values.len() as i64),
        }
        self.found_in = n_rows + 1;
        Some(())
    }

    /// Appends a feature that is in the row, but empty.
    pub(super) fn read_nothing(&mut self, n_rows: usize) {
        self.splits.push(self.values.len() as i64);
        self.found_in = n_rows + 1;
    }

    /// Ends the current row for a feature that was not found in it; `None` if it is required.
    #[inline]
    pub(super) fn miss(&mut self, length: &Length) -> Option<()> {
        match length {
            Length::Fixed { default, .. } => self.values.append(default.as_ref()?),
            _ => self.splits.push(self.values.len() as i64),
        }
        Some(())
    }

    /// Removes the values of the current row.
    pub(super) fn roll_back(&mut self, length: &Length, n_rows: usize) {
        self.found_in = 0;
        if let Length::Fixed { width, .. } = length {
            self.values.truncate(n_rows * width);
        } else {
            self.splits.truncate(n_rows + 1);
            self.values.truncate(self.splits.last().map_or(0, |&split| split as usize));
        }
    }

    fn finish(self, feature: &FeaturePlan, n_rows: usize) -> Result<Feature> {
        match &feature.length {
            Length::Fixed { dims, .. } => Ok(Feature::Dense(self.values.into_array(&with_rows(&[n_rows], dims))?)),
            Length::Ragged => {
                let n_values = self.values.len();
                Ok(Feature::Ragged(Ragged::new(self.values.into_array(&[n_values])?, self.splits)?))
            }
            Length::Padded { dims, width, padding } => {
                let longest = self.splits.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0);
                let dims = with_rows(&[n_rows, longest / width], dims);
                let array = pad(&self.values, &self.splits, &dims, longest, padding);
                Ok(Feature::Dense(array.map_err(|e| e.context(format!("in feature `{}`", feature.name)))?))
            }
        }
    }
}

fn with_rows(rows: &[usize], dims: &[usize]) -> Vec<usize> {
    [rows, dims].concat()
}

/// Pads rows to `longest` values.
fn pad(values: &Values, splits: &[i64], dims: &[usize], longest: usize, padding: &Values) -> Result<Array> {
    let bytes = element_count(dims)?.saturating_mul(8);
    if bytes > PADDED_LIMIT {
        return Err(Error::shape(format!(
            "padding {} values to {dims:?} takes {bytes} bytes; the limit is {PADDED_LIMIT}",
            values.len()
        ))
        .help("read it as a ragged feature"));
    }
    fn fill<T: Copy>(values: &[T], splits: &[i64], longest: usize, padding: &[T]) -> Vec<T> {
        let mut all = Vec::with_capacity(longest * (splits.len() - 1));
        for row in splits.windows(2) {
            all.extend_from_slice(&values[row[0] as usize..row[1] as usize]);
            let missing = longest - (row[1] - row[0]) as usize;
            all.extend(std::iter::repeat_n(padding[0], missing));
        }
        all
    }
    match (values, padding) {
        (Values::F32(values), Values::F32(padding)) => Array::from_vec(dims, fill(values, splits, longest, padding)),
        (Values::I64(values), Values::I64(padding)) => Array::from_vec(dims, fill(values, splits, longest, padding)),
        (Values::Str(values), Values::Str(padding)) => {
            let mut all = Strings::with_capacity(longest * (splits.len() - 1));
            for row in splits.windows(2) {
                (row[0]..row[1]).for_each(|i| all.push(values.get(i as usize)));
                (row[1] - row[0]..longest as i64).for_each(|_| all.push(padding.get(0)));
            }
            Array::from_string_list(dims, all)
        }
        _ => unreachable!("both belong to one feature"),
    }
}
