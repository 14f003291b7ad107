//! Feeding: turns the batches of a dataset into the values that a step is fed. It connects the
//! input pipeline with the graph.
//!
//! The host part of the program (strings, tables, ids) runs in the threads that read the input, in
//! order, so that each step finds its numbers ready.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use estimand_data::{Ordered, Position, Stream, StreamItem};
use estimand_engine::Compiled;
use estimand_graph::{NodeId, Op, Tensor};
use estimand_tensor::{Array, Batch, DType, Error, Feature, Result};
use indexmap::IndexMap;

use crate::model_fn::ModelFnContext;
use crate::{Input, Inputs};

/// The source of a placeholder's value.
#[derive(Clone, Debug)]
struct Source {
    part: Component,
    kind: InputRole,
    name: String,
    /// The index of the feature among the features of the first batch. Other batches probably have
    /// it there too.
    index: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    Dense,
    Values,
    RowSplits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputRole {
    Feature,
    Label,
    Weights,
    /// A value that a hook feeds, by its number.
    Hook(usize),
}

/// The placeholders of a model's inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placeholders {
    sources: IndexMap<NodeId, Source>,
    n_of_hooks: usize,
}

impl Placeholders {
    /// Returns the placeholders of a model.
    pub(crate) fn of(cx: &ModelFnContext<'_>) -> Placeholders {
        Placeholders::of_inputs(cx.features(), cx.labels(), cx.weights())
    }

    /// Returns the placeholders of features, labels and weights.
    pub(crate) fn of_inputs(features: &Inputs, labels: &Inputs, weights: Option<&Tensor>) -> Placeholders {
        let mut all = Placeholders::of_features(features);
        all.add(labels, InputRole::Label);
        if let Some(weights) = weights {
            let source = Source { part: Component::Dense, kind: InputRole::Weights, name: String::new(), index: 0 };
            all.sources.insert(weights.value().node, source);
        }
        all
    }

    /// Returns the placeholders of features only.
    pub(crate) fn of_features(inputs: &Inputs) -> Placeholders {
        let mut all = Placeholders::default();
        all.add(inputs, InputRole::Feature);
        all
    }

    fn add(&mut self, inputs: &Inputs, kind: InputRole) {
        for (index, (name, input)) in inputs.iter().enumerate() {
            let mut source = |tensor: &Tensor, part| {
                self.sources.insert(tensor.value().node, Source { part, kind, name: name.to_string(), index });
            };
            match input {
                Input::Dense(tensor) => source(tensor, Component::Dense),
                Input::Ragged(ragged) => {
                    source(&ragged.values, Component::Values);
                    source(&ragged.row_splits, Component::RowSplits);
                }
            }
        }
    }

    /// Lets a hook feed a placeholder. Returns the number under which its values are found.
    pub(crate) fn feed_by_hook(&mut self, tensor: &Tensor) -> Result<usize> {
        let refused = |message: String, help: &str| Err(Error::config(message).help(help));
        let (name, node) = (tensor.name(), tensor.value().node);
        let is_placeholder = matches!(tensor.graph().body().node(node).op, Op::Placeholder(_));
        match self.sources.get(&node) {
            _ if !is_placeholder => refused(
                format!("a hook feeds `{name}`, which is not a placeholder"),
                "make one with cx.graph().placeholder(..)",
            ),
            Some(Source { kind: InputRole::Hook(_), .. }) => {
                refused(format!("placeholder `{name}` is fed by two hooks"), "leave it to one of them")
            }
            Some(_) => refused(
                format!("placeholder `{name}` is fed by the input"),
                "remove the hook: it can feed only placeholders that the input does not feed",
            ),
            None => {
                let number = self.n_of_hooks;
                let source = Source { part: Component::Dense, kind: InputRole::Hook(number), name, index: 0 };
                self.sources.insert(node, source);
                self.n_of_hooks += 1;
                Ok(number)
            }
        }
    }

    /// Returns the sources of a program's feeds, in the program's order.
    pub(crate) fn binding(&self, compiled: &Compiled) -> Result<Binding> {
        let body = compiled.program().body();
        let source = |id: &NodeId| {
            self.sources.get(id).cloned().ok_or_else(|| {
                let node = body.node(*id);
                Error::config(format!(
                    "placeholder `{}` is not a feature or label of the input, and no hook feeds it",
                    node.name
                ))
                .at(node.site)
                .help("take features and labels from the context of the model function, or feed it with a FeedFnHook")
            })
        };
        let sources: Vec<Source> = compiled.program().placeholders().iter().map(source).collect::<Result<_>>()?;
        let has_hooks = sources.iter().any(|source| matches!(source.kind, InputRole::Hook(_)));
        Ok(Binding { sources, has_hooks })
    }
}

/// The sources of a program's placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    sources: Vec<Source>,
    /// Whether hooks feed some placeholders. If so, nothing can be prepared before the hooks have
    /// run for the step.
    has_hooks: bool,
}

