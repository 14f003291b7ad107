//! Checks every gradient rule against finite differences, with the reference executor in f64.
//!
//! A case builds a graph of f64 placeholders whose last op is the op under test. The gradient of a
//! weighted sum of its result must equal the central difference of that sum, for every element of
//! every fed float. `VARIANTS` lists all ops. An op that is missing there does not compile; a
//! differentiable op without a case fails.

mod elementwise;
mod index;
mod layout;
mod recurrent;
mod reduce;
mod window;

use std::collections::BTreeSet;
use std::panic::Location;

use estimand_engine::Compiled;
use estimand_graph::op::*;
use estimand_graph::{Graph, Tensor, gradients};
use estimand_tensor::{Array, Binary, DType, Dim, Shape, Unary};

use super::*;

/// A feed: its declared shape, and its value in this run.
struct Feed {
    shape: Shape,
    value: Array,
}

type Build = Box<dyn Fn(&[Tensor]) -> Tensor>;

/// An op with inputs.
struct Case {
    name: String,
    feeds: Vec<Feed>,
    build: Build,
}

fn case(name: &str, feeds: Vec<Feed>, build: impl Fn(&[Tensor]) -> Tensor + 'static) -> Case {
    Case { name: name.to_string(), feeds, build: Box::new(build) }
}

/// A case of one op.
fn op(op: impl Into<Op>, feeds: Vec<Feed>) -> Case {
    let op: Op = op.into();
    let name = format!("{op:?}");
    case(&name, feeds, move |x| node(op.clone(), x))
}

#[track_caller]
fn node(op: impl Into<Op>, x: &[Tensor]) -> Tensor {
    x[0].graph().node(op, &x.iter().collect::<Vec<_>>(), Location::caller())
}

const BATCH: Dim = Dim::BATCH;
const ANY: Dim = Graph::ANY;

const fn n(size: usize) -> Dim {
    Dim::Known(size)
}

/// Floats of both signs. No two are equal, and none is within 0.02 of a multiple of a half, where
/// functions have their kinks.
fn spread(count: usize) -> Vec<f64> {
    let value = |i: usize| {
        let turn = (i as f64 + 0.5) * 0.618_033_988_75;
        let half = (i % 6) as f64 * 0.5 + 0.03 + (turn - turn.floor()) * 0.43;
        if (i / 2).is_multiple_of(2) { half } else { -half }
    };
    (0..count).map(value).collect()
}

fn floats_by(shape: &[Dim], dims: &[usize], value: impl Fn(f64) -> f64) -> Feed {
    let values = spread(value::count(dims)).into_iter().map(value).collect();
    Feed { shape: shape.iter().copied().collect(), value: Array::from_vec(dims, values).unwrap() }
}

/// Floats with a declared shape and these sizes in this run.
fn symbolic(shape: &[Dim], dims: &[usize]) -> Feed {
    floats_by(shape, dims, |v| v)
}

/// Floats of known sizes.
fn floats(dims: &[usize]) -> Feed {
    symbolic(Shape::from(dims).dims(), dims)
}

/// Floats that differ from those of `floats`.
fn more(dims: &[usize]) -> Feed {
    floats_by(Shape::from(dims).dims(), dims, |v| 0.71 - 0.83 * v)
}

fn positive(dims: &[usize]) -> Feed {
    floats_by(Shape::from(dims).dims(), dims, |v| v.abs() + 0.1)
}

fn ids(dims: &[usize], values: &[i64]) -> Feed {
    Feed { shape: Shape::from(dims), value: Array::from_slice(dims, values).unwrap() }
}

/// A graph with the case's result, ready to be differentiated.
fn build(case: &Case) -> (Graph, Vec<Tensor>, Tensor) {
    let graph = Graph::new();
    let feed = |(i, feed): (usize, &Feed)| graph.placeholder(&format!("x{i}"), feed.value.dtype(), feed.shape.clone());
    let x: Vec<Tensor> = case.feeds.iter().enumerate().map(feed).collect();
    let y = (case.build)(&x);
    (graph, x, y)
}

