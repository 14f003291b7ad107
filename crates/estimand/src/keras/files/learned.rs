//! Reads and writes the vocabularies, weights of terms and boundaries of adapted layers. A `.keras`
//! file of Keras does not hold them in `config.json`.
//!
//! `adapt` of Keras leaves the terms of a lookup in `assets/layers/string_lookup/vocabulary.txt`,
//! the weights of terms in the dataset `layers/string_lookup/vars/idf_weights`, and with Keras 2 a
//! summary of numbers in `layers/discretization/vars/0`. [`complete`] puts them into the
//! configurations of the layers, where this library keeps them. [`write_term_weights`] is the way
//! back: Keras reads terms and boundaries from the configuration, but weights from the dataset.

use std::collections::HashSet;

use estimand_hdf5::{File, Writer};
use estimand_nn::config::Json;
use estimand_tensor::{Array, Error, Result};

use super::members::Archive;
use crate::keras::model::Model;
use crate::keras::places::{self, Names};
use crate::keras::recipe::Step;

/// The layers with a vocabulary, by class and by the name of their groups.
const LOOKUPS: [(&str, &str); 3] = [
    ("StringLookup", "string_lookup"),
    ("IntegerLookup", "integer_lookup"),
    ("TextVectorization", "text_vectorization"),
];
const DISCRETIZATION: (&str, &str) = ("Discretization", "discretization");
const MODELS: [(&str, &str); 3] = [("Sequential", "sequential"), ("Functional", "functional"), ("Model", "functional")];
const TIME_DISTRIBUTED: (&str, &str) = ("TimeDistributed", "time_distributed");

/// The parts of a file that are completed.
pub(super) struct Sources<'a> {
    pub archive: &'a Archive<'a>,
    pub weights: &'a File,
}

/// Puts what the layers of a model have learned into its configuration.
pub(super) fn complete(document: &mut Json, sources: &Sources<'_>) -> Result<()> {
    match document.get_mut("config") {
        Some(config) => layers(config, "layers", sources),
        None => Ok(()),
    }
}

/// The layers of a model. `path` is their place in the file: `places` has the same walk over the
/// model that is made of this configuration.
fn layers(config: &mut Json, path: &str, sources: &Sources<'_>) -> Result<()> {
    // Before Keras 2.2.3, the configuration of a Sequential was the list itself.
    let list = if config.is_array() { Some(config) } else { config.get_mut("layers") };
    let mut names = Names::default();
    for layer in list.and_then(Json::as_array_mut).into_iter().flatten() {
        let class = layer.get("class_name").and_then(Json::as_str).unwrap_or_default();
        let known = LOOKUPS.iter().chain(&MODELS).chain([&DISCRETIZATION, &TIME_DISTRIBUTED]);
        if let Some((_, kind)) = known.into_iter().find(|(known, _)| *known == class) {
            let path = format!("{path}/{}", names.next(kind));
            one(layer, &path, sources)?;
        }
    }
    Ok(())
}

fn one(layer: &mut Json, path: &str, sources: &Sources<'_>) -> Result<()> {
    let class = layer.get("class_name").and_then(Json::as_str).unwrap_or_default().to_string();
    let Some(config) = layer.get_mut("config") else { return Ok(()) };
    let name = config.get("name").and_then(Json::as_str).unwrap_or_default().to_string();
    let done = match class.as_str() {
        "TimeDistributed" => match config.get_mut("layer") {
            Some(inner) => return one(inner, &format!("{path}/layer"), sources),
            None => Ok(()),
        },
        "Discretization" => boundaries(config, path, sources.weights),
        class if MODELS.iter().any(|(model, _)| *model == class) => {
            return layers(config, &format!("{path}/layers"), sources);
        }
        class if LOOKUPS.iter().any(|(lookup, _)| *lookup == class) => {
            let integers = class == "IntegerLookup";
            vocabulary(config, path, integers, sources.archive)
                .and_then(|()| term_weights(config, path, sources.weights))
        }
        _ => Ok(()),
    };
    done.map_err(|error| error.context(format!("in layer `{name}`")))
}

fn is_missing(config: &Json, key: &str) -> bool {
    match config.get(key) {
        None | Some(Json::Null) => true,
        Some(Json::Array(all)) => all.is_empty(),
        Some(_) => false,
    }
}

