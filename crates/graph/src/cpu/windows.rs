//! Steps in which a window moves over images: convolutions and pooling.

use estimand_tensor::cpu::conv::{self, ConvShape};
use estimand_tensor::cpu::depthwise::{self, DepthwiseShape};
use estimand_tensor::cpu::matmul::Epilogue;
use estimand_tensor::cpu::pool2d::{self, PoolShape};
use estimand_tensor::cpu::window;
use estimand_tensor::{Error, Result};

use super::call::Call;
use crate::op::{Op, Padding, PoolWindow, Window};

/// The margins of a window on images of these sizes.
fn placed(
    dims: &[usize],
    size: [usize; 2],
    strides: (usize, usize),
    dilations: (usize, usize),
    padding: Padding,
) -> window::Window {
    let place = |axis: usize, stride: usize, dilation: usize| {
        padding.place(dims[axis + 1], size[axis], stride, dilation).map_or((0, 0), |(_, before, after)| (before, after))
    };
    let (rows, columns) = (place(0, strides.0, dilations.0), place(1, strides.1, dilations.1));
    window::Window {
        size,
        stride: [strides.0, strides.1],
        dilation: [dilations.0, dilations.1],
        padding_before: [rows.0, columns.0],
        padding_after: [rows.1, columns.1],
    }
}

/// The sizes of a convolution of images with a filter.
fn conv_shape(window: &Window, x: &[usize], filter: &[usize]) -> ConvShape {
    ConvShape {
        batch: x[0],
        height: x[1],
        width: x[2],
        in_channels: x[3],
        out_channels: filter[3],
        window: placed(x, [filter[0], filter[1]], window.strides, window.dilations, window.padding),
    }
}

/// The sizes of a convolution of images with one filter for each channel.
fn depthwise_shape(window: &Window, x: &[usize], filter: &[usize]) -> DepthwiseShape {
    DepthwiseShape {
        batch: x[0],
        height: x[1],
        width: x[2],
        channels: x[3],
        multiplier: filter[3],
        window: placed(x, [filter[0], filter[1]], window.strides, window.dilations, window.padding),
    }
}

/// The sizes of a pooling of images.
fn pool_shape(window: &PoolWindow, x: &[usize]) -> PoolShape {
    PoolShape {
        batch: x[0],
        height: x[1],
        width: x[2],
        channels: x[3],
        window: placed(x, [window.size.0, window.size.1], window.strides, (1, 1), window.padding),
    }
}

/// Bytes of scratch memory.
pub(super) fn scratch_bytes(op: &Op, x: &[&[usize]], y: &[usize]) -> usize {
    let floats = match op {
        Op::Conv2d(w) => conv::conv2d_scratch_len(&conv_shape(w, x[0], x[1])),
        Op::Conv2dBackpropInput(w, _) => conv::conv2d_backprop_input_scratch_len(&conv_shape(w, y, x[0])),
        Op::Conv2dBackpropFilter(w, _) => conv::conv2d_backprop_filter_scratch_len(&conv_shape(w, x[0], y)),
        Op::DepthwiseConv2d(w) => depthwise_shape(w, x[0], x[1]).scratch_len(),
        Op::DepthwiseConv2dBackpropInput(w, _) => depthwise_shape(w, y, x[0]).scratch_len(),
        Op::DepthwiseConv2dBackpropFilter(w, _) => depthwise_shape(w, x[0], y).scratch_len(),
        _ => 0,
    };
    floats * 4
}

/// The sizes of a pooling of a convolution's result.
fn pool_of(shape: &ConvShape, window: &PoolWindow) -> PoolShape {
    pool_shape(window, &[shape.batch, shape.out_height(), shape.out_width(), shape.out_channels])
}

/// Bytes of scratch memory of a convolution or its gradient that is merged with a pooling.
pub(super) fn pooled_scratch_bytes(op: &Op, x: &[&[usize]], y: &[usize]) -> usize {
    let floats = match op {
        Op::Conv2d(w) => conv::conv2d_max_pooled_scratch_len(&conv_shape(w, x[0], x[1])),
        Op::Conv2dBackpropFilter(w, _) => conv::conv2d_backprop_filter_pooled_scratch_len(&conv_shape(w, x[0], y)),
        _ => 0,
    };
    floats * 4
}

