//! `evaluate` and `predict`.

use estimand_tensor::{Array, DType, Error, Mode, Result};

use super::callback::{Callback, Callbacks};
use super::data::Data;
use super::history::Logs;
use super::model::Model;
use super::programs::Running;
use super::verbose::{EpochLine, Verbose};

/// The arguments of [`Model::evaluate`].
#[must_use]
pub struct Evaluate<'a> {
    data: Data,
    batch_size: Option<usize>,
    steps: Option<usize>,
    verbose: u8,
    callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl<'a> Evaluate<'a> {
    /// Evaluates on `(x, y)`, `(x, y, weights)` or a dataset of batches.
    pub fn new(data: impl Into<Data>) -> Evaluate<'a> {
        Evaluate { data: data.into(), batch_size: None, steps: None, verbose: 0, callbacks: Vec::new() }
    }

    /// The number of rows in a batch of arrays. By default 32.
    pub fn batch_size(mut self, n: usize) -> Evaluate<'a> {
        self.batch_size = Some(n);
        self
    }

    pub(super) fn maybe_batch_size(mut self, n: Option<usize>) -> Evaluate<'a> {
        self.batch_size = n;
        self
    }

    /// The number of batches to use. By default all.
    pub fn steps(mut self, n: usize) -> Evaluate<'a> {
        self.steps = Some(n);
        self
    }

    /// What to show on stderr: 1 is Keras' progress bar, 2 is one line, 0 is nothing. By default 0.
    pub fn verbose(mut self, level: u8) -> Evaluate<'a> {
        self.verbose = level;
        self
    }

    /// Adds a callback.
    pub fn callback(mut self, callback: impl Callback + 'a) -> Evaluate<'a> {
        self.callbacks.push(Box::new(callback));
        self
    }
}

impl<D: Into<Data>> From<D> for Evaluate<'_> {
    fn from(data: D) -> Self {
        Evaluate::new(data)
    }
}

/// The arguments of [`Model::predict`].
#[must_use]
pub struct Predict<'a> {
    data: Data,
    batch_size: Option<usize>,
    steps: Option<usize>,
    verbose: u8,
    callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl<'a> Predict<'a> {
    /// Predicts for `x`, or for the features of a dataset of batches.
    pub fn new(data: impl Into<Data>) -> Predict<'a> {
        Predict { data: data.into(), batch_size: None, steps: None, verbose: 0, callbacks: Vec::new() }
    }

    /// The number of rows in a batch of arrays. By default 32.
    pub fn batch_size(mut self, n: usize) -> Predict<'a> {
        self.batch_size = Some(n);
        self
    }

    /// The number of batches to use. By default all.
    pub fn steps(mut self, n: usize) -> Predict<'a> {
        self.steps = Some(n);
        self
    }

    /// What to show on stderr: 1 is Keras' progress bar, 2 is one line, 0 is nothing. By default 0.
    pub fn verbose(mut self, level: u8) -> Predict<'a> {
        self.verbose = level;
        self
    }

    /// Adds a callback.
    pub fn callback(mut self, callback: impl Callback + 'a) -> Predict<'a> {
        self.callbacks.push(Box::new(callback));
        self
    }
}

impl<D: Into<Data>> From<D> for Predict<'_> {
    fn from(data: D) -> Self {
        Predict::new(data)
    }
}

