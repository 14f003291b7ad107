//! The contract of losses.

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, Result};

use super::differences::check_gradients;
use super::{ensure, ensure_same, rows};
use crate::loss::{Loss, Reduction};

/// One rule of the contract.
type Check = fn(&dyn Loss, &Array, &Array) -> Result<()>;

/// Checks a loss with a batch: its sign, weights, an empty batch, gradients, same bits.
pub fn check_loss(loss: &dyn Loss, labels: &Array, predictions: &Array) -> Result<()> {
    let checks: [(&str, Check); 4] = [
        ("losses of elements", elements_are_losses),
        ("weights", weights_weigh),
        ("an empty batch", nothing_costs_nothing),
        ("gradients", gradients_are_differences),
    ];
    let place = |what: &str| format!("in the loss contract, {what}, for {loss:?}");
    checks.iter().try_for_each(|(what, check)| check(loss, labels, predictions).map_err(|e| e.context(place(what))))
}

/// Labels and predictions that are fed.
struct Fed {
    graph: Graph,
    labels: Tensor,
    predictions: Tensor,
    feeds: [Array; 2],
}

impl Fed {
    fn new(labels: &Array, predictions: &Array) -> Fed {
        let graph = Graph::new();
        let feeds = [labels.clone(), predictions.clone()];
        let (labels, predictions) = (rows(&graph, "labels", labels), rows(&graph, "predictions", predictions));
        Fed { graph, labels, predictions, feeds }
    }

    fn feeds(&self) -> [(&Tensor, Array); 2] {
        [(&self.labels, self.feeds[0].clone()), (&self.predictions, self.feeds[1].clone())]
    }

    fn run(&self, fetch: &Tensor, threads: usize) -> Result<Array> {
        let mut session = Session::with(&self.graph, Cpu::with_threads(threads), 0)?;
        Ok(session.run(&[fetch], &self.feeds())?.remove(0))
    }
}

/// No loss is below `min_value`, there is a row of losses for each row, and threads change no bit.
fn elements_are_losses(loss: &dyn Loss, labels: &Array, predictions: &Array) -> Result<()> {
    let fed = Fed::new(labels, predictions);
    let elements = loss.elements(&fed.labels, &fed.predictions);
    let values = fed.run(&elements, 1)?;
    ensure(values.dims().first() == predictions.dims().first(), || {
        format!("the losses have the shape {:?}; expected a row for each row of the predictions", values.dims())
    })?;
    let least = loss.min_value();
    let holds = values.to_f64_vec()?.iter().all(|v| *v >= least);
    ensure(holds, || format!("the losses are {values:?}; expected none below {least}"))?;
    ensure_same("the losses on 1 and 3 threads", &values, &fed.run(&elements, 3)?)
}

/// Weights of 1 change nothing. Weights of 0 give a loss of 0, whatever the divisor is.
fn weights_weigh(loss: &dyn Loss, labels: &Array, predictions: &Array) -> Result<()> {
    let fed = Fed::new(labels, predictions);
    let weigh = |weight: f32| loss.apply_weighted(&fed.labels, &fed.predictions, &fed.graph.constant(weight));
    let plain = fed.run(&loss.apply(&fed.labels, &fed.predictions), 1)?;
    ensure_same("weights of 1", &plain, &fed.run(&weigh(1.0), 1)?)?;
    ensure(plain.rank() == 0 || loss.loss_reduction() == Reduction::None, || {
        format!("the reduced loss has the shape {:?}; expected one number", plain.dims())
    })?;
    let nothing = fed.run(&weigh(0.0), 1)?.to_f64_vec()?;
    ensure(nothing.iter().all(|v| *v == 0.0), || format!("the loss with weights of 0 is {nothing:?}; expected 0"))
}

/// A batch without rows has a loss of 0, not of NaN.
fn nothing_costs_nothing(loss: &dyn Loss, labels: &Array, predictions: &Array) -> Result<()> {
    let fed = Fed::new(&labels.rows(0..0)?, &predictions.rows(0..0)?);
    let empty = fed.run(&loss.apply(&fed.labels, &fed.predictions), 1)?.to_f64_vec()?;
    ensure(empty.iter().all(|v| *v == 0.0), || format!("the loss of an empty batch is {empty:?}; expected 0"))
}

fn gradients_are_differences(loss: &dyn Loss, labels: &Array, predictions: &Array) -> Result<()> {
    let fed = Fed::new(labels, predictions);
    let total = loss.elements(&fed.labels, &fed.predictions).sum();
    // The check covers the first fed tensor, so the labels, which are not learnt, come second.
    check_gradients(&fed.graph, &total, &[(&fed.predictions, predictions.clone()), (&fed.labels, labels.clone())])
}
