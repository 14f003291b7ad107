//! One node in the hands of its rule: its inputs in the form the rule wants them, and its attributes.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape};
use estimand_wire::graph_def::Attr;
use estimand_wire::{DataType, ListValue, NodeDef, TensorShapeProto};

use super::item::Item;
use super::nodes::Reference;
use super::numbers::{Number, Numbers};
use super::reader::Reader;
use crate::graph::Graph;
use crate::host::{HostOp, HostRules};
use crate::op::Op;
use crate::tensor::Tensor;
use crate::variables::VarId;

/// A node that is being read.
pub(super) struct Call<'r, 'a> {
    pub reader: &'r mut Reader<'a>,
    pub def: &'a NodeDef,
    pub node: usize,
    pub inputs: Vec<Reference>,
}

/// What a rule returns: the node's outputs.
pub(super) type Outputs = Result<Vec<Item>>;

/// The outputs of a node with one result.
pub(super) fn one(item: impl Into<Item>) -> Outputs {
    Ok(vec![item.into()])
}

impl<'a> Call<'_, 'a> {
    pub(super) fn graph(&self) -> &Graph {
        &self.reader.graph
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn input(&self, i: usize) -> Result<Reference> {
        self.inputs
            .get(i)
            .copied()
            .ok_or_else(|| Error::config(format!("{} inputs, expected more than {i}", self.inputs.len())))
    }

    /// An input as it is.
    pub(super) fn item(&self, i: usize) -> Result<Item> {
        self.reader.item(self.input(i)?)
    }

    /// An input as a tensor.
    pub(super) fn tensor(&mut self, i: usize) -> Result<Tensor> {
        let input = self.input(i)?;
        self.reader.tensor(input)
    }

    /// All inputs from one on, as tensors.
    pub(super) fn tensors(&mut self, range: std::ops::Range<usize>) -> Result<Vec<Tensor>> {
        range.map(|i| self.tensor(i)).collect()
    }

    /// The elements of an input, if it is a small integer tensor whose elements have been followed.
    pub(super) fn numbers(&self, i: usize) -> Result<Option<Numbers>> {
        Ok(match self.item(i)? {
            Item::Value(known) => known.numbers,
            _ => None,
        })
    }

    /// The elements of an input that must be a small integer tensor: those that are not known become numbers that the run computes.
    pub(super) fn elements(&mut self, i: usize) -> Result<Numbers> {
        if let Some(numbers) = self.numbers(i)? {
            return Ok(numbers);
        }
        let tensor = self.tensor(i)?;
        Numbers::of_tensor(&tensor).ok_or_else(|| {
            Error::unsupported(format!(
                "input {i} is {}, expected a short list of integers of known length",
                tensor.spec()
            ))
        })
    }

    /// The elements of an input as sizes.
    pub(super) fn sizes(&mut self, i: usize) -> Result<Vec<Dim>> {
        let numbers = self.elements(i)?;
        numbers.elements.iter().map(|n| self.reader.size(n)).collect()
    }

    /// An input as a shape.
    pub(super) fn shape(&mut self, i: usize) -> Result<Shape> {
        Ok(self.sizes(i)?.into_iter().collect())
    }

    /// An input as one size.
    pub(super) fn size(&mut self, i: usize) -> Result<Dim> {
        match self.sizes(i)?[..] {
            [size] => Ok(size),
            _ => Err(Error::shape(format!("input {i} holds several numbers, expected one"))),
        }
    }

    /// An input that must be integers known when the graph is read.
    pub(super) fn integers(&mut self, i: usize) -> Result<Vec<i64>> {
        let array = self.constant(i)?;
        match array.dtype() {
            DType::I32 => Ok(array.as_slice::<i32>()?.iter().map(|&v| v.into()).collect()),
            DType::I64 => Ok(array.as_slice::<i64>()?.to_vec()),
            other => Err(Error::dtype(Some(DType::I64), other, format!("input {i} is {other}, expected integers"))),
        }
    }

    /// An input that must be one integer known when the graph is read.
    pub(super) fn integer(&mut self, i: usize) -> Result<i64> {
        match self.integers(i)?[..] {
            [n] => Ok(n),
            _ => Err(Error::shape(format!("input {i} holds several numbers, expected one"))),
        }
    }

    /// An input that must be known when the graph is read.
    pub(super) fn constant(&mut self, i: usize) -> Result<Array> {
        let input = self.input(i)?;
        self.reader.constant(input).map_err(|e| e.context(format!("input {i}")))
    }

    /// An input that must be a variable.
    pub(super) fn variable(&self, i: usize) -> Result<VarId> {
        match self.item(i)? {
            Item::Variable(id) => Ok(id),
            other => Err(Error::config(format!("input {i} is {}, expected a variable", other.kind()))),
        }
    }

    /// Adds a node to our graph and returns all its outputs.
    pub(super) fn add(&self, op: Op, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let graph = self.graph();
        let first = graph.node(op, inputs, std::panic::Location::caller());
        graph.check()?;
        let n = graph.body().node(first.value().node).outputs.len();
        Ok((0..n).map(|i| graph.output(&first, i as u16)).collect())
    }

    /// Adds a host op to our graph and returns all its outputs.
    pub(super) fn host<T: HostRules + Eq + std::hash::Hash>(&self, op: T, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.add(Op::Host(HostOp::new(op)), inputs)
    }

    /// The axis that a number means for a tensor of this many axes.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let resolved = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        usize::try_from(resolved)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| Error::shape(format!("axis {axis} of a tensor with {rank} axes")))
    }
}

