//! The sizes of transposed convolutions.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{Dim, Error, Result};

/// One axis of a transposed convolution.
#[derive(Clone, Copy)]
pub(super) struct Transposed {
    pub taps: usize,
    pub stride: usize,
    pub dilation: usize,
    pub padding: Padding,
}

impl Transposed {
    /// The size of the result along an axis of the input. `extra` is the output padding.
    pub fn output_length(self, x: &Tensor, axis: usize, extra: Option<usize>) -> Result<usize> {
        let Some(Dim::Known(n)) = x.shape().dims().get(axis).copied() else {
            let text = format!("the size of axis {axis} of {} is not known", x.describe());
            return Err(Error::shape(text).help("declare the sizes of the placeholder, or reshape"));
        };
        let Transposed { taps, stride, dilation, padding } = self;
        let overflow = || Error::shape(format!("the result for {} is too large", x.describe()));
        let span = (taps - 1).checked_mul(dilation).and_then(|s| s.checked_add(1)).ok_or_else(overflow)?;
        let length = match (extra, padding) {
            (None, Padding::Same) => n.checked_mul(stride),
            (None, Padding::Valid) => n.checked_mul(stride).and_then(|n| n.checked_add(span.saturating_sub(stride))),
            (Some(extra), _) if extra >= stride => {
                let text = format!(
                    "the output padding is {extra} and the stride is {stride}; expected a padding below the stride"
                );
                return Err(Error::config(text));
            }
            (Some(extra), padding) => {
                let kept = if padding == Padding::Same { span - span / 2 * 2 } else { span };
                n.saturating_sub(1).checked_mul(stride).and_then(|n| n.checked_add(kept + extra))
            }
        };
        let length = length.ok_or_else(overflow)?;
        // TF: an even kernel with `Same` and no output padding has no result that fits.
        match padding.place(length, taps, stride, dilation) {
            Some((back, ..)) if back == n => Ok(length),
            _ => Err(Error::config(format!(
                "with an output padding of {}, axis {axis} of {} becomes {length}, which no convolution turns back \
                 to {n}",
                extra.unwrap_or(0),
                x.describe()
            ))
            .help("use another output padding, or none")),
        }
    }
}
