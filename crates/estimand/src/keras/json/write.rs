//! Models as JSON.

use std::collections::BTreeSet;

use estimand_graph::Graph;
use estimand_nn::config::{Dialect, Field, Json};
use estimand_tensor::{DType, Error, Result};
use serde_json::json;

use super::calls::{STATES, TRAINING};
use super::{versions, write_shape};
use crate::keras::model::Model;
use crate::keras::operation::{self, Operation};
use crate::keras::recipe::{Recipe, RecipeCall, RecipeLayer, Spec, Step};
use crate::keras::replay::{Flags, Replay, n_values};

/// The form in which a model is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KerasVersion {
    /// That of `tf.keras` 2.13 to 2.15.
    Keras2,
    /// That of Keras 3.4 and later.
    #[default]
    Keras3,
}

impl Model {
    /// The architecture as JSON, in the form of Keras 3: layers and how they are connected, without
    /// weights. A layer that cannot be written, such as a [`Lambda`](estimand_nn::Lambda), is
    /// refused by name.
    pub fn to_json(&self) -> Result<Json> {
        self.to_json_for(KerasVersion::Keras3)
    }

    /// The architecture as JSON, for a version of Keras.
    pub fn to_json_for(&self, version: KerasVersion) -> Result<Json> {
        check_masks(&self.recipe, version)?;
        let mut json = write(&self.recipe, self.trainable, version)?;
        if version == KerasVersion::Keras2 {
            json["keras_version"] = "2.15.0".into();
            json["backend"] = "tensorflow".into();
        }
        Ok(json)
    }
}

/// Whose rules hold in a version.
fn dialect(version: KerasVersion) -> Dialect {
    match version {
        KerasVersion::Keras2 => Dialect::Keras2,
        KerasVersion::Keras3 => Dialect::Keras3,
    }
}

/// Refuses a model that would compute something else in this version of Keras, whose layers have
/// other rules for the masks that they pass on.
fn check_masks(recipe: &Recipe, version: KerasVersion) -> Result<()> {
    if !recipe.may_have_masks() {
        return Ok(());
    }
    // Masks of the outputs count in losses and metrics.
    let nodes = |recipe: &Recipe| {
        let graph = Graph::new();
        let outputs = Replay::new(recipe).call_masked(&graph, &recipe.placeholders(&graph), Flags::default());
        let masks: Vec<_> = outputs.iter().map(|output| output.mask.as_ref().map(|mask| mask.value())).collect();
        (graph.to_string(), masks)
    };
    let mut other = recipe.clone();
    other.set_dialect(dialect(version));
    if nodes(recipe) == nodes(&other) {
        return Ok(());
    }
    let text = format!(
        "the model `{}` passes masks through a layer that passes on another mask in {version:?}, so it would compute \
         something else there",
        recipe.name
    );
    Err(Error::unsupported(text).help(
        "write it for the other version; or see that all values that are added up or joined have the same mask, or \
         none",
    ))
}

fn write(recipe: &Recipe, trainable: bool, version: KerasVersion) -> Result<Json> {
    let unnamed = unnamed(recipe, version);
    let writer = Writer { recipe, trainable, version, unnamed };
    let mut config = json!({ "name": recipe.name, "trainable": trainable });
    if recipe.is_sequential {
        config["layers"] = recipe.layers.iter().map(|layer| writer.layer(layer)).collect::<Result<Vec<_>>>()?.into();
        config["build_input_shape"] = recipe.input_specs().first().map_or(Json::Null, |spec| write_shape(&spec.shape));
        return Ok(object("keras", "Sequential", config, Json::Null));
    }
    let mut layers = Vec::new();
    for (i, layer) in recipe.layers.iter().enumerate() {
        let mut json = writer.layer(layer)?;
        json["name"] = layer.name.as_str().into();
        json["inbound_nodes"] = writer.calls(i)?.into();
        layers.push(json);
    }
    config["layers"] = layers.into();
    let inputs = recipe.inputs.iter().map(|&call| writer.reference((call, 0)));
    config["input_layers"] = ends(inputs.collect(), version);
    config["output_layers"] = ends(recipe.outputs.iter().map(|&end| writer.end(end)).collect(), version);
    let module = match version {
        KerasVersion::Keras2 => "keras.src.engine.functional",
        KerasVersion::Keras3 => "keras.src.models.functional",
    };
    Ok(object(module, "Functional", config, "Functional".into()))
}

/// The inputs or the outputs of a model. TF: Keras 3 writes a single one without a list; with a
/// list, `model.output` is a list there, which the next layer refuses.
fn ends(mut values: Vec<Json>, version: KerasVersion) -> Json {
    match version {
        KerasVersion::Keras3 if values.len() == 1 => values.remove(0),
        _ => values.into(),
    }
}

fn object(module: &str, class: &str, config: Json, registered: Json) -> Json {
    json!({ "module": module, "class_name": class, "config": config, "registered_name": registered })
}

