//! Runs signatures for requests of any protocol, and reads the results of classifiers and
//! regressors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use estimand_tensor::{Array, DType, Strings};

use crate::core::Core;
use crate::json::{Rows, UnknownKeys};
use crate::model::{Loaded, Model, Signature};
use crate::status::{Answer, Code, Status};

/// Requests of up to this many rows are [`run`] where the connection is read, others as [`long`]
/// work.
const SMALL_ROWS: usize = 32;

/// Does what takes time. The runtime moves what waits for this thread to another one, and the
/// streams of an HTTP/2 connection do not wait for each other ([`crate::http`]).
pub(crate) async fn long<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::yield_now().await;
    tokio::task::block_in_place(work)
}

/// The moment after which nobody waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Option<Duration>) -> Deadline {
        let at = limit.and_then(|limit| Instant::now().checked_add(limit));
        Deadline { at, limit: limit.unwrap_or_default() }
    }

    fn late(&self) -> Status {
        Status::late(format!("the request took longer than its time limit of {} ms", self.limit.as_millis()))
    }

    pub(crate) fn check(&self) -> Answer<()> {
        if self.at.is_some_and(|at| at <= Instant::now()) { Err(self.late()) } else { Ok(()) }
    }

    /// Waits for a future, at most until the deadline.
    pub(crate) async fn wait<T>(&self, future: impl Future<Output = T>) -> Answer<T> {
        match self.at {
            Some(at) => tokio::time::timeout_at(at.into(), future).await.map_err(|_| self.late()),
            None => Ok(future.await),
        }
    }
}

/// Runs a signature on a request, alone or joined with others. The outputs are in the order of
/// [`Signature::outputs`].
pub(crate) async fn run(
    model: &Model,
    signature: &Arc<Signature>,
    arrays: Vec<Array>,
    deadline: Deadline,
    api: crate::metrics::Api,
) -> Answer<Vec<Array>> {
    let n_rows = signature.check(&arrays)?;
    let _slot = model.admit()?;
    model.metrics.count_examples(n_rows);
    deadline.check()?;
    let start = Instant::now();
    let outputs = match &signature.queue {
        Some(queue) if queue.takes(n_rows) => {
            let receiver = queue.add(Arc::clone(signature), arrays, n_rows, deadline.at)?;
            let answer = deadline.wait(receiver).await?;
            answer.unwrap_or_else(|_| Err(Status::new(Code::Internal, "the thread that runs batches has ended")))
        }
        _ if n_rows <= SMALL_ROWS => signature.run(&arrays),
        _ => long(|| signature.run(&arrays)).await,
    };
    model.metrics.runtime_latency(api, start.elapsed());
    outputs
}

/// Runs a signature on the values of a request, and counts what the request left out or had too
/// much.
pub(crate) async fn run_rows(
    core: &Core,
    model: &Model,
    signature: &Arc<Signature>,
    rows: Rows,
    deadline: Deadline,
    api: crate::metrics::Api,
) -> Answer<Vec<Array>> {
    let outputs = run(model, signature, rows.arrays, deadline, api).await?;
    signature.count_defaults(&rows.defaulted);
    if !rows.unknown.is_empty() {
        model.metrics.count_unknown_keys(rows.unknown.len());
        if core.settings.unknown_keys == UnknownKeys::Warn {
            model.warn_of(&rows.unknown);
        }
    }
    Ok(outputs)
}

/// What a request of examples wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Classify,
    Regress,
}

impl Method {
    fn api(self) -> crate::metrics::Api {
        match self {
            Method::Classify => crate::metrics::Api::Classify,
            Method::Regress => crate::metrics::Api::Regress,
        }
    }
}

/// The scores of a classifier. Either of both may be missing.
pub(crate) struct Classifications<'a> {
    n_rows: usize,
    n_classes: usize,
    classes: Option<&'a Array>,
    scores: Option<&'a [f32]>,
}

impl Classifications<'_> {
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn n_classes(&self) -> usize {
        self.n_classes
    }

    pub(crate) fn label(&self, row: usize, class: usize) -> &[u8] {
        let strings = self.classes.and_then(|classes| classes.string_slice().ok());
        strings.map_or(b"", |strings| strings.get(row * self.n_classes + class))
    }

    pub(crate) fn score(&self, row: usize, class: usize) -> f32 {
        self.scores.map_or(0.0, |scores| scores[row * self.n_classes + class])
    }
}

/// Outputs of a signature by name.
pub(crate) struct Outputs {
    pub(crate) signature: Arc<Signature>,
    pub(crate) arrays: Vec<Array>,
    n_rows: usize,
}

impl Outputs {
    fn get(&self, name: &str) -> Option<&Array> {
        let at = self.signature.outputs.iter().position(|(known, _)| known == name)?;
        self.arrays.get(at)
    }

