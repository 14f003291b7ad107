//! The recipe of a model: its layers and the calls that lead from inputs to outputs, as plain data.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

use estimand_graph::{Graph, Tensor};
use estimand_nn::Layer;
use estimand_nn::config::Dialect;
use estimand_tensor::{DType, Dim, Shape};

use super::input::Input;
use super::operation::Operation;
use super::sharing::Sharing;

/// A model as data: what is replayed into a graph.
#[derive(Clone)]
pub(super) struct Recipe {
    pub name: String,
    pub is_sequential: bool,
    /// The generation of Keras whose rules for masks hold.
    pub dialect: Dialect,
    /// All layers, inputs among them, in Keras' order.
    pub layers: Vec<RecipeLayer>,
    /// The calls, each after the calls that it needs.
    pub calls: Vec<RecipeCall>,
    /// The calls that are inputs of the model, in the user's order.
    pub inputs: Vec<usize>,
    /// The calls that make the outputs, and which of their results.
    pub outputs: Vec<(usize, usize)>,
    /// The number of calls, with those of the models inside.
    pub n_calls: usize,
}

/// The most calls that a model may have, with those of the models inside: each is a part of its
/// graph. A few models inside of each other make billions of them.
pub(super) const MAX_CALLS: usize = 100_000;

#[derive(Clone)]
pub(super) struct RecipeLayer {
    pub name: String,
    pub step: Step,
    /// Whether optimizers change its weights, if the models around it are trained.
    pub trainable: bool,
    /// The user's line that made it.
    pub site: &'static Location<'static>,
    /// Its weights, in all models that use it.
    pub sharing: Arc<Sharing>,
}

#[derive(Clone)]
pub(super) struct RecipeCall {
    pub layer: usize,
    pub inputs: Vec<(usize, usize)>,
    pub arguments: CallArguments,
    pub outputs: Vec<Spec>,
    /// The distance from the outputs of the model.
    pub depth: usize,
}

/// The arguments of a call, without its values.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CallArguments {
    /// Whether to compute as in training; by default what runs the model decides.
    pub(super) training: Option<bool>,
    /// Whether a step attends only to itself and to earlier steps.
    pub(super) use_causal_mask: bool,
}

impl CallArguments {
    /// These arguments and others; those that both have are those of `other`.
    pub(super) fn and(self, other: CallArguments) -> CallArguments {
        CallArguments {
            training: other.training.or(self.training),
            use_causal_mask: self.use_causal_mask || other.use_causal_mask,
        }
    }
}

impl Recipe {
    pub fn kind(&self) -> &'static str {
        if self.is_sequential { "sequential" } else { "model" }
    }

    pub fn class_name(&self) -> &'static str {
        if self.is_sequential { "Sequential" } else { "Functional" }
    }

    pub fn input_names(&self) -> Vec<&str> {
        self.inputs.iter().map(|&call| &*self.layers[self.calls[call].layer].name).collect()
    }

    /// The names of the layers that make the outputs. Keras numbers a name that occurs again, with
    /// the first number that makes it a new one.
    pub fn output_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for &(call, _) in &self.outputs {
            let layer = &*self.layers[self.calls[call].layer].name;
            let mut name = layer.to_string();
            while names.contains(&name) {
                let n = numbers.entry(layer).or_insert(0);
                *n += 1;
                name = format!("{layer}_{n}");
            }
            names.push(name);
        }
        names
    }

    /// The dtypes and shapes of the inputs.
    pub fn input_specs(&self) -> Vec<&Spec> {
        self.inputs.iter().map(|&call| &self.calls[call].outputs[0]).collect()
    }

    pub fn output_specs(&self) -> Vec<&Spec> {
        self.outputs.iter().map(|&(call, output)| &self.calls[call].outputs[output]).collect()
    }

    /// Sets the rules for masks, also of the models inside.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        for layer in &mut self.layers {
            if let Step::Model(inner) = &mut layer.step {
                Arc::make_mut(inner).set_dialect(dialect);
            }
        }
    }

    /// Whether a layer, also of the models inside, may make a mask.
    pub fn may_have_masks(&self) -> bool {
        self.layers.iter().any(|layer| match &layer.step {
            Step::Layer(layer) => matches!(layer.kind(), "embedding" | "masking"),
            Step::Model(inner) => inner.may_have_masks(),
            Step::Input(_) | Step::Operation(_) => false,
        })
    }

    /// Lets all layers be trained, or freezes them.
    pub fn set_trainable(&mut self, trainable: bool) {
        self.layers.iter_mut().for_each(|layer| layer.set_trainable(trainable));
    }

    /// Lets the layer at a path, such as `conv1` or `base/conv1`, be trained, or freezes it. A
    /// model around a layer that is trained is not frozen. Returns false if there is no such layer.
    pub fn set_layer_trainable(&mut self, path: &str, trainable: bool) -> bool {
        if let Some(layer) = self.layers.iter_mut().find(|layer| layer.name == path) {
            layer.set_trainable(trainable);
            return true;
        }
        self.layers.iter_mut().any(|layer| {
            let rest = path.strip_prefix(&*layer.name).and_then(|rest| rest.strip_prefix('/'));
            let (Some(rest), Step::Model(inner)) = (rest, &mut layer.step) else { return false };
            let found = Arc::make_mut(inner).set_layer_trainable(rest, trainable);
            layer.trainable |= found && trainable;
            found
        })
    }

    /// The names of all layers, and of those of models inside as `base/conv1`.
    pub fn paths(&self) -> Vec<String> {
        let mut all = Vec::new();
        for layer in &self.layers {
            all.push(layer.name.clone());
            if let Step::Model(inner) = &layer.step {
                all.extend(inner.paths().into_iter().map(|path| format!("{}/{path}", layer.name)));
            }
        }
        all
    }

    /// Placeholders for the inputs.
    pub fn placeholders(&self, graph: &Graph) -> Vec<Tensor> {
        let names = self.input_names();
        names.iter().zip(self.input_specs()).map(|(name, spec)| placeholder(graph, name, spec)).collect()
    }
}

