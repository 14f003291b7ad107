//! Masks as arguments of calls in documents of Keras 3.
//!
//! Keras 3 writes the mask that a value carries as an argument, with the operations that make it,
//! such as `NotEqual(ids, 0)` for an `Embedding`. In a model here, masks go with the values, so
//! such an argument says nothing new. A mask of the user's own looks the same, but is another one.
//! The two are told apart by what they are made of: the values that are compared, and the numbers
//! that do not count.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use estimand_nn::config::{Json, Node};
use estimand_tensor::Result;

use super::calls::{Calls, Reference, Written};

/// A layer of the document.
pub(super) struct Place<'a> {
    pub node: &'a Node<'a>,
    pub class: &'a str,
    pub is_operation: bool,
    pub is_model: bool,
    /// Whether a value leaves it with the mask of the first value that it is called with.
    pub passes_masks: bool,
}

/// One comparison that a mask is made of: layer, call and output of the value, and the bits of the
/// number.
type Comparison = (usize, usize, usize, u64);

/// The mask that a value carries.
#[derive(Clone)]
enum Carried {
    Nothing,
    Mask(Rc<BTreeSet<Comparison>>),
    /// That of a model inside, or one of more comparisons than are followed.
    Unknown,
}

/// The most comparisons of one mask that are followed. In a hostile document, every mask may be
/// made of all masks before it.
const MAX_COMPARISONS: usize = 256;

/// The most operations of masks that are followed, of all masks together.
const MAX_STEPS: usize = 1_000_000;

/// Layers that pass masks on by rules of their own.
const PASSING: [&str; 6] =
    ["AdditiveAttention", "Attention", "GroupNormalization", "Normalization", "Rescaling", "TimeDistributed"];

/// Layers that join values, which have a mask if all of these have one.
const MERGES: [&str; 6] = ["Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"];

/// Operations that join masks or change their form. Keras 3.4 to 3.6 writes `BroadcastTo` where
/// later versions write `ZerosLike` and `LogicalOr`.
const JOINING: [&str; 6] = ["Any", "BroadcastTo", "Concatenate", "ConvertToTensor", "ExpandDims", "LogicalOr"];

/// Operations that make a mask of which all steps, or none, count.
const EVEN: [&str; 2] = ["OnesLike", "ZerosLike"];

/// The layers of a functional model and their calls.
pub(super) struct Masks<'a> {
    pub places: Vec<Place<'a>>,
    /// The calls of each layer, and the number that the document gives to the first.
    pub calls: &'a [(Vec<Written>, usize)],
    pub references: &'a Calls<'a>,
}

