//! Evaluation: metrics over an input, with the variables of a checkpoint.

use std::fmt;
use std::ops::Index;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_data::{Dataset, Position};
use estimand_graph::Value;
use estimand_nn::metric::{Metric, Totals};
use estimand_tensor::{Array, Error, Mode, Result, nearest_name};
use indexmap::IndexMap;
use tracing::info;

use super::build::{Built, Opened};
use super::{Estimator, checkpoint_at};
use crate::console::sliced;
use crate::events::EventWriter;
use crate::feeding::Feeder;
use crate::hook::{BeginContext, Hook, HookContext, Hooks, Requests};
use crate::input_fn::InputFn;
use crate::session::TrainSession;

/// What to evaluate on.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) is one by itself: all of it is evaluated.
pub struct EvalSpec<'a> {
    input: Box<dyn InputFn + 'a>,
    steps: Option<u64>,
    name: Option<String>,
    checkpoint: Option<PathBuf>,
    hooks: Vec<Box<dyn Hook>>,
}

impl<'a> EvalSpec<'a> {
    /// Evaluates on all of an input.
    pub fn new(input: impl InputFn + 'a) -> EvalSpec<'a> {
        EvalSpec { input: Box::new(input), steps: None, name: None, checkpoint: None, hooks: Vec::new() }
    }

    /// Evaluates on the first so many batches. By default, on all.
    pub fn steps(mut self, n: u64) -> EvalSpec<'a> {
        self.steps = Some(n);
        self
    }

    /// A name, for evaluations on several inputs: TensorBoard shows each on its own.
    pub fn name(mut self, name: impl Into<String>) -> EvalSpec<'a> {
        self.name = Some(name.into());
        self
    }

    /// The checkpoint to evaluate. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> EvalSpec<'a> {
        self.checkpoint = Some(path.into());
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl Hook + 'static) -> EvalSpec<'a> {
        self.hooks.push(Box::new(hook));
        self
    }
}

impl From<Dataset> for EvalSpec<'_> {
    fn from(data: Dataset) -> Self {
        EvalSpec::new(data)
    }
}

impl<'a> From<&'a Dataset> for EvalSpec<'a> {
    fn from(data: &'a Dataset) -> Self {
        EvalSpec::new(data)
    }
}

/// The results of an evaluation, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    values: IndexMap<String, f64>,
    global_step: u64,
}

impl Metrics {
    /// The step of the checkpoint that was evaluated.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }

