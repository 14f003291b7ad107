//! Writes floats as TensorFlow Serving does: C's `%g` with six digits if they give the same number
//! when read back, else with as many digits as the type can need; `.0` after whole numbers.

use std::io::Write;

/// Digits that always suffice for an `f32`.
const F32_DIGITS: usize = 9;
/// Digits that always suffice for an `f64`.
const F64_DIGITS: usize = 17;
/// Digits that are tried first.
const FEW_DIGITS: usize = 6;

/// Appends an `f32`.
pub(crate) fn write_f32(value: f32, out: &mut Vec<u8>) {
    if special(f64::from(value), out) {
        return;
    }
    match nine_digits(value.abs()) {
        Some((digits, exponent)) => write_nine(value, digits, exponent, out),
        None => slow(value, FEW_DIGITS, F32_DIGITS, out),
    }
}

/// Appends an `f64`.
pub(crate) fn write_f64(value: f64, out: &mut Vec<u8>) {
    if !special(value, out) {
        slow(value, FEW_DIGITS, F64_DIGITS, out);
    }
}

/// Appends zeros and numbers that are not finite.
fn special(value: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = match value {
        v if v.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        0.0 if value.is_sign_negative() => b"-0.0",
        0.0 => b"0.0",
        _ => return false,
    };
    out.extend_from_slice(text);
    true
}

/// Nine digits of a float of a usual size, rounded correctly, and its decimal exponent; `None` for
/// very large and very small ones.
fn nine_digits(value: f32) -> Option<(u64, i32)> {
    if !(1e-5..1e9).contains(&value) {
        return None;
    }
    let bits = value.to_bits();
    // The value is mantissa * 2^power, and power is at most 6 in this range.
    let (mantissa, power) = (u128::from(bits & 0x7f_ffff | 0x80_0000), (bits >> 23) as i32 - 150);
    let mut exponent = f64::from(value).log10().floor() as i32;
    loop {
        // value * 10^(8 - exponent), as a fraction of integers: at most 24 + 47 bits.
        let numerator = mantissa * 10u128.pow(u32::try_from(8 - exponent).ok()?);
        let scaled = match power {
            0.. => numerator << power,
            _ => rounded(numerator, power.unsigned_abs()),
        };
        match scaled {
            ..100_000_000 => exponent -= 1,
            100_000_000..1_000_000_000 => return Some((scaled as u64, exponent)),
            // Also a number that was rounded up to the next power of ten.
            _ => exponent += 1,
        }
        if !(-6..9).contains(&exponent) {
            return None;
        }
    }
}

/// `numerator / 2^shift`, rounded to the nearest integer, a half to the even one.
fn rounded(numerator: u128, shift: u32) -> u128 {
    let (whole, rest, half) = (numerator >> shift, numerator & ((1 << shift) - 1), 1u128 << (shift - 1));
    whole + u128::from(rest > half || (rest == half && whole & 1 == 1))
}

fn write_nine(value: f32, digits: u64, exponent: i32, out: &mut Vec<u8>) {
    // Six digits can give the number again only if they are this near to the nine.
    let (few, rest) = ((digits + 500) / 1_000, digits % 1_000);
    if !(100..=900).contains(&rest) {
        let (few, few_exponent) = if few == 1_000_000 { (100_000, exponent + 1) } else { (few, exponent) };
        let start = out.len();
        put(value.is_sign_negative(), few, FEW_DIGITS, few_exponent, out);
        let text = std::str::from_utf8(&out[start..]).unwrap_or_default();
        if text.parse() == Ok(value) {
            return;
        }
        out.truncate(start);
    }
    put(value.is_sign_negative(), digits, F32_DIGITS, exponent, out);
}

/// Any number, through the digits that the standard library prints.
fn slow<T>(value: T, few: usize, many: usize, out: &mut Vec<u8>)
where
    T: Copy + PartialEq + std::fmt::LowerExp + std::str::FromStr,
{
    for n_digits in [few, many] {
        let text = format!("{value:.*e}", n_digits - 1);
        if n_digits == few && text.parse().ok() != Some(value) {
            continue;
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits =
            mantissa.bytes().filter(u8::is_ascii_digit).fold(0, |all, digit| all * 10 + u64::from(digit - b'0'));
        put(mantissa.starts_with('-'), digits, n_digits, exponent.parse().unwrap_or(0), out);
        return;
    }
}

/// Lays out digits as `%g` does: without trailing zeros, with an exponent if it is below -4 or not
/// below the precision.
fn put(is_negative: bool, digits: u64, precision: usize, exponent: i32, out: &mut Vec<u8>) {
    let mut text = [0; 20];
    let mut rest = digits;
    for slot in text[..precision].iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let n = text[..precision].iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let text = &text[..n];
    if is_negative {
        out.push(b'-');
    }
    if exponent < -4 || exponent >= precision as i32 {
        out.push(text[0]);
        if n > 1 {
            out.push(b'.');
            out.extend_from_slice(&text[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a vector cannot fail.
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (exponent.unsigned_abs() as usize - 1), b'0');
        out.extend_from_slice(text);
    } else {
        let whole = exponent as usize + 1;
        out.extend_from_slice(&text[..whole.min(n)]);
        out.resize(out.len() + whole.saturating_sub(n), b'0');
        out.push(b'.');
        match text.get(whole..) {
            Some(fraction) if !fraction.is_empty() => out.extend_from_slice(fraction),
            _ => out.push(b'0'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_text(value: f32) -> String {
        let mut out = Vec::new();
        write_f32(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn f64_text(value: f64) -> String {
        let mut out = Vec::new();
        write_f64(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The cases of TensorFlow Serving's `json_tensor_test.cc`, and others by C's `printf`.
    #[test]
    fn texts_of_the_original() {
        for (value, text) in [
            (9_000_000.0, "9e+06"),
            (999_999.0, "999999.0"),
            (0.5, "0.5"),
            (0.0003, "0.0003"),
            (0.00003, "3e-05"),
            (555_557.5, "555557.5"),
            (3.0, "3.0"),
            (-1.0, "-1.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.2, "0.2"),
            (1.0 / 3.0, "0.333333343"),
            (16_777_216.0, "16777216.0"),
            (123_456_789.0, "123456792.0"),
            (1e9, "1e+09"),
            (1e38, "1e+38"),
            (f32::MAX, "3.40282347e+38"),
            (f32::MIN_POSITIVE, "1.17549435e-38"),
            (1e-45, "1.4013e-45"),
            (1.5e-7, "1.5e-07"),
            (f32::NAN, "NaN"),
            (f32::INFINITY, "Infinity"),
            (f32::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(f32_text(value), text);
        }
        for (value, text) in [
            (8.0, "8.0"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333333333331"),
            (1e100, "1e+100"),
            (1e15 + 0.5, "1000000000000000.5"),
        ] {
            assert_eq!(f64_text(value), text);
        }
    }

    /// Floats of all sizes come back bit by bit, and the fast digits are those of the slow ones.
    #[test]
    fn numbers_come_back() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut value = f32::from_bits(bits);
            if bits & 1 == 0 {
                // Probabilities and logits have usual sizes.
                value = (bits >> 8) as f32 / (1 << 24) as f32 * 20.0 - 10.0;
            }
            if !value.is_finite() || value == 0.0 {
                continue;
            }
            let text = f32_text(value);
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), value.to_bits(), "{text}");
            let mut slow_text = Vec::new();
            slow(value, FEW_DIGITS, F32_DIGITS, &mut slow_text);
            assert_eq!(text.as_bytes(), slow_text);
        }
    }
}
