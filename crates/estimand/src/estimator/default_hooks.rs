//! The default hooks of a training, combined with those of the user and of the model.

use crate::hook::{
    CheckpointSaverHook, Hook, LoggingTensorHook, NanTensorHook, StepCounterHook, StopAtStepHook, SummarySaverHook,
};
use crate::{EstimatorSpec, Every, RunConfig};

/// Returns all hooks of a training, in TensorFlow's order.
pub(super) fn all<'a>(
    config: &RunConfig,
    spec: &mut EstimatorSpec,
    users: Vec<Box<dyn Hook + 'a>>,
    steps: Option<u64>,
    max_steps: Option<u64>,
) -> Vec<Box<dyn Hook + 'a>> {
    let mut hooks: Vec<Box<dyn Hook + 'a>> = Vec::new();
    let own_saver = users.iter().any(|hook| hook.saves_checkpoints()) || saves(spec);
    if !own_saver && !config.save_checkpoints.is_never() {
        hooks.push(Box::new(CheckpointSaverHook::new(config.save_checkpoints)));
    }
    own(&mut hooks, &mut spec.training_chief_hooks);
    let log_every = config.log_step_count_steps.map_or(Every::Never, Every::Steps);
    if !log_every.is_never() {
        hooks.push(Box::new(StepCounterHook::new(log_every)));
    }
    if config.save_summary_steps > 0 {
        hooks.push(Box::new(SummarySaverHook::new(Every::Steps(config.save_summary_steps))));
    }
    hooks.extend(users);
    if let Some(steps) = steps {
        hooks.push(Box::new(StopAtStepHook::after_steps(steps)));
    }
    if let Some(max_steps) = max_steps {
        hooks.push(Box::new(StopAtStepHook::at_step(max_steps)));
    }
    hooks.push(Box::new(NanTensorHook::new()));
    if !log_every.is_never() {
        let line = LoggingTensorHook::new(log_every).loss_and_step();
        hooks.push(Box::new(spec.running_metrics.keys().fold(line, LoggingTensorHook::running_metric)));
    }
    own(&mut hooks, &mut spec.training_hooks);
    hooks
}

/// Whether a hook of the model saves checkpoints.
pub(super) fn saves(spec: &EstimatorSpec) -> bool {
    spec.training_hooks.iter().chain(&spec.training_chief_hooks).any(|hook| hook.saves_checkpoints())
}

/// Adds the hooks of the model.
fn own<'a>(hooks: &mut Vec<Box<dyn Hook + 'a>>, of_model: &mut Vec<Box<dyn Hook>>) {
    for hook in of_model.drain(..) {
        hooks.push(hook);
    }
}
