//! `indicator_column`: counts how often each category occurs in a row.

use std::panic::Location;

use estimand_graph::Tensor;
use estimand_tensor::{BatchSpec, DType, Result};

use super::json::written;
use super::{Column, DenseColumn, Extent, FeatureColumn, SequenceColumn, numeric_column, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::Inputs;

/// A number for each category. Made by [`indicator_column`].
#[derive(Clone, Debug)]
pub struct IndicatorColumn {
    column: FeatureColumn,
    site: &'static Location<'static>,
}

/// Counts how often each category of a column occurs in a row: one number for each category. If ids
/// have weights, the number is the sum of the weights.
///
/// For a sequence column, the result is a row of 0 and 1 for each step, for
/// [`sequence_input_layer`](super::sequence_input_layer).
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_vocabulary_list, indicator_column};
/// let colour = categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"]);
/// assert_eq!(indicator_column(&colour).name(), "colour_indicator");
/// ```
#[track_caller]
pub fn indicator_column(column: impl Into<FeatureColumn>) -> IndicatorColumn {
    IndicatorColumn { column: column.into(), site: Location::caller() }
}

impl Described for IndicatorColumn {
    const CLASS: &'static str = "IndicatorColumn";

    fn template() -> IndicatorColumn {
        indicator_column(numeric_column(""))
    }

    fn fields(&self, fields: &mut Fields<'_>) -> IndicatorColumn {
        let column = fields.required("categorical_column", &self.column);
        IndicatorColumn { column, site: fields.site(self.site) }
    }
}

impl Column for IndicatorColumn {
    fn kind(&self) -> &'static str {
        "indicator"
    }

    fn name(&self) -> String {
        format!("{}_indicator", self.column.name())
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.column.check()?;
        self.column.expect_ids().map(drop).map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        self.column.parse_spec()
    }

    fn dense(&self) -> Option<&dyn DenseColumn> {
        self.column.categorical().is_some().then_some(self)
    }

    fn sequence(&self) -> Option<&dyn SequenceColumn> {
        self.column.categorical_sequence().is_some().then_some(self)
    }
}

impl DenseColumn for IndicatorColumn {
    fn dims(&self) -> Vec<usize> {
        vec![self.column.expect_ids().unwrap_or(0)]
    }

    fn tensor(&self, features: &Inputs) -> Result<Tensor> {
        let column = self.column.expect_categorical()?;
        let found = column.categories(features)?;
        Ok(found.ids.multi_hot(column.n_buckets(), found.weights.as_ref()))
    }
}

impl SequenceColumn for IndicatorColumn {
    fn dims(&self) -> Vec<usize> {
        DenseColumn::dims(self)
    }

    fn extent(&self, features: &Inputs) -> Result<Extent> {
        self.column.expect_steps()?.extent(features)
    }

    fn tensor(&self, features: &Inputs, n_steps: &Tensor) -> Result<Tensor> {
        let column = self.column.expect_steps()?;
        let ids = column.ids(features)?.to_steps(n_steps, &[], -1);
        Ok(ids.one_hot(column.n_buckets(), DType::F32))
    }
}
