//! Receivers of graphs for training and evaluation, which have labels.

use std::fmt;
use std::sync::Arc;

use estimand_data::Dataset;
use estimand_graph::{Graph, Tensor};
use estimand_nn::column::{Columns, make_parse_example_spec};
use estimand_tensor::{Array, BatchSpec, DType, Dim, Error, FeatureSpec, Result};
use indexmap::IndexMap;

use super::super::receiver::{EXAMPLES, ONLY_INPUT, check_fed, parsed, placeholders};
use crate::Input;
use crate::model_fn::Received;

/// TensorFlow's name of the only label of a model whose label has no name.
const ONLY_LABEL: &str = "label";

/// The version of TensorFlow Model Analysis whose loader the inputs are made for.
const ANALYSIS_VERSION: &str = "0.46.0";

/// The inputs of an exported training or evaluation in its graph: tensors that a caller feeds, and
/// the features, labels and weights that are made of them.
#[derive(Clone, Debug, Default)]
pub struct SupervisedInputReceiver {
    /// The features that the model function gets, by name.
    pub features: IndexMap<String, Input>,
    /// The labels that the model function gets, by name.
    pub labels: IndexMap<String, Input>,
    /// The weight of every row, for a model that is trained with weights of the dataset.
    pub weights: Option<Tensor>,
    /// The tensors that a caller feeds, by the names of the signature.
    pub receiver_tensors: IndexMap<String, Tensor>,
}

impl From<SupervisedInputReceiver> for Received {
    fn from(receiver: SupervisedInputReceiver) -> Received {
        let SupervisedInputReceiver { features, labels, weights, .. } = receiver;
        Received { features, labels, weights }
    }
}

/// A function that makes the inputs.
type Make = Arc<dyn Fn(&Graph) -> Result<SupervisedInputReceiver> + Send + Sync>;

/// How an exported training or evaluation receives its features and labels.
#[derive(Clone)]
#[must_use]
pub struct SupervisedReceiver(Source);

#[derive(Clone)]
enum Source {
    /// One tensor for each feature and label.
    Raw(Specs),
    /// Serialized Examples.
    Parsing(Specs),
    Of(Make),
}

/// Features, labels, and the name of the weights.
#[derive(Clone)]
struct Specs {
    features: BatchSpec,
    labels: BatchSpec,
    weights: Option<String>,
    is_for_analysis: bool,
}

impl Specs {
    fn new(features: BatchSpec, labels: BatchSpec) -> Specs {
        Specs { features, labels, weights: None, is_for_analysis: false }
    }
}

impl SupervisedReceiver {
    /// Features and labels by name, one tensor each, as TensorFlow's
    /// `build_raw_supervised_input_receiver_fn`. A feature without a name is fed as `input`, a
    /// label without a name as `label`.
    pub fn raw(features: BatchSpec, labels: BatchSpec) -> SupervisedReceiver {
        SupervisedReceiver(Source::Raw(Specs::new(features, labels)))
    }

    /// Features and labels like those of a dataset, one tensor each.
    pub fn like(data: &Dataset) -> Result<SupervisedReceiver> {
        Ok(SupervisedReceiver::raw(data.spec()?, data.label_spec()?))
    }

    /// Serialized `tf.Example`s with these features and labels.
    pub fn parsing(features: BatchSpec, labels: BatchSpec) -> SupervisedReceiver {
        SupervisedReceiver(Source::Parsing(Specs::new(features, labels)))
    }

    /// Serialized `tf.Example`s with the features of columns, and these labels.
    pub fn columns(columns: impl Into<Columns>, labels: BatchSpec) -> Result<SupervisedReceiver> {
        Ok(SupervisedReceiver::parsing(make_parse_example_spec(columns)?, labels))
    }

    /// A function that makes the inputs in a graph.
    pub fn of(make: impl Fn(&Graph) -> Result<SupervisedInputReceiver> + Send + Sync + 'static) -> SupervisedReceiver {
        SupervisedReceiver(Source::Of(Arc::new(make)))
    }

    /// Adds the weights of rows under a name, one f32 each, for a model that is trained with
    /// [`Dataset::weights`]. The `weight_column` of a head is a feature and does not need it. A
    /// receiver of one's own function returns the weights itself.
    pub fn weights(mut self, name: impl Into<String>) -> Result<SupervisedReceiver> {
        match &mut self.0 {
            Source::Raw(specs) | Source::Parsing(specs) => specs.weights = Some(name.into()),
            Source::Of(_) => {
                return Err(Error::config("the weights of a receiver of one's own function were set by name")
                    .help("return them in SupervisedInputReceiver::weights"));
            }
        }
        Ok(self)
    }

    /// Gives an evaluation over Examples the inputs that the loader of TensorFlow Model Analysis
    /// asks for (`EvalSavedModel`): the Examples as `inputs/examples`, the number of each row as
    /// `input_refs`, and the parsed features and labels. Features with rows of different length are
    /// left out: the metrics of the graph see them, but the analysis cannot slice by them.
    pub fn for_model_analysis(mut self) -> Result<SupervisedReceiver> {
        match &mut self.0 {
            Source::Parsing(specs) => specs.is_for_analysis = true,
            Source::Raw(_) | Source::Of(_) => {
                return Err(Error::config(
                    "TensorFlow Model Analysis feeds Examples, and the receiver does not parse them",
                )
                .help("use SupervisedReceiver::parsing or SupervisedReceiver::columns"));
            }
        }
        Ok(self)
    }

