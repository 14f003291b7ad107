//! Slices: by begin and size, by strides, and with the masks of TensorFlow's `StridedSlice`.

use estimand_graph::Tensor;
use estimand_graph::op::reading::{Reading, refuse};
use estimand_graph::op::{Slice, StridedSlice, StridedSliceGrad};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::{Number, Numbers, are_few};

pub(super) fn slice(call: &mut NodeReader<'_, '_>) -> Outputs {
    if let Some(numbers) = call.numbers(0)?
        && numbers.dims.len() == 1
        && let (Some(begin), Some(size)) = (known_one(call, 1)?, known_one(call, 2)?)
    {
        let n = numbers.elements.len() as i64;
        let size = if size == -1 { n.saturating_sub(begin) } else { size };
        return match (usize::try_from(begin), usize::try_from(size)) {
            (Ok(b), Ok(s)) if begin.saturating_add(size) <= n => {
                one(Numbers::list(numbers.dtype, numbers.elements[b..b + s].to_vec()))
            }
            _ => Err(Error::index(format!("the slice of {size} from {begin} is out of range for {n} numbers"))),
        };
    }
    let (begins, sizes, tensor) = (call.elements(1)?, call.elements(2)?, call.tensor(0)?);
    if begins.elements.len() != tensor.rank() || sizes.elements.len() != tensor.rank() {
        return Err(Error::shape(format!(
            "the slice has {} begins and {} sizes for {}; expected one of each for each axis",
            begins.elements.len(),
            sizes.elements.len(),
            tensor.spec()
        )));
    }
    let mut result = tensor.clone();
    for axis in 0..tensor.rank() {
        let whole = tensor.shape().dims()[axis];
        let begin = begins.elements[axis].clone();
        let first = begin.dim().map_or_else(|| call.reader.size(&begin), Ok)?;
        let size = match &sizes.elements[axis] {
            Number::Known(-1) => call.graph().symbols_mut(|s| s.sub(whole, first)),
            number => call.reader.size(number)?,
        };
        result = part(call, &result, axis, &begin, size)?;
    }
    one(result)
}

/// The only number of an input, if it is known.
fn known_one(call: &NodeReader<'_, '_>, i: usize) -> Result<Option<i64>> {
    Ok(call.numbers(i)?.and_then(|n| if n.elements.len() == 1 { n.elements[0].known() } else { None }))
}

/// `size` elements of an axis from `begin`.
pub(super) fn part(
    call: &mut NodeReader<'_, '_>,
    tensor: &Tensor,
    axis: usize,
    begin: &Number,
    size: Dim,
) -> Result<Tensor> {
    if begin.known() == Some(0) && tensor.shape().dims()[axis] == size {
        return Ok(tensor.clone());
    }
    match begin.known().map(usize::try_from) {
        Some(Ok(first)) => {
            let mut begin = vec![0; tensor.rank()];
            begin[axis] = first;
            let mut shape = tensor.shape().clone();
            shape.0[axis] = size;
            Ok(call.add(Slice { begin, size: shape }, &[tensor])?.remove(0))
        }
        Some(Err(_)) => Err(Error::index(format!("the slice begins at {begin:?}; expected 0 or more"))),
        None => {
            let first = begin.tensor(call.graph(), DType::I64)?;
            let places = call.graph().range(size, DType::I64) + &first;
            Ok(tensor.gather_axis(&places, axis as i64, 0))
        }
    }
}

/// The effect of a strided slice on one axis of its input or result.
enum Range {
    /// A new axis of size 1.
    New,
    /// One element; the axis is removed.
    Single(Number),
    /// Begin, end (exclusive) and stride; `None` for an open end.
    Span { begin: Option<Number>, end: Option<Number>, stride: i64 },
}

