//! Picks elements of any dtype.

use estimand_tensor::{Array, Error, Result, Strings};

/// Returns the elements of a list in another order. `None` picks the default, a single element of
/// the same dtype.
fn pick(from: &Array, order: impl Iterator<Item = Option<usize>>, default: &Array) -> Result<Vec<u8>> {
    let size = from.dtype().size();
    let (bytes, default) = (from.bytes(), default.bytes());
    let mut picked = Vec::with_capacity(size * order.size_hint().0);
    for place in order {
        picked.extend_from_slice(match place {
            Some(i) => bytes.get(i * size..(i + 1) * size).ok_or_else(|| missing(i, from))?,
            None => default,
        });
    }
    Ok(picked)
}

/// Like [`pick`], as an array of these sizes.
pub(super) fn picked(
    from: &Array,
    dims: &[usize],
    order: impl Iterator<Item = Option<usize>>,
    default: &Array,
) -> Result<Array> {
    if from.dtype() != estimand_tensor::DType::Str {
        return Array::from_bytes(from.dtype(), dims, &pick(from, order, default)?);
    }
    let all: Vec<&[u8]> = from.strings()?.collect();
    let default = default.strings()?.next().unwrap_or_default();
    let mut strings = Strings::with_capacity(order.size_hint().0);
    for place in order {
        strings.push(match place {
            Some(i) => all.get(i).ok_or_else(|| missing(i, from))?,
            None => default,
        });
    }
    Array::from_string_list(dims, strings)
}

/// Returns the elements of a list in another order.
pub(super) fn reordered(from: &Array, order: &[usize]) -> Result<Array> {
    picked(from, &[order.len()], order.iter().map(|&i| Some(i)), from)
}

fn missing(i: usize, from: &Array) -> Error {
    Error::index(format!("there is no element {i} in an array of {:?}", from.dims()))
}
