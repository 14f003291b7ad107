//! Tests of the GraphDef writer's output, one line per node. `oracles/live/graphdef.py` checks that
//! TensorFlow runs it.

use std::panic::Location;

use estimand_graph::custom::CustomOp;
use estimand_graph::op::Assign;
use estimand_graph::{Graph, Initializer, Optimizer, Tensor};
use estimand_tensor::{Array, DType, Dim, ErrorKind, TensorSpec};
use estimand_update::Sgd;
use estimand_wire::graph_def::Attr;
use estimand_wire::{AttrValue, DataType, GraphDef, NodeDef, TensorProto};

use super::{graph_def, graph_def_bytes};

/// `name = Op(inputs) key=value ...`
fn text(graph: &GraphDef) -> String {
    let line = |node: &NodeDef| {
        let attrs: String = node.attr.iter().map(|(key, value)| format!(" {key}={}", attr(value))).collect();
        format!("{} = {}({}){attrs}\n", node.name, node.op, node.input.join(", "))
    };
    graph.node.iter().map(line).collect()
}

fn attr(value: &AttrValue) -> String {
    match value.value.as_ref().expect("an attribute has a value") {
        Attr::Type(code) => DataType::describe(*code),
        Attr::B(b) => b.to_string(),
        Attr::I(i) => i.to_string(),
        Attr::S(s) => String::from_utf8_lossy(s).into_owned(),
        Attr::Shape(shape) => format!("{:?}", shape.sizes().expect("ranks are known").collect::<Vec<_>>()),
        Attr::Tensor(tensor) => tensor_text(tensor),
        Attr::List(list) => format!("{:?}", list.i),
        other => panic!("no text for {other:?}"),
    }
}

fn tensor_text(tensor: &TensorProto) -> String {
    let dtype = DataType::try_from(tensor.dtype).ok().and_then(DataType::dtype).expect("a known dtype");
    let dims: Vec<usize> =
        tensor.tensor_shape.as_ref().and_then(|s| s.sizes()).expect("known").map(|n| n as usize).collect();
    match dtype {
        DType::Str => format!("{:?}", tensor.string_val.iter().map(|s| String::from_utf8_lossy(s)).collect::<Vec<_>>()),
        _ => Array::from_bytes(dtype, dims, &tensor.tensor_content).expect("whole elements").to_string(),
    }
}

fn written(graph: &Graph, fetches: &[&Tensor]) -> String {
    let fetches: Vec<_> = fetches.iter().map(|t| t.value()).collect();
    text(&graph_def(&graph.body(), &fetches).unwrap())
}

#[test]
fn a_linear_model() {
    let g = Graph::new();
    let x = g.placeholder("petal width", DType::F32, [Dim::BATCH, 2.into()]);
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let scope = g.scope("linear");
    let w = g.variable("kernel", [2, 3], Initializer::Zeros);
    let b = g.variable("bias", [3], Initializer::Zeros);
    let logits = x.matmul(&w) + &b;
    drop(scope);
    let loss = logits.sparse_softmax_cross_entropy(&labels).mean();
    logits.softmax(); // not fetched, not written
    assert_eq!(
        written(&g, &[&loss]),
        "\
petal_width = Placeholder() dtype=DT_FLOAT shape=[-1, 2]
labels = Placeholder() dtype=DT_INT64 shape=[-1]
linear/kernel = VarHandleOp() dtype=DT_FLOAT shape=[2, 3] shared_name=linear/kernel
linear/kernel/Read/ReadVariableOp = ReadVariableOp(linear/kernel) dtype=DT_FLOAT
linear/bias = VarHandleOp() dtype=DT_FLOAT shape=[3] shared_name=linear/bias
linear/bias/Read/ReadVariableOp = ReadVariableOp(linear/bias) dtype=DT_FLOAT
linear/MatMul = MatMul(petal_width, linear/kernel/Read/ReadVariableOp) T=DT_FLOAT transpose_a=false transpose_b=false
linear/AddV2 = AddV2(linear/MatMul, linear/bias/Read/ReadVariableOp) T=DT_FLOAT
SparseSoftmaxCrossEntropyWithLogits = SparseSoftmaxCrossEntropyWithLogits(linear/AddV2, labels) T=DT_FLOAT Tlabels=DT_INT64
Mean/reduction_indices = Const() dtype=DT_INT32 value=[0]
Mean = Mean(SparseSoftmaxCrossEntropyWithLogits, Mean/reduction_indices) T=DT_FLOAT Tidx=DT_INT32 keep_dims=false
"
    );
}

