//! Inputs to check an export with: the first rows of the training, and rows with missing, unknown
//! and extreme values.

use estimand_graph::Tensor;
use estimand_tensor::{Array, Batch, BatchSpec, DType, Error, Feature, FeatureSpec, Ragged, Result};
use estimand_tf::golden::Feed;
use estimand_wire::example::encode_batch;

use super::receiver::{ServingInputReceiver, only_examples};
use crate::Input;
use crate::kept_rows::TrainingRows;

/// A string that no vocabulary has.
const UNKNOWN: &[u8] = b"\x00 no such term \xff";
/// The most values of a padded feed.
const MAX_PADDED: usize = 1 << 24;
/// A number that is far outside of any data, and whose square still is a number.
const EXTREME: f64 = 1e18;

/// Makes the feeds of a graph's inputs. Rows that its inputs cannot take are left out.
pub(super) fn feeds(receiver: &ServingInputReceiver, kept: Option<&TrainingRows>, with_rows: bool) -> Vec<Feed> {
    let features = match kept {
        Some(kept) => kept.features.clone(),
        None => specs(receiver),
    };
    let mut batches: Vec<(&'static str, Batch)> = Vec::new();
    if let Some(kept) = kept.filter(|_| with_rows) {
        batches.extend(kept.pieces.iter().map(|(_, rows)| ("training", rows.clone())));
    }
    for made in [Made::Missing, Made::Unknown, Made::Largest, Made::Smallest] {
        batches.extend(made.batch(&features).ok().map(|batch| (made.name(), batch)));
    }
    let feed = |(rows, batch): (&'static str, Batch)| {
        Some(Feed { rows: rows.to_string(), inputs: inputs(receiver, &batch).ok()? })
    };
    batches.into_iter().filter_map(feed).collect()
}

/// The formats of the inputs, as far as values can be made up for them.
fn specs(receiver: &ServingInputReceiver) -> BatchSpec {
    let spec = |(name, tensor): (&String, &Tensor)| {
        let shape = tensor.shape();
        let dims = shape.dims().iter().skip(1).map(|dim| dim.known().unwrap_or(1)).collect::<Vec<_>>();
        (name.clone(), FeatureSpec::dense(tensor.dtype(), dims))
    };
    receiver.receiver_tensors.iter().map(spec).collect()
}

/// A row that is made up.
#[derive(Clone, Copy)]
enum Made {
    Missing,
    Unknown,
    Largest,
    Smallest,
}

impl Made {
    fn name(self) -> &'static str {
        match self {
            Made::Missing => "missing",
            Made::Unknown => "unknown",
            Made::Largest => "largest",
            Made::Smallest => "smallest",
        }
    }

    fn batch(self, features: &BatchSpec) -> Result<Batch> {
        features.iter().try_fold(Batch::new(), |batch, (name, spec)| batch.with_feature(name, self.feature(spec)?))
    }

    fn feature(self, spec: &FeatureSpec) -> Result<Feature> {
        Ok(match spec {
            FeatureSpec::Dense { dtype, dims, .. } => self.array(*dtype, &[&[1], &dims[..]].concat())?.into(),
            FeatureSpec::Padded { dtype, dims, .. } => self.array(*dtype, &[&[1, 1], &dims[..]].concat())?.into(),
            FeatureSpec::Ragged { dtype } => {
                let n = if matches!(self, Made::Missing) { 0 } else { 2 };
                Ragged::new(self.array(*dtype, &[n])?, vec![0, n as i64])?.into()
            }
        })
    }

    fn array(self, dtype: DType, dims: &[usize]) -> Result<Array> {
        let n: usize = dims.iter().product();
        let float = match self {
            Made::Missing | Made::Unknown => 0.0,
            Made::Largest => EXTREME,
            Made::Smallest => -EXTREME,
        };
        match dtype {
            DType::F32 => Array::from_vec(dims, vec![float as f32; n]),
            DType::F64 => Array::from_vec(dims, vec![float; n]),
            DType::I64 => {
                let int = match self {
                    Made::Missing => -1,
                    Made::Unknown => i64::from(i32::MAX) + 7,
                    Made::Largest => i64::MAX,
                    Made::Smallest => i64::MIN,
                };
                Array::from_vec(dims, vec![int; n])
            }
            DType::I32 => {
                let int = match self {
                    Made::Missing => -1,
                    Made::Unknown | Made::Largest => i32::MAX,
                    Made::Smallest => i32::MIN,
                };
                Array::from_vec(dims, vec![int; n])
            }
            DType::U8 => Array::from_vec(dims, vec![if matches!(self, Made::Largest) { 255u8 } else { 0 }; n]),
            DType::Bool => Array::from_vec(dims, vec![matches!(self, Made::Largest); n]),
            DType::Str => {
                let long = [b'x'; 1000];
                let text: &[u8] = match self {
                    Made::Missing | Made::Smallest => b"",
                    Made::Unknown => UNKNOWN,
                    Made::Largest => &long,
                };
                Array::from_strings(dims, vec![text; n])
            }
        }
    }
}

