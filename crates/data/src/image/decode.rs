//! Decodes PNG and JPEG files to arrays, with the crates `png` and `zune-jpeg`.

use std::io::Cursor;

use estimand_tensor::{Array, Error, Limits, Result};
use png::{ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The most bytes that one byte of deflated data can expand to; JPEG expands less. A file that
/// claims a larger image than that is refused.
const MAX_EXPANSION: usize = 1032;
/// The largest width and height that a decoder accepts, for both formats.
const MAX_SIDE: usize = 1 << 24;

/// Decodes a PNG or JPEG file to its pixels, u8 `[height, width, channels]`.
///
/// `channels` is 1 (grey), 3 (RGB) or 4 (RGBA); `None` keeps the channels of the file. Grey is the
/// luma of JPEG, 0.299 red + 0.587 green + 0.114 blue. An alpha channel is dropped, or added with
/// the value 255. Channels of 16 bits become 8 bits.
///
/// The default [`Limits`] apply.
pub fn decode(bytes: &[u8], channels: Option<usize>) -> Result<Array> {
    decode_within(bytes, channels, &Limits::default())
}

/// Decodes like [`decode`], with a limit on the number of pixels.
pub fn decode_within(bytes: &[u8], channels: Option<usize>, limits: &Limits) -> Result<Array> {
    if let Some(n) = channels.filter(|n| ![1, 3, 4].contains(n)) {
        return Err(Error::config(format!("{n} channels were asked for; expected 1, 3 or 4")));
    }
    let pixels = match bytes {
        [0x89, b'P', b'N', b'G', ..] => decode_png(bytes, limits)?,
        [0xff, 0xd8, 0xff, ..] => decode_jpeg(bytes, channels, limits)?,
        _ => {
            let first = &bytes[..bytes.len().min(4)];
            return Err(Error::data(format!(
                "the image is neither PNG nor JPEG: it begins with the bytes {first:02x?}"
            )));
        }
    };
    let from = pixels.values.len() / (pixels.height * pixels.width).max(1);
    let to = channels.unwrap_or(from);
    Array::from_vec([pixels.height, pixels.width, to], recoloured(pixels.values, from, to))
}

struct Pixels {
    height: usize,
    width: usize,
    values: Vec<u8>,
}

fn check_size(height: usize, width: usize, n_unpacked: usize, n_packed: usize, limits: &Limits) -> Result<()> {
    if height.max(width) > MAX_SIDE {
        return Err(Error::data(format!(
            "the image has {height} x {width} pixels; at most {MAX_SIDE} pixels per side are read"
        )));
    }
    if height as u64 * width as u64 > limits.pixels {
        return Err(Limits::exceeded("pixels", limits.pixels, format!("the image has {height} x {width} pixels")));
    }
    if n_unpacked / MAX_EXPANSION > n_packed {
        let message =
            format!("the image has {height} x {width} pixels, but its file of {n_packed} bytes is too short for them");
        return Err(Error::data(message).help("the file was cut short: copy or download it again"));
    }
    limits.check_ratio(n_unpacked as u64, n_packed as u64)
}

fn decode_png(bytes: &[u8], limits: &Limits) -> Result<Pixels> {
    let damaged = |e: png::DecodingError| Error::data(format!("the PNG is damaged: {e}"));
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(damaged)?;
    let info = reader.info();
    let (height, width) = (info.height as usize, info.width as usize);
    check_size(height, width, height.saturating_mul(info.raw_row_length()), bytes.len(), limits)?;
    if reader.output_color_type().0 == ColorType::Indexed {
        return Err(Error::data("the PNG is damaged: it uses a palette but has none"));
    }
    let n = reader.output_buffer_size().ok_or_else(|| Error::data("the PNG is larger than memory"))?;
    let mut values = vec![0; n];
    let frame = reader.next_frame(&mut values).map_err(damaged)?;
    values.truncate(frame.buffer_size());
    Ok(Pixels { height, width, values })
}

fn decode_jpeg(bytes: &[u8], channels: Option<usize>, limits: &Limits) -> Result<Pixels> {
    let damaged = |e| Error::data(format!("the JPEG is damaged: {e:?}"));
    // Strict mode: a truncated image is an error, not half grey.
    let options = DecoderOptions::default().set_strict_mode(true).set_max_width(MAX_SIDE).set_max_height(MAX_SIDE);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(damaged)?;
    let info = decoder.info().ok_or_else(|| Error::data("the JPEG does not say its height and width"))?;
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    check_size(height, width, height * width, bytes.len(), limits)?;
    let space = match (decoder.input_colorspace(), channels) {
        (Some(ColorSpace::Luma), _) | (Some(ColorSpace::YCbCr), Some(1)) => ColorSpace::Luma,
        _ => ColorSpace::RGB,
    };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let values = decoder.decode().map_err(damaged)?;
    if values.len() != height * width * space.num_components() {
        return Err(Error::data(format!(
            "the JPEG of {height} x {width} pixels was decoded to {} bytes",
            values.len()
        )));
    }
    Ok(Pixels { height, width, values })
}

/// Converts pixels from `from` channels to `to` channels.
fn recoloured(values: Vec<u8>, from: usize, to: usize) -> Vec<u8> {
    if from == to || from == 0 {
        return values;
    }
    let mut changed = Vec::with_capacity(values.len() / from * to);
    for pixel in values.chunks_exact(from) {
        let (rgb, alpha) = match *pixel {
            [grey] => ([grey; 3], 255),
            [grey, alpha] => ([grey; 3], alpha),
            [red, green, blue, alpha] => ([red, green, blue], alpha),
            [red, green, blue, ..] => ([red, green, blue], 255),
            [] => ([0; 3], 255),
        };
        match to {
            1 => changed.push(if from < 3 { rgb[0] } else { luma(rgb) }),
            3 => changed.extend(rgb),
            _ => changed.extend([rgb[0], rgb[1], rgb[2], alpha]),
        }
    }
    changed
}

fn luma(rgb: [u8; 3]) -> u8 {
    let [red, green, blue] = rgb.map(u32::from);
    ((299 * red + 587 * green + 114 * blue + 500) / 1000) as u8
}
