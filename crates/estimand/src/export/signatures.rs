//! The signatures of an export: which outputs of the model can be called with which inputs.

use estimand_graph::{Tensor, Value};
use estimand_tensor::{Error, Result};
use estimand_tf::saved_model_writer::{CLASSIFY, PREDICT, REGRESS, SignatureOf};
use tracing::info;

use super::receiver::{Outputs, ServingInputReceiver};
use crate::{EstimatorSpec, ExportOutput, SERVING_DEFAULT};

/// The name under which heads export all predictions.
const ALL_PREDICTIONS: &str = "predict";

/// Returns the signatures of a model with these inputs.
pub(super) fn of(spec: &EstimatorSpec, receiver: &ServingInputReceiver, outputs: Outputs) -> Result<Vec<SignatureOf>> {
    let mut all: Vec<SignatureOf> = Vec::new();
    for (name, output) in &spec.export_outputs {
        let is_prediction = matches!(output, ExportOutput::Predict(_));
        if outputs == Outputs::OfExamples && (is_prediction || name == SERVING_DEFAULT) {
            continue;
        }
        match signature(name, output, receiver) {
            Some(signature) => all.push(signature),
            None => info!("Signature `{name}` is left out: it needs one input of serialized Examples."),
        }
    }
    // TensorFlow leaves an export over raw features without a default.
    let has_default = all.iter().any(|signature| signature.name == SERVING_DEFAULT);
    if outputs == Outputs::Fitting && !has_default {
        let predictions = all.iter().find(|s| s.name == ALL_PREDICTIONS).or(all.first()).cloned();
        all.extend(predictions.map(|signature| SignatureOf { name: SERVING_DEFAULT.to_string(), ..signature }));
    }
    if all.is_empty() {
        let names: Vec<&str> = spec.export_outputs.keys().map(String::as_str).collect();
        return Err(Error::config(format!(
            "no output of the model fits the inputs of the export; its outputs are {}",
            names.join(", ")
        ))
        .help("give the model a prediction, or export it with a receiver of Examples"));
    }
    Ok(all)
}

fn signature(name: &str, output: &ExportOutput, receiver: &ServingInputReceiver) -> Option<SignatureOf> {
    let named = |name: &str, tensor: &Tensor| (name.to_string(), tensor.value());
    let over_examples = |method: &str, outputs: Vec<(String, Value)>| {
        let inputs = vec![named("inputs", receiver.examples()?)];
        Some(SignatureOf { name: name.to_string(), method: method.to_string(), inputs, outputs })
    };
    match output {
        ExportOutput::Classification { scores, classes } => {
            let scores = scores.iter().map(|tensor| named("scores", tensor));
            let classes = classes.iter().map(|tensor| named("classes", tensor));
            over_examples(CLASSIFY, scores.chain(classes).collect())
        }
        ExportOutput::Regression { value } => over_examples(REGRESS, vec![named("outputs", value)]),
        ExportOutput::Predict(outputs) => {
            let inputs = receiver.receiver_tensors.iter().map(|(name, tensor)| named(name, tensor)).collect();
            let outputs = outputs.iter().map(|(name, tensor)| named(name, tensor)).collect();
            Some(SignatureOf { name: name.to_string(), method: PREDICT.to_string(), inputs, outputs })
        }
    }
}
