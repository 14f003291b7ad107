//! Prediction with a model that stays in memory; `predictions.rs` iterates over an input with it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use estimand_engine::Compiled;
use estimand_graph::{RunArgs, State, Value};
use estimand_tensor::{Array, Batch, Error, Mode, Result};
use tracing::info;

use super::Estimator;
use super::build::BuiltModel;
use super::predict_spec::Prediction;
use crate::feeding::{Binding, HookFeeds};
use crate::hook::{BeginContext, Hook, Hooks};
use crate::manifest::Meant;
use crate::model_fn::InputSpec;
use crate::model_folder::newest::read_at;
use crate::session::TrainSession;

/// A model in memory that predicts batches. It reads no files after it was made.
///
/// Threads may call it at the same time without waiting for each other. A clone shares the
/// variables.
#[derive(Clone)]
pub struct Predictor {
    state: Arc<dyn State>,
    compiled: Arc<Compiled>,
    binding: Arc<Binding>,
    keys: Arc<[String]>,
    seed: u64,
    global_step: u64,
}

impl Predictor {
    /// Returns the predictions for all rows of a batch.
    pub fn predict(&self, batch: &Batch) -> Result<Prediction> {
        let feeds = self.compiled.prepare(self.binding.bind(batch, &HookFeeds::new())?)?;
        let args = RunArgs { feeds: &feeds, step: self.global_step, seed: self.seed, ..RunArgs::default() };
        let mut outputs = Vec::new();
        self.compiled.forward_prepared(&*self.state, args, &mut outputs)?;
        Ok(self.keys.iter().cloned().zip(outputs).collect())
    }

    /// The names of the predictions.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The step of the checkpoint that it was made from; 0 without a checkpoint.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }
}

/// A model for prediction together with its hooks.
pub(super) struct Asked {
    pub(super) session: TrainSession,
    compiled: Arc<Compiled>,
    binding: Binding,
    keys: Vec<String>,
    pub(super) outputs: Vec<Array>,
}

impl Asked {
    /// Returns the predictions for all rows of a batch.
    pub(super) fn predict(&mut self, batch: &Batch) -> Result<Prediction> {
        let feeds = self.compiled.prepare(self.binding.bind(batch, &self.session.hook_feeds)?)?;
        self.session.run(&self.compiled, &feeds, &mut self.outputs)?;
        Ok(self.keys.iter().cloned().zip(self.outputs.iter().cloned()).collect())
    }
}

/// A model that is kept in memory, and its origin.
pub(super) struct Resident {
    checkpoint: Option<PathBuf>,
    spec: InputSpec,
    keys: Option<Vec<String>>,
    pub(super) asked: Asked,
}

impl Estimator {
    /// Makes a predictor for batches that look like `sample`, with the newest checkpoint and
    /// without hooks.
    pub fn predictor(&self, sample: &Batch) -> Result<Predictor> {
        let (Asked { session, compiled, binding, keys, .. }, ..) =
            self.make_asked(&InputSpec::of(sample), None, None, None)?;
        let (seed, global_step) = (session.seed(), session.global_step());
        let (state, binding) = (session.freeze(), Arc::new(binding));
        Ok(Predictor { state, compiled, binding, keys: keys.into(), seed, global_step })
    }

    fn make_asked<'a>(
        &self,
        spec: &InputSpec,
        asked_for: Option<&Path>,
        keys: Option<&[String]>,
        users: Option<Vec<Box<dyn Hook + 'a>>>,
    ) -> Result<(Asked, Option<PathBuf>, Hooks<'a>)> {
        let mut built = self.build(Mode::Predict, spec)?;
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
            return Err(Error::config(format!("the model has none of the predictions {wanted}"))
                .help(format!("it has {}", known.join(", "))));
        }
        let (keys, mut fetches): (Vec<String>, Vec<Value>) = predictions.into_iter().unzip();
        let mut hooks = Hooks::default();
        if let Some(mut all) = users {
            for hook in std::mem::take(&mut built.spec.prediction_hooks) {
                all.push(hook);
            }
            hooks = Hooks::new(all);
            let BuiltModel { graph, placeholders, .. } = &mut built;
            hooks.each("begin", |hook| {
                hook.begin(&mut BeginContext::new(graph, placeholders, &mut fetches, &mut Vec::new()))
            })?;
            graph.check()?;
        }
        let seed = self.config.tf_random_seed.unwrap_or(0);
        let body = Arc::new(built.graph.body().clone());
        let meant = Meant::new(&body, Mode::Predict, None, &self.config);
        let mut session = TrainSession::new(body, meant, &self.config, seed)?;
        let compiled = session.compile(&fetches)?;
        let checkpoint = self.restore(&mut session, asked_for)?;
        if checkpoint.is_none() {
            info!("There is no checkpoint in {}: initial values are used", self.model_dir.display());
            self.initialize(&mut session, built.spec.initial_values)?;
        }
        let binding = built.placeholders.binding(&compiled)?;
        Ok((Asked { session, compiled, binding, keys, outputs: Vec::new() }, checkpoint, hooks))
    }

    /// Keeps a model for the next prediction.
    pub(super) fn keep_resident(&self, resident: Resident) {
        *self.resident.lock().unwrap_or_else(PoisonError::into_inner) = Some(resident);
    }

    /// Drops the kept model, because the variables are about to change.
    pub(super) fn forget_resident(&self) {
        *self.resident.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the model of the last prediction if it fits, or else a new one with its own hooks
    /// and the user's.
    pub(super) fn take_resident<'a>(
        &self,
        spec: &InputSpec,
        asked_for: Option<&Path>,
        keys: Option<Vec<String>>,
        users: Vec<Box<dyn Hook + 'a>>,
    ) -> Result<(Resident, Hooks<'a>)> {
        let kept = self.resident.lock().unwrap_or_else(PoisonError::into_inner).take();
        let newest = match asked_for {
            Some(path) => Some(read_at(path, |_| Ok(()))?.0),
            None => self.latest_checkpoint()?,
        };
        let fits = |kept: &Resident| {
            users.is_empty() && kept.checkpoint == newest && kept.spec.features == spec.features && kept.keys == keys
        };
        match kept.filter(fits) {
            Some(kept) => Ok((kept, Hooks::default())),
            None => {
                let (asked, checkpoint, hooks) = self.make_asked(spec, asked_for, keys.as_deref(), Some(users))?;
                Ok((Resident { checkpoint, spec: spec.clone(), keys, asked }, hooks))
            }
        }
    }
}
