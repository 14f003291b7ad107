//! Single nodes of exported graphs that are easy to read wrongly. Expected values are those of
//! TensorFlow 2.15.

use estimand_engine::Session;
use estimand_graph::{Axes, Graph};
use estimand_tensor::{Array, DType, Dim, Result, Shape};
use estimand_tf::graph_def::{Names, graph_def};
use estimand_tf::saved_model::read_graph_def;
use estimand_wire::{DataType, GraphDef, ListValue, NodeDef, TensorProto};

/// A node, the nodes that it reads, and what is fed.
struct Model {
    nodes: Vec<NodeDef>,
    node: NodeDef,
    feeds: Vec<(String, Shape, Array)>,
}

impl Model {
    fn of(node: NodeDef) -> Model {
        Model { nodes: Vec::new(), node, feeds: Vec::new() }
    }

    fn input(mut self, node: NodeDef) -> Model {
        self.node = self.node.input(node.name.clone());
        self.nodes.push(node);
        self
    }

    fn constant(self, value: impl Into<Array>) -> Model {
        let name = format!("c{}", self.nodes.len());
        self.input(constant(&name, value))
    }

    /// An input whose first axis is a batch.
    fn rows(self, value: impl Into<Array>) -> Model {
        let value = value.into();
        let mut shape = Shape::from(value.dims());
        shape.0[0] = Dim::BATCH;
        self.fed(value, shape)
    }

    fn fed(mut self, value: Array, shape: Shape) -> Model {
        let name = format!("x{}", self.nodes.len());
        self.feeds.push((name.clone(), shape, value.clone()));
        self.input(NodeDef::new(&name, "Placeholder").attr("dtype", DataType::from(value.dtype())))
    }

    /// An input that is a node of something fed, all of whose sizes are open.
    fn beside(mut self, node: NodeDef, value: Array) -> Model {
        let shape = value.dims().iter().map(|_| Graph::ANY).collect();
        let made = Model { nodes: self.nodes, node, feeds: self.feeds }.fed(value, shape);
        (self.nodes, self.feeds) = (made.nodes, made.feeds);
        self.input(made.node)
    }

    fn run(mut self) -> Result<Array> {
        self.node.name = "y".into();
        self.nodes.push(self.node);
        let def = GraphDef { node: self.nodes, ..GraphDef::default() };
        let inputs: Vec<(&str, Shape)> = self.feeds.iter().map(|(name, shape, _)| (&name[..], shape.clone())).collect();
        let read = read_graph_def(&def, &inputs, &["y"])?;
        let feeds: Vec<_> = self.feeds.iter().map(|(name, _, value)| (&read.inputs[name], value.clone())).collect();
        Ok(Session::new(&read.graph)?.run(&[&read.outputs["y"]], &feeds)?.remove(0))
    }
}

fn constant(name: &str, value: impl Into<Array>) -> NodeDef {
    let value = value.into();
    let node = NodeDef::new(name, "Const").attr("dtype", DataType::from(value.dtype()));
    node.attr("value", TensorProto::from_array(&value))
}

fn count(dims: impl Into<Vec<usize>>) -> Array {
    let dims = dims.into();
    let n = dims.iter().product::<usize>();
    Array::from_vec(&dims, (0..n).map(|i| i as f32).collect()).unwrap()
}

fn letters(dims: &[usize]) -> Array {
    let all: Vec<String> = ('a'..).take(dims.iter().product()).map(String::from).collect();
    Array::from_strings(dims, &all).unwrap()
}

fn strings(array: &Array) -> Vec<String> {
    array.strings().unwrap().map(|s| String::from_utf8(s.to_vec()).unwrap()).collect()
}