impl Call<'_> {
    /// A convolution whose result goes through a max pooling.
    pub(super) fn pooled_product(&mut self, pool: &Op, bias: bool, relu: bool) -> Result<()> {
        let (Op::Conv2d(window), Op::MaxPool(pool)) = (&self.node.op, pool) else {
            return Err(Error::internal(format!("{} of {}", pool.name(), self.node.op.name())));
        };
        let (x, [y, which]) = (&self.x, &mut self.y[..]) else {
            return Err(Error::internal("a pooled product has two results"));
        };
        // SAFETY: scratch buffers are aligned to 64 bytes; any bits are a float.
        let scratch =
            unsafe { std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast::<f32>(), self.scratch.len() / 4) };
        let shape = conv_shape(window, x[0].dims, x[1].dims);
        conv::conv2d_max_pooled(
            self.pool,
            &shape,
            x[0].as_slice(),
            x[1].as_slice(),
            Epilogue { bias: bias.then(|| x[2].as_slice()), relu },
            &pool_of(&shape, pool),
            y.as_mut_slice(),
            which.as_mut_slice(),
            scratch,
        );
        Ok(())
    }

    /// The gradients of a convolution's filter and bias from that of the pooling behind it.
    pub(super) fn pooled_gradient(&mut self, pool: &Op) -> Result<()> {
        let (Op::Conv2dBackpropFilter(window, _), Op::MaxPoolGrad(pool)) = (&self.node.op, pool) else {
            return Err(Error::internal(format!("{} of {}", self.node.op.name(), pool.name())));
        };
        let (x, [dfilter, dbias]) = (&self.x, &mut self.y[..]) else {
            return Err(Error::internal("a pooled gradient has two results"));
        };
        // SAFETY: scratch buffers are aligned to 64 bytes; any bits are a float.
        let scratch =
            unsafe { std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast::<f32>(), self.scratch.len() / 4) };
        let shape = conv_shape(window, x[0].dims, dfilter.dims);
        let pooling = conv::Pooling { shape: &pool_of(&shape, pool), which: x[1].as_slice(), dy: x[2].as_slice() };
        let (dfilter, dbias) = (dfilter.as_mut_slice(), dbias.as_mut_slice());
        conv::conv2d_backprop_filter_pooled(self.pool, &shape, x[0].as_slice(), pooling, dfilter, dbias, scratch)
    }

    /// Convolutions, pooling, and their gradients.
    pub(super) fn window(&mut self, bias: bool, relu: bool) -> Result<()> {
        let (pool, x) = (self.pool, &self.x);
        // SAFETY: scratch buffers are aligned to 64 bytes; any bits are a float.
        let scratch =
            unsafe { std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast::<f32>(), self.scratch.len() / 4) };
        let y = &mut self.y[0];
        match &self.node.op {
            Op::Conv2d(w) => {
                let shape = conv_shape(w, x[0].dims, x[1].dims);
                let epilogue = Epilogue { bias: bias.then(|| x[2].as_slice()), relu };
                conv::conv2d(pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), epilogue, scratch);
            }
            Op::Conv2dBackpropInput(w, _) => {
                let shape = conv_shape(w, y.dims, x[0].dims);
                conv::conv2d_backprop_input(pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), scratch);
            }
            Op::Conv2dBackpropFilter(w, _) => {
                let shape = conv_shape(w, x[0].dims, y.dims);
                conv::conv2d_backprop_filter(pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), scratch);
            }
            Op::DepthwiseConv2d(w) => {
                let shape = depthwise_shape(w, x[0].dims, x[1].dims);
                depthwise::depthwise_conv2d(pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), scratch);
            }
            Op::DepthwiseConv2dBackpropInput(w, _) => {
                let shape = depthwise_shape(w, y.dims, x[0].dims);
                let (filter, dy) = (x[0].as_slice(), x[1].as_slice());
                depthwise::depthwise_conv2d_backprop_input(pool, &shape, filter, dy, y.as_mut_slice(), scratch);
            }
            Op::DepthwiseConv2dBackpropFilter(w, _) => {
                let shape = depthwise_shape(w, x[0].dims, y.dims);
                let (x, dy) = (x[0].as_slice(), x[1].as_slice());
                depthwise::depthwise_conv2d_backprop_filter(pool, &shape, x, dy, y.as_mut_slice(), scratch);
            }
            Op::MaxPool(w) => {
                let (shape, x) = (pool_shape(w, x[0].dims), x[0].as_slice());
                match &mut self.y[..] {
                    [y, which] => {
                        pool2d::max_pool_which(pool, &shape, x, y.as_mut_slice(), which.as_mut_slice());
                    }
                    y => pool2d::max_pool(pool, &shape, x, y[0].as_mut_slice()),
                }
            }
            Op::AvgPool(w) => pool2d::avg_pool(pool, &pool_shape(w, x[0].dims), x[0].as_slice(), y.as_mut_slice()),
            // A `Kernel::Which`.
            Op::MaxPoolGrad(w) if x.len() == 2 => {
                let (shape, which, dy) = (pool_shape(w, y.dims), x[0].as_slice(), x[1].as_slice());
                pool2d::max_pool_grad_which(pool, &shape, which, dy, y.as_mut_slice());
            }
            Op::MaxPoolGrad(w) => {
                let (shape, x, pooled, dy) =
                    (pool_shape(w, x[0].dims), x[0].as_slice(), x[1].as_slice(), x[2].as_slice());
                pool2d::max_pool_grad(pool, &shape, x, pooled, dy, y.as_mut_slice());
            }
            Op::AvgPoolGrad(w, _) => {
                let shape = pool_shape(w, y.dims);
                pool2d::avg_pool_grad(pool, &shape, x[0].as_slice(), y.as_mut_slice());
            }
            other => return Err(Error::internal(format!("{} moves no window", other.name()))),
        }
        Ok(())
    }
}
