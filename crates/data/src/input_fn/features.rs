//! An input function over records of `tf.Example`s: TensorFlow's `make_batched_features_dataset`.

use estimand_tensor::FeatureSpec;

use super::BATCH_SIZE;
use crate::Dataset;
use crate::files::Files;

/// Starts an input function over TFRecord files of `tf.Example`s, with a spec of their features.
///
/// ```
/// use estimand_data::{Dataset, input_fn};
/// use estimand_tensor::{Array, DType, FeatureSpec, Result};
///
/// # let file = std::env::temp_dir().join(format!("estimand-doc-features-{}.tfrecord", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0])), ("y", Array::from([0i64, 1, 1]))];
/// Dataset::from_arrays(rows).write_tfrecord(&file)?;
/// let spec = [("x", FeatureSpec::dense(DType::F32, [])), ("y", FeatureSpec::dense(DType::I64, []))];
/// let data = input_fn::batched_features(&file, spec).batch_size(2).label_key("y").n_epochs(Some(1)).no_shuffle().dataset();
/// let sizes: Vec<usize> = data.iter().map(|batch| Ok(batch?.n_rows())).collect::<Result<_>>()?;
/// assert_eq!(sizes, [2, 1]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn batched_features<N: Into<String>>(
    files: impl Into<Files>,
    features: impl IntoIterator<Item = (N, FeatureSpec)>,
) -> FeaturesInput {
    FeaturesInput {
        records: Dataset::from_tfrecord(files, features),
        batch_size: BATCH_SIZE,
        n_epochs: None,
        shuffle: Some((10_000, 0)),
        drops_final_batch: false,
    }
}

/// A builder of an input function over records. [`dataset`](FeaturesInput::dataset) finishes it.
#[derive(Clone, Debug)]
#[must_use]
pub struct FeaturesInput {
    records: Dataset,
    batch_size: usize,
    n_epochs: Option<u64>,
    /// The size of the buffer, and the seed.
    shuffle: Option<(usize, u64)>,
    drops_final_batch: bool,
}

impl FeaturesInput {
    /// The number of rows in a batch. By default, 128; TensorFlow has no default.
    pub fn batch_size(mut self, n: usize) -> FeaturesInput {
        self.batch_size = n;
        self
    }

    /// The feature that is the label; it must be in the spec. By default, there is none.
    pub fn label_key(mut self, name: &str) -> FeaturesInput {
        self.records = self.records.label(name);
        self
    }

    /// The number of passes over the records. By default, `None`: without end.
    pub fn n_epochs(mut self, n: Option<u64>) -> FeaturesInput {
        self.n_epochs = n;
        self
    }

    /// Shuffles with a buffer of `buffer_size` rows. By default, 10,000 rows and the seed 0.
    pub fn shuffle(mut self, buffer_size: usize, seed: u64) -> FeaturesInput {
        self.shuffle = Some((buffer_size, seed));
        self
    }

    /// Keeps the order of the records.
    pub fn no_shuffle(mut self) -> FeaturesInput {
        self.shuffle = None;
        self
    }

    /// Leaves out the last batch if it is not full. By default, it is kept, and with endless epochs
    /// there is none.
    pub fn drop_final_batch(mut self) -> FeaturesInput {
        self.drops_final_batch = true;
        self
    }

    /// Builds the dataset of batches. As in TensorFlow, a batch may hold rows of two epochs.
    pub fn dataset(self) -> Dataset {
        let rows = match self.shuffle {
            Some((buffer_size, seed)) => self.records.shuffle(buffer_size, seed),
            None => self.records,
        };
        let batches = match self.n_epochs {
            Some(n) => rows.repeat(n),
            None => rows.repeat_forever(),
        }
        .batch(self.batch_size);
        if self.drops_final_batch { batches.drop_remainder() } else { batches }
    }
}