/// A sum in which every element has its own weight, so that no two gradients are equal by chance.
fn weighted_sum(y: &Tensor) -> Tensor {
    let graph = y.graph();
    let n = graph.symbols_mut(|s| s.product(y.shape().dims())).unwrap();
    let weights = (graph.range(n, DType::F64) * 1.3 + 0.4).cos().reshape_as(y.shape().clone());
    (y.cast(DType::F64) * weights).sum()
}

/// Runs programs on the case's feeds with one array replaced.
struct Runner {
    program: Compiled,
    state: Box<dyn State>,
    feeds: Vec<Array>,
}

impl Runner {
    fn new(graph: &Graph, x: &[Tensor], case: &Case, fetches: &[&Tensor]) -> Result<Runner> {
        graph.check()?;
        let body = Arc::new(graph.body().clone());
        let fetches: Vec<Value> = fetches.iter().map(|t| t.value()).collect();
        let program = Compiled::new(&Reference, Program::plain(body.clone(), &fetches)?)?;
        let fed = |id: &estimand_graph::NodeId| {
            let at = x.iter().position(|x| x.value().node == *id).expect("only placeholders of the case are fed");
            case.feeds[at].value.clone()
        };
        let feeds = program.program().placeholders().iter().map(fed).collect();
        Ok(Runner { state: Reference.place(body.variables(), 0)?, program, feeds })
    }

    fn run(&mut self) -> Result<Vec<Array>> {
        let mut outputs = Vec::new();
        self.program.step(self.state.as_mut(), RunArgs { feeds: &self.feeds, ..RunArgs::default() }, &mut outputs)?;
        Ok(outputs)
    }

    /// The first fetch after one element of one feed was moved by `by`.
    fn moved(&mut self, feed: usize, element: usize, by: f64) -> Result<f64> {
        let original = self.feeds[feed].clone();
        let mut values = original.to_f64_vec()?;
        values[element] += by;
        self.feeds[feed] = Array::from_vec(original.dims(), values)?;
        let loss = self.run()?[0].item::<f64>();
        self.feeds[feed] = original;
        loss
    }
}

/// Compares gradient and difference for every element. The error names the element that differs.
fn check(case: &Case) -> Result<()> {
    const STEP: f64 = 1e-5;
    const TOLERANCE: f64 = 1e-6;
    let (graph, x, y) = build(case);
    let loss = weighted_sum(&y);
    let floats: Vec<&Tensor> = x.iter().filter(|x| x.dtype() == DType::F64).collect();
    let found = gradients(&loss, &floats);
    let dense: Vec<Tensor> = found
        .iter()
        .zip(&floats)
        .map(|(gradient, x)| gradient.to_dense(x.shape()).unwrap_or_else(|| x.zeros_like()))
        .collect();
    let analytic = Runner::new(&graph, &x, case, &dense.iter().collect::<Vec<_>>())?.run()?;
    let mut runner = Runner::new(&graph, &x, case, &[&loss])?;
    for (x, gradient) in floats.iter().zip(analytic) {
        let Some(feed) = runner.program.program().placeholders().iter().position(|&id| id == x.value().node) else {
            return Err(Error::internal(format!("{} is not used by the case", x.name())));
        };
        if gradient.dims() != runner.feeds[feed].dims() {
            let dims = runner.feeds[feed].dims();
            return Err(Error::shape(format!("the gradient of {} is {:?}, not {dims:?}", x.name(), gradient.dims())));
        }
        for (element, gradient) in gradient.to_f64_vec()?.into_iter().enumerate() {
            let (above, below) = (runner.moved(feed, element, STEP)?, runner.moved(feed, element, -STEP)?);
            let difference = (above - below) / (2.0 * STEP);
            let close = (gradient - difference).abs() <= TOLERANCE * gradient.abs().max(1.0);
            if !close {
                return Err(Error::internal(format!(
                    "element {element} of {}: the gradient is {gradient}, the difference {difference}",
                    x.name()
                )));
            }
        }
    }
    Ok(())
}

/// Whether an op has a gradient.
#[derive(Clone, Copy, PartialEq, Debug)]
enum GradientSupport {
    /// It has a gradient, and a case here.
    Differentiable,
    /// Its gradient is an error.
    Refused,
    /// It passes no gradient on: sources, integers, effects, and ops that are constant by
    /// definition.
    Silent,
}

