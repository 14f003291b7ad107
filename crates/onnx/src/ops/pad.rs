//! Borders of one value, and borders mirrored from the inside.

use estimand_graph::op::{MirrorPad, Pad};
use estimand_tensor::{Dim, Error, Result};

use super::At;
use super::slice::BEFORE_FIRST;
use crate::message::AttributeProto;

/// Borders of one value.
pub(super) fn pad(at: &mut At<'_, '_, '_, '_>, op: &Pad) -> Result<String> {
    let (x, value) = (at.x(0)?, at.x(1)?);
    let borders: Vec<Dim> = op.before.dims().iter().chain(op.after.dims()).copied().collect();
    let borders = at.shape(&borders)?;
    Ok(at.add("Pad", &[&x, &borders, &value]))
}

/// Borders mirrored from the inside. ONNX mirrors without the edge; with it, reversed slices are
/// joined.
pub(super) fn mirror_pad(at: &mut At<'_, '_, '_, '_>, op: &MirrorPad) -> Result<String> {
    let mut x = at.x(0)?;
    if !op.symmetric {
        let before = op.paddings.iter().map(|&(before, _)| before as i64);
        let borders = at.ints(before.chain(op.paddings.iter().map(|&(_, after)| after as i64)))?;
        return Ok(at.add_with("Pad", &[&x, &borders], vec![AttributeProto::text("mode", "reflect")]));
    }
    for (axis, &(before, after)) in op.paddings.iter().enumerate() {
        if (before, after) == (0, 0) {
            continue;
        }
        let n = at.dims(0)[axis].known().ok_or_else(|| Error::internal("a mirrored axis of unknown size"))?;
        let mut parts = Vec::new();
        if before > 0 {
            parts.push(backwards(at, &x, axis, before as i64 - 1, BEFORE_FIRST)?);
        }
        parts.push(x.clone());
        if after > 0 {
            let end = if after == n { BEFORE_FIRST } else { (n - after) as i64 - 1 };
            parts.push(backwards(at, &x, axis, n as i64 - 1, end)?);
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        x = at.add_with("Concat", &parts, vec![AttributeProto::int("axis", axis as i64)]);
    }
    Ok(x)
}

/// The elements of an axis from `start` down to the one after `end`.
fn backwards(at: &mut At<'_, '_, '_, '_>, x: &str, axis: usize, start: i64, end: i64) -> Result<String> {
    let (start, end) = (at.ints([start])?, at.ints([end])?);
    let (axis, step) = (at.ints([axis as i64])?, at.ints([-1])?);
    Ok(at.add("Slice", &[x, &start, &end, &axis, &step]))
}