/// The ranges of a node: one for each axis of the input, with new axes between them.
fn ranges(call: &mut NodeReader<'_, '_>, first: usize, rank: usize) -> Result<Vec<Range>> {
    let (begin, end, strides) = (call.elements(first)?, call.elements(first + 1)?, call.integers(first + 2)?);
    let n = strides.len();
    if begin.elements.len() != n || end.elements.len() != n || n > 32 {
        return Err(Error::shape(format!(
            "the slice has {} begins, {} ends and {n} strides; expected the same number, at most 32",
            begin.elements.len(),
            end.elements.len()
        )));
    }
    let mask = |key: &str| call.int_or(key, 0);
    let (begin_mask, end_mask) = (mask("begin_mask")?, mask("end_mask")?);
    let (ellipsis, new_axis, shrink) = (mask("ellipsis_mask")?, mask("new_axis_mask")?, mask("shrink_axis_mask")?);
    let bit = |mask: i64, i: usize| mask >> i & 1 == 1;
    let n_named = (0..n).filter(|&i| !bit(new_axis, i) && !bit(ellipsis, i)).count();
    let missing = rank
        .checked_sub(n_named)
        .ok_or_else(|| Error::shape(format!("the slice names {n_named} axes of a tensor that has {rank}")))?;
    let whole = || Range::Span { begin: None, end: None, stride: 1 };
    let mut ranges = Vec::new();
    let mut spread = false;
    for (i, &stride) in strides.iter().enumerate() {
        if bit(ellipsis, i) {
            ranges.extend((0..missing).map(|_| whole()));
            spread = true;
        } else if bit(new_axis, i) {
            ranges.push(Range::New);
        } else if bit(shrink, i) {
            ranges.push(Range::Single(begin.elements[i].clone()));
        } else {
            let open = |mask, numbers: &Numbers| (!bit(mask, i)).then(|| numbers.elements[i].clone());
            ranges.push(Range::Span { begin: open(begin_mask, &begin), end: open(end_mask, &end), stride });
        }
    }
    if !spread {
        ranges.extend((0..missing).map(|_| whole()));
    }
    Ok(ranges)
}

pub(super) fn strided_slice(call: &mut NodeReader<'_, '_>) -> Outputs {
    if let Some(numbers) = call.numbers(0)? {
        let ranges = ranges(call, 1, numbers.dims.len())?;
        if let Some(numbers) = of_numbers(&numbers, &ranges)? {
            return one(numbers);
        }
    }
    let tensor = call.tensor(0)?;
    let ranges = ranges(call, 1, tensor.rank())?;
    let mut result = tensor;
    // Axes are sliced from the first on. Axes of single elements stay with size 1 until the end, so
    // that axis numbers do not change.
    let mut axis = 0;
    for range in &ranges {
        match range {
            Range::New => continue,
            Range::Single(at) => result = single(call, &result, axis, at)?,
            Range::Span { begin, end, stride } => {
                result = span(call, &result, axis, begin.as_ref(), end.as_ref(), *stride)?
            }
        }
        axis += 1;
    }
    let mut shape = Shape::scalar();
    let mut sizes = result.shape().dims().iter();
    for range in &ranges {
        match range {
            Range::New => shape.0.push(Dim::Known(1)),
            Range::Single(_) => drop(sizes.next()),
            Range::Span { .. } => shape.0.extend(sizes.next().copied()),
        }
    }
    one(result.reshape_as(shape))
}

/// Ranges of tracked numbers. `None` if a bound is not known.
fn of_numbers(numbers: &Numbers, ranges: &[Range]) -> Result<Option<Numbers>> {
    // The places of a range are listed, whatever the sizes of the other axes.
    if !are_few(&numbers.dims) {
        return Ok(None);
    }
    let (mut places, mut dims) = (vec![0], Vec::new());
    let mut sizes = numbers.dims.iter();
    for range in ranges {
        if let Range::New = range {
            dims.push(1);
            continue;
        }
        let &n = sizes.next().ok_or_else(|| Error::internal("a slice has more ranges than axes"))?;
        let Some(along) = places_of(range, n as i64)? else { return Ok(None) };
        if let Range::Span { .. } = range {
            dims.push(along.len());
        }
        places = places.iter().flat_map(|&place| along.iter().map(move |&k| place * n + k as usize)).collect();
    }
    let elements = places.iter().map(|&place| numbers.elements[place].clone()).collect();
    Ok(Some(Numbers { dtype: numbers.dtype, dims, elements }))
}

