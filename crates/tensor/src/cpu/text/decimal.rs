//! Formats integers as decimal text without heap memory. TensorFlow hashes this text when a hashed
//! column is fed integers.

/// The decimal text of an integer.
///
/// ```
/// # use estimand_tensor::cpu::text::Decimal;
/// assert_eq!(Decimal::new(-1024).as_bytes(), b"-1024");
/// ```
#[derive(Clone, Copy)]
pub struct Decimal {
    /// The buffer; the text is at its end.
    digits: [u8; Decimal::MAX_LEN],
    start: u8,
}

/// "00" to "99".
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

impl Decimal {
    /// The length of the longest text: `i64::MIN`.
    pub const MAX_LEN: usize = 20;

    /// The text of `value`.
    #[inline]
    pub fn new(value: i64) -> Decimal {
        let mut digits = [b'0'; Decimal::MAX_LEN];
        let mut start = Decimal::MAX_LEN;
        let mut rest = value.unsigned_abs();
        while rest >= 10 {
            start -= 2;
            digits[start..start + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
            rest /= 100;
        }
        // A single digit is left if the number of digits is odd, also for the number 0.
        if rest > 0 || start == Decimal::MAX_LEN {
            start -= 1;
            digits[start] = b'0' + rest as u8;
        }
        if value < 0 {
            start -= 1;
            digits[start] = b'-';
        }
        Decimal { digits, start: start as u8 }
    }

    /// The text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start as usize..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_decimal_text() {
        let powers = (0..19).map(|k| 10_i64.pow(k));
        let near = powers.flat_map(|p| [p - 1, p, p + 1, 3 * (p / 4), -p, 1 - p]);
        for value in near.chain([i64::MIN, i64::MAX, i64::MIN + 1]).chain(-1200..1200) {
            assert_eq!(Decimal::new(value).as_bytes(), value.to_string().as_bytes());
        }
    }
}
