//! The signatures of an export: which outputs of the model can be called with which inputs.

use estimand_graph::{Tensor, Value};
use estimand_tensor::{Error, Result};
use estimand_tf::saved_model_writer::{CLASSIFY, PREDICT, REGRESS, SignatureOf};
use indexmap::IndexMap;
use tracing::info;

use super::receiver::{Outputs, ServingInputReceiver, only_examples};
use crate::{EstimatorSpec, ExportOutput, SERVING_DEFAULT};

/// The name under which heads export all predictions.
const ALL_PREDICTIONS: &str = "predict";

/// Returns the signatures of a model with these inputs.
pub(super) fn of(spec: &EstimatorSpec, receiver: &ServingInputReceiver, outputs: Outputs) -> Result<Vec<SignatureOf>> {
    let mut all: Vec<SignatureOf> = Vec::new();
    for (name, output) in &spec.export_outputs {
        let is_prediction = matches!(output, ExportOutput::Predict(_));
        let is_left_out = match outputs {
            Outputs::Fitting => false,
            Outputs::OfFeatures => !is_prediction,
            Outputs::OfExamples => is_prediction || name == SERVING_DEFAULT,
        };
        if is_left_out {
            continue;
        }
        all.extend(fitting(name, output, &receiver.receiver_tensors));
        for (alternative, tensors) in &receiver.receiver_tensors_alternatives {
            all.extend(fitting(&format!("{alternative}:{name}"), output, tensors));
        }
    }
    // TensorFlow leaves an export over raw features without a default.
    let has_default = all.iter().any(|signature| signature.name == SERVING_DEFAULT);
    if outputs != Outputs::OfExamples && !has_default {
        let predictions = all.iter().find(|s| s.name == ALL_PREDICTIONS).or(all.first()).cloned();
        all.extend(predictions.map(|signature| SignatureOf { name: SERVING_DEFAULT.to_string(), ..signature }));
    }
    // A model that has only predictions needs no signatures over Examples.
    if all.is_empty() && outputs != Outputs::OfExamples {
        let names: Vec<&str> = spec.export_outputs.keys().map(String::as_str).collect();
        return Err(Error::config(format!(
            "no output of the model fits the inputs of the export; its outputs are {}",
            names.join(", ")
        ))
        .help("give the model a prediction, or export it with a receiver of Examples"));
    }
    Ok(all)
}

/// Returns the signature of an output, unless the inputs do not fit it.
fn fitting(name: &str, output: &ExportOutput, receiver_tensors: &IndexMap<String, Tensor>) -> Option<SignatureOf> {
    match output.as_signature_def(name, receiver_tensors) {
        Ok(signature) => Some(signature),
        Err(error) => {
            info!("Signature `{name}` is left out: {}.", error.message());
            None
        }
    }
}

impl ExportOutput {
    /// Returns the signature of this output over tensors that a caller feeds.
    ///
    /// A classification and a regression need one input of serialized Examples; their signatures
    /// call it `inputs`.
    ///
    /// ```
    /// use estimand::ExportOutput;
    /// use estimand::prelude::*;
    /// use indexmap::IndexMap;
    ///
    /// let graph = Graph::new();
    /// let x = graph.placeholder("x", DType::F32, [Dim::BATCH]);
    /// let fed = IndexMap::from([("x".to_string(), x.clone())]);
    /// let output = ExportOutput::Predict(IndexMap::from([("y".to_string(), &x * 2.0)]));
    /// let signature = output.as_signature_def("serving_default", &fed)?;
    /// assert_eq!(signature.method, "tensorflow/serving/predict");
    /// assert!(ExportOutput::Regression { value: x }.as_signature_def("regression", &fed).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn as_signature_def(
        &self,
        name: impl Into<String>,
        receiver_tensors: &IndexMap<String, Tensor>,
    ) -> Result<SignatureOf> {
        let examples = || {
            only_examples(receiver_tensors).map(|examples| vec![named("inputs", examples)]).ok_or_else(|| {
                let shown: Vec<String> = receiver_tensors.iter().map(|(k, t)| format!("{k} {}", t.spec())).collect();
                Error::config(format!("it needs one input of serialized Examples; the inputs are {}", shown.join(", ")))
                    .help("export it with a receiver of Examples")
            })
        };
        let (method, inputs, outputs) = match self {
            ExportOutput::Classification { scores, classes } => {
                let scores = scores.iter().map(|tensor| named("scores", tensor));
                let classes = classes.iter().map(|tensor| named("classes", tensor));
                (CLASSIFY, examples()?, scores.chain(classes).collect())
            }
            ExportOutput::Regression { value } => (REGRESS, examples()?, vec![named("outputs", value)]),
            ExportOutput::Predict(outputs) => (PREDICT, all_named(receiver_tensors), all_named(outputs)),
        };
        Ok(SignatureOf { name: name.into(), method: method.to_string(), inputs, outputs, effects: Vec::new() })
    }
}

fn named(name: &str, tensor: &Tensor) -> (String, Value) {
    (name.to_string(), tensor.value())
}

/// The values of tensors, by their names.
pub(super) fn all_named(tensors: &IndexMap<String, Tensor>) -> Vec<(String, Value)> {
    tensors.iter().map(|(name, tensor)| named(name, tensor)).collect()
}