/// The arguments of a call that are not values.
fn settings(call: &RecipeCall) -> Json {
    let mut all = json!({});
    if let Some(training) = call.arguments.training {
        all["training"] = training.into();
    }
    if call.arguments.use_causal_mask {
        all["use_causal_mask"] = true.into();
    }
    all
}

struct Writer<'a> {
    recipe: &'a Recipe,
    /// Whether the model is trained. TF: Keras reads this of layers alone, so those of a frozen
    /// model are frozen in the file.
    trainable: bool,
    version: KerasVersion,
    /// The kinds of operations that are written without their names.
    unnamed: BTreeSet<&'a str>,
}

/// The kinds of operations that are written without their names. TF: older versions of Keras 3,
/// such as 3.6, refuse the name of an operation that has settings, and make a new one; later
/// versions take it. It is written where a new one would matter: such an operation makes one of
/// several outputs, or a layer has a name of this kind.
fn unnamed(recipe: &Recipe, version: KerasVersion) -> BTreeSet<&str> {
    if version == KerasVersion::Keras2 {
        return BTreeSet::new();
    }
    let (operations, layers): (Vec<_>, Vec<_>) =
        recipe.layers.iter().partition(|layer| matches!(layer.step, Step::Operation(_)));
    let with_settings = operations.iter().filter_map(|layer| match &layer.step {
        Step::Operation(of) if of.has_settings() => Some(of.kind()),
        _ => None,
    });
    let mut kinds: BTreeSet<&str> = with_settings.collect();
    if recipe.outputs.len() > 1 {
        recipe.outputs.iter().for_each(|&(call, _)| {
            kinds.remove(recipe.layers[recipe.calls[call].layer].step.kind());
        });
    }
    kinds.retain(|kind| !layers.iter().any(|layer| layer.name.starts_with(kind)));
    kinds
}

