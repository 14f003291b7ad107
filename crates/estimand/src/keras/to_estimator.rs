//! `model_to_estimator`: a compiled model as an Estimator.

use std::panic::Location;

use estimand_graph::{Optimizer, Tensor};
use estimand_nn::config::CustomObjects;
use estimand_nn::{Inputs, metric, optimizer};
use estimand_tensor::{Array, Error, Mode, Result};

use super::compile::Settings;
use super::layout::as_input;
use super::model::Model;
use super::programs::{Computed, computed};
use super::recipe::Recipe;
use super::replay::{Flags, Replay, fits};
use crate::estimator::EstimatorBuilder;
use crate::{Estimator, EstimatorSpec, ModelFnContext};

/// Makes an Estimator of a compiled model, as `tf.keras.estimator.model_to_estimator` does.
///
/// The Estimator begins with the weights of the model, so it predicts like the model before it is
/// trained. It has the model's losses and metrics. Features are found by the names of inputs and
/// labels by those of outputs; a model with one of them takes the only feature or label.
/// Predictions have the names of outputs.
///
/// Its optimizer is the one of the legacy generation with the same settings, as in TensorFlow.
/// Settings that this generation does not have are refused by name.
///
/// ```
/// use estimand::keras::{Compile, Sequential, model_to_estimator};
/// use estimand::prelude::*;
///
/// let mut model = Sequential::new().input([1]).add(Dense::new(1)).build()?;
/// model.compile(Compile::new("sgd", "mse").metric("mae"))?;
/// let estimator = model_to_estimator(model)?.build()?;
/// let rows = [("dense_input", Array::from([1f32, 2.0])), ("y", Array::from([3f32, 5.0]))];
/// let data = Dataset::from_arrays(rows).label("y").repeat(100).batch(2);
/// estimator.train(&data)?;
/// assert!(estimator.evaluate(&data)?["mae"] < 0.5);
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn model_to_estimator(model: Model) -> Result<EstimatorBuilder> {
    let site = Location::caller();
    let place = |error: Error| error.context(format!("in model_to_estimator of model `{}`", model.name()));
    let settings = model.check_compiled().map_err(place)?.clone();
    let legacy = legacy_of(&settings.optimizer).map_err(place)?;
    let names: Vec<String> = model.weight_names().map(str::to_string).collect();
    let weights: Vec<(String, Array)> = names.into_iter().zip(model.get_weights()?).collect();
    let shared = Shared { recipe: model.recipe, trainable: model.trainable, settings, legacy, weights };
    Ok(Estimator::new(move |cx| shared.spec(cx)).made_at(site))
}

/// What every graph of the Estimator is made from.
struct Shared {
    recipe: Recipe,
    trainable: bool,
    settings: Settings,
    legacy: Optimizer,
    weights: Vec<(String, Array)>,
}

impl Shared {
    fn spec(&self, cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
        let (graph, name) = (cx.graph(), &self.recipe.name);
        let found = columns(cx.features(), &self.recipe.input_names(), "input", "feature")?;
        let inputs: Vec<Tensor> = found.iter().zip(self.recipe.input_specs()).map(|(t, s)| as_input(t, s)).collect();
        fits(&self.recipe, name, &inputs)?;
        let flags = Flags::of_model(None, self.trainable);
        let outputs = Replay::new(&self.recipe).call_masked(graph, &inputs, flags);
        graph.check()?;
        let names = self.recipe.output_names();
        let mut spec = EstimatorSpec::new(cx);
        for (name, output) in names.iter().zip(&outputs) {
            spec = spec.prediction(name, &output.tensor);
        }
        for (name, value) in &self.weights {
            spec = spec.initial_value(name, value.clone());
        }
        if cx.mode() == Mode::Predict {
            return Ok(spec);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let labels = columns(cx.labels(), &names, "output", "label")?;
        let _line = graph.line(self.settings.site, file!());
        let Computed { total, losses, metrics } = computed(graph, &self.settings, &labels, &outputs, cx.weights())?;
        for (name, loss) in &losses[1..] {
            spec = spec.metric(name, metric::mean(loss, None));
        }
        for (name, metric) in metrics {
            spec = spec.metric(name, metric);
        }
        Ok(spec.loss(&total).optimizer(self.legacy.clone()))
    }
}

/// The features or labels of a model's inputs or outputs, by name. A single one needs no name.
fn columns(found: &Inputs, names: &[&str], what: &str, word: &str) -> Result<Vec<Tensor>> {
    if names.len() == 1 && found.names().len() == 1 {
        return Ok(vec![found.single()]);
    }
    let column = |name: &&str| match found.get(name) {
        Some(_) => Ok(found.dense(name)),
        None => {
            let known: Vec<&str> = found.names().collect();
            let text =
                format!("{what} `{name}` of the model has no {word} in the data, which has {}", known.join(", "));
            Err(Error::config(text).help(format!("name the {word} as the {what}, or the {what} as the {word}")))
        }
    };
    names.iter().map(column).collect()
}

/// TF: the optimizer of the legacy generation with the same settings
/// (`convert_to_legacy_optimizer`).
fn legacy_of(given: &Optimizer) -> Result<Optimizer> {
    let refused = |option: &str| {
        let text = format!("the optimizer has `{option}`, which those of Estimators do not have");
        Err(Error::unsupported(text).help(format!("leave `{option}` out, or train the model with fit")))
    };
    if given.average().is_some() {
        return refused("use_ema");
    }
    if given.decay().is_some() {
        return refused("weight_decay");
    }
    // AdamW, Lion and Adafactor have one generation alone. A rule of one's own cannot be written
    // and stays.
    let Ok(mut document) = optimizer::to_json(given) else { return Ok(given.clone()) };
    if let Some(config) = document["config"].as_object_mut() {
        config.remove("use_ema");
    }
    optimizer::from_json(&document.to_string(), &CustomObjects::new())
}
