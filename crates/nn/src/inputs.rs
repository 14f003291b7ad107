//! `Inputs`: the features or labels of a batch in a graph, by name. Model functions and feature
//! columns read them from here.

use std::panic::Location;

use estimand_graph::{Graph, Parsed, RaggedTensor, Tensor};
use estimand_tensor::{BatchSpec, Dim, Error, FeatureSpec, Result, Shape};
use indexmap::IndexMap;

/// A feature or label in the graph.
#[derive(Clone, Debug)]
pub enum Input {
    /// Every row has the same number of values.
    Dense(Tensor),
    /// Rows differ in length.
    Ragged(RaggedTensor),
}

impl From<Tensor> for Input {
    fn from(tensor: Tensor) -> Input {
        Input::Dense(tensor)
    }
}

impl From<RaggedTensor> for Input {
    fn from(ragged: RaggedTensor) -> Input {
        Input::Ragged(ragged)
    }
}

impl From<Parsed> for Input {
    fn from(parsed: Parsed) -> Input {
        match parsed {
            Parsed::Dense(tensor) => Input::Dense(tensor),
            Parsed::Ragged(ragged) => Input::Ragged(ragged),
        }
    }
}

/// Features or labels by name.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::Inputs;
/// use estimand_tensor::{BatchSpec, DType, FeatureSpec};
///
/// let spec = BatchSpec::from([("age".to_string(), FeatureSpec::dense(DType::F32, [1]))]);
/// let graph = Graph::new();
/// let features = Inputs::new(&graph, "feature", &spec);
/// assert_eq!(features.dense("age").dtype(), DType::F32);
/// features.dense("aje");
/// assert!(graph.check().unwrap_err().to_string().contains("did you mean `age`?"));
/// ```
#[derive(Clone, Debug)]
pub struct Inputs {
    graph: Graph,
    what: &'static str,
    inputs: IndexMap<String, Input>,
}

impl Inputs {
    /// Creates a placeholder for each entry of a spec, in the open scope. Error messages use `what`
    /// as the noun for one entry.
    #[track_caller]
    pub fn new(graph: &Graph, what: &'static str, spec: &BatchSpec) -> Inputs {
        let _line = graph.line(Location::caller(), file!());
        let place = |(name, spec): (&String, &FeatureSpec)| {
            let shown = if name.is_empty() { what } else { name };
            let input = match spec {
                FeatureSpec::Dense { dtype, dims, .. } | FeatureSpec::Padded { dtype, dims, .. } => {
                    let dims = dims.iter().map(|&n| Dim::from(n));
                    let padded = matches!(spec, FeatureSpec::Padded { .. }).then_some(Graph::ANY);
                    let shape: Shape = std::iter::once(Dim::BATCH).chain(padded).chain(dims).collect();
                    Input::Dense(graph.placeholder(shown, *dtype, shape))
                }
                FeatureSpec::Ragged { dtype } => Input::Ragged(graph.ragged_placeholder(shown, *dtype)),
            };
            match &input {
                Input::Dense(tensor) => graph.name_input(tensor, what, name),
                Input::Ragged(rows) => {
                    graph.name_input(&rows.values, what, name);
                    graph.name_input(&rows.row_splits, what, name);
                }
            }
            (name.clone(), input)
        };
        Inputs { graph: graph.clone(), what, inputs: spec.iter().map(place).collect() }
    }

    /// Wraps existing tensors, such as those of parsed examples.
    pub fn of<I: Into<Input>>(
        graph: &Graph,
        what: &'static str,
        inputs: impl IntoIterator<Item = (String, I)>,
    ) -> Inputs {
        let inputs = inputs.into_iter().map(|(name, input)| (name, input.into())).collect();
        Inputs { graph: graph.clone(), what, inputs }
    }

    /// The graph that the tensors belong to.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inputs.keys().map(String::as_str)
    }

    /// All names and tensors, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Input)> {
        self.inputs.iter().map(|(name, input)| (name.as_str(), input))
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The entry with this name, if it exists.
    pub fn get(&self, name: &str) -> Option<&Input> {
        self.inputs.get(name)
    }

    /// The entry with this name, or an error that lists the existing names.
    pub fn find(&self, name: &str) -> Result<&Input> {
        self.inputs.get(name).ok_or_else(|| self.unknown(name))
    }

    /// The dense entry with this name.
    #[track_caller]
    pub fn dense(&self, name: &str) -> Tensor {
        match self.inputs.get(name) {
            Some(Input::Dense(tensor)) => tensor.clone(),
            Some(Input::Ragged(_)) => {
                let error = Error::shape(format!("{} `{name}` has rows of different length", self.what));
                self.graph.error(error.help("read it with .ragged(..)"))
            }
            None => self.graph.error(self.unknown(name)),
        }
    }

    /// The ragged entry with this name.
    #[track_caller]
    pub fn ragged(&self, name: &str) -> RaggedTensor {
        match self.inputs.get(name) {
            Some(Input::Ragged(ragged)) => ragged.clone(),
            Some(Input::Dense(dense)) => RaggedTensor::from_dense(dense),
            None => {
                let poison = self.graph.error(self.unknown(name));
                RaggedTensor { values: poison.clone(), row_splits: poison }
            }
        }
    }

    /// The only entry, whatever its name.
    #[track_caller]
    pub fn single(&self) -> Tensor {
        match self.inputs.len() {
            1 => self.dense(self.inputs.get_index(0).map_or("", |(name, _)| name)),
            n => {
                let names: Vec<_> = self.names().collect();
                let message = format!("expected exactly one {}, but there are {n}: {}", self.what, names.join(", "));
                self.graph.error(Error::config(message).help("choose one by its name"))
            }
        }
    }

    fn unknown(&self, name: &str) -> Error {
        match self.is_empty() {
            true => Error::config(format!("there is no {} `{name}`", self.what))
                .help(format!("the input has no {}s", self.what)),
            false => Error::unknown(self.what, name, self.names()),
        }
    }
}
