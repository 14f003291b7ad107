//! Hooks: callbacks around the steps of training, evaluation and prediction. Each hook has its own
//! file.
//!
//! A custom hook takes a few lines. This one calls a function when the variables are ready:
//!
//! ```
//! use estimand::hook::{Hook, HookContext};
//! use estimand::prelude::*;
//!
//! struct Initialize<F>(F);
//!
//! impl<F: FnMut() -> Result<()>> Hook for Initialize<F> {
//!     fn name(&self) -> &str {
//!         "initialize"
//!     }
//!
//!     fn after_create_session(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
//!         (self.0)()
//!     }
//! }
//! ```

mod all;
mod boxed;
mod checkpoint_saver;
mod csv_log;
mod early_stopping;
mod feed;
mod feed_fn;
mod final_ops;
mod global_step_waiter;
mod in_memory_evaluator;
mod iterator_initializer;
mod logging;
mod nan;
mod profiler;
mod shared;
mod side_run;
mod step_counter;
mod stop_at_step;
mod stop_if;
mod summary;
pub mod testing;
mod watched;

pub use all::{ALL_HOOKS, HookExample};
pub use checkpoint_saver::{CheckpointListener, CheckpointSaverHook};
pub use csv_log::CsvLogHook;
pub(crate) use csv_log::{LogFile, quoted};
pub use early_stopping::EarlyStoppingHook;
pub use feed::Feed;
pub use feed_fn::FeedFnHook;
pub use final_ops::{FinalOpsHook, FinalValues};
pub use global_step_waiter::GlobalStepWaiterHook;
pub use in_memory_evaluator::InMemoryEvaluatorHook;
pub use iterator_initializer::IteratorInitializerHook;
pub use logging::LoggingTensorHook;
pub use nan::NanTensorHook;
pub use profiler::{Profile, ProfileHandle, ProfileRow, ProfilerHook};
pub(crate) use shared::{SharedHook, SharedListener};
pub use side_run::SideRun;
pub use step_counter::StepCounterHook;
pub use stop_at_step::StopAtStepHook;
pub use stop_if::StopIfHook;
pub use summary::SummarySaverHook;

use std::collections::HashMap;
use std::path::Path;

use estimand_checkpoint::BundleReader;
use estimand_graph::{Graph, Tensor, Value};
use estimand_tensor::{Array, Error, Result};

use crate::events::EventWriter;
use crate::feeding::{BatchNumbers, Placeholders};
use crate::model_folder::best::BestCheckpoint;
use crate::running_metrics::RunningMetrics;
use crate::session::TrainSession;

/// Callbacks that run around steps. By default, every method does nothing.
///
/// Hooks are called in the order of their list, in every phase. An error ends the run at once: no
/// `end`, no last checkpoint.
pub trait Hook {
    /// The name of the hook in messages, in the printed list, and in checkpoints.
    fn name(&self) -> &str;

