//! Compares every family of kernels with TensorFlow's. `oracles/gen/reference_ops.py` explains the
//! fixture.

use std::panic::Location;

use estimand_fixture as fixture;
use estimand_graph::op::*;
use estimand_graph::{Graph, Padding, Tensor};
use estimand_tensor::{Array, Binary, DType, Shape, Unary};

use super::*;

fn array(array: &fixture::Array) -> Array {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.to_string() == array.dtype).unwrap();
    Array::from_bytes(dtype, &array.dims, &array.to_ne_bytes()).unwrap()
}

/// The settings of an op, in order.
struct Settings(Vec<fixture::Json>);

impl Settings {
    fn number(&self, i: usize) -> usize {
        self.0[i].as_u64().unwrap() as usize
    }

    fn flag(&self, i: usize) -> bool {
        self.0[i].as_bool().unwrap()
    }

    fn padding(&self, i: usize) -> Padding {
        if self.0[i] == "SAME" { Padding::Same } else { Padding::Valid }
    }

    fn window(&self) -> Window {
        let stride = self.number(0);
        Window { strides: (stride, stride), dilations: (self.number(1), self.number(2)), padding: self.padding(3) }
    }

    fn pool(&self) -> PoolWindow {
        let pair = |i: usize| (self.number(i), self.number(i + 1));
        PoolWindow { size: pair(0), strides: pair(2), padding: self.padding(4) }
    }

    fn resize(&self, name: &str) -> Resize {
        Resize {
            bilinear: name.starts_with("ResizeBilinear"),
            size: (self.number(0), self.number(1)),
            half_pixel_centers: self.flag(2),
        }
    }

    fn resized_shape(&self) -> Shape {
        Shape::from([2, self.number(3), self.number(4), 2])
    }
}

/// The op of a case.
fn op(name: &str, s: &Settings) -> Op {
    if let Some(&u) = Unary::ALL.iter().find(|u| u.tf_name() == name) {
        return Op::Unary(u);
    }
    if let Some(&b) = Binary::ALL.iter().find(|b| b.tf_name() == name) {
        return Op::Binary(b);
    }
    if let Some(kind) = Reduction::ALL.into_iter().find(|r| r.tf_name() == name) {
        return Reduce { kind, axes: AxisSet(s.number(0) as u32), keep_dims: false }.into();
    }
    let segments = |kind| Op::UnsortedSegment(UnsortedSegment { kind, num_segments: 4.into() });
    let paddings = vec![(2, 1), (0, 3)];
    match name {
        "ArgMax" | "ArgMin" => Op::ArgMax(ArgMax { axis: s.number(0), min: name == "ArgMin", output: DType::I64 }),
        "Cumsum" | "Cumprod" => {
            Op::Cumulate(Cumulate { product: name == "Cumprod", axis: 1, exclusive: s.flag(0), reverse: s.flag(1) })
        }
        "TopKV2" => Op::TopK(TopK { k: 2 }),
        "Softmax" => Op::Softmax(Softmax),
        "LogSoftmax" => Op::LogSoftmax(LogSoftmax),
        "SoftmaxCrossEntropy" => Op::SoftmaxCrossEntropy(SoftmaxCrossEntropy),
        "SparseSoftmaxCrossEntropy" => Op::SparseSoftmaxCrossEntropy(SparseSoftmaxCrossEntropy),
        "MirrorPad" => Op::MirrorPad(MirrorPad { paddings, symmetric: s.0[0] == "SYMMETRIC" }),
        "MirrorPadGrad" => Op::MirrorPadGrad(MirrorPadGrad { paddings, symmetric: s.0[0] == "SYMMETRIC" }),
        "StridedSlice" => Op::StridedSlice(StridedSlice { begin: vec![2, 1], strides: vec![-1, 2], size: vec![2, 2] }),
        "Transpose" => Op::Transpose(Transpose { perm: Axes::from_slice(&[2, 0, 1]) }),
        "Tile" => Op::Tile(Tile { multiples: vec![2, 3] }),
        "Reverse" => Op::Reverse(Reverse { axes: AxisSet(2) }),
        "MatrixBandPart" => {
            let bound = |i: usize| s.0[i].as_u64().map(|n| n as usize);
            BandPart { lower: bound(0), upper: bound(1) }.into()
        }
        "Gather" => Op::Gather(Gather { axis: s.number(0), batch_dims: s.number(1) }),
        "GatherNd" => Op::GatherNd(GatherNd),
        "ScatterNd" => Op::ScatterNd(ScatterNd { shape: Shape::from([4, 2]) }),
        "UnsortedSegmentSum" => segments(Reduction::Sum),
        "UnsortedSegmentMax" => segments(Reduction::Max),
        "UnsortedSegmentMin" => segments(Reduction::Min),
        "UnsortedSegmentProd" => segments(Reduction::Prod),
        "OneHot" => Op::OneHot(OneHot { depth: 3, axis: 0 }),
        "Conv2D" => Op::Conv2d(Conv2d { window: s.window() }),
        "Conv2DBackpropInput" => {
            Op::Conv2dBackpropInput(Conv2dBackpropInput { window: s.window(), shape: Shape::from([2, 5, 6, 2]) })
        }
        "Conv2DBackpropFilter" => {
            Op::Conv2dBackpropFilter(Conv2dBackpropFilter { window: s.window(), shape: Shape::from([2, 3, 2, 3]) })
        }
        "DepthwiseConv2dNative" => Op::DepthwiseConv2d(DepthwiseConv2d { window: s.window() }),
        "DepthwiseConv2dNativeBackpropInput" => Op::DepthwiseConv2dBackpropInput(DepthwiseConv2dBackpropInput {
            window: s.window(),
            shape: Shape::from([2, 5, 6, 2]),
        }),
        "DepthwiseConv2dNativeBackpropFilter" => Op::DepthwiseConv2dBackpropFilter(DepthwiseConv2dBackpropFilter {
            window: s.window(),
            shape: Shape::from([2, 3, 2, 2]),
        }),
        "MaxPool" => Op::MaxPool(MaxPool { window: s.pool() }),
        "AvgPool" => Op::AvgPool(AvgPool { window: s.pool() }),
        "MaxPoolGrad" => Op::MaxPoolGrad(MaxPoolGrad { window: s.pool() }),
        "AvgPoolGrad" => Op::AvgPoolGrad(AvgPoolGrad { window: s.pool(), shape: Shape::from([2, 5, 6, 2]) }),
        "ResizeBilinear" | "ResizeNearestNeighbor" => Op::Resize(s.resize(name)),
        "ResizeBilinearGrad" | "ResizeNearestNeighborGrad" => {
            Op::ResizeGrad(ResizeGrad { resize: s.resize(name), shape: s.resized_shape() })
        }
        _ => panic!("the fixture has a case `{name}` that the test does not know"),
    }
}

