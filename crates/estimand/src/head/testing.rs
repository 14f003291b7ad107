//! The contract of every head, as a check that also runs on custom heads.
//!
//! ```
//! use estimand::head::testing::{check_head, example};
//! use estimand::prelude::*;
//! check_head(&RegressionHead::new().name("price"), &example(Array::from([1.0f32, 2.5, 0.0, 4.0]))?)?;
//! # Ok::<(), Error>(())
//! ```

use std::panic::Location;

use estimand_cpu::Cpu;
use estimand_data::slice_rows;
use estimand_engine::Session;
use estimand_graph::{Graph, Optimizer, Tensor, gradients};
use estimand_nn::metric::{Metric, Totals};
use estimand_nn::testing::spread;
use estimand_nn::{Dense, Input, Inputs, Layer};
use estimand_tensor::{Array, Batch, Error, Feature, Mode, Result};
use estimand_tf::graph_def::export;
use estimand_update::Sgd;
use indexmap::IndexMap;

use super::{Head, HeadSpec};
use crate::model_fn::{InputSpec, ModelFnContext};
use crate::{EstimatorSpec, HParams, RunConfig, SERVING_DEFAULT};

/// One rule of the contract.
type Check = fn(&dyn Head, &Batch) -> Result<()>;

/// Rows with these labels: a feature `x` for the logits, and `group`, 0 or 1, for slices.
pub fn example(labels: impl Into<Feature>) -> Result<Batch> {
    example_with([("label", labels.into())])
}

/// Rows with labels of several names.
pub fn example_with<'a>(labels: impl IntoIterator<Item = (&'a str, Feature)>) -> Result<Batch> {
    let mut batch = Batch::new();
    for (name, label) in labels {
        batch = batch.with_label(name, label)?;
    }
    let n = batch.n_rows();
    let groups = Array::from((0..n as i64).map(|i| i % 2).collect::<Vec<i64>>());
    batch.with_feature("x", spread(&[n, 3])?)?.with_feature("group", groups)
}

/// Checks a head with a batch of at least three rows and no weights. The logits are computed from
/// its feature `x`.
pub fn check_head(head: &dyn Head, batch: &Batch) -> Result<()> {
    let checks: [(&str, Check); 6] = [
        ("modes", modes_agree),
        ("exports", predictions_can_be_written),
        ("gradients", gradients_are_finite),
        ("rows", a_row_alone_is_the_same),
        ("batches", metrics_add_up),
        ("weights", rows_without_weight_do_not_count),
    ];
    ensure(batch.n_rows() >= 3 && batch.weights().is_none(), || {
        "the batch must have three rows or more, and no weights".into()
    })?;
    let place = |what: &str| format!("in the head contract, {what}, for {head:?}");
    checks.iter().try_for_each(|(what, check)| check(head, batch).map_err(|e| e.context(place(what))))
}

/// A model of a dense layer and a head, for one mode.
struct HeadModel {
    graph: Graph,
    spec: EstimatorSpec,
    features: Inputs,
    labels: Inputs,
    weights: Option<Tensor>,
}

impl HeadModel {
    fn new(head: &dyn Head, batch: &Batch, mode: Mode) -> Result<HeadModel> {
        let mut input = InputSpec::of(batch);
        if mode == Mode::Predict {
            input.labels = Default::default();
        }
        let (params, config) = (HParams::new(), RunConfig::new());
        let cx = ModelFnContext::new(mode, &input, &params, &config, Location::caller());
        let logits = Dense::new(head.logits_dimension()).apply(&cx.feature("x"));
        let spec = head.spec(&cx, &logits, Optimizer::new(Sgd::default(), 0.1))?.checked(&cx)?;
        let (features, labels) = (cx.features().clone(), cx.labels().clone());
        Ok(HeadModel { graph: cx.graph().clone(), spec, features, labels, weights: cx.weights().cloned() })
    }

    /// Returns the values of some tensors for a batch, with variables initialized from a fixed
    /// seed.
    fn run(&self, fetches: &[&Tensor], batch: &Batch) -> Result<Vec<Array>> {
        let features = feeds(&self.features, |name| batch.feature(name).cloned())?;
        let label = |name: &str| batch.labels().get(name).cloned().ok_or_else(|| Error::internal("a label is gone"));
        let labels = feeds(&self.labels, label)?;
        let mut feeds: Vec<(&Tensor, Array)> = features.iter().chain(&labels).map(|(t, a)| (t, a.clone())).collect();
        if let (Some(place), Some(weights)) = (&self.weights, batch.weights()) {
            feeds.push((place, weights.clone()));
        }
        Session::with(&self.graph, Cpu::with_threads(1), 1)?.run(fetches, &feeds)
    }

