//! Converts a dense feature to a ragged one.

use estimand_tensor::{Batch, BatchSpec, Error, Feature, FeatureSpec, Ragged, Result};

use crate::agreement::missing;
use crate::stage::{InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

impl Dataset {
    /// Makes a dense feature of several values per row ragged. Then rows of other lengths can
    /// follow, and ops on ragged features accept it. Batches of ragged rows are ragged.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::{Array, Ragged};
    /// let data = |n: usize| Dataset::from_array(Array::from_vec([1, n], vec![n as i64; n]).unwrap()).dense_to_ragged("");
    /// let both = data(1).concatenate(&data(2)).batch(2).iter().next().unwrap()?;
    /// assert_eq!(both.features()[""], Ragged::new(Array::from([1i64, 2, 2]), [0, 1, 3])?.into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn dense_to_ragged(&self, name: &str) -> Dataset {
        Dataset::new(DenseToRagged { input: self.clone(), name: name.to_string() })
    }
}

/// The stage of `dense_to_ragged`. Its position is that of its input.
struct DenseToRagged {
    input: Dataset,
    name: String,
}

impl Stage for DenseToRagged {
    fn describe(&self) -> String {
        format!("dense_to_ragged(`{}`)", self.name)
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        let mut spec = self.input.spec()?;
        match spec.get_mut(&self.name) {
            Some(feature) => *feature = FeatureSpec::ragged(feature.dtype()),
            None => return Err(missing(&self.name, "to make ragged", spec.keys().map(String::as_str))),
        }
        Ok(spec)
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        Some(shuffle(&self.input).dense_to_ragged(&self.name))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        Ok(Box::new(RaggedStream { input: self.input.stage().open(cx, from)?, name: self.name.clone() }))
    }
}

struct RaggedStream {
    input: Box<dyn Stream>,
    name: String,
}

impl Stream for RaggedStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        Ok(Some(StreamItem { batch: ragged(batch, &self.name)?, after }))
    }
}

fn ragged(batch: Batch, name: &str) -> Result<Batch> {
    let array = match batch.features().get(name) {
        None => return Err(missing(name, "to make ragged", batch.features().keys().map(|name| &**name))),
        Some(Feature::Ragged(_)) => return Ok(batch),
        Some(Feature::Dense(array)) => array,
    };
    let [n_rows, width, inner @ ..] = array.dims() else {
        return Err(Error::shape(format!("feature `{name}` has one value per row, so it cannot become ragged")));
    };
    let values = array.reshape([&[n_rows * width], inner].concat())?;
    let splits: Vec<i64> = (0..=*n_rows).map(|i| (i * width) as i64).collect();
    batch.with_feature(name, Ragged::new(values, splits)?)
}
