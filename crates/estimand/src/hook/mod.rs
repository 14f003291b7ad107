//! Hooks: what happens around the steps of training, evaluation and prediction. One file for each.
//!
//! A hook of one's own is a few lines. This one prepares an input when the variables are ready, as
//! the iterator hooks of old programs did:
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
mod logging;
mod nan;
mod profiler;
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
pub use early_stopping::EarlyStoppingHook;
pub use feed::Feed;
pub use feed_fn::FeedFnHook;
pub use final_ops::{FinalOpsHook, FinalValues};
pub use global_step_waiter::GlobalStepWaiterHook;
pub use in_memory_evaluator::InMemoryEvaluatorHook;
pub use logging::LoggingTensorHook;
pub use nan::NanTensorHook;
pub use profiler::{Profile, ProfileHandle, ProfileRow, ProfilerHook};
pub use side_run::SideRun;
pub use step_counter::StepCounterHook;
pub use stop_at_step::StopAtStepHook;
pub use stop_if::StopIfHook;
pub use summary::SummarySaverHook;

use std::collections::HashMap;
use std::path::Path;

use estimand_graph::{Graph, Tensor, Value};
use estimand_tensor::{Array, Error, Result};

use crate::events::EventWriter;
use crate::feeding::Placeholders;
use crate::session::TrainSession;

/// Code that runs around steps. Every method does nothing unless it is written.
///
/// Hooks are visited in the order of their list, in every phase. An error ends the run at once: no
/// `end`, no last checkpoint.
pub trait Hook {
    /// What it is called in messages, in the printed list, and in checkpoints.
    fn name(&self) -> &str;

