//! `tensorflow.serving.PredictionService`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use estimand_tensor::Strings;
use estimand_wire::Message;
use estimand_wire::collection_def::Any;

use super::messages::*;
use super::predict_call::{NamedTensor, PredictCall, PredictReply};
use crate::core::Core;
use crate::infer::{self, Deadline, Method, Outputs};
use crate::json::{Rows, UnknownKeys};
use crate::metrics::Api;
use crate::model::{Choice, Loaded, Model, Signature};
use crate::status::{Answer, Code, Status};

const CLASSIFY: &str = "tensorflow/serving/classify";
const REGRESS: &str = "tensorflow/serving/regress";
/// The only field of metadata that there is.
const SIGNATURE_DEF: &str = "signature_def";

/// The version that a request asks for.
pub(super) fn choice(spec: &ModelSpec) -> Choice {
    match &spec.version_choice {
        None => Choice::Latest,
        Some(VersionChoice::Version(version)) => Choice::Version(version.value),
        Some(VersionChoice::VersionLabel(label)) => Choice::Label(label.clone()),
    }
}

pub(super) fn spec(spec: &Option<ModelSpec>) -> Answer<&ModelSpec> {
    spec.as_ref().ok_or_else(|| Status::invalid("Missing ModelSpec"))
}

fn loaded(core: &Core, spec: &ModelSpec) -> Answer<(Arc<Model>, Arc<Loaded>)> {
    core.models.loaded(&spec.name, &choice(spec))
}

/// The spec of an answer: the version and the signature that answered.
fn answered(asked: &ModelSpec, loaded: &Loaded, signature: &str) -> ModelSpec {
    let version_choice = Some(VersionChoice::Version(Int64Value { value: loaded.version }));
    ModelSpec { name: asked.name.clone(), version_choice, signature_name: signature.to_string() }
}

/// Names in braces.
fn set<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("{{{}}}", names.collect::<Vec<_>>().join(","))
}

pub(super) async fn predict(core: &Core, request: PredictCall, deadline: Deadline) -> Answer<PredictReply> {
    let asked = spec(&request.model_spec)?;
    let (model, loaded) = loaded(core, asked)?;
    let signature = loaded.signature(&asked.signature_name, |name| {
        Status::new(Code::FailedPrecondition, format!("Serving signature key \"{name}\" not found."))
    })?;
    let rows = arrays(&signature, &request, core.settings.unknown_keys)?;
    let wanted = wanted(&signature, &request.output_filter)?;
    let outputs = infer::run_rows(core, &model, &signature, rows, deadline, Api::Predict).await?;
    let named = signature.outputs.iter().zip(&outputs).map(|((name, _), array)| (name.as_str(), array));
    let named = named.filter(|(name, _)| wanted.as_ref().is_none_or(|wanted| wanted.contains(name)));
    PredictReply::new(named, &answered(asked, &loaded, &signature.name))
}

/// The inputs of a request, in the order of the signature. Inputs that it leaves out take their
/// defaults.
pub(crate) fn arrays(signature: &Signature, given: &PredictCall, unknown_keys: UnknownKeys) -> Answer<Rows> {
    if given.n_inputs() == signature.inputs.len() {
        let mut arrays = Vec::with_capacity(given.n_inputs());
        for sent in signature.inputs.iter().map_while(|input| given.find(&input.name)) {
            arrays.push(sent.to_array()?);
        }
        if arrays.len() == given.n_inputs() {
            return Ok(Rows::from(arrays));
        }
    }
    let array = |input: &crate::json::Input| given.find(&input.name).map(NamedTensor::to_array).transpose();
    let expected: BTreeSet<&str> = signature.inputs.iter().map(|input| input.name.as_str()).collect();
    let names: Vec<_> = given.inputs().map(|tensor| String::from_utf8_lossy(tensor.name)).collect();
    let sent: BTreeSet<&str> = names.iter().map(|name| &**name).collect();
    let unknown: Vec<&str> = sent.difference(&expected).copied().collect();
    let has_default = |name: &str| signature.inputs.iter().any(|input| input.name == name && input.default.is_some());
    let missing = expected.difference(&sent).any(|name| !has_default(name));
    if missing || !unknown.is_empty() && unknown_keys.is_error(false) {
        let (extra, missing) = (set(unknown.into_iter()), set(expected.difference(&sent).copied()));
        return Err(Status::invalid(format!(
            "input size does not match signature: {}!={} len({}) != len({}). Sent extra: {extra}. Missing but required: \
             {missing}.",
            sent.len(),
            expected.len(),
            set(sent.iter().copied()),
            set(expected.iter().copied()),
        )));
    }
    let found = signature.inputs.iter().map(array).collect::<Answer<Vec<_>>>()?;
    Rows::filled(&signature.inputs, found, unknown.into_iter())
}

/// The outputs that a request asks for; `None` if it asks for all.
fn wanted<'a>(signature: &Signature, filter: &'a [String]) -> Answer<Option<BTreeSet<&'a str>>> {
    if filter.is_empty() {
        return Ok(None);
    }
    let known: BTreeSet<&str> = signature.outputs.iter().map(|(name, _)| name.as_str()).collect();
    let mut wanted = BTreeSet::new();
    for name in filter {
        if !known.contains(name.as_str()) {
            return Err(Status::invalid(format!(
                "output tensor alias not found in signature: {name} Outputs expected to be in the set {}.",
                set(known.iter().copied())
            )));
        }
        if !wanted.insert(name.as_str()) {
            return Err(Status::invalid(format!("duplicate output tensor alias: {name}")));
        }
    }
    Ok(Some(wanted))
}

