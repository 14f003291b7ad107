//! Functions that cut, pick and join the rows of batches. Transformations are built from them.

use std::ops::Range;
use std::sync::Arc;

use estimand_tensor::{
    Array, Batch, BatchSpec, DType, Dims, Element, Error, Feature, FeatureSpec, Ragged, Result, Strings,
};

use crate::stage::{PIECE, Stream, StreamItem, Unit};

/// Pulls `n` rows, or fewer if the stream ends first; `None` if it has already ended.
pub(crate) fn collect(stream: &mut dyn Stream, n: usize) -> Result<Option<StreamItem>> {
    let Some(first) = stream.pull(n)? else { return Ok(None) };
    let mut n_rows = first.batch.n_rows();
    if n_rows >= n {
        return Ok(Some(first));
    }
    let (mut pieces, mut after) = (vec![first.batch], first.after);
    while n_rows < n {
        let Some(item) = stream.pull(n - n_rows)? else { break };
        n_rows += item.batch.n_rows();
        pieces.push(item.batch);
        after = item.after;
    }
    Ok(Some(StreamItem { batch: concat(pieces)?, after }))
}

/// Pulls `n` elements and drops them; returns their number, which is smaller at the end of a
/// stream.
pub(crate) fn discard(stream: &mut dyn Stream, unit: Unit, n: u64) -> Result<u64> {
    let mut gone = 0;
    while gone < n {
        let want = usize::try_from(n - gone).map_or(PIECE, |left| left.min(PIECE));
        let Some(item) = stream.pull(want)? else { break };
        gone += count(unit, &item.batch);
    }
    Ok(gone)
}

/// The number of elements in a batch.
pub(crate) fn count(unit: Unit, batch: &Batch) -> u64 {
    match unit {
        Unit::Row => batch.n_rows() as u64,
        Unit::Batch => 1,
    }
}

/// Returns a range of rows, which shares memory with the batch.
pub fn slice(batch: &Batch, range: Range<usize>) -> Result<Batch> {
    slice_into(batch, range, Batch::new())
}

/// Like [`slice`], but reuses a batch that is no longer needed for the list of names and features.
pub(crate) fn slice_into(batch: &Batch, range: Range<usize>, mut spare: Batch) -> Result<Batch> {
    if range == (0..batch.n_rows()) {
        return Ok(batch.clone());
    }
    spare.refill(batch, |feature, slice| {
        *slice = match feature {
            Feature::Dense(array) => array.rows(range.clone())?.into(),
            Feature::Ragged(ragged) => {
                let Some(splits) = ragged.row_splits().get(range.start..=range.end) else {
                    return Err(Error::index(format!(
                        "there are no rows {range:?}; the feature has {} rows",
                        ragged.n_rows()
                    )));
                };
                let (start, end) = (splits[0], splits[range.len()]);
                let values = ragged.values().rows(start as usize..end as usize)?;
                Ragged::new(values, splits.iter().map(|s| s - start).collect::<Vec<_>>())?.into()
            }
        };
        Ok(())
    })?;
    Ok(spare)
}

/// Returns the rows with these indices, in this order.
pub(crate) fn gather(batch: &Batch, rows: &[u64]) -> Result<Batch> {
    gather_into(batch, rows, Batch::new())
}

/// Like [`gather`], but reuses the memory of a batch that is no longer needed, if it is large
/// enough and not shared.
pub(crate) fn gather_into(batch: &Batch, rows: &[u64], mut spare: Batch) -> Result<Batch> {
    let n_rows = batch.n_rows() as u64;
    if let Some(row) = rows.iter().find(|&&row| row >= n_rows) {
        return Err(Error::index(format!("there is no row {row}; the batch has {n_rows} rows")));
    }
    spare.refill(batch, |feature, picked| match feature {
        Feature::Dense(array) => {
            let ranges = rows.iter().map(|&r| r as usize..r as usize + 1);
            let spare = if let Feature::Dense(spare) = picked { Some(spare) } else { None };
            if let Some(fresh) = gather_ranges(array, ranges, spare)? {
                *picked = fresh.into();
            }
            Ok(())
        }
        Feature::Ragged(ragged) => {
            let splits = ragged.row_splits();
            let ranges = rows.iter().map(|&r| splits[r as usize] as usize..splits[r as usize + 1] as usize);
            let mut end = 0;
            let lengths = ranges.clone().map(|range| {
                end += range.len() as i64;
                end
            });
            let row_splits: Vec<i64> = std::iter::once(0).chain(lengths).collect();
            if let Some(values) = gather_ranges(ragged.values(), ranges, None)? {
                *picked = Ragged::new(values, row_splits)?.into();
            }
            Ok(())
        }
    })?;
    Ok(spare)
}

