//! Shapes of what a window makes of images.

use estimand_tensor::{Dim, Error, Result, Shape};

use crate::op::{Padding, PoolWindow, Window};
use crate::symbols::Symbols;

pub(super) fn conv_shape(
    w: &Window,
    x: &Shape,
    filter: &Shape,
    depthwise: bool,
    symbols: &mut Symbols,
) -> Result<Shape> {
    if x.rank() != 4 || filter.rank() != 4 {
        return Err(Error::shape(format!(
            "image {x} and filter {filter}: expected [batch, height, width, channels] and [height, width, in, {}]",
            if depthwise { "multiplier" } else { "out" }
        )));
    }
    let (x, f) = (x.dims(), filter.dims());
    if let (Some(channels), Some(expected)) = (x[3].known(), f[2].known())
        && channels != expected
    {
        return Err(Error::shape(format!("the image has {channels} channels, the filter expects {expected}")));
    }
    let h = placed(x[1], f[0], w.strides.0, w.dilations.0, w.padding, symbols)?;
    let width = placed(x[2], f[1], w.strides.1, w.dilations.1, w.padding, symbols)?;
    let channels = if depthwise { symbols.mul(f[2], f[3])? } else { f[3] };
    Ok(Shape::from([x[0], h, width, channels]))
}

pub(super) fn pool_shape(w: &PoolWindow, x: &Shape, symbols: &mut Symbols) -> Result<Shape> {
    if x.rank() != 4 {
        return Err(Error::shape(format!("image {x}: expected [batch, height, width, channels]")));
    }
    let d = x.dims();
    let h = placed(d[1], w.size.0.into(), w.strides.0, 1, w.padding, symbols)?;
    let width = placed(d[2], w.size.1.into(), w.strides.1, 1, w.padding, symbols)?;
    Ok(Shape::from([d[0], h, width, d[3]]))
}

fn placed(
    size: Dim,
    window: Dim,
    stride: usize,
    dilation: usize,
    padding: Padding,
    symbols: &mut Symbols,
) -> Result<Dim> {
    let Some(window) = window.known() else {
        return Err(Error::shape("the size of a window must be known"));
    };
    if window == 0 || stride == 0 || dilation == 0 {
        return Err(Error::config(format!(
            "window {window}, stride {stride}, dilation {dilation}: each must be at least 1"
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
