//! Small integer tensors whose elements are known when a graph is read, or known to be sizes.
//!
//! TensorFlow computes shapes with ordinary ops (`Shape`, `StridedSlice`, `Mul`, `Pack`). Our ops
//! hold shapes as data. The reader therefore tracks the elements of such tensors one by one, until
//! they reach a `Reshape` or a `Tile`.

use std::panic::Location;

use estimand_graph::op::DimSize;
use estimand_graph::{Graph, SymbolDef, Tensor};
use estimand_tensor::{Array, DType, Dim, Error, Result};

/// The largest number of elements that are tracked, and the largest size of an axis. A tensor with
/// more is not a shape. An axis next to one of size 0 could have any size without an element, and a
/// slice lists the places along each axis.
pub(super) const MOST: usize = 64;

/// Whether a tensor of these sizes is small enough to be tracked.
pub(super) fn are_few(dims: &[usize]) -> bool {
    dims.iter().all(|&size| size <= MOST) && n_elements(dims).is_some_and(|n| n <= MOST)
}

/// The number of elements of these sizes; `None` if it overflows.
fn n_elements(dims: &[usize]) -> Option<usize> {
    dims.iter().try_fold(1usize, |n, &size| n.checked_mul(size))
}

/// One integer.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Known(i64),
    /// A size that is known only at run time.
    Size(Dim),
    /// An element of a tensor, by its row-major position.
    Element(Tensor, usize),
}

/// A tensor of integers.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub elements: Vec<Number>,
}

impl Number {
    /// A size. A known size becomes a known number.
    pub(super) fn of(dim: Dim) -> Number {
        match dim {
            Dim::Known(n) => Number::Known(n as i64),
            Dim::Sym(_) => Number::Size(dim),
        }
    }

    pub(super) fn known(&self) -> Option<i64> {
        match self {
            Number::Known(n) => Some(*n),
            _ => None,
        }
    }

    /// The size, if no run-time value has to be read for it.
    pub(super) fn dim(&self) -> Option<Dim> {
        match self {
            Number::Known(n) => usize::try_from(*n).ok().map(Dim::Known),
            Number::Size(dim) => Some(*dim),
            Number::Element(..) => None,
        }
    }

    /// The size; the host computes it if necessary. Negative numbers are errors.
    pub(super) fn size(&self, graph: &Graph) -> Result<Dim> {
        match self {
            Number::Element(..) => {
                let scalar = self.tensor(graph, DType::I64)?;
                Ok(Dim::Sym(graph.symbols_mut(|s| s.intern(SymbolDef::Number(scalar.value())))))
            }
            Number::Known(n) => self.dim().ok_or_else(|| Error::shape(format!("a size is {n}; expected 0 or more"))),
            Number::Size(dim) => Ok(*dim),
        }
    }

    /// The number as a scalar tensor.
    pub(super) fn tensor(&self, graph: &Graph, dtype: DType) -> Result<Tensor> {
        Ok(match self {
            Number::Known(n) => graph.constant(scalar(dtype, *n)?),
            Number::Size(dim) => graph.node(DimSize { dim: *dim, dtype }, &[], Location::caller()),
            // Integers keep their dtype as long as possible, so that one element is one node.
            Number::Element(from, place) if from.rank() == 0 && *place == 0 => from.cast(dtype),
            Number::Element(from, place) => from.reshape([-1]).slice(&[*place], &[1]).reshape([]).cast(dtype),
        })
    }
}

/// An integer of a dtype.
fn scalar(dtype: DType, value: i64) -> Result<Array> {
    match dtype {
        DType::I32 => i32::try_from(value).map(Array::scalar).map_err(|_| {
            Error::dtype(Some(DType::I32), DType::I64, format!("the number {value} does not fit into i32"))
        }),
        _ => Ok(Array::scalar(value)),
    }
}

impl Numbers {
    pub(super) fn scalar(dtype: DType, number: Number) -> Numbers {
        Numbers { dtype, dims: Vec::new(), elements: vec![number] }
    }

    pub(super) fn list(dtype: DType, elements: Vec<Number>) -> Numbers {
        Numbers { dtype, dims: vec![elements.len()], elements }
    }