    /// Called once, while the graph can still be extended. Request tensors here.
    fn begin(&mut self, _cx: &mut BeginContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Called once the variables have their values, initial or restored.
    fn after_create_session(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before every step.
    fn before_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after every step.
    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before a checkpoint is saved, and before [`state`](Hook::state) is called for its
    /// content. After an error the run ends with this checkpoint.
    fn before_save(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after the last step, unless an error ended the run.
    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns the state that the hook needs to resume after an interruption. Checkpoints store it.
    fn state(&self) -> Option<Vec<u8>> {
        None
    }

    /// Restores the state that the hook saved in a checkpoint. Called before
    /// `after_create_session`.
    fn restore(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Returns entries for checkpoints under names of their own: those that another program, such
    /// as TensorFlow, looks for. By default, none.
    fn entries(&self) -> Result<Vec<(String, Array)>> {
        Ok(Vec::new())
    }

    /// Restores the hook from a checkpoint that has no state of it, such as one that another
    /// program wrote. Called before `after_create_session`.
    fn restore_entries(&mut self, _checkpoint: &BundleReader) -> Result<()> {
        Ok(())
    }

    /// Returns whether the hook decides when checkpoints are saved. If so, the estimator adds no
    /// checkpoint hook of its own.
    fn saves_checkpoints(&self) -> bool {
        false
    }
}

/// A handle to the value of a tensor, after every step or after the steps for which it was
/// requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch(Place);

/// The location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Always(usize),
    Requested(usize),
}

/// A hook's access to a model that is being built.
pub struct BeginContext<'a> {
    graph: &'a Graph,
    placeholders: &'a mut Placeholders,
    fetches: &'a mut Vec<Value>,
    /// Values that are computed only on request; `None` in runs that always compute all values.
    requested: Option<&'a mut Vec<Value>>,
    listeners: &'a mut Vec<Box<dyn CheckpointListener>>,
}

impl<'a> BeginContext<'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        placeholders: &'a mut Placeholders,
        fetches: &'a mut Vec<Value>,
        listeners: &'a mut Vec<Box<dyn CheckpointListener>>,
    ) -> BeginContext<'a> {
        BeginContext { graph, placeholders, fetches, requested: None, listeners }
    }

    /// Declares that the run computes some values only on request.
    pub(crate) fn requested(self, requested: &'a mut Vec<Value>) -> BeginContext<'a> {
        BeginContext { requested: Some(requested), ..self }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Requests the value of a tensor after every step.
    pub fn fetch(&mut self, tensor: &Tensor) -> Result<Fetch> {
        let value = self.own(tensor)?;
        Ok(Fetch(Place::Always(place(self.fetches, value))))
    }

    /// Requests the value of a tensor after the steps for which [`HookContext::request_values`] was
    /// called. Other steps do not compute it. Evaluation and prediction always compute it.
    pub fn fetch_on_request(&mut self, tensor: &Tensor) -> Result<Fetch> {
        let value = self.own(tensor)?;
        Ok(self.fetch_value_on_request(value))
    }

    /// Same as [`fetch_on_request`](BeginContext::fetch_on_request), for a value of this graph.
    pub(crate) fn fetch_value_on_request(&mut self, value: Value) -> Fetch {
        Fetch(match &mut self.requested {
            Some(requested) => Place::Requested(place(requested, value)),
            None => Place::Always(place(self.fetches, value)),
        })
    }

    fn own(&self, tensor: &Tensor) -> Result<Value> {
        match tensor.graph().same(self.graph) {
            true => Ok(tensor.value()),
            false => Err(Error::config(format!("{} belongs to another graph", tensor.describe()))
                .help("use tensors of the graph that this run executes")),
        }
    }

    /// Requests the value of a tensor by its name, as returned by [`Tensor::name`].
    pub fn fetch_named(&mut self, name: &str) -> Result<Fetch> {
        let tensor = self.graph.find(name)?;
        self.fetch(&tensor)
    }

    /// Adds a listener that is notified of every checkpoint.
    pub fn listen(&mut self, listener: Box<dyn CheckpointListener>) {
        self.listeners.push(listener);
    }
}

/// Returns the index of a value in a list, and appends the value if it is missing.
fn place(list: &mut Vec<Value>, value: Value) -> usize {
    list.iter().position(|fetch| *fetch == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}

/// A hook's access to a run, with the requests that it can make.
pub struct HookContext<'a> {
    pub(crate) session: &'a mut TrainSession,
    pub(crate) model_dir: &'a Path,
    pub(crate) events: Option<&'a mut EventWriter>,
    pub(crate) values: &'a [Array],
    /// The values that were requested for the last step; empty if none were.
    pub(crate) requested: &'a [Array],
    pub(crate) loss: Option<f32>,
    /// The running metrics of a training; `None` in other modes.
    pub(crate) running_metrics: Option<&'a RunningMetrics>,
    /// The numbers of the batch of a training step whose loss is NaN.
    pub(crate) batch_numbers: Option<&'a BatchNumbers>,
    pub(crate) requests: &'a mut Requests,
}

/// A request to end a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stop {
    pub(crate) reason: String,
    /// Whether the checkpoint stores it, so that a killed run still ends there after a restart. The
    /// step limit of a call is not stored: the next call has its own.
    pub(crate) is_kept: bool,
}

impl Stop {
    /// The end by a decision: of early stopping, a hook, or the input.
    pub(crate) fn decided(reason: impl Into<String>) -> Stop {
        Stop { reason: reason.into(), is_kept: true }
    }

    /// The end of the requested number of steps.
    pub(crate) fn by_limit(reason: impl Into<String>) -> Stop {
        Stop { reason: reason.into(), is_kept: false }
    }
}

/// The requests of hooks.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) stop: Option<Stop>,
    /// The step at which the run ends, if it is known.
    pub(crate) last_step: Option<u64>,
    /// Whether a signal ends the run. The run will be resumed, so its last step is not final.
    pub(crate) is_interrupted: bool,
    pub(crate) save: bool,
    /// The best checkpoints so far, which the next save keeps; `None` if no evaluation tells.
    pub(crate) best: Option<Vec<BestCheckpoint>>,
    /// The step whose checkpoint the model returns to when training has ended.
    pub(crate) restore: Option<u64>,
    pub(crate) values: bool,
    pub(crate) show: Option<String>,
}

impl Requests {
    /// Requests the end. The first request sets the reason.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }
}