    /// Once, while the graph can still be added to: the place to ask for tensors.
    fn begin(&mut self, _cx: &mut BeginContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Once the variables have their values, initial or restored.
    fn after_create_session(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Before every step.
    fn before_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// After every step.
    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Before a checkpoint is saved, and before [`state`](Hook::state) is asked for what goes into
    /// it. After an error the run ends with this checkpoint.
    fn before_save(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// After the last step, unless an error ended the run.
    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Ok(())
    }

    /// What it would need to go on after an interruption; kept in checkpoints.
    fn state(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes the state that it left in a checkpoint. Called before `after_create_session`.
    fn restore(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Whether it decides about checkpoints: then the estimator adds no hook of its own for them.
    fn saves_checkpoints(&self) -> bool {
        false
    }
}

/// A tensor whose value a hook gets: after every step, or after those for which it was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch(Place);

/// Where a value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Always(usize),
    Requested(usize),
}

/// What a hook sees of a model that is being built.
pub struct BeginContext<'a> {
    graph: &'a Graph,
    placeholders: &'a mut Placeholders,
    fetches: &'a mut Vec<Value>,
    /// What is computed only on request; `None` where every run computes all.
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

    /// For runs that compute some values only on request.
    pub(crate) fn requested(self, requested: &'a mut Vec<Value>) -> BeginContext<'a> {
        BeginContext { requested: Some(requested), ..self }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Asks for the value of a tensor after every step.
    pub fn fetch(&mut self, tensor: &Tensor) -> Result<Fetch> {
        let value = self.own(tensor)?;
        Ok(Fetch(Place::Always(place(self.fetches, value))))
    }

    /// Asks for the value of a tensor after those steps for which [`HookContext::request_values`]
    /// was called. Other steps do not compute it. Evaluation and prediction compute it always.
    pub fn fetch_on_request(&mut self, tensor: &Tensor) -> Result<Fetch> {
        let value = self.own(tensor)?;
        Ok(self.fetch_value_on_request(value))
    }

    /// As [`fetch_on_request`](BeginContext::fetch_on_request), for a value of this graph.
    pub(crate) fn fetch_value_on_request(&mut self, value: Value) -> Fetch {
        Fetch(match &mut self.requested {
            Some(requested) => Place::Requested(place(requested, value)),
            None => Place::Always(place(self.fetches, value)),
        })
    }

    fn own(&self, tensor: &Tensor) -> Result<Value> {
        match tensor.graph().same(self.graph) {
            true => Ok(tensor.value()),
            false => Err(Error::config(format!("{} belongs to another graph", tensor.describe()))),
        }
    }

    /// Asks for the value of the tensor of a name, as [`Tensor::name`] tells it.
    pub fn fetch_named(&mut self, name: &str) -> Result<Fetch> {
        let tensor = self.graph.find(name)?;
        self.fetch(&tensor)
    }

    /// Has a listener told of every checkpoint.
    pub fn listen(&mut self, listener: Box<dyn CheckpointListener>) {
        self.listeners.push(listener);
    }
}

/// Where a value stands in a list, which gets it if it was not there.
fn place(list: &mut Vec<Value>, value: Value) -> usize {
    list.iter().position(|fetch| *fetch == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}

/// What a hook sees of a run, and can ask of it.
pub struct HookContext<'a> {
    pub(crate) session: &'a mut TrainSession,
    pub(crate) model_dir: &'a Path,
    pub(crate) events: Option<&'a mut EventWriter>,
    pub(crate) values: &'a [Array],
    /// What was requested of the last step; empty if nothing was.
    pub(crate) requested: &'a [Array],
    pub(crate) loss: Option<f32>,
    pub(crate) requests: &'a mut Requests,
}

/// The end of a run that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stop {
    pub(crate) reason: String,
    /// Whether it is in the checkpoint, so that a run which is killed before its end ends all the
    /// same. The limit of a call is not: the next call has its own.
    pub(crate) is_kept: bool,
}

impl Stop {
    /// The end that something decided: early stopping, a hook, the input.
    pub(crate) fn decided(reason: impl Into<String>) -> Stop {
        Stop { reason: reason.into(), is_kept: true }
    }

    /// The end of the steps that were asked for.
    pub(crate) fn by_limit(reason: impl Into<String>) -> Stop {
        Stop { reason: reason.into(), is_kept: false }
    }
}

/// What hooks have asked for.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) stop: Option<Stop>,
    /// The step at which the run ends, if it is known.
    pub(crate) last_step: Option<u64>,
    /// Whether a signal ends the run: it will go on, so nothing is concluded from its last step.
    pub(crate) is_interrupted: bool,
    pub(crate) save: bool,
    pub(crate) values: bool,
    pub(crate) show: Option<String>,
}

impl Requests {
    /// Asks for the end; the first to ask gives the reason.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }
}

impl HookContext<'_> {
    /// Whether the run ends with this step, as far as hooks have said until now.
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

    /// The value of a tensor in the last step; `None` before the first, and where it had to be
    /// requested and was not.
    pub fn value(&self, fetch: Fetch) -> Option<&Array> {
        match fetch.0 {
            Place::Always(i) => self.values.get(i),
            Place::Requested(i) => self.requested.get(i),
        }
    }

    /// Has the next step compute what hooks have asked for
    /// [on request](BeginContext::fetch_on_request) too.
    pub fn request_values(&mut self) {
        self.requests.values = true;
    }

    /// The model: values of variables to read and set.
    pub fn session(&mut self) -> &mut TrainSession {
        self.session
    }

    /// The folder of the run.
    pub fn model_dir(&self) -> &Path {
        self.model_dir
    }

    /// Where scalars for TensorBoard go; `None` where nothing is written.
    pub fn events(&mut self) -> Option<&mut EventWriter> {
        self.events.as_deref_mut()
    }

    /// Ends the run after this step; the reason is told to whoever started it.
    pub fn request_stop(&mut self, reason: impl Into<String>) {
        self.requests.stop(Stop::decided(reason));
    }

    /// Shows a text beside the progress bar, until there is another.
    pub fn show(&mut self, text: impl Into<String>) {
        self.requests.show = Some(text.into());
    }

    /// Saves a checkpoint once all hooks have seen this step.
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

    /// Calls one method of each, up to the first error.
    pub(crate) fn each(&mut self, phase: &str, mut call: impl FnMut(&mut dyn Hook) -> Result<()>) -> Result<()> {
        self.0.iter_mut().try_for_each(|hook| call_one(&mut **hook, phase, &mut call))
    }

    /// Calls one method of each, whether others fail or not; returns the first error.
    pub(crate) fn all(&mut self, phase: &str, mut call: impl FnMut(&mut dyn Hook) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for hook in &mut self.0 {
            first = first.and(call_one(&mut **hook, phase, &mut call));
        }
        first
    }

    /// What they want to keep, by [keys](Hooks::keys).
    pub(crate) fn states(&self) -> Vec<(String, Vec<u8>)> {
        self.keys().into_iter().zip(self.iter()).filter_map(|(key, hook)| Some((key, hook.state()?))).collect()
    }

    /// Hands each what it kept, found by its key.
    pub(crate) fn restore(&mut self, state: impl Fn(&str) -> Result<Option<Vec<u8>>>) -> Result<()> {
        let mut keys = self.keys().into_iter();
        self.each("restore", |hook| match keys.next().map(|key| state(&key)).transpose()?.flatten() {
            Some(state) => hook.restore(&state),
            None => Ok(()),
        })
    }

    /// What their states are called in checkpoints: their names, where hooks that share one are
    /// counted.
    fn keys(&self) -> Vec<String> {
        let mut seen = HashMap::new();
        let mut key = |name: &str| {
            let n: &mut usize = seen.entry(name.to_string()).or_default();
            *n += 1;
            if *n == 1 { name.to_string() } else { format!("{name}_{}", *n - 1) }
        };
        self.iter().map(|hook| key(hook.name())).collect()
    }

    /// Their names, as the list is printed.
    pub(crate) fn names(&self) -> Vec<String> {
        self.iter().map(|hook| hook.name().to_string()).collect()
    }
}

fn call_one(hook: &mut dyn Hook, phase: &str, call: &mut impl FnMut(&mut dyn Hook) -> Result<()>) -> Result<()> {
    call(hook).map_err(|e| e.context(format!("in {phase} of hook `{}`", hook.name())))
}
