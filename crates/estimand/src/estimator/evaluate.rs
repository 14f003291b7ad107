//! Evaluation: metrics over an input, with the variables of a checkpoint.

use std::path::Path;

use estimand_tensor::Result;
use estimand_wire::TensorProto;
use tracing::info;

use super::evaluation_log::EvaluationLog;
use super::initialize::FreshWeights;
use super::{Estimator, EvalSpec, Metrics};
use crate::events::{EventWriter, Value};

impl Estimator {
    /// Evaluates the model. Returns all its metrics, the mean of the batches' losses, and the
    /// global step. A model without a checkpoint is evaluated with its initial weights, with a
    /// warning.
    pub fn evaluate<'a>(&self, spec: impl Into<EvalSpec<'a>>) -> Result<Metrics> {
        let spec = spec.into();
        spec.check_alone()?;
        let opened = self.open_for_evaluation(&*spec.input, spec.steps)?;
        let mut evaluator = self.evaluator(&opened.spec, spec.hooks)?;
        let log = EvaluationLog::begin(None);
        info!("Graph was finalized.");
        let checkpoint = self.restore(&mut evaluator.session, &spec.checkpoint)?;
        if checkpoint.is_none() {
            self.check_weights(&evaluator.session, &evaluator.initial_values, FreshWeights::Warn)?;
            self.initialize(&mut evaluator.session, std::mem::take(&mut evaluator.initial_values))?;
        }
        let metrics = evaluator.run(opened, spec.steps)?;
        log.end();
        let mut events = self.open_events(&self.eval_dir(spec.name.as_deref()))?;
        record(&metrics, checkpoint.as_deref(), &mut events)?;
        Ok(metrics)
    }
}

/// Writes metrics to the log and to TensorBoard.
pub(crate) fn record(metrics: &Metrics, checkpoint: Option<&Path>, events: &mut EventWriter) -> Result<()> {
    let step = metrics.global_step();
    let mut all: Vec<_> = metrics.iter().map(|(name, value)| (name, value.to_string())).collect();
    all.push(("global_step", step.to_string()));
    all.sort();
    let all: Vec<_> = all.into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
    info!("Saving dict for global step {step}: {}", all.join(", "));
    let scalars = metrics.iter().map(|(name, value)| Value::scalar(name, value as f32));
    let arrays = metrics.arrays().map(|(name, array)| Value::tensor(name, TensorProto::from_array(array)));
    // One event, so that a concurrent reader of the file finds all metrics of a step or none.
    events.summary(step, scalars.chain(arrays).chain(metrics.summaries.iter().cloned()).collect())?;
    if let Some(prefix) = checkpoint {
        // TF: a plain tensor, which TensorBoard's text page does not show.
        info!("Saving 'checkpoint_path' summary for global step {step}: {}", prefix.display());
        events.summary(step, vec![Value::text("checkpoint_path", prefix.display().to_string())])?;
    }
    events.sync()
}
