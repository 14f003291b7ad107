//! Strings: what opset 17 can do with them.

use estimand_graph::host::text::{AsString, Edit, StringEqual, ToNumber};
use estimand_tensor::{Array, DType, Result};

use crate::message::AttributeProto;
use crate::ops::At;
use crate::refuse::no_counterpart;
use crate::tensor::utf8;

/// Whether strings equal one constant string.
pub(super) fn equal(at: &mut At<'_, '_, '_, '_>, op: &StringEqual) -> Result<String> {
    let constant = (0..2).find_map(|i| at.constant_input(i).filter(|array| array.len() == 1).map(|array| (i, array)));
    let Some((i, array)) = constant.filter(|(i, array)| array.rank() <= at.rank(1 - i)) else {
        return no_counterpart(at, "opset 17 compares strings with a single constant only");
    };
    let term = array.strings()?.next().unwrap_or_default().to_vec();
    let x = at.x(1 - i)?;
    let attributes = vec![
        AttributeProto::texts("keys_strings", vec![utf8(&term)?.to_vec()]),
        AttributeProto::ints("values_int64s", [i64::from(!op.negated)]),
        AttributeProto::int("default_int64", op.negated.into()),
    ];
    let flags = at.add_ml("LabelEncoder", &[&x], attributes);
    Ok(at.cast(&flags, DType::I64, DType::Bool))
}

/// An edit of each string.
pub(super) fn edit(at: &mut At<'_, '_, '_, '_>, op: &Edit) -> Result<String> {
    let action = match op {
        Edit::Lower { utf8: false } => "LOWER",
        Edit::Upper { utf8: false } => "UPPER",
        _ => return no_counterpart(at, "opset 17 changes the case of ASCII letters only"),
    };
    let x = at.x(0)?;
    // It takes lists only, and onnxruntime takes no empty ones: an element more is cut off again.
    let flat = at.reshape(&x, &[-1])?;
    let more = at.constant(&Array::from_strings([1], [""])?)?;
    let list = at.add_with("Concat", &[&flat, &more], vec![AttributeProto::int("axis", 0)]);
    let attributes = vec![AttributeProto::text("case_change_action", action), AttributeProto::text("locale", "C")];
    let changed = at.add_with("StringNormalizer", &[&list], attributes);
    let changed = at.slice(&changed, 0, 0, -1)?;
    let shape = at.shape_of(&x);
    Ok(at.add("Reshape", &[&changed, &shape]))
}

/// The decimal text of integers.
pub(super) fn as_string(at: &mut At<'_, '_, '_, '_>, op: &AsString) -> Result<String> {
    let (x, dtype) = (at.x(0)?, at.dtype(0));
    let is_plain = op.width <= 0 && op.fill.is_empty();
    if !is_plain || !matches!(dtype, DType::I32 | DType::I64) {
        return no_counterpart(at, "ONNX writes only integers as text, without padding");
    }
    Ok(at.cast(&x, dtype, DType::Str))
}

/// The number that each string represents.
pub(super) fn to_number(at: &mut At<'_, '_, '_, '_>, op: &ToNumber) -> Result<String> {
    let x = at.x(0)?;
    Ok(at.cast(&x, DType::Str, op.0))
}
