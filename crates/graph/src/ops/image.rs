//! Images: resizing.

use std::panic::Location;

use crate::op::{Op, Resize};
use crate::tensor::Tensor;

impl Tensor {
    /// An NHWC image in another size, interpolated between four neighbours; TensorFlow 2's
    /// half-pixel centres.
    #[track_caller]
    pub fn resize_bilinear(&self, size: (usize, usize)) -> Tensor {
        self.then(Op::Resize(Resize { bilinear: true, size, half_pixel_centers: true }), &[], Location::caller())
    }

    /// An NHWC image in another size, each pixel taken from the nearest; TensorFlow 2's half-pixel
    /// centres.
    #[track_caller]
    pub fn resize_nearest(&self, size: (usize, usize)) -> Tensor {
        self.then(Op::Resize(Resize { bilinear: false, size, half_pixel_centers: true }), &[], Location::caller())
    }
}
