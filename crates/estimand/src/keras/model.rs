//! `Model`: a recipe of layers together with the current values of its weights.
//!
//! Training, evaluation and prediction each have their own graph, replayed from the recipe
//! (`programs`). They share one state (`state`), which holds weights by name. Models of the same
//! layers share the weights of these layers (`sharing`).

use std::fmt;
use std::sync::Arc;

use estimand_data::Position;
use estimand_graph::{Graph, Role, Tensor, Variables};
use estimand_nn::layer::AsInputs;
use estimand_tensor::{Array, DType, Error, Mode, Result, Shape};
use indexmap::{IndexMap, IndexSet};

use super::compile::Settings;
use super::programs::Programs;
use super::recipe::{CallArguments, Recipe, RecipeLayer, Step};
use super::replay::{Flags, Replay, fits};
use super::sharing::Share;
use super::slots::Slots;
use super::state::Weights;
use super::symbol::{KerasTensor, LayerId, SharedLayer, Symbols};
use super::train_step::StepFn;
use crate::RunConfig;

/// A model of layers with its weights, as in Keras: [`compile`](Model::compile) it, then
/// [`fit`](Model::fit), [`evaluate`](Model::evaluate) and [`predict`](Model::predict).
///
/// [`Sequential`](super::Sequential) makes one of a list of layers, [`Model::new`] one of symbolic
/// values with any number of inputs and outputs.
///
/// As in Keras, models that are made of the same layers have the same weights: symbolic values and
/// [`SharedLayer`]s may be used in several models, and so may a model, by reference.
pub struct Model {
    pub(super) recipe: Recipe,
    /// What the model is as a layer of other models.
    id: LayerId,
    pub(super) trainable: bool,
    /// The variables of each layer of the recipe, in Keras' order of weights.
    variables: Vec<Vec<String>>,
    specs: IndexMap<String, WeightSpec>,
    pub(super) weights: Weights,
    pub(super) settings: Option<Settings>,
    pub(super) programs: Programs,
    pub(super) stop_training: bool,
    /// The learning rate, unless it is a schedule, and the variable that holds it in the state.
    pub(super) rate: Option<f32>,
    pub(super) rate_variable: Option<String>,
    /// Where the training is in its data, and where a restored one goes on.
    pub(super) place: Option<Place>,
    pub(super) resume: Option<Resume>,
    pub(super) train_step: Option<StepFn>,
    pub(super) slots: Slots,
    /// Why the file of the model did not compile it.
    pub(super) not_compiled: Option<String>,
}

/// A position in a stream of batches, which was opened for an epoch.
#[derive(Clone, Default, Debug)]
pub(super) struct Place {
    pub epoch: usize,
    pub position: Position,
}

/// Where a training goes on.
#[derive(Default, Debug)]
pub(super) struct Resume {
    pub epoch: usize,
    pub batch: usize,
    pub place: Option<Place>,
}

/// What is known of a weight without its value.
#[derive(Clone, Debug)]
pub(super) struct WeightSpec {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub bytes: usize,
    pub trainable: bool,
}

impl WeightSpec {
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }
}

impl Model {
    /// Makes a model of the layers between these symbolic values. Its name is `model`.
    pub fn new(inputs: &dyn Symbols, outputs: &dyn Symbols) -> Result<Model> {
        Model::named("model", inputs, outputs)
    }

    /// Makes a model with this name.
    pub fn named(name: &str, inputs: &dyn Symbols, outputs: &dyn Symbols) -> Result<Model> {
        if [inputs, outputs].iter().any(|values| values.arguments() != CallArguments::default()) {
            let text = format!("model `{name}` got arguments of a call with its inputs or outputs");
            return Err(
                Error::config(text).help("give them to the layer: layer.on(&CallInputs::of(&x).training(false))")
            );
        }
        let (inputs, outputs): (Vec<KerasTensor>, Vec<KerasTensor>) = (inputs.symbols(), outputs.symbols());
        Model::of(Recipe::new(name, &inputs, &outputs)?)
    }

