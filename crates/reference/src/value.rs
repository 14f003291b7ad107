//! `Wide`: a value in the widest type of its kind, and the index arithmetic of all kernels.

use std::sync::Arc;

use estimand_tensor::{Array, DType, Dims, Error, Result};

/// An array whose floats are f64 and whose integers are i64, whatever its dtype.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    pub dtype: DType,
    pub dims: Dims,
    pub data: Data,
}

/// The elements in row-major order.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Float(Vec<f64>),
    Int(Vec<i64>),
    Bool(Vec<bool>),
    Str(Vec<Arc<[u8]>>),
}

impl Wide {
    pub fn floats(dtype: DType, dims: &[usize], values: Vec<f64>) -> Wide {
        Wide { dtype, dims: dims.into(), data: Data::Float(values) }
    }

    /// Integers wrap to the range of their dtype.
    pub fn ints(dtype: DType, dims: &[usize], values: impl IntoIterator<Item = i64>) -> Wide {
        let wrap = |v: i64| match dtype {
            DType::I32 => i64::from(v as i32),
            DType::U8 => i64::from(v as u8),
            _ => v,
        };
        Wide { dtype, dims: dims.into(), data: Data::Int(values.into_iter().map(wrap).collect()) }
    }

    pub fn bools(dims: &[usize], values: Vec<bool>) -> Wide {
        Wide { dtype: DType::Bool, dims: dims.into(), data: Data::Bool(values) }
    }

    /// Whole numbers in the representation of the dtype.
    pub fn counts(dtype: DType, dims: &[usize], values: impl Iterator<Item = usize>) -> Wide {
        match dtype.is_float() {
            true => Wide::floats(dtype, dims, values.map(|n| n as f64).collect()),
            false => Wide::ints(dtype, dims, values.map(|n| n as i64)),
        }
    }

    pub fn from_array(array: &Array) -> Result<Wide> {
        let data = match array.dtype() {
            DType::F32 | DType::F64 => Data::Float(array.to_f64_vec()?),
            DType::I32 => Data::Int(array.as_slice::<i32>()?.iter().map(|&v| v.into()).collect()),
            DType::I64 => Data::Int(array.as_slice::<i64>()?.to_vec()),
            DType::U8 => Data::Int(array.as_slice::<u8>()?.iter().map(|&v| v.into()).collect()),
            DType::Bool => Data::Bool(array.as_slice::<bool>()?.to_vec()),
            DType::Str => Data::Str(array.strings()?.map(Arc::from).collect()),
        };
        Ok(Wide { dtype: array.dtype(), dims: array.dims().into(), data })
    }

    /// The value in its declared dtype.
    pub fn to_array(&self) -> Result<Array> {
        let dims = &self.dims;
        match (&self.data, self.dtype) {
            (Data::Float(v), DType::F32) => Array::from_vec(dims, v.iter().map(|&v| v as f32).collect()),
            (Data::Float(v), _) => Array::from_slice(dims, v),
            (Data::Int(v), DType::I32) => Array::from_vec(dims, v.iter().map(|&v| v as i32).collect()),
            (Data::Int(v), DType::U8) => Array::from_vec(dims, v.iter().map(|&v| v as u8).collect()),
            (Data::Int(v), _) => Array::from_slice(dims, v),
            (Data::Bool(v), _) => Array::from_slice(dims, v),
            (Data::Str(v), _) => Array::from_strings(dims, v),
        }
    }

    pub fn as_floats(&self) -> Result<&[f64]> {
        match &self.data {
            Data::Float(values) => Ok(values),
            _ => Err(self.wrong_kind("floats")),
        }
    }

    pub fn as_ints(&self) -> Result<&[i64]> {
        match &self.data {
            Data::Int(values) => Ok(values),
            _ => Err(self.wrong_kind("integers")),
        }
    }

    pub fn as_bools(&self) -> Result<&[bool]> {
        match &self.data {
            Data::Bool(values) => Ok(values),
            _ => Err(self.wrong_kind("booleans")),
        }
    }