impl RecipeLayer {
    /// Lets the layer be trained, and all layers of a model inside, or freezes them.
    pub fn set_trainable(&mut self, trainable: bool) {
        self.trainable = trainable;
        if let Step::Model(inner) = &mut self.step {
            Arc::make_mut(inner).set_trainable(trainable);
        }
    }
}

/// What a call computes with.
#[derive(Clone)]
pub(super) enum Step {
    Input(Input),
    Layer(Arc<dyn Layer>),
    Operation(Arc<Operation>),
    Model(Arc<Recipe>),
}

impl Step {
    /// Keras' word for the kind of layer, from which names are made.
    pub fn kind(&self) -> &str {
        match self {
            Step::Input(_) => "input",
            Step::Layer(layer) => layer.kind(),
            Step::Operation(operation) => operation.kind(),
            Step::Model(recipe) => recipe.kind(),
        }
    }

    /// The number of calls that one call is.
    pub fn n_calls(&self) -> usize {
        match self {
            Step::Input(_) | Step::Layer(_) | Step::Operation(_) => 1,
            Step::Model(recipe) => recipe.n_calls,
        }
    }

    /// Whether it is trained where nothing else is said. A model is frozen if all its layers are.
    pub fn trainable(&self) -> bool {
        match self {
            Step::Input(_) | Step::Operation(_) => true,
            Step::Layer(layer) => layer.config().trainable,
            Step::Model(recipe) => {
                let is_layer = |step: &Step| !matches!(step, Step::Input(_) | Step::Operation(_));
                recipe.layers.iter().any(|layer| layer.trainable && is_layer(&layer.step))
            }
        }
    }

    pub fn given_name(&self) -> Option<&str> {
        match self {
            Step::Input(input) => input.name.as_deref(),
            Step::Layer(layer) => layer.config().name.as_deref(),
            Step::Operation(operation) => operation.name.as_deref(),
            Step::Model(recipe) => Some(&recipe.name),
        }
    }

    /// The class in Keras, as `summary` shows it.
    pub fn class_name(&self) -> String {
        match self {
            Step::Input(_) => "InputLayer".to_string(),
            Step::Layer(layer) => {
                let written = layer.to_json().ok();
                let class = written.as_ref().and_then(|json| json["class_name"].as_str());
                class.map_or_else(|| camel_case(layer.kind()), str::to_string)
            }
            Step::Operation(operation) => operation.class().to_string(),
            Step::Model(recipe) => recipe.class_name().to_string(),
        }
    }
}

/// `my_layer` as `MyLayer`.
fn camel_case(kind: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    kind.split('_').filter_map(word).collect()
}

/// The dtype and shape of a symbolic value. Sizes that are not known are the batch or
/// [`Graph::ANY`].
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Spec {
    pub dtype: DType,
    pub shape: Shape,
}

impl Spec {
    /// Symbols belong to one graph, so another graph sees sizes of any value.
    pub fn of(tensor: &Tensor) -> Spec {
        let plain = |dim: &Dim| match dim {
            Dim::Known(_) | &Dim::BATCH => *dim,
            Dim::Sym(_) => Graph::ANY,
        };
        Spec { dtype: tensor.dtype(), shape: tensor.shape().dims().iter().map(plain).collect() }
    }

    pub fn is_known(&self) -> bool {
        self.shape.dims().iter().all(|dim| matches!(dim, Dim::Known(_) | &Dim::BATCH))
    }
}

/// A placeholder for a symbolic value.
pub(super) fn placeholder(graph: &Graph, name: &str, spec: &Spec) -> Tensor {
    graph.placeholder(name, spec.dtype, spec.shape.clone())
}