/// The results of an op on constants.
fn compute(op: Op, inputs: &[Array]) -> Result<Vec<Array>> {
    let graph = Graph::new();
    let x: Vec<Tensor> = inputs.iter().map(|x| graph.constant(x.clone())).collect();
    let first = graph.node(op, &x.iter().collect::<Vec<_>>(), Location::caller());
    graph.check()?;
    let body = Arc::new(graph.body().clone());
    let node = first.value().node;
    let fetches: Vec<Value> =
        (0..body.node(node).outputs.len()).map(|output| Value { node, output: output as u16 }).collect();
    let mut outputs = Vec::new();
    let program = Reference.compile(Program::plain(body.clone(), &fetches)?)?;
    program.step(Reference.place(body.variables(), 0)?.as_mut(), RunArgs::default(), &mut outputs)?;
    Ok(outputs)
}

/// The largest difference of two values, relative for values above 1.
fn distance(actual: &Array, expected: &Array) -> f64 {
    let pairs = actual.to_f64_vec().unwrap().into_iter().zip(expected.to_f64_vec().unwrap());
    let apart = |(a, e): (f64, f64)| match a == e || (a.is_nan() && e.is_nan()) {
        true => 0.0,
        false => (a - e).abs() / e.abs().max(1.0),
    };
    pairs.map(apart).map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max)
}

#[test]
fn kernels_agree_with_tensorflow() {
    let mut failures = Vec::new();
    let mut n_cases = 0;
    for case in fixture::cases("reference_ops") {
        let arrays = |kind: &str| -> Vec<Array> { case.with_prefix(kind).map(|(_, values)| array(&values)).collect() };
        let settings = Settings(case.json("settings").as_array().unwrap().clone());
        let actual = compute(op(case.name(), &settings), &arrays("in:")).unwrap();
        let expected = arrays("out:");
        assert_eq!(actual.len(), expected.len(), "{case}");
        for (a, e) in actual.iter().zip(&expected) {
            let tolerance = if e.dtype() == DType::F32 { 2e-6 } else { 1e-12 };
            if a.dtype() != e.dtype() || a.dims() != e.dims() || distance(a, e) > tolerance {
                failures.push(format!("{case}: {a:?}, expected {e:?}"));
            }
        }
        n_cases += 1;
    }
    assert!(n_cases > 200, "{n_cases} cases in the fixture");
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