impl HookContext<'_> {
    /// Returns whether the run ends with this step, according to the hooks so far.
    pub(crate) fn is_last(&self) -> bool {
        let is_reached = self.requests.last_step.is_some_and(|last| self.session.global_step() >= last);
        self.requests.stop.is_some() || is_reached
    }

    /// The number of training steps done.
    pub fn global_step(&self) -> u64 {
        self.session.global_step()
    }

    /// The loss of the last step; `None` before the first.
    pub fn loss(&self) -> Option<f32> {
        self.loss
    }

    /// The value of a running metric over all steps so far; `None` before the first step. For an
    /// unknown name, the error suggests the nearest one.
    pub fn running_metric(&self, name: &str) -> Result<Option<f64>> {
        match self.running_metrics {
            Some(metrics) => metrics.value(name),
            None => Err(Error::config(format!("running metric `{name}`: only a training has running metrics"))),
        }
    }

    /// The value of a tensor in the last step; `None` before the first step, and if it is computed
    /// only on request and was not requested.
    pub fn value(&self, fetch: Fetch) -> Option<&Array> {
        match fetch.0 {
            Place::Always(i) => self.values.get(i),
            Place::Requested(i) => self.requested.get(i),
        }
    }

    /// Lets the next step also compute the values that hooks fetch
    /// [on request](BeginContext::fetch_on_request).
    pub fn request_values(&mut self) {
        self.requests.values = true;
    }

    /// The model. It gives access to the values of variables.
    pub fn session(&mut self) -> &mut TrainSession {
        self.session
    }

    /// The folder of the run.
    pub fn model_dir(&self) -> &Path {
        self.model_dir
    }

    /// The event writer for TensorBoard; `None` in runs that write no events.
    pub fn events(&mut self) -> Option<&mut EventWriter> {
        self.events.as_deref_mut()
    }

    /// Ends the run after this step. The caller of the run receives the reason.
    pub fn request_stop(&mut self, reason: impl Into<String>) {
        self.requests.stop(Stop::decided(reason));
    }

    /// Shows a text beside the progress bar, until it is replaced.
    pub fn show(&mut self, text: impl Into<String>) {
        self.requests.show = Some(text.into());
    }

    /// Saves a checkpoint after all hooks have processed this step.
    pub fn request_save(&mut self) {
        self.requests.save = true;
    }
}

/// All hooks of a run, in order.
#[derive(Default)]
pub(crate) struct Hooks<'a>(Vec<Box<dyn Hook + 'a>>);

impl<'a> Hooks<'a> {
    pub(crate) fn new(hooks: Vec<Box<dyn Hook + 'a>>) -> Hooks<'a> {
        Hooks(hooks)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(dyn Hook + 'a)> {
        self.0.iter().map(|hook| &**hook)
    }

    /// Calls one method of each hook, up to the first error.
    pub(crate) fn each(&mut self, phase: &str, mut call: impl FnMut(&mut dyn Hook) -> Result<()>) -> Result<()> {
        self.0.iter_mut().try_for_each(|hook| call_one(&mut **hook, phase, &mut call))
    }

    /// Calls one method of each hook, even if others fail. Returns the first error.
    pub(crate) fn all(&mut self, phase: &str, mut call: impl FnMut(&mut dyn Hook) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for hook in &mut self.0 {
            first = first.and(call_one(&mut **hook, phase, &mut call));
        }
        first
    }

    /// Returns the states of the hooks, by [keys](Hooks::keys).
    pub(crate) fn states(&self) -> Vec<(String, Vec<u8>)> {
        self.keys().into_iter().zip(self.iter()).filter_map(|(key, hook)| Some((key, hook.state()?))).collect()
    }

    /// Returns the entries of all hooks.
    pub(crate) fn entries(&self) -> Result<Vec<(String, Array)>> {
        let mut all = Vec::new();
        for hook in self.iter() {
            all.extend(hook.entries().map_err(|e| e.context(format!("in entries of hook `{}`", hook.name())))?);
        }
        Ok(all)
    }

    /// Restores each hook: by its state, found by its key, or from a checkpoint without one.
    pub(crate) fn restore(
        &mut self,
        checkpoint: &BundleReader,
        state: impl Fn(&str) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let mut keys = self.keys().into_iter();
        self.each("restore", |hook| match keys.next().map(|key| state(&key)).transpose()?.flatten() {
            Some(state) => hook.restore(&state),
            None => hook.restore_entries(checkpoint),
        })
    }

    /// Returns the keys of their states in checkpoints: their names, numbered if hooks share a
    /// name.
    fn keys(&self) -> Vec<String> {
        let mut seen = HashMap::new();
        let mut key = |name: &str| {
            let n: &mut usize = seen.entry(name.to_string()).or_default();
            *n += 1;
            if *n == 1 { name.to_string() } else { format!("{name}_{}", *n - 1) }
        };
        self.iter().map(|hook| key(hook.name())).collect()
    }

    /// Returns their names, as in the printed list.
    pub(crate) fn names(&self) -> Vec<String> {
        self.iter().map(|hook| hook.name().to_string()).collect()
    }
}

fn call_one(hook: &mut dyn Hook, phase: &str, call: &mut impl FnMut(&mut dyn Hook) -> Result<()>) -> Result<()> {
    call(hook).map_err(|e| e.context(format!("in {phase} of hook `{}`", hook.name())))
}