/// Joins batches, one after another. They must have the same features.
pub(crate) fn concat(mut batches: Vec<Batch>) -> Result<Batch> {
    if batches.len() < 2 {
        return Ok(batches.pop().unwrap_or_default());
    }
    let first = &batches[0];
    let names = |b: &Batch| -> Vec<_> { b.features().keys().chain(b.labels().keys()).cloned().collect() };
    let expected = (names(first), first.features().len(), first.weights().is_some());
    for batch in &batches[1..] {
        let found = (names(batch), batch.features().len(), batch.weights().is_some());
        if found != expected {
            return Err(Error::shape(format!(
                "rows with the features, labels and weights {found:?} follow rows with {expected:?}"
            )));
        }
    }
    let join = |name: &str, parts: Vec<&Feature>| {
        concat_features(&parts).map_err(|e| e.context(format!("in `{name}`, while joining rows")))
    };
    let mut all = Batch::new();
    for (name, _) in first.features() {
        all = all.with_feature(name, join(name, batches.iter().map(|b| &b.features()[name]).collect())?)?;
    }
    for (name, _) in first.labels() {
        all = all.with_label(name, join(name, batches.iter().map(|b| &b.labels()[name]).collect())?)?;
    }
    if first.weights().is_some() {
        let weights: Vec<&Array> = batches.iter().filter_map(Batch::weights).collect();
        all = all.with_weights(concat_arrays(&weights).map_err(|e| e.context("in the weights"))?)?;
    }
    let mut missing: Vec<&str> = batches.iter().flat_map(Batch::all_missing).map(|(name, _)| name).collect();
    missing.sort_unstable();
    missing.dedup();
    for name in missing {
        let mut rows = Vec::with_capacity(all.n_rows());
        for batch in &batches {
            match batch.missing(name) {
                Some(missing) => rows.extend_from_slice(missing.as_slice::<bool>()?),
                None => rows.resize(rows.len() + batch.n_rows(), false),
            }
        }
        all = all.with_missing(name, Array::from(rows))?;
    }
    Ok(all)
}

/// Copies the missing rows of one batch to another that has its rows.
pub(crate) fn keep_missing(from: &Batch, mut to: Batch) -> Result<Batch> {
    for (name, missing) in from.all_missing() {
        let is_known = to.features().contains_key(name) || to.labels().contains_key(name);
        if is_known && to.n_rows() == from.n_rows() {
            to = to.with_missing(name, missing.clone())?;
        }
    }
    Ok(to)
}

/// The spec of a batch's features.
pub(crate) fn spec_of(batch: &Batch) -> BatchSpec {
    specs_of(batch).0
}

/// The specs of a batch's features and labels.
pub fn specs_of(batch: &Batch) -> (BatchSpec, BatchSpec) {
    let spec = |(name, feature): (&Arc<str>, &Feature)| {
        let spec = match feature {
            Feature::Dense(array) => FeatureSpec::dense(array.dtype(), array.dims().get(1..).unwrap_or_default()),
            Feature::Ragged(ragged) => FeatureSpec::ragged(ragged.values().dtype()),
        };
        (name.to_string(), spec)
    };
    (batch.features().iter().map(spec).collect(), batch.labels().iter().map(spec).collect())
}

/// Changes every feature and label of a batch; keeps their names and the weights.
pub(crate) fn map_features(batch: &Batch, mut change: impl FnMut(&str, &Feature) -> Result<Feature>) -> Result<Batch> {
    let mut changed = Batch::new();
    for (name, feature) in batch.features() {
        changed = changed.with_feature(name, change(name, feature)?)?;
    }
    for (name, label) in batch.labels() {
        changed = changed.with_label(name, change(name, label)?)?;
    }
    let changed = match batch.weights() {
        Some(weights) => changed.with_weights(weights.clone())?,
        None => changed,
    };
    keep_missing(batch, changed)
}

