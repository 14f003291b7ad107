//! Replays a recipe into a graph: makes the variables of its layers once, and adds the nodes of
//! each call.

use std::ops::RangeInclusive;
use std::sync::Arc;

use estimand_graph::{Graph, Tensor};
use estimand_nn::config::Dialect;
use estimand_nn::layer::{Build, Config, LayerCall};
use estimand_nn::{Layer, LayerInputs, Shared};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::recipe::{CallArguments, Recipe, Step};
use super::sharing::Share;

/// Settings of one replay.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    /// Whether to compute as in training; by default the graph's mode decides.
    pub training: Option<bool>,
    /// Whether optimizers may change the weights.
    pub trainable: bool,
    /// Whether the attention layer that is called looks at earlier steps alone.
    pub use_causal_mask: bool,
    /// The generation of Keras whose rules for masks hold.
    pub dialect: Dialect,
}

impl Flags {
    /// The flags of a whole model.
    pub fn of_model(training: Option<bool>, trainable: bool) -> Flags {
        Flags { training, trainable, use_causal_mask: false, dialect: Dialect::Keras2 }
    }

    /// Those of a call with these arguments.
    pub fn with(self, arguments: CallArguments) -> Flags {
        let CallArguments { training, use_causal_mask } = arguments;
        Flags { training: training.or(self.training), use_causal_mask, ..self }
    }
}

impl Default for Flags {
    fn default() -> Flags {
        Flags::of_model(None, true)
    }
}

/// A value with the mask that it carries: booleans `[batch, time]`, false for steps that do not
/// count.
#[derive(Clone)]
pub(super) struct Masked {
    pub tensor: Tensor,
    pub mask: Option<Tensor>,
}

impl From<&Tensor> for Masked {
    fn from(tensor: &Tensor) -> Masked {
        Masked { tensor: tensor.clone(), mask: None }
    }
}

/// A recipe in a graph: which of its layers are built, with their variables.
pub(super) struct Replay<'a> {
    recipe: &'a Recipe,
    built: Vec<Option<Built>>,
}

/// A layer that has its variables.
pub(super) enum Built {
    Layer { shared: Shared, variables: Vec<String> },
    Model(Vec<Option<Built>>),
}

impl Built {
    /// The names of the variables, in Keras' order.
    fn variables(&self, names: &mut Vec<String>) {
        match self {
            Built::Layer { variables, .. } => names.extend(variables.iter().cloned()),
            Built::Model(built) => built.iter().flatten().for_each(|built| built.variables(names)),
        }
    }
}