/// The numbers of a batch whose loss is not finite.
#[derive(Clone, Debug)]
pub(crate) enum BatchNumbers {
    Finite,
    /// One is not finite: `feature `x` is NaN in row 3 of the batch`.
    Bad(String),
}

impl BatchNumbers {
    /// The remedy for a number that is not finite.
    pub(crate) const REMEDY: &str = "fill such rows in the input (map), or leave them out (filter)";
}

/// The finding with its remedy, for a warning.
impl fmt::Display for BatchNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchNumbers::Bad(found) => write!(f, "{found}; {}", BatchNumbers::REMEDY),
            BatchNumbers::Finite => f.write_str(
                "all numbers of the batch are finite, so look at the variables and at what the model computes",
            ),
        }
    }
}

/// Values fed by hooks, by their numbers. A value stays until the hook replaces it.
pub(crate) type HookFeeds = Vec<Option<Array>>;

impl Binding {
    /// Returns the values of the placeholders for a batch.
    pub(crate) fn bind(&self, batch: &Batch, of_hooks: &HookFeeds) -> Result<Vec<Array>> {
        self.bind_into(batch, of_hooks, Vec::new())
    }

    pub(crate) fn has_hooks(&self) -> bool {
        self.has_hooks
    }

    /// Looks for the first NaN or infinity that the program reads from a batch.
    pub(crate) fn numbers(&self, fed: &Fed) -> BatchNumbers {
        match self.sources.iter().find_map(|source| source.not_finite(&fed.batch)) {
            Some(found) => BatchNumbers::Bad(format!("{found} of the batch")),
            None => BatchNumbers::Finite,
        }
    }

    /// Same as [`bind`](Binding::bind), but reuses a list that is no longer needed.
    fn bind_into(&self, batch: &Batch, of_hooks: &HookFeeds, mut values: Vec<Array>) -> Result<Vec<Array>> {
        values.clear();
        values.reserve(self.sources.len());
        for source in &self.sources {
            values.push(source.find(batch, of_hooks)?);
        }
        Ok(values)
    }
}

impl Source {
    fn find(&self, batch: &Batch, of_hooks: &HookFeeds) -> Result<Array> {
        let feature = match self.kind {
            InputRole::Feature => match batch.features().get_index(self.index) {
                Some((name, feature)) if **name == *self.name => feature,
                _ => batch.feature(&self.name)?,
            },
            InputRole::Label => batch.labels().get(self.name.as_str()).ok_or_else(|| {
                Error::config(format!("a batch has no label `{}`; the first batch had it", self.name))
            })?,
            InputRole::Weights => {
                let weights = batch.weights();
                let gone = || Error::config("a batch has no weights; the first batch had them");
                return as_weights(weights.ok_or_else(gone)?);
            }
            InputRole::Hook(number) => {
                return of_hooks.get(number).cloned().flatten().ok_or_else(|| {
                    Error::config(format!("the hook that feeds placeholder `{}` has not done so yet", self.name))
                        .help("feed it in before_run, or once in after_create_session")
                });
            }
        };
        match (self.part, feature) {
            (Component::Dense, Feature::Dense(array)) => Ok(array.clone()),
            (Component::Values, Feature::Ragged(ragged)) => Ok(ragged.values().clone()),
            (Component::RowSplits, Feature::Ragged(ragged)) => {
                Array::from_slice([ragged.row_splits().len()], ragged.row_splits())
            }
            _ => Err(Error::shape(format!("`{}` is dense in some batches and ragged in others", self.name))),
        }
    }
}

impl Source {
    /// `feature `x` is NaN in row 3`, if there is such a number.
    fn not_finite(&self, batch: &Batch) -> Option<String> {
        let (what, array, splits) = match (self.kind, self.part) {
            (InputRole::Hook(_), _) | (_, Component::RowSplits) => return None,
            (InputRole::Weights, _) => ("the weight".to_string(), batch.weights()?, None),
            (InputRole::Feature | InputRole::Label, _) => {
                let is_label = self.kind == InputRole::Label;
                let (word, all) = if is_label { ("label", batch.labels()) } else { ("feature", batch.features()) };
                let (array, splits) = match all.get(self.name.as_str())? {
                    Feature::Dense(array) => (array, None),
                    Feature::Ragged(ragged) => (ragged.values(), Some(ragged.row_splits())),
                };
                (format!("{word} `{}`", self.name), array, splits)
            }
        };
        let values = if array.dtype().is_float() { array.to_f64_vec().ok()? } else { return None };
        let place = values.iter().position(|value| !value.is_finite())?;
        let row = match splits {
            // Find the last row that begins at or before the place.
            Some(splits) => splits.partition_point(|&begin| begin as usize <= place).saturating_sub(1),
            None => place / (values.len() / batch.n_rows().max(1)).max(1),
        };
        Some(format!("{what} is {} in row {row}", values[place]))
    }
}

