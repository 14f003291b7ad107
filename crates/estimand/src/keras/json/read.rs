//! Models from JSON.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;

use estimand_nn::config::{self, CustomObjects, Field, Json, Node};
use estimand_nn::layer;
use estimand_tensor::{DType, Error, Result, warn};

use super::calls::{Calls, Reference, Written};
use super::masks::{Masks, Place};
use super::read_shape;
use crate::keras::input::Input;
use crate::keras::model::Model;
use crate::keras::operation::{self, Operation};
use crate::keras::recipe::{Recipe, Step};
use crate::keras::sequential::Sequential;
use crate::keras::symbol::{KerasTensor, SharedLayer};

/// Reads the architecture of a model from what `to_json` of Keras 2, of Keras 3 or of this library
/// has written. Weights start with their initializers. Layers that are not of this library are
/// looked up in `objects`; what cannot be read is refused by name.
///
/// ```
/// use estimand::keras::{Sequential, model_from_json};
/// use estimand::nn::config::CustomObjects;
/// use estimand::prelude::*;
///
/// let model = Sequential::new().input([4]).add(Dense::new(3).relu()).add(Dense::new(1)).build()?;
/// let again = model_from_json(&model.to_json()?.to_string(), &CustomObjects::new())?;
/// assert_eq!(again.summary(), model.summary());
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn model_from_json(text: &str, objects: &CustomObjects) -> Result<Model> {
    model_from_document(&config::parse(text)?, objects)
}

/// Reads the architecture of a model from parsed JSON.
#[track_caller]
pub(in crate::keras) fn model_from_document(document: &Json, objects: &CustomObjects) -> Result<Model> {
    read(&Node::root(document, objects))
}

/// Operations that Keras 3 writes down where a layer makes a mask, or passes one on.
const MASK_OPERATIONS: [&str; 4] = ["Any", "ConvertToTensor", "LogicalOr", "NotEqual"];

/// The classes of operations in Keras 2. Those of Keras 3 are told by their module.
const OPERATIONS_OF_KERAS_2: [&str; 2] = ["TFOpLambda", "SlicingOpLambda"];

/// Whether a class is a model.
fn is_model(class: &str) -> bool {
    ["Functional", "Model", "Sequential"].contains(&class)
}

fn read(node: &Node<'_>) -> Result<Model> {
    let class = node.field("class_name")?;
    let config = node.field("config")?;
    let mut model = match class.text()? {
        "Sequential" => sequential(&config)?,
        "Functional" | "Model" => functional(&config)?,
        name => {
            let error = Error::unknown("model", name, ["Functional", "Sequential"]);
            return Err(error.context(format!("at {}", class.path())));
        }
    };
    model.recipe.dialect = node.dialect();
    if config.value().get("trainable") == Some(&Json::Bool(false)) {
        model.set_trainable(false)?;
    }
    Ok(model)
}

/// A layer of a list.
fn shared(node: &Node<'_>) -> Result<SharedLayer> {
    if is_model(node.field("class_name")?.text()?) {
        return Ok(read(node)?.shared_at(node.site()));
    }
    Ok(SharedLayer::at(Step::Layer(Arc::from(layer::read(node)?)), node.site()))
}

fn input(config: &Node<'_>) -> Result<Input> {
    let input = implied_input(config)?;
    let input = input.ok_or_else(|| config.refuse("there is no `batch_shape`"))?;
    for key in ["sparse", "ragged", "optional"] {
        if let Some(option) = config.get(key)?.filter(|option| option.value() == &Json::Bool(true)) {
            let error = option.refuse(format!("the input is {key}; inputs of a model are dense and always given here"));
            return Err(error.help("write the model with a dense input"));
        }
    }
    Ok(match config.get("name")? {
        Some(name) => input.name(name.text()?),
        None => input,
    })
}

/// The input that the configuration of a layer has, if it has one.
fn implied_input(config: &Node<'_>) -> Result<Option<Input>> {
    for key in ["batch_shape", "batch_input_shape"] {
        if let Some(shape) = config.get(key)?.filter(|shape| !shape.is_null()) {
            let dtype = match config.get("dtype")?.filter(|dtype| dtype.value().is_string()) {
                Some(dtype) => DType::read(&dtype)?,
                None => DType::F32,
            };
            return Ok(Some(Input::new(read_shape(&shape)?).dtype(dtype)));
        }
    }
    Ok(None)
}

