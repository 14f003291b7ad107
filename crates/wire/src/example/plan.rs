//! A list of features, checked once. The parser uses it for every row.

use estimand_tensor::{Array, DType, Error, FeatureSpec, Result, element_count};

use super::index::Index;
use super::values::{ListKind, Values};

/// The features to parse, in the order of the results.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) features: Vec<FeaturePlan>,
    pub(super) index: Index,
}

/// One feature to parse.
#[derive(Debug)]
pub(super) struct FeaturePlan {
    pub(super) name: String,
    pub(super) kind: ListKind,
    pub(super) length: Length,
}

/// The number of values in a row.
#[derive(Debug)]
pub(super) enum Length {
    /// The product of `dims`.
    Fixed { dims: Vec<usize>, width: usize, default: Option<Values> },
    /// Any number.
    Ragged,
    /// A multiple of `width`; rows are padded at the end.
    Padded { dims: Vec<usize>, width: usize, padding: Values },
}

impl Plan {
    pub(super) fn new<N: Into<String>>(features: impl IntoIterator<Item = (N, FeatureSpec)>) -> Result<Plan> {
        let features = features.into_iter().map(|(name, spec)| {
            let name = name.into();
            FeaturePlan::new(&name, spec).map_err(|e| e.context(format!("in the spec of feature `{name}`")))
        });
        let features = features.collect::<Result<Vec<_>>>()?;
        let index = Index::new(features.iter().map(|feature| feature.name.as_str()))
            .map_err(|name| Error::config(format!("feature `{name}` is listed twice")))?;
        Ok(Plan { features, index })
    }
}

impl FeaturePlan {
    fn new(name: &str, spec: FeatureSpec) -> Result<FeaturePlan> {
        let kind = list_kind(spec.dtype())?;
        let length = match spec {
            FeatureSpec::Ragged { .. } => Length::Ragged,
            FeatureSpec::Dense { dtype, dims, default } => {
                let width = element_count(&dims)?;
                let default = default.map(|value| expect(&value, dtype, &dims)).transpose()?;
                // TF: a default without elements counts as none, so a feature without values must
                // still be present.
                let default = default.filter(|value| value.len() > 0);
                Length::Fixed { dims, width, default }
            }
            FeatureSpec::Padded { dtype, dims, padding } => {
                let width = element_count(&dims)?;
                if width == 0 {
                    return Err(Error::shape(format!("a step of {dims:?} has no values, so steps cannot be counted")));
                }
                let padding = match padding {
                    Some(value) => expect(&value.reshape([])?, dtype, &[])?,
                    None => Values::of(&Array::zeros(dtype, [])?)?,
                };
                Length::Padded { dims, width, padding }
            }
        };
        Ok(FeaturePlan { name: name.to_string(), kind, length })
    }
}

/// The kind of list that holds a dtype.
pub(super) fn list_kind(dtype: DType) -> Result<ListKind> {
    ListKind::of(dtype).ok_or_else(|| {
        Error::dtype(None, dtype, format!("a tf.Example holds f32, i64 and strings, not {dtype}"))
            .help("read it as one of these, and cast it")
    })
}

/// The elements of a default, checked against this dtype and these sizes.
fn expect(value: &Array, dtype: DType, dims: &[usize]) -> Result<Values> {
    if value.dtype() != dtype {
        let message = format!("the default is {}, but the feature is {dtype}", value.dtype());
        return Err(Error::dtype(Some(dtype), value.dtype(), message));
    }
    if value.dims() != dims {
        return Err(Error::shape(format!("the default is {:?}, but a row of the feature is {dims:?}", value.dims())));
    }
    Values::of(value)
}
