//! Small files that ask for much: each is refused quickly, by an error that names the limit, and
//! how to raise it.

use std::time::Instant;

use estimand_engine::Session;
use estimand_tensor::{Array, Dim, Shape};
use estimand_tf::saved_model::{ReadLimits, SavedModel, read_graph_def, read_graph_def_within};
use estimand_wire::{
    AttrValue, DataType, FunctionDef, FunctionDefLibrary, GraphDef, ListValue, Message, MetaGraphDef, NameAttrList,
    NodeDef, SavedModel as SavedModelProto, TensorProto, TensorShapeProto,
};

fn placeholder() -> NodeDef {
    NodeDef::new("x", "Placeholder").attr("dtype", DataType::Float)
}

fn number(name: &str, value: i32) -> NodeDef {
    let value = TensorProto { int_val: vec![value], ..shaped(DataType::Int32, &[]) };
    NodeDef::new(name, "Const").attr("dtype", DataType::Int32).attr("value", value)
}

fn shaped(dtype: DataType, sizes: &[i64]) -> TensorProto {
    TensorProto {
        dtype: dtype.into(),
        tensor_shape: Some(TensorShapeProto::of(sizes.iter().copied())),
        ..Default::default()
    }
}

fn graph(node: Vec<NodeDef>) -> GraphDef {
    GraphDef { node, ..Default::default() }
}

/// `y = ConcatV2(y, y, axis)`, `n` times.
fn doubled(n: usize, axis: i32) -> GraphDef {
    let mut nodes = vec![placeholder(), number("axis", axis)];
    let mut last = "x".to_string();
    for i in 0..n {
        let name = format!("y{i}");
        let def = NodeDef::new(&name, "ConcatV2").input(&last).input(&last).input("axis");
        nodes.push(def.attr("N", 2i64).attr("T", DataType::Float).attr("Tidx", DataType::Int32));
        last = name;
    }
    graph(nodes)
}

#[test]
fn sixty_joins_of_a_tensor_with_itself() {
    let clock = Instant::now();
    for axis in [0, 1] {
        let def = doubled(60, axis);
        assert!(def.encode_to_vec().len() < 8000);
        for sizes in [[Dim::BATCH, 1.into()], [Dim::BATCH, estimand_graph::Graph::ANY]] {
            let error = read_graph_def(&def, &[("x", Shape::from(sizes))], &["y59"]).unwrap_err().to_string();
            // 2^29 is the first size above 2^28.
            assert!(error.contains("node `y28` (ConcatV2)"), "{error}");
            assert!(error.contains("536870912 elements for each row of a batch; the limit is 268435456"), "{error}");
            assert!(error.contains("ReadLimits::default().elements("), "{error}");
            // Without the limit it is read, and refused when it runs.
            let limits = ReadLimits::default().elements(usize::MAX);
            match read_graph_def_within(&def, &[("x", Shape::from(sizes))], &["y59"], &limits) {
                Err(error) => assert!(error.to_string().contains("address space"), "{error}"),
                Ok(read) => {
                    let mut session = Session::new(&read.graph).unwrap();
                    let feed = Array::zeros(estimand_tensor::DType::F32, [16, 1]).unwrap();
                    let error = session.run(&[&read.outputs["y59"]], &[(&read.inputs["x"], feed)]).unwrap_err();
                    let error = error.to_string();
                    assert!(error.contains("`y5") || error.contains("`y6"), "{error}");
                    assert!(error.contains("overflows") || error.contains("address space"), "{error}");
                }
            }
        }
    }
    assert!(clock.elapsed().as_secs() < 20);
}

#[test]
fn a_few_joins_are_read_and_run() {
    let read = read_graph_def(&doubled(4, 0), &[("x", Shape::from([Dim::BATCH]))], &["y3"]).unwrap();
    let feeds = [(&read.inputs["x"], Array::from([1f32, 2.0]))];
    let y = Session::new(&read.graph).unwrap().run(&[&read.outputs["y3"]], &feeds).unwrap();
    // Two elements, doubled four times.
    assert_eq!(y[0].len(), 32);
}

