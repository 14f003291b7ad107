//! The calls of a functional model: which values a layer was called with.
//!
//! Keras 2 writes `[["dense", 0, 0, {}]]` for a call: layer, number of the call, number of the
//! output, and arguments by name. Keras 3 writes `{"args": [..], "kwargs": {..}}` with an object
//! for each value. States that a recurrent layer begins with come after its value here, as in
//! Keras 2; Keras 3 has the argument `initial_state` for them.

use std::collections::BTreeMap;

use estimand_nn::config::{AnyNumber, Field, Json, Node};
use estimand_tensor::{Error, Result};

use crate::keras::operation::{Arguments, Number, Operand};
use crate::keras::recipe::CallArguments;

/// A value: the output of a call of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub layer: usize,
    /// The number that the document gives to the call.
    pub call: usize,
    pub output: usize,
}

/// What one call says.
#[derive(Clone, Default)]
pub(super) struct Written {
    pub values: Vec<Reference>,
    pub arguments: CallArguments,
    /// The masks that Keras 3 has written, each with the number of its value.
    pub masks: Vec<(usize, Reference)>,
    /// Whether Keras 3 has written `training`, which it does not obey.
    pub says_training: bool,
}

/// The arguments that take values, in the order in which our layers take them.
const VALUES: [&str; 4] = ["query", "value", "key", STATES];

/// The argument with the states that a recurrent layer begins with.
pub(super) const STATES: &str = "initial_state";

/// The field of a call, beside Keras 3's own, that says whether it computes as in training. TF:
/// Keras 3 writes `training` for every layer that has such an argument, and takes what `fit` or
/// `predict` says instead, so its `training` says nothing. It ignores fields that it does not know.
pub(super) const TRAINING: &str = "estimand_training";

/// The arguments that say how to compute.
const SETTINGS: [&str; 2] = ["training", "use_causal_mask"];

/// The arguments that carry masks, with the number of the value. In a model here, masks go with the
/// values.
const MASKS: [(&str, usize); 4] = [("mask", 0), ("query_mask", 0), ("value_mask", 1), ("key_mask", 2)];

/// Reads calls. `layers` are the numbers of layers by name; `is_mask` tells the operations that
/// Keras 3 writes down where a layer makes a mask.
pub(super) struct Calls<'a> {
    pub layers: &'a BTreeMap<String, usize>,
    pub is_mask: &'a dyn Fn(usize) -> bool,
}

