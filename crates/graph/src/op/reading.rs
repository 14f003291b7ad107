//! What an op is read with: one node of a TensorFlow graph, its inputs in the form that a rule
//! wants them, and its attributes.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape};

use super::Op;
use crate::graph::Graph;
use crate::tensor::Tensor;

/// How a node of TensorFlow's becomes nodes of ours: returns its outputs.
pub type ReadRule = fn(&mut dyn Reading) -> Result<Vec<Tensor>>;

/// A node that is being read.
pub trait Reading {
    /// TensorFlow's name of the op.
    fn op(&self) -> &str;

    /// The name of the node.
    fn name(&self) -> &str;

    /// Our graph.
    fn graph(&self) -> &Graph;

    /// How many inputs the node has, control inputs left out.
    fn n_inputs(&self) -> usize;

    /// An input as a tensor.
    fn tensor(&mut self, i: usize) -> Result<Tensor>;

    /// An input that must be known when the graph is read.
    fn constant(&mut self, i: usize) -> Result<Array>;

    /// An input, a short list of integers, as sizes: -1 is [`Graph::ANY`] where it is allowed,
    /// other negative ones are errors.
    fn sizes(&mut self, i: usize, allow_any: bool) -> Result<Vec<Dim>>;

    /// Adds a node to our graph and returns all its outputs.
    fn add_op(&self, op: Op, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// An attribute that is an integer, or what it is where it is missing.
    fn int_or(&self, key: &str, default: i64) -> Result<i64>;

    /// An attribute that is true or false, or what it is where it is missing.
    fn flag(&self, key: &str, default: bool) -> Result<bool>;

    /// An attribute that is a text, or what it is where it is missing.
    fn text_or(&self, key: &str, default: &str) -> Result<String>;

    /// An attribute that is a type, or what it is where it is missing; an error without a default.
    fn dtype_or(&self, key: &str, default: Option<DType>) -> Result<DType>;

    /// An attribute that is a list of integers, empty if it is missing.
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
            other => Err(Error::dtype(Some(DType::I64), other, format!("input {i} is {other}, expected integers"))),
        }
    }

    /// An input that must be one integer known when the graph is read.
    fn integer(&mut self, i: usize) -> Result<i64> {
        match self.integers(i)?[..] {
            [n] => Ok(n),
            _ => Err(several_numbers(i)),
        }
    }

    /// An attribute that is a type, and must be there.
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

/// The error of a node with options that our op lacks.
pub fn refuse(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("{what} cannot be read"))
}

fn several_numbers(i: usize) -> Error {
    Error::shape(format!("input {i} holds several numbers, expected one"))
}

/// The axis that a number means for a tensor of this many axes.
pub fn axis(axis: i64, rank: usize) -> Result<usize> {
    let resolved = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(resolved)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| Error::shape(format!("axis {axis} of a tensor with {rank} axes")))
}

/// A tensor with another size for its first axis, where both are known only to the run.
pub fn with_rows(tensor: &Tensor, rows: Dim) -> Tensor {
    let mut shape = tensor.shape().clone();
    match shape.0.first_mut() {
        Some(first) if *first != rows => {
            *first = rows;
            tensor.reshape_as(shape)
        }
        _ => tensor.clone(),
    }
}

/// The size of the first axis.
pub fn n_rows(tensor: &Tensor) -> Result<Dim> {
    tensor.shape().dims().first().copied().ok_or_else(|| Error::shape("a single number, expected a list"))
}
