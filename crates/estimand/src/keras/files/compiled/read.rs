//! How a model was compiled, from JSON: `compile_config` of a `.keras` file, `training_config` of a
//! legacy file.

use estimand_graph::Optimizer;
use estimand_nn::config::{CustomObjects, Field, Json, Node};
use estimand_nn::{loss, metric};
use estimand_tensor::Result;
use serde_json::json;

use crate::keras::compile::{Compile, LossChoice, MetricChoice};
use crate::keras::json::KerasVersion;
use crate::keras::model::Model;
use crate::keras::names;
use crate::premade::OptimizerChoice;

/// The largest number of metrics of all outputs. Files with more are damaged.
const MAX_METRICS: usize = 10_000;

/// Reads the arguments of `compile`. `is_trained` tells whether the optimizer has made updates.
pub(super) fn compile(
    model: &Model,
    document: &Json,
    version: KerasVersion,
    is_trained: bool,
    objects: &CustomObjects,
) -> Result<Compile> {
    let root = Node::root(document, objects);
    let outputs = model.output_names();
    let optimizer = optimizer(&root, is_trained)?;
    let losses = losses(&root.field("loss")?, &outputs)?;
    let mut compile = Compile::new(optimizer, losses[0].clone());
    for (output, loss) in outputs.iter().zip(losses) {
        compile = compile.loss_of(output, loss);
    }
    if let Some(node) = field(&root, "loss_weights")? {
        for (i, weight) in loss_weights(&node, &outputs)? {
            compile = compile.loss_weight(&outputs[i], weight);
        }
    }
    for (key, is_weighted) in [("metrics", false), ("weighted_metrics", true)] {
        let Some(node) = field(&root, key)? else { continue };
        for (i, node) in metrics(&node, &outputs, version)? {
            // TF: Keras 2 writes the metrics of several outputs with the names of the outputs.
            let has_prefix = version == KerasVersion::Keras2 && outputs.len() > 1;
            let prefix = has_prefix.then(|| format!("{}_", outputs[i]));
            let metric = metric(&node, prefix.as_deref())?;
            compile = match is_weighted {
                true => compile.weighted_metric_of(&outputs[i], metric),
                false => compile.metric_of(&outputs[i], metric),
            };
        }
    }
    Ok(compile)
}

/// A field, unless it is `null`.
fn field<'a>(node: &Node<'a>, key: &str) -> Result<Option<Node<'a>>> {
    Ok(node.get(key)?.filter(|node| !node.is_null()))
}

fn optimizer(root: &Node<'_>, is_trained: bool) -> Result<OptimizerChoice> {
    let node = match field(root, "optimizer_config")? {
        Some(node) => node,
        None => root.field("optimizer")?,
    };
    if let Some(name) = node.value().as_str() {
        return Ok(name.into());
    }
    let mut document = node.value().clone();
    // TF: in legacy files of tf.keras 2.11 and later, the newer optimizers have this prefix.
    if let Some(class) = document["class_name"].as_str().and_then(|class| class.strip_prefix("Custom>")) {
        document["class_name"] = class.to_string().into();
    }
    if let Some(config) = document.get_mut("config").and_then(Json::as_object_mut) {
        // Whether XLA compiles the updates does not change them.
        config.remove("jit_compile");
        // The average of Keras 3 begins otherwise than that of tf.keras 2.15, and is the same then.
        if is_trained && config.get("loss_scale_factor").is_some_and(Json::is_null) {
            config.remove("loss_scale_factor");
        }
    }
    let read = Optimizer::read(&Node::root(&document, root.custom_objects()));
    read.map(OptimizerChoice::from).map_err(|error| error.context(format!("in {}", node.path())))
}

/// Whether a value is a class or a function, and not a table of outputs.
fn is_object(node: &Node<'_>) -> bool {
    node.value().get("class_name").is_some()
}

/// The elements of a list or of a tuple of Python.
fn list<'a>(node: &Node<'a>) -> Result<Option<Vec<Node<'a>>>> {
    match node.value() {
        Json::Array(_) => node.elements().map(Some),
        Json::Object(_) if node.value()["class_name"] == "__tuple__" => {
            let config = node.get("config")?;
            let items = config.as_ref().unwrap_or(node).field("items")?;
            items.elements().map(Some)
        }
        _ => Ok(None),
    }
}

/// The values of a table by the names of outputs, or those of a list, one for each output.
fn by_output<'a>(node: &Node<'a>, outputs: &[String]) -> Result<Option<Vec<Option<Node<'a>>>>> {
    if let Some(all) = list(node)? {
        if all.len() != outputs.len() {
            let text = format!("the list has {} entries; the model has {} outputs", all.len(), outputs.len());
            return Err(node.refuse(text));
        }
        return Ok(Some(all.into_iter().map(|node| Some(node).filter(|node| !node.is_null())).collect()));
    }
    let Some(table) = node.value().as_object().filter(|_| !is_object(node)) else { return Ok(None) };
    if let Some(stranger) = table.keys().find(|key| !outputs.contains(key)) {
        let names = outputs.join(", ");
        return Err(node.refuse(format!("`{stranger}` is no output of the model; its outputs are {names}")));
    }
    outputs.iter().map(|output| field(node, output)).collect::<Result<Vec<_>>>().map(Some)
}