impl Writer<'_> {
    fn layer(&self, layer: &RecipeLayer) -> Result<Json> {
        let trainable = self.trainable && layer.trainable;
        let mut json = match &layer.step {
            Step::Input(input) => {
                let shape = if self.version == KerasVersion::Keras2 { "batch_input_shape" } else { "batch_shape" };
                let mut config = json!({ "dtype": input.dtype.write()?, "sparse": false });
                config[shape] = write_shape(&input.shape);
                if self.version == KerasVersion::Keras2 {
                    config["ragged"] = false.into();
                }
                object("keras.layers", "InputLayer", config, Json::Null)
            }
            Step::Layer(inner) => {
                let mut json = inner.to_json()?;
                json["config"]["trainable"] = trainable.into();
                versions::adapt(&mut json, self.version, &layer.name)?;
                json
            }
            Step::Operation(of) => operation::write(of, self.version == KerasVersion::Keras3),
            Step::Model(recipe) => write(recipe, trainable, self.version)?,
        };
        let is_unnamed = matches!(&layer.step, Step::Operation(_)) && self.unnamed.contains(layer.step.kind());
        if !is_unnamed {
            json["config"]["name"] = layer.name.as_str().into();
        }
        Ok(json)
    }

    /// The calls of a layer.
    fn calls(&self, layer: usize) -> Result<Vec<Json>> {
        let own = self.recipe.calls.iter().filter(|call| call.layer == layer && !call.inputs.is_empty());
        own.map(|call| match self.version {
            KerasVersion::Keras2 => self.call_of_keras_2(call),
            KerasVersion::Keras3 => self.call_of_keras_3(call),
        })
        .collect()
    }

    /// Whether the layer takes its values one by one and not as a list.
    fn takes_arguments(&self, layer: usize) -> bool {
        self.recipe.layers[layer].step.kind() == "multi_head_attention"
    }

    /// What a layer is called with. Attention to one value is written as Keras wants it: the query
    /// is also the value.
    fn inputs(&self, call: &RecipeCall) -> Vec<(usize, usize)> {
        let mut inputs = call.inputs.clone();
        if self.takes_arguments(call.layer) && inputs.len() == 1 {
            inputs.push(inputs[0]);
        }
        inputs
    }

    /// Whether the layer takes a list, even of one value.
    fn takes_list(&self, layer: usize, n: usize) -> bool {
        match &self.recipe.layers[layer].step {
            Step::Layer(layer) => *layer.n_inputs().end() > 1,
            _ => n > 1,
        }
    }

    /// Keras has the states of stacked cells in a list for each cell.
    fn refuse_stacked(&self, call: &RecipeCall) -> Result<()> {
        let RecipeLayer { name, step, .. } = &self.recipe.layers[call.layer];
        let Step::Layer(layer) = step else { return Ok(()) };
        let json = layer.to_json()?;
        let is_stacked = |json: &Json| json["cell"]["class_name"] == "StackedRNNCells";
        if !is_stacked(&json["config"]) && !is_stacked(&json["config"]["layer"]["config"]) {
            return Ok(());
        }
        let text = format!("layer `{name}` is called with initial states of stacked cells, which are not written");
        Err(Error::unsupported(text).help("use a layer such as `Lstm` for each cell"))
    }

    /// Refuses an operation of whole numbers that computes something else in this version, and one
    /// with a number that JSON does not have.
    fn check_operation(&self, of: &Operation, call: &RecipeCall) -> Result<()> {
        let name = &self.recipe.layers[call.layer].name;
        if !of.is_finite() {
            let text = format!("the operation `{name}` has a number that is not finite, which is not written");
            return Err(Error::unsupported(text).help("put a large number in its place"));
        }
        let dtype = |&(from, output): &(usize, usize)| self.recipe.calls[from].outputs[output].dtype;
        let dtypes: Vec<DType> = call.inputs.iter().map(dtype).collect();
        if of.rules == dialect(self.version) || !of.depends_on_version(&dtypes) {
            return Ok(());
        }
        let version = self.version;
        let text = format!("the operation `{name}` of whole numbers computes something else in {version:?}");
        Err(Error::unsupported(text).help("write the model for the other version, or give it floats"))
    }

    fn call_of_keras_2(&self, call: &RecipeCall) -> Result<Json> {
        if let Step::Operation(of) = &self.recipe.layers[call.layer].step {
            self.check_operation(of, call)?;
            let values = call.inputs.iter().map(|&input| self.reference(input)).collect();
            return Ok(operation::call_of_keras_2(of, values));
        }
        let inputs = self.inputs(call);
        let value = |&input: &(usize, usize)| {
            let mut reference = self.reference(input);
            if let Some(parts) = reference.as_array_mut() {
                parts.push(settings(call));
            }
            reference
        };
        if !self.takes_arguments(call.layer) {
            if inputs.len() > 1 {
                self.refuse_stacked(call)?;
            }
            return Ok(inputs.iter().map(value).collect::<Vec<_>>().into());
        }
        let mut first = value(&inputs[0]);
        for (key, &input) in ["value", "key"].into_iter().zip(&inputs[1..]) {
            first[3][key] = self.reference(input);
        }
        Ok(json!([first]))
    }

    fn call_of_keras_3(&self, call: &RecipeCall) -> Result<Json> {
        let (layer, inputs) = (call.layer, self.inputs(call));
        let tensor = |&(from, output): &(usize, usize)| {
            let Spec { dtype, shape } = &self.recipe.calls[from].outputs[output];
            let history = self.reference((from, output));
            Ok(json!({
                "class_name": "__keras_tensor__",
                "config": { "shape": write_shape(shape), "dtype": dtype.write()?, "keras_history": history },
            }))
        };
        let mut values: Vec<Json> = inputs.iter().map(tensor).collect::<Result<_>>()?;
        if let Step::Operation(of) = &self.recipe.layers[layer].step {
            self.check_operation(of, call)?;
            return Ok(operation::call_of_keras_3(of, values));
        }
        let mut named = settings(call);
        if let Step::Layer(layer) = &self.recipe.layers[layer].step {
            let states = values.split_off(n_values(&**layer, values.len()));
            if !states.is_empty() {
                self.refuse_stacked(call)?;
                named[STATES] = states.into();
            }
        }
        let is_list = self.takes_list(layer, values.len()) && !self.takes_arguments(layer);
        let arguments = if is_list { vec![Json::Array(values)] } else { values };
        let mut json = json!({ "args": arguments, "kwargs": named });
        if let Some(training) = call.arguments.training {
            json[TRAINING] = training.into();
        }
        Ok(json)
    }

    /// `["dense", 0, 0]`: the layer, the number of its call, the number of the output.
    fn reference(&self, value: (usize, usize)) -> Json {
        // TF: Keras 2 counts the call that made a model of its input.
        let is_counted = self.version == KerasVersion::Keras2 && matches!(self.step(value), Step::Model(_));
        self.counted_from(usize::from(is_counted), value)
    }

    /// The same for an output of the model.
    fn end(&self, value: (usize, usize)) -> Json {
        // TF: here, Keras 3 counts the call that made a `Functional`, too.
        match self.step(value) {
            Step::Model(recipe) if !recipe.is_sequential => self.counted_from(1, value),
            _ => self.reference(value),
        }
    }

    fn step(&self, (call, _): (usize, usize)) -> &Step {
        &self.recipe.layers[self.recipe.calls[call].layer].step
    }

    fn counted_from(&self, first: usize, (call, output): (usize, usize)) -> Json {
        let layer = self.recipe.calls[call].layer;
        let number = self.recipe.calls[..call].iter().filter(|earlier| earlier.layer == layer).count();
        json!([self.recipe.layers[layer].name, number + first, output])
    }
}
