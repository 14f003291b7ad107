//! The interface that read rules use: one node of a TensorFlow graph, its inputs in the form that a
//! rule needs, and its attributes.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape};

use super::Op;
use crate::graph::Graph;
use crate::tensor::Tensor;

/// A rule that converts a TensorFlow node to nodes of our graph and returns its outputs.
pub type ReadRule = fn(&mut dyn Reading) -> Result<Vec<Tensor>>;

/// A node that is being read.
pub trait Reading {
    /// TensorFlow's name of the op.
    fn op(&self) -> &str;

    /// The name of the node.
    fn name(&self) -> &str;

    /// The graph that is being built.
    fn graph(&self) -> &Graph;

    /// The number of inputs, without control inputs.
    fn n_inputs(&self) -> usize;

    /// An input as a tensor.
    fn tensor(&mut self, i: usize) -> Result<Tensor>;

    /// An input that must be known when the graph is read.
    fn constant(&mut self, i: usize) -> Result<Array>;

    /// An input, a short list of integers, as sizes. If `allow_any`, -1 becomes [`Graph::ANY`];
    /// other negative numbers are errors.
    fn sizes(&mut self, i: usize, allow_any: bool) -> Result<Vec<Dim>>;

    /// Adds a node to our graph and returns all its outputs.
    fn add_op(&self, op: Op, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// An integer attribute, or the default if it is missing.
    fn int_or(&self, key: &str, default: i64) -> Result<i64>;

    /// A boolean attribute, or the default if it is missing.
    fn flag(&self, key: &str, default: bool) -> Result<bool>;

    /// A string attribute, or the default if it is missing.
    fn text_or(&self, key: &str, default: &str) -> Result<String>;

    /// A dtype attribute, or the default if it is missing. Without a default, a missing attribute
    /// is an error.
    fn dtype_or(&self, key: &str, default: Option<DType>) -> Result<DType>;

    /// A list of integers; empty if the attribute is missing.
    fn ints(&self, key: &str) -> Result<Vec<i64>>;

    /// All inputs of a range, as tensors.
    fn tensors(&mut self, range: std::ops::Range<usize>) -> Result<Vec<Tensor>> {
        range.map(|i| self.tensor(i)).collect()
    }

    /// An input as a shape.
    fn shape(&mut self, i: usize) -> Result<Shape> {
        Ok(self.sizes(i, false)?.into_iter().collect())
    }

    /// An input as one size.
    fn size(&mut self, i: usize) -> Result<Dim> {
        match self.sizes(i, false)?[..] {
            [size] => Ok(size),
            _ => Err(several_numbers(i)),
        }
    }

    /// An input that must be integers known when the graph is read.
    fn integers(&mut self, i: usize) -> Result<Vec<i64>> {
        let array = self.constant(i)?;
        match array.dtype() {
            DType::I32 => Ok(array.as_slice::<i32>()?.iter().map(|&v| v.into()).collect()),
            DType::I64 => Ok(array.as_slice::<i64>()?.to_vec()),
            other => Err(Error::dtype(Some(DType::I64), other, format!("input {i} is {other}; expected integers"))),
        }
    }

    /// An input that must be one integer known when the graph is read.
    fn integer(&mut self, i: usize) -> Result<i64> {
        match self.integers(i)?[..] {
            [n] => Ok(n),
            _ => Err(several_numbers(i)),
        }
    }

    /// A dtype attribute that must exist.
    fn dtype(&self, key: &str) -> Result<DType> {
        self.dtype_or(key, None)
    }
}

impl dyn Reading + '_ {
    /// Adds a node to our graph and returns all its outputs.
    pub(crate) fn add(&self, op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.add_op(op.into(), inputs)
    }
}

/// The error for a node with options that our op lacks.
pub fn refuse(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("{what} cannot be read"))
}

fn several_numbers(i: usize) -> Error {
    Error::shape(format!("input {i} holds several numbers, expected one"))
}

/// Resolves an axis, which may be negative, for a tensor of this rank.
pub fn axis(axis: i64, rank: usize) -> Result<usize> {
    let resolved = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(resolved)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| Error::shape(format!("axis {axis} is out of range for a tensor with {rank} axes")))
}

/// Gives the first axis of a tensor another size, where both sizes are known only at run time.
pub fn with_rows(tensor: &Tensor, rows: Dim) -> Tensor {
    with_size(tensor, 0, rows)
}

/// Gives an axis of a tensor another size. The run checks that both are equal.
pub fn with_size(tensor: &Tensor, axis: usize, size: Dim) -> Tensor {
    let mut shape = tensor.shape().clone();
    match shape.0.get_mut(axis) {
        Some(known) if *known != size => {
            *known = size;
            tensor.reshape_as(shape)
        }
        _ => tensor.clone(),
    }
}

/// The size of the first axis.
pub fn n_rows(tensor: &Tensor) -> Result<Dim> {
    tensor.shape().dims().first().copied().ok_or_else(|| Error::shape("the input is a single number; expected a list"))
}
