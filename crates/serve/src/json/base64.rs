//! Base 64, as TensorFlow Serving reads and writes it in `{"b64": ".."}`.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each letter; 255 for other bytes.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut i = 0;
    while i < 64 {
        values[LETTERS[i] as usize] = i as u8;
        i += 1;
    }
    values
};

/// Decodes a text. Blanks are skipped and the padding may be missing. `None` if it is damaged.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut n_letters, mut n_padding) = (0u32, 0, 0);
    for &byte in text {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'=' => {
                n_padding += 1;
                continue;
            }
            _ => {}
        }
        let value = VALUES[usize::from(byte)];
        if value == 255 || n_padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(value);
        n_letters += 1;
        if n_letters % 4 == 0 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            bits = 0;
        }
    }
    let (n_left, n_bytes) = match n_letters % 4 {
        0 => (0, 0),
        2 => (bits >> 4, 1),
        3 => (bits >> 2, 2),
        _ => return None,
    };
    let is_padded = n_padding == 0 || n_padding == (4 - n_letters % 4) % 4;
    // Bits that no byte takes must be zero.
    let lost = bits & ((1 << (if n_bytes == 1 { 4 } else { 2 })) - 1);
    if !is_padded || (n_bytes > 0 && lost != 0) {
        return None;
    }
    bytes.extend_from_slice(&n_left.to_be_bytes()[4 - n_bytes..]);
    Some(bytes)
}

/// Appends the padded text of some bytes.
pub(crate) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        // The vectors of RFC 4648.
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            let mut text = Vec::new();
            encode(plain.as_bytes(), &mut text);
            assert_eq!(text, coded.as_bytes());
            assert_eq!(decode(coded.as_bytes()).unwrap(), plain.as_bytes());
            assert_eq!(decode(coded.trim_end_matches('=').as_bytes()).unwrap(), plain.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        let mut text = Vec::new();
        encode(&all, &mut text);
        assert_eq!(decode(&text).unwrap(), all);
        assert_eq!(decode(b"Zm9v\n Yg ==").unwrap(), b"foob");
    }

    #[test]
    fn damaged_texts() {
        for text in ["Z", "Zg=", "Zg===", "Zh==", "Z!==", "Zg==Zg==", "=", "Zm9v="] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
