//! Assembles the spec of a model from a head and logits. All heads share this code.

use std::panic::Location;

use estimand_graph::{Optimizer, Tensor};
use estimand_nn::metric;
use estimand_tensor::{Dim, Error, Mode, Result};
use indexmap::IndexMap;

use super::{Head, LabelledBatch, Measures, Predictions, suffixed};
use crate::model_fn::lines;
use crate::{EstimatorSpec, ExportOutput, Input, ModelFnContext, SERVING_DEFAULT};

/// Returns the prefix that TensorFlow's heads give the names of an optimizer's slots: the scope
/// `training`, made unique.
fn slot_scope(head: &(impl Head + ?Sized)) -> String {
    match head.n_training_scopes() {
        0 | 1 => "training".to_string(),
        n => format!("training_{}", n - 1),
    }
}

/// A function from a loss to the train op.
pub type TrainOpFn<'a> = Box<dyn FnOnce(&Tensor) -> Result<Tensor> + 'a>;

/// How a model is trained: with an optimizer, or with a function from the loss to the train op, for
/// models with several optimizers. Both increment the global step.
///
/// ```
/// use estimand::graph::Minimize;
/// use estimand::prelude::*;
///
/// fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let (slow, quick) = (Dense::new(1).name("slow"), Dense::new(1).name("quick"));
///     let logits = slow.apply(&cx.feature("x")) + quick.apply(&cx.feature("x"));
///     RegressionHead::new().spec(cx, &logits, |loss: &Tensor| {
///         let train = |name: &str, rate| {
///             let kernel = cx.graph().get_variable(&format!("{name}/kernel"));
///             Optimizer::new(Sgd::default(), rate).minimize(Minimize::new(loss).variables([&kernel]))
///         };
///         Ok(cx.graph().group(&[&train("slow", 0.01), &train("quick", 0.1)]))
///     })
/// }
/// ```
pub enum Training<'a> {
    /// Trains all trainable variables with one optimizer.
    Optimizer(Optimizer),
    /// Makes the train op from the loss. It is called in training only, in the scope `training` (in
    /// a MultiHead `training_N`, as in TensorFlow).
    TrainOp(TrainOpFn<'a>),
}

impl From<Optimizer> for Training<'_> {
    fn from(optimizer: Optimizer) -> Self {
        Training::Optimizer(optimizer)
    }
}

impl<'a, F: FnOnce(&Tensor) -> Result<Tensor> + 'a> From<F> for Training<'a> {
    fn from(train_op: F) -> Self {
        Training::TrainOp(Box::new(train_op))
    }
}

