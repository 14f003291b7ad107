//! Prediction: lazily over an input, or at once for a batch with a model that stays in memory.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use estimand_data::{Dataset, Item, Position, Stream};
use estimand_graph::{Compiled, Value};
use estimand_tensor::{Array, Batch, Error, Mode, Result};
use indexmap::IndexMap;
use tracing::info;

use super::build::Opened;
use super::{Estimator, checkpoint_at};
use crate::feeding::Binding;
use crate::input_fn::InputFn;
use crate::model_fn::InputSpec;
use crate::session::TrainSession;

/// Predictions by name; of one row, or of all rows of a batch.
pub type Prediction = IndexMap<String, Array>;

/// What to predict for.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) is one by itself: every row gets all predictions.
pub struct PredictSpec<'a> {
    input: Box<dyn InputFn + 'a>,
    keys: Option<Vec<String>>,
    checkpoint: Option<PathBuf>,
    by_batch: bool,
}

impl<'a> PredictSpec<'a> {
    /// Predicts for every row of an input. Labels are left alone.
    pub fn new(input: impl InputFn + 'a) -> PredictSpec<'a> {
        PredictSpec { input: Box::new(input), keys: None, checkpoint: None, by_batch: false }
    }

    /// The predictions wanted. By default, all. Names that the model does not have are passed over, unless it has none of them.
    pub fn keys<N: Into<String>>(mut self, keys: impl IntoIterator<Item = N>) -> PredictSpec<'a> {
        self.keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// The checkpoint to predict with. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> PredictSpec<'a> {
        self.checkpoint = Some(path.into());
        self
    }

    /// Whether whole batches are returned. By default, single rows.
    pub fn by_batch(mut self, by_batch: bool) -> PredictSpec<'a> {
        self.by_batch = by_batch;
        self
    }
}

impl From<Dataset> for PredictSpec<'_> {
    fn from(data: Dataset) -> Self {
        PredictSpec::new(data)
    }
}

impl<'a> From<&'a Dataset> for PredictSpec<'a> {
    fn from(data: &'a Dataset) -> Self {
        PredictSpec::new(data)
    }
}

/// A model in memory that answers batches: no file is read after it was made.
pub struct Predictor {
    session: TrainSession,
    compiled: Arc<Compiled>,
    binding: Binding,
    keys: Vec<String>,
    outputs: Vec<Array>,
}

/// A predictor, and what it was made from.
pub(super) struct Resident {
    checkpoint: Option<PathBuf>,
    spec: InputSpec,
    keys: Option<Vec<String>>,
    predictor: Predictor,
}

impl Predictor {
    /// The predictions for all rows of a batch.
    pub fn predict(&mut self, batch: &Batch) -> Result<Prediction> {
        let feeds = self.compiled.prepare(self.binding.bind(batch)?)?;
        self.session.run(&self.compiled, &feeds, &mut self.outputs)?;
        Ok(self.keys.iter().cloned().zip(self.outputs.iter().cloned()).collect())
    }

    /// The names of the predictions.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The step of the checkpoint that it was made from; 0 if there was none.
    pub fn global_step(&self) -> u64 {
        self.session.global_step()
    }
}

impl Estimator {
    /// Predictions for the rows of an input, made as they are asked for.
    ///
    /// The model stays in memory for the next call, until it is trained further.
    pub fn predict<'a>(&'a self, spec: impl Into<PredictSpec<'a>>) -> Predictions<'a> {
        let spec = spec.into();
        Predictions { estimator: self, spec, state: State::Idle }
    }

    /// A model in memory for batches that look like `sample`, with the newest checkpoint.
    pub fn predictor(&self, sample: &Batch) -> Result<Predictor> {
        self.make_predictor(&InputSpec::of(sample), self.latest_checkpoint()?, None)
    }

