//! Writes one node: its inputs, and the ONNX nodes that compute it.

use estimand_graph::Node;
use estimand_graph::op::{Constant, Op};
use estimand_tensor::{Array, DType, Dim, Element, Result, TensorSpec};

use crate::message::AttributeProto;
use crate::tensor::data_type;
use crate::writer::{ML, Writer};

/// The writer of a node's ONNX nodes. Names of values are returned by those that add them.
pub(crate) struct NodeWriter<'w, 'a, 's, 'r> {
    pub(crate) writer: &'w mut Writer<'a, 's, 'r>,
    pub(crate) node: &'a Node,
}

impl<'w, 'a, 's, 'r> NodeWriter<'w, 'a, 's, 'r> {
    pub(crate) fn new(writer: &'w mut Writer<'a, 's, 'r>, node: &'a Node) -> NodeWriter<'w, 'a, 's, 'r> {
        NodeWriter { writer, node }
    }

    /// The name of an input.
    pub(crate) fn x(&self, i: usize) -> Result<String> {
        self.writer.name(self.node.inputs[i])
    }

    /// Dtype and shape of an input.
    pub(crate) fn spec(&self, i: usize) -> &'a TensorSpec {
        self.writer.body.spec(self.node.inputs[i])
    }

    pub(crate) fn dtype(&self, i: usize) -> DType {
        self.spec(i).dtype
    }

    pub(crate) fn dims(&self, i: usize) -> &'a [Dim] {
        self.spec(i).shape.dims()
    }

    pub(crate) fn rank(&self, i: usize) -> usize {
        self.spec(i).shape.rank()
    }

    /// The op that makes an input.
    pub(crate) fn op_of(&self, i: usize) -> &'a Op {
        &self.writer.source(self.node.inputs[i]).op
    }

    /// The value of an input that is a constant.
    pub(crate) fn constant_input(&self, i: usize) -> Option<&'a Array> {
        match self.op_of(i) {
            Op::Constant(Constant(array)) => Some(array),
            _ => None,
        }
    }

    /// Adds a node with one output.
    pub(crate) fn add(&mut self, op: &str, inputs: &[&str]) -> String {
        self.add_with(op, inputs, Vec::new())
    }

    /// Adds a node with attributes and one output.
    pub(crate) fn add_with(&mut self, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        self.add_all(op, inputs, attributes, 1).remove(0)
    }

    /// Adds a node with several outputs.
    pub(crate) fn add_all(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        n_outputs: usize,
    ) -> Vec<String> {
        self.writer.add(&self.node.name, ("", op), inputs, attributes, n_outputs)
    }

    /// Adds a node of `ai.onnx.ml` with one output.
    pub(crate) fn add_ml(&mut self, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        self.writer.add(&self.node.name, (ML, op), inputs, attributes, 1).remove(0)
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, array: &Array) -> Result<String> {
        self.writer.shared.constant(&self.node.name, array)
    }

    /// Adds a list of integers.
    pub(crate) fn ints(&mut self, values: impl IntoIterator<Item = i64>) -> Result<String> {
        self.constant(&Array::from(values.into_iter().collect::<Vec<i64>>()))
    }

    /// Adds a single value.
    pub(crate) fn scalar<T: Element>(&mut self, value: T) -> Result<String> {
        self.constant(&Array::scalar(value))
    }

    /// Adds a single number of a dtype.
    pub(crate) fn number(&mut self, dtype: DType, value: f64) -> Result<String> {
        let array = match dtype {
            DType::F32 => Array::scalar(value as f32),
            DType::F64 => Array::scalar(value),
            DType::I32 => Array::scalar(value as i32),
            DType::I64 => Array::scalar(value as i64),
            DType::U8 => Array::scalar(value as u8),
            DType::Bool => Array::scalar(value != 0.0),
            DType::Str => Array::from_strings([], [""])?,
        };
        self.constant(&array)
    }

    /// Converts a value to another dtype, unless it has this one.
    pub(crate) fn cast(&mut self, x: &str, from: DType, to: DType) -> String {
        match from == to {
            true => x.to_string(),
            false => self.add_with("Cast", &[x], vec![AttributeProto::int("to", data_type(to).into())]),
        }
    }

    /// The value as i64.
    pub(crate) fn wide(&mut self, i: usize) -> Result<String> {
        let x = self.x(i)?;
        Ok(self.cast(&x, self.dtype(i), DType::I64))
    }

    /// Adds axes of size 1 at these positions of the result.
    pub(crate) fn unsqueeze(&mut self, x: &str, axes: &[i64]) -> Result<String> {
        let axes = self.ints(axes.iter().copied())?;
        Ok(self.add("Unsqueeze", &[x, &axes]))
    }

    /// Reshapes a value to a shape that is known except for one size, which is -1.
    pub(crate) fn reshape(&mut self, x: &str, dims: &[i64]) -> Result<String> {
        let dims = self.ints(dims.iter().copied())?;
        Ok(self.add("Reshape", &[x, &dims]))
    }

    /// A list of axes for `Transpose`.
    pub(crate) fn transpose(&mut self, x: &str, perm: &[usize]) -> String {
        self.add_with("Transpose", &[x], vec![AttributeProto::ints("perm", perm.iter().map(|&a| a as i64))])
    }

    /// The sizes of all axes of a value, as it is at run time.
    pub(crate) fn shape_of(&mut self, x: &str) -> String {
        self.add("Shape", &[x])
    }

    /// The size of the first axis of a value, an i64 list of one element.
    pub(crate) fn length_of(&mut self, x: &str) -> String {
        let ends = vec![AttributeProto::int("start", 0), AttributeProto::int("end", 1)];
        self.add_with("Shape", &[x], ends)
    }

    /// The elements of one axis from `begin` to `end`.
    pub(crate) fn slice(&mut self, x: &str, axis: i64, begin: i64, end: i64) -> Result<String> {
        let (begin, end, axis) = (self.ints([begin])?, self.ints([end])?, self.ints([axis])?);
        Ok(self.add("Slice", &[x, &begin, &end, &axis]))
    }

    /// A list filled with one value; the shape is a list of i64.
    pub(crate) fn filled(&mut self, value: &str, shape: &str) -> String {
        self.add("Expand", &[value, shape])
    }

    /// Sums over axes.
    pub(crate) fn sum(&mut self, x: &str, axes: &[i64], keep_dims: bool) -> Result<String> {
        let axes = self.ints(axes.iter().copied())?;
        let keep = AttributeProto::int("keepdims", keep_dims.into());
        Ok(self.add_with("ReduceSum", &[x, &axes], vec![keep]))
    }

    /// A single size (i64, no axes).
    pub(crate) fn size_number(&mut self, dim: Dim) -> Result<String> {
        let size = self.size(dim)?;
        self.reshape(&size, &[])
    }

    /// A size, an i64 list of one element.
    pub(crate) fn size(&mut self, dim: Dim) -> Result<String> {
        self.writer.size(dim, &self.node.name)
    }

    /// The sizes of a shape, an i64 list.
    pub(crate) fn shape(&mut self, dims: &[Dim]) -> Result<String> {
        self.writer.shape(dims, &self.node.name)
    }
}