    /// The numbers of a small integer array.
    pub(super) fn of_array(array: &Array) -> Option<Numbers> {
        if !are_few(array.dims()) {
            return None;
        }
        let elements = match array.dtype() {
            DType::I32 => array.as_slice::<i32>().ok()?.iter().map(|&v| Number::Known(v.into())).collect(),
            DType::I64 => array.as_slice::<i64>().ok()?.iter().map(|&v| Number::Known(v)).collect(),
            _ => return None,
        };
        Some(Numbers { dtype: array.dtype(), dims: array.dims().to_vec(), elements })
    }

    /// The elements of a small integer tensor of known sizes.
    pub(super) fn of_tensor(tensor: &Tensor) -> Option<Numbers> {
        let dims = tensor.shape().known()?.to_vec();
        let n = n_elements(&dims).filter(|_| are_few(&dims))?;
        let elements = (0..n).map(|i| Number::Element(tensor.clone(), i)).collect();
        matches!(tensor.dtype(), DType::I32 | DType::I64).then(|| Numbers { dtype: tensor.dtype(), dims, elements })
    }

    /// The elements, if all are known.
    pub(super) fn known(&self) -> Option<Vec<i64>> {
        self.elements.iter().map(Number::known).collect()
    }

    /// The array, if all elements are known.
    pub(super) fn array(&self) -> Result<Option<Array>> {
        let Some(known) = self.known() else { return Ok(None) };
        Ok(Some(match self.dtype {
            DType::I32 => {
                let narrow: Vec<i32> =
                    known.iter().map(|&n| scalar(DType::I32, n)?.item::<i32>()).collect::<Result<_>>()?;
                Array::from_vec(&self.dims, narrow)?
            }
            _ => Array::from_vec(&self.dims, known)?,
        }))
    }

    /// As a tensor.
    pub(super) fn tensor(&self, graph: &Graph) -> Result<Tensor> {
        if let Some(array) = self.array()? {
            return Ok(graph.constant(array));
        }
        let elements = self.elements.iter().map(|e| e.tensor(graph, self.dtype)).collect::<Result<Vec<_>>>()?;
        let dims: Vec<i64> = self.dims.iter().map(|&d| d as i64).collect();
        Ok(Tensor::stack(&elements.iter().collect::<Vec<_>>(), 0).reshape(dims))
    }

    /// The same elements with other sizes, one of which may be -1; `None` if they do not fit.
    pub(super) fn reshape(&self, dims: &[i64]) -> Option<Numbers> {
        let rest: i64 = dims.iter().filter(|&&d| d != -1).try_fold(1i64, |n, &d| n.checked_mul(d))?;
        let n = self.elements.len() as i64;
        let size = |&d: &i64| match d {
            -1 if rest > 0 && n % rest == 0 => usize::try_from(n / rest).ok(),
            d => usize::try_from(d).ok(),
        };
        let dims: Vec<usize> = dims.iter().map(size).collect::<Option<_>>()?;
        (are_few(&dims) && n_elements(&dims) == Some(self.elements.len())).then(|| Numbers { dims, ..self.clone() })
    }

    /// Combines two tensors element-wise. `None` if a result is not known to be a size, or if the
    /// sizes differ and neither tensor is a scalar.
    pub(super) fn zip(
        &self,
        other: &Numbers,
        f: impl Fn(&Number, &Number) -> Result<Option<Number>>,
    ) -> Result<Option<Numbers>> {
        let (n, m) = (self.elements.len(), other.elements.len());
        let dims = match (&self.dims[..], &other.dims[..]) {
            (a, b) if a == b => a,
            (a, []) => a,
            ([], b) => b,
            _ => return Ok(None),
        };
        let len = if self.dims == dims { n } else { m };
        let at = |numbers: &Numbers, i: usize| numbers.elements[if numbers.dims.is_empty() { 0 } else { i }].clone();
        let mut elements = Vec::with_capacity(len);
        for i in 0..len {
            match f(&at(self, i), &at(other, i))? {
                Some(number) => elements.push(number),
                None => return Ok(None),
            }
        }
        Ok(Some(Numbers { dtype: self.dtype, dims: dims.to_vec(), elements }))
    }
}