/// `tf.strings.reduce_join` without axes writes them from the last to the first.
const JOINS: [(&[usize], &[i64], &[&str]); 6] = [
    (&[2, 2], &[1, 0], &["abcd"]),
    (&[2, 2], &[0, 1], &["acbd"]),
    (&[2, 2, 2], &[2, 1, 0], &["abcdefgh"]),
    (&[2, 2, 2], &[2, 0], &["abef", "cdgh"]),
    (&[2, 2, 2], &[0, 2], &["aebf", "cgdh"]),
    (&[2, 2, 2], &[1, 2, 0], &["acbdegfh"]),
];

#[test]
fn joined_axes_keep_their_order() {
    for (dims, axes, expected) in JOINS {
        let node = NodeDef::new("", "ReduceJoin").attr("keep_dims", false).attr("separator", b"".to_vec());
        let found = Model::of(node).rows(letters(dims)).constant(axes.to_vec()).run().unwrap();
        assert_eq!(strings(&found), expected, "{axes:?}");
    }
    let twice = Model::of(NodeDef::new("", "ReduceJoin")).rows(letters(&[2, 2])).constant(vec![1i64, -1]);
    assert!(twice.run().unwrap_err().to_string().contains("axis 1 is given twice"));
}

/// What our writer writes for a join, the reader reads.
#[test]
fn joined_axes_are_written_in_their_order() {
    for (dims, axes, expected) in JOINS {
        let graph = Graph::new();
        let x = graph.placeholder("x", DType::Str, Shape::from(dims));
        let y = x.reduce_join(Axes::of(axes.to_vec()), "");
        let body = graph.body();
        let name = Names::new(&body).tensor(y.value());
        let written = graph_def(&body, &[y.value()]).unwrap();
        let read = read_graph_def(&written, &[("x", Shape::from(dims))], &[&name]).unwrap();
        for (graph, x, y) in [(&graph, &x, &y), (&read.graph, &read.inputs["x"], &read.outputs[&name])] {
            let found = Session::new(graph).unwrap().run(&[y], &[(x, letters(dims))]).unwrap().remove(0);
            assert_eq!(strings(&found), expected, "{axes:?}");
        }
    }
}

fn einsum(equation: &str, a: (&[usize], &[Option<usize>]), b: (&[usize], &[Option<usize>])) -> Result<Array> {
    let open = |sizes: &[Option<usize>]| sizes.iter().map(|size| size.map_or(Graph::ANY, Dim::Known)).collect();
    let node = NodeDef::new("", "Einsum").attr("equation", equation).attr("N", 2i64);
    Model::of(node).fed(count(a.0), open(a.1)).fed(count(b.0), open(b.1)).run()
}

