//! Logs the values of tensors.

use std::panic::Location;

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};
use tracing::info;

use super::watched::Watched;
use super::{BeginContext, Hook, HookContext};
use crate::{Every, Timer};

/// Logs tensors periodically: `loss = 0.69, step = 100 (0.12 sec)`.
#[must_use]
pub struct LoggingTensorHook {
    tensors: Vec<(String, Source)>,
    timer: Timer,
    at_end: bool,
    n_runs: u64,
}

enum Source {
    Loss,
    Step,
    RunningMetric,
    Tensor(Watched),
}

impl LoggingTensorHook {
    /// Makes a hook without tensors. It logs the first step of a run, and then once per period of
    /// steps or seconds.
    pub fn new(every: Every) -> LoggingTensorHook {
        LoggingTensorHook { tensors: Vec::new(), timer: Timer::new(every), at_end: false, n_runs: 0 }
    }

    /// Adds the loss and the step, which an estimator logs by default.
    pub fn loss_and_step(mut self) -> LoggingTensorHook {
        self.tensors.push(("loss".to_string(), Source::Loss));
        self.tensors.push(("step".to_string(), Source::Step));
        self
    }

    /// Adds a running metric of the training by name. An estimator logs all of them by default.
    pub fn running_metric(mut self, name: impl Into<String>) -> LoggingTensorHook {
        self.tensors.push((name.into(), Source::RunningMetric));
        self
    }

    /// Adds a tensor under a tag. Use it in hooks that a model function makes.
    pub fn tensor(mut self, tag: impl Into<String>, tensor: &Tensor) -> LoggingTensorHook {
        self.tensors.push((tag.into(), Source::Tensor(Watched::Tensor(tensor.clone()))));
        self
    }

    /// Adds a tensor by name, under that name. Use it in hooks that are made outside of the model
    /// function.
    #[track_caller]
    pub fn named(mut self, name: impl Into<String>) -> LoggingTensorHook {
        let name = name.into();
        self.tensors.push((name.clone(), Source::Tensor(Watched::Named(name, Location::caller()))));
        self
    }

    /// Sets whether the values of the last step are logged when the run ends. By default, they are
    /// not.
    pub fn at_end(mut self, at_end: bool) -> LoggingTensorHook {
        self.at_end = at_end;
        self
    }

    fn line(&self, cx: &HookContext<'_>) -> Result<String> {
        let mut parts = Vec::new();
        for (tag, source) in &self.tensors {
            let value = match source {
                Source::Loss => cx.loss().map(|loss| loss.to_string()),
                // TF: the step logged with the loss is the step before the update.
                Source::Step => Some(cx.global_step().saturating_sub(1).to_string()),
                Source::RunningMetric => cx.running_metric(tag)?.map(|value| (value as f32).to_string()),
                Source::Tensor(watched) => watched.value(cx).map(text),
            };
            parts.push(format!("{tag} = {}", value.as_deref().unwrap_or("none")));
        }
        Ok(parts.join(", "))
    }
}

/// Formats a scalar in full, and an array by its first elements.
fn text(array: &Array) -> String {
    const SHOWN: usize = 6;
    match array.to_f64_vec() {
        Ok(values) if array.dims().is_empty() => values.first().map_or(String::new(), f64::to_string),
        Ok(values) if values.len() <= SHOWN => format!("{values:?}"),
        Ok(values) => format!("{:?}...", &values[..SHOWN]),
        Err(_) => format!("{}{:?}", array.dtype(), array.dims()),
    }
}

impl Hook for LoggingTensorHook {
    fn name(&self) -> &str {
        "logging_tensor"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        for (_, source) in &mut self.tensors {
            if let Source::Tensor(watched) = source {
                watched.ask(cx, false)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if self.n_runs == 0 {
            // An unknown name is an error, even if no line is logged.
            self.line(cx)?;
        }
        if self.timer.is_due(self.n_runs) {
            match self.timer.trigger(self.n_runs) {
                Some(passed) => info!("{} ({:.3} sec)", self.line(cx)?, passed.time.as_secs_f64()),
                None => info!("{}", self.line(cx)?),
            }
        }
        self.n_runs += 1;
        Ok(())
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if self.at_end && self.n_runs > 0 {
            info!("{}", self.line(cx)?);
        }
        Ok(())
    }
}
