//! Shapes, costs and attributes shared by ops that move a window over images.

use super::attribute::{Padding, PoolWindow, Window};
use super::rules::*;
use crate::symbols::Symbols;

/// The shape of a convolution's result.
pub(super) fn conv_shape(
    w: &Window,
    x: &Shape,
    filter: &Shape,
    depthwise: bool,
    symbols: &mut Symbols,
) -> Result<Shape> {
    if x.rank() != 4 || filter.rank() != 4 {
        return Err(Error::shape(format!(
            "the image is {x} and the filter {filter}; expected [batch, height, width, channels] and \
             [height, width, in, {}]",
            if depthwise { "multiplier" } else { "out" }
        )));
    }
    let (x, f) = (x.dims(), filter.dims());
    if let (Some(channels), Some(expected)) = (x[3].known(), f[2].known())
        && channels != expected
    {
        return Err(Error::shape(format!("the image has {channels} channels, but the filter expects {expected}")));
    }
    let h = placed(x[1], f[0], w.strides.0, w.dilations.0, w.padding, symbols)?;
    let width = placed(x[2], f[1], w.strides.1, w.dilations.1, w.padding, symbols)?;
    let channels = if depthwise { symbols.mul(f[2], f[3])? } else { f[3] };
    Ok(Shape::from([x[0], h, width, channels]))
}

/// The shape of a pooling's result.
pub(super) fn pool_shape(w: &PoolWindow, x: &Shape, symbols: &mut Symbols) -> Result<Shape> {
    if x.rank() != 4 {
        return Err(Error::shape(format!("the image is {x}; expected [batch, height, width, channels]")));
    }
    let d = x.dims();
    let h = placed(d[1], w.size.0.into(), w.strides.0, 1, w.padding, symbols)?;
    let width = placed(d[2], w.size.1.into(), w.strides.1, 1, w.padding, symbols)?;
    Ok(Shape::from([d[0], h, width, d[3]]))
}

/// The number of window positions along an axis.
fn placed(
    size: Dim,
    window: Dim,
    stride: usize,
    dilation: usize,
    padding: Padding,
    symbols: &mut Symbols,
) -> Result<Dim> {
    let Some(window) = window.known() else {
        return Err(Error::shape("the size of the window must be known before the run"));
    };
    if window == 0 || stride == 0 || dilation == 0 {
        return Err(Error::config(format!(
            "the window is {window}, the stride {stride} and the dilation {dilation}; expected at least 1 each"
        )));
    }
    match (size, padding) {
        (Dim::Known(n), _) => {
            let placed = padding.place(n, window, stride, dilation);
            placed.map(|p| Dim::Known(p.0)).ok_or_else(|| Error::shape("the window's size overflows"))
        }
        (d, Padding::Same) => Ok(symbols.ceil_div(d, stride)),
        (d, Padding::Valid) => {
            let span = (window - 1).checked_mul(dilation).and_then(|s| s.checked_add(1));
            let span = Dim::Known(span.ok_or_else(|| Error::shape("the window's size overflows"))?);
            let shifted = symbols.add(d, Dim::Known(stride))?;
            let room = symbols.sub(shifted, span);
            Ok(symbols.div(room, Dim::Known(stride)))
        }
    }
}

/// Operations of a convolution with `out` results. Taps over the border count like all others.
pub(crate) fn terms(out: usize, filter: &[usize]) -> u64 {
    product(&[2, out, filter[0], filter[1], filter[2]])
}

/// Operations of a convolution whose results each read one channel.
pub(super) fn terms_depthwise(out: usize, filter: &[usize]) -> u64 {
    product(&[2, out, filter[0], filter[1]])
}

/// Operations of a pooling with `out` results.
pub(crate) fn pooled(out: usize, window: &PoolWindow) -> u64 {
    product(&[out, window.size.0, window.size.1])
}

/// (vertical, horizontal) as TensorFlow's list for NHWC.
fn nhwc(pair: (usize, usize)) -> Vec<i64> {
    vec![1, pair.0 as i64, pair.1 as i64, 1]
}

pub(super) fn spell_convolution(def: NodeDef, window: &Window) -> NodeDef {
    def.attr("strides", nhwc(window.strides))
        .attr("dilations", nhwc(window.dilations))
        .attr("padding", window.padding.tf_name())
        .attr("data_format", "NHWC")
}

/// Writes the gradient of a convolution. The shape of the differentiated input takes its position
/// among the inputs: first the image, then the filter.
pub(super) fn spell_convolution_gradient(
    mut def: NodeDef,
    node: &Node,
    window: &Window,
    shape: &Shape,
    place: usize,
    writer: &mut dyn Spelling,
) -> Result<NodeDef> {
    let sizes = writer.shape(&def.name, "sizes", shape.dims(), DType::I32)?;
    def.input.insert(place, sizes);
    Ok(spell_convolution(typed(def, "T", writer.dtype(node, 0)), window))
}

pub(super) fn spell_pooling(def: NodeDef, window: &PoolWindow) -> NodeDef {
    def.attr("ksize", nhwc(window.size))
        .attr("strides", nhwc(window.strides))
        .attr("padding", window.padding.tf_name())
        .attr("data_format", "NHWC")
}

/// (vertical, horizontal) of a list for NHWC.
fn read_nhwc(reading: &dyn Reading, key: &str) -> Result<(usize, usize)> {
    match reading.ints(key)?[..] {
        [] => Ok((1, 1)),
        [1, h, w, 1] if h > 0 && w > 0 => Ok((h as usize, w as usize)),
        ref other => Err(refuse(format!("`{key}` of {other:?}"))),
    }
}

fn read_padding(reading: &dyn Reading) -> Result<Padding> {
    let format = reading.text_or("data_format", "NHWC")?;
    if format != "NHWC" {
        return Err(refuse(format!("the data format {format}")));
    }
    match reading.text_or("padding", "")?.as_str() {
        "SAME" => Ok(Padding::Same),
        "VALID" => Ok(Padding::Valid),
        other => Err(refuse(format!("the padding {other}"))),
    }
}

pub(super) fn read_window(reading: &dyn Reading) -> Result<Window> {
    let (strides, dilations) = (read_nhwc(reading, "strides")?, read_nhwc(reading, "dilations")?);
    Ok(Window { strides, dilations, padding: read_padding(reading)? })
}

pub(super) fn read_pool_window(reading: &dyn Reading) -> Result<PoolWindow> {
    let (size, strides) = (read_nhwc(reading, "ksize")?, read_nhwc(reading, "strides")?);
    Ok(PoolWindow { size, strides, padding: read_padding(reading)? })
}
