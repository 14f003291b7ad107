//! Graphs that change variables and tables: those that read what they change are refused, because
//! the answer would be that of the checkpoint. A change that no output sees is left out.
//!
//! Live beside TensorFlow: `Counters` and the batch normalizations of
//! `oracles/live/saved_model_v2.py`.

use estimand_engine::Session;
use estimand_tensor::{Array, Dim, Result, Shape};
use estimand_tf::saved_model::{ReadGraph, read_graph_def};
use estimand_wire::function_def::{ArgDef, OpDef};
use estimand_wire::{
    DataType, FunctionDef, FunctionDefLibrary, GraphDef, NameAttrList, NodeDef, TensorProto, TensorShapeProto,
};

fn named(name: &str) -> NameAttrList {
    NameAttrList { name: name.into(), ..NameAttrList::default() }
}

/// A function of `x` and the variables `a` and `n`. It returns a float, and what it is given as a
/// loop must.
fn function(name: &str, nodes: Vec<NodeDef>, results: &[(&str, DataType, &str)]) -> FunctionDef {
    let arg = |name: &str, dtype: DataType| ArgDef { name: name.into(), r#type: dtype.into(), ..ArgDef::default() };
    let arguments = [("x", DataType::Float), ("a", DataType::Resource), ("n", DataType::Resource)];
    let signature = OpDef {
        name: name.into(),
        input_arg: arguments.iter().map(|(name, dtype)| arg(name, *dtype)).collect(),
        output_arg: results.iter().map(|(name, dtype, _)| arg(name, *dtype)).collect(),
        ..OpDef::default()
    };
    let ret = results.iter().map(|(name, _, value)| (name.to_string(), value.to_string())).collect();
    FunctionDef { signature: Some(signature), node_def: nodes, ret, ..FunctionDef::default() }
}

const Y: [(&str, DataType, &str); 1] = [("y", DataType::Float, "y:z:0")];

fn float(name: &str, value: f32) -> NodeDef {
    let value = TensorProto {
        dtype: DataType::Float.into(),
        tensor_shape: Some(TensorShapeProto::of([])),
        float_val: vec![value],
        ..TensorProto::default()
    };
    NodeDef::new(name, "Const").attr("dtype", DataType::Float).attr("value", value)
}

fn read_of(variable: &str, after: &str) -> NodeDef {
    let read = NodeDef::new("read", "ReadVariableOp").input(variable).attr("dtype", DataType::Float);
    if after.is_empty() { read } else { read.input(after) }
}

fn write_to(op: &str, variable: &str) -> Vec<NodeDef> {
    vec![float("four", 4.0), NodeDef::new("write", op).input(variable).input("four:output:0")]
}

/// `y = x + read`.
fn sum() -> NodeDef {
    NodeDef::new("y", "AddV2").input("x").input("read:value:0").attr("T", DataType::Float)
}

/// The input `x`, the variables `first` and `second`, and a node of the call's op that gets them.
fn graph(call: NodeDef, functions: Vec<FunctionDef>) -> GraphDef {
    let variable = |name: &str, shared: &str| {
        let shape = TensorShapeProto::of([]);
        let def = NodeDef::new(name, "VarHandleOp").attr("dtype", DataType::Float).attr("shape", shape);
        def.attr("shared_name", shared)
    };
    let node = vec![
        NodeDef::new("x", "Placeholder").attr("dtype", DataType::Float),
        variable("var0", "first"),
        variable("var1", "second"),
        call.input("x").input("var0").input("var1"),
        NodeDef::new("out", "Identity").input("call").attr("T", DataType::Float),
    ];
    let library = FunctionDefLibrary { function: functions, ..FunctionDefLibrary::default() };
    GraphDef { node, library: Some(library), ..GraphDef::default() }
}

fn call(op: &str) -> NodeDef {
    NodeDef::new("call", op).attr("f", named("f")).attr("Tout", vec![DataType::Float])
}

fn read(def: &GraphDef) -> Result<ReadGraph> {
    read_graph_def(def, &[("x", Shape::from([Dim::BATCH]))], &["out"])
}

fn called(functions: Vec<FunctionDef>) -> Result<ReadGraph> {
    read(&graph(call("StatefulPartitionedCall"), functions))
}

fn refused(found: Result<ReadGraph>, parts: &[&str]) {
    let error = found.unwrap_err().to_string();
    for part in parts.iter().chain(&["a prediction changes no variables", "export a signature"]) {
        assert!(error.contains(part), "{error}\nshould contain {part}");
    }
}

/// All variables are 0 in a graph alone.
fn answer(found: Result<ReadGraph>) -> Vec<f32> {
    let read = found.unwrap();
    let feeds = [(&read.inputs["x"], Array::from([1f32, 2.0]))];
    let y = Session::new(&read.graph).unwrap().run(&[&read.outputs["out"]], &feeds).unwrap();
    y[0].as_slice::<f32>().unwrap().to_vec()
}

/// `a.assign(4.); return x + a`: TensorFlow 2.15 answers 5 for 1, whatever the checkpoint holds.
#[test]
fn a_variable_that_is_written_and_read() {
    let body = |op: &str, after: &str| {
        let nodes = [write_to(op, "a"), vec![read_of("a", after), sum()]].concat();
        called(vec![function("f", nodes, &Y)])
    };
    for op in ["AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceScatterNdAdd"] {
        let write = format!("node `write` ({op}) of function `f` changes variable `first`");
        refused(body(op, "^write"), &[&write, "node `read` (ReadVariableOp) of function `f`"]);
    }
    // Read before it is written: TensorFlow's second answer is another than its first.
    refused(body("AssignAddVariableOp", ""), &["changes variable `first`"]);
    assert_eq!(answer(body("NoOp", "")), [1.0, 2.0]);
}

/// The nodes that count calls, and a variable beside them that is read.
#[test]
fn a_variable_that_is_only_written() {
    let nodes = [write_to("AssignAddVariableOp", "n"), vec![read_of("a", "^write"), sum()]].concat();
    assert_eq!(answer(called(vec![function("f", nodes, &Y)])), [1.0, 2.0]);
    // What is read for the next value alone, as a moving average is.
    let mut nodes = vec![read_of("n", "")];
    nodes[0].name = "before".into();
    nodes.push(NodeDef::new("write", "AssignVariableOp").input("n").input("before:value:0"));
    nodes.extend([read_of("a", "^write"), sum()]);
    assert_eq!(answer(called(vec![function("f", nodes, &Y)])), [1.0, 2.0]);
}

/// Writes in functions that only control edges wait for. TensorFlow 2.15 answers 4 and then 7 for 1
/// when a loop of three steps adds 1 to a variable that begins at 0.
#[test]
fn writes_inside_of_functions() {
    let state = [("x", DataType::Float, "x"), ("a", DataType::Resource, "a"), ("n", DataType::Resource, "n")];
    let write = |variable: &str| function("inner", write_to("AssignAddVariableOp", variable), &state);
    let result = NodeDef::new("low", "Less").input("x").input("x").attr("T", DataType::Float);
    let condition = function("cond", vec![result], &[("c", DataType::Bool, "low:z:0")]);
    let holders = |by: &str| {
        let inner = match by {
            "While" => NodeDef::new("holder", by).attr("body", named("inner")).attr("cond", named("cond")),
            "If" => {
                let holder = NodeDef::new("holder", by).input("flag:output:0");
                holder.attr("then_branch", named("other")).attr("else_branch", named("inner"))
            }
            _ => NodeDef::new("holder", by).attr("f", named("inner")),
        };
        inner.input("x").input("handle:output:0").input("n")
    };
    let other = function("other", vec![], &state);
    for by in ["While", "If", "StatefulPartitionedCall"] {
        let nodes = || {
            let flag = NodeDef::new("flag", "Const").attr("dtype", DataType::Bool);
            let flag = flag.attr("value", TensorProto::from_array(&Array::scalar(true)));
            let handle = NodeDef::new("handle", "Identity").input("a").attr("T", DataType::Resource);
            vec![flag, handle, holders(by), read_of("a", "^holder"), sum()]
        };
        let with = |variable: &str| vec![function("f", nodes(), &Y), write(variable), condition.clone(), other.clone()];
        let parts = ["node `write` (AssignAddVariableOp) of function `inner` changes variable `first`"];
        refused(called(with("a")), &parts);
        assert_eq!(answer(called(with("n"))), [1.0, 2.0], "{by}");
    }
}

/// A read in a function that an output needs, and a write beside it.
#[test]
fn reads_inside_of_functions() {
    let outer = |variable: &str| {
        let inner = NodeDef::new("y", "PartitionedCall").input("x").input("a").input("n").attr("f", named("inner"));
        let nodes = [write_to("AssignVariableOp", variable), vec![inner.attr("Tout", vec![DataType::Float])]].concat();
        let y = [("y", DataType::Float, "y:output:0")];
        vec![function("f", nodes, &y), function("inner", vec![read_of("a", ""), sum()], &Y)]
    };
    let parts = ["of function `f` changes variable `first`", "(ReadVariableOp) of function `inner`"];
    refused(called(outer("a")), &parts);
    assert_eq!(answer(called(outer("n"))), [1.0, 2.0]);
}

#[test]
fn tables_that_are_filled_and_read() {
    let table = |name: &str| {
        let def = NodeDef::new(name, "MutableHashTableV2").attr("shared_name", name);
        def.attr("key_dtype", DataType::Float).attr("value_dtype", DataType::Float)
    };
    let insert = |table: &str| NodeDef::new("write", "LookupTableInsertV2").input(table).input("x").input("x");
    let find = NodeDef::new("call", "LookupTableFindV2").input("t").input("x").input("x").input("^write");
    let mut def = graph(find.clone(), vec![]);
    def.node.extend([table("t"), insert("t")]);
    refused(read(&def), &["node `write` (LookupTableInsertV2) changes table `t`", "node `call` (LookupTableFindV2)"]);
}

/// In older graphs a variable is its value, and only what an output waits for runs.
#[test]
fn variables_of_older_graphs() {
    let with = |wait: &str| {
        let variable = NodeDef::new("v", "VariableV2").attr("dtype", DataType::Float);
        let variable = variable.attr("shape", TensorShapeProto::of([]));
        let value = NodeDef::new("read", "Identity").input("v").attr("T", DataType::Float);
        let value = if wait.is_empty() { value } else { value.input(wait) };
        let node = vec![
            NodeDef::new("x", "Placeholder").attr("dtype", DataType::Float),
            variable,
            float("four", 4.0),
            NodeDef::new("add", "AssignAdd").input("v").input("four").attr("T", DataType::Float),
            NodeDef::new("group", "NoOp").input("^add"),
            value,
            NodeDef::new("out", "AddV2").input("x").input("read").attr("T", DataType::Float),
        ];
        read(&GraphDef { node, ..GraphDef::default() })
    };
    refused(with("^group"), &["node `add` (AssignAdd) changes variable `v`"]);
    assert_eq!(answer(with("")), [1.0, 2.0]);
}

/// In training a batch normalization gets the averages that it changes, and does not use them for
/// its first output.
#[test]
fn averages_of_a_fused_batch_normalization() {
    let with = |is_training: bool| {
        let reads = ["a", "n"].map(|variable| NodeDef { name: format!("read_{variable}"), ..read_of(variable, "") });
        let norm = NodeDef::new("norm", "FusedBatchNormV3").input("x").input("one:output:0").input("one:output:0");
        let norm = norm.input("read_a:value:0").input("read_n:value:0").attr("is_training", is_training);
        let mut nodes = vec![float("one", 1.0), norm.attr("T", DataType::Float).attr("U", DataType::Float)];
        nodes.extend(reads);
        nodes.push(NodeDef::new("write", "AssignVariableOp").input("a").input("norm:batch_mean:0"));
        let y = [("y", DataType::Float, "norm:y:0")];
        read(&graph(call("StatefulPartitionedCall"), vec![function("f", nodes, &y)])).unwrap_err().to_string()
    };
    let error = with(false);
    assert!(error.contains("node `write` (AssignVariableOp) of function `f` changes variable `first`"), "{error}");
    // Read as far as the image, which should have four axes.
    assert!(with(true).contains("expected four axes"), "{}", with(true));
}

/// Functions that run one another in a circle, or too deep, are errors.
#[test]
fn functions_that_do_not_end() {
    let holder = |next: &str| {
        let holder = NodeDef::new("holder", "While").input("x").input("a").input("n");
        let holder = holder.attr("body", named(next)).attr("cond", named(next));
        vec![holder, read_of("a", "^holder"), sum()]
    };
    assert_eq!(answer(called(vec![function("f", holder("f"), &Y)])), [1.0, 2.0]);
    let mut functions: Vec<_> =
        (0..5000).map(|i| function(&format!("f{i}"), holder(&format!("f{}", i + 1)), &Y)).collect();
    functions.push(function("f", holder("f0"), &Y));
    let error = called(functions).unwrap_err().to_string();
    assert!(error.contains("function `f199` is nested 200 functions deep; the limit"), "{error}");
}
