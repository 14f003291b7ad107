//! Images: resizing.

use std::panic::Location;

use crate::op::{Op, Resize};
use crate::tensor::Tensor;

impl Tensor {
    /// Resizes an NHWC image with bilinear interpolation and TensorFlow 2's half-pixel centres.
    #[track_caller]
    pub fn resize_bilinear(&self, size: (usize, usize)) -> Tensor {
        self.then(Op::Resize(Resize { bilinear: true, size, half_pixel_centers: true }), &[], Location::caller())
    }

    /// Resizes an NHWC image by taking the nearest pixel, with TensorFlow 2's half-pixel centres.
    #[track_caller]
    pub fn resize_nearest(&self, size: (usize, usize)) -> Tensor {
        self.then(Op::Resize(Resize { bilinear: false, size, half_pixel_centers: true }), &[], Location::caller())
    }
}
