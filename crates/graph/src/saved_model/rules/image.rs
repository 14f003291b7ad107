//! Pooling and resizing.

use estimand_tensor::{Error, Result};

use super::super::call::{Call, Outputs, one};
use super::product::{nhwc, padding};
use crate::op::{Op, PoolWindow, Resize};

fn window(call: &Call<'_, '_>) -> Result<PoolWindow> {
    Ok(PoolWindow { size: nhwc(call, "ksize")?, strides: nhwc(call, "strides")?, padding: padding(call)? })
}

pub(super) fn pool(call: &mut Call<'_, '_>) -> Outputs {
    let window = window(call)?;
    let inputs = call.tensors(0..call.n_inputs())?;
    let (op, n) = match call.def.op.as_str() {
        "MaxPool" => (Op::MaxPool(window), 1),
        "AvgPool" => (Op::AvgPool(window), 1),
        _ => (Op::MaxPoolGrad(window), 3),
    };
    if inputs.len() != n {
        return Err(Error::config(format!("{} inputs, expected {n}", inputs.len())));
    }
    one(call.add(op, &inputs.iter().collect::<Vec<_>>())?.remove(0))
}

pub(super) fn avg_pool_gradient(call: &mut Call<'_, '_>) -> Outputs {
    let (shape, dy) = (call.shape(0)?, call.tensor(1)?);
    one(call.add(Op::AvgPoolGrad(window(call)?, shape), &[&dy])?.remove(0))
}

fn resize_to(call: &Call<'_, '_>, bilinear: bool, size: (usize, usize)) -> Result<Resize> {
    if call.flag("align_corners", false)? {
        return Err(call.refuse("`align_corners`"));
    }
    Ok(Resize { bilinear, size, half_pixel_centers: call.flag("half_pixel_centers", false)? })
}

pub(super) fn resize(call: &mut Call<'_, '_>) -> Outputs {
    let (image, size) = (call.tensor(0)?, call.integers(1)?);
    let size = match size[..] {
        [h, w] if h > 0 && w > 0 => (h as usize, w as usize),
        _ => return Err(Error::config(format!("an image of {size:?}, expected height and width"))),
    };
    let op = Op::Resize(resize_to(call, call.def.op == "ResizeBilinear", size)?);
    one(call.add(op, &[&image])?.remove(0))
}

pub(super) fn resize_gradient(call: &mut Call<'_, '_>) -> Outputs {
    let dy = call.tensor(0)?;
    let bilinear = call.def.op == "ResizeBilinearGrad";
    let &[batch, h, w, channels] = dy.shape().dims() else {
        return Err(Error::shape(format!("a gradient of {}, expected an image", dy.spec())));
    };
    let (Some(h), Some(w)) = (h.known(), w.known()) else {
        return Err(call.refuse("the gradient of a resize to a size that the run computes"));
    };
    let shape = match bilinear {
        true => call.tensor(1)?.shape().clone(),
        false => match call.sizes(1)?[..] {
            [height, width] => estimand_tensor::Shape::from([batch, height, width, channels]),
            _ => return Err(Error::config("expected height and width")),
        },
    };
    let op = Op::ResizeGrad(resize_to(call, bilinear, (h, w))?, shape);
    one(call.add(op, &[&dy])?.remove(0))
}