    /// Makes the inputs in a graph and checks them.
    pub(super) fn make(&self, graph: &Graph) -> Result<SupervisedInputReceiver> {
        let made = match &self.0 {
            Source::Raw(specs) => specs.raw(graph)?,
            Source::Parsing(specs) => specs.parsed(graph)?,
            Source::Of(make) => make(graph)?,
        };
        graph.check()?;
        if made.receiver_tensors.is_empty() {
            return Err(Error::config("the receiver has no tensors to feed").help("add them to receiver_tensors"));
        }
        check_fed(graph, made.receiver_tensors.iter())?;
        Ok(made)
    }
}

impl Specs {
    /// The weights as a feature, by name.
    fn weight_spec(&self) -> BatchSpec {
        self.weights.iter().map(|name| (name.clone(), FeatureSpec::dense(DType::F32, []))).collect()
    }

    /// Returns an error if two of the names are equal: a caller could feed only one.
    fn check(&self) -> Result<()> {
        let weights = self.weight_spec();
        let shown = |name: &String, unnamed: &str| if name.is_empty() { unnamed.to_string() } else { name.clone() };
        let features = self.features.keys().map(|name| shown(name, ONLY_INPUT));
        let labels = self.labels.keys().map(|name| shown(name, ONLY_LABEL));
        let mut seen = std::collections::BTreeSet::new();
        match features.chain(labels).chain(weights.keys().cloned()).find(|name| !seen.insert(name.clone())) {
            None => Ok(()),
            Some(name) => Err(Error::config(format!("two of the features, labels and weights are named `{name}`"))
                .help("leave the label out of the features, or rename one of them")),
        }
    }

    fn raw(&self, graph: &Graph) -> Result<SupervisedInputReceiver> {
        self.check()?;
        let (features, mut receiver_tensors) = placeholders(graph, &self.features, "feature", ONLY_INPUT);
        let (labels, more) = placeholders(graph, &self.labels, "label", ONLY_LABEL);
        receiver_tensors.extend(more);
        let (_, weights) = placeholders(graph, &self.weight_spec(), "weights", "weights");
        receiver_tensors.extend(weights.clone());
        let weights = weights.into_values().next();
        Ok(SupervisedInputReceiver { features, labels, weights, receiver_tensors })
    }

    fn parsed(&self, graph: &Graph) -> Result<SupervisedInputReceiver> {
        self.check()?;
        let weights = self.weight_spec();
        let specs = [&self.features, &self.labels, &weights].into_iter().flatten();
        let all: BatchSpec = specs.map(|(name, spec)| (name.clone(), spec.clone())).collect();
        let (mut inputs, examples) = parsed(graph, &all);
        let mut take = |spec: &BatchSpec| -> IndexMap<String, Input> {
            spec.keys().filter_map(|name| Some((name.clone(), inputs.shift_remove(name)?))).collect()
        };
        let (features, labels) = (take(&self.features), take(&self.labels));
        let weights = take(&weights).into_values().find_map(|input| match input {
            Input::Dense(tensor) => Some(tensor),
            Input::Ragged(_) => None,
        });
        let receiver_tensors = match self.is_for_analysis {
            false => IndexMap::from([(EXAMPLES.to_string(), examples)]),
            true => analysed(graph, examples, &features, &labels)?,
        };
        Ok(SupervisedInputReceiver { features, labels, weights, receiver_tensors })
    }
}

/// The inputs of an evaluation for TensorFlow Model Analysis, by its names.
fn analysed(
    graph: &Graph,
    examples: Tensor,
    features: &IndexMap<String, Input>,
    labels: &IndexMap<String, Input>,
) -> Result<IndexMap<String, Tensor>> {
    let version = graph.constant(Array::from_strings([0_usize; 0], [ANALYSIS_VERSION])?);
    let mut fed = IndexMap::from([
        (format!("inputs/{EXAMPLES}"), examples),
        ("input_refs".to_string(), graph.range(Dim::BATCH, DType::I32)),
        ("tfma/version".to_string(), version),
    ]);
    for (prefix, inputs) in [("features", features), ("labels", labels)] {
        for (name, input) in inputs {
            if let Input::Dense(tensor) = input {
                // The only label is a tensor, not a dict of one.
                let is_only = prefix == "labels" && inputs.len() == 1;
                fed.insert(if is_only { prefix.to_string() } else { format!("{prefix}/{name}") }, tensor.clone());
            }
        }
    }
    Ok(fed)
}

impl fmt::Debug for SupervisedReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |spec: &BatchSpec| spec.keys().cloned().collect::<Vec<_>>().join(", ");
        match &self.0 {
            Source::Raw(s) => write!(f, "SupervisedReceiver of {} -> {}", names(&s.features), names(&s.labels)),
            Source::Parsing(s) => {
                write!(f, "SupervisedReceiver of Examples with {} -> {}", names(&s.features), names(&s.labels))
            }
            Source::Of(_) => f.write_str("SupervisedReceiver of a function"),
        }
    }
}
