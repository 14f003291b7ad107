//! Converts the value of a tensor to event file values. Numbers that are not finite never cause an
//! error.

use estimand_tensor::{Array, DType, Error, Result};
use estimand_wire::TensorProto;
use estimand_wire::event::{SummaryValue, Value};

use super::histogram::histogram;
use super::image::images;
use super::pr_curve::{buckets_of, check_thresholds, curve};

/// The kind of a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SummaryKind {
    Scalar,
    Histogram,
    Image {
        max_outputs: usize,
    },
    Text,
    /// A precision-recall curve, made from its buckets.
    PrCurve,
}

/// The event values of a tensor.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    pub(crate) values: Vec<Value>,
    /// The count of numbers that were not finite. A scalar is written anyway; a histogram or a
    /// curve leaves them out.
    pub(crate) n_odd: usize,
}

impl From<Vec<Value>> for Converted {
    fn from(values: Vec<Value>) -> Converted {
        Converted { values, n_odd: 0 }
    }
}

impl SummaryKind {
    /// Converts the value of a tensor.
    pub(crate) fn convert(self, tag: &str, array: &Array) -> Result<Converted> {
        match self {
            SummaryKind::Scalar => {
                let values = array.to_f64_vec()?;
                let &[value] = &values[..] else {
                    return Err(Error::shape(format!(
                        "the value of a scalar summary has the shape {:?}; expected one number",
                        array.dims()
                    )));
                };
                let values = vec![Value::scalar(tag, value as f32)];
                Ok(Converted { values, n_odd: usize::from(!value.is_finite()) })
            }
            SummaryKind::Histogram => {
                let all = array.to_f64_vec()?;
                let finite = || all.iter().copied().filter(|value| value.is_finite());
                let n_odd = all.len() - finite().count();
                if n_odd > 0 && n_odd == all.len() {
                    return Ok(Converted { values: Vec::new(), n_odd });
                }
                let value = Some(SummaryValue::Histo(histogram(finite())));
                Ok(Converted { values: vec![Value { tag: tag.to_string(), value, ..Value::default() }], n_odd })
            }
            SummaryKind::Image { max_outputs } => Ok(images(tag, array, max_outputs)?.into()),
            SummaryKind::Text => {
                if array.dtype() != DType::Str {
                    return Err(Error::dtype(
                        Some(DType::Str),
                        array.dtype(),
                        format!("the value of a text summary is {}; expected strings", array.dtype()),
                    ));
                }
                Ok(vec![Value::tensor(tag, TensorProto::from_array(array)).shown_by("text", Vec::new())].into())
            }
            SummaryKind::PrCurve => {
                let mut buckets = array.to_f64_vec()?;
                let odd = buckets.iter_mut().filter(|weight| !weight.is_finite()).map(|weight| *weight = 0.0);
                let n_odd = odd.count();
                Ok(Converted { values: vec![curve(tag, &buckets)], n_odd })
            }
        }
    }
}

/// Makes a precision-recall curve at `num_thresholds` thresholds from 0 to 1.
pub(crate) fn pr_curve(
    tag: &str,
    labels: &Array,
    predictions: &Array,
    num_thresholds: usize,
    weights: Option<&Array>,
) -> Result<Value> {
    check_thresholds(num_thresholds)?;
    Ok(curve(tag, &buckets_of(labels, predictions, num_thresholds, weights)?))
}