    pub(super) fn of(recipe: Recipe) -> Result<Model> {
        let mut model = Model {
            recipe,
            id: LayerId::new(),
            trainable: true,
            variables: Vec::new(),
            specs: IndexMap::new(),
            weights: Weights::new(RunConfig::new().executor()),
            settings: None,
            programs: Programs::default(),
            stop_training: false,
            rate: None,
            rate_variable: None,
            place: None,
            resume: None,
            train_step: None,
            slots: Slots::default(),
            not_compiled: None,
        };
        let shares = model.describe_weights()?;
        if let Some((one, other)) = Share::find_twice(&shares) {
            let text = format!("model `{}` has a layer twice: its weights are `{one}` and `{other}`", model.name());
            return Err(Error::config(text).help("use a layer by itself or inside of a model, not both in one model"));
        }
        model.weights.share(shares);
        model.place(0)?;
        Ok(model)
    }

    /// Makes the weights anew from a seed; by default it is 0. Layers of models that were made
    /// before keep theirs. The seed also decides the random numbers of training, such as the order
    /// of rows and the units that are dropped.
    #[must_use = "the model with the new weights is returned"]
    pub fn seed(mut self, seed: u64) -> Result<Model> {
        self.place(seed)?;
        Ok(self)
    }

    /// Finds the variables of all layers in a graph of their own.
    fn describe_weights(&mut self) -> Result<Vec<Share>> {
        let graph = Graph::with_mode(Mode::Train);
        let mut replay = Replay::new(&self.recipe);
        let places = self.recipe.placeholders(&graph);
        replay.call(&graph, &places, Flags::of_model(None, self.trainable));
        graph.check()?;
        self.variables = replay.variables();
        let spec = |spec: &estimand_graph::VarSpec| WeightSpec {
            dtype: spec.dtype,
            dims: spec.dims.to_vec(),
            bytes: spec.dims.iter().product::<usize>() * spec.dtype.size(),
            trainable: spec.role == Role::Model { trainable: true },
        };
        let body = graph.body();
        self.specs = body.variables().iter().map(|(_, var)| (var.name.clone(), spec(var))).collect();
        let mut total = Some(0usize);
        for spec in self.specs.values() {
            total = total.and_then(|total| total.checked_add(spec.bytes)).filter(|&total| total < isize::MAX as usize);
        }
        match total {
            Some(_) => Ok(replay.shares()),
            None => Err(Error::shape(format!("the weights of model `{}` do not fit into memory", self.name()))
                .help("check the sizes of its layers")),
        }
    }

    /// Gives all weights their initial values, and those of other models the values they have. They
    /// are computed when somebody asks for one.
    fn place(&mut self, seed: u64) -> Result<()> {
        let variables = self.fresh_variables()?;
        (self.weights.seed, self.weights.step) = (seed, 0);
        self.weights.begin(variables)?;
        self.forget_programs();
        Ok(())
    }

    /// Drops all values but those of the model's own weights.
    pub(super) fn keep_weights_only(&mut self) -> Result<()> {
        let (variables, values) = (self.fresh_variables()?, self.get_weights()?);
        let names: Vec<String> = self.weight_names().map(str::to_string).collect();
        self.weights.replace(variables);
        self.weights.write_all(names.iter().map(String::as_str).zip(&values))?;
        self.forget_programs();
        Ok(())
    }

    /// Drops programs and what was known of their variables.
    fn forget_programs(&mut self) {
        self.programs = Programs::default();
        self.weights.names.clear();
        self.weights.pending.clear();
        self.rate_variable = None;
        self.forget_slots();
    }

    fn fresh_variables(&self) -> Result<Variables> {
        let graph = Graph::with_mode(Mode::Train);
        let places = self.recipe.placeholders(&graph);
        Replay::new(&self.recipe).call(&graph, &places, Flags::default());
        graph.check()?;
        let variables = graph.body().variables().clone();
        Ok(variables)
    }

    /// The model's name: `sequential` or `model`, unless it was given.
    pub fn name(&self) -> &str {
        &self.recipe.name
    }

    /// The names of the inputs, in order.
    pub fn input_names(&self) -> Vec<&str> {
        self.recipe.input_names()
    }

    /// The names of the outputs, in order: those of the layers that make them.
    pub fn output_names(&self) -> Vec<String> {
        self.recipe.output_names()
    }