/// Returns the spec of a model with this head, for the context's mode.
pub(super) fn assemble(
    head: &(impl Head + ?Sized),
    cx: &ModelFnContext<'_>,
    logits: &Tensor,
    training: Training<'_>,
    site: &'static Location<'static>,
) -> Result<EstimatorSpec> {
    cx.graph().check()?;
    let _lines = lines(cx.graph(), site);
    let place = |error: Error| {
        let error = match head.name() {
            Some(name) => error.context(format!("in head `{name}`")),
            None => error,
        };
        error.at_unless_placed(cx.graph().user_line(site))
    };
    head.check().and_then(|()| check_logits(head, logits)).map_err(place)?;
    let mut spec = EstimatorSpec::new(cx);
    let batch = LabelledBatch::new(cx);
    let loss = {
        let _scope = cx.graph().scope(head.name().as_deref().unwrap_or("head"));
        let mut predictions = head.predictions(logits).map_err(place)?;
        if cx.mode() == Mode::Predict {
            forward(head, &batch, &mut predictions).map_err(place)?;
            for (key, output) in head.export_outputs(&predictions).map_err(place)? {
                spec = spec.export_output(key, output);
            }
        }
        spec = predictions.iter().fold(spec, |spec, (key, tensor)| spec.prediction(key, tensor));
        if cx.mode() == Mode::Predict {
            return Ok(spec);
        }
        let measures = head.measures(&batch, logits).map_err(place)?;
        // TF: added after the reduction, for any kind of reduction (case 54).
        let regularization = match cx.graph().regularization_losses().is_empty() {
            true => None,
            false => Some(cx.graph().regularization_loss()),
        };
        let loss = match &regularization {
            Some(more) => measures.loss() + more,
            None => measures.loss().clone(),
        };
        if cx.mode() == Mode::Eval || !cx.config().running_metrics.is_empty() {
            for (key, metric) in metrics(head, &batch, &measures).map_err(place)? {
                spec = spec.metric(key, metric);
            }
            if let Some(more) = &regularization {
                let key = suffixed(head.name().as_deref(), "regularization_loss");
                spec = spec.metric(key, metric::mean(more, None));
            }
        }
        if cx.mode() == Mode::Eval {
            return Ok(spec.loss(&loss));
        }
        // TF: outside of any open scope. The estimator itself shows the loss of a head without a
        // name.
        let _scope = cx.graph().outside();
        for (key, part) in &measures.parts {
            cx.summary().scalar(key, part);
        }
        if head.summary_key("loss") != "loss" {
            cx.summary().scalar(&head.summary_key("loss"), &loss);
        }
        if let Some(more) = &regularization {
            cx.summary().scalar(&head.summary_key("regularization_loss"), more);
        }
        loss
    };
    Ok(match training {
        Training::Optimizer(optimizer) => spec.loss(&loss).optimizer(optimizer).optimizer_scope(slot_scope(head)),
        Training::TrainOp(train_op) => {
            let _scope = cx.graph().reopen(&slot_scope(head));
            let train_op = train_op(&loss)?;
            spec.loss(&loss).train_op(&train_op)
        }
    })
}

fn check_logits(head: &(impl Head + ?Sized), logits: &Tensor) -> Result<()> {
    let (dims, n) = (logits.shape().dims(), head.logits_dimension());
    if dims.len() < 2 || dims.last() != Some(&Dim::Known(n)) || !logits.dtype().is_float() {
        let error = Error::shape(format!("the logits are {}; expected f32[batch, {n}]", logits.describe()));
        return Err(error.help(format!("end the model with Dense::new({n}), without an activation")));
    }
    Ok(())
}

/// Adds the features that pass through. Only in prediction, because training data need not have
/// them.
fn forward(head: &(impl Head + ?Sized), batch: &LabelledBatch, predictions: &mut Predictions) -> Result<()> {
    for name in &head.reporting().forward {
        let feature =
            batch.features().find(name).map_err(|e| e.context("in a feature that is forwarded to the predictions"))?;
        let Input::Dense(tensor) = feature else {
            return Err(Error::shape(format!("feature `{name}` has rows of different length"))
                .help("forward only features with the same number of values in every row"));
        };
        if predictions.insert(name.clone(), tensor.clone()).is_some() {
            let error = Error::config(format!("feature `{name}` has the name of a prediction"));
            return Err(error.help("rename it in the input"));
        }
    }
    Ok(())
}

/// Returns the head's metrics, for all rows and for each slice.
pub(super) fn metrics(
    head: &(impl Head + ?Sized),
    batch: &LabelledBatch,
    measures: &Measures,
) -> Result<IndexMap<String, metric::Metric>> {
    let mut metrics = measures.metrics(None)?;
    for slice in &head.reporting().slices {
        for (name, rows) in slice.rows(batch)? {
            metrics.extend(measures.metrics(Some(&rows))?.into_iter().map(|(key, m)| (format!("{key}/{name}"), m)));
        }
    }
    Ok(metrics)
}

/// Returns the outputs of a classifier: probabilities with class names, and all predictions.
pub(super) fn classification(predictions: &Predictions, names: &str) -> IndexMap<String, ExportOutput> {
    let scores = ExportOutput::Classification {
        scores: predictions.get("probabilities").cloned(),
        classes: predictions.get(names).cloned(),
    };
    IndexMap::from([
        (SERVING_DEFAULT.to_string(), scores.clone()),
        ("classification".to_string(), scores),
        ("predict".to_string(), ExportOutput::Predict(predictions.clone())),
    ])
}