#[test]
fn too_many_nodes_and_functions() {
    let many = graph((0..100).map(|i| NodeDef::new(format!("n{i}"), "NoOp")).collect());
    let error = read_graph_def_within(&many, &[], &["n0"], &ReadLimits::default().nodes(99)).unwrap_err().to_string();
    assert!(error.contains("100 nodes; the limit is 99") && error.contains(".nodes("), "{error}");
    let function = FunctionDef { node_def: vec![NodeDef::default(); 10], ..Default::default() };
    let library = FunctionDefLibrary { function: vec![function; 20], ..Default::default() };
    let with_functions = GraphDef { library: Some(library), ..Default::default() };
    let bytes = with_functions.encode_to_vec();
    let error = ReadLimits::default().functions(19).decode_graph_def(&bytes).unwrap_err().to_string();
    assert!(error.contains("20 functions; the limit is 19"), "{error}");
    // Nodes inside of functions count.
    let error = ReadLimits::default().nodes(199).decode_graph_def(&bytes).unwrap_err().to_string();
    assert!(error.contains("200 nodes; the limit is 199"), "{error}");
    assert_eq!(ReadLimits::default().nodes(200).functions(20).decode_graph_def(&bytes).unwrap(), with_functions);
}

/// An empty tensor takes two bytes in a file and hundreds in memory.
#[test]
fn lists_of_empty_values() {
    let list = ListValue { tensor: vec![TensorProto::default(); 5000], ..Default::default() };
    let bytes = graph(vec![NodeDef::new("n", "NoOp").attr("list", list)]).encode_to_vec();
    let error = ReadLimits::default().attribute_values(5000).decode_graph_def(&bytes).unwrap_err().to_string();
    // The attribute itself, and what is in its list.
    assert!(error.contains("5001 values of attributes; the limit is 5000"), "{error}");
    assert!(ReadLimits::default().attribute_values(5001).decode_graph_def(&bytes).is_ok());
}

#[test]
fn messages_inside_of_messages() {
    // To write 2,000 of them takes the test a large stack, with debug assertions above all.
    std::thread::Builder::new().stack_size(256 << 20).spawn(read_nested_messages).unwrap().join().unwrap();
}

fn read_nested_messages() {
    let nested = |depth: usize| {
        let mut function = NameAttrList::default();
        for _ in 0..depth {
            let attr = AttrValue::from(function);
            function = NameAttrList { name: "f".into(), attr: [("g".to_string(), attr)].into() };
        }
        graph(vec![NodeDef::new("n", "NoOp").attr("f", function)]).encode_to_vec()
    };
    assert!(ReadLimits::default().decode_graph_def(&nested(10)).is_ok());
    for depth in [60, 2000] {
        let error = ReadLimits::default().decode_graph_def(&nested(depth)).unwrap_err().to_string();
        assert!(error.contains("recursion limit"), "{error}");
    }
}

#[test]
fn constants_that_repeat() {
    // One value for 2^40 elements.
    let huge = TensorProto { float_val: vec![1.0], ..shaped(DataType::Float, &[1 << 40]) };
    let constant = |name: &str, value: &TensorProto| {
        NodeDef::new(name, "Const").attr("dtype", DataType::Float).attr("value", value.clone())
    };
    let error = read_graph_def(&graph(vec![constant("c", &huge)]), &[], &["c"]).unwrap_err().to_string();
    assert!(error.contains("4398046511") && error.contains("the limit is 1073741824"), "{error}");
    assert!(error.contains("node `c`") && error.contains(".repeated_bytes("), "{error}");
    // Each is small enough, all together are not: 100 constants of 16 MiB.
    let large = TensorProto { float_val: vec![1.0], ..shaped(DataType::Float, &[4 << 20]) };
    let mut nodes: Vec<NodeDef> = (0..100).map(|i| constant(&format!("c{i}"), &large)).collect();
    let sum = nodes.iter().fold(NodeDef::new("sum", "AddN"), |sum, c| sum.input(c.name.as_str()));
    nodes.push(sum.attr("N", 100i64).attr("T", DataType::Float));
    let error = read_graph_def(&graph(nodes), &[], &["sum"]).unwrap_err().to_string();
    assert!(error.contains("bytes of repeated constants; the limit is 1073741824"), "{error}");
}