/// Converts weights to the dtype of their placeholder. Any numeric dtype is accepted.
fn as_weights(weights: &Array) -> Result<Array> {
    match weights.dtype() {
        DType::F32 => Ok(weights.clone()),
        dtype if dtype.is_number() => {
            Array::from_vec(weights.dims(), weights.to_f64_vec()?.into_iter().map(|w| w as f32).collect())
        }
        dtype => {
            Err(Error::dtype(Some(DType::F32), dtype, format!("the weights of the rows are {dtype}; expected numbers")))
        }
    }
}

/// The feeds of one step, the batch they were made from, and the input position after that batch.
#[derive(Default)]
pub(crate) struct Fed {
    pub(crate) feeds: Vec<Array>,
    batch: Batch,
    pub(crate) after: Position,
}

impl Fed {
    /// The batch that the feeds were made from.
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Prepares the feeds of a program from this batch if the prepared ones do not fit: for another
    /// program of the model, or for one that hooks feed.
    pub(crate) fn prepare_again(
        &self,
        binding: &Binding,
        compiled: &Compiled,
        of_hooks: &HookFeeds,
    ) -> Result<Vec<Array>> {
        compiled.prepare(binding.bind(&self.batch, of_hooks)?)
    }
}

/// The maximum size in bytes of batches prepared ahead.
const AHEAD_BYTES: usize = 64 << 20;

/// A batch that was read, and buffers for its feeds.
type Job = Result<(StreamItem, Vec<Array>)>;

/// Prepared batches, in order.
pub(crate) struct Feeder {
    fed: Ordered<Job, Result<Fed>>,
    /// Feeds that steps no longer need; their buffers are reused for the next batches.
    spare: Arc<Mutex<Vec<Fed>>>,
    /// The number of batches that the caller prepared itself, and the time they took.
    trial: Option<(u32, Duration)>,
}

/// The caller prepares this number of batches itself. If they take longer than the limit on
/// average, threads prepare the others.
const TRIAL: u32 = 16;
const WORTH_A_THREAD: Duration = Duration::from_micros(20);

impl Feeder {
    /// Makes a feeder of a stream. `first` is the batch that was read to learn what batches look
    /// like.
    pub(crate) fn new(
        first: Option<StreamItem>,
        mut stream: Box<dyn Stream>,
        binding: Binding,
        compiled: Arc<Compiled>,
        n_threads: usize,
    ) -> Feeder {
        let bytes = first.as_ref().map_or(1, |item| size_of_batch(&item.batch)).max(1);
        let n_ahead = (AHEAD_BYTES / bytes).clamp(2, 64);
        let mut first = first;
        let mut failed = false;
        let spare = Arc::new(Mutex::new(Vec::<Fed>::with_capacity(n_ahead)));
        let spares = spare.clone();
        let next = move || {
            if failed {
                return None;
            }
            let Fed { mut feeds, batch, after } = lock(&spares).pop().unwrap_or_default();
            // Without these references the batch is the only owner of its memory.
            feeds.clear();
            stream.recycle(StreamItem { batch, after });
            let item = match first.take() {
                Some(item) => Ok(item),
                None => stream.pull(usize::MAX).transpose()?,
            };
            failed = item.is_err();
            Some(item.map(|item| (item, feeds)))
        };
        let work = move |job: Job| {
            let (StreamItem { batch, after }, feeds) = job?;
            if binding.has_hooks {
                return Ok(Fed { feeds, batch, after });
            }
            let placeholders = binding.bind_into(&batch, &HookFeeds::new(), feeds)?;
            Ok(Fed { feeds: compiled.prepare(placeholders)?, batch, after })
        };
        let trial = (n_threads > 1).then_some((0, Duration::ZERO));
        Feeder { fed: Ordered::new(n_threads, n_ahead, next, work).lazy(), spare, trial }
    }

    /// Takes back feeds that a step no longer needs.
    pub(crate) fn recycle(&mut self, fed: Fed) {
        let mut spare = lock(&self.spare);
        if spare.len() < spare.capacity() {
            spare.push(fed);
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Fed>> {
        let Some((n, spent)) = &mut self.trial else { return self.fed.take()?.transpose() };
        let start = Instant::now();
        let fed = self.fed.take()?.transpose();
        (*n, *spent) = (*n + 1, *spent + start.elapsed());
        if *n == TRIAL {
            if *spent > WORTH_A_THREAD * TRIAL {
                self.fed.start()?;
            }
            self.trial = None;
        }
        fed
    }
}

/// Locks the list. A panic in another thread does not damage it.
fn lock(spare: &Mutex<Vec<Fed>>) -> MutexGuard<'_, Vec<Fed>> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

fn size_of_batch(batch: &Batch) -> usize {
    let array = |array: &Array| array.len() * array.dtype().size().max(16);
    let feature = |feature: &Feature| match feature {
        Feature::Dense(dense) => array(dense),
        Feature::Ragged(ragged) => array(ragged.values()),
    };
    batch.features().values().chain(batch.labels().values()).map(feature).sum()
}
