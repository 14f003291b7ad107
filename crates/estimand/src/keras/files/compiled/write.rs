//! How a model is compiled, as JSON for Keras.

use estimand_graph::Optimizer;
use estimand_nn::config::Json;
use estimand_nn::optimizer;
use estimand_tensor::{Error, Result};
use serde_json::json;

use super::order::is_legacy;
use crate::keras::compile::{OutputMetric, OutputSettings, Settings};
use crate::keras::json::KerasVersion;
use crate::keras::model::Model;
use crate::keras::names::{self, MetricKind};

/// The arguments of Keras' `compile`. What Keras does not have is refused by name.
pub(super) fn config(model: &Model, settings: &Settings, version: KerasVersion) -> Result<Json> {
    let outputs = &settings.outputs;
    let losses = outputs.iter().map(loss).collect::<Result<Vec<Json>>>()?;
    let weights: Vec<f64> = outputs.iter().map(|output| output.weight.unwrap_or(1.0)).collect();
    let has_weights = outputs.iter().any(|output| output.weight.is_some());
    Ok(json!({
        "optimizer": optimizer(model, settings, version)?,
        "loss": for_outputs(losses),
        "loss_weights": if has_weights { weights.into() } else { Json::Null },
        "metrics": metrics(outputs, false, version)?,
        "weighted_metrics": metrics(outputs, true, version)?,
    }))
}

/// The same as legacy files have it, where classes have no modules.
pub(super) fn in_legacy_form(mut config: Json, optimizer: &Optimizer, version: KerasVersion) -> Json {
    let mut written = config["optimizer"].take();
    let registered = written["registered_name"].as_str().or(written["class_name"].as_str()).unwrap_or_default();
    let mut class = registered.to_string();
    if version == KerasVersion::Keras2 && !is_legacy(optimizer) {
        // TF: a prefix and a flag tell the newer optimizers of Keras 2 from the older ones.
        written["config"]["is_legacy_optimizer"] = false.into();
        if !class.contains('>') {
            class = format!("Custom>{class}");
        }
    }
    config["optimizer_config"] = json!({ "class_name": class, "config": written["config"] });
    config.as_object_mut().map(|config| config.remove("optimizer"));
    config
}

/// The value of a single output, or the list of those of all outputs.
fn for_outputs(mut values: Vec<Json>) -> Json {
    if values.len() == 1 { values.remove(0) } else { values.into() }
}

/// Refuses what only Estimand has.
fn checked(object: Json) -> Result<Json> {
    match object["module"] == "estimand" {
        true => {
            let class = object["class_name"].as_str().unwrap_or_default();
            Err(Error::unsupported(format!("Keras has no `{class}`")))
        }
        false => Ok(object),
    }
}

fn optimizer(model: &Model, settings: &Settings, version: KerasVersion) -> Result<Json> {
    let optimizer = &settings.optimizer;
    let name = optimizer.rule().name();
    if is_legacy(optimizer) && version == KerasVersion::Keras3 {
        let help = format!("compile with Optimizer::keras({name}::default(), ..), which Keras 3 has");
        return Err(Error::unsupported(format!("Keras 3 has no legacy optimizer {name}")).help(help));
    }
    if optimizer.is_lazy() {
        return Err(Error::unsupported(format!("Keras has no {name} that is lazy")));
    }
    if optimizer.average().is_some() && version == KerasVersion::Keras3 && model.n_updates()? == 0 {
        return Err(Error::unsupported(
            "an average of weights begins after the first step in Keras 3, and before it here",
        ));
    }
    let mut object = checked(optimizer::to_json(optimizer)?)?;
    match model.rate {
        Some(rate) => object["config"]["learning_rate"] = f64::from(rate).into(),
        None => {
            let mut schedule = checked(object["config"]["learning_rate"].take())?;
            // Keras 3 wants a text here, or its own.
            schedule["config"].as_object_mut().map(|config| config.remove("name"));
            object["config"]["learning_rate"] = schedule;
        }
    }
    Ok(object)
}

/// The names of losses by which both versions find them in all of their files. TF: in a legacy file
/// Keras 3 does not find `mse`, which it writes there.
const SPELLED: [(&str, &str); 12] = [
    ("huber_loss", "huber"),
    ("logcosh", "log_cosh"),
    ("kullback_leibler_divergence", "kl_divergence"),
    ("kld", "kl_divergence"),
    ("KLD", "kl_divergence"),
    ("mse", "mean_squared_error"),
    ("MSE", "mean_squared_error"),
    ("mae", "mean_absolute_error"),
    ("MAE", "mean_absolute_error"),
    ("mape", "mean_absolute_percentage_error"),
    ("msle", "mean_squared_logarithmic_error"),
    ("bce", "binary_crossentropy"),
];

