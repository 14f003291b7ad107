//! Turns symbolic values into a recipe: a walk from the outputs of a model to its inputs.
//!
//! The order of layers is that of Keras' `_map_graph_network`: by the distance from the outputs,
//! then by the order in which a walk from the outputs meets them. Weights follow this order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use estimand_nn::config::Dialect;
use estimand_tensor::{Error, Result};

use super::recipe::{MAX_CALLS, Recipe, RecipeCall, RecipeLayer, Step};
use super::symbol::KerasTensor;

impl Recipe {
    /// Checks the values and lists the calls between them.
    pub fn new(name: &str, inputs: &[KerasTensor], outputs: &[KerasTensor]) -> Result<Recipe> {
        inputs.iter().chain(outputs).try_for_each(KerasTensor::check)?;
        let of = |text: String| Error::config(format!("model `{name}` {text}"));
        if inputs.is_empty() || outputs.is_empty() {
            return Err(of("needs at least one input and one output".to_string()));
        }
        for input in inputs {
            if !matches!(input.call.layer.0.step, Step::Input(_)) {
                return Err(of(format!("has the input {input:?}, which a layer has made; expected an Input"))
                    .help("make it with Input::new(..).tensor()"));
            }
        }
        let mut walk = Walk::default();
        outputs.iter().for_each(|output| walk.visit(output));
        let recipe = walk.recipe(name, inputs, outputs)?;
        Ok(recipe)
    }

    /// The recipe of some values and of all inputs that they need.
    pub fn all_of(outputs: &[KerasTensor]) -> Result<Recipe> {
        let mut walk = Walk::default();
        outputs.iter().for_each(|output| walk.visit(output));
        let is_input = |value: &&KerasTensor| matches!(value.call.layer.0.step, Step::Input(_));
        let inputs: Vec<KerasTensor> = walk.calls.iter().filter(is_input).cloned().collect();
        walk.recipe("values", &inputs, outputs)
    }
}

/// A walk from the outputs to the inputs.
#[derive(Default)]
struct Walk {
    /// One value of each call, each after the calls that it needs.
    calls: Vec<KerasTensor>,
    seen: HashSet<usize>,
    /// The order in which layers were met, by id.
    layer_indices: HashMap<u64, usize>,
}

/// The distance of a layer from the outputs, and the order in which it was met.
type LayerPlace = (usize, Option<usize>);

/// Calls are told apart by their address.
fn address(value: &KerasTensor) -> usize {
    Arc::as_ptr(&value.call) as usize
}

impl Walk {
    /// Visits the calls before a value, then its own. A list of open calls takes the place of
    /// recursion, so that deep models do not need a deep stack.
    fn visit(&mut self, output: &KerasTensor) {
        let mut open = vec![(output.clone(), 0)];
        while let Some((value, next)) = open.last_mut() {
            if *next == 0 {
                if self.seen.contains(&address(value)) {
                    open.pop();
                    continue;
                }
                let n = self.layer_indices.len();
                self.layer_indices.entry(value.call.layer.0.id).or_insert(n);
            }
            match value.call.inputs.get(*next).cloned() {
                Some(input) => {
                    *next += 1;
                    if !self.seen.contains(&address(&input)) {
                        open.push((input, 0));
                    }
                }
                None => {
                    self.seen.insert(address(value));
                    self.calls.push(value.clone());
                    open.pop();
                }
            }
        }
    }