fn concat_features(parts: &[&Feature]) -> Result<Feature> {
    let dense: Vec<&Array> =
        parts.iter().filter_map(|p| if let Feature::Dense(a) = p { Some(a) } else { None }).collect();
    if dense.len() == parts.len() {
        return Ok(concat_arrays(&dense)?.into());
    }
    let ragged: Vec<&Ragged> =
        parts.iter().filter_map(|p| if let Feature::Ragged(r) = p { Some(r) } else { None }).collect();
    if ragged.len() < parts.len() {
        return Err(Error::shape("some rows are dense and some are ragged"));
    }
    let values: Vec<&Array> = ragged.iter().map(|r| r.values()).collect();
    let mut row_splits = vec![0];
    for part in &ragged {
        let base = row_splits[row_splits.len() - 1];
        row_splits.extend(part.row_splits()[1..].iter().map(|split| base + split));
    }
    Ok(Ragged::new(concat_arrays(&values)?, row_splits)?.into())
}

/// Calls a function with the element type of an array of numbers.
macro_rules! by_number {
    ($dtype:expr, $function:ident($($argument:expr),*), strings => $strings:expr) => {
        match $dtype {
            DType::F32 => $function::<f32>($($argument),*),
            DType::F64 => $function::<f64>($($argument),*),
            DType::I32 => $function::<i32>($($argument),*),
            DType::I64 => $function::<i64>($($argument),*),
            DType::U8 => $function::<u8>($($argument),*),
            DType::Bool => $function::<bool>($($argument),*),
            DType::Str => $strings,
        }
    };
}
pub(crate) use by_number;

fn concat_arrays(parts: &[&Array]) -> Result<Array> {
    let first = parts[0];
    for part in parts {
        if part.dtype() != first.dtype() || part.dims()[1..] != first.dims()[1..] {
            return Err(Error::shape(format!(
                "a row of {}{:?} follows a row of {}{:?}",
                part.dtype(),
                &part.dims()[1..],
                first.dtype(),
                &first.dims()[1..]
            )));
        }
    }
    let mut dims = first.dims().to_vec();
    dims[0] = parts.iter().map(|part| part.dims()[0]).sum();
    by_number!(first.dtype(), concat_numbers(&dims, parts), strings => {
        let mut all = Strings::default();
        for part in parts {
            all.append_slice(part.string_slice()?);
        }
        Array::from_string_list(&dims, all)
    })
}

fn concat_numbers<T: Element>(dims: &[usize], parts: &[&Array]) -> Result<Array> {
    let mut all = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        all.extend_from_slice(part.as_slice::<T>()?);
    }
    Array::from_vec(dims, all)
}

/// Copies ranges of the first axis, one after another; all must lie in the array. Returns `None` if
/// the result is in the spare array.
fn gather_ranges(
    array: &Array,
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    spare: Option<&mut Array>,
) -> Result<Option<Array>> {
    let mut dims = Dims::from(array.dims());
    dims[0] = ranges.clone().map(|range| range.len()).sum();
    let width: usize = dims[1..].iter().product();
    let elements = ranges.map(|range| range.start * width..range.end * width);
    by_number!(array.dtype(), gather_numbers(array, &dims, elements, spare), strings => {
        let from = array.string_slice()?;
        if let Some(spare) = spare
            && spare.reuse_own_strings(&dims, |picked| picked.extend_ranges(from, elements.clone()))?
        {
            return Ok(None);
        }
        let mut picked = Strings::with_capacity(dims.iter().product());
        picked.extend_ranges(from, elements);
        Array::from_string_list(&dims, picked).map(Some)
    })
}

fn gather_numbers<T: Element>(
    array: &Array,
    dims: &[usize],
    elements: impl Iterator<Item = Range<usize>>,
    spare: Option<&mut Array>,
) -> Result<Option<Array>> {
    let from = array.as_slice::<T>()?;
    if let Some(spare) = spare
        && spare.reuse_own(T::DTYPE, dims)?
    {
        let mut to = spare.as_mut_slice::<T>()?;
        for range in elements {
            let (next, rest) = to.split_at_mut(range.len());
            next.copy_from_slice(&from[range]);
            to = rest;
        }
        return Ok(None);
    }
    let mut picked: Vec<T> = Vec::with_capacity(dims.iter().product());
    elements.for_each(|range| picked.extend_from_slice(&from[range]));
    Array::from_vec(dims, picked).map(Some)
}