impl Model {
    /// Computes the loss and the metrics over all batches.
    pub fn evaluate<'a>(&mut self, evaluate: impl Into<Evaluate<'a>>) -> Result<Logs> {
        let mut spec = evaluate.into();
        let mut callbacks = Callbacks::new(std::mem::take(&mut spec.callbacks));
        let found = self.evaluate_with(&spec, &mut callbacks);
        found.map_err(|error| error.context(format!("in evaluate of model `{}`", self.name())))
    }

    pub(super) fn evaluate_with(&mut self, spec: &Evaluate<'_>, callbacks: &mut Callbacks<'_>) -> Result<Logs> {
        self.check_compiled()?;
        Verbose::check(spec.verbose)?;
        let batches = spec.data.batches(self, spec.batch_size, false)?;
        if batches.dataset.is_endless() && spec.steps.is_none() {
            return Err(Error::config("the dataset never ends").help("set steps"));
        }
        callbacks.on_test_begin(self)?;
        let mut source = self.open(&batches, Mode::Eval, 0, None)?;
        let mut line = EpochLine::begin(spec.verbose, 0, 1, spec.steps.or(batches.n_batches));
        let (mut running, mut outputs, mut batch) = (Running::default(), Vec::new(), 0);
        while spec.steps.is_none_or(|n| batch < n) {
            let Some(fed) = source.next()? else { break };
            callbacks.on_test_batch_begin(self, batch)?;
            source.program.run(&mut self.weights, &fed.feeds, &mut outputs)?;
            running.add(&source.program, &outputs, fed.batch().n_rows())?;
            source.recycle(fed);
            if callbacks.want_batch_logs() {
                let logs: Logs = running.values(&source.program)?.into_iter().collect();
                callbacks.on_test_batch_end(self, batch, &logs)?;
            }
            batch += 1;
            line.step(batch, || running.values(&source.program).ok());
        }
        let logs: Logs = running.values(&source.program)?.into_iter().collect();
        line.end(&logs);
        callbacks.on_test_end(self, &logs)?;
        Ok(logs)
    }

    /// Predicts for all rows. The model must have one output; see
    /// [`predict_all`](Model::predict_all).
    pub fn predict<'a>(&mut self, predict: impl Into<Predict<'a>>) -> Result<Array> {
        self.check_one_output("predict_all")?;
        let mut all = self.predict_all(predict)?;
        all.pop().ok_or_else(|| Error::internal("a prediction without outputs"))
    }

    /// Predicts the class of every row: the place of the largest number along the last axis, or,
    /// where there is only one number, whether it is above a half, as 0 or 1.
    ///
    /// The model must have one output, of probabilities.
    pub fn predict_classes<'a>(&mut self, predict: impl Into<Predict<'a>>) -> Result<Array> {
        classes(&self.predict(predict)?)
    }

    fn check_one_output(&self, instead: &str) -> Result<()> {
        let names = self.output_names();
        match &names[..] {
            [_] => Ok(()),
            names => {
                let text = format!("model `{}` has {} outputs: {}", self.name(), names.len(), names.join(", "));
                Err(Error::config(text).help(format!("use {instead}, which returns one array for each")))
            }
        }
    }

    /// Predicts for all rows: one array for each output.
    pub fn predict_all<'a>(&mut self, predict: impl Into<Predict<'a>>) -> Result<Vec<Array>> {
        let mut spec = predict.into();
        let mut callbacks = Callbacks::new(std::mem::take(&mut spec.callbacks));
        let found = self.predict_with(&spec, &mut callbacks);
        found.map_err(|error| error.context(format!("in predict of model `{}`", self.name())))
    }

    fn predict_with(&mut self, spec: &Predict<'_>, callbacks: &mut Callbacks<'_>) -> Result<Vec<Array>> {
        Verbose::check(spec.verbose)?;
        let batches = spec.data.batches(self, spec.batch_size, false)?;
        if batches.dataset.is_endless() && spec.steps.is_none() {
            return Err(Error::config("the dataset never ends").help("set steps"));
        }
        callbacks.on_predict_begin(self)?;
        let mut source = self.open(&batches, Mode::Predict, 0, None)?;
        let mut line = EpochLine::begin(spec.verbose, 0, 1, spec.steps.or(batches.n_batches));
        let (mut found, mut outputs, mut batch) = (Vec::new(), Vec::new(), 0);
        while spec.steps.is_none_or(|n| batch < n) {
            let Some(fed) = source.next()? else { break };
            callbacks.on_predict_batch_begin(self, batch)?;
            source.program.run(&mut self.weights, &fed.feeds, &mut outputs)?;
            source.recycle(fed);
            found.push(std::mem::take(&mut outputs));
            callbacks.on_predict_batch_end(self, batch)?;
            batch += 1;
            line.step(batch, || None);
        }
        line.end(&Logs::new());
        callbacks.on_predict_end(self)?;
        let n = found.first().map_or(0, Vec::len);
        (0..n).map(|i| concat(&found.iter().map(|outputs| &outputs[i]).collect::<Vec<_>>())).collect()
    }

    /// Predicts for one batch of arrays: one array for each output.
    pub fn predict_on_batch(&mut self, data: impl Into<Data>) -> Result<Vec<Array>> {
        Ok(self.run_batch(&data.into(), Mode::Predict)?.1)
    }
}