#[test]
fn sizes_of_the_run_are_computed_in_the_graph() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY]);
    // One unknown size is left to TensorFlow; two are written out.
    let flat = x.reshape([-1]);
    let both = x.expand_dims(0);
    assert_eq!(
        written(&g, &[&flat, &both]),
        "\
x = Placeholder() dtype=DT_FLOAT shape=[-1, -1]
Reshape/shape = Const() dtype=DT_INT32 value=[-1]
Reshape = Reshape(x, Reshape/shape) T=DT_FLOAT Tshape=DT_INT32
Reshape_1/shape/0 = Const() dtype=DT_INT32 value=1
sizes/batch/shape = Shape(x) T=DT_FLOAT out_type=DT_INT32
sizes/batch/begin = Const() dtype=DT_INT32 value=[0]
sizes/batch/end = Const() dtype=DT_INT32 value=[1]
sizes/batch/strides = Const() dtype=DT_INT32 value=[1]
sizes/batch = StridedSlice(sizes/batch/shape, sizes/batch/begin, sizes/batch/end, sizes/batch/strides) \
Index=DT_INT32 T=DT_INT32 shrink_axis_mask=1
sizes/s1/shape = Shape(x) T=DT_FLOAT out_type=DT_INT32
sizes/s1/begin = Const() dtype=DT_INT32 value=[1]
sizes/s1/end = Const() dtype=DT_INT32 value=[2]
sizes/s1/strides = Const() dtype=DT_INT32 value=[1]
sizes/s1 = StridedSlice(sizes/s1/shape, sizes/s1/begin, sizes/s1/end, sizes/s1/strides) \
Index=DT_INT32 T=DT_INT32 shrink_axis_mask=1
Reshape_1/shape = Pack(Reshape_1/shape/0, sizes/batch, sizes/s1) N=3 T=DT_INT32
Reshape_1 = Reshape(x, Reshape_1/shape) T=DT_FLOAT Tshape=DT_INT32
"
    );
}

#[test]
fn strings_second_outputs_and_open_ends() {
    let g = Graph::new();
    let words = g.constant(Array::from_strings([2], ["a", "bc"]).unwrap());
    let x = g.constant(Array::from([1f32, 3.0, 2.0]));
    let (_, indices) = x.top_k(2);
    let ids = indices.cast(DType::I64);
    let backwards = x.strided_slice(&[(-1, -4, -1)]);
    let text = written(&g, &[&words, &ids, &backwards]);
    assert!(text.contains(r#"Const = Const() dtype=DT_STRING value=["a", "bc"]"#), "{text}");
    assert!(text.contains("Cast = Cast(TopKV2:1) DstT=DT_INT64 SrcT=DT_INT32"), "{text}");
    // From 2 down to 0: the end is open, since -1 would be the last element.
    assert!(text.contains("StridedSlice/begin = Const() dtype=DT_INT32 value=[2]"), "{text}");
    assert!(text.contains("end_mask=1"), "{text}");
}

#[test]
fn an_assignment_waits_for_the_read() {
    let g = Graph::new();
    let mean = g.variable("mean", [2], Initializer::Zeros);
    let id = g.body().variables().find("mean").unwrap();
    let moved = g.node(Assign(id), &[&(&mean * 0.5)], Location::caller());
    let text = written(&g, &[&g.group(&[&moved])]);
    assert!(
        text.contains("Assign = AssignVariableOp(mean, Mul, ^mean/Read/ReadVariableOp) dtype=DT_FLOAT\n"),
        "{text}"
    );
    assert!(text.ends_with("NoOp = NoOp(^Assign)\n"), "{text}");
}

#[test]
fn equal_graphs_have_equal_bytes() {
    let bytes = || {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY, 3.into()]);
        let y = (x.reshape([-1, 3]).softmax() * &g.random_uniform([3])).sum();
        graph_def_bytes(&g.body(), &[y.value()]).unwrap()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn what_tensorflow_cannot_run_is_refused_by_name() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [3]);
    let twice = CustomOp::new("twice", [TensorSpec::new(DType::F32, [3])], |x| Ok(x.to_vec()));
    let y = g.node(estimand_graph::Op::Custom(twice), &[&x], Location::caller());
    let refused = graph_def(&g.body(), &[y.value()]).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("custom op `twice`"), "{refused}");

    let w = g.variable("w", [3], Initializer::Zeros);
    let train = Optimizer::new(Sgd::default(), 0.1).minimize(&(&w - &x).square().sum());
    let refused = graph_def(&g.body(), &[train.value()]).unwrap_err();
    assert!(refused.to_string().contains("SGD update of variable `w`"), "{refused}");
    // The same update as plain nodes.
    let plain = g.plain_train_op(&train).unwrap();
    let text = written(&g, &[&plain]);
    assert!(text.contains("= AssignVariableOp(w, "), "{text}");
}

#[test]
fn a_batch_that_nothing_brings_is_an_error() {
    let g = Graph::new();
    let ones = g.fill([Dim::BATCH], DType::F32, 1.0);
    let refused = graph_def(&g.body(), &[ones.value()]).unwrap_err();
    assert!(refused.to_string().contains("no placeholder has a batch axis"), "{refused}");
}
