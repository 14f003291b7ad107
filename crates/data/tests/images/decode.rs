//! PNG exactly as TensorFlow decodes it, JPEG as nearly as two decoders agree.

use estimand_data::image::decode;
use estimand_fixture::{Case, cases_of};
use estimand_tensor::{Array, Result};

use crate::pixels;

fn found(case: &Case) -> Result<Array> {
    let channels = Some(case.setting("channels")).filter(|&n| n > 0);
    decode(&case.bytes("file"), channels)
}

#[test]
fn png_is_tensorflows() -> Result<()> {
    let cases = cases_of("images", "png");
    assert_eq!(cases.len(), 10);
    for case in cases {
        assert_eq!(found(&case)?, pixels(&case, "y")?, "{case}");
    }
    Ok(())
}

/// Decoders round their cosines and interpolate colours each in its own way: most values agree, and
/// none differs by more than 3 of 255.
#[test]
fn jpeg_is_tensorflows_within_rounding() -> Result<()> {
    let cases = cases_of("images", "jpeg");
    assert_eq!(cases.len(), 15);
    for case in cases {
        let (image, expected) = (found(&case)?, pixels(&case, "y")?);
        assert_eq!(image.dims(), expected.dims());
        let pairs = image.as_slice::<u8>()?.iter().zip(expected.as_slice::<u8>()?);
        let differences: Vec<u8> = pairs.map(|(a, b)| a.abs_diff(*b)).collect();
        let largest = differences.iter().max().unwrap();
        let mean = differences.iter().map(|&d| f64::from(d)).sum::<f64>() / differences.len() as f64;
        // Colours that were halved are interpolated back; grey never is.
        let (most, average) = if image.dims()[2] == 1 { (1, 0.01) } else { (3, 0.45) };
        assert!(*largest <= most && mean <= average, "{case}: up to {largest}, {mean} on average");
    }
    Ok(())
}

/// Luma by hand: 0.299 * 200 + 0.587 * 100 + 0.114 * 50 = 124.2.
#[test]
fn grey_of_a_coloured_png_is_its_luma() -> Result<()> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 1, 1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&[200, 100, 50]).unwrap();
    assert_eq!(decode(&file, Some(1))?, Array::from_vec([1, 1, 1], vec![124u8])?);
    Ok(())
}

/// A PNG that says it is large, rightly summed, and holds nothing.
#[test]
fn sizes_are_not_believed_beyond_the_file() {
    let chunk = |name: &[u8], data: &[u8]| {
        let named = [name, data].concat();
        let mut crc = flate2::Crc::new();
        crc.update(&named);
        [&(data.len() as u32).to_be_bytes()[..], &named, &crc.sum().to_be_bytes()].concat()
    };
    let of = |side: u32| {
        let header = [&side.to_be_bytes()[..], &side.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        [b"\x89PNG\r\n\x1a\n", &chunk(b"IHDR", &header)[..], &chunk(b"IDAT", &[]), &chunk(b"IEND", &[])].concat()
    };
    for (side, text) in
        [(16_000, "is too short for them"), (17_000, "the limit is 268435456 (`pixels`)"), (0, "damaged")]
    {
        let error = decode(&of(side), None).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn mistakes_and_damage() {
    let file = |what: &str| cases_of("images", what)[2].bytes("file");
    let (png, jpeg) = (file("png"), file("jpeg"));
    let with = |bytes: &[u8], at: usize, new: &[u8]| [&bytes[..at], new, &bytes[at + new.len()..]].concat();
    // Width and height stand at bytes 16 to 24 of a PNG, behind which its checksum is wrong; a
    // JPEG's in the frame header.
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    for (bytes, channels, text) in [
        (png.clone(), Some(2), "2 channels"),
        (b"GIF89a".to_vec(), None, "it begins with the bytes [47, 49, 46, 38]"),
        (Vec::new(), None, "it begins with the bytes []"),
        (png[..png.len() / 2].to_vec(), None, "the PNG is damaged"),
        (with(&png, 16, &[0, 0, 16, 0]), None, "the PNG is damaged"),
        (jpeg[..jpeg.len() / 2].to_vec(), None, "the JPEG is damaged"),
        (
            with(&jpeg, frame + 5, &[0x3f, 0xff, 0x3f, 0xff]),
            None,
            "the image has 16383 x 16383 pixels, but its file of",
        ),
        (with(&jpeg, frame + 5, &[0xff, 0xff]), None, "the image has 65535 x 16 pixels, but its file of"),
    ] {
        let error = decode(&bytes, channels).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}
