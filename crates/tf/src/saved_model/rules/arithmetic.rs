//! Arithmetic on sizes.

use estimand_graph::{Graph, SymbolDef, Symbols};
use estimand_tensor::{Binary, DType, Dim, Result};

use super::super::numbers::{Number, Numbers};

/// Applies an element-wise op to tracked integers. `None` if a result is not known to be a size.
pub(super) fn binary(graph: &Graph, op: Binary, a: &Numbers, b: &Numbers) -> Result<Option<Numbers>> {
    if op.is_comparison() || a.dtype != b.dtype {
        return Ok(None);
    }
    let narrow = a.dtype == DType::I32;
    a.zip(b, |x, y| {
        let result = match (x, y) {
            (Number::Known(x), Number::Known(y)) => known(op, *x, *y).map(Number::Known),
            _ => match (x.dim(), y.dim()) {
                (Some(x), Some(y)) => sizes(graph, op, x, y)?.map(Number::of),
                _ => None,
            },
        };
        // If i32 cannot hold a result, the op itself computes it.
        Ok(result.filter(|r| !narrow || r.known().is_none_or(|n| i32::try_from(n).is_ok())))
    })
}

fn known(op: Binary, x: i64, y: i64) -> Option<i64> {
    match op {
        Binary::Add => x.checked_add(y),
        Binary::Sub => x.checked_sub(y),
        Binary::Mul => x.checked_mul(y),
        Binary::Maximum => Some(x.max(y)),
        Binary::Minimum => Some(x.min(y)),
        Binary::FloorDiv if y > 0 => x.checked_div_euclid(y),
        Binary::FloorMod if y > 0 => x.checked_rem_euclid(y),
        _ => None,
    }
}

fn sizes(graph: &Graph, op: Binary, x: Dim, y: Dim) -> Result<Option<Dim>> {
    graph.symbols_mut(|s| {
        Ok(match (op, x, y) {
            (Binary::Add, ..) => Some(s.add(x, y)?),
            (Binary::Mul, ..) => Some(s.mul(x, y)?),
            // A difference may be negative, but a size may not.
            (Binary::Sub, x, Dim::Known(0)) => Some(x),
            (Binary::Sub, x, y) if x == y => Some(Dim::Known(0)),
            (Binary::Sub, Dim::Known(n), y) if is_remainder(s, y, n) => Some(s.sub(x, y)),
            (Binary::FloorMod, x, Dim::Known(n)) if n > 0 => {
                let n_times = s.div(x, y);
                let most = s.mul(n_times, y)?;
                Some(s.sub(x, most))
            }
            (Binary::FloorDiv, x, Dim::Known(n)) if n > 0 => Some(s.div(x, y)),
            (Binary::Maximum, x, Dim::Known(0)) | (Binary::Maximum, Dim::Known(0), x) => Some(x),
            (Binary::Maximum | Binary::Minimum, x, y) if x == y => Some(x),
            _ => None,
        })
    })
}

/// Whether a size is the remainder of a division by at most `n`, so that it is below `n`.
fn is_remainder(symbols: &Symbols, size: Dim, n: usize) -> bool {
    let def = |dim: Dim| if let Dim::Sym(symbol) = dim { Some(symbols.def(symbol)) } else { None };
    let Some(SymbolDef::Sub(x, most)) = def(size) else { return false };
    let Some(SymbolDef::Mul(a, b)) = def(most) else { return false };
    let is_quotient = |quotient: Dim, by: Dim| {
        def(quotient) == Some(SymbolDef::Div(x, by)) && by.known().is_some_and(|by| (1..=n).contains(&by))
    };
    is_quotient(a, b) || is_quotient(b, a)
}