    /// A metric by name.
    pub fn get(&self, name: &str) -> Result<f64> {
        self.values.get(name).copied().ok_or_else(|| {
            let error = Error::config(format!("there is no metric `{name}`"));
            let names = || self.values.keys().map(String::as_str);
            match nearest_name(name, names()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// Panics if there is no such metric; [`Metrics::get`] does not.
impl Index<&str> for Metrics {
    type Output = f64;

    fn index(&self, name: &str) -> &f64 {
        match self.values.get(name) {
            Some(value) => value,
            None => panic!("there is no metric `{name}`; there are {:?}", self.values.keys().collect::<Vec<_>>()),
        }
    }
}

/// A table, sorted by name; slices have a column each.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = ("global_step", self.global_step as f64);
        let tables: Vec<String> = sliced(self.iter().chain([step])).iter().map(ToString::to_string).collect();
        f.write_str(&tables.join("\n\n"))
    }
}

impl Estimator {
    /// Evaluates: every metric of the model, the mean of the batches' losses, and the global step.
    pub fn evaluate<'a>(&self, spec: impl Into<EvalSpec<'a>>) -> Result<Metrics> {
        let spec = spec.into();
        if spec.steps == Some(0) {
            return Err(Error::config("evaluate on 0 batches; expected at least 1"));
        }
        let checkpoint = match &spec.checkpoint {
            Some(path) => Some(checkpoint_at(path)?),
            None => self.latest_checkpoint()?,
        };
        let cx = self.input_context(Mode::Eval, self.config.tf_random_seed.unwrap_or(0), 0);
        let opened = self.open(self.dataset(&*spec.input, cx)?, &cx, &Position::default())?;
        let built = self.build(Mode::Eval, &opened.spec)?;
        info!("Starting evaluation");
        let mut run = Run::new(self, built, opened, spec.hooks)?;
        match &checkpoint {
            Some(prefix) => {
                info!("Restoring parameters from {}", prefix.display());
                run.session.restore(prefix)?;
            }
            None => {
                info!("There is no checkpoint in {}: initial values are evaluated", self.model_dir.display());
                self.initialize(&mut run.session, std::mem::take(&mut run.initial_values))?;
            }
        }
        let metrics = run.evaluate(spec.steps)?;
        info!("Saving dict for global step {}: {}", metrics.global_step, line(&metrics));
        let mut events = EventWriter::create(self.eval_dir(spec.name.as_deref()))?;
        for (name, value) in metrics.iter() {
            events.scalar(metrics.global_step, name, value as f32)?;
        }
        if let Some(prefix) = &checkpoint {
            events.text(metrics.global_step, "checkpoint_path", &prefix.display().to_string())?;
        }
        events.sync()?;
        Ok(metrics)
    }
}

fn line(metrics: &Metrics) -> String {
    let parts: Vec<_> = metrics.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    parts.join(", ")
}

/// A metric, and what it has summed up.
struct Measured {
    name: String,
    metric: Metric,
    totals: Totals,
}

impl Measured {
    fn new((name, metric): (String, Metric)) -> Measured {
        Measured { name, metric, totals: Totals::default() }
    }

    fn place(&self) -> String {
        format!("in metric `{}`", self.name)
    }
}

/// An evaluation that is under way.
struct Run {
    session: TrainSession,
    input: Feeder,
    compiled: Arc<estimand_graph::Compiled>,
    hooks: Hooks,
    metrics: Vec<Measured>,
    /// The first of the fetches that belong to metrics: behind the loss and what hooks asked for.
    first_sum: usize,
    model_dir: PathBuf,
    initial_values: Vec<(String, Array)>,
}

impl Run {
    fn new(estimator: &Estimator, built: Built, opened: Opened, users: Vec<Box<dyn Hook>>) -> Result<Run> {
        let Built { graph, mut spec, placeholders } = built;
        let loss = spec.loss.clone().ok_or_else(|| Error::internal("a model without loss was let through"))?;
        let mut hooks = users;
        hooks.append(&mut spec.evaluation_hooks);
        let mut hooks = Hooks::new(hooks);
        let mut fetches: Vec<Value> = vec![loss.value()];
        hooks.each("begin", |hook| hook.begin(&mut BeginContext::new(&graph, &mut fetches, &mut Vec::new())))?;
        let first_sum = fetches.len();
        fetches.extend(spec.metrics.values().flat_map(Metric::sums).map(estimand_graph::Tensor::value));
        graph.check()?;
        let seed = estimator.config.tf_random_seed.unwrap_or(0);
        let session = TrainSession::new(Arc::new(graph.body().clone()), estimator.config.threads, seed)?;
        let compiled = session.compile(&fetches)?;
        let Opened { stream, first, .. } = opened;
        let binding = placeholders.binding(&compiled)?;
        let input = Feeder::new(first, stream, binding, compiled.clone(), estimator.config.n_input_threads());
        let model_dir = estimator.model_dir.clone();
        let metrics = spec.metrics.into_iter().map(Measured::new).collect();
        let initial_values = spec.initial_values;
        Ok(Run { session, input, compiled, hooks, metrics, first_sum, model_dir, initial_values })
    }

    fn evaluate(mut self, steps: Option<u64>) -> Result<Metrics> {
        let (mut outputs, mut requests) = (Vec::new(), Requests::default());
        let mut losses = (0.0, 0_u64);
        self.visit("after_create_session", &outputs, &mut requests, |hook, cx| hook.after_create_session(cx))?;
        while requests.stop.is_none() && steps.is_none_or(|n| losses.1 < n) {
            self.visit("before_run", &outputs, &mut requests, |hook, cx| hook.before_run(cx))?;
            self.session.begin_input();
            let Some(fed) = self.input.next()? else { break };
            self.session.run(&self.compiled, &fed.feeds, &mut outputs)?;
            losses = (losses.0 + f64::from(outputs[0].item::<f32>()?), losses.1 + 1);
            let mut sums = &outputs[self.first_sum..];
            for metric in &mut self.metrics {
                let own = sums.split_off(..metric.metric.sums().len()).unwrap_or_default();
                metric.totals.add(own).map_err(|e| e.context(metric.place()))?;
            }
            if let Some(n) = steps.filter(|&n| n < 20 || losses.1.is_multiple_of(n / 10) || losses.1 == n) {
                info!("Evaluation [{}/{n}]", losses.1);
            }
            self.visit("after_run", &outputs, &mut requests, |hook, cx| hook.after_run(cx))?;
        }
        if losses.1 == 0 {
            return Err(Error::config("nothing to evaluate: the input has no batch"));
        }
        self.visit("end", &outputs, &mut requests, |hook, cx| hook.end(cx))?;
        let mut values = IndexMap::new();
        for metric in &self.metrics {
            let value = metric.totals.value(&metric.metric).map_err(|e| e.context(metric.place()))?;
            values.insert(metric.name.clone(), value);
        }
        values.insert("loss".to_string(), losses.0 / losses.1 as f64);
        values.sort_keys();
        Ok(Metrics { values, global_step: self.session.step })
    }

    fn visit(
        &mut self,
        phase: &str,
        values: &[Array],
        requests: &mut Requests,
        mut call: impl FnMut(&mut dyn Hook, &mut HookContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let Run { session, hooks, model_dir, .. } = self;
        let loss = values.first().and_then(|loss| loss.item::<f32>().ok());
        let mut cx = HookContext { session, model_dir, events: None, values, loss, requests };
        hooks.each(phase, |hook| call(hook, &mut cx))
    }
}
