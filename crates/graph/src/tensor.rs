//! `Tensor`: a symbolic value in a graph, with operators.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

use estimand_tensor::{Array, Binary, DType, Dim, Error, Result, Shape, TensorSpec, Unary};

use crate::graph::Graph;
use crate::op::{Assign, Constant, Op, Variable};
use crate::value::Value;
use crate::variables::VarId;

/// A symbolic value: the result of a node. Cheap to clone.
///
/// No operation returns a `Result`: the graph keeps the first error. A tensor computed from the
/// failed op stands for the error.
#[derive(Clone)]
pub struct Tensor {
    graph: Graph,
    value: Value,
    spec: TensorSpec,
}

impl Tensor {
    pub(crate) fn new(graph: Graph, value: Value, spec: TensorSpec) -> Tensor {
        Tensor { graph, value, spec }
    }

    /// The graph of the tensor.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The node and the index of its output.
    pub fn value(&self) -> Value {
        self.value
    }

    /// The dtype and shape.
    pub fn spec(&self) -> &TensorSpec {
        &self.spec
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.spec.dtype
    }

    /// Axes, each known or a symbol.
    pub fn shape(&self) -> &Shape {
        &self.spec.shape
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.spec.shape.rank()
    }

    /// The known size of an axis. If the axis does not exist or is known only at run time, this
    /// records an error and returns 1.
    #[track_caller]
    pub fn dim(&self, axis: usize) -> usize {
        let site = Location::caller();
        if self.is_poisoned() {
            return 1;
        }
        match self.spec.shape.dims().get(axis) {
            Some(Dim::Known(n)) => *n,
            Some(Dim::Sym(_)) => {
                let error = Error::shape(format!("axis {axis} of {} is known only at run time", self.describe()));
                self.graph.record(error.help("use tensor.size(axis), which gives the size as a tensor"), site);
                1
            }
            None => {
                self.graph.record(Error::shape(format!("{} has no axis {axis}", self.describe())), site);
                1
            }
        }
    }

    /// The name of the tensor's node; empty for a tensor that stands for an error.
    pub fn name(&self) -> String {
        if self.is_poisoned() { String::new() } else { self.graph.body().node(self.value.node).name.clone() }
    }

    /// Whether this tensor results from an earlier error.
    pub fn is_poisoned(&self) -> bool {
        self.value == Value::POISON
    }

    /// Whether a run gives it a value. Ops that are run for their effect have none.
    pub(crate) fn has_value(&self) -> bool {
        self.is_poisoned() || !self.graph().body().node(self.value.node).outputs.is_empty()
    }

    /// The error of using a tensor without a value.
    pub(crate) fn no_value(&self, user: &str) -> Error {
        let name = self.graph().body().node(self.value.node).name.clone();
        Error::config(format!("{user} uses `{name}`, which has no value: it runs for its effect"))
            .help("fetch it, or put it into a group")
    }

    /// Name, dtype and shape for a message: "`name` f32[batch, 4]"
    pub fn describe(&self) -> String {
        format!("`{}` {}", self.name(), self.spec)
    }

    /// Returns the variable that this tensor reads, if it reads one.
    pub fn variable(&self) -> Option<VarId> {
        match self.graph.body().nodes().get(self.value.node.0 as usize)?.op {
            Op::Variable(Variable(id)) => Some(id),
            _ => None,
        }
    }

    /// Returns the op that sets this variable at the end of the run. Fetch it, or group it with
    /// others.
    #[track_caller]
    pub fn assign(&self, value: &Tensor) -> Tensor {
        let site = Location::caller();
        match self.variable() {
            Some(id) => self.graph.node(Assign(id), &[value], site),
            None if self.is_poisoned() => self.clone(),
            None => {
                self.record(Error::config(format!("cannot assign to {}: it is not a variable", self.describe())), site)
            }
        }
    }

    /// Returns the op that adds to this variable at the end of the run.
    #[track_caller]
    pub fn assign_add(&self, value: impl IntoTensor) -> Tensor {
        let site = Location::caller();
        let value = self.beside(value, site);
        self.assign(&self.binary(Binary::Add, &value, site))
    }

    /// Adds a node with this tensor as first input.
    pub(crate) fn then(&self, op: impl Into<Op>, others: &[&Tensor], site: &'static Location<'static>) -> Tensor {
        let mut inputs: smallvec::SmallVec<[&Tensor; 4]> = smallvec::smallvec![self];
        inputs.extend_from_slice(others);
        self.graph.node(op, &inputs, site)
    }

    pub(crate) fn unary(&self, op: Unary, site: &'static Location<'static>) -> Tensor {
        self.then(op, &[], site)
    }

    pub(crate) fn binary(&self, op: Binary, other: &Tensor, site: &'static Location<'static>) -> Tensor {
        self.then(op, &[other], site)
    }

