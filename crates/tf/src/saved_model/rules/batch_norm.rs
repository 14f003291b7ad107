//! Batch normalisation of images.

use estimand_graph::Tensor;
use estimand_graph::op::reading::{Reading, refuse};
use estimand_tensor::{Error, Shape};

use super::super::node_reader::{NodeReader, Outputs, one};

/// (x, scale, offset, mean, variance): normalises each channel of an image, with the statistics of
/// training or of the image itself.
///
/// Keras writes layer normalisation in the second form, with each row as a channel.
pub(super) fn batch_norm(call: &mut NodeReader<'_, '_>) -> Outputs {
    let channel = match call.text_or("data_format", "NHWC")?.as_str() {
        "NHWC" => 3,
        "NCHW" => 1,
        other => return Err(refuse(format!("the data format {other}"))),
    };
    let epsilon = call.float_or("epsilon", 1e-4)?.into();
    let (x, scale, offset) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if x.rank() != 4 {
        return Err(Error::shape(format!("the image is {}; expected four axes", x.spec())));
    }
    let spread = |list: &Tensor| {
        let mut shape = Shape::from([1, 1, 1, 1]);
        shape.0[channel] = x.shape().dims()[channel];
        list.reshape_as(shape)
    };
    let (mean, variance) = match call.flag("is_training", true)? {
        false => (spread(&call.tensor(3)?), spread(&call.tensor(4)?)),
        true => x.moments(&(0..4).filter(|&axis| axis != channel as i64).collect::<Vec<_>>()),
    };
    one(x.batch_normalization(&mean, &variance, &spread(&offset), &spread(&scale), epsilon))
}
