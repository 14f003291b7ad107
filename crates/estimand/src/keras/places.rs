//! Where the files of Keras keep weights: by order of the layers, not by their names.
//!
//! Keras walks over the attributes of a model. In a `.weights.h5`, `layers/dense_1/vars/0` is the
//! first variable of the second layer of the class `Dense`, and `layers/lstm/cell/vars/0` that of
//! the cell of an LSTM. In a checkpoint of tf.keras, `layer_with_weights-1/kernel` is the kernel of
//! the second layer that has weights.

use std::collections::HashMap;

use estimand_graph::Graph;
use estimand_nn::config::Json;
use estimand_tensor::{Mode, Result};

use crate::keras::json::KerasVersion;
use crate::keras::model::Model;
use crate::keras::recipe::{Recipe, Step};
use crate::keras::replay::{Flags, Replay};

/// The place of some weights of a layer.
pub(super) struct Place {
    /// The name of the layer.
    pub layer: String,
    /// The group of a `.weights.h5` whose `vars` they are.
    #[cfg_attr(not(feature = "keras_files"), allow(dead_code, reason = "only HDF5 needs it"))]
    pub path: String,
    /// The path in a file of the other version of Keras.
    #[cfg_attr(not(feature = "keras_files"), allow(dead_code, reason = "only HDF5 needs it"))]
    pub other: String,
    /// The attributes on the way to them in a checkpoint of objects.
    pub object: String,
    /// The number of weights.
    pub n: usize,
}

/// The places of all weights, in the order of `get_weights`.
pub(super) fn of(model: &Model, version: KerasVersion) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    let counts: Vec<usize> = model.recipe_counts();
    collect(&model.recipe, &counts, ("layers", ""), version, &mut places)?;
    Ok(places)
}

/// Whether a path leads to a list of layers or cells, which is no layer itself.
#[cfg(feature = "keras_files")]
pub(super) fn is_list(path: &str) -> bool {
    ["layers", "cells"].contains(&path.rsplit('/').next().unwrap_or_default())
}

/// The layers of one model. `counts` are the numbers of weights of its layers, and the paths are
/// those of the model in a `.weights.h5` and in a checkpoint of objects.
fn collect(
    recipe: &Recipe,
    counts: &[usize],
    (path, object): (&str, &str),
    version: KerasVersion,
    places: &mut Vec<Place>,
) -> Result<()> {
    let (mut names, mut n_weighted) = (Names::default(), 0);
    for (layer, &n) in recipe.layers.iter().zip(counts) {
        // They are no layers of Keras 3, and in Keras 2 they have a class of their own.
        if matches!(layer.step, Step::Operation(_)) {
            continue;
        }
        let path = format!("{path}/{}", names.next(&group_of(&layer.step)));
        let object = format!("{object}/layer_with_weights-{n_weighted}");
        n_weighted += usize::from(n > 0);
        match &layer.step {
            Step::Input(_) | Step::Operation(_) => {}
            Step::Layer(_) if n == 0 => {}
            Step::Layer(inner) => {
                for Part { path: part, object: attributes, n } in parts(&inner.to_json()?, n) {
                    let at = |version| format!("{path}{}", spelled(&part, version));
                    let (own, other) = match version {
                        KerasVersion::Keras2 => (at(KerasVersion::Keras2), at(KerasVersion::Keras3)),
                        KerasVersion::Keras3 => (at(KerasVersion::Keras3), at(KerasVersion::Keras2)),
                    };
                    let (layer, object) = (layer.name.clone(), format!("{object}{attributes}"));
                    places.push(Place { layer, path: own, other, object, n });
                }
            }
            Step::Model(recipe) => {
                let layers = format!("{path}/layers");
                collect(recipe, &counts_of(recipe)?, (&layers, &object), version, places)?;
            }
        }
    }
    Ok(())
}

/// The number of weights of each layer of a model.
fn counts_of(recipe: &Recipe) -> Result<Vec<usize>> {
    let graph = Graph::with_mode(Mode::Train);
    let mut replay = Replay::new(recipe);
    replay.call(&graph, &recipe.placeholders(&graph), Flags::default());
    graph.check()?;
    Ok(replay.variables().iter().map(Vec::len).collect())
}

