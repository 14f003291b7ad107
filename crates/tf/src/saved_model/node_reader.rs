//! The view of one node that its read rule gets: its inputs in the form the rule needs, and its
//! attributes.

use estimand_graph::host::{HostOp, HostRules};
use estimand_graph::op::reading::Reading;
use estimand_graph::{Graph, Op, Tensor};
use estimand_tensor::{Array, DType, Dim, Error, Result};
use estimand_wire::graph_def::Attr;
use estimand_wire::{DataType, ListValue, NodeDef, TensorShapeProto};

use super::node_output::NodeOutput;
use super::nodes::Reference;
use super::numbers::{Number, Numbers};
use super::reader::Reader;

/// A node that is being read.
pub(super) struct NodeReader<'r, 'a> {
    pub reader: &'r mut Reader<'a>,
    pub def: &'a NodeDef,
    pub node: usize,
    pub inputs: Vec<Reference>,
}

/// The result of a rule: the node's outputs.
pub(super) type Outputs = Result<Vec<NodeOutput>>;

/// The outputs of a node with one result.
pub(super) fn one(item: impl Into<NodeOutput>) -> Outputs {
    Ok(vec![item.into()])
}

impl<'a> NodeReader<'_, 'a> {
    fn input(&self, i: usize) -> Result<Reference> {
        self.inputs
            .get(i)
            .copied()
            .ok_or_else(|| Error::config(format!("the node has {} inputs; expected more than {i}", self.inputs.len())))
    }

    /// Returns an input in any form.
    pub(super) fn item(&self, i: usize) -> Result<NodeOutput> {
        self.reader.item(self.input(i)?)
    }

    /// The elements of an input, if it is a small integer tensor whose elements are tracked.
    pub(super) fn numbers(&self, i: usize) -> Result<Option<Numbers>> {
        Ok(match self.item(i)? {
            NodeOutput::Value(known) => known.numbers,
            _ => None,
        })
    }

    /// The elements of an input that must be a small integer tensor. The run computes elements that
    /// are not known.
    pub(super) fn elements(&mut self, i: usize) -> Result<Numbers> {
        if let Some(numbers) = self.numbers(i)? {
            return Ok(numbers);
        }
        let tensor = self.tensor(i)?;
        Numbers::of_tensor(&tensor).ok_or_else(|| {
            Error::unsupported(format!(
                "input {i} is {}; expected a short list of integers of known length",
                tensor.spec()
            ))
        })
    }

    /// The value of an input that must be a variable. A step of a loop gets the values of variables
    /// in their place.
    pub(super) fn variable_value(&mut self, i: usize) -> Result<Tensor> {
        match self.item(i)? {
            NodeOutput::Variable(id) => Ok(self.reader.graph.read(id, std::panic::Location::caller())),
            NodeOutput::Value(_) if self.reader.step.is_some() => self.tensor(i),
            other => Err(Error::config(format!("input {i} is {}; expected a variable", other.kind()))),
        }
    }

    /// Adds a node to our graph and returns all its outputs.
    pub(super) fn add(&self, op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.add_op(op.into(), inputs)
    }

    /// Adds a host op to our graph and returns all its outputs.
    pub(super) fn host<T: HostRules + Eq + std::hash::Hash>(&self, op: T, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.add(HostOp::new(op), inputs)
    }
}

/// Attributes.
impl NodeReader<'_, '_> {
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
        Error::config(format!("the node has no attribute `{key}`"))
    }

    pub(super) fn float_or(&self, key: &str, default: f32) -> Result<f32> {
        let float = |attr: &Attr| if let Attr::F(f) = attr { Some(*f) } else { None };
        Ok(self.attr(key, "a float", float)?.unwrap_or(default))
    }

    pub(super) fn bytes_or(&self, key: &str, default: &[u8]) -> Result<Vec<u8>> {
        let bytes = |attr: &Attr| if let Attr::S(s) = attr { Some(s.clone()) } else { None };
        Ok(self.attr(key, "a string", bytes)?.unwrap_or_else(|| default.to_vec()))
    }

    /// A list attribute; empty if it is missing.
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
}

impl Reading for NodeReader<'_, '_> {
    fn op(&self) -> &str {
        &self.def.op
    }

    fn name(&self) -> &str {
        &self.def.name
    }

    fn graph(&self) -> &Graph {
        &self.reader.graph
    }

    fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn tensor(&mut self, i: usize) -> Result<Tensor> {
        let input = self.input(i)?;
        self.reader.tensor(input)
    }

    fn constant(&mut self, i: usize) -> Result<Array> {
        let input = self.input(i)?;
        self.reader.constant(input).map_err(|e| e.context(format!("in input {i}")))
    }

    fn sizes(&mut self, i: usize, allow_any: bool) -> Result<Vec<Dim>> {
        let numbers = self.elements(i)?;
        let size = |number: &Number| match number {
            Number::Known(-1) if allow_any => Ok(Graph::ANY),
            number => self.reader.size(number),
        };
        numbers.elements.iter().map(size).collect()
    }

    fn add_op(&self, op: Op, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let graph = self.graph();
        let first = graph.node(op, inputs, std::panic::Location::caller());
        graph.check()?;
        let n = graph.body().node(first.value().node).outputs.len();
        Ok((0..n).map(|i| graph.output(&first, i as u16)).collect())
    }

    fn int_or(&self, key: &str, default: i64) -> Result<i64> {
        let int = |attr: &Attr| if let Attr::I(n) = attr { Some(*n) } else { None };
        Ok(self.attr(key, "an integer", int)?.unwrap_or(default))
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool> {
        let flag = |attr: &Attr| if let Attr::B(b) = attr { Some(*b) } else { None };
        Ok(self.attr(key, "a boolean", flag)?.unwrap_or(default))
    }

    fn text_or(&self, key: &str, default: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes_or(key, default.as_bytes())?).into_owned())
    }

    fn dtype_or(&self, key: &str, default: Option<DType>) -> Result<DType> {
        let code = self.attr(key, "an element type", |attr| if let Attr::Type(t) = attr { Some(*t) } else { None })?;
        match (code, default) {
            (Some(code), _) => dtype(code),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.missing(key)),
        }
    }

    fn ints(&self, key: &str) -> Result<Vec<i64>> {
        Ok(self.list(key)?.i)
    }
}

/// The dtype of a TensorFlow type code. Reference variables of old graphs have codes that are 100
/// larger.
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
