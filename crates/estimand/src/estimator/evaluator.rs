//! An evaluation model that stays in memory: built once, then run on any number of inputs and
//! variables.

use std::path::PathBuf;
use std::sync::Arc;

use estimand_data::Position;
use estimand_engine::Compiled;
use estimand_graph::Value;
use estimand_nn::metric::{Metric, Totals};
use estimand_tensor::{Array, Error, ErrorKind, Mode, Result, warn};
use indexmap::IndexMap;
use tracing::info;

use super::build::{BuiltModel, Opened};
use super::{Estimator, Metrics};
use crate::feeding::{Binding, Feeder};
use crate::hook::{BeginContext, Hook, HookContext, Hooks, Requests};
use crate::input_fn::InputFn;
use crate::manifest::Meant;
use crate::model_fn::InputSpec;
use crate::session::TrainSession;
use crate::signal;
use crate::summary::{Summaries, Summary};

/// A metric and its running sums.
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

/// A model for evaluation.
pub(crate) struct Evaluator<'a> {
    pub(crate) session: TrainSession,
    compiled: Arc<Compiled>,
    binding: Binding,
    n_input_threads: usize,
    hooks: Hooks<'a>,
    metrics: Vec<Measured>,
    /// Precision-recall curves, and the sums of their buckets.
    curves: Vec<(Summary, Totals)>,
    /// The index of the first fetch of a metric, after the loss and the fetches of hooks.
    first_sum: usize,
    model_dir: PathBuf,
    pub(super) initial_values: Vec<(String, Array)>,
}

impl Estimator {
    /// Opens a whole input for an evaluation.
    ///
    /// `steps` is the number of batches that are read; without it, an endless input is refused.
    pub(crate) fn open_for_evaluation(&self, input: &dyn InputFn, steps: Option<u64>) -> Result<Opened> {
        self.check_whole(input)?;
        let cx = self.input_context(Mode::Eval, self.config.tf_random_seed.unwrap_or(0), 0);
        let data = self.dataset(input, cx)?;
        if steps.is_none() && data.is_endless() {
            return Err(Error::config("the input of the evaluation never ends, and the evaluation has no steps").help(
                "set EvalSpec::steps (Experiment::eval_steps of an Experiment), or let the input end: without \
                     `repeat_forever`, or with `n_epochs(Some(1))`",
            ));
        }
        self.open_input(data, &cx, &Position::default())
    }

    /// Checks that this process does not evaluate one shard of the input and report it as the
    /// whole. A dedicated evaluator process sees the whole input.
    fn check_whole(&self, input: &dyn InputFn) -> Result<()> {
        let Some(cluster) = self.config.cluster.as_ref().filter(|cluster| cluster.n_workers() > 1) else {
            return Ok(());
        };
        if input.is_same_for_all_workers() {
            return Ok(());
        }
        let (n, task, index) = (cluster.n_workers(), cluster.task_type(), cluster.task_index());
        let message = format!(
            "TF_CONFIG names {n} workers and makes this process {task} {index}: its input may be one shard of the rows, and \
             the metrics of a shard are not those of all rows"
        );
        Err(Error::new(ErrorKind::Cluster, message).help(
            "evaluate where TF_CONFIG says evaluator, or without TF_CONFIG; or give a Dataset without shard_by_worker, not a \
             function, which may shard by its context",
        ))
    }

    /// Builds the evaluation model for inputs like this one. Its variables have no useful values
    /// yet.
    pub(crate) fn evaluator<'a>(&self, input: &InputSpec, mut hooks: Vec<Box<dyn Hook + 'a>>) -> Result<Evaluator<'a>> {
        let BuiltModel { graph, spec, mut placeholders } = self.build(Mode::Eval, input)?;
        let loss = spec.loss.ok_or_else(|| Error::internal("a model without loss was let through"))?;
        for hook in spec.evaluation_hooks {
            hooks.push(hook);
        }
        let mut hooks = Hooks::new(hooks);
        let mut fetches: Vec<Value> = vec![loss.value()];
        hooks.each("begin", |hook| {
            hook.begin(&mut BeginContext::new(&graph, &mut placeholders, &mut fetches, &mut Vec::new()))
        })?;
        let first_sum = fetches.len();
        fetches.extend(spec.metrics.values().flat_map(Metric::sums).map(estimand_graph::Tensor::value));
        let curves: Vec<Summary> = Summaries::of(&graph).all().iter().filter(|s| s.adds_up()).cloned().collect();
        fetches.extend(curves.iter().map(|curve| curve.value));
        graph.check()?;
        let seed = self.config.tf_random_seed.unwrap_or(0);
        let body = Arc::new(graph.body().clone());
        let meant = Meant::new(&body, Mode::Eval, input.classes.as_deref(), &self.config);
        let session = TrainSession::new(body, meant, &self.config, seed)?;
        let compiled = session.compile(&fetches)?;
        Ok(Evaluator {
            session,
            binding: placeholders.binding(&compiled)?,
            compiled,
            n_input_threads: self.config.n_input_threads(),
            hooks,
            metrics: spec.metrics.into_iter().map(Measured::new).collect(),
            curves: curves.into_iter().map(|curve| (curve, Totals::default())).collect(),
            first_sum,
            model_dir: self.model_dir.clone(),
            initial_values: spec.initial_values,
        })
    }
}