impl Calls<'_> {
    /// The values and arguments of one call.
    pub fn read(&self, call: &Node<'_>) -> Result<Written> {
        let mut found = Written::default();
        if call.value().is_object() {
            for argument in call.field("args")?.elements()? {
                self.collect(&argument, &mut found.values)?;
            }
            let arguments = call.field("kwargs")?;
            self.named(&arguments, &mut found)?;
            found.says_training = found.arguments.training.is_some();
            let own = call.value().get(TRAINING);
            found.arguments.training = own.and_then(Json::as_bool);
            return Ok(found);
        }
        for value in call.elements()? {
            self.old(&value, &mut found)?;
        }
        Ok(found)
    }

    /// The values and arguments of the one call of an operation. A list of values is refused unless
    /// it takes one.
    pub fn operation<'n>(
        &self,
        call: &Node<'n>,
        is_slice: bool,
        takes_list: bool,
    ) -> Result<(Arguments<'n>, Vec<Reference>)> {
        let list = || call.refuse("the operation is called with a list of values; expected one value");
        let mut found = Operands { calls: self, operands: Vec::new(), references: Vec::new() };
        let mut named = BTreeMap::new();
        if call.value().is_object() {
            for (i, argument) in call.field("args")?.elements()?.into_iter().enumerate() {
                match argument.value() {
                    _ if is_slice && i == 1 => drop(named.insert("slice_spec".to_string(), argument)),
                    Json::Array(_) if !takes_list => return Err(list()),
                    Json::Array(_) => argument.elements()?.iter().try_for_each(|element| found.add(element))?,
                    _ => found.add(&argument)?,
                }
            }
            let arguments = call.field("kwargs")?;
            for (key, _) in arguments.value().as_object().into_iter().flatten() {
                named.insert(key.clone(), arguments.field(key)?);
            }
        } else {
            let parts = call.elements()?;
            let is_list = parts.first().is_some_and(|first| first.value().is_array());
            if is_list && !takes_list {
                return Err(list());
            }
            for value in if is_list { parts } else { vec![call.clone()] } {
                found.add(&value)?;
                let Some(arguments) = value.elements()?.get(3).cloned() else { continue };
                for (key, _) in arguments.value().as_object().into_iter().flatten() {
                    let argument = arguments.field(key)?;
                    match key.as_str() {
                        "name" => {}
                        "y" => found.add(&argument)?,
                        _ => drop(named.insert(key.clone(), argument)),
                    }
                }
            }
        }
        Ok((Arguments { operands: found.operands, named }, found.references))
    }

    /// Values of Keras 2 with arguments: one, or the list of the states of one of several cells.
    fn old(&self, value: &Node<'_>, found: &mut Written) -> Result<()> {
        let parts = value.elements()?;
        if parts.first().is_some_and(|first| first.value().is_array()) {
            return parts.iter().try_for_each(|part| self.old(part, found));
        }
        found.values.push(self.reference(value)?);
        parts.get(3).map_or(Ok(()), |arguments| self.named(arguments, found))
    }

    /// Values of Keras 3: one, or a list of them.
    pub fn collect(&self, argument: &Node<'_>, found: &mut Vec<Reference>) -> Result<()> {
        match argument.value() {
            Json::Array(_) => argument.elements()?.iter().try_for_each(|element| self.collect(element, found)),
            _ => {
                found.push(self.tensor(argument)?);
                Ok(())
            }
        }
    }

    /// A value of Keras 3.
    fn tensor(&self, node: &Node<'_>) -> Result<Reference> {
        match node.value().get("class_name").and_then(Json::as_str) {
            Some("__keras_tensor__") => self.reference(&node.field("config")?.field("keras_history")?),
            _ => Err(node.expected("a value of the model (constants are not read)")),
        }
    }

    /// `["dense", 0, 0]`.
    pub fn reference(&self, node: &Node<'_>) -> Result<Reference> {
        let parts = node.elements()?;
        let [layer, call, output, ..] = &parts[..] else {
            return Err(node.expected("the name of a layer, the number of its call and of the output"));
        };
        let number = |node: &Node<'_>| {
            let number = node.value().as_u64().and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| node.expected("a whole number from 0"))
        };
        let name = layer.text()?;
        let unknown = || {
            Error::unknown("layer", name, self.layers.keys().map(String::as_str))
                .context(format!("at {}", layer.path()))
        };
        let layer = *self.layers.get(name).ok_or_else(unknown)?;
        Ok(Reference { layer, call: number(call)?, output: number(output)? })
    }

    /// Arguments by name: values are added, what changes nothing is skipped, the rest is refused.
    fn named(&self, arguments: &Node<'_>, found: &mut Written) -> Result<()> {
        for key in VALUES {
            let Some(node) = arguments.get(key)?.filter(|node| !node.is_null()) else { continue };
            match node.value() {
                Json::Array(parts) if parts.first().is_some_and(Json::is_string) => {
                    found.values.push(self.reference(&node)?);
                }
                _ => self.collect(&node, &mut found.values)?,
            }
        }
        let Some(all) = arguments.value().as_object() else { return Ok(()) };
        for (key, value) in all.iter().filter(|(key, _)| !VALUES.contains(&key.as_str())) {
            match (key.as_str(), value) {
                // Off is not the default: a model that is trained would compute as in training.
                ("training", Json::Bool(training)) => found.arguments.training = Some(*training),
                ("use_causal_mask", Json::Bool(true)) => found.arguments.use_causal_mask = true,
                _ => {}
            }
            if is_nothing(value) || (SETTINGS.contains(&key.as_str()) && value.is_boolean()) {
                continue;
            }
            let node = arguments.field(key)?;
            let masked = MASKS.iter().find(|(mask, _)| mask == key).filter(|_| value.is_object());
            let mask = masked.and_then(|(_, value)| Some((*value, self.tensor(&node).ok()?)));
            let Some(mask) = mask.filter(|(_, mask)| (self.is_mask)(mask.layer)) else {
                let text = format!("the layer is called with `{key}`, which layers of a file's model do not take");
                return Err(node.refuse(text));
            };
            found.masks.push(mask);
        }
        Ok(())
    }
}

/// The operands of an operation: values and numbers.
struct Operands<'c, 'a> {
    calls: &'c Calls<'a>,
    operands: Vec<Operand>,
    references: Vec<Reference>,
}

impl Operands<'_, '_> {
    fn add(&mut self, node: &Node<'_>) -> Result<()> {
        // Keras 2 writes a number in the place of the first value like this.
        let first = node.value().get(0).and_then(Json::as_str);
        let number = if first == Some("_CONSTANT_VALUE") { node.value().get(2) } else { Some(node.value()) };
        let number = match node.value() {
            // Such as -inf, which a document has as a word.
            Json::String(_) => Some(Number::Float(AnyNumber::read(node)?.0)),
            _ => number.and_then(Number::read),
        };
        if let Some(number) = number {
            self.operands.push(Operand::Number(number));
            return Ok(());
        }
        let reference = match node.value() {
            Json::Array(_) => self.calls.reference(node)?,
            Json::Object(_) => self.calls.tensor(node)?,
            _ => return Err(node.expected("a value of the model, or a number")),
        };
        self.operands.push(Operand::Value);
        self.references.push(reference);
        Ok(())
    }
}

/// Whether an argument says nothing: none, off, or a list of such.
fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::Array(values) => values.iter().all(is_nothing),
        _ => false,
    }
}
