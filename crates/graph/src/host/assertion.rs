//! Checks as TensorFlow writes them: an `Assert`, and an `Identity` that waits for it.
//!
//! The `Identity` passes the checked value on, so that whoever uses the value runs the check. The
//! words of our check are attributes of the `Assert`, which TensorFlow ignores and our reader uses.

use estimand_tensor::{Array, DType, Result};
use estimand_wire::{DataType, NodeDef};

use crate::op::spelling::{Spelling, typed};

/// The attribute with the kind of a check: [`BETWEEN`], [`TERMS`] or [`AGREE`].
pub const KIND: &str = "_estimand_check";
/// The attribute that names what is checked.
pub const WHAT: &str = "_estimand_what";
/// The attribute that says what to do.
pub const HELP: &str = "_estimand_help";

/// Numbers must be in a range.
pub const BETWEEN: &str = "between";
/// A table must have found all terms.
pub const TERMS: &str = "terms";
/// Two lists must be equal.
pub const AGREE: &str = "agree";

/// The position of the row splits among the inputs of the `Assert` of a ragged value.
pub const SPLITS: usize = 4;

/// The number of wrong values that TensorFlow shows.
const N_SHOWN: i64 = 10;

/// A check with its words.
pub(super) struct Words<'a> {
    pub kind: &'a str,
    pub what: &'a str,
    pub help: Option<&'a str>,
    /// The message before the wrong values.
    pub message: String,
}

/// Writes an `Assert` that a condition holds everywhere, and returns the control input for the
/// nodes that wait for it. `values` has the shape of the condition; the wrong ones are shown.
/// `splits` are the row splits of ragged values.
pub(super) fn assertion(
    writer: &mut dyn Spelling,
    owner: &str,
    words: &Words<'_>,
    (condition, rank): (String, usize),
    (values, dtype): (String, DType),
    splits: Option<String>,
) -> Result<String> {
    let axes = writer.ints(owner, "axes", &mut (0..rank as i64))?;
    let all = writer.part(owner, "all", "All").input(condition.clone()).input(axes);
    let all = writer.add(typed(all, "Tidx", DType::I32).attr("keep_dims", false));
    let wrong = writer.part(owner, "wrong", "LogicalNot").input(condition);
    let wrong = writer.add(wrong);
    let places = writer.part(owner, "places", "Where").input(wrong);
    let places = writer.add(typed(places, "T", DType::Bool));
    let found = writer.part(owner, "found", "GatherNd").input(values).input(places);
    let found = writer.add(typed(typed(found, "Tparams", dtype), "Tindices", DType::I64));

    let message = text(writer, owner, "message", &words.message)?;
    let mut types = vec![DataType::String, dtype.into()];
    let mut def = writer.part(owner, "Assert", "Assert").input(all).input(message).input(found);
    if let Some(splits) = splits {
        let begin = text(writer, owner, "rows", "rows begin at")?;
        def = def.input(begin).input(splits);
        types.extend([DataType::String, DataType::Int64]);
    }
    let def = def.attr("T", types).attr("summarize", N_SHOWN).attr(KIND, words.kind).attr(WHAT, words.what);
    let def = match words.help {
        Some(help) => def.attr(HELP, help),
        None => def,
    };
    Ok(format!("^{}", writer.add(def)))
}

/// The node that passes a checked value on.
pub(super) fn checked(def: NodeDef, value: String, dtype: DType, assertion: String) -> NodeDef {
    typed(NodeDef { op: "Identity".into(), input: vec![value, assertion], ..def }, "T", dtype)
}

/// Compares two values of a dtype.
pub(super) fn comparison(
    writer: &mut dyn Spelling,
    owner: &str,
    (role, op): (&str, &str),
    a: &str,
    b: &str,
    dtype: DType,
) -> String {
    let def = writer.part(owner, role, op).input(a).input(b);
    writer.add(typed(def, "T", dtype))
}

fn text(writer: &mut dyn Spelling, owner: &str, role: &str, text: &str) -> Result<String> {
    writer.constant(owner, role, &Array::from_strings([], [text])?)
}

/// The numbers of a dtype that are the smallest above `low` and the largest below `high`. Bounds
/// that are out of the dtype's range become its ends.
pub(super) fn bounds(dtype: DType, low: f64, high: f64) -> [Array; 2] {
    match dtype {
        DType::F32 => {
            let (a, b) = (low as f32, high as f32);
            let a = if f64::from(a) < low { a.next_up() } else { a };
            let b = if f64::from(b) > high { b.next_down() } else { b };
            [Array::scalar(a), Array::scalar(b)]
        }
        DType::F64 => [Array::scalar(low), Array::scalar(high)],
        DType::I32 => [Array::scalar(low.ceil() as i32), Array::scalar(high.floor() as i32)],
        DType::U8 => [Array::scalar(low.ceil() as u8), Array::scalar(high.floor() as u8)],
        DType::I64 | DType::Bool | DType::Str => [Array::scalar(low.ceil() as i64), Array::scalar(high.floor() as i64)],
    }
}

/// The bounds that two constants of a check stand for: the ends of an integer dtype are no bounds.
pub fn bounds_of(low: &Array, high: &Array) -> Option<(f64, f64)> {
    let number = |array: &Array| array.to_f64_vec().ok().filter(|v| v.len() == 1).map(|v| v[0]);
    let (a, b) = (number(low)?, number(high)?);
    let [least, most] = match low.dtype() {
        DType::I32 => [i32::MIN.into(), i32::MAX.into()],
        DType::U8 => [u8::MIN.into(), u8::MAX.into()],
        DType::I64 => [i64::MIN as f64, i64::MAX as f64],
        _ => return Some((a, b)),
    };
    // Above the limit of u8, no value is too large.
    let low = if a <= least && least < 0.0 { f64::NEG_INFINITY } else { a };
    Some((low, if b >= most { f64::INFINITY } else { b }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_dtype_accept_the_same_numbers() {
        let f32s = |low, high| bounds(DType::F32, low, high).map(|bound| bound.item::<f32>().unwrap());
        // 0.1 as f32 is above 0.1, and 0.7 as f32 is below 0.7.
        assert!(f64::from(0.1f32) > 0.1 && f64::from(0.7f32) < 0.7);
        assert_eq!(f32s(0.7, 0.1), [0.7f32.next_up(), 0.1f32.next_down()]);
        assert_eq!(f32s(0.1, 0.7), [0.1, 0.7]);
        assert_eq!(f32s(0.0, f64::INFINITY), [0.0, f32::INFINITY]);
        let i64s = |low, high| bounds(DType::I64, low, high).map(|bound| bound.item::<i64>().unwrap());
        assert_eq!(i64s(-0.5, 2.5), [0, 2]);
        assert_eq!(i64s(f64::NEG_INFINITY, f64::INFINITY), [i64::MIN, i64::MAX]);
    }

    #[test]
    fn bounds_come_back() {
        let back = |dtype, low, high| {
            let [low, high] = bounds(dtype, low, high);
            bounds_of(&low, &high).unwrap()
        };
        for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8] {
            assert_eq!(back(dtype, 0.0, 3.0), (0.0, 3.0), "{dtype}");
            assert_eq!(back(dtype, 1.0, f64::INFINITY), (1.0, f64::INFINITY), "{dtype}");
        }
        assert_eq!(back(DType::I64, f64::NEG_INFINITY, 2.0), (f64::NEG_INFINITY, 2.0));
        assert_eq!(bounds_of(&Array::from([1i64, 2]), &Array::scalar(3i64)), None);
    }
}