impl<'a> Replay<'a> {
    pub fn new(recipe: &'a Recipe) -> Replay<'a> {
        Replay { recipe, built: recipe.layers.iter().map(|_| None).collect() }
    }

    /// Adds the nodes of all calls. Mistakes are kept by the graph.
    pub fn call(&mut self, graph: &Graph, inputs: &[Tensor], flags: Flags) -> Vec<Tensor> {
        self.call_masked(graph, inputs, flags).into_iter().map(|output| output.tensor).collect()
    }

    /// As `call`, with the masks that the outputs carry.
    pub fn call_masked(&mut self, graph: &Graph, inputs: &[Tensor], flags: Flags) -> Vec<Masked> {
        let inputs: Vec<Masked> = inputs.iter().map(Masked::from).collect();
        replay(self.recipe, &mut self.built, graph, &inputs, flags)
    }

    /// Adds the nodes of one layer, by its name.
    pub fn call_layer(&mut self, name: &str, graph: &Graph, inputs: &[Tensor], flags: Flags) -> Result<Vec<Tensor>> {
        let at = self.find(name)?;
        let layer = &self.recipe.layers[at];
        let trainable = flags.trainable && layer.trainable;
        let flags = Flags { trainable, dialect: self.recipe.dialect, ..flags };
        let inputs: Vec<Masked> = inputs.iter().map(Masked::from).collect();
        let made = apply(&layer.step, &mut self.built[at], &layer.name, graph, &inputs, flags);
        Ok(made.into_iter().map(|output| output.tensor).collect())
    }

    /// The variables of one layer, so far.
    pub fn variables_of(&self, name: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.built[self.find(name)?].iter().for_each(|built| built.variables(&mut names));
        Ok(names)
    }

    /// The layers that have weights, those of inner models among them.
    pub fn shares(&self) -> Vec<Share> {
        let mut found = Vec::new();
        shares(self.recipe, &self.built, &mut found);
        found
    }

    fn find(&self, name: &str) -> Result<usize> {
        let names = || self.recipe.layers.iter().map(|layer| layer.name.as_str());
        let what = format!("layer of model `{}`", self.recipe.name);
        names().position(|known| known == name).ok_or_else(|| Error::unknown(&what, name, names()))
    }

    /// The variables of each layer, in the order of the layers.
    pub fn variables(&self) -> Vec<Vec<String>> {
        let of = |built: &Option<Built>| {
            let mut names = Vec::new();
            built.iter().for_each(|built| built.variables(&mut names));
            names
        };
        self.built.iter().map(of).collect()
    }
}

fn shares(recipe: &Recipe, built: &[Option<Built>], found: &mut Vec<Share>) {
    for (layer, built) in recipe.layers.iter().zip(built) {
        match (&layer.step, built) {
            (_, Some(Built::Layer { variables, .. })) if !variables.is_empty() => {
                found.push(Share::new(&layer.sharing, &layer.name, variables));
            }
            (Step::Model(inner), Some(Built::Model(built))) => shares(inner, built, found),
            _ => {}
        }
    }
}

fn replay(recipe: &Recipe, built: &mut [Option<Built>], graph: &Graph, inputs: &[Masked], flags: Flags) -> Vec<Masked> {
    let mut results: Vec<Vec<Masked>> = Vec::with_capacity(recipe.calls.len());
    for (i, call) in recipe.calls.iter().enumerate() {
        let layer = &recipe.layers[call.layer];
        if let Some(place) = recipe.inputs.iter().position(|&input| input == i) {
            results.push(vec![inputs[place].clone()]);
            continue;
        }
        let given: Vec<Masked> = call.inputs.iter().map(|&(call, output)| results[call][output].clone()).collect();
        let trainable = flags.trainable && layer.trainable;
        let flags = Flags { trainable, dialect: recipe.dialect, ..flags }.with(call.arguments);
        let _line = graph.line(layer.site, file!());
        let mut made = apply(&layer.step, &mut built[call.layer], &layer.name, graph, &given, flags);
        // A mistake leaves fewer results; the graph keeps it.
        while let (true, Some(last)) = (made.len() < call.outputs.len(), made.last().cloned()) {
            made.push(last);
        }
        results.push(made);
    }
    recipe.outputs.iter().map(|&(call, output)| results[call][output].clone()).collect()
}

/// Applies one layer to tensors. The first call makes its variables.
pub(super) fn apply(
    step: &Step,
    built: &mut Option<Built>,
    name: &str,
    graph: &Graph,
    inputs: &[Masked],
    flags: Flags,
) -> Vec<Masked> {
    match step {
        Step::Input(_) => vec![Masked::from(&graph.error(Error::internal("an Input was called as a layer")))],
        Step::Operation(operation) => {
            let values: Vec<Tensor> = inputs.iter().map(|input| input.tensor.clone()).collect();
            let _scope = graph.scope(name);
            vec![Masked::from(&operation.apply(graph, &values))]
        }
        Step::Layer(layer) => {
            let before = graph.body().variables().len();
            let is_new = built.is_none();
            let built = built.get_or_insert_with(|| {
                let config = Config { name: Some(name.to_string()), trainable: flags.trainable };
                Built::Layer { shared: Shared::new(Renamed { layer: layer.clone(), config }), variables: Vec::new() }
            });
            let Built::Layer { shared, variables } = built else { return Vec::new() };
            let mut tensors: Vec<Tensor> = inputs.iter().map(|input| input.tensor.clone()).collect();
            let states = tensors.split_off(n_values(&**layer, tensors.len()));
            let masks = inputs.iter().take(tensors.len()).map(|input| input.mask.clone()).collect();
            let mut given = LayerInputs::of(&tensors).carried_masks(masks).rules_of(flags.dialect);
            if !states.is_empty() {
                given = given.initial_state(&states);
            }
            if let Some(training) = flags.training {
                given = given.training(training);
            }
            if flags.use_causal_mask {
                given = given.use_causal_mask(true);
            }
            let results = shared.apply_all(&given);
            if is_new {
                let body = graph.body();
                variables.extend(body.variables().iter().skip(before).map(|(_, spec)| spec.name.clone()));
            }
            let mut mask = match results.first() {
                Some(result) if !result.is_poisoned() => layer.compute_mask(&given),
                _ => None,
            };
            // States, the further results, have no mask.
            results.into_iter().map(|tensor| Masked { tensor, mask: mask.take() }).collect()
        }
        Step::Model(recipe) => {
            if inputs.len() != recipe.inputs.len() {
                let (n, wanted) = (inputs.len(), recipe.inputs.len());
                let text =
                    format!("model `{name}` got {n} values; expected {wanted}: {}", recipe.input_names().join(", "));
                return vec![Masked::from(&graph.error(Error::config(text)))];
            }
            if flags.use_causal_mask {
                let text = format!("model `{name}` got `use_causal_mask`, which it does not take");
                let error = Error::config(text).help("give it to the attention layers inside");
                return vec![Masked::from(&graph.error(error))];
            }
            let tensors: Vec<Tensor> = inputs.iter().map(|input| input.tensor.clone()).collect();
            if let Err(error) = fits(recipe, name, &tensors) {
                return vec![Masked::from(&graph.error(error))];
            }
            let new = || Built::Model(recipe.layers.iter().map(|_| None).collect());
            let Built::Model(layers) = built.get_or_insert_with(new) else { return Vec::new() };
            let _scope = graph.reopen(name);
            replay(recipe, layers, graph, inputs, flags)
        }
    }
}

/// The number of a call's values that are no states. TF: what follows the value of a layer that
/// takes initial states are its states, as in `LSTM(4)([x, h, c])`.
pub(super) fn n_values(layer: &dyn Layer, n: usize) -> usize {
    if layer.named_inputs().contains(&"initial_state") { n.min(1) } else { n }
}

/// Checks that tensors have the dtypes and shapes of a model's inputs.
pub(super) fn fits(recipe: &Recipe, name: &str, inputs: &[Tensor]) -> Result<()> {
    for ((tensor, spec), input) in inputs.iter().zip(recipe.input_specs()).zip(recipe.input_names()) {
        let (given, wanted) = (tensor.shape().dims(), spec.shape.dims());
        let differs = |(a, b): (&Dim, &Dim)| a.known().is_some() && b.known().is_some() && a != b;
        if tensor.is_poisoned() {
            continue;
        }
        if given.len() != wanted.len() || given.iter().zip(wanted).any(differs) || tensor.dtype() != spec.dtype {
            let text = format!(
                "input `{input}` of model `{name}` got {}{}; expected {}{}",
                tensor.dtype(),
                shown(tensor.shape()),
                spec.dtype,
                shown(&spec.shape)
            );
            return Err(Error::shape(text));
        }
    }
    Ok(())
}

/// A shape for messages: `[batch, any, 4]`.
pub(super) fn shown(shape: &Shape) -> String {
    let dim = |dim: &Dim| match *dim {
        Graph::ANY => "any".to_string(),
        dim => dim.to_string(),
    };
    format!("[{}]", shape.dims().iter().map(dim).collect::<Vec<_>>().join(", "))
}

/// A layer under the name and with the flags that its model gives it.
#[derive(Debug)]
struct Renamed {
    layer: Arc<dyn Layer>,
    config: Config,
}

impl Layer for Renamed {
    fn kind(&self) -> &'static str {
        self.layer.kind()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn build(&self, build: &mut Build<'_>) {
        self.layer.build(build);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.layer.call(call)
    }

    fn call_all(&self, call: &LayerCall<'_>) -> Vec<Tensor> {
        self.layer.call_all(call)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        self.layer.n_inputs()
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        self.layer.named_inputs()
    }
}