fn vocabulary(config: &mut Json, path: &str, integers: bool, archive: &Archive<'_>) -> Result<()> {
    let asset = format!("assets/{path}/vocabulary.txt");
    if !is_missing(config, "vocabulary") || !config.is_object() || !archive.has(&asset) {
        return Ok(());
    }
    let text = archive.text(&asset)?;
    let in_asset = |error: Error| error.context(format!("in the member `{asset}`"));
    let said = config.get("vocabulary_size").and_then(Json::as_u64);
    let terms = terms(&text, integers, said, &Unknown::of(config)).map_err(in_asset)?;
    if let Some(n) = said.filter(|&n| n != terms.len() as u64) {
        let text = format!("there are {} terms; the configuration of the layer says {n}", terms.len());
        return Err(in_asset(Error::data(text).help("a term with a line break in it cannot be saved by Keras")));
    }
    config["vocabulary"] = terms.into();
    Ok(())
}

/// The term that stands for unknown ones, and how often a vocabulary lists it.
struct Unknown {
    token: String,
    n: usize,
}

impl Unknown {
    /// As a configuration says. No file lists it more often than `MAX_UNKNOWN`.
    fn of(config: &Json) -> Unknown {
        let token = match config.get("oov_token") {
            Some(Json::String(text)) => text.clone(),
            Some(Json::Number(number)) => number.to_string(),
            _ => "[UNK]".to_string(),
        };
        let n = config.get("num_oov_indices").and_then(Json::as_u64).unwrap_or(1);
        Unknown { token, n: n.min(MAX_UNKNOWN) as usize }
    }
}

/// A vocabulary is read if it lists the unknown term this often.
const MAX_UNKNOWN: u64 = 1 << 16;

/// The terms of a file, one on each line, of which there are `said` if that is known.
fn terms(text: &str, integers: bool, said: Option<u64>, unknown: &Unknown) -> Result<Vec<Json>> {
    let mut lines: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    // TF: Keras 3 drops empty lines at the end, even if the last term is empty.
    while lines.last() == Some(&"") && said.is_none_or(|n| lines.len() as u64 > n) {
        lines.pop();
    }
    let (mut seen, mut terms, mut n_unknown) = (HashSet::new(), Vec::new(), 0);
    for (i, &line) in lines.iter().enumerate() {
        let place = |error: Error| error.context(format!("in line {}", i + 1));
        n_unknown += usize::from(line == unknown.token);
        if !seen.insert(line) && (line != unknown.token || n_unknown > unknown.n) {
            return Err(place(Error::data(format!("the term `{line}` occurs twice"))));
        }
        terms.push(match integers {
            false => line.into(),
            true => match line.trim().parse::<i64>() {
                Ok(number) => number.into(),
                Err(_) => return Err(place(Error::data(format!("`{line}` is no integer")))),
            },
        });
    }
    Ok(terms)
}

fn term_weights(config: &mut Json, path: &str, weights: &File) -> Result<()> {
    let dataset = format!("{path}/vars/idf_weights");
    let wanted = config.get("output_mode").and_then(Json::as_str) == Some("tf_idf");
    if !wanted || !is_missing(config, "idf_weights") || !weights.root().contains(&dataset) {
        return Ok(());
    }
    let mut numbers = numbers(weights, &dataset)?;
    // With `pad_to_max_tokens`, zeros follow for ids without a term.
    if let Some(terms) = config.get("vocabulary").and_then(Json::as_array) {
        numbers.truncate(terms.len());
    }
    config["idf_weights"] = numbers.into();
    Ok(())
}

/// The numbers of a list.
fn numbers(weights: &File, dataset: &str) -> Result<Vec<f64>> {
    let array = weights.root().dataset(dataset)?.read()?;
    let read = if array.dims().len() == 1 { array.to_f64_vec() } else { Err(Error::shape("expected a list")) };
    read.map_err(|error| error.context(format!("in {dataset}, {}{:?}", array.dtype(), array.dims())))
}