/// Converts rows to the inputs of a graph: features by their names, or one list of Examples.
fn inputs(receiver: &ServingInputReceiver, batch: &Batch) -> Result<Vec<(String, Array)>> {
    if let (Some(_), Some((name, _))) = (only_examples(&receiver.receiver_tensors), receiver.receiver_tensors.first())
        && !batch.features().contains_key(name.as_str())
    {
        let mut parsed = Vec::new();
        for (name, feature) in batch.features() {
            match receiver.features.get(&**name) {
                Some(input) => parsed.push((&**name, as_parsed(feature, input)?)),
                // Features that the model does not read need not be in the Examples.
                None if receiver.features.is_empty() => parsed.push((&**name, feature.clone())),
                None => {}
            }
        }
        let examples = encode_batch(parsed.iter().map(|(name, feature)| (*name, feature)))?;
        return Ok(vec![(name.clone(), Array::from_string_list([batch.n_rows()], examples)?)]);
    }
    let mut inputs = Vec::new();
    for (name, tensor) in &receiver.receiver_tensors {
        // A feature without a name is fed under another one.
        let only = batch.features().values().next().filter(|_| batch.features().len() == 1);
        let array = match batch.features().get(name.as_str()).or(only).map_or_else(|| batch.feature(name), Ok)? {
            Feature::Dense(array) => array.clone(),
            Feature::Ragged(ragged) => padded(ragged)?,
        };
        let fits = |(dim, &n): (&estimand_tensor::Dim, &usize)| dim.known().is_none_or(|known| known == n);
        let shape = tensor.shape();
        let fits_all = shape.dims().len() == array.rank() && shape.dims().iter().zip(array.dims()).all(fits);
        if array.dtype() != tensor.dtype() || !fits_all {
            return Err(Error::shape(format!("the rows that were kept do not fit input `{name}`")));
        }
        inputs.push((name.clone(), array));
    }
    Ok(inputs)
}

/// Converts integers to floats if Examples must have floats, as those of numeric columns.
fn as_parsed(feature: &Feature, input: &Input) -> Result<Feature> {
    match (feature, input) {
        (Feature::Dense(array), Input::Dense(tensor))
            if tensor.dtype() == DType::F32 && array.dtype().is_number() && array.dtype() != DType::F32 =>
        {
            let floats = array.to_f64_vec()?.into_iter().map(|v| v as f32).collect();
            Ok(Array::from_vec(array.dims(), floats)?.into())
        }
        _ => Ok(feature.clone()),
    }
}

/// Pads ragged rows with the values that stand for nothing.
fn padded(ragged: &Ragged) -> Result<Array> {
    let splits = ragged.row_splits();
    let width = splits.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0);
    let dims = [ragged.n_rows(), width];
    // One long row among many short ones would take any amount of memory.
    if ragged.n_rows().checked_mul(width).is_none_or(|n| n > MAX_PADDED) {
        return Err(Error::shape(format!(
            "rows that are padded to {dims:?} are too many; at most {MAX_PADDED} values"
        )));
    }
    fn fill<T: Copy>(splits: &[i64], width: usize, values: &[T], nothing: T) -> Vec<T> {
        let mut all = Vec::with_capacity((splits.len().max(1) - 1) * width);
        for row in splits.windows(2) {
            let values = &values[row[0] as usize..row[1] as usize];
            all.extend_from_slice(values);
            all.resize(all.len() + width - values.len(), nothing);
        }
        all
    }
    let values = ragged.values();
    match values.dtype() {
        DType::Str => {
            let texts: Vec<&[u8]> = values.strings()?.collect();
            Array::from_strings(dims, fill(splits, width, &texts, b""))
        }
        DType::I64 => Array::from_vec(dims, fill(splits, width, values.as_slice::<i64>()?, -1)),
        DType::I32 => Array::from_vec(dims, fill(splits, width, values.as_slice::<i32>()?, -1)),
        DType::F32 => Array::from_vec(dims, fill(splits, width, values.as_slice::<f32>()?, 0.0)),
        dtype => Err(Error::unsupported(format!("ragged {dtype} values have no padding"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_rows_are_padded_with_what_stands_for_nothing() {
        let ragged = Ragged::new(Array::from([5i64, 6, 7]), vec![0, 2, 2, 3]).unwrap();
        assert_eq!(padded(&ragged).unwrap(), Array::from_vec([3, 2], vec![5i64, 6, -1, -1, 7, -1]).unwrap());
        let splits: Vec<i64> = std::iter::once(0).chain(vec![10_000; 10_000]).collect();
        let wide = Ragged::new(Array::from(vec![1i64; 10_000]), splits).unwrap();
        assert!(padded(&wide).unwrap_err().to_string().contains("padded to [10000, 10000]"));
        let words = Array::from_strings([1], ["a"]).unwrap();
        let ragged = Ragged::new(words, vec![0, 0, 1]).unwrap();
        assert_eq!(padded(&ragged).unwrap(), Array::from_strings([2, 1], ["", "a"]).unwrap());
    }
}
