//! The programs of a model: a training step, a test step and a prediction, each replayed into its
//! own graph and compiled for the layout of the batches.

use std::cell::RefCell;
use std::sync::Arc;

use estimand_engine::Compiled;
use estimand_graph::{Graph, Program, Role, Tensor, Value};
use estimand_nn::config::CustomObjects;
use estimand_nn::loss::{self, Loss, Reduction};
use estimand_nn::metric::{self, Metric, MetricValue, Totals};
use estimand_tensor::{Array, DType, Dim, Error, Mode, Result};
use estimand_update::Extended;

use super::compile::{OutputSettings, Settings};
use super::layout::{Fed, Layout};
use super::model::Model;
use super::names::MetricKind;
use super::replay::{Flags, Masked, Replay};
use super::state::Weights;
use super::train_step::{StepFn, TrainStep};
use crate::feeding::Binding;

/// The programs that were compiled so far.
#[derive(Default)]
pub(super) struct Programs {
    train: Option<(Layout, StepProgram)>,
    test: Option<(Layout, StepProgram)>,
    predict: Option<(Layout, StepProgram)>,
}

/// One program, and how its results are read.
#[derive(Clone)]
pub(super) struct StepProgram {
    pub compiled: Arc<Compiled>,
    pub binding: Binding,
    /// The names of the losses, which come first among the results.
    losses: Vec<String>,
    /// The metrics, whose sums follow.
    metrics: Vec<(String, Metric)>,
    /// The weights of which the optimizer keeps an average, with the names of their averages.
    pub averages: Vec<(String, String)>,
}

impl StepProgram {
    /// Runs the program on feeds that its host part has prepared.
    pub fn run(&self, weights: &mut Weights, feeds: &[Array], outputs: &mut Vec<Array>) -> Result<()> {
        weights.run(&self.compiled, feeds, outputs)
    }
}

impl Model {
    /// The program of a mode for batches like this one.
    pub(super) fn program(&mut self, mode: Mode, layout: &Layout) -> Result<StepProgram> {
        let place = self.programs.of(mode);
        if let Some((_, program)) = place.as_ref().filter(|(known, _)| known == layout) {
            return Ok(program.clone());
        }
        let program = self.build_program(mode, layout)?;
        *self.programs.of(mode) = Some((layout.clone(), program.clone()));
        Ok(program)
    }

    fn build_program(&mut self, mode: Mode, layout: &Layout) -> Result<StepProgram> {
        let graph = Graph::with_mode(mode);
        let fed = layout.feed(&graph, self);
        if let Some(step) = self.train_step.clone().filter(|_| mode == Mode::Train) {
            return self.build_own_step(&graph, &fed, layout, &step);
        }
        let flags = Flags::of_model(None, self.trainable);
        let outputs = Replay::new(&self.recipe).call_masked(&graph, &fed.inputs, flags);
        graph.check()?;
        if mode == Mode::Predict {
            let fetches: Vec<Value> = outputs.iter().map(|output| output.tensor.value()).collect();
            return self.finish_program(&graph, &fetches, &fed, Vec::new(), Vec::new());
        }
        let settings = self.check_compiled()?.clone();
        let _line = graph.line(settings.site, file!());
        let weights = weights_of(&graph, &fed, layout)?;
        let Computed { total, losses, metrics } = computed(&graph, &settings, &fed.labels, &outputs, weights.as_ref())?;
        let mut fetches: Vec<Value> = losses.iter().map(|(_, loss)| loss.value()).collect();
        fetches.extend(metrics.iter().flat_map(|(_, metric)| metric.sums()).map(Tensor::value));
        if mode == Mode::Train {
            let train = self.train_op(&graph, &settings.optimizer, &total)?;
            fetches.push(train.value());
        }
        let losses = losses.into_iter().map(|(name, _)| name).collect();
        match mode {
            Mode::Train => self.finish_training(&graph, &settings.optimizer, &fetches, &fed, losses, metrics),
            _ => self.finish_program(&graph, &fetches, &fed, losses, metrics),
        }
    }