/// The boundaries of an adapted layer of Keras 2, which keeps a summary of the numbers: values that
/// rise, and how many numbers each stands for.
fn boundaries(config: &mut Json, path: &str, weights: &File) -> Result<()> {
    let dataset = format!("{path}/vars/0");
    let n_bins = config.get("num_bins").and_then(Json::as_u64).filter(|&n| n > 0);
    let Some(n_bins) = n_bins.filter(|_| is_missing(config, "bin_boundaries")) else { return Ok(()) };
    if !weights.root().contains(&dataset) {
        return Ok(());
    }
    let summary = weights.root().dataset(&dataset)?.read()?;
    let misfit = || {
        let text = format!("{dataset} is {}{:?}; expected two rows of numbers", summary.dtype(), summary.dims());
        Error::data(text)
    };
    let all = summary.to_f64_vec().map_err(|_| misfit())?;
    let [2, n] = *summary.dims() else { return Err(misfit()) };
    let (values, counts) = all.split_at(n);
    if n == 0 {
        return Ok(());
    }
    config["bin_boundaries"] = quantiles(values, counts, n_bins).into();
    Ok(())
}

/// TF: `get_bin_boundaries` of tf.keras 2.15: the values at equal shares of the counts. A summary
/// with fewer values than bins gives all of its values but the last.
fn quantiles(values: &[f64], counts: &[f64], n_bins: u64) -> Vec<f64> {
    let epsilon = 1.0 / n_bins as f64;
    if values.len() as f64 * epsilon < 1.0 {
        return values[..values.len() - 1].to_vec();
    }
    // In f32, as NumPy adds the counts.
    let mut sum = 0f32;
    let mut add = |&count: &f64| {
        sum += count as f32;
        sum
    };
    let sums: Vec<f32> = counts.iter().map(&mut add).collect();
    let shares: Vec<f64> = sums.iter().map(|&at| f64::from(at / sum)).collect();
    let at = |share: f64| -> f64 {
        let after = shares.partition_point(|&other| other < share);
        match after {
            0 => values[0],
            after if after == shares.len() => values[after - 1],
            after => {
                let (x0, x1) = (shares[after - 1], shares[after]);
                let (y0, y1) = (values[after - 1], values[after]);
                (y1 - y0) / (x1 - x0) * (share - x0) + y0
            }
        }
    };
    // The length of `np.arange(0.0, 1.0, epsilon)`, whose last value is left out.
    let n = (1.0 / epsilon).ceil() as usize;
    (0..n.saturating_sub(1)).map(|i| f64::from(at(epsilon + i as f64 * epsilon) as f32)).collect()
}

/// Writes the weights of terms of all lookups in the mode `tf_idf`.
pub(super) fn write_term_weights(model: &Model, writer: &mut Writer) -> Result<()> {
    for (path, step) in places::paths(&model.recipe) {
        let Step::Layer(layer) = step else { continue };
        if !LOOKUPS.iter().any(|(_, kind)| *kind == layer.kind()) {
            continue;
        }
        let config = layer.to_json()?["config"].take();
        let Some(weights) = weights_of_ids(&config) else { continue };
        let array = Array::from(weights);
        // Keras counts the lookup inside of a TextVectorization as a layer.
        let inner = (layer.kind() == "text_vectorization").then(|| format!("{path}/_lookup_layer"));
        for path in [Some(path), inner].into_iter().flatten() {
            writer.dataset(&format!("{path}/vars/idf_weights"), &array)?;
        }
    }
    Ok(())
}

/// The weights of all ids as Keras keeps them: unknown terms have the mean, ids without a term 0.
fn weights_of_ids(config: &Json) -> Option<Vec<f32>> {
    let given = config.get("idf_weights")?.as_array()?;
    let given: Vec<f64> = given.iter().filter_map(Json::as_f64).collect();
    let terms = config.get("vocabulary").and_then(Json::as_array)?;
    let unknown = Unknown::of(config);
    let is_unknown = |term: &Json| term.as_str().map_or_else(|| term.to_string(), str::to_string) == unknown.token;
    let lists_unknown = terms.len() >= unknown.n && terms[..unknown.n].iter().all(is_unknown);
    let mut all: Vec<f32> = Vec::new();
    if !(lists_unknown && terms.len() == given.len()) {
        let mean = given.iter().sum::<f64>() / given.len().max(1) as f64;
        all.resize(unknown.n, mean as f32);
    }
    all.extend(given.iter().map(|&weight| weight as f32));
    let pads = config.get("pad_to_max_tokens") == Some(&Json::Bool(true));
    if let Some(n) = config.get("max_tokens").and_then(Json::as_u64).filter(|_| pads) {
        all.resize(all.len().max(n as usize), 0.0);
    }
    Some(all)
}