fn loss(output: &OutputSettings) -> Result<Json> {
    let name = output.given.as_deref().filter(|name| names::is_loss(name));
    if let Some(name) = name {
        let spelled = SPELLED.iter().find(|(known, _)| *known == name).map_or(name, |(_, spelled)| *spelled);
        return Ok(spelled.into());
    }
    let place = |error: Error| error.context(format!("in the loss of output `{}`", output.name));
    let mut object = output.loss.to_json().and_then(checked).map_err(place)?;
    let reduction = &mut object["config"]["reduction"];
    match reduction.as_str() {
        // In a Keras model it is divided by the number of rows.
        Some("weighted_sum_by_nonzero_weights") => *reduction = "sum_over_batch_size".into(),
        Some(word @ ("weighted_mean" | "weighted_sum" | "elements")) => {
            return Err(place(Error::unsupported(format!("Keras has no reduction `{word}`"))));
        }
        _ => {}
    }
    Ok(object)
}

fn metrics(outputs: &[OutputSettings], is_weighted: bool, version: KerasVersion) -> Result<Json> {
    let of_output = |output: &OutputSettings| -> Result<Json> {
        let wanted = output.metrics.iter().filter(|metric| metric.is_weighted == is_weighted);
        let place = |metric: &OutputMetric| format!("in the metric `{}` of output `{}`", metric.name, output.name);
        let written = wanted.map(|wanted| metric(wanted, version).map_err(|error| error.context(place(wanted))));
        Ok(written.collect::<Result<Vec<Json>>>()?.into())
    };
    if !outputs.iter().any(|output| output.metrics.iter().any(|metric| metric.is_weighted == is_weighted)) {
        return Ok(Json::Null);
    }
    Ok(for_outputs(outputs.iter().map(of_output).collect::<Result<_>>()?))
}

/// Names of losses that are not names of metrics in one of the versions, and short names, which a
/// metric of a legacy file would lose.
const NOT_METRICS: [&str; 12] = [
    "bce",
    "kld",
    "KLD",
    "kullback_leibler_divergence",
    "log_cosh",
    "logcosh",
    "mse",
    "MSE",
    "mae",
    "MAE",
    "mape",
    "msle",
];

fn metric(metric: &OutputMetric, version: KerasVersion) -> Result<Json> {
    let value = match &metric.kind {
        MetricKind::Crossentropy if version == KerasVersion::Keras3 => {
            let text = format!("Keras 3 has no metric `{}`", metric.name);
            return Err(Error::unsupported(text).help("name the cross entropy, such as binary_crossentropy"));
        }
        MetricKind::Accuracy | MetricKind::Crossentropy => return Ok(metric.name.as_str().into()),
        MetricKind::Value(value) => value,
    };
    match metric.given.as_deref().and_then(|given| Some((given, names::metric_class(given)?))) {
        Some((_, "Huber")) if version == KerasVersion::Keras2 => Ok("huber".into()),
        Some((_, "Huber")) => Err(Error::unsupported("Keras 3 has no metric `huber`")),
        Some((given, class)) if NOT_METRICS.contains(&given) => mean_of(class, json!({ "name": given })),
        Some((given, _)) => Ok(given.into()),
        None => {
            let object = value.to_json()?;
            if object["class_name"] != "MeanLoss" {
                return checked(object);
            }
            let loss = checked(object["config"]["loss"].clone())?;
            let mut config = loss["config"].clone();
            if let Some(fields) = config.as_object_mut() {
                // The classes of metrics have fewer fields, whose defaults are those of the losses.
                fields.retain(|key, value| key != "reduction" && !value.is_null() && !(key == "axis" && *value == -1));
            }
            config["name"] = metric.name.as_str().into();
            mean_of(loss["class_name"].as_str().unwrap_or_default(), config)
        }
    }
}

/// Keras' metric that is the mean of a loss.
fn mean_of(loss: &str, config: Json) -> Result<Json> {
    let class = match loss {
        "LogCosh" => "LogCoshError",
        "Huber" => return Err(Error::unsupported("Keras has no metric class `Huber`")),
        class => class,
    };
    Ok(json!({ "module": "keras.metrics", "class_name": class, "config": config, "registered_name": null }))
}