    /// The program of a training step of the user's own.
    fn build_own_step(&mut self, graph: &Graph, fed: &Fed, layout: &Layout, step: &StepFn) -> Result<StepProgram> {
        let settings = self.check_compiled()?.clone();
        let weights = weights_of(graph, fed, layout)?;
        let recipe = self.recipe.clone();
        let given = TrainStep {
            graph,
            inputs: &fed.inputs,
            labels: &fed.labels,
            weights: weights.as_ref(),
            optimizer: &settings.optimizer,
            replay: RefCell::new(Replay::new(&recipe)),
            flags: Flags::of_model(None, self.trainable),
        };
        let place = |error: Error| error.context(format!("in the train_step of model `{}`", self.name()));
        let made = step(&given).and_then(|made| graph.check().map(|()| made)).map_err(place)?;
        for (name, value) in &made.logs {
            if value.rank() != 0 || value.dtype() != DType::F32 {
                let text = format!("`{name}` is logged and is {}{}; expected one f32", value.dtype(), value.shape());
                return Err(place(Error::shape(text).help("log its mean")));
            }
        }
        let updates = graph.updates();
        let train = graph.group(&made.train.iter().chain(&updates).collect::<Vec<_>>());
        graph.check().map_err(place)?;
        let mut fetches: Vec<Value> = made.logs.iter().map(|(_, value)| value.value()).collect();
        fetches.push(train.value());
        let names = made.logs.into_iter().map(|(name, _)| name).collect();
        self.finish_training(graph, &settings.optimizer, &fetches, fed, names, Vec::new())
    }

    /// Compiles a training step, and connects the learning rate and the averages of weights.
    fn finish_training(
        &mut self,
        graph: &Graph,
        optimizer: &estimand_graph::Optimizer,
        fetches: &[Value],
        fed: &Fed,
        losses: Vec<String>,
        metrics: Vec<(String, Metric)>,
    ) -> Result<StepProgram> {
        self.rate_variable = optimizer.rate_variable(graph).map(|rate| rate.name().to_string());
        let mut program = self.finish_program(graph, fetches, fed, losses, metrics)?;
        self.write_rate()?;
        self.connect_slots(graph)?;
        program.averages = self.averages(graph, optimizer);
        Ok(program)
    }

    /// The weights of which an optimizer keeps an average.
    fn averages(&self, graph: &Graph, optimizer: &estimand_graph::Optimizer) -> Vec<(String, String)> {
        if optimizer.average().is_none() {
            return Vec::new();
        }
        let body = graph.body().clone();
        let of = |id| body.variables().spec(id).name.clone();
        let averages = body.variables().iter().filter_map(|(_, spec)| match spec.role {
            Role::Slot { of: id } if spec.name.ends_with(&format!("/{}", Extended::AVERAGE)) => {
                Some((of(id), spec.name.clone()))
            }
            _ => None,
        });
        averages.collect()
    }

    /// TF: at the end of `fit`, averages become the weights (`finalize_variable_values`).
    pub(super) fn finalize_averages(&mut self) -> Result<()> {
        let averages = self.programs.train.as_ref().map_or(Vec::new(), |(_, program)| program.averages.clone());
        for (weight, average) in averages {
            let value = self.weights.read(&average)?;
            self.weights.write(&weight, &value)?;
        }
        Ok(())
    }

    /// The update of all weights and statistics. A model that is frozen as a whole has none.
    fn train_op(&self, graph: &Graph, optimizer: &estimand_graph::Optimizer, loss: &Tensor) -> Result<Tensor> {
        if !self.weight_names().any(|name| self.spec_of(name).trainable) {
            return Err(Error::config(format!("model `{}` has no weights to train", self.name()))
                .help("set_trainable(true), or set_layer_trainable(name, true) for a layer"));
        }
        let train = optimizer.minimize(loss);
        let updates = graph.updates();
        let all = graph.group(&std::iter::once(&train).chain(&updates).collect::<Vec<_>>());
        graph.check()?;
        Ok(all)
    }