    fn loss(&self, batch: &Batch) -> Result<f32> {
        let loss = self.spec.loss.as_ref().ok_or_else(|| Error::internal("a spec without loss"))?;
        self.run(&[loss], batch)?.remove(0).item()
    }

    /// Returns the values of all metrics over batches.
    fn metrics(&self, batches: &[Batch]) -> Result<IndexMap<String, f64>> {
        let mut totals: Vec<Totals> = self.spec.metrics.values().map(|_| Totals::default()).collect();
        for batch in batches {
            let sums: Vec<&Tensor> = self.spec.metrics.values().flat_map(Metric::sums).collect();
            let values = self.run(&sums, batch)?;
            let mut rest = &values[..];
            for (total, metric) in totals.iter_mut().zip(self.spec.metrics.values()) {
                let (own, others) = rest.split_at(metric.sums().len());
                total.add(own)?;
                rest = others;
            }
        }
        let value = |((key, metric), total): ((&String, &Metric), &Totals)| Ok((key.clone(), total.value(metric)?));
        self.spec.metrics.iter().zip(&totals).map(value).collect()
    }
}

/// Returns the feeds of placeholders.
fn feeds(inputs: &Inputs, find: impl Fn(&str) -> Result<Feature>) -> Result<Vec<(Tensor, Array)>> {
    let mut found = Vec::new();
    for (name, input) in inputs.iter() {
        match (input, find(name)?) {
            (Input::Dense(tensor), Feature::Dense(array)) => found.push((tensor.clone(), array)),
            (Input::Ragged(ragged), Feature::Ragged(rows)) => {
                found.extend(ragged.feed(&rows).map(|(tensor, array)| (tensor.clone(), array)));
            }
            _ => return Err(Error::internal(format!("`{name}` is dense and ragged"))),
        }
    }
    Ok(found)
}

/// All modes have the same predictions. Each mode has the parts that it needs. Keys contain the
/// head's name.
fn modes_agree(head: &dyn Head, batch: &Batch) -> Result<()> {
    head.check()?;
    let [train, eval, predict] = [Mode::Train, Mode::Eval, Mode::Predict].map(|mode| HeadModel::new(head, batch, mode));
    let (train, eval, predict) = (train?.spec, eval?.spec, predict?.spec);
    let keys = |spec: &EstimatorSpec| spec.predictions.keys().cloned().collect::<Vec<_>>();
    ensure(!keys(&predict).is_empty(), || "the head makes no predictions".into())?;
    // Features pass through in prediction only.
    ensure(keys(&train) == keys(&eval) && keys(&predict).starts_with(&keys(&train)), || {
        let (train, eval, predict) = (keys(&train), keys(&eval), keys(&predict));
        format!(
            "the predictions are {train:?} in training, {eval:?} in evaluation and {predict:?} in prediction; \
             expected the same"
        )
    })?;
    ensure(train.metrics.is_empty() && predict.metrics.is_empty(), || {
        "the head has metrics outside of evaluation".into()
    })?;
    ensure(!eval.metrics.is_empty(), || "the head has no metrics in evaluation".into())?;
    if let Some(name) = head.name() {
        let named = |key: &&String| key.split('/').any(|part| name.split('_').any(|own| own == part) || part == name);
        let without = eval.metrics.keys().find(|key| !named(key));
        ensure(without.is_none(), || format!("metric {without:?} does not carry the name `{name}`"))?;
    }
    let exports = &predict.export_outputs;
    ensure(exports.contains_key(SERVING_DEFAULT) && exports.contains_key("predict"), || {
        let exports: Vec<_> = exports.keys().collect();
        format!("the exports are {exports:?}; expected `{SERVING_DEFAULT}` and `predict` among them")
    })?;
    ensure(train.export_outputs.is_empty() && eval.export_outputs.is_empty(), || {
        "the head has exports outside of prediction".into()
    })
}

