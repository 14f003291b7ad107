//! Which weight of a file is which variable of a layer.
//!
//! Keras lists the weights of a layer that are trained, then the others, and reads them in the same
//! order. The order of a model inside depends on the layers of it that are frozen, so names decide
//! where they can. Of a layer `norm` in a model `base` in a model `mid`, Keras 3 writes
//! `mid/base/norm/gamma`, `base/norm/gamma` or `norm/gamma`, perhaps after the name of the whole
//! model. tf.keras 2.15 writes `norm/gamma`.

use std::collections::HashMap;

use estimand_tensor::{Error, Result};
use indexmap::IndexSet;

use super::stored::Stored;
use crate::keras::model::ModelLayer;

/// A variable and the name of its weight in a file.
type Pair<'a> = (&'a str, &'a str);

/// The weights of a layer as Keras lists them: first those that are trained.
pub(super) fn as_listed<'a>(layer: &ModelLayer<'a>) -> Vec<&'a str> {
    let mut all: Vec<&str> = layer.variables().iter().map(String::as_str).collect();
    all.sort_by_key(|name| !layer.model().spec_of(name).trainable);
    all
}

/// The names in a file of a layer's weights, in our order.
pub(super) fn in_order<'a>(layer: &ModelLayer<'a>, stored: &'a Stored<'_>) -> Result<Vec<&'a str>> {
    let (variables, weights) = (layer.variables(), &stored.weights);
    if variables.len() != weights.len() {
        let text = format!("the file has {} weights; the layer has {}", weights.len(), variables.len());
        return Err(Error::config(text).help(format!("those of the file are {}", weights.join(", "))));
    }
    let listed: Vec<Pair<'_>> = as_listed(layer).into_iter().zip(weights.iter().map(String::as_str)).collect();
    let pairs = if layer.is_model() { of_model(layer, stored, listed)? } else { listed };
    let weights: HashMap<&str, &str> = pairs.into_iter().collect();
    Ok(variables.iter().filter_map(|variable| weights.get(variable.as_str()).copied()).collect())
}

/// The weights of a model inside. They begin as Keras pairs them: by order.
fn of_model<'a>(layer: &ModelLayer<'a>, stored: &Stored<'_>, listed: Vec<Pair<'a>>) -> Result<Vec<Pair<'a>>> {
    let inner = layer.inner_paths();
    // Of each variable, the path of its layer in the model.
    let places: Vec<&str> = listed.iter().map(|(variable, _)| place(variable, layer.name(), &inner)).collect();
    let paths: IndexSet<&str> = places.iter().copied().collect();
    let nearest: Vec<Vec<&str>> = listed.iter().map(|(_, weight)| nearest(weight, &stored.name, &paths)).collect();
    let fits = |pairs: &[Pair<'_>]| -> Result<bool> {
        for (variable, weight) in pairs {
            if stored.shape(weight)? != layer.model().spec_of(variable).dims {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let agrees = match by_name(&listed, &places, &nearest) {
        // With the names of other layers, the order can be right.
        Some(named) if fits(&named)? || !fits(&listed)? => return Ok(named),
        None if nearest.iter().all(|paths| !paths.is_empty()) => {
            places.iter().zip(&nearest).all(|(place, paths)| paths.contains(place))
        }
        _ => !is_mixed(&listed),
    };
    if agrees {
        return Ok(listed);
    }
    let text = "the file has the weights in another order than the model, and their names do not tell which is which";
    let weights = stored.weights.join(", ");
    Err(Error::config(text).help(format!(
        "give the layers the names that they have in the file, or freeze those that were frozen when it was saved; \
         the file has {weights}"
    )))
}

/// The path in a model of the layer that has a variable.
fn place<'a>(variable: &'a str, model: &str, inner: &[String]) -> &'a str {
    let rest = variable.strip_prefix(model).and_then(|rest| rest.strip_prefix('/')).unwrap_or(variable);
    let is_of = |path: &&String| rest.strip_prefix(path.as_str()).is_some_and(|name| name.starts_with('/'));
    let n = inner.iter().filter(is_of).map(String::len).max().unwrap_or(rest.len());
    &rest[..n]
}

/// The layers of a model, by their paths, that the name of a weight agrees with most.
fn nearest<'a>(weight: &str, model: &str, paths: &IndexSet<&'a str>) -> Vec<&'a str> {
    let weight: Vec<&str> = weight.split('/').collect();
    let agreement = |path: &str| {
        let path: Vec<&str> = model.split('/').chain(path.split('/')).collect();
        let (layer, n) = (&weight[..weight.len() - 1], path.len());
        match layer.windows(n).any(|part| part == path) {
            true => n,
            false => (1..n).rev().find(|&n| layer.starts_with(&path[path.len() - n..])).unwrap_or(0),
        }
    };
    let found: Vec<(usize, &str)> = paths.iter().map(|path| (agreement(path), *path)).collect();
    let most = found.iter().map(|(n, _)| *n).max().unwrap_or(0);
    found.into_iter().filter(|(n, _)| *n == most && most > 0).map(|(_, path)| path).collect()
}

/// Pairs that agree with all names, if there is one way to make them. A layer has its weights in
/// the same order everywhere.
fn by_name<'a>(listed: &[Pair<'a>], places: &[&str], nearest: &[Vec<&str>]) -> Option<Vec<Pair<'a>>> {
    let mut variables: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for ((variable, _), place) in listed.iter().zip(places).rev() {
        variables.entry(place).or_default().push(variable);
    }
    let pair = |((_, weight), paths): (&Pair<'a>, &Vec<&str>)| match paths[..] {
        [path] => variables.get_mut(path)?.pop().map(|variable| (variable, *weight)),
        _ => None,
    };
    listed.iter().zip(nearest).map(pair).collect()
}

/// Whether weights and variables have the same last names, such as `kernel`, in other orders.
fn is_mixed(pairs: &[Pair<'_>]) -> bool {
    fn last(name: &str) -> &str {
        let name = name.strip_suffix(":0").unwrap_or(name);
        name.rsplit('/').next().unwrap_or(name)
    }
    let (mut ours, mut theirs): (Vec<&str>, Vec<&str>) = pairs.iter().map(|(a, b)| (last(a), last(b))).unzip();
    let differ = ours != theirs;
    ours.sort_unstable();
    theirs.sort_unstable();
    differ && ours == theirs
}
