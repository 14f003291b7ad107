//! Pads rows of different lengths to one length: `padded_batch`, and its options, [`Pad`].

use std::collections::BTreeMap;
use std::ops::Range;

use estimand_tensor::{Array, Batch, BatchSpec, DType, Element, Error, Feature, FeatureSpec, Result, Strings};

use crate::agreement::missing;
use crate::rows::{by_number, map_features};
use crate::stage::{InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

impl Dataset {
    /// Joins `n` rows into a batch and makes ragged features dense: `[rows, longest row, ..]`.
    /// `pad` sets the sizes and the values of the padding.
    ///
    /// ```
    /// # use estimand_data::{Dataset, Pad};
    /// # use estimand_tensor::{Array, Ragged};
    /// let words = Ragged::new(Array::from([5i64, 6, 7]), [0, 1, 3])?;
    /// let data = Dataset::from_arrays([("words", words)]).padded_batch(2, Pad::new().value("words", -1i64));
    /// assert_eq!(data.iter().next().unwrap()?.features()["words"], Array::from_vec([2, 2], vec![5i64, -1, 6, 7])?.into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn padded_batch(&self, n: usize, pad: Pad) -> Dataset {
        Dataset::new(Padded { input: self.batch(n), pad })
    }
}

/// The padding of rows of different lengths. By default, all ragged features are padded with zeros
/// or empty strings, to the longest row of the batch.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Pad {
    sizes: BTreeMap<String, usize>,
    values: BTreeMap<String, Array>,
}

impl Pad {
    /// Pads with zeros and empty strings, to the longest row of each batch.
    pub fn new() -> Pad {
        Pad::default()
    }

    /// Pads the rows of a feature or label to this size; a longer row is an error. By default, rows
    /// are padded to the longest of the batch.
    ///
    /// In a dense feature, the first axis after the row axis is padded.
    pub fn size(mut self, name: impl Into<String>, size: usize) -> Pad {
        self.sizes.insert(name.into(), size);
        self
    }

    /// The padding value of a feature or label, with its element type. By default, 0, `false`, or
    /// the empty string.
    pub fn value(mut self, name: impl Into<String>, value: impl Into<Array>) -> Pad {
        self.values.insert(name.into(), value.into());
        self
    }

    pub(crate) fn describe(&self) -> String {
        let sizes: Vec<_> = self.sizes.iter().map(|(name, size)| format!("`{name}` to {size}")).collect();
        let values: Vec<_> = self.values.iter().map(|(name, value)| format!("`{name}` with {value}")).collect();
        format!("pad({})", [sizes, values].concat().join(", "))
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.values.iter().find(|(_, value)| value.rank() != 0) {
            None => Ok(()),
            Some((name, value)) => Err(Error::shape(format!(
                "the padding value of `{name}` has the shape {:?}; expected a single value",
                value.dims()
            ))),
        }
    }

    pub(crate) fn spec(&self, mut spec: BatchSpec) -> BatchSpec {
        for (name, feature) in &mut spec {
            let size = self.sizes.get(name).copied();
            let dtype = feature.dtype();
            *feature = match (&*feature, size) {
                (FeatureSpec::Ragged { .. }, Some(size)) => FeatureSpec::dense(dtype, [size]),
                (FeatureSpec::Ragged { .. }, None) => {
                    FeatureSpec::Padded { dtype, dims: Vec::new(), padding: self.values.get(name).cloned() }
                }
                (FeatureSpec::Dense { dims, .. }, Some(size)) if !dims.is_empty() => {
                    FeatureSpec::dense(dtype, [&[size], &dims[1..]].concat())
                }
                (other, _) => other.clone(),
            };
        }
        spec
    }

    /// Makes every ragged feature of a batch dense. Features without their own size get `size`, or
    /// the size of their longest row.
    pub(crate) fn apply(&self, batch: &Batch, size: Option<usize>) -> Result<Batch> {
        let known = || batch.features().keys().chain(batch.labels().keys()).map(|name| &**name);
        if let Some(name) =
            self.sizes.keys().chain(self.values.keys()).find(|name| !known().any(|k| k == name.as_str()))
        {
            return Err(missing(name, "to pad", known()));
        }
        map_features(batch, |name, feature| self.feature(name, feature, size))
    }