    fn finish_program(
        &mut self,
        graph: &Graph,
        fetches: &[Value],
        fed: &Fed,
        losses: Vec<String>,
        metrics: Vec<(String, Metric)>,
    ) -> Result<StepProgram> {
        let body = Arc::new(graph.body().clone());
        self.weights.extend(body.variables())?;
        let program = Program::new(body, fetches)?;
        let compiled = Arc::new(Compiled::new(&*self.weights.executor, program)?);
        let binding = fed.placeholders.binding(&compiled)?;
        Ok(StepProgram { compiled, binding, losses, metrics, averages: Vec::new() })
    }
}

impl Programs {
    fn of(&mut self, mode: Mode) -> &mut Option<(Layout, StepProgram)> {
        match mode {
            Mode::Train => &mut self.train,
            Mode::Eval => &mut self.test,
            Mode::Predict => &mut self.predict,
        }
    }
}

/// The losses and metrics of a model in a graph.
pub(super) struct Computed {
    /// What training minimizes: the weighted sum of the losses, and penalties of weights.
    pub total: Tensor,
    /// The total under the name `loss`, then the loss of each of several outputs.
    pub losses: Vec<(String, Tensor)>,
    pub metrics: Vec<(String, Metric)>,
}

/// Adds the losses and metrics of a compiled model to the graph of its outputs.
pub(super) fn computed(
    graph: &Graph,
    settings: &Settings,
    labels: &[Tensor],
    outputs: &[Masked],
    weights: Option<&Tensor>,
) -> Result<Computed> {
    let mut losses: Vec<(String, Tensor)> = Vec::new();
    let mut metrics = Vec::new();
    let several = outputs.len() > 1;
    let prefix = |output: &OutputSettings| if several { format!("{}_", output.name) } else { String::new() };
    let mut total: Option<Tensor> = None;
    for ((output, labels), made) in settings.outputs.iter().zip(labels).zip(outputs) {
        let Masked { tensor: predictions, mask } = made;
        let labels = aligned(output, labels, predictions);
        let loss = loss_of(output, &labels, predictions, weights, mask.as_ref());
        graph.check().map_err(|error| error.context(format!("in the loss of output `{}`", output.name)))?;
        let part = output.weight.map_or_else(|| loss.clone(), |weight| &loss * weight);
        total = Some(total.map_or(part.clone(), |sum| sum + part));
        if several {
            losses.push((format!("{}loss", prefix(output)), loss));
        }
        for wanted in &output.metrics {
            let given = counted(weights.filter(|_| wanted.is_weighted), mask.as_ref());
            let metric = metric_of(&wanted.kind, &labels, predictions, given.as_ref());
            graph.check().map_err(|error| error.context(format!("in the metric `{}`", wanted.name)))?;
            metrics.push((format!("{}{}", prefix(output), wanted.name), metric));
        }
    }
    let mut total = total.ok_or_else(|| Error::internal("a model without outputs was compiled"))?;
    if !graph.regularization_losses().is_empty() {
        total = total + graph.regularization_loss();
    }
    losses.insert(0, ("loss".to_string(), total.clone()));
    number_again(&mut metrics);
    Ok(Computed { total, losses, metrics })
}