#[test]
fn a_saved_model_is_checked_before_it_is_decoded() {
    let folder = std::env::temp_dir().join(format!("estimand-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let meta_graph = MetaGraphDef { graph_def: Some(graph(vec![NodeDef::default(); 50])), ..Default::default() };
    let model = SavedModelProto { meta_graphs: vec![meta_graph], ..Default::default() };
    let bytes = model.encode_to_vec();
    std::fs::write(folder.join("saved_model.pb"), &bytes).unwrap();
    let open = |limits: ReadLimits| SavedModel::open_within(&folder, limits).map(drop).unwrap_err().to_string();
    let error = open(ReadLimits::default().nodes(49));
    assert!(error.contains("50 nodes; the limit is 49") && error.contains("saved_model.pb"), "{error}");
    let error = open(ReadLimits::default().file_bytes(10));
    assert!(error.contains(&format!("{} bytes in the file; the limit is 10", bytes.len())), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Inputs that must be constant are computed while the graph is read.
#[test]
fn constants_that_are_computed_again_and_again() {
    // A chain of 200 sums of a list too long to be followed, and 200 reshapes by the end of it.
    let list = TensorProto { int_val: vec![1], ..shaped(DataType::Int32, &[100]) };
    let mut nodes = vec![NodeDef::new("c0", "Const").attr("dtype", DataType::Int32).attr("value", list)];
    for i in 1..200 {
        let before = format!("c{}", i - 1);
        let sum = NodeDef::new(format!("c{i}"), "AddV2").input(before.as_str()).input(before.as_str());
        nodes.push(sum.attr("T", DataType::Int32));
    }
    for i in 0..200 {
        let tile = NodeDef::new(format!("t{i}"), "Transpose").input("c199").input(format!("c{i}"));
        nodes.push(tile.attr("T", DataType::Int32).attr("Tperm", DataType::Int32));
    }
    let error = read_graph_def_within(&graph(nodes), &[], &["t150"], &ReadLimits::default().evaluated_nodes(100));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("nodes to compute while reading; the limit is 100"), "{error}");
}

fn integers(name: &str, dtype: DataType, sizes: &[i64], values: &[i64]) -> NodeDef {
    let mut value = shaped(dtype, sizes);
    match dtype {
        DataType::Int32 => value.int_val = values.iter().map(|&n| n as i32).collect(),
        _ => value.int64_val = values.to_vec(),
    }
    NodeDef::new(name, "Const").attr("dtype", dtype).attr("value", value)
}

fn identity(of: &str) -> NodeDef {
    NodeDef::new("y", "Identity").input(of)
}

/// The error of a small graph with the output `y` and an input `x` of these sizes.
fn refused(nodes: Vec<NodeDef>, x: &Shape) -> String {
    let def = graph(nodes);
    assert!(def.encode_to_vec().len() < 1000);
    let clock = Instant::now();
    let has_x = def.node.iter().any(|node| node.name == "x");
    let inputs = [("x", x.clone())];
    let read = read_graph_def(&def, if has_x { &inputs } else { &[] }, &["y"]);
    assert!(clock.elapsed().as_secs() < 10);
    read.unwrap_err().to_string()
}

/// Each part is a node of ours, so an attribute asks for any number of nodes.
#[test]
fn tensors_of_many_parts() {
    let unpack = |n: i64, axis: i64| {
        let unpack = NodeDef::new("u", "Unpack").input("x").attr("num", n).attr("axis", axis);
        vec![placeholder(), unpack.attr("T", DataType::Float), identity("u")]
    };
    let split = |n: i64| {
        let split = NodeDef::new("u", "Split").input("axis").input("x").attr("num_split", n);
        vec![placeholder(), number("axis", 0), split.attr("T", DataType::Float), identity("u")]
    };
    for n in [1 << 62, 1 << 40, 1 << 26] {
        let limit = format!("{} nodes with those for the parts of tensors; the limit is 1000000", 2 * n as u64 + 3);
        let error = refused(unpack(n, 0), &Shape::from([Dim::BATCH, 4.into()]));
        assert!(error.contains(&limit) && error.contains("node `u` (Unpack)"), "{error}");
        assert!(error.contains("ReadLimits::default().nodes("), "{error}");
        // An axis of a known size tells the number of parts.
        let error = refused(unpack(n, 1), &Shape::from([Dim::BATCH, 4.into()]));
        assert!(error.contains(&format!("{n} parts of size 1 along axis 1 of f32[batch, 4]")), "{error}");
        // A shape costs nothing, so a large one allows nothing.
        if n <= 1 << 40 {
            let error = refused(unpack(n, 1), &Shape::from([Dim::BATCH, (n as usize).into()]));
            assert!(error.contains(&limit), "{error}");
        }
        // Any number of parts of size 0 is an axis of size 0.
        let error = refused(split(n), &Shape::from([0]));
        assert!(error.contains("the limit is 1000000") && error.contains("node `u` (Split)"), "{error}");
    }
    // The parts of several nodes count together.
    let mut many = vec![placeholder(), NodeDef::new("y", "AddN").attr("N", 4i64).attr("T", DataType::Float)];
    for i in 0..4 {
        let name = format!("u{i}");
        many.push(NodeDef::new(&name, "Unpack").input("x").attr("num", 30i64).attr("T", DataType::Float));
        many[1].input.push(name);
    }
    let read = |limit: usize| {
        let limits = ReadLimits::default().nodes(limit);
        read_graph_def_within(&graph(many.clone()), &[("x", Shape::from([Dim::BATCH]))], &["y"], &limits)
    };
    // Six nodes, and a slice and a reshape for each of 120 parts.
    let error = read(245).unwrap_err().to_string();
    assert!(error.contains("246 nodes with those for the parts of tensors; the limit is 245"), "{error}");
    assert!(read(246).is_ok());
}

/// A tensor without elements may have an axis of any size, and a slice of tracked numbers lists the
/// places along each axis. TensorFlow 2.15 answers with the shape `[0, 2^40]` without the memory.
#[test]
fn slices_of_empty_tensors() {
    let slice = |of: Vec<NodeDef>| {
        let bounds = ["b", "e", "s"].into_iter().zip([0, 0, 1]);
        let mut nodes = of;
        nodes.extend(bounds.map(|(name, n)| integers(name, DataType::Int32, &[1], &[n])));
        let slice = NodeDef::new("y", "StridedSlice").input("c").input("b").input("e").input("s");
        nodes.push(slice.attr("T", DataType::Int32).attr("Index", DataType::Int32).attr("end_mask", 1i64));
        let clock = Instant::now();
        let read = read_graph_def(&graph(nodes), &[], &["y"]).unwrap();
        let y = Session::new(&read.graph).unwrap().run(&[&read.outputs["y"]], &[]).unwrap();
        assert!(clock.elapsed().as_secs() < 10);
        y[0].dims().to_vec()
    };
    assert_eq!(slice(vec![integers("c", DataType::Int32, &[0, 1 << 40], &[])]), [0, 1 << 40]);
    let fill = NodeDef::new("c", "Fill").input("d").input("v").attr("T", DataType::Int32);
    let sizes = integers("d", DataType::Int32, &[2], &[0, 1 << 30]);
    assert_eq!(slice(vec![sizes, number("v", 1), fill]), [0, 1 << 30]);
    let reshape = NodeDef::new("c", "Reshape").input("l").input("d").attr("T", DataType::Int32);
    let list = integers("l", DataType::Int32, &[0], &[]);
    assert_eq!(slice(vec![list, integers("d", DataType::Int32, &[2], &[0, 1 << 30]), reshape]), [0, 1 << 30]);
}

/// Numbers of a file at which arithmetic overflows. None of them is a panic.
#[test]
fn numbers_that_overflow() {
    // 64 elements as eleven axes of unknown size, of which TensorFlow allows one.
    let reshape = NodeDef::new("c", "Reshape").input("d").input("v").attr("T", DataType::Int32);
    let list = integers("d", DataType::Int32, &[64], &[1; 64]);
    let sizes = integers("v", DataType::Int32, &[11], &[-1; 11]);
    let error = refused(vec![list, sizes, reshape, identity("c")], &Shape::scalar());
    assert!(error.contains("node `c` (Reshape)"), "{error}");
    // From -2^63 in steps of 2^62 below 2^63 - 1. TensorFlow's own count overflows: it answers with
    // the first number alone.
    let [a, b, d] = [("a", i64::MIN), ("b", i64::MAX), ("d", 1 << 62)]
        .map(|(name, value)| integers(name, DataType::Int64, &[], &[value]));
    let range = NodeDef::new("c", "Range").input("a").input("b").input("d").attr("Tidx", DataType::Int64);
    let read = read_graph_def(&graph(vec![a, b, d, range, identity("c")]), &[], &["y"]).unwrap();
    let y = Session::new(&read.graph).unwrap().run(&[&read.outputs["y"]], &[]).unwrap();
    assert_eq!(y[0].as_slice::<i64>().unwrap(), [i64::MIN, -(1 << 62), 0, 1 << 62]);
    // The rest of an axis of size 4 after a part of size -2^63.
    let sizes = integers("z", DataType::Int64, &[2], &[i64::MIN, -1]);
    let split = NodeDef::new("u", "SplitV").input("x").input("z").input("axis").attr("num_split", 2i64);
    let nodes = vec![placeholder(), sizes, number("axis", 1), split.attr("T", DataType::Float), identity("u")];
    let error = refused(nodes, &Shape::from([Dim::BATCH, 4.into()]));
    assert!(error.contains("the size of a part is negative") && error.contains("node `u` (SplitV)"), "{error}");
}
