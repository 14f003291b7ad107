//! Steps that move a window over images: convolutions and pooling.

use estimand_graph::op::*;
use estimand_tensor::cpu::conv::{self, ConvShape};
use estimand_tensor::cpu::depthwise::{self, DepthwiseShape};
use estimand_tensor::cpu::pool2d::{self, PoolShape};
use estimand_tensor::cpu::window;
use estimand_tensor::{Error, Result};

use super::kernel::After;
use super::operands::{KernelCall, floats};

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

/// The sizes of a convolution of images with separate filters for each channel.
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

/// Floats of scratch memory of a convolution.
pub(super) fn conv_scratch(op: &Conv2d, x: &[&[usize]]) -> usize {
    conv::conv2d_scratch_len(&conv_shape(&op.window, x[0], x[1]))
}

pub(super) fn conv_input_scratch(op: &Conv2dBackpropInput, x: &[&[usize]], y: &[usize]) -> usize {
    conv::conv2d_backprop_input_scratch_len(&conv_shape(&op.window, y, x[0]))
}

pub(super) fn conv_filter_scratch(op: &Conv2dBackpropFilter, x: &[&[usize]], y: &[usize]) -> usize {
    conv::conv2d_backprop_filter_scratch_len(&conv_shape(&op.window, x[0], y))
}

pub(super) fn depthwise_scratch(window: &Window, x: &[usize], filter: &[usize]) -> usize {
    depthwise_shape(window, x, filter).scratch_len()
}

/// The sizes of a pooling of a convolution's result.
fn pool_of(shape: &ConvShape, window: &PoolWindow) -> PoolShape {
    pool_shape(window, &[shape.batch, shape.out_height(), shape.out_width(), shape.out_channels])
}

/// Bytes of scratch memory of a convolution or its gradient that is merged with a pooling.
pub(super) fn pooled_scratch_bytes(op: &Op, x: &[&[usize]], y: &[usize]) -> usize {
    let floats = match op {
        Op::Conv2d(op) => conv::conv2d_max_pooled_scratch_len(&conv_shape(&op.window, x[0], x[1])),
        Op::Conv2dBackpropFilter(op) => {
            conv::conv2d_backprop_filter_pooled_scratch_len(&conv_shape(&op.window, x[0], y))
        }
        _ => 0,
    };
    floats * 4
}

impl KernelCall<'_, '_> {
    /// A convolution followed by a max pooling.
    pub(super) fn pooled_product(&mut self, pool: &Op, after: After) -> Result<()> {
        let (Op::Conv2d(Conv2d { window }), Op::MaxPool(MaxPool { window: pool })) = (&self.node.op, pool) else {
            return Err(Error::internal(format!("{} of {}", pool.name(), self.node.op.name())));
        };
        let (x, [y, which]) = (&self.x, &mut self.y[..]) else {
            return Err(Error::internal("a pooled product has two results"));
        };
        let scratch = floats(self.scratch);
        let shape = conv_shape(window, x[0].dims, x[1].dims);
        conv::conv2d_max_pooled(
            self.pool,
            &shape,
            x[0].as_slice(),
            x[1].as_slice(),
            after.epilogue(&x[2..]),
            &pool_of(&shape, pool),
            y.as_mut_slice(),
            which.as_mut_slice(),
            scratch,
        );
        Ok(())
    }

    /// The gradients of a convolution's filter and bias from the gradient of the pooling after it.
    pub(super) fn pooled_gradient(&mut self, pool: &Op) -> Result<()> {
        let (
            Op::Conv2dBackpropFilter(Conv2dBackpropFilter { window, .. }),
            Op::MaxPoolGrad(MaxPoolGrad { window: pool }),
        ) = (&self.node.op, pool)
        else {
            return Err(Error::internal(format!("{} of {}", self.node.op.name(), pool.name())));
        };
        let (x, [dfilter, dbias]) = (&self.x, &mut self.y[..]) else {
            return Err(Error::internal("a pooled gradient has two results"));
        };
        let scratch = floats(self.scratch);
        let shape = conv_shape(window, x[0].dims, dfilter.dims);
        let pooling = conv::Pooling { shape: &pool_of(&shape, pool), which: x[1].as_slice(), dy: x[2].as_slice() };
        let (dfilter, dbias) = (dfilter.as_mut_slice(), dbias.as_mut_slice());
        conv::conv2d_backprop_filter_pooled(self.pool, &shape, x[0].as_slice(), pooling, dfilter, dbias, scratch)
    }

