//! Reductions, running sums and the largest elements.

use estimand_graph::Reduction;
use estimand_graph::op::{ArgMax, Cumulate, Reduce, TopK};
use estimand_tensor::{DType, Result};

use super::At;
use crate::message::AttributeProto;
use crate::refuse::no_counterpart;

/// Reduces a set of axes.
pub(super) fn reduce(at: &mut At<'_, '_, '_, '_>, op: &Reduce) -> Result<String> {
    let dtype = at.dtype(0);
    let wide = match (op.kind, dtype) {
        (Reduction::Sum | Reduction::Prod, dtype) => summed(dtype),
        // TF: the mean is that of the whole sum.
        (Reduction::Mean, DType::I32 | DType::U8) => DType::I64,
        _ => dtype,
    };
    let x = at.x(0)?;
    let x = at.cast(&x, dtype, wide);
    let result = reduced(at, op, x, wide)?;
    Ok(at.cast(&result, wide, dtype))
}

/// The dtype of sums. ONNX does not add bytes; the last bits of a wider sum are those of a byte.
fn summed(dtype: DType) -> DType {
    if dtype == DType::U8 { DType::I64 } else { dtype }
}

fn reduced(at: &mut At<'_, '_, '_, '_>, op: &Reduce, x: String, dtype: DType) -> Result<String> {
    let axes: Vec<i64> = op.axes.iter().map(|axis| axis as i64).collect();
    // No axes would mean all of them.
    if axes.is_empty() {
        return Ok(x);
    }
    let op_name = match op.kind {
        Reduction::Sum => return at.sum(&x, &axes, op.keep_dims),
        Reduction::Mean if dtype.is_float() => "ReduceMean",
        Reduction::Mean => {
            // Integers are divided towards 0.
            let sum = at.sum(&x, &axes, op.keep_dims)?;
            let mut count = at.scalar(1i64)?;
            for &axis in &axes {
                let size = at.size_number(at.dims(0)[axis as usize])?;
                count = at.add("Mul", &[&count, &size]);
            }
            let count = at.cast(&count, DType::I64, dtype);
            return Ok(at.add("Div", &[&sum, &count]));
        }
        Reduction::Any => return any(at, &x, &axes, op.keep_dims),
        Reduction::All => {
            let not = at.add("Not", &[&x]);
            let any = any(at, &not, &axes, op.keep_dims)?;
            return Ok(at.add("Not", &[&any]));
        }
        Reduction::Max => "ReduceMax",
        Reduction::Min => "ReduceMin",
        Reduction::Prod => "ReduceProd",
    };
    let keep = AttributeProto::int("keepdims", op.keep_dims.into());
    Ok(at.add_with(op_name, &[&x], vec![AttributeProto::ints("axes", axes), keep]))
}

/// Whether any element is true. Not a maximum, which is not 0 for no elements.
fn any(at: &mut At<'_, '_, '_, '_>, x: &str, axes: &[i64], keep_dims: bool) -> Result<String> {
    let flags = at.cast(x, DType::Bool, DType::I64);
    let count = at.sum(&flags, axes, keep_dims)?;
    Ok(at.cast(&count, DType::I64, DType::Bool))
}

/// The index of the largest or smallest element, the first of equals.
pub(super) fn arg_max(at: &mut At<'_, '_, '_, '_>, op: &ArgMax) -> Result<String> {
    let x = at.x(0)?;
    let attributes = vec![AttributeProto::int("axis", op.axis as i64), AttributeProto::int("keepdims", 0)];
    let index = at.add_with(if op.min { "ArgMin" } else { "ArgMax" }, &[&x], attributes);
    Ok(at.cast(&index, DType::I64, op.output))
}

/// Running sum along an axis.
pub(super) fn cumulate(at: &mut At<'_, '_, '_, '_>, op: &Cumulate) -> Result<String> {
    if op.product {
        return no_counterpart(at, "ONNX has running sums only");
    }
    let (x, dtype) = (at.x(0)?, at.dtype(0));
    let x = at.cast(&x, dtype, summed(dtype));
    let axis = at.scalar(op.axis as i64)?;
    let flag = |name: &str, is_set: bool| AttributeProto::int(name, is_set.into());
    let attributes = vec![flag("exclusive", op.exclusive), flag("reverse", op.reverse)];
    let sums = at.add_with("CumSum", &[&x, &axis], attributes);
    Ok(at.cast(&sums, summed(dtype), dtype))
}

/// The k largest of the last axis, and their indices.
pub(super) fn top_k(at: &mut At<'_, '_, '_, '_>, op: &TopK) -> Result<Vec<String>> {
    let x = at.x(0)?;
    let k = at.ints([op.k as i64])?;
    let found = at.add_all("TopK", &[&x, &k], vec![AttributeProto::int("axis", -1)], 2);
    let places = at.cast(&found[1], DType::I64, DType::I32);
    Ok(vec![found[0].clone(), places])
}
