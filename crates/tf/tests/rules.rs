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

/// TensorFlow refuses these: the axes a and b have other sizes in the other operand.
#[test]
fn axes_of_one_name_have_one_size() {
    for (equation, a, b) in [
        ("abij,abjk->abik", &[2, 3, 1, 2][..], &[3, 2, 2, 1][..]),
        ("abi,abk->ik", &[2, 3, 2], &[3, 2, 1]),
        ("ai,ak->aik", &[2, 2], &[1, 2]),
    ] {
        for known in [true, false] {
            let sizes = |dims: &[usize]| -> Vec<Option<usize>> { dims.iter().map(|&n| known.then_some(n)).collect() };
            let found = einsum(equation, (a, &sizes(a)), (b, &sizes(b)));
            assert!(found.is_err(), "{equation} of {a:?} and {b:?}, {known}: {}", found.unwrap());
        }
    }
}

fn bincount(ids: Array) -> Result<Array> {
    let node = NodeDef::new("", "DenseBincount").attr("binary_output", true);
    Model::of(node).rows(ids).constant(Array::scalar(4i64)).constant(Vec::<f32>::new()).run()
}

/// `tf.raw_ops.DenseBincount` with weights: an id occurs, whatever its weights are.
#[test]
fn whether_ids_occur_does_not_depend_on_their_weights() {
    let node = NodeDef::new("", "DenseBincount").attr("binary_output", true);
    let ids = Array::from_vec([2, 3], vec![0i64, 1, 1, 2, 0, 7]).unwrap();
    let weights = Array::from_vec([2, 3], vec![-2.0f32, 0.5, 0.25, 3.0, -4.0, 9.0]).unwrap();
    let found = Model::of(node).rows(ids).constant(Array::scalar(3i64)).constant(weights).run().unwrap();
    assert_eq!(found.as_slice::<f32>().unwrap(), [1., 1., 0., 1., 0., 1.]);
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

/// Numbers of Python's `math`, at places that f32 has exactly.
#[test]
fn functions_that_are_compositions_keep_their_digits() {
    let cases: &[(&str, &[(f64, f64)])] = &[
        (
            "Sinh",
            &[
                (-20.0, -242582597.70489514),
                (-0.5, -0.5210953054937474),
                (-0.0001220703125, -0.0001220703128031649),
                (0.0, 0.0),
                (1.25, 1.6019190803008256),
                (30.0, 5343237290762.231),
            ],
        ),
        (
            "Cosh",
            &[
                (-20.0, 242582597.70489514),
                (-0.5, 1.1276259652063807),
                (-0.0001220703125, 1.0000000074505806),
                (0.0, 1.0),
                (1.25, 1.8884238771610158),
                (30.0, 5343237290762.231),
            ],
        ),
        (
            "Tan",
            &[
                (-20.0, -2.237160944224742),
                (-3.0, 0.1425465430742778),
                (-0.0001220703125, -0.0001220703131063298),
                (0.0, 0.0),
                (1.25, 3.0095696738628313),
                (30.0, -6.405331196646276),
            ],
        ),
        (
            "Asinh",
            &[
                (-50.0, -4.605270170991424),
                (-0.5, -0.48121182505960347),
                (-0.0001220703125, -0.0001220703121968351),
                (0.0, 0.0),
                (1.25, 1.0475930126492587),
                (1000000000.0, 21.416413017506354),
            ],
        ),
        (
            "Acosh",
            &[
                (1.0, 0.0),
                (1.0009765625, 0.044190578083110096),
                (1.5, 0.9624236501192069),
                (10.0, 2.993222846126381),
                (1000000000.0, 21.416413017506354),
            ],
        ),
        (
            "Atanh",
            &[
                (-0.96875, -2.0715673631957663),
                (-0.5, -0.5493061443340548),
                (-0.0001220703125, -0.00012207031310632982),
                (0.0, 0.0),
                (0.25, 0.25541281188299536),
                (0.9990234375, 3.8120652928306447),
            ],
        ),
    ];
    for (op, places) in cases {
        for dtype in [DType::F32, DType::F64] {
            let x: Vec<f64> = places.iter().map(|place| place.0).collect();
            let x = Array::from(x).cast(dtype).unwrap();
            let found = Model::of(NodeDef::new("", *op)).rows(x).run().unwrap();
            assert_eq!(found.dtype(), dtype);
            let limit = if dtype == DType::F32 { 1e-6 } else { 1e-14 };
            for ((x, expected), found) in places.iter().zip(found.to_f64_vec().unwrap()) {
                let is_near = (found - expected).abs() <= limit * expected.abs();
                assert!(is_near, "{dtype}: {op} of {x} is {expected}, not {found}");
            }
        }
    }
    let ends = |op: &str| {
        let x = vec![f32::NEG_INFINITY, -2.0, 2.0, f32::INFINITY, f32::NAN];
        let found = Model::of(NodeDef::new("", op)).rows(x).run().unwrap();
        let words = found.to_f64_vec().unwrap().into_iter().map(|v| if v.is_finite() { 0.0 } else { v });
        words.map(|v| v.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ends("Sinh"), "-inf 0 0 inf NaN");
    assert_eq!(ends("Cosh"), "inf 0 0 inf NaN");
    assert_eq!(ends("Asinh"), "-inf 0 0 inf NaN");
    assert_eq!(ends("Acosh"), "NaN NaN 0 inf NaN");
    // Far below 1, the two terms of the sum cancel.
    let below = vec![0.5f32, -3e9, -1e30, f32::MIN];
    let below = Model::of(NodeDef::new("", "Acosh")).rows(below).run().unwrap();
    assert!(below.as_slice::<f32>().unwrap().iter().all(|y| y.is_nan()), "{below}");
    assert_eq!(ends("Atanh"), "NaN NaN NaN NaN NaN");
    let infinite = Model::of(NodeDef::new("", "IsInf")).rows(vec![f32::NEG_INFINITY, 1.0, f32::INFINITY, f32::NAN]);
    assert_eq!(infinite.run().unwrap().as_slice::<bool>().unwrap(), [true, false, true, false]);
}

/// `keras.ops.signbit` of Keras 3, which its `argmax` uses.
#[test]
fn the_sign_of_floats_is_read_from_their_bits() {
    let bits = || NodeDef::new("bits", "Bitcast").attr("T", DataType::Float).attr("type", DataType::Int32);
    let x = vec![-1.5f32, -0.0, 0.0, 2.0, f32::NEG_INFINITY, -1e-40, 1e-40];
    let of = |mask: i32| {
        let and = NodeDef::new("", "BitwiseAnd").attr("T", DataType::Int32).input("bits");
        let model = Model::of(bits()).rows(x.clone());
        let nodes = [model.nodes, vec![model.node]].concat();
        Model { nodes, node: and, feeds: model.feeds }.constant(Array::scalar(mask)).run()
    };
    let (set, none) = (i32::MIN, 0);
    assert_eq!(of(i32::MIN).unwrap().as_slice::<i32>().unwrap(), [set, set, none, none, set, set, none]);
    assert!(of(1).unwrap_err().to_string().contains("`and` of bits, but for the sign of f32"));
    let error = Model::of(bits()).rows(x.clone()).run().unwrap_err().to_string();
    assert!(error.contains("the bits of floats"), "{error}");
}

/// `tf.roll(tf.reshape(tf.range(6.), [2, 3]), shifts, axes)`.
#[test]
fn elements_roll_around() {
    let rolled = |shifts: Array, axes: Array| {
        let node = NodeDef::new("", "Roll");
        let found = Model::of(node).fed(count([2, 3]), Shape::from([2, 3])).constant(shifts).constant(axes).run();
        found.unwrap().to_f64_vec().unwrap()
    };
    assert_eq!(rolled(Array::scalar(1i32), Array::scalar(1i32)), [2.0, 0.0, 1.0, 5.0, 3.0, 4.0]);
    assert_eq!(rolled(Array::from([-1i64, 7]), Array::from([-1i64, 0])), [4.0, 5.0, 3.0, 1.0, 2.0, 0.0]);
    let open = Model::of(NodeDef::new("", "Roll")).rows(count([2, 3])).constant(Array::scalar(1i32));
    let error = open.constant(Array::scalar(0i32)).run().unwrap_err().to_string();
    assert!(error.contains("a roll of axis 0, whose size only a run tells"), "{error}");
}

/// TensorFlow refuses parts that are not the whole axis, which only a run tells here.
#[test]
fn parts_are_the_whole_axis() {
    let unpacked = |rows| Model::of(NodeDef::new("", "Unpack").attr("num", 2i64)).rows(count([rows, 2])).run();
    assert_eq!(unpacked(2).unwrap().as_slice::<f32>().unwrap(), [0., 1.]);
    let divided = |rows| {
        let node = NodeDef::new("", "SplitV").attr("num_split", 2i64);
        Model::of(node).rows(count([rows, 2])).constant(vec![1i64, 1]).constant(Array::scalar(0i32)).run()
    };
    assert_eq!(divided(2).unwrap().as_slice::<f32>().unwrap(), [0., 1.]);
    for found in [unpacked(3), divided(3), unpacked(1), divided(1)] {
        assert!(found.is_err(), "{}", found.unwrap());
    }
}

/// `tf.minimum(5, tf.maximum(5, x))` is 5 for each element of `x`; of a number it is one number.
#[test]
fn limits_keep_the_shape() {
    let limited = |x: Array| {
        let low = NodeDef::new("low", "Maximum").input("c0");
        Model::of(NodeDef::new("", "Minimum")).constant(Array::scalar(5i32)).beside(low, x).run().unwrap()
    };
    assert_eq!(limited(Array::from([7i32, -1, 5])), Array::from([5i32, 5, 5]));
    assert_eq!(limited(Array::scalar(7i32)), Array::scalar(5i32));
}

/// `x[first:last]` of 0 to 3, where the bounds are fed.
#[test]
fn bounds_below_zero_count_from_the_end() {
    let cut = |first: i32, last: i32| {
        let model = Model::of(NodeDef::new("", "StridedSlice")).rows(count([4]));
        let model = model.fed(Array::from([first]), Shape::from([1])).fed(Array::from([last]), Shape::from([1]));
        model.constant(vec![1i32]).run().unwrap().to_f64_vec().unwrap()
    };
    for (first, last, expected) in [
        (-2, 4, &[2.0, 3.0][..]),
        (0, -1, &[0.0, 1.0, 2.0]),
        (-3, -1, &[1.0, 2.0]),
        (-9, 2, &[0.0, 1.0]),
        (1, 9, &[1.0, 2.0, 3.0]),
        (-1, -3, &[]),
        (0, -9, &[]),
    ] {
        assert_eq!(cut(first, last), expected, "x[{first}:{last}]");
    }
}

/// A filter of 1 x 1 that sees two of four channels: filters 0 and 1 see the first two, 2 and 3 the
/// others. The pixel is 0, 1, 2, 3; filter f multiplies its channels by f and 10 f.
#[test]
fn filters_may_see_a_part_of_the_channels() {
    let convolved = |filter: Array| {
        let window = |key: &str| (key.to_string(), ListValue { i: vec![1; 4], ..ListValue::default() });
        let node = ["strides", "dilations"]
            .map(window)
            .into_iter()
            .fold(NodeDef::new("", "Conv2D").attr("padding", b"VALID".to_vec()), |node, (key, list)| {
                node.attr(&key, list)
            });
        Model::of(node).rows(count([1, 1, 1, 4])).constant(filter).run().unwrap().to_f64_vec().unwrap()
    };
    let halves = Array::from_vec([1, 1, 2, 4], vec![0f32, 1.0, 2.0, 3.0, 0.0, 10.0, 20.0, 30.0]).unwrap();
    // 0 * f + 1 * 10 f, and 2 * f + 3 * 10 f.
    assert_eq!(convolved(halves), [0.0, 10.0, 64.0, 96.0]);
    // One channel for each of four groups of two filters.
    let single = Array::from_vec([1, 1, 1, 8], (0..8).map(|f| f as f32).collect()).unwrap();
    assert_eq!(convolved(single), [0.0, 0.0, 2.0, 3.0, 8.0, 10.0, 18.0, 21.0]);
}