    /// A constant of this tensor's dtype.
    pub(crate) fn number(&self, value: f64, site: &'static Location<'static>) -> Tensor {
        self.graph.number(self.dtype(), value, site)
    }

    /// Converts the other operand of an expression with this tensor.
    pub(crate) fn beside(&self, operand: impl IntoTensor, site: &'static Location<'static>) -> Tensor {
        // A tensor that stands for an error may have any dtype: do not report a second error.
        if self.is_poisoned() { self.clone() } else { operand.into_tensor(&self.graph, self.dtype(), site) }
    }

    pub(crate) fn record(&self, error: Error, site: &'static Location<'static>) -> Tensor {
        self.graph.fail(error, site)
    }
}

/// Converts a number to an array of a dtype. Fails if the dtype cannot hold the number.
pub(crate) fn scalar(dtype: DType, value: f64) -> Result<Array> {
    let whole = |low: f64, high: f64| value.fract() == 0.0 && (low..=high).contains(&value);
    Ok(match dtype {
        DType::F32 => Array::scalar(value as f32),
        DType::F64 => Array::scalar(value),
        DType::I32 if whole(i32::MIN.into(), i32::MAX.into()) => Array::scalar(value as i32),
        DType::I64 if whole(-(2f64.powi(53)), 2f64.powi(53)) => Array::scalar(value as i64),
        DType::U8 if whole(0.0, 255.0) => Array::scalar(value as u8),
        DType::Bool if value == 0.0 || value == 1.0 => Array::scalar(value == 1.0),
        _ => {
            return Err(Error::dtype(Some(dtype), DType::F64, format!("the number {value} is not a {dtype}"))
                .help("cast the tensor to a float dtype first"));
        }
    })
}

/// An operand of an expression with a tensor: a tensor, a number, or an array.
pub trait IntoTensor {
    /// The operand's dtype. `None` for a number, which takes the dtype of the other operand.
    fn own_dtype(&self) -> Option<DType>;

    /// Converts the operand to a tensor of a graph. A number becomes a constant of `dtype`.
    fn into_tensor(self, graph: &Graph, dtype: DType, site: &'static Location<'static>) -> Tensor;
}

impl IntoTensor for &Tensor {
    fn own_dtype(&self) -> Option<DType> {
        Some(self.dtype())
    }

    fn into_tensor(self, _: &Graph, _: DType, _: &'static Location<'static>) -> Tensor {
        self.clone()
    }
}

impl IntoTensor for Tensor {
    fn own_dtype(&self) -> Option<DType> {
        Some(self.dtype())
    }

    fn into_tensor(self, _: &Graph, _: DType, _: &'static Location<'static>) -> Tensor {
        self
    }
}

impl IntoTensor for &Array {
    fn own_dtype(&self) -> Option<DType> {
        Some(self.dtype())
    }

    fn into_tensor(self, graph: &Graph, _: DType, site: &'static Location<'static>) -> Tensor {
        graph.node(Constant(self.clone()), &[], site)
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl IntoTensor for $t {
            fn own_dtype(&self) -> Option<DType> {
                None
            }

            fn into_tensor(self, graph: &Graph, dtype: DType, site: &'static Location<'static>) -> Tensor {
                graph.number(dtype, self as f64, site)
            }
        }
    )*};
}
numbers!(f32, f64, i32, i64);

macro_rules! operator {
    ($trait:ident, $method:ident, $op:ident) => {
        impl<T: IntoTensor> $trait<T> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                let site = Location::caller();
                let other = self.beside(other, site);
                self.binary(Binary::$op, &other, site)
            }
        }

        impl<T: IntoTensor> $trait<T> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                let site = Location::caller();
                let other = self.beside(other, site);
                self.binary(Binary::$op, &other, site)
            }
        }

        operator!(@number $trait, $method, $op, f32, &Tensor);
        operator!(@number $trait, $method, $op, f64, &Tensor);
        operator!(@number $trait, $method, $op, f32, Tensor);
        operator!(@number $trait, $method, $op, f64, Tensor);
    };
    (@number $trait:ident, $method:ident, $op:ident, $number:ty, $tensor:ty) => {
        impl $trait<$tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: $tensor) -> Tensor {
                let site = Location::caller();
                let number = other.beside(self, site);
                number.binary(Binary::$op, &other, site)
            }
        }
    };
}
operator!(Add, add, Add);
operator!(Sub, sub, Sub);
operator!(Mul, mul, Mul);
operator!(Div, div, Div);

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        self.unary(Unary::Neg, Location::caller())
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        self.unary(Unary::Neg, Location::caller())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_poisoned() { f.write_str("Tensor(error)") } else { write!(f, "Tensor({})", self.describe()) }
    }
}
