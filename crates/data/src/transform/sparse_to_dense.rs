//! Makes a dense feature of the ids and values of sparse rows.

use std::sync::Arc;

use estimand_tensor::{Array, Batch, BatchSpec, DType, Error, Feature, FeatureSpec, Ragged, Result};

use crate::rows::keep_missing;
use crate::stage::{InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

/// The ragged feature with the places of a sparse row's values, counted from 0.
pub(crate) const IDS: &str = "ids";

/// The ragged feature with the values.
pub(crate) const VALUES: &str = "values";

/// The dense feature that is made of both.
pub(crate) const FEATURES: &str = "features";

type WidthFn = dyn Fn() -> Result<usize> + Send + Sync;

/// The stage that replaces `ids` and `values` with `features`. Rows are made dense when they are
/// asked for, since they may be thousands of times as large as before.
pub(crate) struct SparseToDense {
    input: Dataset,
    /// The number of values in a row. May read files.
    width: Arc<WidthFn>,
}

impl SparseToDense {
    pub(crate) fn new(input: Dataset, width: impl Fn() -> Result<usize> + Send + Sync + 'static) -> SparseToDense {
        SparseToDense { input, width: Arc::new(width) }
    }

    fn checked_width(&self) -> Result<usize> {
        match (self.width)()? {
            0 => Err(Error::config("the rows have no features, so they cannot be made dense")
                .help("set n_features, if rows without values are possible")),
            width => Ok(width),
        }
    }
}

impl Stage for SparseToDense {
    fn describe(&self) -> String {
        "dense".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        let width = self.checked_width()?;
        let mut spec = BatchSpec::default();
        spec.insert(FEATURES.to_string(), FeatureSpec::dense(DType::F32, [width]));
        spec.extend(self.input.spec()?.into_iter().filter(|(name, _)| name != IDS && name != VALUES));
        Ok(spec)
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        Some(Dataset::new(SparseToDense { input: shuffle(&self.input), width: self.width.clone() }))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        Ok(Box::new(DenseStream { input: self.input.stage().open(cx, from)?, width: self.checked_width()? }))
    }
}

struct DenseStream {
    input: Box<dyn Stream>,
    width: usize,
}

impl Stream for DenseStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        Ok(Some(StreamItem { batch: dense(&batch, self.width)?, after }))
    }
}

fn dense(batch: &Batch, width: usize) -> Result<Batch> {
    let (ids, values) = (ragged(batch, IDS)?, ragged(batch, VALUES)?);
    let mut array = Array::zeros(DType::F32, [batch.n_rows(), width])?;
    let places = array.as_mut_slice::<f32>()?;
    let (all_ids, all_values) = (ids.values().as_slice::<i64>()?, values.values().as_slice::<f32>()?);
    for (row, split) in ids.row_splits().windows(2).enumerate() {
        for i in split[0] as usize..split[1] as usize {
            let id = usize::try_from(all_ids[i]).ok().filter(|&id| id < width).ok_or_else(|| {
                Error::index(format!("the id {} is not one of the {width} features", all_ids[i]))
                    .help("the files may have changed since their features were counted; set n_features")
            })?;
            // An id that occurs twice stands for the sum, as in a sparse matrix.
            places[row * width + id] += all_values[i];
        }
    }
    let mut changed = Batch::new().with_feature(FEATURES, array)?;
    for (name, feature) in batch.features().iter().filter(|(name, _)| ***name != *IDS && ***name != *VALUES) {
        changed = changed.with_feature(name, feature.clone())?;
    }
    for (name, label) in batch.labels() {
        changed = changed.with_label(name, label.clone())?;
    }
    keep_missing(batch, changed)
}

fn ragged<'a>(batch: &'a Batch, name: &str) -> Result<&'a Ragged> {
    match batch.feature(name)? {
        Feature::Ragged(ragged) => Ok(ragged),
        Feature::Dense(_) => Err(Error::internal(format!("`{name}` of sparse rows is dense"))),
    }
}
