//! `bucketized_column`: maps numbers to the range they are in.

use std::panic::Location;

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{Array, BatchSpec, DType, Error, Result};

use super::json::written;
use super::numeric::{NumericColumn, numeric_column};
use super::{CategoricalColumn, Categories, Column, DenseColumn, place};
use crate::config::{Described, Fields, Json, Single};
use crate::inputs::Inputs;

/// The range of each number. Made by [`bucketized_column`].
///
/// The column has two sides: one-hot numbers `[d, ranges]` for a network, and ids for a linear
/// model, a cross or an embedding. The id of the number at position `i` of a row is its range plus
/// `i` times the number of ranges.
#[derive(Clone, Debug)]
pub struct BucketizedColumn {
    source: NumericColumn,
    boundaries: Vec<f32>,
    site: &'static Location<'static>,
}

/// Maps the numbers of a column to ranges: below the first boundary, from each boundary to the
/// next, and from the last boundary upwards. NaN is in the last range, as in TensorFlow.
///
/// ```
/// use estimand_nn::column::{Column, bucketized_column, numeric_column};
/// let age = bucketized_column(&numeric_column("age"), [18, 25, 30, 65]);
/// assert_eq!(age.name(), "age_bucketized");
/// ```
#[track_caller]
pub fn bucketized_column(
    source: &NumericColumn,
    boundaries: impl IntoIterator<Item = impl Into<f64>>,
) -> BucketizedColumn {
    let boundaries = boundaries.into_iter().map(|b| b.into() as f32).collect();
    BucketizedColumn { source: source.clone(), boundaries, site: Location::caller() }
}

impl BucketizedColumn {
    /// The boundaries between ranges.
    pub fn boundaries(&self) -> &[f32] {
        &self.boundaries
    }

    fn mistake(&self) -> Result<()> {
        if self.source.dims.len() > 1 {
            let text =
                format!("the column to bucketize has the shape {:?}; expected at most one axis", self.source.dims);
            return Err(Error::shape(text).help("bucketize a column with one axis: reshape the feature"));
        }
        if self.boundaries.is_empty() {
            return Err(Error::config("the list of boundaries is empty; expected at least one boundary"));
        }
        match self.boundaries.windows(2).find(|pair| pair[0].partial_cmp(&pair[1]) != Some(std::cmp::Ordering::Less)) {
            None if self.boundaries.iter().any(|b| b.is_nan()) => {
                Err(Error::config("a boundary is NaN; expected a number"))
            }
            None => Ok(()),
            Some(pair) => Err(Error::config(format!(
                "boundary {} comes before {}; expected increasing boundaries",
                pair[0], pair[1]
            ))
            .help("sort the boundaries, and remove those that are equal as f32")),
        }
    }

    /// The range of each number, i32 `[batch, d]`.
    fn buckets(&self, features: &Inputs) -> Result<Tensor> {
        let numbers = self.source.tensor(features).map_err(|error| place(&self.source, error))?;
        Ok(numbers.bucketize(&self.boundaries))
    }

    fn width(&self) -> usize {
        self.source.dims.first().copied().unwrap_or(1)
    }
}

impl Described for BucketizedColumn {
    const CLASS: &'static str = "BucketizedColumn";

    fn template() -> BucketizedColumn {
        bucketized_column(&numeric_column(""), [0.0; 0])
    }

    fn fields(&self, fields: &mut Fields<'_>) -> BucketizedColumn {
        let boundaries: Vec<Single> = self.boundaries.iter().copied().map(Single).collect();
        BucketizedColumn {
            source: fields.required("source_column", &self.source),
            boundaries: fields.required("boundaries", &boundaries).into_iter().map(|b| b.0).collect(),
            site: fields.site(self.site),
        }
    }
}

impl Column for BucketizedColumn {
    fn kind(&self) -> &'static str {
        "bucketized"
    }

    fn name(&self) -> String {
        format!("{}_bucketized", self.source.name())
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.source.check()?;
        self.mistake().map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        self.source.parse_spec()
    }

    fn dense(&self) -> Option<&dyn DenseColumn> {
        Some(self)
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl DenseColumn for BucketizedColumn {
    fn dims(&self) -> Vec<usize> {
        vec![self.width(), self.boundaries.len() + 1]
    }

    fn tensor(&self, features: &Inputs) -> Result<Tensor> {
        Ok(self.buckets(features)?.one_hot(self.boundaries.len() + 1, DType::F32))
    }
}

impl CategoricalColumn for BucketizedColumn {
    fn n_buckets(&self) -> usize {
        self.width() * (self.boundaries.len() + 1)
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        let mut ids = self.buckets(features)?;
        if self.width() > 1 {
            let n = self.boundaries.len() as i32 + 1;
            let places: Vec<i32> = (0..self.width() as i32).map(|i| i * n).collect();
            ids = &ids + &Array::from(places);
        }
        Ok(Categories { ids: RaggedTensor::from_rows(&ids), weights: None })
    }
}