    fn make_predictor(
        &self,
        spec: &InputSpec,
        checkpoint: Option<PathBuf>,
        keys: Option<&[String]>,
    ) -> Result<Predictor> {
        let built = self.build(Mode::Predict, spec)?;
        let predictions: Vec<(String, Value)> = built
            .spec
            .predictions
            .iter()
            .filter(|(name, _)| keys.is_none_or(|keys| keys.contains(name)))
            .map(|(name, tensor)| (name.clone(), tensor.value()))
            .collect();
        if predictions.is_empty() {
            let known: Vec<_> = built.spec.predictions.keys().map(String::as_str).collect();
            let wanted = keys.unwrap_or_default().join(", ");
            return Err(Error::config(format!("none of the predictions {wanted} is the model's"))
                .help(format!("it has {}", known.join(", "))));
        }
        let (keys, fetches): (Vec<String>, Vec<Value>) = predictions.into_iter().unzip();
        let seed = self.config.tf_random_seed.unwrap_or(0);
        let mut session = TrainSession::new(Arc::new(built.graph.body().clone()), self.config.threads, seed)?;
        let compiled = session.compile(&fetches)?;
        match &checkpoint {
            Some(prefix) => {
                info!("Restoring parameters from {}", prefix.display());
                session.restore(prefix)?;
            }
            None => info!("There is no checkpoint in {}: initial values are used", self.model_dir.display()),
        }
        let binding = built.placeholders.binding(&compiled)?;
        Ok(Predictor { session, compiled, binding, keys, outputs: Vec::new() })
    }

    /// The variables are about to change.
    pub(super) fn forget_resident(&self) {
        *self.resident.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The model of the last prediction if it fits, or a new one.
    fn take_resident(
        &self,
        spec: &InputSpec,
        checkpoint: Option<PathBuf>,
        keys: Option<Vec<String>>,
    ) -> Result<Resident> {
        let kept = self.resident.lock().unwrap_or_else(PoisonError::into_inner).take();
        let fits =
            |kept: &Resident| kept.checkpoint == checkpoint && kept.spec.features == spec.features && kept.keys == keys;
        match kept.filter(fits) {
            Some(kept) => Ok(kept),
            None => {
                let predictor = self.make_predictor(spec, checkpoint.clone(), keys.as_deref())?;
                Ok(Resident { checkpoint, spec: spec.clone(), keys, predictor })
            }
        }
    }
}

/// The predictions for an input, one by one. Ends after an error.
pub struct Predictions<'a> {
    estimator: &'a Estimator,
    spec: PredictSpec<'a>,
    state: State,
}

enum State {
    /// Nothing was asked for yet, so nothing is read.
    Idle,
    Running(Box<Running>),
    Ended,
}

struct Running {
    resident: Resident,
    first: Option<Item>,
    stream: Box<dyn Stream>,
    /// Rows of the last batch that were not given yet.
    rows: VecDeque<Prediction>,
}

impl Predictions<'_> {
    fn start(&self) -> Result<Running> {
        let checkpoint = match &self.spec.checkpoint {
            Some(path) => Some(checkpoint_at(path)?),
            None => self.estimator.latest_checkpoint()?,
        };
        let seed = self.estimator.config.tf_random_seed.unwrap_or(0);
        let cx = self.estimator.input_context(Mode::Predict, seed, 0);
        let data = self.estimator.dataset(&*self.spec.input, cx)?;
        let Opened { stream, first, spec, .. } = self.estimator.open(data, &cx, &Position::default())?;
        let resident = self.estimator.take_resident(&spec, checkpoint, self.spec.keys.clone())?;
        Ok(Running { resident, first, stream, rows: VecDeque::new() })
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
            let item = match running.first.take() {
                Some(item) => item,
                None => match running.stream.pull(1)? {
                    Some(item) => item,
                    None => return Ok(None),
                },
            };
            let all = running.resident.predictor.predict(&item.batch)?;
            if self.spec.by_batch {
                return Ok(Some(all));
            }
            running.rows = rows(&all)?;
        }
    }

    /// The model stays for the next call.
    fn end(&mut self) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) {
            *self.estimator.resident.lock().unwrap_or_else(PoisonError::into_inner) = Some(running.resident);
        }
    }
}

/// One prediction for each row.
fn rows(all: &Prediction) -> Result<VecDeque<Prediction>> {
    let n_rows = all.values().next().and_then(|array| array.dims().first()).copied().unwrap_or(0);
    for (name, array) in all {
        if array.dims().first() != Some(&n_rows) {
            let dims = array.dims();
            return Err(Error::shape(format!("prediction `{name}` has the shape {dims:?}, others have {n_rows} rows"))
                .help("ask for whole batches with by_batch(true), or give every prediction a row for each example"));
        }
    }
    let row = |i: usize| {
        let cut =
            |(name, array): (&String, &Array)| Ok((name.clone(), array.rows(i..i + 1)?.reshape(&array.dims()[1..])?));
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
