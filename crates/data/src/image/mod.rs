//! Decodes, resizes and normalises images: arrays `[height, width, channels]`, or batches of them
//! `[n, height, width, channels]`.
//!
//! All are pure functions, for [`map_feature`](crate::Dataset::map_feature) before or after
//! `batch`. The cargo feature `image`, on by default, adds PNG and JPEG files and folders of them.
//!
//! ```
//! use estimand_data::{Dataset, image};
//! use estimand_tensor::{Array, DType};
//!
//! let images = Array::zeros(DType::U8, [10, 28, 28, 1])?;
//! let data = Dataset::from_arrays([("image", images)])
//!     .batch(4).drop_remainder()
//!     .map_feature("image", |images| image::resize(images, [32, 32], image::Method::Nearest))
//!     .map_feature("image", image::to_unit);
//! let batch = data.iter().next().unwrap()?;
//! assert_eq!(batch.features()["image"], Array::zeros(DType::F32, [4, 32, 32, 1])?.into());
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

#[cfg(feature = "image")]
mod decode;
#[cfg(feature = "image")]
mod folder;
mod normalize;
mod resize;

#[cfg(feature = "image")]
pub use decode::{decode, decode_within};
#[cfg(feature = "image")]
pub use folder::ImageFolder;
pub use normalize::{per_image_standardization, standardize, to_unit};
pub use resize::{Method, resize};

use estimand_tensor::{Array, DType, Error, Result};

/// The number of images, the height, the width and the channels.
fn image_dims(images: &Array) -> Result<[usize; 4]> {
    match *images.dims() {
        [height, width, channels] => Ok([1, height, width, channels]),
        [n, height, width, channels] => Ok([n, height, width, channels]),
        _ => Err(Error::shape(format!(
            "the array has the shape {:?}; expected [height, width, channels] or [n, height, width, channels]",
            images.dims()
        ))),
    }
}

/// The values as f32, converted if necessary.
fn as_f32(images: &Array) -> Result<Array> {
    match images.dtype() {
        DType::F32 => Ok(images.clone()),
        DType::U8 => {
            let values = images.as_slice::<u8>()?.iter().map(|&value| f32::from(value)).collect();
            Array::from_vec(images.dims(), values)
        }
        other => Err(Error::dtype(None, other, format!("the images are {other}; expected u8 or f32"))),
    }
}
