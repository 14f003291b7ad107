//! Reads fixtures of `oracles/fixtures`, one function for each file; the programs of the same names
//! in `oracles/gen` explain the lines.

use std::collections::BTreeMap;

use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, Dim, Shape};

const LAYERS: &str = include_str!("../../../../oracles/fixtures/layers.txt");
const KERAS_LAYERS: &str = include_str!("../../../../oracles/fixtures/keras_layers.txt");
const CONSTRAINTS: &str = include_str!("../../../../oracles/fixtures/constraints.txt");
const LOSSES: &str = include_str!("../../../../oracles/fixtures/losses.txt");
const METRICS: &str = include_str!("../../../../oracles/fixtures/metrics.txt");
const RECURRENT: &str = include_str!("../../../../oracles/fixtures/recurrent.txt");

/// One case: its name and its arrays by key.
pub struct Case {
    pub name: &'static str,
    arrays: BTreeMap<&'static str, Array>,
}

impl Case {
    pub fn array(&self, key: &str) -> &Array {
        self.arrays.get(key).unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    pub fn find(&self, key: &str) -> Option<&Array> {
        self.arrays.get(key)
    }

    /// The arrays whose keys begin so, by the rest of the key.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'static str, &'a Array)> {
        self.arrays.iter().filter_map(move |(key, array)| Some((key.strip_prefix(prefix)?, array)))
    }
}

/// Those of layers and losses.
pub fn cases() -> Vec<Case> {
    LAYERS.split("case ").skip(1).map(case).collect()
}

pub fn keras_layer_cases() -> Vec<Case> {
    KERAS_LAYERS.split("case ").skip(1).map(case).collect()
}

pub fn constraint_cases() -> Vec<Case> {
    CONSTRAINTS.split("case ").skip(1).map(case).collect()
}

pub fn loss_cases() -> Vec<Case> {
    LOSSES.split("case ").skip(1).map(case).collect()
}

pub fn metric_cases() -> Vec<Case> {
    METRICS.split("case ").skip(1).map(case).collect()
}

pub fn recurrent_cases() -> Vec<Case> {
    RECURRENT.split("case ").skip(1).map(case).collect()
}

fn case(text: &'static str) -> Case {
    let (name, lines) = text.split_once('\n').unwrap();
    let array = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let dims: Vec<usize> = match words[2] {
            "-" => Vec::new(),
            sizes => sizes.split(',').map(|n| n.parse().unwrap()).collect(),
        };
        let array = match words[1] {
            "f32" => Array::from_vec(dims, words[3..].iter().map(|v| v.parse::<f32>().unwrap()).collect()),
            "i32" => Array::from_vec(dims, words[3..].iter().map(|v| v.parse::<i32>().unwrap()).collect()),
            _ => Array::from_vec(dims, words[3..].iter().map(|v| v.parse::<i64>().unwrap()).collect()),
        };
        (words[0], array.unwrap())
    };
    Case { name, arrays: lines.lines().map(array).collect() }
}

/// A placeholder for rows like these, of any number.
pub fn rows(g: &Graph, name: &str, like: &Array) -> Tensor {
    let mut shape = Shape::from(like.dims());
    if let Some(first) = shape.0.first_mut() {
        *first = Dim::BATCH;
    }
    g.placeholder(name, like.dtype(), shape)
}

/// Fails unless both have the same sizes and all elements agree within 1e-5, relative to those
/// above a tenth.
pub fn assert_close(what: &str, actual: &Array, expected: &Array) {
    assert_eq!(actual.dims(), expected.dims(), "{what}");
    let pairs = actual.to_f64_vec().unwrap().into_iter().zip(expected.to_f64_vec().unwrap());
    for (i, (a, e)) in pairs.enumerate() {
        let close = (a - e).abs() <= 1e-5 * e.abs().max(0.1);
        assert!(close || a == e, "{what}: element {i} is {a}, TensorFlow has {e}\n{actual:?}\n{expected:?}");
    }
}