macro_rules! variants {
    ($($kind:ident: $($variant:ident)*;)*) => {
        const VARIANTS: &[(&str, GradientSupport)] = &[$($((stringify!($variant), GradientSupport::$kind)),*),*];

        fn variant(op: &Op) -> &'static str {
            match op { $($(Op::$variant { .. } => stringify!($variant),)*)* }
        }
    };
}

variants! {
    Differentiable:
        Unary Binary Select Cast Print
        Reshape BroadcastTo SumTo Transpose Concat Slice StridedSlice StridedSliceGrad Pad MirrorPad MirrorPadGrad Tile Reverse BandPart
        Reduce Cumulate TopK
        MatMul BatchMatMul Conv2d Conv2dBackpropInput Conv2dBackpropFilter
        DepthwiseConv2d DepthwiseConv2dBackpropInput DepthwiseConv2dBackpropFilter
        MaxPool AvgPool AvgPoolGrad
        Softmax LogSoftmax SoftmaxCrossEntropy SparseSoftmaxCrossEntropy
        Gather GatherNd ScatterNd UnsortedSegment SparseSegment SparseSegmentGrad Recurrent
        Resize ResizeGrad Custom;
    Refused: MaxPoolGrad RecurrentGrad;
    Silent: Placeholder Constant Variable DimSize Range Random StopGradient ArgMax OneHot Host Assign Apply Group;
}

fn all_cases() -> Vec<Case> {
    [elementwise::cases(), layout::cases(), reduce::cases(), window::cases(), index::cases(), recurrent::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn gradients_are_derivatives() {
    let failures: Vec<String> = all_cases()
        .iter()
        .filter_map(|case| check(case).err().map(|e| format!("{} with {:?}: {e}", case.name, sizes(case))))
        .collect();
    assert!(failures.is_empty(), "{} gradients are wrong:\n{}", failures.len(), failures.join("\n"));
}

fn sizes(case: &Case) -> Vec<&[usize]> {
    case.feeds.iter().map(|feed| feed.value.dims()).collect()
}

#[test]
fn every_differentiable_op_has_a_case() {
    let mut tested: BTreeSet<&str> = BTreeSet::new();
    let mut elements: BTreeSet<&str> = BTreeSet::new();
    for case in all_cases() {
        let (graph, _, y) = build(&case);
        graph.check().unwrap();
        let op = graph.body().node(y.value().node).op.clone();
        tested.insert(variant(&op));
        elements.insert(op.name());
    }
    for (name, kind) in VARIANTS {
        assert_eq!(tested.contains(name), *kind == GradientSupport::Differentiable, "{name} is listed as {kind:?}");
    }
    let unary = Unary::ALL.iter().filter(|u| u.accepts(DType::F64) && u.output(DType::F64) == DType::F64);
    let binary = Binary::ALL.iter().filter(|b| b.accepts(DType::F64) && b.output(DType::F64) == DType::F64);
    let names =
        unary.map(|u| u.tf_name()).chain(binary.filter(|b| !elementwise::REFUSED.contains(b)).map(|b| b.tf_name()));
    let reductions = Reduction::ALL.iter().filter(|r| r.accepts(DType::F64)).map(|r| r.tf_name());
    for name in names.chain(reductions) {
        assert!(elements.contains(name), "{name} has no case");
    }
}

/// An op without a gradient returns an error that names it, instead of a wrong gradient.
#[test]
fn refused_gradients_are_errors() {
    for case in
        [elementwise::refused(), window::refused(), index::refused(), recurrent::refused()].into_iter().flatten()
    {
        let (graph, x, y) = build(&case);
        graph.check().unwrap();
        gradients(&y, &x.iter().filter(|x| x.dtype() == DType::F64).collect::<Vec<_>>());
        let error = graph.check().expect_err(&case.name).to_string();
        assert!(error.contains("is not differentiable"), "{}: {error}", case.name);
    }
}

fn axes(list: &[usize]) -> Axes {
    list.iter().map(|&axis| axis as u8).collect()
}
