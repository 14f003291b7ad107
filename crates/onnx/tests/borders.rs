//! Windows over images of unknown size: borders are numbers where they do not depend on the size,
//! since onnxruntime takes no dilations beside `auto_pad`.

use estimand_graph::{Graph, Padding, Tensor};
use estimand_onnx::message::{ModelProto, NodeProto};
use estimand_onnx::{Interface, Precision, Runner, onnx_model};
use estimand_tensor::{Array, DType, Dim, Result};

/// A graph with images of one channel and of unknown height and width.
fn image() -> (Graph, Tensor) {
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY, Graph::ANY, 1.into()]);
    (graph, x)
}

fn written(x: &Tensor, y: &Tensor) -> Result<ModelProto> {
    let one = |name: &str, tensor: &Tensor| vec![(name.to_string(), tensor.value())];
    let interface = Interface { inputs: one("x", x), outputs: one("y", y) };
    onnx_model(&x.graph().body(), &interface, |_| Array::zeros(DType::F32, []))
}

fn node(model: &ModelProto, op: &str) -> NodeProto {
    model.graph.iter().flat_map(|graph| &graph.node).find(|node| node.op_type == op).unwrap().clone()
}

/// The integers of an attribute; `None` if the node does not have it.
fn ints(node: &NodeProto, name: &str) -> Option<Vec<i64>> {
    node.attribute.iter().find(|one| one.name == name).map(|one| one.ints.clone())
}

fn run(model: &ModelProto, dims: [usize; 4], values: Vec<f32>) -> Array {
    let x = Array::from_vec(dims, values).unwrap();
    Runner::new(model, Precision::AsWritten).unwrap().run(&[("x", x)]).unwrap().remove(0).1
}

/// A filter of height 2 and width 3 with gaps of 1 and 2: (2 - 1) * 1 = 1 row of border, all of it
/// at the end, and (3 - 1) * 2 = 4 columns, 2 on each side.
#[test]
fn dilated_convolution() {
    let (graph, x) = image();
    let filter = graph.constant(Array::from_vec([2, 3, 1, 1], vec![1.0f32, 1.0, 1.0, 10.0, 10.0, 10.0]).unwrap());
    let model = written(&x, &x.conv2d_dilated(&filter, (1, 1), (1, 2), Padding::Same)).unwrap();
    let conv = node(&model, "Conv");
    assert_eq!(ints(&conv, "pads"), Some(vec![0, 2, 1, 2]));
    assert_eq!(ints(&conv, "auto_pad"), None);
    // A row [a, b, c, d, e] has the sums [a+c, b+d, a+c+e, b+d, c+e]; that below counts 10 times.
    let found = run(&model, [1, 2, 5, 1], (1..=10).map(|n| n as f32).collect());
    let (above, below) = ([4.0f32, 6.0, 9.0, 6.0, 8.0], [14.0f32, 16.0, 24.0, 16.0, 18.0]);
    let sums = above.iter().zip(below).map(|(a, b)| a + 10.0 * b).chain(below).collect();
    assert_eq!(found, Array::from_vec([1, 2, 5, 1], sums).unwrap());
}

/// Filters for each channel share the borders.
#[test]
fn dilated_depthwise_convolution() {
    let (graph, x) = image();
    let filter = graph.constant(Array::from_vec([1, 3, 1, 1], vec![1.0f32; 3]).unwrap());
    let model = written(&x, &x.depthwise_conv2d_dilated(&filter, (1, 1), (1, 3), Padding::Same)).unwrap();
    assert_eq!(ints(&node(&model, "Conv"), "pads"), Some(vec![0, 3, 0, 3]));
    // [a, b, c, d] with gaps of 3: [a+d, b, c, a+d].
    let found = run(&model, [1, 1, 4, 1], vec![1.0, 2.0, 3.0, 4.0]);
    assert_eq!(found, Array::from_vec([1, 1, 4, 1], vec![5.0f32, 2.0, 3.0, 5.0]).unwrap());
}

/// Windows that stay inside have no borders, and pooling by one pixel has those of its window.
#[test]
fn borders_are_numbers_unless_the_size_changes_them() {
    let (graph, x) = image();
    let filter = graph.constant(Array::from_vec([2, 2, 1, 1], vec![1.0f32; 4]).unwrap());
    let of = |y: Tensor, op: &str| node(&written(&x, &y).unwrap(), op);
    let inside = of(x.conv2d_dilated(&filter, (1, 1), (2, 2), Padding::Valid), "Conv");
    assert_eq!(ints(&inside, "pads"), Some(vec![0; 4]));
    let pool = of(x.max_pool((2, 3), (1, 1), Padding::Same), "MaxPool");
    assert_eq!(ints(&pool, "pads"), Some(vec![0, 1, 1, 1]));
    // Windows of 2 that move by 2 need a border only if the size is odd.
    let moved = of(x.conv2d(&filter, (2, 2), Padding::Same), "Conv");
    assert_eq!((ints(&moved, "pads"), ints(&moved, "auto_pad")), (None, Some(vec![])));
    let both = written(&x, &x.conv2d_dilated(&filter, (2, 2), (2, 2), Padding::Same)).unwrap_err().to_string();
    assert!(both.contains("the size of its image is known only at run time"), "{both}");
}

/// Windows that are smaller than their strides may end before the image does. The borders of
/// `auto_pad` are below 0 then: onnxruntime 1.31 refuses to pool, and a convolution of windows of 2
/// that move by 4, over 8 elements, begins at the second element instead of the first.
#[test]
fn windows_smaller_than_their_strides() {
    let (graph, x) = image();
    let filter = graph.constant(Array::from_vec([1, 2, 1, 1], vec![1.0f32, 10.0]).unwrap());
    let line = |n: usize| (1..=n).map(|i| i as f32).collect::<Vec<f32>>();
    let of = |y: &Tensor, n: usize| {
        let found = run(&written(&x, y).unwrap(), [1, 1, n, 1], line(n));
        found.as_slice::<f32>().unwrap().to_vec()
    };
    // 8 elements: windows at 1 and 5. 5 elements: the second window has a border after the image.
    let sums = x.conv2d(&filter, (1, 4), Padding::Same);
    assert_eq!(of(&sums, 8), [21.0, 65.0]);
    assert_eq!(of(&sums, 5), [21.0, 5.0]);
    assert_eq!(of(&sums, 3), [21.0]);
    assert_eq!(of(&x.max_pool((1, 2), (1, 3), Padding::Same), 6), [2.0, 5.0]);
    assert_eq!(of(&x.max_pool((1, 2), (1, 3), Padding::Same), 7), [2.0, 5.0, 7.0]);
    assert_eq!(of(&x.avg_pool((1, 2), (1, 3), Padding::Same), 6), [1.5, 4.5]);
    assert_eq!(of(&x.avg_pool((1, 2), (1, 3), Padding::Same), 7), [1.5, 4.5, 7.0]);
    // Windows of one element need no borders.
    let moved = x.max_pool((1, 1), (1, 2), Padding::Same);
    assert_eq!(of(&moved, 4), [1.0, 3.0]);
    assert_eq!(ints(&node(&written(&x, &moved).unwrap(), "MaxPool"), "pads"), Some(vec![0; 4]));
}
