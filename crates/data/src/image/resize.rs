//! Resizes images like `tf.image.resize` with half-pixel centres and no antialiasing.

use estimand_tensor::cpu::resize::{Resize, resize_bilinear, resize_nearest};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, DType, Error, Result};

use super::{as_f32, image_dims};

/// The interpolation method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Interpolates between the four nearest pixels; the result is f32, also from u8.
    Bilinear,
    /// Takes the nearest pixel and keeps its type.
    Nearest,
}

/// Resizes one image or a batch of them, u8 or f32, to a height and width.
///
/// ```
/// # use estimand_data::image::{Method, resize};
/// # use estimand_tensor::Array;
/// let ramp = Array::from_vec([1, 2, 1], vec![0u8, 100])?;
/// let wider = resize(&ramp, [1, 4], Method::Bilinear)?;
/// assert_eq!(wider, Array::from_vec([1, 4, 1], vec![0.0f32, 25.0, 75.0, 100.0])?);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn resize(images: &Array, [height, width]: [usize; 2], method: Method) -> Result<Array> {
    let [n, from_height, from_width, channels] = image_dims(images)?;
    if [from_height, from_width, height, width].contains(&0) {
        return Err(Error::shape(format!(
            "images of {from_height} x {from_width} cannot be resized to {height} x {width}: a size is 0"
        )));
    }
    let dims = match images.rank() {
        3 => vec![height, width, channels],
        _ => vec![n, height, width, channels],
    };
    if (from_height, from_width) == (height, width) {
        return if method == Method::Bilinear { as_f32(images) } else { Ok(images.clone()) };
    }
    let resize = Resize {
        from: [from_height, from_width],
        to: [height, width],
        channels,
        align_corners: false,
        half_pixel_centers: true,
    };
    let kernel = match method {
        Method::Bilinear => resize_bilinear,
        Method::Nearest => resize_nearest,
    };
    let mut out = Array::zeros(DType::F32, &dims)?;
    if !out.is_empty() {
        kernel(Pool::global(), &resize, as_f32(images)?.as_slice()?, out.as_mut_slice()?);
    }
    // Pixels are only copied, so u8 converts to f32 and back without loss.
    if images.dtype() == DType::U8 && method == Method::Nearest {
        return Array::from_vec(dims, out.as_slice::<f32>()?.iter().map(|&v| v as u8).collect());
    }
    Ok(out)
}
