//! Arrays as the operators take them: numbers in the widest type of their kind, elements by their
//! places, and shapes that are broadcast.

use estimand_tensor::{Array, DType, Element, Error, Result, element_count};

/// The numbers of an array. An f64 holds every f32, so that an operation on two of them, rounded to
/// f32, is the operation on f32.
pub(super) enum Numbers {
    Floats(Vec<f64>),
    /// Integers, and booleans as 0 and 1.
    Ints(Vec<i64>),
}

impl Numbers {
    pub(super) fn of(array: &Array) -> Result<Numbers> {
        fn ints<T: Element + Into<i64>>(array: &Array) -> Result<Numbers> {
            Ok(Numbers::Ints(array.as_slice::<T>()?.iter().map(|&v| v.into()).collect()))
        }
        match array.dtype() {
            DType::F32 | DType::F64 => Ok(Numbers::Floats(array.to_f64_vec()?)),
            DType::I32 => ints::<i32>(array),
            DType::I64 => ints::<i64>(array),
            DType::U8 => ints::<u8>(array),
            DType::Bool => ints::<bool>(array),
            DType::Str => Err(Error::dtype(None, DType::Str, "the operator takes numbers; it was given strings")),
        }
    }

    /// An array of these numbers. Integers wrap around, as ONNX's do.
    pub(super) fn array(self, dtype: DType, dims: &[usize]) -> Result<Array> {
        match (self, dtype) {
            (Numbers::Floats(v), DType::F32) => Array::from_vec(dims, v.into_iter().map(|v| v as f32).collect()),
            (Numbers::Floats(v), DType::F64) => Array::from_vec(dims, v),
            (Numbers::Ints(v), DType::I32) => Array::from_vec(dims, v.into_iter().map(|v| v as i32).collect()),
            (Numbers::Ints(v), DType::I64) => Array::from_vec(dims, v),
            (Numbers::Ints(v), DType::U8) => Array::from_vec(dims, v.into_iter().map(|v| v as u8).collect()),
            (Numbers::Ints(v), DType::Bool) => Array::from_vec(dims, v.into_iter().map(|v| v != 0).collect()),
            _ => Err(Error::internal(format!("numbers of another kind than {dtype}"))),
        }
    }
}

/// The elements of an array of integers.
pub(super) fn integers(array: &Array) -> Result<Vec<i64>> {
    match Numbers::of(array)? {
        Numbers::Ints(ints) if array.dtype() != DType::Bool => Ok(ints),
        _ => Err(Error::dtype(Some(DType::I64), array.dtype(), "the operator takes integers here")),
    }
}

/// The elements of an array of booleans.
pub(super) fn booleans(array: &Array) -> Result<Vec<bool>> {
    Ok(array.as_slice::<bool>()?.to_vec())
}

pub(super) fn strings(array: &Array) -> Result<Vec<&[u8]>> {
    Ok(array.strings()?.collect())
}

/// An array of elements of other arrays. A place is the number of an array and of its element.
pub(super) fn pick(
    sources: &[&Array],
    dims: &[usize],
    places: impl IntoIterator<Item = (usize, usize)>,
) -> Result<Array> {
    fn of<T: Element>(
        sources: &[&Array],
        dims: &[usize],
        places: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Array> {
        let slices = sources.iter().map(|array| array.as_slice::<T>()).collect::<Result<Vec<_>>>()?;
        let mut picked = Vec::with_capacity(element_count(dims)?);
        for (source, i) in places {
            picked.push(*slices.get(source).and_then(|slice| slice.get(i)).ok_or_else(outside)?);
        }
        Array::from_vec(dims, picked)
    }
    fn outside() -> Error {
        Error::internal("the place of an element is outside of its array")
    }
    match sources.first().map_or(DType::F32, |array| array.dtype()) {
        DType::F32 => of::<f32>(sources, dims, places),
        DType::F64 => of::<f64>(sources, dims, places),
        DType::I32 => of::<i32>(sources, dims, places),
        DType::I64 => of::<i64>(sources, dims, places),
        DType::U8 => of::<u8>(sources, dims, places),
        DType::Bool => of::<bool>(sources, dims, places),
        DType::Str => {
            let slices = sources.iter().map(|array| strings(array)).collect::<Result<Vec<_>>>()?;
            let mut picked = Vec::with_capacity(element_count(dims)?);
            for (source, i) in places {
                picked.push(*slices.get(source).and_then(|slice| slice.get(i)).ok_or_else(outside)?);
            }
            Array::from_strings(dims, picked)
        }
    }
}

/// The elements to step over for one step along each axis.
pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    (0..dims.len()).map(|axis| dims[axis + 1..].iter().product()).collect()
}