/// The places of a range along an axis of `n` numbers. `None` if a bound is not known.
fn places_of(range: &Range, n: i64) -> Result<Option<Vec<i64>>> {
    let at = |number: &Number| number.known().map(|k| if k < 0 { k.saturating_add(n) } else { k });
    Ok(match range {
        Range::New => Some(Vec::new()),
        Range::Single(place) => match at(place) {
            Some(k) if (0..n).contains(&k) => Some(vec![k]),
            Some(k) => return Err(Error::index(format!("element {k} is out of range for {n} numbers"))),
            None => None,
        },
        Range::Span { begin, end, stride } => {
            let bound = |number: &Option<Number>, open: i64| match number {
                None => Some(open),
                Some(number) => at(number),
            };
            let backwards = *stride < 0;
            let (low, high) = if backwards { (-1, n - 1) } else { (0, n) };
            let begin = bound(begin, if backwards { n - 1 } else { 0 });
            let end = bound(end, if backwards { -1 } else { n });
            let (Some(begin), Some(end)) = (begin, end) else { return Ok(None) };
            let (mut k, end) = (begin.clamp(low, high), end.clamp(low, high));
            let mut places = Vec::new();
            while *stride != 0 && if backwards { k > end } else { k < end } {
                places.push(k);
                k = k.saturating_add(*stride);
            }
            Some(places)
        }
    })
}

/// One position of an axis, which stays with size 1.
fn single(call: &mut NodeReader<'_, '_>, tensor: &Tensor, axis: usize, at: &Number) -> Result<Tensor> {
    let whole = tensor.shape().dims()[axis];
    match (at.known(), whole) {
        (Some(k), _) if k >= 0 => part(call, tensor, axis, at, Dim::Known(1)),
        (Some(k), Dim::Known(n)) if k.saturating_add(n as i64) >= 0 => {
            part(call, tensor, axis, &Number::Known(k + n as i64), Dim::Known(1))
        }
        (Some(k), Dim::Known(n)) => Err(Error::index(format!("element {k} is out of range for an axis of size {n}"))),
        (Some(k), size) => {
            // Counts from the end of an axis of unknown size.
            let n = Number::of(size).tensor(call.graph(), DType::I64)?;
            let place = (n + k).reshape([1]);
            Ok(tensor.gather_axis(&place, axis as i64, 0))
        }
        (None, size) => {
            let (n, place) = (Number::of(size).tensor(call.graph(), DType::I64)?, at.tensor(call.graph(), DType::I64)?);
            let place = place.less(0i64).select(&(&place + &n), &place).reshape([1]);
            Ok(tensor.gather_axis(&place, axis as i64, 0))
        }
    }
}

fn span(
    call: &mut NodeReader<'_, '_>,
    tensor: &Tensor,
    axis: usize,
    begin: Option<&Number>,
    end: Option<&Number>,
    stride: i64,
) -> Result<Tensor> {
    let whole = tensor.shape().dims()[axis];
    if begin.is_none() && end.is_none() && stride == 1 {
        return Ok(tensor.clone());
    }
    let known = |number: Option<&Number>| number.map(|n| n.known());
    if let (Dim::Known(n), None | Some(Some(_)), None | Some(Some(_))) = (whole, known(begin), known(end)) {
        return known_span(call, tensor, axis, n, known(begin).flatten(), known(end).flatten(), stride);
    }
    if stride < 1 {
        return Err(refuse(format!("a slice with stride {stride} of an axis of unknown size")));
    }
    // Positions are limited by the size of the axis. Negative ones count from its end.
    let mut place = |number: Option<&Number>, open: Dim| -> Result<Dim> {
        let Some(number) = number else { return Ok(open) };
        let dim = call.reader.place(number, whole)?;
        // The minimum of two sizes: a - (a - b), where differences stop at 0.
        Ok(call.graph().symbols_mut(|s| {
            let excess = s.sub(dim, whole);
            s.sub(dim, excess)
        }))
    };
    let end = place(end, whole)?;
    let first = place(begin, Dim::Known(0))?;
    let size = call.graph().symbols_mut(|s| {
        let size = s.sub(end, first);
        s.ceil_div(size, stride as usize)
    });
    if stride == 1 && first == Dim::Known(0) {
        return part(call, tensor, axis, &Number::Known(0), size);
    }
    // Gathers by position: a slice that begins after the end of an axis is empty, whatever its
    // first position.
    let first = Number::of(first).tensor(call.graph(), DType::I64)?;
    let places = call.graph().range(size, DType::I64);
    let places = if stride == 1 { places + &first } else { places * stride + &first };
    Ok(tensor.gather_axis(&places, axis as i64, 0))
}

