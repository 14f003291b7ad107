//! Prediction with a model that stays in memory; `predictions.rs` iterates over an input with it.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use estimand_engine::Compiled;
use estimand_graph::{RunArgs, State, Value};
use estimand_tensor::{Array, Batch, Error, Mode, Result, nearest_name};
use tracing::info;

use super::Estimator;
use super::build::BuiltModel;
use super::initialize::FreshWeights;
use super::predict_spec::Wanted;
use super::prediction::Prediction;
use crate::feeding::{Binding, HookFeeds};
use crate::hook::{BeginContext, Hook, Hooks};
use crate::manifest::Meant;
use crate::model_fn::InputSpec;
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
    /// Whether initial weights were allowed.
    untrained: bool,
    spec: InputSpec,
    keys: Option<Vec<String>>,
    pub(super) asked: Asked,
}

impl Estimator {
    /// Makes a predictor for batches that look like `sample`, with the newest checkpoint and
    /// without hooks. It is an error if there is no checkpoint, unless a warm start or the model
    /// function sets the weights.
    pub fn predictor(&self, sample: &Batch) -> Result<Predictor> {
        self.make_predictor(&InputSpec::of(sample), &Wanted::default())
    }

    pub(super) fn make_predictor(&self, spec: &InputSpec, wanted: &Wanted) -> Result<Predictor> {
        let (Asked { session, compiled, binding, keys, .. }, ..) = self.make_asked(spec, wanted, None)?;
        let (seed, global_step) = (session.seed(), session.global_step());
        let (state, binding) = (session.freeze(), Arc::new(binding));
        Ok(Predictor { state, compiled, binding, keys: keys.into(), seed, global_step })
    }

    fn make_asked<'a>(
        &self,
        spec: &InputSpec,
        wanted: &Wanted,
        users: Option<Vec<Box<dyn Hook + 'a>>>,
    ) -> Result<(Asked, Option<PathBuf>, Hooks<'a>)> {
        let keys = wanted.keys.as_deref();
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
            let wanted = keys.unwrap_or_default();
            let near = wanted.iter().find_map(|key| nearest_name(key, known.iter().copied()));
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            return Err(Error::config(format!("the model has none of the predictions {}", wanted.join(", ")))
                .help(format!("{near}it has {}", known.join(", "))));
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
        info!("Graph was finalized.");
        let checkpoint = self.restore(&mut session, &wanted.checkpoint)?;
        if checkpoint.is_none() {
            let fresh = if wanted.untrained { FreshWeights::Allow } else { FreshWeights::Refuse };
            self.check_weights(&session, &built.spec.initial_values, fresh)?;
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
        wanted: Wanted,
        users: Vec<Box<dyn Hook + 'a>>,
    ) -> Result<(Resident, Hooks<'a>)> {
        let kept = self.resident.lock().unwrap_or_else(PoisonError::into_inner).take();
        let chosen = self.find(&wanted.checkpoint, |_| Ok(()))?.map(|(prefix, ())| prefix);
        let fits = |kept: &Resident| {
            let is_same = kept.checkpoint == chosen && (chosen.is_some() || kept.untrained == wanted.untrained);
            users.is_empty() && is_same && kept.spec.features == spec.features && kept.keys == wanted.keys
        };
        match kept.filter(fits) {
            Some(kept) => Ok((kept, Hooks::default())),
            None => {
                let (asked, checkpoint, hooks) = self.make_asked(spec, &wanted, Some(users))?;
                let Wanted { keys, untrained, .. } = wanted;
                Ok((Resident { checkpoint, untrained, spec: spec.clone(), keys, asked }, hooks))
            }
        }
    }
}