/// The classes of probabilities, as `predict_classes` of Keras had them.
fn classes(probabilities: &Array) -> Result<Array> {
    let dims = probabilities.dims();
    let [rows @ .., n] = dims else {
        let text = format!("the model's output has the shape {dims:?}; expected [batch, classes]");
        return Err(Error::shape(text));
    };
    let values = probabilities.as_slice::<f32>()?;
    match *n {
        0 => Err(Error::shape(format!("the model's output has the shape {dims:?}: there are no classes"))),
        1 => Array::from_vec(dims, values.iter().map(|&p| i64::from(p > 0.5)).collect()),
        n => Array::from_vec(rows, values.chunks_exact(n).map(largest).collect()),
    }
}

/// The place of the largest number; of equal ones, the first. A NaN is the largest, as in numpy.
fn largest(row: &[f32]) -> i64 {
    let above = |a: f32, b: f32| a > b || (a.is_nan() && !b.is_nan());
    (1..row.len()).fold(0, |best, i| if above(row[i], row[best]) { i } else { best }) as i64
}

/// Puts the rows of batches one after another.
fn concat(parts: &[&Array]) -> Result<Array> {
    let Some(first) = parts.first() else { return Err(Error::internal("no batches to put together")) };
    let row = first.dims().get(1..).unwrap_or(&[]);
    if let Some(other) = parts.iter().find(|part| part.dims().get(1..) != Some(row)) {
        let text = format!("batches have outputs of the shapes {:?} and {:?}", first.dims(), other.dims());
        return Err(Error::shape(text).help("predict batch by batch with predict_on_batch"));
    }
    let n: usize = parts.iter().map(|part| part.dims()[0]).sum();
    let dims: Vec<usize> = std::iter::once(n).chain(row.iter().copied()).collect();
    if first.dtype() == DType::Str {
        let texts = parts.iter().map(|part| part.strings()).collect::<Result<Vec<_>>>()?;
        return Array::from_strings(dims, texts.into_iter().flatten());
    }
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes().iter().copied()).collect();
    Array::from_bytes(first.dtype(), dims, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two equal numbers the first counts; one number is a class if it is above a half, not at
    /// it.
    #[test]
    fn classes_are_places_or_sides_of_a_half() -> Result<()> {
        let several = Array::from_vec([3, 3], vec![0.2f32, 0.5, 0.3, 0.4, 0.2, 0.4, 0.1, f32::NAN, 0.9])?;
        assert_eq!(classes(&several)?, Array::from(vec![1i64, 0, 1]));
        let one = Array::from_vec([3, 1], vec![0.2f32, 0.5, 0.51])?;
        assert_eq!(classes(&one)?, Array::from_vec([3, 1], vec![0i64, 0, 1])?);
        assert!(classes(&Array::scalar(0.5f32)).is_err());
        assert!(classes(&Array::from_vec([3, 0], Vec::<f32>::new())?).is_err());
        Ok(())
    }

    #[test]
    fn batches_of_strings_are_put_together() -> Result<()> {
        let [first, second] = [Array::from_strings([2, 1], ["a", "bc"])?, Array::from_strings([1, 1], [""])?];
        assert_eq!(concat(&[&first, &second])?, Array::from_strings([3, 1], ["a", "bc", ""])?);
        Ok(())
    }
}