/// A slice of an axis of known size between known positions.
fn known_span(
    call: &mut NodeReader<'_, '_>,
    tensor: &Tensor,
    axis: usize,
    n: usize,
    begin: Option<i64>,
    end: Option<i64>,
    stride: i64,
) -> Result<Tensor> {
    let (first, size) = bounds(n, begin, end, stride)?;
    if stride == 1 {
        return part(call, tensor, axis, &Number::Known(first as i64), Dim::Known(size));
    }
    if let Some(sizes) = tensor.shape().known() {
        let mut begins = vec![0; sizes.len()];
        let mut strides = vec![1; sizes.len()];
        let mut result = sizes.to_vec();
        (begins[axis], strides[axis], result[axis]) = (first, stride, size);
        let op = StridedSlice { begin: begins, strides, size: result };
        return Ok(call.add(op, &[tensor])?.remove(0));
    }
    // Not a constant: the sizes of a placeholder cost a file nothing.
    let places = call.graph().range(size, DType::I64) * stride + first as i64;
    Ok(tensor.gather_axis(&places, axis as i64, 0))
}

/// The first position and the number of positions, by NumPy's rules.
fn bounds(n: usize, begin: Option<i64>, end: Option<i64>, stride: i64) -> Result<(usize, usize)> {
    if stride == 0 {
        return Err(Error::config("a stride is 0; expected any other number"));
    }
    let n = n as i64;
    let (low, high) = if stride > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |k: i64| (if k < 0 { k.saturating_add(n) } else { k }).clamp(low, high);
    let first = begin.map_or(if stride > 0 { 0 } else { n - 1 }, clamp);
    let last = end.map_or(if stride > 0 { n } else { -1 }, clamp);
    let span = if stride > 0 { last - first } else { first - last }.max(0) as u64;
    Ok((first.max(0) as usize, span.div_ceil(stride.unsigned_abs()) as usize))
}

pub(super) fn strided_slice_grad(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (shape, dy) = (call.shape(0)?, call.tensor(4)?);
    let ranges = ranges(call, 1, shape.rank())?;
    let (mut begins, mut all_strides) = (Vec::new(), Vec::new());
    for (range, size) in ranges.iter().zip(shape.dims()) {
        let known = |number: &Option<Number>| number.as_ref().map(|n| n.known());
        match range {
            Range::Span { begin, end, stride } => match (size, known(begin), known(end)) {
                (Dim::Known(n), None | Some(Some(_)), None | Some(Some(_))) => {
                    let (first, _) = bounds(*n, known(begin).flatten(), known(end).flatten(), *stride)?;
                    begins.push(first);
                    all_strides.push(*stride);
                }
                (_, None | Some(Some(0)), _) if *stride == 1 => {
                    begins.push(0);
                    all_strides.push(1);
                }
                _ => return Err(refuse("the gradient of a slice of an axis of unknown size")),
            },
            _ => return Err(refuse("the gradient of a slice that adds or drops axes")),
        }
    }
    let op = StridedSliceGrad { begin: begins, strides: all_strides, shape };
    one(call.add(op, &[&dy])?.remove(0))
}