/// The weights of rows times those of their classes.
fn weights_of(graph: &Graph, fed: &Fed, layout: &Layout) -> Result<Option<Tensor>> {
    let Some(classes) = &layout.class_weight else { return Ok(fed.weights.clone()) };
    let [labels] = &fed.labels[..] else {
        return Err(Error::config(format!("class_weight is set, and the model has {} outputs", fed.labels.len()))
            .help("class_weight is for models with one output: pass sample weights instead"));
    };
    let rows = match labels.shape().dims() {
        // TF: rows of probabilities count as their largest class.
        [_, .., Dim::Known(n)] if *n > 1 => labels.argmax(-1),
        [_, .., Dim::Known(1)] => labels.squeeze(&[-1]).cast(DType::I64),
        _ => labels.cast(DType::I64),
    };
    let of_class = graph.constant(Array::from_slice([classes.len()], classes)?).gather(&rows);
    graph.check().map_err(|error| error.context("in class_weight"))?;
    Ok(Some(match &fed.weights {
        Some(weights) => weights * of_class,
        None => of_class,
    }))
}

/// Whether a loss takes class numbers as labels.
fn is_sparse(output: &OutputSettings) -> bool {
    output.loss.name() == Loss::name(&loss::SparseSoftmaxCrossEntropy::new())
}

/// TF: labels of one number may come without their axis, and class numbers as any numbers.
fn aligned(output: &OutputSettings, labels: &Tensor, predictions: &Tensor) -> Tensor {
    let labels =
        if is_sparse(output) && labels.dtype() != DType::I64 { labels.cast(DType::I64) } else { labels.clone() };
    match (labels.rank(), predictions.rank()) {
        (1, 2) => labels.expand_dims(-1),
        _ => labels,
    }
}

/// Weights times the mask of the predictions: steps that do not count have the weight 0.
fn counted(weights: Option<&Tensor>, mask: Option<&Tensor>) -> Option<Tensor> {
    let Some(mask) = mask.map(|mask| mask.cast(DType::F32)) else { return weights.cloned() };
    let Some(weights) = weights else { return Some(mask) };
    let rank = weights.rank().max(mask.rank());
    let wide = |x: &Tensor| (x.rank()..rank).fold(x.clone(), |x, _| x.expand_dims(-1));
    Some(wide(weights) * wide(&mask))
}

fn loss_of(
    output: &OutputSettings,
    labels: &Tensor,
    predictions: &Tensor,
    weights: Option<&Tensor>,
    mask: Option<&Tensor>,
) -> Tensor {
    let _scope = predictions.graph().scope(output.loss.name());
    let reduction = match output.loss.loss_reduction() {
        Reduction::SumByNonzeroWeights => Reduction::SumOverBatchSize,
        reduction => reduction,
    };
    let elements = match behind_activation(&*output.loss, predictions) {
        Some((loss, logits)) => loss.elements(labels, &logits),
        None => output.loss.elements(labels, predictions),
    };
    let loss = reduction.of(&elements, counted(weights, mask).as_ref());
    match (mask, reduction) {
        // TF: the mean is that of the steps that count (`oracles/live/keras_models.py`: `masked`).
        (Some(mask), Reduction::SumOverBatchSize) => loss / mask.cast(DType::F32).mean(),
        _ => loss,
    }
}

/// TF: a cross entropy of the result of a softmax or sigmoid is computed from its logits, which is
/// more exact. Returns the loss of logits, and the logits. (`oracles/live/keras_models.py`: the
/// models `mlp` and `lstm`)
fn behind_activation(loss: &dyn Loss, predictions: &Tensor) -> Option<(Box<dyn Loss>, Tensor)> {
    let mut document = loss.to_json().ok()?;
    let wanted = match document["class_name"].as_str()? {
        "SparseCategoricalCrossentropy" | "CategoricalCrossentropy" => "Softmax",
        "BinaryCrossentropy" => "Sigmoid",
        _ => return None,
    };
    let graph = predictions.graph();
    let logits = {
        let body = graph.body();
        let node = body.nodes().get(predictions.value().node.0 as usize)?;
        let input = node.inputs.first().filter(|input| node.op.name() == wanted && input.output == 0)?;
        body.node(input.node).name.clone()
    };
    if document["config"]["from_logits"] != false {
        return None;
    }
    document["config"]["from_logits"] = true.into();
    let of_logits = loss::from_json(&document.to_string(), &CustomObjects::new()).ok()?;
    Some((of_logits, graph.find(&logits).ok()?))
}