    fn recipe(mut self, name: &str, inputs: &[KerasTensor], outputs: &[KerasTensor]) -> Result<Recipe> {
        let (mut depths, of_calls) = self.depths();
        for input in inputs {
            // TF: an input that no output needs comes first among those of depth 0.
            if self.seen.insert(address(input)) {
                self.calls.insert(0, input.clone());
                depths.insert(input.call.layer.0.id, (0, None));
            }
        }
        let places: HashMap<usize, usize> =
            self.calls.iter().enumerate().map(|(i, value)| (address(value), i)).collect();
        let mut ids: Vec<u64> = depths.keys().copied().collect();
        ids.sort_by_key(|id| (std::cmp::Reverse(depths[id].0), depths[id].1));
        let index: HashMap<u64, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let find = |value: &KerasTensor| (places[&address(value)], value.output);
        let calls: Vec<RecipeCall> = self
            .calls
            .iter()
            .map(|value| RecipeCall {
                layer: index[&value.call.layer.0.id],
                inputs: value.call.inputs.iter().map(find).collect(),
                arguments: value.call.arguments,
                outputs: value.call.outputs.clone(),
                depth: of_calls.get(&address(value)).copied().unwrap_or(0),
            })
            .collect();
        for value in &self.calls {
            let is_input = matches!(value.call.layer.0.step, Step::Input(_));
            if is_input && !inputs.iter().any(|input| address(input) == address(value)) {
                let text = format!("model `{name}` needs {value:?}, which is not among its inputs");
                return Err(Error::config(text).at(value.call.layer.0.site).help("add it to the list of inputs"));
            }
        }
        let n_calls = self.calls.iter().map(|value| value.call.layer.0.step.n_calls()).fold(0, usize::saturating_add);
        if n_calls > MAX_CALLS {
            let text = format!("model `{name}` has {n_calls} calls of layers, with those of the models inside");
            return Err(Error::config(format!("{text}; expected at most {MAX_CALLS}")));
        }
        let layers = self.named_layers(name, &ids)?;
        Ok(Recipe {
            n_calls,
            name: name.to_string(),
            is_sequential: false,
            dialect: Dialect::Keras2,
            layers,
            calls,
            inputs: inputs.iter().map(|input| find(input).0).collect(),
            outputs: outputs.iter().map(find).collect(),
        })
    }

    /// The largest distance of each layer from the outputs with the order in which it was met, and
    /// the distance of each call.
    fn depths(&self) -> (HashMap<u64, LayerPlace>, HashMap<usize, usize>) {
        let mut of_calls: HashMap<usize, usize> = HashMap::new();
        let mut of_layers: HashMap<u64, LayerPlace> = HashMap::new();
        for value in self.calls.iter().rev() {
            let id = value.call.layer.0.id;
            let own = of_calls.get(&address(value)).copied().unwrap_or(0);
            let depth = own.max(of_layers.get(&id).map_or(0, |(depth, _)| *depth));
            of_layers.insert(id, (depth, self.layer_indices.get(&id).copied()));
            of_calls.insert(address(value), depth);
            for input in &value.call.inputs {
                let deepest = of_calls.entry(address(input)).or_insert(0);
                *deepest = (*deepest).max(depth + 1);
            }
        }
        (of_layers, of_calls)
    }

    /// Names the layers as Keras does in a fresh session: `dense`, `dense_1`, ... in the order in
    /// which they were made; inputs from `input_1` on.
    fn named_layers(&self, model: &str, ids: &[u64]) -> Result<Vec<RecipeLayer>> {
        let by_id: HashMap<u64, &KerasTensor> = self.calls.iter().map(|v| (v.call.layer.0.id, v)).collect();
        let step = |id: &u64| &by_id[id].call.layer.0.step;
        let mut made: Vec<u64> = ids.to_vec();
        made.sort_unstable();
        let mut names: HashMap<u64, String> = HashMap::new();
        let mut taken: HashSet<String> = HashSet::new();
        for id in &made {
            if let Some(name) = step(id).given_name() {
                if name.is_empty() || !taken.insert(name.to_string()) {
                    let text = format!("two layers of model `{model}` are called `{name}`; expected different names");
                    let error = Error::config(text).at(by_id[id].call.layer.0.site);
                    return Err(error.help("give one of them another name, or use one SharedLayer to share weights"));
                }
                names.insert(*id, name.to_string());
            }
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for id in &made {
            let kind = step(id).kind();
            while !names.contains_key(id) {
                let count = counts.entry(kind).or_insert(usize::from(matches!(step(id), Step::Input(_))));
                let name = if *count == 0 { kind.to_string() } else { format!("{kind}_{count}") };
                *count += 1;
                if taken.insert(name.clone()) {
                    names.insert(*id, name);
                }
            }
        }
        let layer = |id: &u64| RecipeLayer {
            name: names.remove(id).unwrap_or_default(),
            step: step(id).clone(),
            trainable: step(id).trainable(),
            site: by_id[id].call.layer.0.site,
            sharing: by_id[id].call.layer.0.sharing.clone(),
        };
        Ok(ids.iter().map(layer).collect())
    }
}