    fn feature(&self, name: &str, feature: &Feature, default_size: Option<usize>) -> Result<Feature> {
        let own_size = self.sizes.get(name).copied();
        let (values, rows): (Array, Vec<Range<usize>>) = match feature {
            Feature::Ragged(ragged) => {
                let rows = ragged.row_splits().windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
                (ragged.values().clone(), rows.collect())
            }
            Feature::Dense(array) if own_size.is_none() => return Ok(array.clone().into()),
            Feature::Dense(array) => {
                let [n_rows, width, inner @ ..] = array.dims() else {
                    return Err(Error::shape(format!(
                        "feature `{name}` has one value per row, so it cannot be padded"
                    )));
                };
                let dims = [&[n_rows * width], inner].concat();
                (array.reshape(dims)?, (0..*n_rows).map(|i| i * width..(i + 1) * width).collect())
            }
        };
        let longest = rows.iter().map(Range::len).max().unwrap_or(0);
        let size = own_size.or(default_size).unwrap_or(longest);
        if let Some(row) = rows.iter().position(|row| row.len() > size) {
            let (n, number) = (rows[row].len(), row + 1);
            let message =
                format!("feature `{name}` has {n} values in row {number} of a batch, but rows are padded to {size}");
            return Err(Error::shape(message).help("give a larger size, or shorten the rows with `map`"));
        }
        let dims = [&[rows.len(), size], &values.dims()[1..]].concat();
        fill(&values, &rows, &dims, self.values.get(name))
            .map_err(|e| e.context(format!("in the padding of `{name}`")))
            .map(Feature::Dense)
    }
}

/// Copies ranges of values into rows of `dims`, and pads each row with a value.
fn fill(values: &Array, rows: &[Range<usize>], dims: &[usize], value: Option<&Array>) -> Result<Array> {
    by_number!(values.dtype(), fill_numbers(values, rows, dims, value), strings => {
        let filler = match value {
            Some(value) => value.string_slice()?.get(0).to_vec(),
            None => Vec::new(),
        };
        let from = values.string_slice()?;
        let inner: usize = dims[2..].iter().product();
        let mut filled = Strings::default();
        for row in rows {
            (row.start * inner..row.end * inner).for_each(|i| filled.push(from.get(i)));
            (row.len() * inner..dims[1] * inner).for_each(|_| filled.push(&filler));
        }
        Array::from_string_list(dims, filled)
    })
}

fn fill_numbers<T: Element>(
    values: &Array,
    rows: &[Range<usize>],
    dims: &[usize],
    value: Option<&Array>,
) -> Result<Array> {
    let from = values.as_slice::<T>()?;
    let (inner, width): (usize, usize) = (dims[2..].iter().product(), dims[1..].iter().product());
    let mut filled = Array::zeros(values.dtype(), dims)?;
    let out = filled.as_mut_slice::<T>()?;
    if let Some(value) = value {
        out.fill(value.item::<T>()?);
    }
    if width > 0 {
        for (row, out) in rows.iter().zip(out.chunks_mut(width)) {
            out[..row.len() * inner].copy_from_slice(&from[row.start * inner..row.end * inner]);
        }
    }
    Ok(filled)
}

/// The stage of `padded_batch`. Its position is that of its input.
struct Padded {
    input: Dataset,
    pad: Pad,
}

impl Stage for Padded {
    fn describe(&self) -> String {
        self.pad.describe()
    }

    fn landmark(&self) -> String {
        "pad".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        self.pad.check()
    }

    fn without_remainder(&self) -> Option<Dataset> {
        Some(Dataset::new(Padded { input: self.input.drop_remainder(), pad: self.pad.clone() }))
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.pad.spec(self.input.spec()?))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        Ok(Box::new(PaddedStream { input: self.input.stage().open(cx, from)?, pad: self.pad.clone() }))
    }
}

struct PaddedStream {
    input: Box<dyn Stream>,
    pad: Pad,
}

impl Stream for PaddedStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        Ok(Some(StreamItem { batch: self.pad.apply(&batch, None)?, after }))
    }
}