/// Serialized examples, each with the context before it: joined messages are one message.
pub(crate) fn examples(input: &Option<Input>) -> Strings {
    let (examples, context) = match input.as_ref().and_then(|input| input.kind.as_ref()) {
        None => return Strings::default(),
        Some(InputKind::ExampleList(list)) => (&list.examples, &b""[..]),
        Some(InputKind::ExampleListWithContext(list)) => (&list.examples, list.context.as_slice()),
    };
    let mut all = Strings::with_capacity(examples.len());
    for example in examples {
        all.write(context);
        all.write(example);
        all.finish();
    }
    all
}

fn classification_result(outputs: &Outputs) -> Answer<ClassificationResult> {
    let all = outputs.classifications()?;
    let class = |row: usize, class: usize| Class {
        label: String::from_utf8_lossy(all.label(row, class)).into_owned(),
        score: all.score(row, class),
    };
    let row = |row: usize| Classifications { classes: (0..all.n_classes()).map(|i| class(row, i)).collect() };
    Ok(ClassificationResult { classifications: (0..all.n_rows()).map(row).collect() })
}

fn regression_result(outputs: &Outputs) -> Answer<RegressionResult> {
    Ok(RegressionResult { regressions: outputs.regressions()?.iter().map(|&value| Regression { value }).collect() })
}

/// Runs a signature on the examples of a request.
async fn run_examples(
    core: &Core,
    request: &ExampleRequest,
    deadline: Deadline,
    method: Method,
) -> Answer<(Outputs, Option<ModelSpec>)> {
    let asked = spec(&request.model_spec)?;
    let (model, loaded) = loaded(core, asked)?;
    let signature = infer::example_signature(&loaded, &asked.signature_name, method)?;
    let name = signature.name.clone();
    let outputs = infer::run_examples(&model, signature, examples(&request.input), deadline, method).await?;
    Ok((outputs, Some(answered(asked, &loaded, &name))))
}

pub(super) async fn classify(
    core: &Core,
    request: ExampleRequest,
    deadline: Deadline,
) -> Answer<ClassificationResponse> {
    let (outputs, model_spec) = run_examples(core, &request, deadline, Method::Classify).await?;
    Ok(ClassificationResponse { result: Some(classification_result(&outputs)?), model_spec })
}

pub(super) async fn regress(core: &Core, request: ExampleRequest, deadline: Deadline) -> Answer<RegressionResponse> {
    let (outputs, model_spec) = run_examples(core, &request, deadline, Method::Regress).await?;
    Ok(RegressionResponse { result: Some(regression_result(&outputs)?), model_spec })
}

pub(super) async fn multi_inference(
    core: &Core,
    request: MultiInferenceRequest,
    deadline: Deadline,
) -> Answer<MultiInferenceResponse> {
    let first = spec(
        &request.tasks.first().ok_or_else(|| Status::invalid("Inference request must contain tasks."))?.model_spec,
    )?;
    let (model, loaded) = loaded(core, first)?;
    let mut signatures = Vec::new();
    for task in &request.tasks {
        let asked = spec(&task.model_spec)?;
        if asked.name.is_empty() {
            return Err(Status::invalid("Found ModelSpec with an empty model name."));
        }
        if asked.name != first.name {
            return Err(Status::invalid("All ModelSpecs in a MultiInferenceRequest must access the same model name."));
        }
        let method = match task.method_name.as_str() {
            CLASSIFY => Method::Classify,
            REGRESS => Method::Regress,
            other => {
                let message = format!("Unsupported signature method_name: {other}");
                return Err(Status::new(Code::Unimplemented, message));
            }
        };
        let signature = infer::example_signature(&loaded, &asked.signature_name, method)?;
        if signatures.iter().any(|(known, ..): &(Arc<Signature>, _, _)| known.name == signature.name) {
            return Err(Status::invalid(format!("Duplicate evaluation of signature: {}", signature.name)));
        }
        signatures.push((signature, method, asked));
    }
    let examples = examples(&request.input);
    let mut results = Vec::new();
    for (signature, method, asked) in signatures {
        let model_spec = Some(answered(asked, &loaded, &signature.name));
        let outputs = infer::run_examples(&model, signature, examples.clone(), deadline, method).await?;
        let result = Some(match method {
            Method::Classify => TaskResult::Classification(classification_result(&outputs)?),
            Method::Regress => TaskResult::Regression(regression_result(&outputs)?),
        });
        results.push(InferenceResult { model_spec, result });
    }
    Ok(MultiInferenceResponse { results })
}

pub(super) async fn metadata(
    core: &Core,
    request: GetModelMetadataRequest,
    _: Deadline,
) -> Answer<GetModelMetadataResponse> {
    let asked = spec(&request.model_spec)?;
    if request.metadata_field.is_empty() {
        return Err(Status::invalid("GetModelMetadataRequest must specify at least one metadata_field"));
    }
    if let Some(other) = request.metadata_field.iter().find(|field| *field != SIGNATURE_DEF) {
        return Err(Status::invalid(format!("Metadata field {other} is not supported")));
    }
    let (_, loaded) = loaded(core, asked)?;
    let value = SignatureDefMap { signature_def: loaded.defs.clone() }.encode_to_vec();
    let any = Any { type_url: "type.googleapis.com/tensorflow.serving.SignatureDefMap".into(), value };
    let metadata = BTreeMap::from([(SIGNATURE_DEF.to_string(), any)]);
    Ok(GetModelMetadataResponse { model_spec: Some(answered(asked, &loaded, "")), metadata })
}
