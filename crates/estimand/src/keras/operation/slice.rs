//! Slices as Python writes them: `x[:, -1, ::2]`.

use estimand_graph::Tensor;
use estimand_tensor::{Array, Dim, Error, Result};

/// A part of an index, one for each axis but `Ellipsis` and `NewAxis`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::keras) enum Part {
    /// One place; the axis goes.
    At(i64),
    /// `start:stop:step`.
    Range { start: Option<i64>, stop: Option<i64>, step: Option<i64> },
    /// `...`: all axes that the other parts leave.
    Ellipsis,
    /// A new axis of size 1.
    NewAxis,
}

/// The most places that a slice with a step takes.
const MAX_PLACES: i64 = 1 << 20;

/// The longest axis whose size a run tells.
const LONGEST: i64 = 1 << 32;

/// Applies the parts to the axes from the first to the last.
pub(super) fn apply(x: &Tensor, parts: &[Part]) -> Result<Tensor> {
    let of_axes = parts.iter().filter(|part| !matches!(part, Part::Ellipsis | Part::NewAxis)).count();
    if of_axes > x.rank() || parts.iter().filter(|part| **part == Part::Ellipsis).count() > 1 {
        let text = format!("a slice has {of_axes} parts for a value of {} axes", x.rank());
        return Err(Error::shape(text).help("expected at most one part for each axis, and one `...`"));
    }
    let rest = x.rank() - of_axes;
    let (mut result, mut axis) = (x.clone(), 0);
    for part in parts {
        if result.is_poisoned() {
            break;
        }
        match *part {
            Part::Ellipsis => axis += rest,
            Part::NewAxis => {
                result = result.expand_dims(axis as i64);
                axis += 1;
            }
            Part::At(place) => {
                result = at(&result, axis, place)?.squeeze(&[axis as i64]);
            }
            Part::Range { start, stop, step } => {
                result = range(&result, axis, start, stop, step.unwrap_or(1))?;
                axis += 1;
            }
        }
    }
    Ok(result)
}

/// One place of one axis, which stays with size 1.
fn at(x: &Tensor, axis: usize, place: i64) -> Result<Tensor> {
    if axis == 0 {
        return Err(of_batch());
    }
    let size = x.shape().dims()[axis].known().map_or(LONGEST, |size| size as i64);
    if !(-size..size).contains(&place) {
        let text = format!("the index {place} is out of range for axis {axis} of size {size}");
        return Err(Error::index(text).help("expected an index from the negative size to below the size"));
    }
    if place >= 0 {
        return Ok(cut(x, axis, place as usize, 1));
    }
    if x.shape().dims()[axis].known().is_some() {
        return Ok(cut(x, axis, (size + place) as usize, 1));
    }
    // From the end: the same place of the reversed axis.
    Ok(cut(&x.reverse(&[axis as i64]), axis, (-place - 1) as usize, 1))
}

/// Nobody knows which rows a batch has.
fn of_batch() -> Error {
    let text = "a slice takes some rows of the batch, or leaves out its axis";
    Error::unsupported(text).help("begin the index with `:`")
}

/// `start:stop:step` of one axis.
fn range(x: &Tensor, axis: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<Tensor> {
    if start.is_none() && stop.is_none() && step == 1 {
        return Ok(x.clone());
    }
    if axis == 0 {
        return Err(of_batch());
    }
    let error = |text: String| {
        let shown = |place: Option<i64>| place.map(|place| place.to_string()).unwrap_or_default();
        let (start, stop) = (shown(start), shown(stop));
        Error::unsupported(format!("the slice {start}:{stop}:{step} of axis {axis} {text}"))
    };
    if let Dim::Known(size) = x.shape().dims()[axis] {
        let (first, n) = places(size as i64, start, stop, step).ok_or_else(|| error("has the step 0".to_string()))?;
        if step == 1 {
            return Ok(cut(x, axis, first as usize, n));
        }
        if n > MAX_PLACES {
            return Err(error(format!("takes {n} places")).help(format!("take at most {MAX_PLACES}")));
        }
        let places: Vec<i64> = (0..n).map(|i| first + i * step).collect();
        return Ok(x.gather_axis(&x.graph().constant(Array::from(places)), axis as i64, 0));
    }
    // The axis has a size that a run tells.
    if [start, stop].into_iter().flatten().any(|place| place.unsigned_abs() > LONGEST as u64) {
        return Err(error("is longer than any axis".to_string()).help("correct the numbers"));
    }
    match (start.unwrap_or(0), stop, step) {
        (_, None, -1) if start.is_none() => Ok(x.reverse(&[axis as i64])),
        (first @ 0.., None, 1) => Ok(cut(x, axis, first as usize, -1)),
        (first @ 0.., Some(end), 1) if end >= first => {
            Ok(cut(&x.truncate(axis as i64, end as usize), axis, first as usize, -1))
        }
        (first @ 0.., Some(end), 1) if end < 0 => {
            let mut borders = vec![(0, 0); x.rank()];
            borders[axis] = (first as usize, end.unsigned_abs() as usize);
            Ok(x.crop(&borders))
        }
        // From the end: the same places of the reversed axis.
        (first, stop, 1) if first < 0 && stop.is_none_or(|stop| stop < 0 && stop >= first) => {
            let end = -stop.unwrap_or(0);
            let axes = [axis as i64];
            let last = x.reverse(&axes).truncate(axis as i64, first.unsigned_abs() as usize);
            Ok(cut(&last, axis, end as usize, -1).reverse(&axes))
        }
        _ => Err(error("needs the size of the axis, which only a run tells".to_string())
            .help("give the input a fixed size there")),
    }
}

/// `size` places from `first`; -1 reaches to the end.
fn cut(x: &Tensor, axis: usize, first: usize, size: i64) -> Tensor {
    let (mut begin, mut sizes) = (vec![0; x.rank()], vec![-1; x.rank()]);
    (begin[axis], sizes[axis]) = (first, size);
    x.slice(&begin, &sizes)
}

/// The first place that Python's slice takes of an axis, and the number of places. None if the step
/// is 0.
fn places(size: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Option<(i64, i64)> {
    let (least, most) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let clamped = |place: i64| if place < 0 { place.saturating_add(size) } else { place }.clamp(least, most);
    let start = start.map_or(if step > 0 { 0 } else { size - 1 }, clamped);
    let stop = stop.map_or(if step > 0 { size } else { -1 }, clamped);
    let (span, by) = if step > 0 { (stop - start, step) } else { (start - stop, step.checked_neg()?) };
    let n = (step != 0).then(|| span.max(0) / by + i64::from(span.max(0) % by > 0))?;
    Some((start, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `list(range(5))[start:stop:step]` in Python.
    #[test]
    fn places_are_those_of_python() {
        for (start, stop, step, expected) in [
            (None, None, 2, (0, 3)),
            (Some(-2), None, 1, (3, 2)),
            (Some(1), Some(-1), 1, (1, 3)),
            (None, None, -1, (4, 5)),
            (Some(-1), Some(0), -2, (4, 2)),
            (Some(9), None, 1, (5, 0)),
            (Some(-9), Some(2), 1, (0, 2)),
            (Some(i64::MIN), Some(i64::MAX), i64::MAX, (0, 1)),
        ] {
            assert_eq!(places(5, start, stop, step), Some(expected), "{start:?}:{stop:?}:{step}");
        }
        assert_eq!(places(5, None, None, 0), None);
    }
}