fn sequential(config: &Node<'_>) -> Result<Model> {
    let mut model = Sequential::new();
    // Before Keras 2.2.3, the configuration was the list itself.
    let layers = match config.value() {
        Json::Array(_) => config.elements()?,
        _ => {
            model = model.name(config.field("name")?.text()?);
            config.field("layers")?.elements()?
        }
    };
    let mut first: Option<Input> = None;
    for (i, node) in layers.iter().enumerate() {
        let class = node.field("class_name")?.text()?;
        if class == "InputLayer" {
            first = Some(input(&node.field("config")?)?);
            continue;
        }
        if i == 0 && !is_model(class) {
            first = implied_input(&node.field("config")?)?;
        }
        let nested = || node.get("config")?.and_then(|config| config.get("build_input_shape").transpose()).transpose();
        if i == 0 && first.is_none() && is_model(class) {
            first = nested()?.map(|shape| read_shape(&shape).map(Input::new)).transpose()?;
        }
        model = model.push(shared(node)?);
    }
    if first.is_none() && config.value().is_object() {
        let shape = config.get("build_input_shape")?.filter(|shape| !shape.is_null());
        first = shape.map(|shape| read_shape(&shape).map(Input::new)).transpose()?;
    }
    match first {
        Some(input) => model.input(input).build(),
        None => Err(config.refuse("the model has no input shape: it was written before it was built")),
    }
}

/// A layer of a functional model with its calls.
struct Entry {
    name: String,
    class: String,
    is_operation: bool,
    /// None for an operation that is not read, such as those of masks, which are never called.
    layer: Option<SharedLayer>,
    /// Why an operation is not read.
    refused: Option<Error>,
    calls: Vec<Call>,
    /// The number that the document gives to its first call.
    first_call: usize,
    path: String,
}

struct Call {
    written: Written,
    state: State,
}

enum State {
    New,
    Open,
    Done(Vec<KerasTensor>),
}

fn functional(config: &Node<'_>) -> Result<Model> {
    let name = config.get("name")?.map_or(Ok("model"), |name| name.text())?;
    let nodes = config.field("layers")?.elements()?;
    let mut entries = nodes.iter().map(entry).collect::<Result<Vec<Entry>>>()?;
    let names: BTreeMap<String, usize> = entries.iter().enumerate().map(|(i, entry)| (entry.name.clone(), i)).collect();
    if names.len() < entries.len() {
        return Err(config.refuse("two layers have the same name"));
    }
    let masks: Vec<bool> = entries.iter().map(Entry::makes_mask).collect();
    let is_mask = |layer: usize| masks[layer];
    let calls = Calls { layers: &names, is_mask: &is_mask };
    let mut found = Vec::new();
    for (node, entry) in nodes.iter().zip(&mut entries) {
        let written = node.field("inbound_nodes")?.elements()?;
        if entry.is_operation {
            let values = match operation(node, &written, &calls) {
                Ok((operation, values)) => {
                    entry.layer = Some(SharedLayer::at(Step::Operation(Arc::new(operation)), node.site()));
                    vec![Written { values, ..Written::default() }]
                }
                // An error only if something needs its value.
                Err(error) => {
                    entry.refused = Some(error);
                    vec![Written::default()]
                }
            };
            found.push((values, 0));
            continue;
        }
        // TF: Keras 2 counts the call that made a model of its input.
        let is_old = written.iter().any(|call| call.value().is_array());
        let first = usize::from(is_old && is_model(&entry.class));
        found.push((written.iter().map(|call| calls.read(call)).collect::<Result<Vec<_>>>()?, first));
    }
    warn_of_training(name, &entries, &found);
    let places = nodes.iter().zip(&entries).map(|(node, entry)| entry.place(node)).collect();
    Masks { places, calls: &found, references: &calls }.check()?;
    let inputs = ends(&config.field("input_layers")?, &calls)?;
    let mut outputs = ends(&config.field("output_layers")?, &calls)?;
    // TF: in Keras 3, only outputs of the model count the call that made a `Functional`.
    let is_counted = |end: &&mut Reference| {
        found[end.layer].1 == 0 && is_model(&entries[end.layer].class) && entries[end.layer].class != "Sequential"
    };
    outputs.iter_mut().filter(is_counted).for_each(|end| end.call = end.call.saturating_sub(1));
    for (entry, (calls, first)) in entries.iter_mut().zip(found) {
        let made = calls.into_iter().map(|written| Call { written, state: State::New });
        (entry.calls, entry.first_call) = (made.collect(), first);
        // An input has one value, which nothing makes.
        if let Some(layer) = entry.layer.as_ref().filter(|layer| layer.0.step.is_input()) {
            let value = layer.clone().input_value();
            entry.calls = vec![Call { written: Written::default(), state: State::Done(vec![value]) }];
        }
    }
    let mut graph = Entries { entries, site: config.site() };
    let inputs = graph.values(&inputs)?;
    let outputs = graph.values(&outputs)?;
    let model = Recipe::new(name, &inputs, &outputs).and_then(Model::of);
    model.map_err(|error| error.context(format!("in model `{name}`, at {}", config.path())))
}

