//! Converts text to lower and upper case: `StringLower`, `StringUpper`.

use crate::{StringSlice, Strings};

/// The case to convert text to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// Small letters.
    Lower,
    /// Capitals.
    Upper,
}

/// The encoding that the bytes of a string are read in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Bytes; only ASCII letters are converted. TensorFlow's encoding "".
    Bytes,
    /// UTF-8; letters of all scripts are converted. TensorFlow's encoding "utf-8".
    Utf8,
}

/// Appends the converted strings to `out`.
///
/// With UTF-8, lengths may change (`ß` has the capital `SS`), and a sigma at the end of a word
/// gets its own form. Bytes that are not UTF-8 become U+FFFD, one for each piece that could not
/// have been continued. Letters are those of the compiler's Unicode version; TensorFlow 2.15 has
/// older tables.
pub fn to_case(strings: StringSlice<'_>, case: Case, encoding: Encoding, out: &mut Strings) {
    let change = |bytes: &mut [u8]| match case {
        Case::Lower => bytes.make_ascii_lowercase(),
        Case::Upper => bytes.make_ascii_uppercase(),
    };
    if encoding == Encoding::Bytes {
        return out.append_changed(strings, change);
    }
    for string in strings {
        // TF: text ends at a NUL byte here, since it is passed through a C string.
        let string = string.split(|&byte| byte == 0).next().unwrap_or_default();
        if string.is_ascii() {
            out.push_changed(string, change);
        } else {
            let text = String::from_utf8_lossy(string);
            let changed = match case {
                Case::Lower => text.to_lowercase(),
                Case::Upper => text.to_uppercase(),
            };
            out.push(changed.as_bytes());
        }
    }
}
