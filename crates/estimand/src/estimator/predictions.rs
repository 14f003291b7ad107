//! A lazy iterator over the predictions for an input, row by row or batch by batch, with hooks.

use std::collections::VecDeque;
use std::path::Path;

use estimand_data::writer::Written;
use estimand_data::{Dataset, Position, Stream, StreamItem};
use estimand_tensor::{Array, Error, Mode, Result};

use super::Estimator;
use super::build::Opened;
use super::predict::{Asked, Resident};
use super::predict_spec::PredictSpec;
use super::prediction::Prediction;
use crate::hook::{Hook, HookContext, Hooks, Requests};

/// An iterator over the predictions for an input. It ends after an error.
pub struct Predictions<'a> {
    estimator: &'a Estimator,
    spec: PredictSpec<'a>,
    state: State<'a>,
}

enum State<'a> {
    /// No prediction was requested yet, so nothing is read.
    Idle,
    Running(Box<Running<'a>>),
    Ended,
}

struct Running<'a> {
    resident: Resident,
    hooks: Hooks<'a>,
    requests: Requests,
    forwarded: Vec<String>,
    first: Option<StreamItem>,
    stream: Box<dyn Stream>,
    /// Rows of the last batch that were not returned yet.
    rows: VecDeque<Prediction>,
}

impl Running<'_> {
    /// Returns the predictions for the next batch, if there is one and no hook has requested the
    /// end.
    fn batch(&mut self, model_dir: &Path) -> Result<Option<Prediction>> {
        if self.requests.stop.is_none() {
            self.visit("before_run", model_dir, |hook, cx| hook.before_run(cx))?;
            self.resident.asked.session.begin_input();
            let item = match self.first.take() {
                Some(item) => Some(item),
                None => self.stream.pull(1)?,
            };
            if let Some(item) = item {
                let all = self.resident.asked.predict(&item.batch)?.behind(&self.forwarded, &item.batch)?;
                self.visit("after_run", model_dir, |hook, cx| hook.after_run(cx))?;
                return Ok(Some(all));
            }
        }
        self.visit("end", model_dir, |hook, cx| hook.end(cx))?;
        Ok(None)
    }

    /// Calls a method of every hook.
    fn visit(
        &mut self,
        phase: &str,
        model_dir: &Path,
        mut call: impl FnMut(&mut dyn Hook, &mut HookContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let Running { resident: Resident { asked, .. }, hooks, requests, .. } = self;
        let Asked { session, outputs, .. } = asked;
        let mut cx = HookContext {
            session,
            model_dir,
            events: None,
            values: outputs,
            requested: &[],
            loss: None,
            running_metrics: None,
            batch_numbers: None,
            requests,
        };
        hooks.each(phase, |hook| call(hook, &mut cx))
    }
}

impl Estimator {
    /// Returns a lazy iterator over the predictions for the rows of an input.
    ///
    /// The model stays in memory for the next call, until it is trained further. A model with hooks
    /// is rebuilt for each call.
    pub fn predict<'a>(&'a self, spec: impl Into<PredictSpec<'a>>) -> Predictions<'a> {
        Predictions::new(self, spec.into())
    }
}

impl<'a> Predictions<'a> {
    fn new(estimator: &'a Estimator, spec: PredictSpec<'a>) -> Predictions<'a> {
        Predictions { estimator, spec, state: State::Idle }
    }

    /// Returns the predictions as a dataset, which can be written to any file format or read by
    /// another model.
    ///
    /// Its features are the predictions, after those that [`PredictSpec::forward`] names. A
    /// prediction with one number per row, `[n, 1]`, becomes a plain column `[n]`. The dataset
    /// holds the model, and predicts when it is read. It calls no hooks.
    pub fn dataset(&self) -> Result<Dataset> {
        if !self.spec.hooks.is_empty() {
            return Err(Error::unsupported("predictions with hooks cannot be a dataset")
                .help("iterate over the predictions, or leave the hooks out"));
        }
        let Opened { data, spec, .. } = self.open()?;
        let predictor = self.estimator.make_predictor(&spec, &self.spec.wanted())?;
        let forwarded = self.spec.forwarded.clone();
        Ok(data.map(move |batch| predictor.predict(&batch)?.behind(&forwarded, &batch)?.into_batch()))
    }

    /// Writes the predictions to a CSV file, complete or not at all. A prediction of several
    /// numbers per row has a column for each: `probabilities_0`, `probabilities_1`.
    ///
    /// [`dataset`](Predictions::dataset) gives them to other writers.
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<Written> {
        self.dataset()?.write_csv(path)
    }

    fn open(&self) -> Result<Opened> {
        let seed = self.estimator.config.tf_random_seed.unwrap_or(0);
        let cx = self.estimator.input_context(Mode::Predict, seed, 0);
        let data = self.estimator.dataset(&*self.spec.input, cx)?;
        if data.is_endless() {
            return Err(Error::config("the input of the prediction never ends")
                .help("leave out `repeat_forever`, or predict the first n batches with `take(n)`"));
        }
        self.estimator.open_input(data, &cx, &Position::default())
    }

    fn start(&mut self) -> Result<Running<'a>> {
        let Opened { stream, first, spec, .. } = self.open()?;
        let users = std::mem::take(&mut self.spec.hooks);
        let (resident, hooks) = self.estimator.take_resident(&spec, self.spec.wanted(), users)?;
        let (requests, forwarded) = (Requests::default(), self.spec.forwarded.clone());
        let mut running = Running { resident, hooks, requests, forwarded, first, stream, rows: VecDeque::new() };
        running.visit("after_create_session", &self.estimator.model_dir, |hook, cx| hook.after_create_session(cx))?;
        Ok(running)
    }

    fn try_next(&mut self) -> Result<Option<Prediction>> {
        if let State::Idle = self.state {
            self.state = State::Running(Box::new(self.start()?));
        }
        let State::Running(running) = &mut self.state else { return Ok(None) };
        loop {
            if let Some(row) = running.rows.pop_front() {
                return Ok(Some(row));
            }
            let Some(all) = running.batch(&self.estimator.model_dir)? else { return Ok(None) };
            if self.spec.by_batch {
                return Ok(Some(all));
            }
            running.rows = rows(&all)?;
        }
    }

    /// Keeps the model for the next call, unless it has hooks, which were already ended.
    fn end(&mut self) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Ended)
            && running.hooks.iter().next().is_none()
        {
            self.estimator.keep_resident(running.resident);
        }
    }
}

/// Splits the predictions of a batch into one per row.
fn rows(all: &Prediction) -> Result<VecDeque<Prediction>> {
    let n_rows = all.iter().next().and_then(|(_, array)| array.dims().first()).copied().unwrap_or(0);
    for (name, array) in all.iter() {
        if array.dims().first() != Some(&n_rows) {
            let dims = array.dims();
            return Err(Error::shape(format!(
                "prediction `{name}` has the shape {dims:?}, but other predictions have {n_rows} rows"
            ))
            .help("ask for whole batches with by_batch(true), or give every prediction a row for each example"));
        }
    }
    let row = |i: usize| {
        let cut =
            |(name, array): (&str, &Array)| Ok((name.to_string(), array.rows(i..i + 1)?.reshape(&array.dims()[1..])?));
        all.iter().map(cut).collect::<Result<Prediction>>()
    };
    (0..n_rows).map(row).collect()
}

impl Iterator for Predictions<'_> {
    type Item = Result<Prediction>;

    fn next(&mut self) -> Option<Result<Prediction>> {
        let next = self.try_next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.end();
        }
        next
    }
}

impl Drop for Predictions<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