/// An array of which each axis reads certain offsets of the input. `None` reads the fill.
pub(super) fn mapped(x: &Array, fill: Option<&Array>, axes: &[Vec<Option<usize>>]) -> Result<Array> {
    let dims: Vec<usize> = axes.iter().map(Vec::len).collect();
    element_count(&dims)?;
    let sources: Vec<&Array> = [x].into_iter().chain(fill).collect();
    pick(&sources, &dims, sums(axes).into_iter().map(|offset| offset.map_or((1, 0), |i| (0, i))))
}

/// The sum of one offset of each axis, in row-major order.
pub(super) fn sums(axes: &[Vec<Option<usize>>]) -> Vec<Option<usize>> {
    let mut all = vec![Some(0)];
    for axis in axes {
        let add = |sum: Option<usize>| axis.iter().map(move |offset| Some(sum? + (*offset)?));
        all = all.into_iter().flat_map(add).collect();
    }
    all
}

/// All elements of an axis, in order.
pub(super) fn whole(size: usize, stride: usize) -> Vec<Option<usize>> {
    (0..size).map(|i| Some(i * stride)).collect()
}

/// The shape to which shapes are broadcast.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    let one = |axis: usize| match (size(a, axis), size(b, axis)) {
        (a, b) if a == b || b == 1 => Ok(a),
        (1, b) => Ok(b),
        _ => Err(Error::shape(format!("{a:?} and {b:?} cannot be broadcast to one shape"))),
    };
    (0..rank).map(one).collect()
}

/// Repeats axes of size 1 up to a shape.
pub(super) fn expand(x: &Array, dims: &[usize]) -> Result<Array> {
    if x.dims() == dims {
        return Ok(x.clone());
    }
    if broadcast(x.dims(), dims)? != dims {
        return Err(Error::shape(format!("{:?} cannot be expanded to {dims:?}", x.dims())));
    }
    let (strides, missing) = (strides(x.dims()), dims.len() - x.rank());
    let axis = |(axis, &size): (usize, &usize)| match axis.checked_sub(missing) {
        Some(own) if x.dims()[own] == size => whole(size, strides[own]),
        _ => vec![Some(0); size],
    };
    mapped(x, None, &dims.iter().enumerate().map(axis).collect::<Vec<_>>())
}

/// An axis that may be counted from the end.
pub(super) fn axis(number: i64, rank: usize) -> Result<usize> {
    place(number, rank).ok_or_else(|| Error::index(format!("there is no axis {number} among {rank}")))
}

/// An index that may be counted from the end.
pub(super) fn place(number: i64, size: usize) -> Option<usize> {
    let found = if number < 0 { number + size as i64 } else { number };
    usize::try_from(found).ok().filter(|&found| found < size)
}

/// Sizes as ONNX writes them.
pub(super) fn sizes(numbers: &[i64]) -> Result<Vec<usize>> {
    let size = |&n: &i64| usize::try_from(n).map_err(|_| Error::shape(format!("{n} is no size of an axis")));
    numbers.iter().map(size).collect()
}

/// An array of i64.
pub(super) fn longs(dims: &[usize], values: Vec<i64>) -> Result<Array> {
    Array::from_vec(dims, values)
}

/// The lines of an array along an axis.
pub(super) struct Lines {
    pub(super) outer: usize,
    pub(super) n: usize,
    pub(super) inner: usize,
}

impl Lines {
    pub(super) fn new(dims: &[usize], axis: usize) -> Lines {
        Lines { outer: dims[..axis].iter().product(), n: dims[axis], inner: dims[axis + 1..].iter().product() }
    }

    /// The places of the elements of each line.
    pub(super) fn each(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let line =
            |outer: usize, inner: usize| (0..self.n).map(|i| (outer * self.n + i) * self.inner + inner).collect();
        (0..self.outer).flat_map(move |outer| (0..self.inner).map(move |inner| line(outer, inner)))
    }
}