/// Makes a metric. Accuracy and cross entropy follow the shapes by Keras' rules.
fn metric_of(kind: &MetricKind, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let (l, p) = (labels.shape().dims(), predictions.shape().dims());
    let last = |dims: &[Dim]| dims.last().and_then(|dim| dim.known());
    let is_binary = last(p) == Some(1);
    let is_sparse = (l.len() < p.len() || last(l) == Some(1)) && !is_binary;
    let mean = |loss: &dyn Loss| metric::mean_loss(loss, labels, predictions, weights);
    match kind {
        MetricKind::Value(metric) => metric.apply(labels, predictions, weights),
        MetricKind::Accuracy if is_binary => metric::BinaryAccuracy::new().apply(labels, predictions, weights),
        MetricKind::Accuracy if is_sparse => {
            let labels = labels.cast(DType::I64);
            metric::SparseCategoricalAccuracy::new().apply(&labels, predictions, weights)
        }
        MetricKind::Accuracy => metric::CategoricalAccuracy::new().apply(labels, predictions, weights),
        MetricKind::Crossentropy if is_binary => mean(&loss::SigmoidCrossEntropy::new().from_probabilities()),
        MetricKind::Crossentropy if is_sparse => mean(&loss::SparseSoftmaxCrossEntropy::new().from_probabilities()),
        MetricKind::Crossentropy => mean(&loss::SoftmaxCrossEntropy::new().from_probabilities()),
    }
}

/// TF: a name that occurs again gets a number.
fn number_again(metrics: &mut [(String, Metric)]) {
    let given: Vec<String> = metrics.iter().map(|(name, _)| name.clone()).collect();
    for (i, (name, _)) in metrics.iter_mut().enumerate() {
        let n = given[..i].iter().filter(|earlier| *earlier == name).count();
        if n > 0 {
            *name = format!("{name}_{n}");
        }
    }
}

/// The losses and metrics of several batches.
#[derive(Default)]
pub(super) struct Running {
    /// Each loss times the number of rows, summed.
    losses: Vec<f64>,
    n_rows: f64,
    metrics: Vec<Totals>,
}

impl Running {
    /// Adds the results of a step.
    pub fn add(&mut self, program: &StepProgram, outputs: &[Array], n_rows: usize) -> Result<()> {
        self.losses.resize(program.losses.len(), 0.0);
        self.metrics.resize_with(program.metrics.len(), Totals::default);
        let (losses, mut sums) = outputs.split_at_checked(program.losses.len()).unwrap_or_default();
        for (sum, loss) in self.losses.iter_mut().zip(losses) {
            *sum += f64::from(loss.item::<f32>()?) * n_rows as f64;
        }
        self.n_rows += n_rows as f64;
        for (totals, (_, metric)) in self.metrics.iter_mut().zip(&program.metrics) {
            let own = sums.split_off(..metric.sums().len()).unwrap_or_default();
            totals.add(own)?;
        }
        Ok(())
    }

    /// The mean losses and the values of the metrics, under Keras' names.
    pub fn values(&self, program: &StepProgram) -> Result<Vec<(String, f64)>> {
        let mean =
            |(name, sum): (&String, &f64)| (name.clone(), if self.n_rows > 0.0 { sum / self.n_rows } else { 0.0 });
        let mut values: Vec<(String, f64)> = program.losses.iter().zip(&self.losses).map(mean).collect();
        for ((name, metric), totals) in program.metrics.iter().zip(&self.metrics) {
            let value = totals.value(metric).map_err(|error| error.context(format!("in the metric `{name}`")))?;
            values.push((name.clone(), value));
        }
        Ok(values)
    }
}
