//! Images: pixels are scaled like TensorFlow's and encoded as PNG.

use estimand_tensor::{Array, DType, Error, Result};
use estimand_wire::event::{Image, SummaryValue, Value};

/// Returns the first `max_outputs` images of `[n, height, width, channels]`, each with its own tag.
pub(super) fn images(tag: &str, array: &Array, max_outputs: usize) -> Result<Vec<Value>> {
    let &[n, height, width, channels] = array.dims() else {
        return Err(Error::shape(format!(
            "the images have the shape {:?}; expected [n, height, width, channels]",
            array.dims()
        )));
    };
    let size = height * width * channels;
    let mut values = Vec::new();
    for i in 0..n.min(max_outputs) {
        let range = i * size..(i + 1) * size;
        let pixels = match array.dtype() {
            DType::U8 => array.as_slice::<u8>()?[range].to_vec(),
            DType::F32 => scaled(&array.as_slice::<f32>()?[range], channels),
            dtype => {
                return Err(Error::dtype(
                    Some(DType::F32),
                    dtype,
                    format!("the pixels are {dtype}; expected f32 or u8"),
                ));
            }
        };
        let image = Image {
            height: height as i32,
            width: width as i32,
            colorspace: channels as i32,
            encoded_image_string: packed(&pixels, height, width, channels)?,
        };
        // TF: a single image has no number.
        let tag = if max_outputs > 1 { format!("{tag}/image/{i}") } else { format!("{tag}/image") };
        values.push(Value { tag, value: Some(SummaryValue::Image(image)), ..Value::default() });
    }
    Ok(values)
}

/// TF: if no value is negative, the largest becomes 255. Otherwise 0 becomes 128, and the largest
/// magnitude is 127 away. A pixel with a value that is not finite is red, or white in an image
/// without colour.
fn scaled(values: &[f32], channels: usize) -> Vec<u8> {
    let is_finite = |pixel: &&[f32]| pixel.iter().all(|value| value.is_finite());
    let finite = || values.chunks_exact(channels).filter(is_finite).flatten().copied();
    let (least, most) = finite().fold((f32::MAX, f32::MIN), |(least, most), v| (least.min(v), most.max(v)));
    let (largest, range, offset) = if least < 0.0 { (most.max(-least), 127.0, 128.0) } else { (most, 255.0, 0.0) };
    let scale = if largest < f32::MIN_POSITIVE { 0.0 } else { range / largest };
    let pixel = |pixel: &[f32]| -> Vec<u8> {
        match is_finite(&pixel) {
            true => pixel.iter().map(|value| (value * scale + offset) as u8).collect(),
            false => (0..channels).map(|channel| if channel == 0 || channel == 3 { 255 } else { 0 }).collect(),
        }
    };
    values.chunks_exact(channels).flat_map(pixel).collect()
}

fn packed(pixels: &[u8], height: usize, width: usize, channels: usize) -> Result<Vec<u8>> {
    let color = match channels {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        n => return Err(Error::shape(format!("the images have {n} channels; expected 1, 3 or 4"))),
    };
    let side = |n: usize| {
        u32::try_from(n).map_err(|_| Error::shape(format!("an image of {height} x {width} pixels is too large")))
    };
    let failed =
        |e: png::EncodingError| Error::config(format!("an image of {height} x {width} pixels cannot be encoded: {e}"));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side(width)?, side(height)?);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}
