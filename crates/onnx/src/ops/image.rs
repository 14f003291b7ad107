//! Images: convolutions, pooling, other sizes. Ours have channels last, those of ONNX channels
//! first, so an image is transposed before and after. Runtimes remove the pairs in between.

use estimand_graph::Padding;
use estimand_graph::op::{AvgPool, Conv2d, Conv2dBackpropInput, DepthwiseConv2d, MaxPool, PoolWindow, Resize, Window};
use estimand_tensor::cpu::resize::Resize as Line;
use estimand_tensor::{DType, Dim, Error, Result};

use super::At;
use crate::message::AttributeProto;
use crate::refuse::no_counterpart;

fn channels_first(at: &mut At<'_, '_, '_, '_>, x: &str) -> String {
    at.transpose(x, &[0, 3, 1, 2])
}

fn channels_last(at: &mut At<'_, '_, '_, '_>, x: &str) -> String {
    at.transpose(x, &[0, 2, 3, 1])
}

fn pair(name: &str, (a, b): (usize, usize)) -> AttributeProto {
    AttributeProto::ints(name, [a as i64, b as i64])
}

/// The borders before and after one axis; `None` if they depend on a size that is not known.
fn border(padding: Padding, size: Dim, taps: usize, stride: usize, dilation: usize) -> Result<Option<(usize, usize)>> {
    let size = match (size.known(), padding) {
        (Some(size), _) => size,
        (None, Padding::Valid) => return Ok(Some((0, 0))),
        // Windows that move by one element have the same borders at every size, and windows of one
        // element have none.
        (None, Padding::Same) if stride == 1 || taps == 1 => 1,
        (None, Padding::Same) => return Ok(None),
    };
    let place = padding.place(size, taps, stride, dilation);
    let (_, before, after) =
        place.ok_or_else(|| Error::shape(format!("a window of {taps} does not fit an image of {size}")))?;
    Ok(Some((before, after)))
}

/// The image for a window, with channels first, and the borders as numbers. `auto_pad` is for
/// borders that only the run knows, because onnxruntime refuses it together with dilations.
fn bordered(
    at: &mut At<'_, '_, '_, '_>,
    x: &str,
    window: &Window,
    taps: (usize, usize),
) -> Result<(String, AttributeProto)> {
    let (dims, strides, dilations) = (at.dims(0), window.strides, window.dilations);
    let rows = border(window.padding, dims[1], taps.0, strides.0, dilations.0)?;
    let columns = border(window.padding, dims[2], taps.1, strides.1, dilations.1)?;
    match (rows, columns) {
        (Some((top, bottom)), Some((left, right))) => {
            let pads = [top, left, bottom, right].map(|n| n as i64);
            Ok((channels_first(at, x), AttributeProto::ints("pads", pads)))
        }
        _ if dilations == (1, 1) => {
            let x = reached(at, x, 1, taps.0, strides.0)?;
            let x = reached(at, &x, 2, taps.1, strides.1)?;
            Ok((channels_first(at, &x), AttributeProto::text("auto_pad", "SAME_UPPER")))
        }
        _ => no_counterpart(at, "it has strides and dilations, and the size of its image is known only at run time"),
    }
}

/// The elements of an axis up to the last that a window reaches. With windows that are smaller
/// than their strides there may be others after it, for which `auto_pad` has borders below 0:
/// onnxruntime then refuses to pool, and moves the windows of a convolution.
fn reached(at: &mut At<'_, '_, '_, '_>, x: &str, axis: usize, taps: usize, stride: usize) -> Result<String> {
    if taps >= stride {
        return Ok(x.to_string());
    }
    let n_windows = at.size(at.node.outputs[0].shape.dims()[axis])?;
    let (stride, beyond) = (at.ints([stride as i64])?, at.ints([(stride - taps) as i64])?);
    let end = at.add("Mul", &[&n_windows, &stride]);
    let end = at.add("Sub", &[&end, &beyond]);
    let (begin, axis) = (at.ints([0])?, at.ints([axis as i64])?);
    Ok(at.add("Slice", &[x, &begin, &end, &axis]))
}

