//! Cases of `oracles/fixtures` with their arrays as Estimand has them.

use std::collections::BTreeMap;

use estimand_fixture as fixture;
use estimand_graph::{Graph, Tensor};
use estimand_nn::Reduction;
use estimand_tensor::{Array, DType, Dim, Shape};

/// One case: its settings, and its arrays by key.
pub struct Case {
    pub settings: fixture::Case,
    arrays: BTreeMap<String, Array>,
}

impl Case {
    pub fn name(&self) -> &str {
        self.settings.name()
    }

    pub fn array(&self, key: &str) -> &Array {
        self.find(key).unwrap_or_else(|| panic!("{} has no array `{key}`", self.settings))
    }

    pub fn find(&self, key: &str) -> Option<&Array> {
        self.arrays.get(key)
    }

    /// The arrays whose keys begin so, by the rest of the key.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Array)> {
        self.arrays.iter().filter_map(move |(key, array)| Some((key.strip_prefix(prefix)?, array)))
    }

    /// The setting `reduction` of a loss.
    pub fn reduction(&self) -> Reduction {
        match self.settings.setting::<String>("reduction").as_str() {
            "none" => Reduction::None,
            "sum" => Reduction::Sum,
            "mean" => Reduction::Mean,
            "sum_over_batch_size" => Reduction::SumOverBatchSize,
            "sum_by_nonzero_weights" => Reduction::SumByNonzeroWeights,
            other => panic!("{other}"),
        }
    }
}

pub fn cases(name: &str) -> Vec<Case> {
    let case = |settings: fixture::Case| {
        let arrays = settings.array_keys().map(|key| (key.to_string(), array(&settings.array(key)))).collect();
        Case { settings, arrays }
    };
    fixture::cases(name).into_iter().map(case).collect()
}

/// An array of a fixture.
pub fn array(array: &fixture::Array) -> Array {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.to_string() == array.dtype).unwrap();
    match dtype {
        DType::Str => Array::from_strings(&array.dims, array.strings()),
        _ => Array::from_bytes(dtype, &array.dims, &array.to_ne_bytes()),
    }
    .unwrap()
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