/// TF: in Keras 3, what `fit` or `predict` says of the whole model takes the place of the argument.
/// Layers such as `Dropout` have it in every file; for a model it is what somebody has written.
fn warn_of_training(name: &str, entries: &[Entry], calls: &[(Vec<Written>, usize)]) {
    let says = |(entry, (calls, _)): &(&Entry, &(Vec<Written>, usize))| {
        is_model(&entry.class) && calls.iter().any(|call| call.says_training && call.arguments.training.is_none())
    };
    let layers: Vec<&str> = entries.iter().zip(calls).filter(says).map(|(entry, _)| entry.name.as_str()).collect();
    if !layers.is_empty() {
        warn!(
            "The model `{name}` calls {} with `training`. Keras 3 does not obey that in a whole model, so it has no \
             effect here",
            layers.join(", ")
        );
    }
}

fn entry(node: &Node<'_>) -> Result<Entry> {
    let class = node.field("class_name")?.text()?;
    let config = node.field("config")?;
    let module = node.get("module")?.and_then(|module| module.value().as_str());
    let is_of_keras_3 = module.is_some_and(|module| module.starts_with("keras.src.ops"));
    let is_operation = is_of_keras_3 || OPERATIONS_OF_KERAS_2.contains(&class);
    let layer = match class {
        "InputLayer" => Some(SharedLayer::at(Step::Input(input(&config)?), node.site())),
        _ if is_operation => None,
        _ => Some(shared(node)?),
    };
    let name = match node.get("name")? {
        Some(name) => name.text()?,
        None => config.field("name")?.text()?,
    };
    let path = node.path().to_string();
    let (name, class) = (name.to_string(), class.to_string());
    Ok(Entry { name, class, is_operation, layer, refused: None, calls: Vec::new(), first_call: 0, path })
}

impl Entry {
    fn place<'a>(&'a self, node: &'a Node<'a>) -> Place<'a> {
        let step = self.layer.as_ref().map(|layer| &layer.0.step);
        Place {
            node,
            class: &self.class,
            is_operation: self.is_operation,
            is_model: matches!(step, Some(Step::Model(_))),
            passes_masks: matches!(step, Some(Step::Layer(layer)) if layer.supports_masking()),
        }
    }

    /// Whether it is an operation of a mask, which models here carry from layer to layer.
    fn makes_mask(&self) -> bool {
        self.is_operation && MASK_OPERATIONS.contains(&self.class.as_str())
    }
}

/// An operation with the values of its call.
fn operation(node: &Node<'_>, written: &[Node<'_>], calls: &Calls<'_>) -> Result<(Operation, Vec<Reference>)> {
    let [call] = written else {
        return Err(node.refuse(format!("the operation is called {} times; expected once", written.len())));
    };
    let is_slice = node.field("class_name")?.text()? == "GetItem";
    let (arguments, values) = calls.operation(call, is_slice, operation::takes_list(node))?;
    Ok((operation::read(node, arguments)?, values))
}