/// (equation, sizes of the left operand, of the right one, of the result, result)
type Sum = (&'static str, &'static [usize], &'static [usize], &'static [usize], &'static [f32]);

/// The operands count up from 0.
#[test]
fn ellipses_are_aligned_at_their_last_axis() {
    let cases: &[Sum] = &[
        ("...ij,...jk->...ik", &[2, 2, 1, 2], &[2, 2, 1], &[2, 2, 1, 1], &[1., 13., 5., 33.]),
        ("...ij,...jk->...ik", &[1, 1, 2], &[2, 2, 1], &[2, 1, 1], &[1., 3.]),
        ("...ij,...jk->...ik", &[3, 1, 1, 2], &[2, 2, 1], &[3, 2, 1, 1], &[1., 3., 3., 13., 5., 23.]),
        ("...i,...i->...", &[2, 1, 2], &[3, 2], &[2, 3], &[1., 3., 5., 3., 13., 23.]),
        ("...i,i...->...", &[3, 2], &[2, 2, 1], &[2, 3], &[2., 6., 10., 3., 11., 19.]),
        ("...ij,...jk->...ik", &[2, 1, 1, 2], &[1, 2, 2, 1], &[2, 2, 1, 1], &[1., 3., 3., 13.]),
    ];
    for (equation, a, b, dims, expected) in cases {
        for known in [true, false] {
            let sizes = |dims: &[usize]| -> Vec<Option<usize>> { dims.iter().map(|&n| known.then_some(n)).collect() };
            let found = einsum(equation, (a, &sizes(a)), (b, &sizes(b))).unwrap();
            let place = format!("{equation} of {a:?} and {b:?}, {known}");
            assert_eq!((found.dims(), found.as_slice::<f32>().unwrap()), (*dims, *expected), "{place}");
        }
    }
    let known = |dims: &[usize]| dims.iter().map(|&n| Some(n)).collect::<Vec<_>>();
    // TensorFlow refuses both.
    for (equation, a, b, part) in [
        ("...i,...i->i", [2, 2], [1, 2], "which the result does not have"),
        ("...i,...i->...", [2, 2], [3, 2], "an axis of `...` has the sizes 2 and 3"),
    ] {
        let error = einsum(equation, (&a, &known(&a)), (&b, &known(&b))).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

fn bincount(ids: Array) -> Result<Array> {
    let node = NodeDef::new("", "DenseBincount").attr("binary_output", true);
    Model::of(node).rows(ids).constant(Array::scalar(4i64)).constant(Vec::<f32>::new()).run()
}

/// TensorFlow's op counts an id below 0 in the row before its own, which a layer's assertion
/// prevents. In a list it refuses such an id.
#[test]
fn ids_below_zero_are_not_counted_for_others() {
    let found = bincount(Array::from_vec([2, 2], vec![0i64, 1, 7, 2]).unwrap()).unwrap();
    assert_eq!(found.as_slice::<f32>().unwrap(), [1., 1., 0., 0., 0., 0., 1., 0.]);
    for dims in [&[2, 2][..], &[4]] {
        let error = bincount(Array::from_vec(dims, vec![0i64, 1, -1, 2]).unwrap()).unwrap_err();
        assert!(error.to_string().contains("is not in [0, "), "{error}");
    }
    let ragged = NodeDef::new("", "RaggedBincount");
    let ragged = Model::of(ragged).constant(vec![0i64, 2, 4]).rows(vec![0i64, 1, -1, 2]);
    let error = ragged.constant(Array::scalar(4i64)).constant(Vec::<f32>::new()).run().unwrap_err();
    assert!(error.to_string().contains("is not in [0, "), "{error}");
}

/// `[[1, 2, 3], [4], [5, 6]]` with a shape, filled with 9. The shape is known, fed, or computed
/// from the size of an axis.
#[test]
fn ragged_rows_are_cut_and_filled() {
    let nine = 9f32;
    let cases: &[(&[i64], &[f32])] = &[
        (&[4, 2], &[1., 2., 4., nine, 5., 6., nine, nine]),
        (&[2, 2], &[1., 2., 4., nine]),
        (&[3, 5], &[1., 2., 3., 9., 9., 4., 9., 9., 9., 9., 5., 6., 9., 9., 9.]),
        (&[0, 0], &[]),
    ];
    let kinds = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| kind.as_bytes().to_vec()).collect();
        ListValue { s: kinds, ..ListValue::default() }
    };
    for (dims, expected) in cases {
        for (i, has_ids) in (0..6).map(|i| (i / 2, i % 2 == 0)) {
            let types = if has_ids { kinds(&["FIRST_DIM_SIZE", "VALUE_ROWIDS"]) } else { kinds(&["ROW_SPLITS"]) };
            let model = Model::of(NodeDef::new("", "RaggedTensorToTensor").attr("row_partition_types", types));
            let dims = dims.to_vec();
            let sizes: Vec<usize> = dims.iter().map(|&n| n as usize).collect();
            let model = match i {
                0 => model.constant(dims.clone()),
                1 => model.fed(Array::from(dims.clone()), Shape::from([2])),
                _ => {
                    let shape = NodeDef::new("shape", "Shape").attr("out_type", DataType::Int64);
                    model.beside(shape, count(&sizes[..]))
                }
            };
            let model = model.rows(vec![1f32, 2., 3., 4., 5., 6.]).constant(Array::scalar(nine));
            let model = match has_ids {
                true => model.constant(Array::scalar(3i64)).constant(vec![0i64, 0, 0, 1, 2, 2]),
                false => model.fed(Array::from(vec![0i64, 3, 4, 6]), Shape::from([Graph::ANY])),
            };
            let place = format!("{dims:?}, form {i}, ids: {has_ids}");
            let found = model.run().unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(found.as_slice::<f32>().unwrap(), *expected, "{place}");
            assert_eq!(found.dims(), sizes, "{place}");
        }
    }
    // `RaggedTensor.to_tensor` without a shape writes one number.
    let node = NodeDef::new("", "RaggedTensorToTensor").attr("row_partition_types", kinds(&["ROW_SPLITS"]));
    let model = Model::of(node).constant(Array::scalar(-1i64)).rows(vec![1f32, 2., 3., 4., 5., 6.]);
    let found = model.constant(Array::scalar(nine)).constant(vec![0i64, 3, 4, 6]).run().unwrap();
    assert_eq!(found.as_slice::<f32>().unwrap(), [1., 2., 3., 4., 9., 9., 5., 6., 9.]);
}

#[test]
fn places_of_the_largest_have_the_dtype_that_is_asked_for() {
    for (index_type, dtype) in [(DataType::Int32, DType::I32), (DataType::Int64, DType::I64)] {
        let node = NodeDef::new("top", "TopKV2").attr("index_type", index_type);
        let top = Model::of(node).rows(Array::from_vec([1, 4], vec![3f32, 9., 1., 4.]).unwrap());
        let mut top = top.constant(Array::scalar(2i32));
        top.nodes.push(std::mem::replace(&mut top.node, NodeDef::new("", "Identity").input("top:1")));
        let found = top.run().unwrap();
        assert_eq!((found.dtype(), found.to_f64_vec().unwrap()), (dtype, vec![1.0, 3.0]));
    }
}

/// Numbers of `tf.math.erfc`, computed in f64.
#[test]
fn the_complement_of_the_error_function_keeps_its_digits() {
    let cases: &[(f64, f64)] = &[
        (-5.0, 1.9999999999984626),
        (-3.0, 1.9999779095030015),
        (-1.5, 1.9661051464753108),
        (-0.5, 1.5204998778130465),
        (-0.25, 1.276326390168237),
        (0.0, 1.0),
        (0.25, 0.7236736098317631),
        (0.5, 0.4795001221869535),
        (0.75, 0.28884436634648486),
        (1.0, 0.15729920705028513),
        (1.5, 0.033894853524689274),
        (2.5, 0.0004069520174449589),
        (3.25, 4.302779463675122e-06),
        (4.0, 1.541725790028002e-08),
        (5.0, 1.5374597944280351e-12),
        (6.5, 3.8421483271206475e-20),
        (8.0, 1.1224297172982928e-29),
        (9.0, 4.13703174651381e-37),
    ];
    for dtype in [DType::F32, DType::F64] {
        let x: Vec<f64> = cases.iter().map(|case| case.0).collect();
        let x = Array::from(x).cast(dtype).unwrap();
        let found = Model::of(NodeDef::new("", "Erfc")).rows(x).run().unwrap();
        assert_eq!(found.dtype(), dtype);
        let limit = if dtype == DType::F32 { 1e-6 } else { 1e-8 };
        for ((x, expected), found) in cases.iter().zip(found.to_f64_vec().unwrap()) {
            assert!((found - expected).abs() <= limit * expected, "{dtype}: erfc({x}) is {expected}, not {found}");
        }
    }
    let ends = Model::of(NodeDef::new("", "Erfc")).rows(vec![f32::NEG_INFINITY, f32::INFINITY, 12.0, f32::NAN]);
    let ends = ends.run().unwrap();
    let ends = ends.as_slice::<f32>().unwrap();
    assert_eq!(ends[..3], [2.0, 0.0, 0.0]);
    assert!(ends[3].is_nan());
}