/// Attributes.
impl Call<'_, '_> {
    fn attr<T>(&self, key: &str, what: &str, get: impl Fn(&Attr) -> Option<T>) -> Result<Option<T>> {
        match self.def.attr.get(key).and_then(|attr| attr.value.as_ref()) {
            None => Ok(None),
            Some(value) => match get(value) {
                Some(value) => Ok(Some(value)),
                None => Err(Error::config(format!("attribute `{key}` is not {what}"))),
            },
        }
    }

    fn missing(&self, key: &str) -> Error {
        Error::config(format!("there is no attribute `{key}`"))
    }

    pub(super) fn int_or(&self, key: &str, default: i64) -> Result<i64> {
        let int = |attr: &Attr| if let Attr::I(n) = attr { Some(*n) } else { None };
        Ok(self.attr(key, "an integer", int)?.unwrap_or(default))
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool> {
        let flag = |attr: &Attr| if let Attr::B(b) = attr { Some(*b) } else { None };
        Ok(self.attr(key, "a boolean", flag)?.unwrap_or(default))
    }

    pub(super) fn float_or(&self, key: &str, default: f32) -> Result<f32> {
        let float = |attr: &Attr| if let Attr::F(f) = attr { Some(*f) } else { None };
        Ok(self.attr(key, "a float", float)?.unwrap_or(default))
    }

    pub(super) fn bytes_or(&self, key: &str, default: &[u8]) -> Result<Vec<u8>> {
        let bytes = |attr: &Attr| if let Attr::S(s) = attr { Some(s.clone()) } else { None };
        Ok(self.attr(key, "a string", bytes)?.unwrap_or_else(|| default.to_vec()))
    }

    /// A short text, as those that choose between variants of an op.
    pub(super) fn text_or(&self, key: &str, default: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes_or(key, default.as_bytes())?).into_owned())
    }

    pub(super) fn dtype_or(&self, key: &str, default: Option<DType>) -> Result<DType> {
        let code = self.attr(key, "an element type", |attr| if let Attr::Type(t) = attr { Some(*t) } else { None })?;
        match (code, default) {
            (Some(code), _) => dtype(code),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.missing(key)),
        }
    }

    pub(super) fn dtype(&self, key: &str) -> Result<DType> {
        self.dtype_or(key, None)
    }

    /// A list, empty if it is missing.
    pub(super) fn list(&self, key: &str) -> Result<ListValue> {
        let list = |attr: &Attr| if let Attr::List(list) = attr { Some(list.clone()) } else { None };
        Ok(self.attr(key, "a list", list)?.unwrap_or_default())
    }

    pub(super) fn dtypes(&self, key: &str) -> Result<Vec<DType>> {
        self.list(key)?.r#type.into_iter().map(dtype).collect()
    }

    /// The sizes of a shape, -1 where unknown; `None` if the shape is missing or its rank unknown.
    pub(super) fn sizes_attr(&self, key: &str) -> Result<Option<Vec<i64>>> {
        let shape = |attr: &Attr| if let Attr::Shape(shape) = attr { Some(shape.clone()) } else { None };
        let shape: Option<TensorShapeProto> = self.attr(key, "a shape", shape)?;
        Ok(shape.and_then(|shape| shape.sizes().map(|sizes| sizes.collect())))
    }

    pub(super) fn tensor_attr(&mut self, key: &str) -> Result<Array> {
        let def = self.def;
        let Some(value) = def.attr.get(key).and_then(|attr| attr.value.as_ref()) else { return Err(self.missing(key)) };
        let Attr::Tensor(tensor) = value else {
            return Err(Error::config(format!("attribute `{key}` is not a tensor")));
        };
        self.reader.limits.add_repeated(&mut self.reader.repeated_bytes, tensor)?;
        tensor.to_array()
    }

    /// A node that has been given options that our op lacks.
    pub(super) fn refuse(&self, what: impl std::fmt::Display) -> Error {
        Error::unsupported(format!("{what} cannot be read"))
    }
}

/// The dtype of TensorFlow's code. Variables of old graphs have codes 100 above.
pub(super) fn dtype(code: i32) -> Result<DType> {
    let plain = if (101..200).contains(&code) { code - 100 } else { code };
    DataType::try_from(plain).ok().and_then(DataType::dtype).ok_or_else(|| {
        Error::unsupported(format!("tensors of {} cannot be read", DataType::describe(code)))
            .help("the element types are float32, float64, int32, int64, uint8, bool and string")
    })
}

/// The sizes of a tensor as numbers.
pub(super) fn shape_of(tensor: &Tensor, dtype: DType) -> Numbers {
    Numbers::list(dtype, tensor.shape().dims().iter().map(|&d| Number::of(d)).collect())
}