    pub fn as_strings(&self) -> Result<&[Arc<[u8]>]> {
        match &self.data {
            Data::Str(values) => Ok(values),
            _ => Err(self.wrong_kind("strings")),
        }
    }

    /// The error for a wrong kind of data. Shapes and dtypes were inferred when the graph was
    /// built, so this is a bug of ours.
    pub fn wrong_kind(&self, expected: &str) -> Error {
        Error::internal(format!("a kernel got {}{:?}, expected {expected}", self.dtype, self.dims()))
    }

    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    pub fn len(&self) -> usize {
        count(&self.dims)
    }

    /// A value of `dims` whose element at an index is this value's element at position
    /// `from(index)`.
    pub fn pick(&self, dims: &[usize], from: impl Fn(&[usize]) -> usize) -> Wide {
        fn each<T: Clone>(values: &[T], dims: &[usize], from: impl Fn(&[usize]) -> usize) -> Vec<T> {
            indices(dims).map(|index| values[from(&index)].clone()).collect()
        }
        let data = match &self.data {
            Data::Float(v) => Data::Float(each(v, dims, from)),
            Data::Int(v) => Data::Int(each(v, dims, from)),
            Data::Bool(v) => Data::Bool(each(v, dims, from)),
            Data::Str(v) => Data::Str(each(v, dims, from)),
        };
        Wide { dtype: self.dtype, dims: dims.into(), data }
    }

    /// The same elements with other sizes.
    pub fn reshape(&self, dims: &[usize]) -> Result<Wide> {
        if count(dims) != self.len() {
            return Err(Error::shape(format!(
                "cannot reshape {:?} to {dims:?}: the first has {} elements, the second {}",
                self.dims(),
                self.len(),
                count(dims)
            )));
        }
        Ok(Wide { dims: dims.into(), ..self.clone() })
    }

    /// Repeats axes of size 1, and missing ones, to get these sizes.
    pub fn broadcast_to(&self, dims: &[usize]) -> Result<Wide> {
        if self.dims() == dims {
            return Ok(self.clone());
        }
        check_broadcast(self.dims(), dims)?;
        Ok(self.pick(dims, |index| broadcast_position(self.dims(), index)))
    }
}

/// Checks that an array of `dims` can be broadcast to `to`.
pub(super) fn check_broadcast(dims: &[usize], to: &[usize]) -> Result<()> {
    let fits = |(&from, &to): (&usize, &usize)| from == to || from == 1;
    if dims.len() <= to.len() && dims.iter().rev().zip(to.iter().rev()).all(fits) {
        return Ok(());
    }
    Err(Error::shape(format!("{dims:?} cannot be broadcast to {to:?}")))
}

/// Checks that sizes are equal which could not be compared before the run.
pub(super) fn check_dims(what: &str, actual: &[usize], expected: &[usize]) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::shape(format!("the {what} is {actual:?}, expected {expected:?}")))
}

/// The number of elements.
pub(super) fn count(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().product() }
}

/// Every index of an array of these sizes, in row-major order.
pub(super) fn indices(dims: &[usize]) -> impl Iterator<Item = Dims> {
    (0..count(dims)).map(|at| index_of(dims, at))
}

/// The index of a position in row-major order.
pub(super) fn index_of(dims: &[usize], mut position: usize) -> Dims {
    let mut index: Dims = dims.into();
    for axis in (0..dims.len()).rev() {
        index[axis] = position % dims[axis];
        position /= dims[axis];
    }
    index
}

/// The position of an index in row-major order.
pub(super) fn position(dims: &[usize], index: &[usize]) -> usize {
    dims.iter().zip(index).fold(0, |at, (&size, &i)| at * size + i)
}

/// The position of the source element of a broadcast result.
pub(super) fn broadcast_position(dims: &[usize], index: &[usize]) -> usize {
    let index = &index[index.len() - dims.len()..];
    dims.iter().zip(index).fold(0, |at, (&size, &i)| at * size + if size == 1 { 0 } else { i })
}
