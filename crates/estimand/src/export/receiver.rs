//! Receivers: the inputs of an exported model, and the features that they become.

use std::fmt;
use std::sync::Arc;

use estimand_data::Dataset;
use estimand_graph::{Graph, RaggedTensor, Tensor};
use estimand_nn::column::{Columns, make_parse_example_spec};
use estimand_tensor::{BatchSpec, DType, Dim, Error, FeatureSpec, Result};
use indexmap::IndexMap;

use crate::{Input, Inputs};

/// The name of the input of serialized Examples, as in TensorFlow.
const EXAMPLES: &str = "examples";

/// The inputs of an exported model in its graph: tensors that a caller feeds, and the features that
/// are made of them.
#[derive(Clone, Debug)]
pub struct ServingInputReceiver {
    /// The features that the model function gets, by name.
    pub features: IndexMap<String, Input>,
    /// The tensors that a caller feeds, by the names of the signature.
    pub receiver_tensors: IndexMap<String, Tensor>,
}

/// A function that makes the inputs of an exported model.
type Make = Arc<dyn Fn(&Graph) -> Result<ServingInputReceiver> + Send + Sync>;

/// How an exported model receives its features.
///
/// - [`raw`](Receiver::raw) and [`like`](Receiver::like): `serving_default` and `predict`, over
///   named features.
/// - [`parsing`](Receiver::parsing) and [`columns`](Receiver::columns): the signatures of
///   TensorFlow's Estimator, all outputs of the model over `tf.Example`s.
/// - [`and_examples`](Receiver::and_examples) after one of the first: both kinds.
///   `serving_default` and `predict` take named features, `classification` and `regression` take
///   `tf.Example`s.
/// - [`of`](Receiver::of): a function of one's own; the signatures are those that fit its inputs.
///
/// ```
/// use estimand::export::Receiver;
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-receiver-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").batch(4);
/// let x = numeric_column("x");
/// let model = LinearClassifier::new([x.clone().into()]).model_dir(folder.join("model")).build()?;
/// model.train(data.repeat(100))?;
///
/// let receiver = Receiver::like(&data)?.and_examples([x.into()])?;
/// let export = model.export_saved_model(folder.join("export"), receiver)?;
/// let saved = estimand::graph::saved_model::SavedModel::open(&export)?;
/// let names: Vec<String> = saved.signatures().map(|(name, _)| name.to_string()).collect();
/// assert_eq!(names, ["classification", "predict", "regression", "serving_default"]);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Receiver(pub(super) Vec<Source>);

/// One set of inputs, and the outputs that its signatures have.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) make: Make,
    pub(super) outputs: Outputs,
}

/// The outputs of the model that get a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// All that fit the inputs; `serving_default` is a prediction if the default does not fit.
    Fitting,
    /// Only those over Examples that are not predictions, and none of them as the default.
    OfExamples,
}

impl Receiver {
    /// Named features, one tensor each: `[batch]` for single values.
    ///
    /// A ragged feature is a padded tensor `[batch, n]` in which `""` and -1 (0 for floats) stand
    /// for nothing.
    pub fn raw(features: BatchSpec) -> Receiver {
        Receiver::of(move |graph| raw(graph, &features))
    }

    /// Named features like those of a dataset.
    pub fn like(data: &Dataset) -> Result<Receiver> {
        Ok(Receiver::raw(data.spec()?))
    }

    /// Serialized `tf.Example`s with these features, as TensorFlow's
    /// `build_parsing_serving_input_receiver_fn`.
    pub fn parsing(features: BatchSpec) -> Receiver {
        Receiver::of(move |graph| parsing(graph, &features))
    }

    /// Serialized `tf.Example`s with the features of columns.
    pub fn columns(columns: impl Into<Columns>) -> Result<Receiver> {
        Ok(Receiver::parsing(make_parse_example_spec(columns)?))
    }

    /// Adds signatures over `tf.Example`s with the features of columns, for the outputs that need
    /// them: `classification` and `regression`.
    pub fn and_examples(mut self, columns: impl Into<Columns>) -> Result<Receiver> {
        let features = make_parse_example_spec(columns)?;
        let make: Make = Arc::new(move |graph| parsing(graph, &features));
        self.0.push(Source { make, outputs: Outputs::OfExamples });
        Ok(self)
    }

    /// A function that makes the inputs in a graph.
    pub fn of(make: impl Fn(&Graph) -> Result<ServingInputReceiver> + Send + Sync + 'static) -> Receiver {
        Receiver(vec![Source { make: Arc::new(make), outputs: Outputs::Fitting }])
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver of {} graphs", self.0.len())
    }
}

fn raw(graph: &Graph, spec: &BatchSpec) -> Result<ServingInputReceiver> {
    let (mut features, mut receiver_tensors) = (IndexMap::new(), IndexMap::new());
    for (name, spec) in spec {
        let (tensor, input) = match spec {
            FeatureSpec::Ragged { dtype } => {
                let padded = graph.placeholder(name, *dtype, [Dim::BATCH, Graph::ANY]);
                (padded.clone(), Input::Ragged(RaggedTensor::from_dense(&padded)))
            }
            dense => {
                let only = BatchSpec::from([(name.clone(), dense.clone())]);
                let tensor = Inputs::new(graph, "feature", &only).dense(name);
                (tensor.clone(), Input::Dense(tensor))
            }
        };
        graph.name_input(&tensor, "feature", name);
        features.insert(name.clone(), input);
        receiver_tensors.insert(name.clone(), tensor);
    }
    Ok(ServingInputReceiver { features, receiver_tensors })
}

fn parsing(graph: &Graph, spec: &BatchSpec) -> Result<ServingInputReceiver> {
    let examples = graph.placeholder("input_example_tensor", DType::Str, [Dim::BATCH]);
    let features = examples.parse_example(spec).into_iter().map(|(name, parsed)| (name, parsed.into())).collect();
    Ok(ServingInputReceiver { features, receiver_tensors: IndexMap::from([(EXAMPLES.to_string(), examples)]) })
}

impl ServingInputReceiver {
    /// Returns an error unless a caller can feed the inputs.
    pub(super) fn check(&self, graph: &Graph) -> Result<()> {
        graph.check()?;
        if self.receiver_tensors.is_empty() {
            return Err(Error::config("the receiver has no tensors to feed").help("add them to receiver_tensors"));
        }
        for (name, tensor) in &self.receiver_tensors {
            if !tensor.graph().same(graph) {
                return Err(Error::config(format!("receiver tensor `{name}` belongs to another graph"))
                    .help("build it in the graph that the receiver's function is given"));
            }
        }
        Ok(())
    }

    /// The input of Examples, if that is the only one: a list of strings.
    pub(super) fn examples(&self) -> Option<&Tensor> {
        let (_, only) = self.receiver_tensors.first().filter(|_| self.receiver_tensors.len() == 1)?;
        (only.dtype() == DType::Str && only.rank() == 1).then_some(only)
    }
}