fn losses(node: &Node<'_>, outputs: &[String]) -> Result<Vec<LossChoice>> {
    let Some(all) = by_output(node, outputs)? else {
        let choice = loss(node)?;
        return Ok(vec![choice; outputs.len()]);
    };
    let of = |(output, found): (&String, Option<Node<'_>>)| match found {
        Some(found) => loss(&found),
        None => Err(node.refuse(format!("output `{output}` has no loss; Estimand trains every output"))),
    };
    outputs.iter().zip(all).map(of).collect()
}

fn loss(node: &Node<'_>) -> Result<LossChoice> {
    let found = node.object()?;
    match found.config {
        None if names::is_loss(found.class) => Ok(found.class.into()),
        _ => loss::read(node).map(LossChoice::new),
    }
}

/// The weights of losses, by the number of the output.
fn loss_weights(node: &Node<'_>, outputs: &[String]) -> Result<Vec<(usize, f64)>> {
    match by_output(node, outputs)? {
        Some(all) => {
            let given = all.iter().enumerate().filter_map(|(i, node)| node.as_ref().map(|node| (i, node)));
            given.map(|(i, node)| Ok((i, f64::read(node)?))).collect()
        }
        None => {
            let weight = f64::read(node)?;
            Ok((0..outputs.len()).map(|i| (i, weight)).collect())
        }
    }
}

/// The metrics, each with the number of its output.
fn metrics<'a>(node: &Node<'a>, outputs: &[String], version: KerasVersion) -> Result<Vec<(usize, Node<'a>)>> {
    let is_flat = |all: &[Node<'_>]| {
        all.iter().all(|node| !node.value().is_array() && (!node.value().is_object() || is_object(node)))
    };
    let mut found = Vec::new();
    let all = list(node)?;
    if let Some(n) = all.as_ref().map(Vec::len).filter(|n| n.saturating_mul(outputs.len()) > MAX_METRICS) {
        return Err(node.refuse(format!("there are {n} metrics of {} outputs; expected fewer", outputs.len())));
    }
    match all {
        // The list of the only output. TF: a legacy file has a list of such lists.
        Some(all) if outputs.len() == 1 => {
            for node in all {
                found.extend(several(&node)?.into_iter().map(|node| (0, node)));
            }
            return Ok(found);
        }
        // TF: Keras 2 has the metrics of a plain list for every output, Keras 3 one for each.
        Some(all) if version == KerasVersion::Keras2 && is_flat(&all) => {
            for i in 0..outputs.len() {
                found.extend(all.iter().filter(|node| !node.is_null()).map(|node| (i, node.clone())));
            }
            return Ok(found);
        }
        _ => {}
    }
    let Some(all) = by_output(node, outputs)? else {
        return Ok((0..outputs.len()).map(|i| (i, node.clone())).collect());
    };
    for (i, node) in all.into_iter().enumerate().filter_map(|(i, node)| node.map(|node| (i, node))) {
        found.extend(several(&node)?.into_iter().map(|node| (i, node)));
    }
    Ok(found)
}

/// One metric or a list of them.
fn several<'a>(node: &Node<'a>) -> Result<Vec<Node<'a>>> {
    let all = list(node)?.unwrap_or_else(|| vec![node.clone()]);
    Ok(all.into_iter().filter(|node| !node.is_null()).collect())
}

fn metric(node: &Node<'_>, prefix: Option<&str>) -> Result<MetricChoice> {
    let found = node.object()?;
    let Some(config) = found.config else {
        return match names::is_metric(found.class) {
            true => Ok(found.class.into()),
            false => metric::read(node).map(MetricChoice::new),
        };
    };
    let mut document = json!({ "class_name": found.class, "config": config.value() });
    // TF: the mean of a function. Its other fields are the function's arguments.
    if found.class == "MeanMetricWrapper" {
        let function = config.field("fn")?;
        let name = function.object()?.class;
        let Some(class) = names::metric_class(name) else {
            return Err(function.refuse(format!("there is no metric that is the mean of `{name}`")));
        };
        document["class_name"] = class.into();
        document["config"].as_object_mut().map(|config| config.remove("fn"));
    }
    let plain = |name: &str| prefix.and_then(|prefix| name.strip_prefix(prefix)).map(str::to_string);
    if let Some(name) = document["config"]["name"].as_str().and_then(plain)
        && let Some(config) = document.get_mut("config").and_then(Json::as_object_mut)
    {
        config.insert("name".to_string(), name.into());
    }
    let read = metric::read(&Node::root(&document, node.custom_objects()));
    read.map(MetricChoice::new).map_err(|error| error.context(format!("in {}", node.path())))
}