impl Evaluator<'_> {
    /// Returns the names of the metrics that an evaluation will report.
    pub(crate) fn metrics_without_values(&self) -> Metrics {
        let names = self.metrics.iter().map(|metric| metric.name.clone()).chain(["loss".to_string()]);
        Metrics::new(names.map(|name| (name, f64::NAN)).collect(), 0)
    }

    /// Evaluates with the variables of a training, between two of its steps.
    pub(crate) fn run_on(
        &mut self,
        training: &mut TrainSession,
        opened: Opened,
        steps: Option<u64>,
    ) -> Result<Metrics> {
        self.session.borrow(training)?;
        let result = self.run(opened, steps);
        self.session.give_back(training);
        result
    }

    /// Evaluates on the first `steps` batches of an input, or on all of them.
    pub(crate) fn run(&mut self, opened: Opened, steps: Option<u64>) -> Result<Metrics> {
        let Opened { stream, first, .. } = opened;
        let mut input = Feeder::new(first, stream, self.binding.clone(), self.compiled.clone(), self.n_input_threads);
        self.metrics.iter_mut().for_each(|metric| metric.totals = Totals::default());
        self.curves.iter_mut().for_each(|(_, totals)| *totals = Totals::default());
        let (mut outputs, mut requests) = (Vec::new(), Requests::default());
        let (mut losses, mut is_told) = ((0.0, 0_u64), false);
        self.visit("after_create_session", &outputs, &mut requests, |hook, cx| hook.after_create_session(cx))?;
        while requests.stop.is_none() && steps.is_none_or(|n| losses.1 < n) {
            if let Some(signal) = signal::requested() {
                let message = format!("evaluation was interrupted by {signal}");
                return Err(Error::new(ErrorKind::Interrupted, message).help("run the program again to continue"));
            }
            self.visit("before_run", &outputs, &mut requests, |hook, cx| hook.before_run(cx))?;
            self.session.begin_input();
            let Some(fed) = input.next()? else { break };
            if self.binding.has_hooks() {
                let feeds = fed.prepare_again(&self.binding, &self.compiled, &self.session.hook_feeds)?;
                self.session.run(&self.compiled, &feeds, &mut outputs)?;
            } else {
                self.session.run(&self.compiled, &fed.feeds, &mut outputs)?;
            }
            let loss = outputs[0].item::<f32>()?;
            losses = (losses.0 + f64::from(loss), losses.1 + 1);
            if !loss.is_finite() && !std::mem::replace(&mut is_told, true) {
                let what = self.binding.numbers(&fed);
                warn!(
                    "Evaluation: the loss of batch {} is {loss}: {what}. Metrics that include this batch may be wrong",
                    losses.1
                );
            }
            let mut sums = &outputs[self.first_sum..];
            for metric in &mut self.metrics {
                let own = sums.split_off(..metric.metric.sums().len()).unwrap_or_default();
                metric.totals.add(own).map_err(|e| e.context(metric.place()))?;
            }
            for ((_, totals), buckets) in self.curves.iter_mut().zip(sums) {
                totals.add(std::slice::from_ref(buckets))?;
            }
            if let Some(n) = steps.filter(|&n| n < 20 || losses.1.is_multiple_of(n / 10) || losses.1 == n) {
                info!("Evaluation [{}/{n}]", losses.1);
            }
            self.visit("after_run", &outputs, &mut requests, |hook, cx| hook.after_run(cx))?;
        }
        if losses.1 == 0 {
            return Err(Error::config("nothing to evaluate: the input has no batch")
                .help("check the input's files, its filters and its shard: together they leave no rows"));
        }
        self.visit("end", &outputs, &mut requests, |hook, cx| hook.end(cx))?;
        let (mut values, mut arrays) = (IndexMap::new(), IndexMap::new());
        for metric in &self.metrics {
            let value = metric.totals.array(&metric.metric).map_err(|e| e.context(metric.place()))?;
            match value.to_f64_vec()?[..] {
                [value] => drop(values.insert(metric.name.clone(), value)),
                _ => drop(arrays.insert(metric.name.clone(), value)),
            }
        }
        values.insert("loss".to_string(), losses.0 / losses.1 as f64);
        let mut metrics = Metrics::new(values, self.session.step).with_arrays(arrays);
        for (Summary { tag, kind, .. }, totals) in &self.curves {
            for buckets in totals.sums()? {
                metrics.summaries.extend(kind.convert(tag, &buckets)?.values);
            }
        }
        Ok(metrics)
    }

    fn visit(
        &mut self,
        phase: &str,
        values: &[Array],
        requests: &mut Requests,
        mut call: impl FnMut(&mut dyn Hook, &mut HookContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let Evaluator { session, hooks, model_dir, .. } = self;
        let loss = values.first().and_then(|loss| loss.item::<f32>().ok());
        let mut cx = HookContext {
            session,
            model_dir,
            events: None,
            values,
            requested: &[],
            loss,
            running_metrics: None,
            batch_numbers: None,
            requests,
        };
        hooks.each(phase, |hook| call(hook, &mut cx))
    }
}
