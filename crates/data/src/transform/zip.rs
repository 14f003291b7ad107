//! Joins the features of several datasets, element by element.

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::agreement::check_units;
use crate::rows::{collect, keep_missing, slice};
use crate::stage::{Indexed, InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

impl Dataset {
    /// Joins the features of several datasets: element i has the features of every dataset's
    /// element i. Ends with the shortest dataset.
    ///
    /// Two features with one name are an error. Batches that are joined must have the same number
    /// of rows; it is better to zip rows first and batch the result.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::{Array, Result};
    /// let ages = Dataset::from_arrays([("age", Array::from([39i64, 50, 38]))]);
    /// let names = Dataset::from_arrays([("name", Array::from_strings([2], ["Ada", "Bo"])?)]);
    /// let both: Vec<_> = Dataset::zip([ages, names]).iter().collect::<Result<_>>()?;
    /// assert_eq!(both.len(), 2);
    /// assert_eq!(both[1].features()["age"], Array::from([50i64]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn zip(datasets: impl IntoIterator<Item = Dataset>) -> Dataset {
        Dataset::new(Zip { inputs: datasets.into_iter().collect() })
    }
}

/// The stage of `zip`. The position holds 1 once an input has ended, and the positions of the
/// inputs.
struct Zip {
    inputs: Vec<Dataset>,
}

impl Stage for Zip {
    fn describe(&self) -> String {
        format!("zip({})", self.inputs.len())
    }

    fn inputs(&self) -> &[Dataset] {
        &self.inputs
    }

    fn check(&self) -> Result<()> {
        check_units("zip", &self.inputs)
    }

    fn spec(&self) -> Result<BatchSpec> {
        let mut all = BatchSpec::new();
        for input in &self.inputs {
            for (name, spec) in input.spec()? {
                if all.contains_key(&name) {
                    return Err(clash("features", &name));
                }
                all.insert(name, spec);
            }
        }
        Ok(all)
    }

    fn is_endless(&self) -> bool {
        !self.inputs.is_empty() && self.inputs.iter().all(Dataset::is_endless)
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        let by_number = !self.inputs.is_empty() && self.inputs.iter().all(|input| input.stage().indexed().is_some());
        by_number.then_some(self)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let (words, below) = from.parts_of(1, self.inputs.len())?;
        let ended = words != [0];
        let mut inputs = Vec::new();
        for (input, from) in self.inputs.iter().zip(&below).filter(|_| !ended) {
            inputs.push(input.stage().open(cx, from)?);
        }
        Ok(Box::new(ZipStream { inputs, unit: self.unit(), ended }))
    }
}

impl Indexed for Zip {
    fn n_rows(&self) -> Result<u64> {
        let parts = self.inputs.iter().filter_map(|input| input.stage().indexed());
        parts.map(Indexed::n_rows).try_fold(u64::MAX, |least, n| Ok(least.min(n?)))
    }

    fn gather(&self, rows: &[u64]) -> Result<Batch> {
        let parts = self.inputs.iter().filter_map(|input| input.stage().indexed());
        side_by_side(parts.map(|input| input.gather(rows)).collect::<Result<Vec<_>>>()?)
    }
}

struct ZipStream {
    inputs: Vec<Box<dyn Stream>>,
    unit: Unit,
    ended: bool,
}

impl Stream for ZipStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        if self.ended {
            return Ok(None);
        }
        let (mut parts, mut below): (Vec<Batch>, Vec<Position>) = Default::default();
        for input in &mut self.inputs {
            // The first input sets the number of rows; the others must yield the same number.
            let item = match (self.unit, parts.first()) {
                (Unit::Row, Some(first)) => collect(&mut **input, first.n_rows())?,
                _ => input.pull(want)?,
            };
            let Some(item) = item else {
                self.ended = true;
                return Ok(None);
            };
            parts.push(item.batch);
            below.push(item.after);
        }
        if self.unit == Unit::Row {
            let n_rows = parts.iter().map(Batch::n_rows).min().unwrap_or(0);
            self.ended = parts.iter().any(|part| part.n_rows() > n_rows);
            parts = parts.iter().map(|part| slice(part, 0..n_rows)).collect::<Result<_>>()?;
        }
        Ok(Some(StreamItem { batch: side_by_side(parts)?, after: Position::new([u64::from(self.ended)], below) }))
    }
}

fn side_by_side(parts: Vec<Batch>) -> Result<Batch> {
    let mut all = Batch::new();
    for part in parts {
        for (name, feature) in part.features() {
            if all.features().contains_key(name) {
                return Err(clash("features", name));
            }
            all = all.with_feature(name, feature.clone()).map_err(unequal)?;
        }
        for (name, label) in part.labels() {
            if all.labels().contains_key(name) {
                return Err(clash("labels", name));
            }
            all = all.with_label(name, label.clone()).map_err(unequal)?;
        }
        if let Some(weights) = part.weights() {
            if all.weights().is_some() {
                return Err(Error::config("two of the zipped datasets have weights").help("call `weights` after `zip`"));
            }
            all = all.with_weights(weights.clone()).map_err(unequal)?;
        }
        all = keep_missing(&part, all)?;
    }
    Ok(all)
}

fn clash(what: &str, name: &str) -> Error {
    Error::config(format!("two of the zipped datasets have {what} named `{name}`"))
        .help("rename one of them with `map`")
}

fn unequal(error: Error) -> Error {
    error.context("in the batches that `zip` joins").help("zip rows, and batch the result")
}