/// TensorFlow can compute every prediction.
fn predictions_can_be_written(head: &dyn Head, batch: &Batch) -> Result<()> {
    let built = HeadModel::new(head, batch, Mode::Predict)?;
    let fetches: Vec<_> = built.spec.predictions.values().map(Tensor::value).collect();
    export(&built.graph.body(), &fetches).map(|_| ())
}

/// The loss and every element of its gradient are finite numbers; not all elements are 0.
fn gradients_are_finite(head: &dyn Head, batch: &Batch) -> Result<()> {
    let built = HeadModel::new(head, batch, Mode::Eval)?;
    ensure(built.loss(batch)?.is_finite(), || "the loss is not finite".into())?;
    let kernel = built.graph.get_variable("dense/kernel");
    let loss = built.spec.loss.clone().ok_or_else(|| Error::internal("a spec without loss"))?;
    let found = gradients(&loss, &[&kernel]);
    let gradient = found
        .first()
        .and_then(|g| g.values())
        .ok_or_else(|| Error::config("the loss has no gradient for the logits"))?;
    let values = built.run(&[gradient], batch)?.remove(0).to_f64_vec()?;
    ensure(values.iter().all(|v| v.is_finite()), || format!("the gradient is {values:?}; expected finite numbers"))?;
    ensure(values.iter().any(|v| *v != 0.0), || "the gradient is zero everywhere".into())
}

/// The predictions for a row do not depend on its batch.
fn a_row_alone_is_the_same(head: &dyn Head, batch: &Batch) -> Result<()> {
    let built = HeadModel::new(head, batch, Mode::Predict)?;
    let fetches: Vec<&Tensor> = built.spec.predictions.values().collect();
    let together = built.run(&fetches, batch)?;
    for i in 0..batch.n_rows() {
        let alone = built.run(&fetches, &slice_rows(batch, i..i + 1)?)?;
        for ((key, all), one) in built.spec.predictions.keys().zip(&together).zip(&alone) {
            ensure(all.rows(i..i + 1)? == *one, || {
                format!("`{key}` of row {i} alone is {one:?}, and another value in the batch")
            })?;
        }
    }
    Ok(())
}

/// Metrics over parts of the rows equal those over all rows. Means over batches, such as `loss/..`,
/// are exempt.
fn metrics_add_up(head: &dyn Head, batch: &Batch) -> Result<()> {
    let built = HeadModel::new(head, batch, Mode::Eval)?;
    let n = batch.n_rows();
    let parts = [slice_rows(batch, 0..2)?, slice_rows(batch, 2..n)?];
    let (at_once, in_parts) = (built.metrics(std::slice::from_ref(batch))?, built.metrics(&parts)?);
    ensure_equal(&at_once, &in_parts, "in parts")
}

/// Rows of weight 0 do not count, and a batch without any weight has a loss of 0.
fn rows_without_weight_do_not_count(head: &dyn Head, batch: &Batch) -> Result<()> {
    let n = batch.n_rows();
    let few = slice_rows(batch, 0..2)?;
    let weights = (0..n).map(|i| if i < 2 { 1.0f32 } else { 0.0 }).collect::<Vec<f32>>();
    let weighed = batch.clone().with_weights(Array::from(weights))?;
    let of_few = HeadModel::new(head, &few, Mode::Eval)?.metrics(&[few])?;
    let of_weighed = HeadModel::new(head, &weighed, Mode::Eval)?.metrics(&[weighed])?;
    ensure_equal(&of_few, &of_weighed, "with weights of 0")?;
    let nothing = batch.clone().with_weights(Array::from(vec![0.0f32; n]))?;
    let loss = HeadModel::new(head, &nothing, Mode::Eval)?.loss(&nothing)?;
    ensure(loss == 0.0, || format!("the loss is {loss} if all weights are 0; expected 0"))
}

fn ensure_equal(expected: &IndexMap<String, f64>, found: &IndexMap<String, f64>, how: &str) -> Result<()> {
    let over_rows = |(key, _): &(&String, &f64)| !key.starts_with("loss/") && !key.starts_with("regularization_loss");
    for (key, a) in expected.iter().filter(over_rows) {
        let b = found.get(key).copied().unwrap_or(f64::NAN);
        ensure((a - b).abs() <= 1e-5 * a.abs().max(1.0), || format!("`{key}` {how} is {b}, not {a}"))?;
    }
    Ok(())
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::config(broken())) }
}