impl Masks<'_> {
    /// Refuses a call with another mask than the value carries.
    pub fn check(&self) -> Result<()> {
        let (mut known, mut made, mut n_steps) = (HashMap::new(), HashMap::new(), 0);
        for (place, (calls, _)) in self.places.iter().zip(self.calls) {
            for written in calls {
                for &(value, mask) in &written.masks {
                    let carried = match written.values.get(value) {
                        Some(value) => self.carried(*value, &mut known),
                        None => Carried::Nothing,
                    };
                    let is_own = match carried {
                        Carried::Unknown => true,
                        Carried::Nothing => false,
                        Carried::Mask(carried) => {
                            let made = match made.entry(mask.layer) {
                                Entry::Occupied(made) => made.into_mut(),
                                Entry::Vacant(place) => place.insert(self.comparisons(mask, &mut n_steps)?),
                            };
                            made.as_ref().is_some_and(|made| *made == *carried)
                        }
                    };
                    if !is_own {
                        let text = "the layer is called with a mask that its value does not carry, which is not read";
                        let help = "let an Embedding with `mask_zero` or a Masking layer make the mask, and only \
                                    layers that pass masks on follow it";
                        return Err(place.node.refuse(text).help(help));
                    }
                }
            }
        }
        Ok(())
    }

    /// The mask that a value carries. A list of open calls takes the place of recursion.
    fn carried(&self, value: Reference, known: &mut HashMap<(usize, usize), Carried>) -> Carried {
        let start = self.call_of(value);
        let (mut open, mut seen) = (vec![start], HashSet::new());
        while let Some(&at) = open.last() {
            if known.contains_key(&at) {
                open.pop();
                continue;
            }
            let sources = self.sources(at);
            // What is asked for a second time needs itself, which is an error elsewhere.
            let missing: Vec<_> = sources.iter().copied().filter(|source| !known.contains_key(source)).collect();
            if seen.insert(at) && !missing.is_empty() {
                open.extend(missing);
                continue;
            }
            let masks = sources.iter().map(|source| known.get(source).cloned().unwrap_or(Carried::Unknown)).collect();
            let made = self.made(at, masks);
            known.insert(at, made);
            open.pop();
        }
        // Further results, such as states, carry none.
        let is_first = value.output == 0 || self.places[value.layer].is_model;
        known.get(&start).filter(|_| is_first).cloned().unwrap_or(Carried::Nothing)
    }

    fn call_of(&self, value: Reference) -> (usize, usize) {
        let first = self.calls[value.layer].1;
        (value.layer, value.call.checked_sub(first).unwrap_or(value.call))
    }

    /// The calls whose masks decide about that of a call.
    fn sources(&self, (layer, call): (usize, usize)) -> Vec<(usize, usize)> {
        let place = &self.places[layer];
        let Some(written) = self.calls[layer].0.get(call) else { return Vec::new() };
        if place.is_operation || place.is_model || ["Embedding", "Masking"].contains(&place.class) {
            return Vec::new();
        }
        let n = if MERGES.contains(&place.class) || place.class == "Concatenate" { usize::MAX } else { 1 };
        written.values.iter().take(n).map(|value| self.call_of(*value)).collect()
    }

    /// The mask of a call, from those of its sources.
    fn made(&self, (layer, call): (usize, usize), masks: Vec<Carried>) -> Carried {
        let place = &self.places[layer];
        let config = |key: &str| place.node.value().get("config").and_then(|config| config.get(key));
        let own = |number: f64| {
            let value = self.calls[layer].0.get(call).and_then(|written| written.values.first());
            value.map_or(Carried::Nothing, |value| {
                Carried::Mask(Rc::new(BTreeSet::from([self.comparison(*value, number)])))
            })
        };
        let inner = config("layer").unwrap_or(place.node.value());
        match place.class {
            _ if place.is_model => Carried::Unknown,
            _ if place.is_operation => Carried::Nothing,
            "Embedding" if config("mask_zero") == Some(&Json::Bool(true)) => own(0.0),
            "Embedding" => Carried::Nothing,
            "Masking" => own(number(config("mask_value")).unwrap_or(0.0)),
            "TimeDistributed" if inner["class_name"] == "Embedding" => Carried::Unknown,
            // The last step alone has no mask.
            _ if inner["config"]["return_sequences"] == false => Carried::Nothing,
            class if MERGES.contains(&class) => joined(masks, true),
            "Concatenate" => joined(masks, false),
            class if place.passes_masks || PASSING.contains(&class) => joined(masks, true),
            _ => Carried::Nothing,
        }
    }

    fn comparison(&self, value: Reference, number: f64) -> Comparison {
        let (layer, call) = self.call_of(value);
        (layer, call, value.output, (number + 0.0).to_bits())
    }

    /// The comparisons that a mask is made of. None if it is made of something else.
    fn comparisons(&self, mask: Reference, n_steps: &mut usize) -> Result<Option<BTreeSet<Comparison>>> {
        let (mut open, mut seen, mut found) = (vec![mask.layer], HashSet::new(), BTreeSet::new());
        while let Some(layer) = open.pop() {
            let place = &self.places[layer];
            if !seen.insert(layer) {
                continue;
            }
            *n_steps += 1;
            if *n_steps > MAX_STEPS {
                return Ok(None);
            }
            let calls = place.node.field("inbound_nodes")?.elements()?;
            let Some(call) = calls.first().filter(|call| place.is_operation && call.value().is_object()) else {
                return Ok(None);
            };
            let arguments = call.field("args")?.elements()?;
            let mut values = Vec::new();
            for argument in
                arguments.iter().filter(|argument| argument.value().is_object() || argument.value().is_array())
            {
                self.references.collect(argument, &mut values)?;
            }
            match place.class {
                "NotEqual" => {
                    let number = number(arguments.get(1).map(|number| number.value()));
                    let ([value], Some(number)) = (&values[..], number) else { return Ok(None) };
                    found.insert(self.comparison(*value, number));
                }
                class if JOINING.contains(&class) => open.extend(values.iter().map(|value| value.layer)),
                class if EVEN.contains(&class) => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

/// A number, or NaN as a text.
fn number(json: Option<&Json>) -> Option<f64> {
    json.and_then(|json| json.as_f64().or_else(|| json.as_str().filter(|text| *text == "NaN").map(|_| f64::NAN)))
}

/// The mask of values that come together: of all of them, or of those that have one.
fn joined(masks: Vec<Carried>, needs_all: bool) -> Carried {
    let mut found: Option<Rc<BTreeSet<Comparison>>> = None;
    for mask in masks {
        match mask {
            Carried::Unknown => return Carried::Unknown,
            Carried::Nothing if needs_all => return Carried::Nothing,
            Carried::Nothing => {}
            Carried::Mask(mask) => match &mut found {
                Some(found) => Rc::make_mut(found).extend(mask.iter().copied()),
                None => found = Some(mask),
            },
        }
        if found.as_ref().is_some_and(|found| found.len() > MAX_COMPARISONS) {
            return Carried::Unknown;
        }
    }
    found.map_or(Carried::Nothing, Carried::Mask)
}
