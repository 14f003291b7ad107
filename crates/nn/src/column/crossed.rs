//! `crossed_column`: combinations of features as categories.

use std::panic::Location;

use estimand_graph::{CrossKey, RaggedTensor, Tensor};
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result};

use super::feature::rows_of;
use super::hash_bucket::check_size;
use super::json::written;
use super::{CategoricalColumn, Categories, Column, FeatureColumn, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::{Input, Inputs};

/// Combinations of features, by their hash. Made by [`crossed_column`].
#[derive(Clone, Debug)]
#[must_use]
pub struct CrossedColumn {
    keys: Vec<ColumnKey>,
    n_buckets: usize,
    hash_key: u64,
    site: &'static Location<'static>,
}

/// A key of a cross: the name of a feature of strings or integers, or a categorical column.
#[derive(Clone, Debug)]
pub enum ColumnKey {
    /// A feature.
    Feature(String),
    /// A column.
    Column(FeatureColumn),
}

/// Makes a category of every combination of one value for each key. Combinations are hashed into
/// buckets.
///
/// A key is the name of a feature (strings or integers) or a categorical column whose ids are
/// crossed. Hashed columns are refused. A cross as a key is replaced by its own keys. A row in
/// which a key has no value has no combination.
///
/// The keys are hashed in the order given, however the features are fed. TensorFlow does the same
/// for parsed `tf.Example`s, with which models are served. (If TensorFlow is fed dense tensors, it
/// puts features given by name after all columns.) A dense feature given by name has no missing
/// values: `""` and -1 are crossed like other values.
///
/// ```
/// use estimand_nn::column::{Column, ColumnKey, bucketized_column, crossed_column, numeric_column};
/// let age = bucketized_column(&numeric_column("age"), [20, 40, 60]);
/// assert_eq!(crossed_column(["education", "occupation"], 1_000).name(), "education_X_occupation");
/// let cross = crossed_column([ColumnKey::from(&age), "education".into()], 1_000);
/// assert_eq!(cross.name(), "age_bucketized_X_education");
/// ```
#[track_caller]
pub fn crossed_column(keys: impl IntoIterator<Item = impl Into<ColumnKey>>, hash_bucket_size: usize) -> CrossedColumn {
    let keys = keys.into_iter().map(Into::into).collect();
    CrossedColumn { keys, n_buckets: hash_bucket_size, hash_key: 0, site: Location::caller() }
}

impl CrossedColumn {
    /// The initial value of the hash. By default TensorFlow's value; 0 stands for it too.
    pub fn hash_key(mut self, hash_key: u64) -> CrossedColumn {
        self.hash_key = hash_key;
        self
    }

    fn mistake(&self) -> Result<()> {
        if self.keys.len() < 2 {
            return Err(Error::config(format!("the crossed column has {} keys; expected at least 2", self.keys.len())));
        }
        check_size(self.n_buckets)?;
        self.keys.iter().try_for_each(|key| {
            let ColumnKey::Column(column) = key else { return Ok(()) };
            if column.kind() == "hash_bucket" {
                return Err(Error::config(format!("{} cannot be crossed", column.describe()))
                    .help("a cross hashes by itself: give it the feature's name instead"));
            }
            if column.categorical().is_none() {
                return Err(Error::config(format!("{} cannot be crossed", column.describe()))
                    .help("cross features by name and categorical columns; bucketize numbers"));
            }
            if column.kind() == "weighted" {
                return Err(Error::config(format!("{} cannot be crossed", column.describe()))
                    .help("cross the column without its weights"));
            }
            column.check()
        })
    }

    /// The features and columns of the cross. Nested crosses are replaced by their keys.
    fn leaves(&self) -> Vec<&ColumnKey> {
        fn leaves(key: &ColumnKey) -> Vec<&ColumnKey> {
            match key {
                ColumnKey::Column(column) => column.crossed().map_or_else(|| vec![key], CrossedColumn::leaves),
                ColumnKey::Feature(_) => vec![key],
            }
        }
        self.keys.iter().flat_map(leaves).collect()
    }
}

impl From<&str> for ColumnKey {
    fn from(feature: &str) -> ColumnKey {
        ColumnKey::Feature(feature.to_string())
    }
}

impl From<String> for ColumnKey {
    fn from(feature: String) -> ColumnKey {
        ColumnKey::Feature(feature)
    }
}

impl From<FeatureColumn> for ColumnKey {
    fn from(column: FeatureColumn) -> ColumnKey {
        ColumnKey::Column(column)
    }
}

impl From<&FeatureColumn> for ColumnKey {
    fn from(column: &FeatureColumn) -> ColumnKey {
        ColumnKey::Column(column.clone())
    }
}

fn leaf_name(leaf: &ColumnKey) -> String {
    match leaf {
        ColumnKey::Feature(key) => key.clone(),
        ColumnKey::Column(column) => column.name(),
    }
}

/// A raw feature as a key.
///
/// TF: floats lose their fraction (case 22).
fn raw(features: &Inputs, key: &str) -> Result<CrossKey> {
    let integers = |values: &Tensor| match values.dtype() {
        DType::F32 | DType::F64 => Ok(values.cast(DType::I64)),
        DType::Str | DType::I32 | DType::I64 => Ok(values.clone()),
        other => Err(Error::dtype(
            Some(DType::Str),
            other,
            format!("feature `{key}` holds {other}, which cannot be crossed"),
        )
        .help("cross strings and integers")),
    };
    Ok(match features.find(key)? {
        Input::Ragged(rows) => CrossKey::Ragged(rows.with_values(integers(&rows.values)?)),
        Input::Dense(dense) => {
            let dense = integers(dense)?;
            let width: Option<usize> = dense.shape().dims().iter().skip(1).map(|dim| dim.known()).product();
            match width {
                _ if dense.rank() == 2 => CrossKey::Dense(dense),
                Some(width) => CrossKey::Dense(dense.reshape(rows_of(&[width]))),
                None => CrossKey::Ragged(RaggedTensor::from_rows(&dense)),
            }
        }
    })
}

impl Described for CrossedColumn {
    const CLASS: &'static str = "CrossedColumn";

    fn template() -> CrossedColumn {
        crossed_column([""; 0], 0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> CrossedColumn {
        CrossedColumn {
            keys: fields.required("keys", &self.keys),
            n_buckets: fields.required("hash_bucket_size", &self.n_buckets),
            hash_key: fields.value("hash_key", &self.hash_key),
            site: fields.site(self.site),
        }
    }
}

impl Column for CrossedColumn {
    fn kind(&self) -> &'static str {
        "crossed"
    }

    fn name(&self) -> String {
        let mut names: Vec<String> = self.leaves().into_iter().map(leaf_name).collect();
        names.sort();
        names.join("_X_")
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.mistake().map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        let mut spec = BatchSpec::new();
        for key in &self.keys {
            match key {
                ColumnKey::Feature(key) => drop(spec.insert(key.clone(), FeatureSpec::ragged(DType::Str))),
                ColumnKey::Column(column) => spec.extend(column.parse_spec()),
            }
        }
        spec
    }

    fn crossed(&self) -> Option<&CrossedColumn> {
        Some(self)
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl CategoricalColumn for CrossedColumn {
    fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        let key = |leaf: &ColumnKey| match leaf {
            ColumnKey::Feature(key) => raw(features, key),
            ColumnKey::Column(column) => {
                let found = column.expect_categorical()?.categories(features).map_err(|e| column.place(e))?;
                Ok(CrossKey::Ragged(found.ids))
            }
        };
        let mut keys = self.leaves().into_iter().map(key).collect::<Result<Vec<CrossKey>>>()?;
        // The graph's cross needs ragged keys first, so a dense key before a ragged one is made
        // ragged.
        let last_ragged = keys.iter().rposition(|key| matches!(key, CrossKey::Ragged(_))).unwrap_or(0);
        for key in &mut keys[..last_ragged] {
            if let CrossKey::Dense(dense) = key {
                *key = CrossKey::Ragged(RaggedTensor::from_rows(dense));
            }
        }
        let ids = features.graph().cross(&keys, self.n_buckets as i64, self.hash_key);
        ids.values.means("keys in order", self.leaves().into_iter().map(leaf_name).collect::<Vec<_>>().join(", "));
        Ok(Categories { ids, weights: None })
    }
}