/// The height and width of a filter.
fn taps(at: &At<'_, '_, '_, '_>, i: usize) -> Result<(usize, usize)> {
    match (at.dims(i)[0].known(), at.dims(i)[1].known()) {
        (Some(height), Some(width)) => Ok((height, width)),
        _ => no_counterpart(at, "the size of its filter is known only at run time"),
    }
}

/// Convolution of images.
pub(super) fn conv2d(at: &mut At<'_, '_, '_, '_>, op: &Conv2d) -> Result<String> {
    let (x, filter) = (at.x(0)?, at.x(1)?);
    let filter = at.transpose(&filter, &[3, 2, 0, 1]);
    // Filters of a part of the channels are groups.
    let group = match (at.dims(0)[3].known(), at.dims(1)[2].known()) {
        (Some(channels), Some(seen)) if seen > 0 => channels / seen,
        _ => 1,
    };
    convolution(at, &x, &filter, &op.window, group)
}

/// Convolution with filters for each channel.
pub(super) fn depthwise_conv2d(at: &mut At<'_, '_, '_, '_>, op: &DepthwiseConv2d) -> Result<String> {
    let (x, filter, (height, width)) = (at.x(0)?, at.x(1)?, taps(at, 1)?);
    let Some(channels) = at.dims(1)[2].known() else {
        return no_counterpart(at, "the number of its channels is known only at run time");
    };
    let filter = at.transpose(&filter, &[2, 3, 0, 1]);
    let filter = at.reshape(&filter, &[-1, 1, height as i64, width as i64])?;
    convolution(at, &x, &filter, &op.window, channels)
}

fn convolution(at: &mut At<'_, '_, '_, '_>, x: &str, filter: &str, window: &Window, group: usize) -> Result<String> {
    let taps = taps(at, 1)?;
    let (x, borders) = bordered(at, x, window, taps)?;
    let attributes = vec![
        pair("kernel_shape", taps),
        pair("strides", window.strides),
        pair("dilations", window.dilations),
        AttributeProto::int("group", group as i64),
        borders,
    ];
    let y = at.add_with("Conv", &[&x, filter], attributes);
    Ok(channels_last(at, &y))
}

/// The transposed convolution: (filter, image) -> a larger image.
pub(super) fn transposed_conv2d(at: &mut At<'_, '_, '_, '_>, op: &Conv2dBackpropInput) -> Result<String> {
    let (filter, x, taps) = (at.x(0)?, at.x(1)?, taps(at, 0)?);
    let (Some(height), Some(width)) = (op.shape.dims()[1].known(), op.shape.dims()[2].known()) else {
        return no_counterpart(at, "the size of its image is known only at run time");
    };
    let Window { strides, dilations, padding } = op.window;
    // The borders that the convolution of the larger image has, and the elements beyond its last
    // window.
    let place = |size: usize, taps: usize, stride: usize, dilation: usize| -> Result<(i64, i64, i64)> {
        let found = padding.place(size, taps, stride, dilation);
        let (n, before, after) =
            found.ok_or_else(|| Error::shape(format!("a window of {taps} does not fit {size}")))?;
        let covered = (n as i64 - 1) * stride as i64 + ((taps - 1) * dilation + 1) as i64;
        Ok((before as i64, after as i64, size as i64 - (covered - (before + after) as i64)))
    };
    let (top, bottom, below) = place(height, taps.0, strides.0, dilations.0)?;
    let (left, right, beside) = place(width, taps.1, strides.1, dilations.1)?;
    let attributes = vec![
        pair("kernel_shape", taps),
        pair("strides", strides),
        pair("dilations", dilations),
        AttributeProto::ints("pads", [top, left, bottom, right]),
        AttributeProto::ints("output_padding", [below, beside]),
    ];
    let filter = at.transpose(&filter, &[3, 2, 0, 1]);
    let x = channels_first(at, &x);
    let y = at.add_with("ConvTranspose", &[&x, &filter], attributes);
    Ok(channels_last(at, &y))
}

/// The largest element under a window.
pub(super) fn max_pool(at: &mut At<'_, '_, '_, '_>, op: &MaxPool) -> Result<String> {
    pool(at, "MaxPool", &op.window, Vec::new())
}