    /// The shapes of the inputs.
    pub fn input_shapes(&self) -> Vec<&Shape> {
        self.recipe.input_specs().into_iter().map(|spec| &spec.shape).collect()
    }

    /// The dtypes of the inputs.
    pub fn input_dtypes(&self) -> Vec<DType> {
        self.recipe.input_specs().into_iter().map(|spec| spec.dtype).collect()
    }

    /// The shapes of the outputs.
    pub fn output_shapes(&self) -> Vec<&Shape> {
        self.recipe.output_specs().into_iter().map(|spec| &spec.shape).collect()
    }

    /// The layers, in Keras' order. The inputs of a `Sequential` are not among them.
    pub fn layers(&self) -> Vec<ModelLayer<'_>> {
        let all = self.recipe.layers.iter().zip(&self.variables);
        let shown = all.filter(|(layer, _)| !(self.recipe.is_sequential && matches!(layer.step, Step::Input(_))));
        shown.map(|(layer, variables)| ModelLayer { model: self, layer, variables }).collect()
    }

    /// The layer with this name. For an unknown name, the error suggests the nearest one.
    pub fn get_layer(&self, name: &str) -> Result<ModelLayer<'_>> {
        let layers = self.layers();
        let found = layers.into_iter().find(|layer| layer.name() == name);
        found.ok_or_else(|| self.unknown_layer(name))
    }

    fn unknown_layer(&self, name: &str) -> Error {
        let what = format!("layer of model `{}`", self.name());
        Error::unknown(&what, name, self.recipe.layers.iter().map(|layer| layer.name.as_str()))
    }

    /// The number of weights, trained or not.
    pub fn count_params(&self) -> usize {
        self.weight_names().map(|name| self.specs[name].len()).sum()
    }

    /// The names of all weights, in the order of [`get_weights`](Model::get_weights).
    pub fn weight_names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().flatten().map(String::as_str)
    }

    /// The number of weights of each layer of the recipe.
    pub(super) fn recipe_counts(&self) -> Vec<usize> {
        self.variables.iter().map(Vec::len).collect()
    }

    pub(super) fn spec_of(&self, weight: &str) -> &WeightSpec {
        &self.specs[weight]
    }

    /// The values of all weights: by layer, trained or not, in Keras' order.
    pub fn get_weights(&self) -> Result<Vec<Array>> {
        self.weights.read_all(self.weight_names())
    }

    /// The value of one weight.
    #[cfg(feature = "keras_files")]
    pub(super) fn weight(&self, name: &str) -> Result<Array> {
        self.weights.read(name)
    }

    /// Sets all weights, in the order of [`get_weights`](Model::get_weights). Nothing changes
    /// unless all fit.
    pub fn set_weights(&mut self, values: &[Array]) -> Result<()> {
        let names: Vec<String> = self.weight_names().map(str::to_string).collect();
        set(&mut self.weights, &names, &self.specs, values, &format!("model `{}`", self.recipe.name))
    }

    /// Sets some weights by name.
    #[cfg(feature = "keras_files")]
    pub(super) fn set_named(&mut self, values: &[(String, Array)]) -> Result<()> {
        let (names, values): (Vec<String>, Vec<Array>) = values.iter().cloned().unzip();
        set(&mut self.weights, &names, &self.specs, &values, &format!("model `{}`", self.recipe.name))
    }

    /// Sets the weights of one layer.
    pub fn set_layer_weights(&mut self, layer: &str, values: &[Array]) -> Result<()> {
        let names = self.get_layer(layer)?.variables.to_vec();
        set(&mut self.weights, &names, &self.specs, values, &format!("layer `{layer}`"))
    }

    /// Lets optimizers change the weights of a layer, or keeps them from it. By default they
    /// change all weights. A frozen `BatchNorm` runs as in inference, as in Keras.
    ///
    /// For a model inside, this sets all of its layers, as in Keras; `"base/conv1"` is one of them.
    /// Unlike in Keras, a layer that is let free is trained even if the model around it was frozen;
    /// and this counts from the next step on, without another `compile`.
    ///
    /// ```
    /// use estimand::keras::{Input, Model, Sequential};
    /// use estimand::prelude::*;
    ///
    /// let base = Sequential::new().name("base").input([4]);
    /// let base = base.add(Dense::new(3).name("first")).add(Dense::new(2).name("last")).build()?;
    /// let mut model = Sequential::new().input([4]).add_model(&base).add(Dense::new(1)).build()?;
    /// model.set_layer_trainable("base", false)?;
    /// model.set_layer_trainable("base/last", true)?;
    /// # let trained: Vec<_> = model.trainable_weights().collect();
    /// # assert_eq!(trained, ["base/last/kernel", "base/last/bias", "dense/kernel", "dense/bias"]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_layer_trainable(&mut self, layer: &str, trainable: bool) -> Result<()> {
        if !self.recipe.set_layer_trainable(layer, trainable) {
            let names = self.recipe.paths();
            let what = format!("layer of model `{}`", self.name());
            return Err(Error::unknown(&what, layer, names.iter().map(String::as_str)));
        }
        self.trainable |= trainable;
        self.programs = Programs::default();
        self.describe_weights().map(|_| ())
    }

    /// Lets optimizers change the weights of the whole model, or keeps them from it. As in Keras,
    /// this sets all layers: those that were frozen one by one are trained, too.
    pub fn set_trainable(&mut self, trainable: bool) -> Result<()> {
        self.trainable = trainable;
        self.recipe.set_trainable(trainable);
        self.programs = Programs::default();
        self.describe_weights().map(|_| ())
    }

    /// The names of the weights that optimizers change.
    pub fn trainable_weights(&self) -> impl Iterator<Item = &str> {
        self.weight_names().filter(|name| self.spec_of(name).trainable)
    }

    /// Adds the model to the graph of these tensors and returns its outputs, for example in a
    /// model function. The graph makes new variables, which start with their initializers.
    ///
    /// The graph's mode decides whether this is training, unless the
    /// [`LayerInputs`](estimand_nn::LayerInputs) do.
    #[track_caller]
    pub fn call(&self, inputs: &dyn AsInputs) -> Result<Vec<Tensor>> {
        let inputs = inputs.as_inputs();
        let (tensors, training) = (inputs.tensors(), inputs.training_flag());
        let n = self.recipe.inputs.len();
        let Some(first) = tensors.first().filter(|_| tensors.len() == n) else {
            let text = format!("model `{}` got {} tensors; expected {n}", self.name(), tensors.len());
            return Err(Error::config(text).help(format!("pass one for each of {}", self.input_names().join(", "))));
        };
        fits(&self.recipe, self.name(), tensors)?;
        let graph = first.graph();
        let _line = graph.line(std::panic::Location::caller(), file!());
        let outputs = Replay::new(&self.recipe).call(graph, tensors, Flags::of_model(training, self.trainable));
        graph.check()?;
        Ok(outputs)
    }

    /// Makes a layer of the model, which may be applied several times inside other models. As in
    /// Keras, all of them have the weights of this model: if one trains them, they change in all.
    ///
    /// Whether weights are trained is decided by each model for itself. The layer has the flags
    /// that the model has now; see [`set_layer_trainable`](Model::set_layer_trainable).
    #[track_caller]
    pub fn shared(&self) -> SharedLayer {
        self.shared_at(std::panic::Location::caller())
    }

    /// As `shared`, made at this line.
    pub(super) fn shared_at(&self, site: &'static std::panic::Location<'static>) -> SharedLayer {
        let mut recipe = self.recipe.clone();
        if !self.trainable {
            recipe.set_trainable(false);
        }
        self.id.layer(Step::Model(Arc::new(recipe)), site)
    }

    /// Applies the model to symbolic values, as a layer of another model. It must have one output.
    #[track_caller]
    pub fn on(&self, inputs: &dyn Symbols) -> KerasTensor {
        self.shared().on(inputs)
    }

    /// The table that Keras prints: layers, shapes, numbers of weights.
    pub fn summary(&self) -> String {
        super::summary::table(self)
    }

    /// The number of training steps done.
    pub fn n_steps(&self) -> u64 {
        self.weights.step
    }

    /// The names of all variables: weights, then what optimizers keep.
    pub(super) fn state_names(&self) -> IndexSet<&str> {
        self.weight_names().chain(self.weights.names.iter().map(String::as_str)).collect()
    }

    pub(super) fn check_compiled(&self) -> Result<&Settings> {
        self.settings.as_ref().ok_or_else(|| {
            let text = format!("model `{}` has not been compiled", self.name());
            let why = self.not_compiled.iter();
            why.fold(Error::config(text), |error, why| error.context(format!("its file could not compile it: {why}")))
                .help("call model.compile(Compile::new(optimizer, loss)) before training or evaluation")
        })
    }
}

