//! `categorical_column_with_hash_bucket`: categories by their hash.

use std::panic::Location;

use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result};

use super::feature::{self, CategoryKind};
use super::json::written;
use super::{CategoricalColumn, Categories, Column, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::Inputs;

/// Strings or integers by their hash. Made by [`categorical_column_with_hash_bucket`].
#[derive(Clone, Debug)]
#[must_use]
pub struct HashBucketColumn {
    key: String,
    n_buckets: usize,
    dtype: DType,
    site: &'static Location<'static>,
}

/// Maps any string to a bucket by TensorFlow's hash of its bytes. The buckets are exactly those of
/// TensorFlow. Different strings may share a bucket.
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_hash_bucket};
/// use estimand_tensor::DType;
/// let user = categorical_column_with_hash_bucket("user", 1_000_000).dtype(DType::I64);
/// assert!(user.check().is_ok());
/// ```
#[track_caller]
pub fn categorical_column_with_hash_bucket(key: impl Into<String>, hash_bucket_size: usize) -> HashBucketColumn {
    HashBucketColumn { key: key.into(), n_buckets: hash_bucket_size, dtype: DType::Str, site: Location::caller() }
}

impl HashBucketColumn {
    /// The dtype of the feature. By default, strings. Integers are hashed by their decimal text.
    pub fn dtype(mut self, dtype: DType) -> HashBucketColumn {
        self.dtype = dtype;
        self
    }

    fn mistake(&self) -> Result<()> {
        check_size(self.n_buckets)?;
        CategoryKind::of(self.dtype).map(drop)
    }
}

/// Reports an error unless the number of buckets is valid.
pub(super) fn check_size(n_buckets: usize) -> Result<()> {
    match i64::try_from(n_buckets) {
        Ok(1..) => Ok(()),
        _ => Err(Error::config(format!("the hash bucket size is {n_buckets}; expected at least 1"))
            .help("two to five times the number of categories keeps collisions rare")),
    }
}

impl Described for HashBucketColumn {
    const CLASS: &'static str = "HashedCategoricalColumn";

    fn template() -> HashBucketColumn {
        categorical_column_with_hash_bucket("", 0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> HashBucketColumn {
        HashBucketColumn {
            key: fields.required("key", &self.key),
            n_buckets: fields.required("hash_bucket_size", &self.n_buckets),
            dtype: fields.value("dtype", &self.dtype),
            site: fields.site(self.site),
        }
    }
}

impl Column for HashBucketColumn {
    fn kind(&self) -> &'static str {
        "hash_bucket"
    }

    fn name(&self) -> String {
        self.key.clone()
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
        BatchSpec::from([(self.key.clone(), FeatureSpec::ragged(self.dtype))])
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl CategoricalColumn for HashBucketColumn {
    fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        let rows = feature::categories(features, &self.key, CategoryKind::of(self.dtype)?)?;
        Ok(Categories { ids: rows.with_values(rows.values.hash_bucket(self.n_buckets as i64)), weights: None })
    }
}
