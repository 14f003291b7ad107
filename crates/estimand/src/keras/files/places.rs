//! Where a `.weights.h5` file keeps weights: by class and order of the layers, not by their names.
//!
//! Keras walks over the attributes of a model: `layers/dense_1/vars/0` is the first variable of the
//! second layer of the class `Dense`, `layers/lstm/cell/vars/0` that of the cell of an LSTM.

use std::collections::HashMap;

use estimand_nn::config::Json;
use estimand_tensor::Result;

use crate::keras::json::KerasVersion;
use crate::keras::model::Model;
use crate::keras::recipe::Recipe;
use crate::keras::symbol::Step;

/// A group of a file whose `vars` are weights of a layer.
pub(super) struct Place {
    /// The name of the layer.
    pub layer: String,
    pub path: String,
    /// The path in a file of the other version of Keras.
    pub other: String,
    /// The number of weights.
    pub n: usize,
}

/// The places of all weights, in the order of `get_weights`.
pub(super) fn of(model: &Model, version: KerasVersion) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    let counts: Vec<usize> = model.recipe_counts();
    collect(&model.recipe, &counts, "layers", version, &mut places)?;
    Ok(places)
}

/// Whether a path leads to a list of layers or cells, which is no layer itself.
pub(super) fn is_list(path: &str) -> bool {
    ["layers", "cells"].contains(&path.rsplit('/').next().unwrap_or_default())
}

/// The layers of one model. `counts` are the numbers of weights of its layers.
fn collect(
    recipe: &Recipe,
    counts: &[usize],
    path: &str,
    version: KerasVersion,
    places: &mut Vec<Place>,
) -> Result<()> {
    let mut names = Names::default();
    for (layer, &n) in recipe.layers.iter().zip(counts) {
        let kind = match &layer.step {
            Step::Input(_) => "input_layer".to_string(),
            Step::Layer(inner) => inner.kind().to_string(),
            Step::Model(recipe) => recipe.class_name().to_lowercase(),
        };
        let path = format!("{path}/{}", names.next(&kind));
        match &layer.step {
            Step::Input(_) => {}
            Step::Layer(_) if n == 0 => {}
            Step::Layer(inner) => {
                for (part, n) in parts(&inner.to_json()?, n) {
                    let at = |version| format!("{path}{}", spelled(&part, version));
                    let (own, other) = match version {
                        KerasVersion::Keras2 => (at(KerasVersion::Keras2), at(KerasVersion::Keras3)),
                        KerasVersion::Keras3 => (at(KerasVersion::Keras3), at(KerasVersion::Keras2)),
                    };
                    places.push(Place { layer: layer.name.clone(), path: own, other, n });
                }
            }
            Step::Model(recipe) => {
                let model = Model::of(Recipe::clone(recipe))?;
                collect(recipe, &model.recipe_counts(), &format!("{path}/layers"), version, places)?;
            }
        }
    }
    Ok(())
}

/// `dense`, `dense_1`, and so on.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn next(&mut self, kind: &str) -> String {
        let n = self.0.entry(kind.to_string()).or_insert(0);
        *n += 1;
        if *n == 1 { kind.to_string() } else { format!("{kind}_{}", *n - 1) }
    }
}

/// The parts of a layer with `n` weights: paths that begin with `/`, or are empty, and how many
/// weights each has.
fn parts(json: &Json, n: usize) -> Vec<(String, usize)> {
    let config = &json["config"];
    let within = |name: &str, inner: &Json, n: usize| -> Vec<(String, usize)> {
        parts(inner, n).into_iter().map(|(path, n)| (format!("/{name}{path}"), n)).collect()
    };
    match json["class_name"].as_str().unwrap_or_default() {
        "Bidirectional" => {
            let both = ["forward_layer", "backward_layer"];
            both.into_iter().flat_map(|direction| within(direction, &config["layer"], n / 2)).collect()
        }
        "TimeDistributed" => within("layer", &config["layer"], n),
        "RNN" => within("cell", &config["cell"], n),
        "LSTM" | "GRU" | "SimpleRNN" | "ConvLSTM1D" | "ConvLSTM2D" | "ConvLSTM3D" => vec![("/cell".to_string(), n)],
        "StackedRNNCells" => {
            let mut names = Names::default();
            let cells = config["cells"].as_array().into_iter().flatten();
            cells
                .flat_map(|cell| {
                    let kind = match cell["class_name"].as_str().unwrap_or_default() {
                        "LSTMCell" => "lstm_cell",
                        "GRUCell" => "gru_cell",
                        "SimpleRNNCell" => "simple_rnn_cell",
                        other => other,
                    };
                    let n = 2 + usize::from(cell["config"]["use_bias"] != Json::Bool(false));
                    within(&format!("cells/{}", names.next(kind)), cell, n)
                })
                .collect()
        }
        "MultiHeadAttention" => {
            let denses = ["query_dense", "key_dense", "value_dense", "output_dense"];
            denses.into_iter().map(|dense| (format!("/{dense}"), n / 4)).collect()
        }
        _ => vec![(String::new(), n)],
    }
}

/// The spelling of a part: the layers of attention have an underscore in Keras 2.
fn spelled(part: &str, version: KerasVersion) -> String {
    match version {
        KerasVersion::Keras2 if part.ends_with("_dense") => {
            let (before, name) = part.rsplit_once('/').unwrap_or(("", part));
            format!("{before}/_{name}")
        }
        _ => part.to_string(),
    }
}