/// The inputs or outputs of a model: a list, a single value, or values by name, which Keras takes
/// in the order of their names.
fn ends(node: &Node<'_>, calls: &Calls<'_>) -> Result<Vec<Reference>> {
    if let Some(named) = node.value().as_object() {
        let mut keys: Vec<&String> = named.keys().collect();
        keys.sort();
        return keys.into_iter().map(|key| calls.reference(&node.field(key)?)).collect();
    }
    let elements = node.elements()?;
    match elements.first() {
        Some(first) if first.value().is_string() => Ok(vec![calls.reference(node)?]),
        _ => elements.iter().map(|element| calls.reference(element)).collect(),
    }
}

/// The layers of a model while their calls are made.
struct Entries {
    entries: Vec<Entry>,
    site: &'static Location<'static>,
}

impl Entries {
    fn values(&mut self, references: &[Reference]) -> Result<Vec<KerasTensor>> {
        references.iter().try_for_each(|reference| self.make(*reference))?;
        references.iter().map(|reference| self.value(*reference)).collect()
    }

    /// The place of a call in the list of its layer.
    fn place(&self, reference: Reference) -> Result<(usize, usize)> {
        let entry = &self.entries[reference.layer];
        let call = reference.call.checked_sub(entry.first_call).unwrap_or(reference.call);
        if call < entry.calls.len() {
            return Ok((reference.layer, call));
        }
        let text = format!("layer `{}` has {} calls; number {} is asked for", entry.name, entry.calls.len(), call);
        Err(Error::config(text).context(format!("at {}", entry.path)))
    }

    fn value(&self, reference: Reference) -> Result<KerasTensor> {
        let (layer, call) = self.place(reference)?;
        let entry = &self.entries[layer];
        let State::Done(values) = &entry.calls[call].state else {
            return Err(Error::internal("a call that was not made"));
        };
        values.get(reference.output).cloned().ok_or_else(|| {
            let text = format!(
                "layer `{}` has {} outputs; number {} is asked for",
                entry.name,
                values.len(),
                reference.output
            );
            Error::config(text).context(format!("at {}", entry.path))
        })
    }

    /// Makes the calls that a value needs. A list of open calls takes the place of recursion, so
    /// that deep models do not need a deep stack.
    fn make(&mut self, reference: Reference) -> Result<()> {
        let mut open = vec![self.place(reference)?];
        while let Some(&(layer, call)) = open.last() {
            if matches!(self.entries[layer].calls[call].state, State::Done(_)) {
                open.pop();
                continue;
            }
            self.entries[layer].calls[call].state = State::Open;
            let mut missing = None;
            for i in 0..self.entries[layer].calls[call].written.values.len() {
                let (from, at) = self.place(self.entries[layer].calls[call].written.values[i])?;
                match self.entries[from].calls[at].state {
                    State::Done(_) => {}
                    State::New => missing = Some((from, at)),
                    State::Open => {
                        let text = format!("layer `{}` needs its own output", self.entries[from].name);
                        return Err(Error::config(text).context(format!("at {}", self.entries[from].path)));
                    }
                }
            }
            match missing {
                Some(place) => open.push(place),
                None => {
                    let made = self.apply(layer, call)?;
                    self.entries[layer].calls[call].state = State::Done(made);
                    open.pop();
                }
            }
        }
        Ok(())
    }

    fn apply(&self, layer: usize, call: usize) -> Result<Vec<KerasTensor>> {
        let entry = &self.entries[layer];
        let Written { values, arguments, .. } = &entry.calls[call].written;
        let inputs: Vec<KerasTensor> = values.iter().map(|input| self.value(*input)).collect::<Result<_>>()?;
        let Some(layer) = &entry.layer else {
            let error = entry.refused.clone().unwrap_or_else(|| Error::internal("an entry without a layer"));
            return Err(error.context(format!("in layer `{}`", entry.name)));
        };
        let made = layer.call_at(inputs, *arguments, self.site);
        for value in &made {
            value.check().map_err(|error| error.context(format!("in layer `{}`, at {}", entry.name, entry.path)))?;
        }
        Ok(made)
    }
}