/// The paths of all layers in a `.weights.h5`, those of models inside among them.
#[cfg(feature = "keras_files")]
pub(super) fn paths(recipe: &Recipe) -> Vec<(String, &Step)> {
    fn collect<'a>(recipe: &'a Recipe, path: &str, found: &mut Vec<(String, &'a Step)>) {
        let mut names = Names::default();
        for layer in recipe.layers.iter().filter(|layer| !matches!(layer.step, Step::Operation(_))) {
            let path = format!("{path}/{}", names.next(&group_of(&layer.step)));
            match &layer.step {
                Step::Model(inner) => collect(inner, &format!("{path}/layers"), found),
                step => found.push((path, step)),
            }
        }
    }
    let mut found = Vec::new();
    collect(recipe, "layers", &mut found);
    found
}

/// The name of the group of a layer, without a number.
fn group_of(step: &Step) -> String {
    match step {
        Step::Input(_) => "input_layer".to_string(),
        Step::Layer(layer) => layer.kind().to_string(),
        Step::Operation(operation) => operation.kind().to_string(),
        Step::Model(recipe) => recipe.class_name().to_lowercase(),
    }
}

/// `dense`, `dense_1`, and so on.
#[derive(Default)]
pub(super) struct Names(HashMap<String, usize>);

impl Names {
    pub(super) fn next(&mut self, kind: &str) -> String {
        let n = self.0.entry(kind.to_string()).or_insert(0);
        *n += 1;
        if *n == 1 { kind.to_string() } else { format!("{kind}_{}", *n - 1) }
    }
}

/// A part of a layer. Its paths begin with `/`, or are empty.
struct Part {
    path: String,
    /// The path in a checkpoint of objects.
    object: String,
    /// The number of its weights.
    n: usize,
}

/// The parts of a layer with `n` weights.
fn parts(json: &Json, n: usize) -> Vec<Part> {
    let config = &json["config"];
    let within = |(name, attribute): (&str, &str), inner: &Json, n: usize| -> Vec<Part> {
        let inside = |Part { path, object, n }| Part {
            path: format!("/{name}{path}"),
            object: format!("/{attribute}{object}"),
            n,
        };
        parts(inner, n).into_iter().map(inside).collect()
    };
    match json["class_name"].as_str().unwrap_or_default() {
        "Bidirectional" => {
            let both = ["forward_layer", "backward_layer"];
            both.into_iter().flat_map(|direction| within((direction, direction), &config["layer"], n / 2)).collect()
        }
        "TimeDistributed" => within(("layer", "layer"), &config["layer"], n),
        "RNN" => within(("cell", "cell"), &config["cell"], n),
        "LSTM" | "GRU" | "SimpleRNN" | "ConvLSTM1D" | "ConvLSTM2D" | "ConvLSTM3D" => {
            vec![Part { path: "/cell".to_string(), object: "/cell".to_string(), n }]
        }
        "StackedRNNCells" => {
            let mut names = Names::default();
            let cells = config["cells"].as_array().into_iter().flatten().enumerate();
            cells
                .flat_map(|(i, cell)| {
                    let kind = match cell["class_name"].as_str().unwrap_or_default() {
                        "LSTMCell" => "lstm_cell",
                        "GRUCell" => "gru_cell",
                        "SimpleRNNCell" => "simple_rnn_cell",
                        other => other,
                    };
                    let n = 2 + usize::from(cell["config"]["use_bias"] != Json::Bool(false));
                    within((&format!("cells/{}", names.next(kind)), &format!("cells/{i}")), cell, n)
                })
                .collect()
        }
        "MultiHeadAttention" => {
            let denses = ["query_dense", "key_dense", "value_dense", "output_dense"];
            let part = |dense| Part { path: format!("/{dense}"), object: format!("/_{dense}"), n: n / 4 };
            denses.into_iter().map(part).collect()
        }
        _ => vec![Part { path: String::new(), object: String::new(), n }],
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
