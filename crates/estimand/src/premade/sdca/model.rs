//! The model function of a linear model that `LinearSdca` trains: the graph computes logits, loss
//! and metrics, and a hook changes the weights.

use estimand_graph::{Combiner, Role, Tensor};
use estimand_nn::Input;
use estimand_nn::column::LinearOutput;
use estimand_tensor::{DType, Error, Mode, Result, warn};

use super::LinearSdca;
use super::hook::{Inputs, SdcaHook, Variable};
use super::loss::SdcaLoss;
use super::solver::Problem;
use crate::head::{Head, HeadSpec, LabelledBatch};
use crate::{EstimatorSpec, ModelFnContext};

/// TF: below this, TensorFlow recommends more L2 regularization. It does so at 1 too, the default.
const LITTLE_L2: f64 = 1.0;

impl LinearSdca {
    /// Checks the settings of the optimizer, and the combiner of the model.
    pub(in crate::premade) fn check_with(&self, combiner: Combiner) -> Result<()> {
        self.check()?;
        match combiner {
            Combiner::Sum => Ok(()),
            other => Err(Error::config(format!("the sparse_combiner is {}; LinearSdca needs sum", other.tf_name()))
                .help("leave sparse_combiner as it is, or use another optimizer")),
        }
    }

    /// Returns the loss for a head, or why there is none.
    pub(in crate::premade) fn loss_for(&self, head: &dyn Head) -> Result<SdcaLoss> {
        let n = head.logits_dimension();
        if n != 1 {
            return Err(Error::config(format!("LinearSdca trains one logit, and the head has {n}"))
                .help("use it with two classes or one number to predict, or use another optimizer"));
        }
        let Some(known) = head.example_loss() else {
            return Err(Error::unsupported(format!("LinearSdca cannot minimise the loss of the head {head:?}")).help(
                "use a head of two classes, of numbers, probabilities or counts, without a loss_fn of your own",
            ));
        };
        match self.loss {
            None => Ok(SdcaLoss::of(known)),
            Some(loss) if loss.needs() == known => Ok(loss),
            Some(loss) => {
                let (name, other) = (loss.name(), SdcaLoss::of(known).name());
                Err(Error::config(format!("LinearSdca was given {name}, and the loss of the head is {other}")).help(
                    "logistic_loss, hinge_loss and smooth_hinge_loss need a head of two classes, squared_loss a \
                     RegressionHead, poisson_loss a PoissonRegressionHead",
                ))
            }
        }
    }

    fn problem(&self, loss: SdcaLoss) -> Problem {
        Problem {
            loss,
            l1: self.symmetric_l1_regularization,
            l2: self.symmetric_l2_regularization,
            n_partitions: self.num_loss_partitions as f64,
            adaptive: self.adaptive,
        }
    }
}

/// Builds the model of a mode from the output of a linear model of one unit.
pub(in crate::premade) fn spec(
    sdca: &LinearSdca,
    cx: &ModelFnContext<'_>,
    output: &LinearOutput,
    head: &dyn Head,
) -> Result<EstimatorSpec> {
    let loss = sdca.loss_for(head)?;
    // The step only computes; the hook trains.
    let mut spec = head.spec(cx, &output.logits, |loss: &Tensor| Ok(cx.graph().group(&[loss])))?;
    if cx.mode() != Mode::Train {
        return Ok(spec);
    }
    if sdca.symmetric_l2_regularization < LITTLE_L2 {
        let l2 = sdca.symmetric_l2_regularization;
        warn!("symmetric_l2_regularization is {l2}: SDCA needs more than others, about the mean length of examples");
    }
    let examples = head.examples(&LabelledBatch::new(cx), &output.logits)?;
    let inputs = Inputs {
        ids: ids(sdca, cx)?,
        labels: examples.labels,
        weights: examples.weights,
        variables: variables(cx, output)?,
    };
    cx.graph().check()?;
    spec.trained_by = Some("LinearSdca");
    Ok(spec.training_chief_hook(SdcaHook::new(sdca, sdca.problem(loss), inputs, cx.config())?))
}

const ONE_ID: &str = "name a feature with one string or integer for each row, such as the number of the row";

/// The feature with the ids of examples.
fn ids(sdca: &LinearSdca, cx: &ModelFnContext<'_>) -> Result<Tensor> {
    let name = &sdca.example_id_column;
    let place = |error: Error| error.context("in the example_id_column of LinearSdca");
    let Input::Dense(ids) = cx.features().find(name).map_err(place)? else {
        let text = format!("feature `{name}` has rows of different length; expected one id each");
        return Err(place(Error::shape(text).help(ONE_ID)));
    };
    if !matches!(ids.dtype(), DType::Str | DType::I32 | DType::I64) {
        let text = format!("feature `{name}` is {}; ids are strings or integers", ids.dtype());
        return Err(place(Error::dtype(Some(DType::Str), ids.dtype(), text).help(ONE_ID)));
    }
    match ids.shape().dims() {
        [_] => Ok(ids.clone()),
        [_, one] if one.known() == Some(1) => Ok(ids.clone()),
        _ => {
            let text = format!("feature `{name}` is {}; expected one id each", ids.describe());
            Err(place(Error::shape(text).help(ONE_ID)))
        }
    }
}

/// The variables of the model with the values of their columns. A variable that no example has
/// values for, such as an embedding, is an error: it would stay as it is.
fn variables(cx: &ModelFnContext<'_>, output: &LinearOutput) -> Result<Vec<Variable>> {
    let body = cx.graph().body();
    let mut all = Vec::new();
    let columns = output.weights.iter().map(|(column, weights)| (weights, output.values.get(column).cloned()));
    for (weights, values) in columns.chain([(&output.bias, None)]) {
        let id = weights.variable().ok_or_else(|| Error::internal("weights that are no variable were let through"))?;
        let spec = body.variables().spec(id);
        all.push(Variable { name: spec.name.clone(), dims: spec.dims.to_vec(), values });
    }
    let other = body.variables().iter().find(|(_, spec)| {
        spec.role == (Role::Model { trainable: true }) && all.iter().all(|variable| variable.name != spec.name)
    });
    match other {
        None => Ok(all),
        Some((_, spec)) => Err(Error::config(format!("LinearSdca cannot train `{}`", spec.name))
            .help("use categorical and numeric columns; an embedding needs another optimizer")),
    }
}
