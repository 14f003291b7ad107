//! Receivers: the inputs of an exported model, and the features that they become.

use std::fmt;
use std::sync::Arc;

use estimand_data::Dataset;
use estimand_graph::{Graph, RaggedTensor, Tensor};
use estimand_nn::column::{Columns, make_parse_example_spec};
use estimand_tensor::{BatchSpec, DType, Dim, Error, FeatureSpec, Result};
use indexmap::IndexMap;

use crate::model_fn::Received;
use crate::{Input, Inputs};

/// The name of the input of serialized Examples, as in TensorFlow.
pub(super) const EXAMPLES: &str = "examples";

/// TensorFlow's name of the only input of a model whose feature has no name.
pub(super) const ONLY_INPUT: &str = "input";

/// The inputs of an exported model in its graph: tensors that a caller feeds, and the features that
/// are made of them.
#[derive(Clone, Debug, Default)]
pub struct ServingInputReceiver {
    /// The features that the model function gets, by name. A model of one tensor without a name
    /// has the feature `""`.
    pub features: IndexMap<String, Input>,
    /// The tensors that a caller feeds, by the names of the signature.
    pub receiver_tensors: IndexMap<String, Tensor>,
    /// Tensors that a caller may feed instead, by the name of the alternative. Each alternative
    /// has its own signatures, named `alternative:signature`.
    pub receiver_tensors_alternatives: IndexMap<String, IndexMap<String, Tensor>>,
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
    /// Only predictions, also as the default: a single feature of strings is no list of Examples.
    OfFeatures,
    /// Only those over Examples that are not predictions, and none of them as the default.
    OfExamples,
}

impl Receiver {
    /// Named features, one tensor each: `[batch]` for single values.
    ///
    /// A ragged feature is a padded tensor `[batch, n]` in which `""` and -1 (0 for floats) stand
    /// for nothing.
    pub fn raw(features: BatchSpec) -> Receiver {
        let make: Make = Arc::new(move |graph| raw(graph, &features));
        Receiver(vec![Source { make, outputs: Outputs::OfFeatures }])
    }

    /// Named features like those of a dataset.
    pub fn like(data: &Dataset) -> Result<Receiver> {
        Ok(Receiver::raw(data.spec()?))
    }

    /// One tensor without a name, which the model function reads with `cx.feature("")` or
    /// `cx.features().single()`. A caller feeds it as `input`.
    ///
    /// It is TensorFlow's `TensorServingInputReceiver`.
    pub fn tensor(feature: FeatureSpec) -> Receiver {
        Receiver::raw(BatchSpec::from([(String::new(), feature)]))
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
    let (features, receiver_tensors) = placeholders(graph, spec, "feature", ONLY_INPUT);
    Ok(ServingInputReceiver::new(features, receiver_tensors))
}

/// Makes one placeholder for each entry of a spec. Returns what the model gets, and what a caller
/// feeds. An entry without a name is fed as `unnamed`.
pub(super) fn placeholders(
    graph: &Graph,
    spec: &BatchSpec,
    what: &'static str,
    unnamed: &str,
) -> (IndexMap<String, Input>, IndexMap<String, Tensor>) {
    let (mut inputs, mut fed) = (IndexMap::new(), IndexMap::new());
    for (name, spec) in spec {
        let shown = if name.is_empty() { unnamed } else { name };
        let (tensor, input) = match spec {
            FeatureSpec::Ragged { dtype } => {
                let padded = graph.placeholder(shown, *dtype, [Dim::BATCH, Graph::ANY]);
                (padded.clone(), Input::Ragged(RaggedTensor::from_dense(&padded)))
            }
            dense => {
                let only = BatchSpec::from([(shown.to_string(), dense.clone())]);
                let tensor = Inputs::new(graph, what, &only).dense(shown);
                (tensor.clone(), Input::Dense(tensor))
            }
        };
        graph.name_input(&tensor, what, name);
        inputs.insert(name.clone(), input);
        fed.insert(shown.to_string(), tensor);
    }
    (inputs, fed)
}

fn parsing(graph: &Graph, spec: &BatchSpec) -> Result<ServingInputReceiver> {
    let (features, examples) = parsed(graph, spec);
    Ok(ServingInputReceiver::new(features, IndexMap::from([(EXAMPLES.to_string(), examples)])))
}

/// Parses Examples. Returns the features, and the tensor that a caller feeds.
pub(super) fn parsed(graph: &Graph, spec: &BatchSpec) -> (IndexMap<String, Input>, Tensor) {
    let examples = graph.placeholder("input_example_tensor", DType::Str, [Dim::BATCH]);
    let features = examples.parse_example(spec).into_iter().map(|(name, parsed)| (name, parsed.into())).collect();
    (features, examples)
}

/// Returns an error unless a caller can feed these tensors.
pub(super) fn check_fed<'a>(graph: &Graph, mut fed: impl Iterator<Item = (&'a String, &'a Tensor)>) -> Result<()> {
    match fed.find(|(_, tensor)| !tensor.graph().same(graph)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::config(format!("receiver tensor `{name}` belongs to another graph"))
            .help("build it in the graph that the receiver's function is given")),
    }
}

/// Returns the input of Examples, if that is the only one: a list of strings.
pub(super) fn only_examples(receiver_tensors: &IndexMap<String, Tensor>) -> Option<&Tensor> {
    let (_, only) = receiver_tensors.first().filter(|_| receiver_tensors.len() == 1)?;
    (only.dtype() == DType::Str && only.rank() == 1).then_some(only)
}

impl From<ServingInputReceiver> for Received {
    fn from(receiver: ServingInputReceiver) -> Received {
        Received { features: receiver.features, ..Received::default() }
    }
}

impl ServingInputReceiver {
    /// Features by name, and the tensors that a caller feeds, by the names of the signature.
    pub fn new<I: Into<Input>>(
        features: impl IntoIterator<Item = (String, I)>,
        receiver_tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> ServingInputReceiver {
        ServingInputReceiver {
            features: features.into_iter().map(|(name, input)| (name, input.into())).collect(),
            receiver_tensors: receiver_tensors.into_iter().collect(),
            receiver_tensors_alternatives: IndexMap::new(),
        }
    }

    /// Adds tensors that a caller may feed instead of the others, such as features in place of the
    /// Examples that they are parsed from. Every output that needs no other input gets a signature
    /// `name:signature`.
    #[must_use]
    pub fn alternative(
        mut self,
        name: impl Into<String>,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> ServingInputReceiver {
        self.receiver_tensors_alternatives.insert(name.into(), tensors.into_iter().collect());
        self
    }

    /// Returns an error unless a caller can feed the inputs.
    pub(super) fn check(&self, graph: &Graph) -> Result<()> {
        graph.check()?;
        if self.receiver_tensors.is_empty() {
            return Err(Error::config("the receiver has no tensors to feed").help("add them to receiver_tensors"));
        }
        for (name, alternative) in &self.receiver_tensors_alternatives {
            if alternative.is_empty() {
                return Err(Error::config(format!("the alternative `{name}` of the receiver has no tensors to feed"))
                    .help("give it tensors, or leave it out"));
            }
        }
        check_fed(graph, self.receiver_tensors.iter().chain(self.receiver_tensors_alternatives.values().flatten()))
    }
}