    /// The classes and scores of a classifier.
    pub(crate) fn classifications(&self) -> Answer<Classifications<'_>> {
        let check = |name: &str, dtype: DType, type_name: &str| -> Answer<Option<(&Array, usize)>> {
            let Some(array) = self.get(name) else { return Ok(None) };
            let &[n_rows, n_classes] = array.dims() else {
                return Err(Status::invalid(format!(
                    "Expected Tensor shape: [batch_size num_classes] but got {:?}",
                    array.dims()
                )));
            };
            if array.dtype() != dtype {
                return Err(Status::invalid(format!(
                    "Expected {name} Tensor of {type_name}. Got: {}",
                    estimand_wire::DataType::from(array.dtype()).tf_name()
                )));
            }
            if n_rows != self.n_rows {
                return Err(Status::invalid(format!(
                    "Expected {name} output batch size of {}. Got: {n_rows}",
                    self.n_rows
                )));
            }
            Ok(Some((array, n_classes)))
        };
        let classes = check("classes", DType::Str, "DT_STRING")?;
        let scores = check("scores", DType::F32, "DT_FLOAT")?;
        if let (Some((_, a)), Some((_, b))) = (classes, scores)
            && a != b
        {
            return Err(Status::invalid(format!(
                "Tensors class and score should match in dim_size(1). Got {a} vs. {b}"
            )));
        }
        let n_classes = classes.or(scores).map_or(0, |(_, n)| n);
        let scores = scores.map(|(array, _)| array.as_slice()).transpose()?;
        Ok(Classifications { n_rows: self.n_rows, n_classes, classes: classes.map(|(array, _)| array), scores })
    }

    /// The numbers of a regressor.
    pub(crate) fn regressions(&self) -> Answer<&[f32]> {
        let Some(array) = self.get("outputs") else {
            return Err(Status::invalid("No regression outputs found in SignatureDef"));
        };
        let (&[n_rows] | &[n_rows, 1]) = array.dims() else {
            return Err(Status::invalid(format!(
                "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got {:?}",
                array.dims()
            )));
        };
        if n_rows != self.n_rows {
            return Err(Status::invalid(format!(
                "Input batch size did not match output batch size: {} vs. {n_rows}",
                self.n_rows
            )));
        }
        if array.dtype() != DType::F32 {
            return Err(Status::invalid(format!(
                "Expected output Tensor of DT_FLOAT.  Got: {}",
                estimand_wire::DataType::from(array.dtype()).tf_name()
            )));
        }
        Ok(array.as_slice()?)
    }
}

/// The signature for a request of examples, checked as TensorFlow Serving does.
pub(crate) fn example_signature(loaded: &Loaded, name: &str, method: Method) -> Answer<Arc<Signature>> {
    let missing = |name: &str| Status::invalid(format!("No signature was found with the name: {name}"));
    let signature = loaded.signature(name, missing)?;
    let takes = || {
        let given: Vec<String> =
            signature.inputs.iter().map(|input| format!("{} {}", input.name, input.dtype)).collect();
        format!(
            " Signature `{}` takes {}; :classify and :regress need a signature whose only input `inputs` takes \
             serialized tf.Examples. Use :predict, or export the model with Receiver::and_examples.",
            signature.name,
            given.join(", ")
        )
    };
    if signature.inputs.len() != 1 {
        return Err(Status::invalid(format!("Expected one input Tensor.{}", takes())));
    }
    let (n_outputs, expected) = (signature.outputs.len(), if method == Method::Classify { 1..=2 } else { 1..=1 });
    if !expected.contains(&n_outputs) {
        return Err(Status::invalid(match method {
            Method::Classify => format!("Expected one or two output Tensors, found {n_outputs}"),
            Method::Regress => "Expected one output Tensor.".to_string(),
        }));
    }
    let kind = if method == Method::Classify { "classification" } else { "regression" };
    if signature.inputs[0].name != "inputs" || signature.inputs[0].dtype != DType::Str {
        return Err(Status::invalid(format!("No {kind} inputs found in SignatureDef.{}", takes())));
    }
    let has = |name: &str| signature.outputs.iter().any(|(known, _)| known == name);
    match method {
        Method::Classify if !has("classes") && !has("scores") => Err(Status::invalid(
            "Expected classification signature outputs to contain at least one of \"classes\" or \"scores\".",
        )),
        Method::Regress if !has("outputs") => Err(Status::invalid("No regression outputs found in SignatureDef.")),
        Method::Classify | Method::Regress => Ok(signature),
    }
}

/// Runs a signature on serialized examples.
pub(crate) async fn run_examples(
    model: &Model,
    signature: Arc<Signature>,
    examples: Strings,
    deadline: Deadline,
    method: Method,
) -> Answer<Outputs> {
    if examples.is_empty() {
        return Err(Status::invalid("Input is empty."));
    }
    let n_rows = examples.len();
    let arrays = run(model, &signature, vec![Array::from(examples)], deadline, method.api()).await?;
    Ok(Outputs { signature, arrays, n_rows })
}