/// Sets weights by name after all of them were checked.
fn set(
    weights: &mut Weights,
    names: &[String],
    specs: &IndexMap<String, WeightSpec>,
    values: &[Array],
    of: &str,
) -> Result<()> {
    if names.len() != values.len() {
        let text = format!("{of} got {} weights; it has {}", values.len(), names.len());
        return Err(Error::config(text).help(format!("its weights are {}", names.join(", "))));
    }
    for (name, value) in names.iter().zip(values) {
        if value.dims() != specs[name].dims {
            let text =
                format!("weight `{name}` of {of} got the shape {:?}; expected {:?}", value.dims(), specs[name].dims);
            return Err(Error::shape(text));
        }
        if value.dtype() != specs[name].dtype {
            let (found, expected) = (value.dtype(), specs[name].dtype);
            let text = format!("weight `{name}` of {of} got {found}; expected {expected}");
            return Err(Error::dtype(Some(expected), found, text));
        }
    }
    weights.write_all(names.iter().map(String::as_str).zip(values))
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers: Vec<&str> = self.recipe.layers.iter().map(|layer| layer.name.as_str()).collect();
        f.debug_struct("Model").field("name", &self.name()).field("layers", &layers).finish_non_exhaustive()
    }
}

/// A layer of a model.
#[derive(Clone, Copy)]
pub struct ModelLayer<'a> {
    model: &'a Model,
    pub(super) layer: &'a RecipeLayer,
    variables: &'a [String],
}