    pub(super) fn conv2d(&mut self, op: &Conv2d, after: After) -> Result<()> {
        let (x, y, scratch) = (&self.x, &mut self.y[0], floats(self.scratch));
        let shape = conv_shape(&op.window, x[0].dims, x[1].dims);
        let epilogue = after.epilogue(&x[2..]);
        conv::conv2d(self.pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), epilogue, scratch);
        Ok(())
    }

    pub(super) fn conv2d_backprop_input(&mut self, op: &Conv2dBackpropInput) -> Result<()> {
        let (x, y, scratch) = (&self.x, &mut self.y[0], floats(self.scratch));
        let shape = conv_shape(&op.window, y.dims, x[0].dims);
        conv::conv2d_backprop_input(self.pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), scratch);
        Ok(())
    }

    pub(super) fn conv2d_backprop_filter(&mut self, op: &Conv2dBackpropFilter) -> Result<()> {
        let (x, y, scratch) = (&self.x, &mut self.y[0], floats(self.scratch));
        let shape = conv_shape(&op.window, x[0].dims, y.dims);
        conv::conv2d_backprop_filter(self.pool, &shape, x[0].as_slice(), x[1].as_slice(), y.as_mut_slice(), scratch);
        Ok(())
    }

    pub(super) fn depthwise_conv2d(&mut self, op: &DepthwiseConv2d) -> Result<()> {
        let (x, y, scratch) = (&self.x, &mut self.y[0], floats(self.scratch));
        let shape = depthwise_shape(&op.window, x[0].dims, x[1].dims);
        let (x, filter) = (x[0].as_slice(), x[1].as_slice());
        depthwise::depthwise_conv2d(self.pool, &shape, x, filter, y.as_mut_slice(), scratch);
        Ok(())
    }

    pub(super) fn depthwise_conv2d_backprop_input(&mut self, op: &DepthwiseConv2dBackpropInput) -> Result<()> {
        let (x, y, scratch) = (&self.x, &mut self.y[0], floats(self.scratch));
        let shape = depthwise_shape(&op.window, y.dims, x[0].dims);
        let (filter, dy) = (x[0].as_slice(), x[1].as_slice());
        depthwise::depthwise_conv2d_backprop_input(self.pool, &shape, filter, dy, y.as_mut_slice(), scratch);
        Ok(())
    }

    pub(super) fn depthwise_conv2d_backprop_filter(&mut self, op: &DepthwiseConv2dBackpropFilter) -> Result<()> {
        let (x, y, scratch) = (&self.x, &mut self.y[0], floats(self.scratch));
        let shape = depthwise_shape(&op.window, x[0].dims, y.dims);
        let (x, dy) = (x[0].as_slice(), x[1].as_slice());
        depthwise::depthwise_conv2d_backprop_filter(self.pool, &shape, x, dy, y.as_mut_slice(), scratch);
        Ok(())
    }

    /// Computes a max pooling. Also used for `Fused::Which`, which has a second result.
    pub(super) fn max_pool(&mut self, op: &MaxPool) -> Result<()> {
        let (shape, x) = (pool_shape(&op.window, self.x[0].dims), self.x[0].as_slice());
        match &mut self.y[..] {
            [y, which] => pool2d::max_pool_which(self.pool, &shape, x, y.as_mut_slice(), which.as_mut_slice()),
            y => pool2d::max_pool(self.pool, &shape, x, y[0].as_mut_slice()),
        }
        Ok(())
    }

    /// Computes the gradient of a max pooling. Also used for `Fused::Which`, which reads the
    /// indices of the largest elements.
    pub(super) fn max_pool_grad(&mut self, op: &MaxPoolGrad) -> Result<()> {
        let (pool, y) = (self.pool, &mut self.y[0]);
        match self.x {
            [which, dy] => {
                let shape = pool_shape(&op.window, y.dims);
                pool2d::max_pool_grad_which(pool, &shape, which.as_slice(), dy.as_slice(), y.as_mut_slice());
            }
            x => {
                let (shape, dy) = (pool_shape(&op.window, x[0].dims), x[2].as_slice());
                pool2d::max_pool_grad(pool, &shape, x[0].as_slice(), x[1].as_slice(), dy, y.as_mut_slice());
            }
        }
        Ok(())
    }

    pub(super) fn avg_pool(&mut self, op: &AvgPool) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        pool2d::avg_pool(self.pool, &pool_shape(&op.window, x.dims), x.as_slice(), y.as_mut_slice());
        Ok(())
    }

    pub(super) fn avg_pool_grad(&mut self, op: &AvgPoolGrad) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        pool2d::avg_pool_grad(self.pool, &pool_shape(&op.window, y.dims), x.as_slice(), y.as_mut_slice());
        Ok(())
    }
}
