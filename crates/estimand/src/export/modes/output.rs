//! The outputs of graphs for training and evaluation: loss, predictions, and metrics over batches.

use estimand_graph::{Graph, Initializer, Role, Tensor};
use estimand_nn::metric::Metric;
use estimand_tensor::{DType, Error, Result};
use estimand_tf::saved_model_writer::{EVAL, SUPERVISED_EVAL, SUPERVISED_TRAINING, SignatureOf, TRAIN};
use indexmap::IndexMap;

use super::super::signatures::all_named;

/// The outputs of an exported training or evaluation, as TensorFlow's `TrainOutput` and
/// `EvalOutput`.
#[derive(Clone, Debug, Default)]
pub struct SupervisedOutput {
    /// The loss of a batch.
    pub loss: Option<Tensor>,
    /// The predictions by name. One without a name is `""`.
    pub predictions: IndexMap<String, Tensor>,
    /// The metrics by name.
    pub metrics: IndexMap<String, MetricOps>,
}

/// A metric whose sums over batches are variables of the graph.
#[derive(Clone, Debug)]
pub struct MetricOps {
    /// The value for all batches so far.
    pub value: Tensor,
    /// The value for all batches so far and the one that is fed.
    pub updated: Tensor,
    /// The op that adds the batch that is fed.
    pub update_op: Tensor,
}

impl MetricOps {
    /// Adds variables for the sums of a metric, and the ops that update and read them.
    ///
    /// The variables are f64, as the sums of an evaluation are. Values are f32, as in TensorFlow.
    #[track_caller]
    pub fn new(graph: &Graph, name: &str, metric: &Metric) -> Result<MetricOps> {
        let _scope = graph.scope(&format!("metrics/{name}"));
        let (mut before, mut after, mut updates) = (Vec::new(), Vec::new(), Vec::new());
        for (i, sum) in metric.sums().iter().enumerate() {
            let dims: Option<Vec<usize>> = sum.shape().dims().iter().map(|dim| dim.known()).collect();
            let Some(dims) = dims else {
                let text = format!("sum {i} of metric `{name}` is {}; its shape must be known", sum.describe());
                return Err(Error::shape(text).help("sum over the rows of the batch"));
            };
            let total = graph.variable_with(&format!("sum_{i}"), DType::F64, dims, Initializer::Zeros, Role::Local);
            let next = &total + sum.cast(DType::F64);
            updates.push(total.assign(&next));
            before.push(total);
            after.push(next);
        }
        let value = metric.value(&before).cast(DType::F32);
        let updated = metric.value(&after).cast(DType::F32);
        let update_op = graph.group(&updates.iter().collect::<Vec<_>>());
        graph.check().map_err(|e| e.context(format!("in metric `{name}`")))?;
        Ok(MetricOps { value, updated, update_op })
    }
}

impl SupervisedOutput {
    /// Returns the signature `eval` of a graph for evaluation.
    pub fn as_eval_signature_def(&self, receiver_tensors: &IndexMap<String, Tensor>) -> SignatureOf {
        self.signature(EVAL, SUPERVISED_EVAL, receiver_tensors)
    }

    /// Returns the signature `train` of a graph for training.
    pub fn as_train_signature_def(&self, receiver_tensors: &IndexMap<String, Tensor>) -> SignatureOf {
        self.signature(TRAIN, SUPERVISED_TRAINING, receiver_tensors)
    }

    fn signature(&self, name: &str, method: &str, receiver_tensors: &IndexMap<String, Tensor>) -> SignatureOf {
        let loss = self.loss.iter().map(|loss| ("loss".to_string(), loss.value()));
        let predictions = self.predictions.iter().map(|(key, tensor)| (prefixed("predictions", key), tensor.value()));
        let (mut outputs, mut effects): (Vec<_>, Vec<_>) = (loss.chain(predictions).collect(), Vec::new());
        for (key, metric) in &self.metrics {
            let key = prefixed("metrics", key);
            let update = format!("{key}/update_op");
            outputs.push((format!("{key}/value"), metric.value.value()));
            outputs.push((update.clone(), metric.updated.value()));
            effects.push((update, metric.update_op.value()));
        }
        SignatureOf {
            name: name.to_string(),
            method: method.to_string(),
            inputs: all_named(receiver_tensors),
            outputs,
            effects,
        }
    }
}

/// TF: a name that begins with the prefix stays as it is, so the regression's `predictions` is not
/// `predictions/predictions`.
fn prefixed(prefix: &str, name: &str) -> String {
    match name {
        "" => prefix.to_string(),
        _ if name.starts_with(prefix) => name.to_string(),
        _ => format!("{prefix}/{name}"),
    }
}
