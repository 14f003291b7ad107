//! `evaluate` and `predict`.

use estimand_tensor::{Array, Error, Mode, Result};

use super::callback::{Callback, Callbacks};
use super::data::Data;
use super::fit::Logs;
use super::model::Model;
use super::programs::Running;

/// The arguments of [`Model::evaluate`].
#[must_use]
pub struct Evaluate<'a> {
    data: Data,
    batch_size: Option<usize>,
    steps: Option<usize>,
    callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl<'a> Evaluate<'a> {
    /// Evaluates on `(x, y)`, `(x, y, weights)` or a dataset of batches.
    pub fn new(data: impl Into<Data>) -> Evaluate<'a> {
        Evaluate { data: data.into(), batch_size: None, steps: None, callbacks: Vec::new() }
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
    callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl<'a> Predict<'a> {
    /// Predicts for `x`, or for the features of a dataset of batches.
    pub fn new(data: impl Into<Data>) -> Predict<'a> {
        Predict { data: data.into(), batch_size: None, steps: None, callbacks: Vec::new() }
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
        let batches = spec.data.batches(self, spec.batch_size, false)?;
        if batches.dataset.is_endless() && spec.steps.is_none() {
            return Err(Error::config("the dataset never ends").help("set steps"));
        }
        callbacks.on_test_begin(self)?;
        let mut source = self.open(&batches, Mode::Eval, 0, None)?;
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
        }
        let logs: Logs = running.values(&source.program)?.into_iter().collect();
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
        let batches = spec.data.batches(self, spec.batch_size, false)?;
        if batches.dataset.is_endless() && spec.steps.is_none() {
            return Err(Error::config("the dataset never ends").help("set steps"));
        }
        callbacks.on_predict_begin(self)?;
        let mut source = self.open(&batches, Mode::Predict, 0, None)?;
        let (mut found, mut outputs, mut batch) = (Vec::new(), Vec::new(), 0);
        while spec.steps.is_none_or(|n| batch < n) {
            let Some(fed) = source.next()? else { break };
            callbacks.on_predict_batch_begin(self, batch)?;
            source.program.run(&mut self.weights, &fed.feeds, &mut outputs)?;
            source.recycle(fed);
            found.push(std::mem::take(&mut outputs));
            callbacks.on_predict_batch_end(self, batch)?;
            batch += 1;
        }
        callbacks.on_predict_end(self)?;
        let n = found.first().map_or(0, Vec::len);
        (0..n).map(|i| concat(&found.iter().map(|outputs| &outputs[i]).collect::<Vec<_>>())).collect()
    }

    /// Predicts for one batch of arrays: one array for each output.
    pub fn predict_on_batch(&mut self, data: impl Into<Data>) -> Result<Vec<Array>> {
        Ok(self.run_batch(&data.into(), Mode::Predict)?.1)
    }
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
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes().iter().copied()).collect();
    Array::from_bytes(first.dtype(), dims, &bytes)
}
