//! Writes summaries for TensorBoard: the loss, and those of the model.

use std::collections::HashSet;
use std::path::PathBuf;

use estimand_tensor::{Error, Result, warn};
use estimand_wire::event::Value;

use super::{BeginContext, Fetch, Hook, HookContext};
use crate::events::EventWriter;
use crate::summary::{Converted, Summaries, Summary};
use crate::{Every, Timer};

/// Records summaries at the first step of a run and then periodically, with the step number after
/// the update. Steps are counted from 1, also in a resumed run: `Every::Steps(100)` records steps
/// 1, 101, 201.
///
/// By default it records the model's summaries, the running metrics and the loss. Other steps do
/// not compute summaries.
///
/// ```
/// use estimand::hook::SummarySaverHook;
/// use estimand::Summaries;
/// use estimand::prelude::*;
///
/// fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let logits = Dense::new(1).apply(&cx.feature("x"));
///     let seldom = Summaries::new(cx.graph());
///     seldom.histogram("logits", &logits);
///     let hook = SummarySaverHook::new(Every::Steps(1_000)).summaries(&seldom).output_dir("model/seldom");
///     let spec = RegressionHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))?;
///     Ok(spec.training_hook(hook))
/// }
/// ```
#[must_use]
pub struct SummarySaverHook {
    every: Every,
    timer: Timer,
    /// Whether the run has done a step.
    has_begun: bool,
    output_dir: Option<PathBuf>,
    own: Option<Summaries>,
    /// The summaries to record; `loss` is whether to record the loss.
    shown: Vec<(Summary, Fetch)>,
    loss: bool,
    is_due: bool,
    writer: Option<EventWriter>,
    /// Tags that a warning was logged for.
    told: HashSet<String>,
}

impl SummarySaverHook {
    /// Records the model's summaries and its loss with this period.
    pub fn new(every: Every) -> SummarySaverHook {
        SummarySaverHook {
            every,
            timer: Timer::counted_from(1, every),
            has_begun: false,
            output_dir: None,
            own: None,
            shown: Vec::new(),
            loss: true,
            is_due: false,
            writer: None,
            told: HashSet::new(),
        }
    }

    /// Records these summaries instead of the model's summaries, its running metrics and its loss.
    pub fn summaries(mut self, summaries: &Summaries) -> SummarySaverHook {
        self.own = Some(summaries.clone());
        self
    }

    /// Sets the folder of the event file. By default, training writes to the model folder;
    /// evaluation and prediction need a folder.
    pub fn output_dir(mut self, folder: impl Into<PathBuf>) -> SummarySaverHook {
        self.output_dir = Some(folder.into());
        self
    }

    /// Returns the values of a step. Invalid values are logged once per tag and do not end the
    /// training.
    fn values(&mut self, cx: &HookContext<'_>) -> Result<Vec<Value>> {
        let step = cx.global_step();
        let mut all = Vec::new();
        for (Summary { tag, kind, .. }, fetch) in &self.shown {
            let Some(array) = cx.value(*fetch) else { continue };
            let Converted { values, n_odd } = kind.convert(tag, array).unwrap_or_else(|error| {
                if self.told.insert(tag.clone()) {
                    warn!("Summary `{tag}` is not written at step {step}: {}", error.message());
                }
                Converted::default()
            });
            if n_odd > 0 && self.told.insert(tag.clone()) {
                let n = array.len();
                warn!("Summary `{tag}`: {n_odd} of {n} numbers are not finite at step {step}; training continues");
            }
            all.extend(values);
        }
        if let Some(metrics) = cx.running_metrics.filter(|_| self.own.is_none()) {
            all.extend(metrics.values()?.into_iter().map(|(name, value)| Value::scalar(name, value as f32)));
        }
        if let Some(loss) = cx.loss().filter(|_| self.loss) {
            all.push(Value::scalar("loss", loss));
        }
        Ok(all)
    }
}

impl Hook for SummarySaverHook {
    fn name(&self) -> &str {
        "summary_saver"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        let of_model = Summaries::of(cx.graph());
        let all = self.own.as_ref().unwrap_or(&of_model).all();
        self.shown = all.iter().map(|summary| (summary.clone(), cx.fetch_value_on_request(summary.value))).collect();
        self.loss = self.own.is_none() && all.iter().all(|summary| summary.tag != "loss");
        Ok(())
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match &self.output_dir {
            Some(folder) => self.writer = Some(EventWriter::create(folder)?),
            None if cx.events().is_none() => {
                return Err(Error::config(
                    "the summary hook has no folder: an evaluation or a prediction does not set one",
                )
                .help("set a folder, for instance with .output_dir(estimator.eval_dir(None))"));
            }
            None => {}
        }
        Ok(())
    }

    #[inline]
    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        // TF: the first step of a run is always recorded. It shows readers from which step on steps
        // are repeated.
        let is_first = !std::mem::replace(&mut self.has_begun, true) && !self.every.is_never();
        self.is_due = is_first || self.timer.is_due(cx.global_step() + 1);
        if self.is_due {
            cx.request_values();
        }
        Ok(())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if !self.is_due {
            return Ok(());
        }
        let (step, values) = (cx.global_step(), self.values(cx)?);
        if let Some(events) = self.writer.as_mut().or_else(|| cx.events()) {
            events.start(step)?;
            if !values.is_empty() {
                events.summary(step, values)?;
            }
        }
        self.timer.trigger(step);
        Ok(())
    }
}
