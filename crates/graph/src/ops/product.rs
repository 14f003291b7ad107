//! Matrix products, convolutions and pooling.

use std::panic::Location;

use estimand_tensor::{Dim, Error, Shape};

use super::options::Transposed;
use crate::op::{
    AvgPool, AxisSet, BatchMatMul, Conv2d, Conv2dBackpropInput, DepthwiseConv2d, MatMul, MaxPool, Op, Padding,
    PoolWindow, Reduction, Window,
};
use crate::tensor::Tensor;

impl Tensor {
    /// Product of two matrices, or of stacks of matrices whose leading axes are broadcast.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        self.product(other, false, false, Location::caller())
    }

    /// Product with one factor or both transposed.
    #[track_caller]
    pub fn matmul_with(&self, other: &Tensor, transposed: Transposed) -> Tensor {
        let (a, b) = (transposed != Transposed::Right, transposed != Transposed::Left);
        self.product(other, a, b, Location::caller())
    }

    fn product(
        &self,
        other: &Tensor,
        transpose_a: bool,
        transpose_b: bool,
        site: &'static Location<'static>,
    ) -> Tensor {
        let op = if self.rank() <= 2 && other.rank() <= 2 {
            Op::MatMul(MatMul { transpose_a, transpose_b })
        } else {
            Op::BatchMatMul(BatchMatMul { adjoint_x: transpose_a, adjoint_y: transpose_b })
        };
        self.then(op, &[other], site)
    }

    /// Convolution of an NHWC image with a filter [height, width, in, out].
    #[track_caller]
    pub fn conv2d(&self, filter: &Tensor, strides: (usize, usize), padding: Padding) -> Tensor {
        self.conv2d_dilated(filter, strides, (1, 1), padding)
    }

    /// Convolution with gaps between the filter's taps.
    #[track_caller]
    pub fn conv2d_dilated(
        &self,
        filter: &Tensor,
        strides: (usize, usize),
        dilations: (usize, usize),
        padding: Padding,
    ) -> Tensor {
        self.then(Conv2d { window: Window { strides, dilations, padding } }, &[filter], Location::caller())
    }

    /// Convolution of [batch, width, channels] with a filter [width, in, out].
    #[track_caller]
    pub fn conv1d(&self, filter: &Tensor, stride: usize, padding: Padding) -> Tensor {
        let site = Location::caller();
        if self.is_poisoned() || filter.is_poisoned() {
            return self.graph().poison();
        }
        if self.rank() != 3 || filter.rank() != 3 {
            let e = Error::shape(format!(
                "conv1d was given {} and the filter {}; expected [batch, width, channels] and [width, in, out]",
                self.shape(),
                filter.shape()
            ));
            return self.record(e, site);
        }
        let window = Window { strides: (1, stride), dilations: (1, 1), padding };
        let wide = self.expand_dims(1).then(Conv2d { window }, &[&filter.expand_dims(0)], site);
        wide.squeeze(&[1])
    }

    /// Convolution with separate filters for each channel: [height, width, channels, multiplier].
    #[track_caller]
    pub fn depthwise_conv2d(&self, filter: &Tensor, strides: (usize, usize), padding: Padding) -> Tensor {
        self.depthwise_conv2d_dilated(filter, strides, (1, 1), padding)
    }

    /// Convolution with separate filters for each channel, with gaps between their taps.
    #[track_caller]
    pub fn depthwise_conv2d_dilated(
        &self,
        filter: &Tensor,
        strides: (usize, usize),
        dilations: (usize, usize),
        padding: Padding,
    ) -> Tensor {
        self.then(DepthwiseConv2d { window: Window { strides, dilations, padding } }, &[filter], Location::caller())
    }

    /// The transpose of a convolution: [batch, h, w, in] with a filter [height, width, out, in] to
    /// an image of `size`.
    #[track_caller]
    pub fn conv2d_transpose(
        &self,
        filter: &Tensor,
        size: (usize, usize),
        strides: (usize, usize),
        padding: Padding,
    ) -> Tensor {
        self.conv2d_transpose_dilated(filter, size, strides, (1, 1), padding)
    }

    /// The transpose of a convolution with gaps between the filter's taps.
    #[track_caller]
    pub fn conv2d_transpose_dilated(
        &self,
        filter: &Tensor,
        size: (usize, usize),
        strides: (usize, usize),
        dilations: (usize, usize),
        padding: Padding,
    ) -> Tensor {
        let site = Location::caller();
        if self.is_poisoned() || filter.is_poisoned() {
            return self.graph().poison();
        }
        if self.rank() != 4 || filter.rank() != 4 {
            let e = Error::shape(format!(
                "conv2d_transpose was given {} and the filter {}; expected four axes each",
                self.shape(),
                filter.shape()
            ));
            return self.record(e, site);
        }
        let shape = Shape::from([self.shape().dims()[0], size.0.into(), size.1.into(), filter.shape().dims()[2]]);
        let window = Window { strides, dilations, padding };
        filter.then(Conv2dBackpropInput { window, shape }, &[self], site)
    }

    /// The maximum under each window.
    #[track_caller]
    pub fn max_pool(&self, size: (usize, usize), strides: (usize, usize), padding: Padding) -> Tensor {
        self.then(MaxPool { window: PoolWindow { size, strides, padding } }, &[], Location::caller())
    }

    /// The mean under each window; padding is not counted.
    #[track_caller]
    pub fn avg_pool(&self, size: (usize, usize), strides: (usize, usize), padding: Padding) -> Tensor {
        self.then(AvgPool { window: PoolWindow { size, strides, padding } }, &[], Location::caller())
    }

    /// The mean of each channel: [batch, h, w, c] to [batch, c].
    #[track_caller]
    pub fn global_avg_pool(&self) -> Tensor {
        self.global_pool(Reduction::Mean, Location::caller())
    }

    /// The maximum of each channel: [batch, h, w, c] to [batch, c].
    #[track_caller]
    pub fn global_max_pool(&self) -> Tensor {
        self.global_pool(Reduction::Max, Location::caller())
    }

    fn global_pool(&self, kind: Reduction, site: &'static Location<'static>) -> Tensor {
        if self.rank() < 3 && !self.is_poisoned() {
            let e =
                Error::shape(format!("global pooling was given {}; expected [batch, ..., channels]", self.describe()));
            return self.record(e, site);
        }
        let inner: AxisSet = (1..self.rank().saturating_sub(1)).collect();
        self.reduce(kind, inner, false, site)
    }

    /// The number of channels, the last axis.
    #[track_caller]
    pub fn channels(&self) -> usize {
        match self.shape().dims().last() {
            Some(Dim::Known(n)) => *n,
            _ => self.dim(self.rank().saturating_sub(1)),
        }
    }
}
