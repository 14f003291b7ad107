//! `categorical_column_with_identity`: integers that are ids already.

use std::panic::Location;

use estimand_graph::IdSource;
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result};

use super::feature::{self, CategoryKind};
use super::json::written;
use super::{CategoricalColumn, Categories, Column, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::Inputs;

/// Integers as ids. Made by [`categorical_column_with_identity`].
#[derive(Clone, Debug)]
#[must_use]
pub struct IdentityColumn {
    key: String,
    n_buckets: usize,
    default_value: Option<i64>,
    site: &'static Location<'static>,
}

/// Takes integers from 0 to below `n_buckets` as ids.
///
/// Integers outside of this range pass through, as in TensorFlow, unless there is a default value.
/// An indicator ignores such an id. A lookup drops it if it is below 0; otherwise it is an error at
/// run time.
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_identity};
/// let hour = categorical_column_with_identity("hour", 24).default_value(0);
/// assert!(hour.check().is_ok());
/// ```
#[track_caller]
pub fn categorical_column_with_identity(key: impl Into<String>, n_buckets: usize) -> IdentityColumn {
    IdentityColumn { key: key.into(), n_buckets, default_value: None, site: Location::caller() }
}

impl IdentityColumn {
    /// The id of integers out of range. By default, they pass through unchanged.
    pub fn default_value(mut self, id: i64) -> IdentityColumn {
        self.default_value = Some(id);
        self
    }

    fn mistake(&self) -> Result<()> {
        if self.n_buckets == 0 {
            return Err(Error::config("the number of buckets is 0; expected at least 1"));
        }
        match self.default_value {
            Some(id) if id < 0 || id >= self.n_buckets as i64 => {
                Err(Error::config(format!("default_value is {id}; expected 0 to {}", self.n_buckets - 1)))
            }
            _ => Ok(()),
        }
    }
}

impl Described for IdentityColumn {
    const CLASS: &'static str = "IdentityCategoricalColumn";

    fn template() -> IdentityColumn {
        categorical_column_with_identity("", 0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> IdentityColumn {
        IdentityColumn {
            key: fields.required("key", &self.key),
            n_buckets: fields.required("number_buckets", &self.n_buckets),
            default_value: fields.value("default_value", &self.default_value),
            site: fields.site(self.site),
        }
    }
}

impl Column for IdentityColumn {
    fn kind(&self) -> &'static str {
        "identity"
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
        BatchSpec::from([(self.key.clone(), FeatureSpec::ragged(DType::I64))])
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl CategoricalColumn for IdentityColumn {
    fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        let rows = feature::categories(features, &self.key, CategoryKind::Integers)?;
        let ids = match self.default_value {
            None => rows,
            Some(default) => {
                let known = rows.values.greater_equal(0).logical_and(rows.values.less(self.n_buckets as i64));
                let defaults = rows.values.zeros_like() + default;
                rows.with_values(known.select(&rows.values, &defaults))
            }
        };
        ids.values.means("ids", self.n_buckets);
        if let Some(default) = self.default_value {
            ids.values.means("id of other integers", default);
        }
        Ok(Categories { ids, weights: None })
    }

    fn id_source(&self) -> Option<IdSource> {
        Some(IdSource {
            feature: self.key.clone(),
            column: format!("categorical_column_with_identity({:?}, ..)", self.key),
            otherwise: "call .default_value(..) on the column for ids that are out of range",
            by_row: true,
        })
    }
}
