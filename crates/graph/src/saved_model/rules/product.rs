//! Products, convolutions and normalisation.

use estimand_tensor::{Error, Result, Shape};

use super::super::call::{Call, Outputs, one};
use crate::op::{Op, Padding, Window};
use crate::tensor::Tensor;

pub(super) fn matmul(call: &mut Call<'_, '_>) -> Outputs {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let op =
        Op::MatMul { transpose_a: call.flag("transpose_a", false)?, transpose_b: call.flag("transpose_b", false)? };
    one(call.add(op, &[&a, &b])?.remove(0))
}

pub(super) fn batch_matmul(call: &mut Call<'_, '_>) -> Outputs {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let op = Op::BatchMatMul { adjoint_x: call.flag("adj_x", false)?, adjoint_y: call.flag("adj_y", false)? };
    one(call.add(op, &[&a, &b])?.remove(0))
}

/// (vertical, horizontal) of a list for NHWC.
pub(super) fn nhwc(call: &Call<'_, '_>, key: &str) -> Result<(usize, usize)> {
    match call.list(key)?.i[..] {
        [] => Ok((1, 1)),
        [1, h, w, 1] if h > 0 && w > 0 => Ok((h as usize, w as usize)),
        ref other => Err(call.refuse(format!("`{key}` of {other:?}"))),
    }
}

pub(super) fn padding(call: &Call<'_, '_>) -> Result<Padding> {
    let format = call.text_or("data_format", "NHWC")?;
    if format != "NHWC" {
        return Err(call.refuse(format!("the data format {format}")));
    }
    match call.text_or("padding", "")?.as_str() {
        "SAME" => Ok(Padding::Same),
        "VALID" => Ok(Padding::Valid),
        other => Err(call.refuse(format!("the padding {other}"))),
    }
}

fn window(call: &Call<'_, '_>) -> Result<Window> {
    Ok(Window { strides: nhwc(call, "strides")?, dilations: nhwc(call, "dilations")?, padding: padding(call)? })
}

fn is_depthwise(call: &Call<'_, '_>) -> bool {
    call.def.op.starts_with("Depthwise")
}

pub(super) fn convolution(call: &mut Call<'_, '_>) -> Outputs {
    let (x, filter) = (call.tensor(0)?, call.tensor(1)?);
    let window = window(call)?;
    let op = if is_depthwise(call) { Op::DepthwiseConv2d(window) } else { Op::Conv2d(window) };
    one(call.add(op, &[&x, &filter])?.remove(0))
}

pub(super) fn convolution_input_gradient(call: &mut Call<'_, '_>) -> Outputs {
    let (shape, filter, dy) = (call.shape(0)?, call.tensor(1)?, call.tensor(2)?);
    let window = window(call)?;
    let op = match is_depthwise(call) {
        true => Op::DepthwiseConv2dBackpropInput(window, shape),
        false => Op::Conv2dBackpropInput(window, shape),
    };
    one(call.add(op, &[&filter, &dy])?.remove(0))
}

pub(super) fn convolution_filter_gradient(call: &mut Call<'_, '_>) -> Outputs {
    let (x, shape, dy) = (call.tensor(0)?, call.shape(1)?, call.tensor(2)?);
    let window = window(call)?;
    let op = match is_depthwise(call) {
        true => Op::DepthwiseConv2dBackpropFilter(window, shape),
        false => Op::Conv2dBackpropFilter(window, shape),
    };
    one(call.add(op, &[&x, &dy])?.remove(0))
}

/// (x, scale, offset, mean, variance): normalises each channel of an image, by what training found or by the image itself.
///
/// Keras spells the normalisation of layers with the latter, each row a channel.
pub(super) fn batch_norm(call: &mut Call<'_, '_>) -> Outputs {
    let channel = match call.text_or("data_format", "NHWC")?.as_str() {
        "NHWC" => 3,
        "NCHW" => 1,
        other => return Err(call.refuse(format!("the data format {other}"))),
    };
    let epsilon = call.float_or("epsilon", 1e-4)?.into();
    let (x, scale, offset) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if x.rank() != 4 {
        return Err(Error::shape(format!("an image of {}, expected four axes", x.spec())));
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
