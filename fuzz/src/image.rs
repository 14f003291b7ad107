//! PNG and JPEG: any input gives an image or an error.

use estimand_data::image::decode;

/// Decodes the bytes with their own number of channels, and with others.
pub fn check(input: &[u8]) {
    for channels in [None, Some(1), Some(3), Some(4)] {
        if let Ok(image) = decode(input, channels) {
            assert_eq!(image.rank(), 3);
            assert!(channels.is_none_or(|n| image.dims()[2] == n));
        }
    }
}
