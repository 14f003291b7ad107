//! Numbers that JSON has no digits for, and numbers of single precision.

use estimand_tensor::Result;
use serde_json::Value;

use super::{Field, Node};

/// A number that may be infinite or NaN. Such numbers are written as the texts `Infinity`,
/// `-Infinity` and `NaN`. [`parse`](super::parse) makes texts of the bare words that Keras writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnyNumber(pub f64);

impl Field for AnyNumber {
    fn write(&self) -> Result<Value> {
        Ok(match self.0 {
            number if number.is_nan() => "NaN".into(),
            f64::INFINITY => "Infinity".into(),
            f64::NEG_INFINITY => "-Infinity".into(),
            // Whole numbers look like the numbers of a program.
            number if number.fract() == 0.0 && number.abs() < 1e15 && !is_negative_zero(number) => {
                (number as i64).into()
            }
            number => number.into(),
        })
    }

    fn read(node: &Node<'_>) -> Result<AnyNumber> {
        let special = match node.value().as_str() {
            Some("NaN") => Some(f64::NAN),
            Some("Infinity") => Some(f64::INFINITY),
            Some("-Infinity") => Some(f64::NEG_INFINITY),
            _ => None,
        };
        special.or_else(|| node.value().as_f64()).map(AnyNumber).ok_or_else(|| node.expected("a number"))
    }
}

fn is_negative_zero(number: f64) -> bool {
    number == 0.0 && number.is_sign_negative()
}

/// A number of single precision, written with as few digits as identify it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Single(pub f32);

impl Field for Single {
    fn write(&self) -> Result<Value> {
        // `0.1f32` as f64 would be written as 0.10000000149011612.
        let short = self.0.to_string().parse().ok().filter(|short: &f64| *short as f32 == self.0);
        AnyNumber(short.unwrap_or(self.0.into())).write()
    }

    fn read(node: &Node<'_>) -> Result<Single> {
        AnyNumber::read(node).map(|number| Single(number.0 as f32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CustomObjects;

    fn again<T: Field>(value: &T) -> (String, T) {
        let (written, objects) = (value.write().unwrap(), CustomObjects::new());
        (written.to_string(), T::read(&Node::root(&written, &objects)).unwrap())
    }

    #[test]
    fn every_number_is_read_back_with_its_bits() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (0.1, "0.1"),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
            (f64::NAN, "\"NaN\""),
            (f64::MIN_POSITIVE / 3.0, "7.41691286169067e-309"),
        ] {
            let (written, read) = again(&AnyNumber(number));
            assert_eq!(written, text);
            assert_eq!(read.0.to_bits(), number.to_bits());
        }
        // A step through all numbers of single precision.
        for bits in (0..=u32::MAX).step_by(65_537) {
            let number = f32::from_bits(bits);
            let (_, read) = again(&Single(number));
            assert!(read.0.to_bits() == bits || number.is_nan() && read.0.is_nan(), "{number}");
        }
        assert_eq!(again(&Single(0.1)).0, "0.1");
    }
}
