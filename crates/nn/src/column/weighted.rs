//! `weighted_categorical_column`: gives categories weights.

use std::panic::Location;

use estimand_graph::{IdSource, RaggedTensor};
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result};

use super::json::written;
use super::{CategoricalColumn, Categories, Column, FeatureColumn, numeric_column, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::{Input, Inputs};

/// A categorical column whose ids have weights. Made by [`weighted_categorical_column`].
#[derive(Clone, Debug)]
#[must_use]
pub struct WeightedColumn {
    column: FeatureColumn,
    weight_key: String,
    dtype: DType,
    site: &'static Location<'static>,
}

/// Pairs each id of a column with the number at the same position of another feature, its weight.
///
/// TF: in dense weights, 0 stands for a missing weight. A weight of 0 next to an id is therefore an
/// error at run time (case 42); feed ragged weights instead.
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_hash_bucket, weighted_categorical_column};
/// let terms = categorical_column_with_hash_bucket("terms", 1_000);
/// assert_eq!(weighted_categorical_column(&terms, "frequency").name(), "terms_weighted_by_frequency");
/// ```
#[track_caller]
pub fn weighted_categorical_column(
    column: impl Into<FeatureColumn>,
    weight_feature_key: impl Into<String>,
) -> WeightedColumn {
    let weight_key = weight_feature_key.into();
    WeightedColumn { column: column.into(), weight_key, dtype: DType::F32, site: Location::caller() }
}

impl WeightedColumn {
    /// The dtype of the weights in files. By default, f32.
    pub fn dtype(mut self, dtype: DType) -> WeightedColumn {
        self.dtype = dtype;
        self
    }

    fn mistake(&self) -> Result<()> {
        self.column.expect_categorical()?;
        match self.dtype.is_number() {
            true => Ok(()),
            false => {
                let text = format!("the weights have the dtype {}; expected numbers", self.dtype);
                Err(Error::dtype(Some(DType::F32), self.dtype, text).help("use DType::F32 or an integer dtype"))
            }
        }
    }
}

impl Described for WeightedColumn {
    const CLASS: &'static str = "WeightedCategoricalColumn";

    fn template() -> WeightedColumn {
        weighted_categorical_column(numeric_column(""), "")
    }

    fn fields(&self, fields: &mut Fields<'_>) -> WeightedColumn {
        WeightedColumn {
            column: fields.required("categorical_column", &self.column),
            weight_key: fields.required("weight_feature_key", &self.weight_key),
            dtype: fields.value("dtype", &self.dtype),
            site: fields.site(self.site),
        }
    }
}

impl Column for WeightedColumn {
    fn kind(&self) -> &'static str {
        "weighted"
    }

    fn name(&self) -> String {
        format!("{}_weighted_by_{}", self.column.name(), self.weight_key)
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.column.check()?;
        self.mistake().map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        let mut spec = self.column.parse_spec();
        spec.insert(self.weight_key.clone(), FeatureSpec::ragged(self.dtype));
        spec
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl CategoricalColumn for WeightedColumn {
    fn n_buckets(&self) -> usize {
        self.column.categorical().map_or(0, |c| c.n_buckets())
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        let found = self.column.expect_categorical()?.categories(features)?;
        let input = features.find(&self.weight_key)?;
        let dtype = match input {
            Input::Dense(dense) => dense.dtype(),
            Input::Ragged(rows) => rows.values.dtype(),
        };
        if dtype != self.dtype {
            let text = format!("the weights `{}` are {dtype}; the column takes {}", self.weight_key, self.dtype);
            return Err(
                Error::dtype(Some(self.dtype), dtype, text).help("call .dtype(..) on the column, or cast the feature")
            );
        }
        let weights = match input {
            Input::Dense(dense) => RaggedTensor::from_dense(dense).values,
            Input::Ragged(rows) => rows.values.clone(),
        };
        let weights = if dtype == DType::F32 { weights } else { weights.cast(DType::F32) };
        found.ids.values.means("weights", self.weight_key.as_str());
        Ok(Categories { ids: found.ids, weights: Some(weights) })
    }

    fn id_source(&self) -> Option<IdSource> {
        self.column.categorical()?.id_source()
    }
}