/// The mean under a window, without the borders.
pub(super) fn avg_pool(at: &mut At<'_, '_, '_, '_>, op: &AvgPool) -> Result<String> {
    pool(at, "AveragePool", &op.window, vec![AttributeProto::int("count_include_pad", 0)])
}

fn pool(
    at: &mut At<'_, '_, '_, '_>,
    op: &str,
    window: &PoolWindow,
    mut attributes: Vec<AttributeProto>,
) -> Result<String> {
    let x = at.x(0)?;
    let moved = Window { strides: window.strides, dilations: (1, 1), padding: window.padding };
    let (x, borders) = bordered(at, &x, &moved, window.size)?;
    attributes.extend([pair("kernel_shape", window.size), pair("strides", window.strides), borders]);
    let y = at.add_with(op, &[&x], attributes);
    Ok(channels_last(at, &y))
}

/// Another height and width.
pub(super) fn resize(at: &mut At<'_, '_, '_, '_>, op: &Resize) -> Result<String> {
    let (x, dims) = (at.x(0)?, at.dims(0));
    let repeats = |from: Dim, to: usize| from.known().is_some_and(|from| from > 0 && to.is_multiple_of(from));
    let is_repeated = repeats(dims[1], op.size.0) && repeats(dims[2], op.size.1);
    if !op.bilinear && !is_repeated {
        return nearest(at, op, x);
    }
    let sizes = at.shape(&[dims[0], dims[3], op.size.0.into(), op.size.1.into()])?;
    let centres = if op.half_pixel_centers { "half_pixel" } else { "asymmetric" };
    let mut attributes = vec![
        AttributeProto::text("mode", if op.bilinear { "linear" } else { "nearest" }),
        AttributeProto::text("coordinate_transformation_mode", centres),
    ];
    if !op.bilinear {
        // The pixel whose area holds the centre.
        let nearest = if op.half_pixel_centers { "round_prefer_ceil" } else { "floor" };
        attributes.push(AttributeProto::text("nearest_mode", nearest));
    }
    let x = channels_first(at, &x);
    let y = at.add_with("Resize", &[&x, "", "", &sizes], attributes);
    Ok(channels_last(at, &y))
}

/// Rows and columns by their numbers. `Resize` computes the nearest pixel in another way: where a
/// centre is on the border of two pixels, rounding makes it take the other one. It is right only
/// where each pixel is repeated.
fn nearest(at: &mut At<'_, '_, '_, '_>, op: &Resize, mut x: String) -> Result<String> {
    for (axis, to) in [(1, op.size.0), (2, op.size.1)] {
        let pixels = match at.dims(0)[axis].known() {
            Some(from) => {
                let half_pixel_centers = op.half_pixel_centers;
                let line = Line { from: [from; 2], to: [to; 2], channels: 1, align_corners: false, half_pixel_centers };
                at.ints(line.nearest_pixels(0).map(|pixel| pixel as i64))?
            }
            None => nearest_pixels(at, op, at.dims(0)[axis], to)?,
        };
        x = at.add_with("Gather", &[&x, &pixels], vec![AttributeProto::int("axis", axis as i64)]);
    }
    Ok(x)
}

/// The nearest pixels of an axis whose size only the run knows, with the f32 arithmetic of our
/// kernel.
fn nearest_pixels(at: &mut At<'_, '_, '_, '_>, op: &Resize, from: Dim, to: usize) -> Result<String> {
    let shift = if op.half_pixel_centers { 0.5 } else { 0.0 };
    let places: Vec<f32> = (0..to).map(|i| i as f32 + shift).collect();
    let (places, new, one) = (at.constant(&places.into())?, at.scalar(to as f32)?, at.scalar(1i64)?);
    let old = at.size_number(from)?;
    let last = at.add("Sub", &[&old, &one]);
    let old = at.cast(&old, DType::I64, DType::F32);
    let scale = at.add("Div", &[&old, &new]);
    let pixels = at.add("Mul", &[&places, &scale]);
    let pixels = at.add("Floor", &[&pixels]);
    let pixels = at.cast(&pixels, DType::F32, DType::I64);
    Ok(at.add("Min", &[&pixels, &last]))
}