impl<'a> ModelLayer<'a> {
    /// The layer's name in the model.
    pub fn name(&self) -> &'a str {
        &self.layer.name
    }

    /// The layer's class in Keras, such as `Dense`.
    pub fn class_name(&self) -> String {
        self.layer.step.class_name()
    }

    /// Whether it is a model.
    #[cfg(feature = "keras_files")]
    pub(super) fn is_model(&self) -> bool {
        matches!(self.layer.step, Step::Model(_))
    }

    /// The model that has the layer.
    #[cfg(feature = "keras_files")]
    pub(super) fn model(&self) -> &'a Model {
        self.model
    }

    /// The paths of the layers inside, if it is a model.
    #[cfg(feature = "keras_files")]
    pub(super) fn inner_paths(&self) -> Vec<String> {
        match &self.layer.step {
            Step::Model(recipe) => recipe.paths(),
            Step::Input(_) | Step::Layer(_) | Step::Operation(_) => Vec::new(),
        }
    }

    /// The names of its weights.
    #[cfg(feature = "keras_files")]
    pub(super) fn variables(&self) -> &'a [String] {
        self.variables
    }

    /// The number of weights, trained or not.
    pub fn count_params(&self) -> usize {
        self.variables.iter().map(|name| self.model.specs[name].len()).sum()
    }

    /// Whether optimizers change its weights.
    pub fn is_trainable(&self) -> bool {
        self.model.trainable && self.layer.trainable
    }

    /// The values of its weights.
    pub fn get_weights(&self) -> Result<Vec<Array>> {
        self.model.weights.read_all(self.variables.iter().map(String::as_str))
    }

    /// The layer value, unless this is an input or a model.
    pub fn layer(&self) -> Option<&'a dyn estimand_nn::Layer> {
        match &self.layer.step {
            Step::Layer(layer) => Some(&**layer),
            Step::Input(_) | Step::Operation(_) | Step::Model(_) => None,
        }
    }
}

impl fmt::Debug for ModelLayer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.class_name())
    }
}
