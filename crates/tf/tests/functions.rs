//! Models of TensorFlow 2: functions, loops, tables and variables of objects. What TensorFlow
//! answered (`oracles/gen/saved_models_v2.py`), and what is damaged or hostile.
//!
//! Live beside TensorFlow, with more layers: `oracles/live/saved_model_v2.py`.

mod answers;

use answers::{Copy, check, check_model, expect, fixture};
use estimand_checkpoint::{BundleReader, BundleWriter};
use estimand_tensor::Array;
use estimand_tf::saved_model::{ReadLimits, SavedModel};
use estimand_wire::function_def::{ArgDef, OpDef};
use estimand_wire::graph_def::Attr;
use estimand_wire::{AttrValue, DataType, FunctionDef, MetaGraphDef, NameAttrList, NodeDef};

const SIGNATURE: &str = "serving_default";

/// The signature of the linear model that calls its first function.
const REPLACED: &str = "scaled";

#[test]
fn modules_and_keras_models_predict_what_they_did() {
    for name in [
        "linear",
        "tables",
        "loops",
        "sums",
        "branches",
        "functional",
        "image",
        "multi_head",
        "text_tf_idf",
        "text_lstm",
        "gru_steps",
        "dilated_any_size",
        "dilated_steps",
    ] {
        check(&format!("saved_model_v2_{name}"), |model| model);
    }
}

/// Without the function that restores variables, the objects of the checkpoint name them.
#[test]
fn objects_of_the_checkpoint_name_variables() {
    let copy = Copy::of("saved_model_v2_functional", "objects");
    copy.edit(|graph| graph.saver_def = None);
    check_model(&copy.0, &SavedModel::open(&copy.0).unwrap());
}

/// Whatever the objects of a checkpoint are, variables are found or an error names one.
#[test]
fn damaged_objects_of_the_checkpoint() {
    const OBJECTS: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";
    let copy = Copy::of("saved_model_v2_functional", "damaged-objects");
    copy.edit(|graph| graph.saver_def = None);
    let prefix = copy.0.join("variables/variables");
    let reader = BundleReader::open(&prefix).unwrap();
    let tensors: Vec<(String, Array)> =
        reader.names().map(|name| (name.to_string(), reader.read(name).unwrap())).collect();
    let (_, objects) = tensors.iter().find(|(name, _)| name == OBJECTS).unwrap();
    let objects = objects.strings().unwrap().next().unwrap().to_vec();
    let mut random = random_numbers(11);
    let mut n_refused = 0;
    for _ in 0..200 {
        let mut damaged = objects.clone();
        for _ in 0..=random(4) {
            let at = random(damaged.len());
            match random(3) {
                0 => damaged[at] ^= 1 << random(8),
                1 => damaged.truncate(at + 1),
                _ => damaged[at] = 0xff,
            }
        }
        let mut writer = BundleWriter::create(&prefix).unwrap();
        for (name, array) in &tensors {
            match name.as_str() {
                OBJECTS => drop(writer.add(name, &Array::from_strings([], [&damaged]).unwrap()).unwrap()),
                _ => drop(writer.add(name, array).unwrap()),
            }
        }
        writer.finish().unwrap();
        if let Err(error) = SavedModel::open(&copy.0).unwrap().signature(SIGNATURE) {
            n_refused += 1;
            expect(&error.to_string(), &["variables/variables", "VarHandleOp"]);
        }
    }
    assert!(n_refused > 50, "only {n_refused} of 200 damaged checkpoints were refused");
}

fn random_numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    }
}

/// A function with one argument and one result, both floats.
fn function(name: &str, nodes: Vec<NodeDef>, result: &str) -> FunctionDef {
    let arg = |name: &str| ArgDef { name: name.into(), r#type: DataType::Float.into(), ..ArgDef::default() };
    let signature =
        OpDef { name: name.into(), input_arg: vec![arg("x")], output_arg: vec![arg("y")], ..OpDef::default() };
    FunctionDef {
        signature: Some(signature),
        node_def: nodes,
        ret: [("y".to_string(), result.to_string())].into(),
        ..FunctionDef::default()
    }
}

fn call(name: &str, function: &str, input: &str) -> NodeDef {
    let function = NameAttrList { name: function.into(), ..NameAttrList::default() };
    NodeDef::new(name, "PartitionedCall").input(input).attr("f", function).attr("Tout", vec![DataType::Float])
}

/// Adds functions, and calls the first in the signature [`REPLACED`] instead of the model.
fn replace(graph: &mut MetaGraphDef, functions: Vec<FunctionDef>) {
    let first = functions[0].signature.as_ref().unwrap().name.clone();
    let graph = graph.graph_def.as_mut().unwrap();
    let at = graph.node.iter().position(|node| node.op == "StatefulPartitionedCall").unwrap();
    let input = graph.node[at].input[0].clone();
    graph.node[at] = call(&graph.node[at].name.clone(), &first, &input);
    graph.library.as_mut().unwrap().function.extend(functions);
}

/// The error of a model whose signature calls these functions.
fn error(role: &str, functions: Vec<FunctionDef>) -> String {
    let copy = Copy::of("saved_model_v2_linear", role);
    copy.edit(|graph| replace(graph, functions));
    copy.error(REPLACED)
}

#[test]
fn an_op_that_cannot_be_read_is_named_with_its_node_and_function() {
    let odd = function("odd", vec![NodeDef::new("part", "SelfAdjointEigV2").input("x")], "part:e:0");
    let text = error("unknown", vec![function("outer", vec![call("inner", "odd", "x")], "inner:output:0"), odd]);
    expect(&text, &["SelfAdjointEigV2", "`StatefulPartitionedCall/inner/part`", "of function `odd`", REPLACED]);
}

/// Blocks that TensorFlow refuses, and one that only the run knows.
#[test]
fn blocks_that_do_not_divide_an_image_are_refused() {
    let damaged = |op: &str, change: &dyn Fn(&mut NodeDef)| {
        let copy = Copy::of("saved_model_v2_dilated_steps", "blocks");
        copy.edit_graph(|graph| {
            let nodes = graph.library.as_mut().unwrap().function.iter_mut().flat_map(|function| &mut function.node_def);
            nodes.filter(|node| node.name.ends_with(op)).for_each(change);
        });
        copy.error(SIGNATURE)
    };
    let block = |sizes: &[i32]| {
        let value = estimand_wire::TensorProto::from_array(&Array::from_vec([sizes.len()], sizes.to_vec()).unwrap());
        damaged("/SpaceToBatchND/block_shape", &|node| drop(node.attr.insert("value".into(), value.clone().into())))
    };
    expect(&block(&[0]), &["the block is [0]", "sizes of at least 1", "(SpaceToBatchND) of function"]);
    expect(&block(&[2, 2, 2]), &["the block is [2, 2, 2]", "one size for each axis after the batch"]);
    expect(&block(&[2, 2]), &["the borders have the sizes [1, 2]", "expected [2, 2]"]);
    expect(&block(&[7]), &["axis 1 with its borders has size", "expected a multiple of 7"]);
    let text = damaged("/BatchToSpaceND", &|node| node.input[1] = node.input[2].clone());
    expect(&text, &["the block is [0, 1]", "(BatchToSpaceND) of function"]);
    let text = damaged("/SpaceToBatchND", &|node| node.input[1] = node.input[0].clone());
    expect(&text, &["in input 1", "must be known when the graph is read"]);
}

#[test]
fn calls_are_bounded() {
    let text = error("itself", vec![function("again", vec![call("more", "again", "x")], "more:output:0")]);
    expect(&text, &["function `again` calls itself", "node `more` (PartitionedCall) of function `again`"]);
    let text = error("missing", vec![function("outer", vec![call("inner", "nowhere", "x")], "inner:output:0")]);
    expect(&text, &["no function `nowhere`", "node `inner` (PartitionedCall) of function `outer`"]);
    let text = error(
        "inputs",
        vec![
            function("outer", vec![call("inner", "outer2", "x").input("x")], "inner:output:0"),
            function("outer2", vec![], "x"),
        ],
    );
    expect(&text, &["called with 2 inputs; expected 1", "`outer2`"]);
    let text = error("form", vec![function("outer", vec![NodeDef::new("a", "Neg").input("b")], "a:y:0")]);
    expect(&text, &["`b` is not an input of the form `node:output:0`", "node `a` (Neg) of function `outer`"]);
    let text = error("result", vec![function("outer", vec![NodeDef::new("a", "Neg").input("x")], "b:y:0")]);
    expect(&text, &["no node `b`", "function `outer`"]);

    // Two calls of two calls of two calls ...
    let twice = |i: usize| {
        let next = format!("f{}", i + 1);
        let nodes = vec![call("a", &next, "x"), call("b", &next, "a:output:0")];
        function(&format!("f{i}"), nodes, "b:output:0")
    };
    let mut functions: Vec<FunctionDef> = (0..40).map(twice).collect();
    functions.push(function("f40", vec![], "x"));
    let copy = Copy::of("saved_model_v2_linear", "doubled");
    copy.edit(|graph| replace(graph, functions));
    let model = SavedModel::open_within(&copy.0, ReadLimits::default().nodes(10_000)).unwrap();
    let text = model.signature(REPLACED).err().unwrap().to_string();
    expect(&text, &["there are 10001 nodes with those of called functions; the limit is 10000"]);
    let chain = |i: usize| function(&format!("f{i}"), vec![call("a", &format!("f{}", i + 1), "x")], "a:output:0");
    let mut functions: Vec<FunctionDef> = (0..200).map(chain).collect();
    functions.push(function("f200", vec![], "x"));
    expect(&error("chain", functions), &["`f100` is called 100 calls deep"]);
}

/// A loop whose condition always holds ends with an error.
#[test]
fn endless_loops_end() {
    let copy = Copy::of("saved_model_v2_loops", "endless");
    copy.edit_graph(|graph| {
        for function in &mut graph.library.as_mut().unwrap().function {
            for node in function.node_def.iter_mut().filter(|node| node.op == "Less") {
                node.op = "LogicalOr".into();
                node.input = vec!["always:output:0".into(), "always:output:0".into()];
            }
            let value = estimand_wire::TensorProto::from_array(&Array::scalar(true));
            let always = NodeDef::new("always", "Const").attr("dtype", DataType::Bool).attr("value", value);
            function.node_def.push(always);
        }
    });
    let model = SavedModel::open_within(&copy.0, ReadLimits::default().loop_steps(50)).unwrap();
    let signature = model.signature(SIGNATURE).unwrap();
    let inputs = [("x", Array::from_vec([1, 3], vec![1f32; 3]).unwrap()), ("steps", Array::scalar(2i32))];
    expect(&signature.run(&inputs).unwrap_err().to_string(), &["50 steps", "loop_steps", "of the loop"]);
}

/// Loops whose steps change what they get, or read what is not there, are refused by name.
#[test]
fn loops_that_cannot_run_are_refused() {
    let damaged = |role: &str, change: &dyn Fn(&mut NodeDef)| {
        let copy = Copy::of("saved_model_v2_gru_steps", role);
        copy.edit_graph(|graph| {
            let functions = &mut graph.library.as_mut().unwrap().function;
            let bodies = functions.iter_mut().filter(|f| f.signature.as_ref().unwrap().name.contains("while_body"));
            bodies.flat_map(|body| &mut body.node_def).for_each(change);
        });
        copy.error(SIGNATURE)
    };
    let text = damaged("index", &|node| {
        if node.op == "TensorListGetItem" {
            node.input[1] = "sequential/gru/while/add/y:output:0".into();
        }
    });
    expect(&text, &["computes the index of an element", "TensorListGetItem", "while_body"]);
    let text = damaged("unknown-step", &|node| {
        if node.op == "Tanh" {
            node.op = "Bessel".into();
        }
    });
    expect(&text, &["Bessel", "of function", "while_body"]);
    let text = damaged("list", &|node| {
        if node.op == "TensorListSetItem" {
            node.op = "TensorListFromTensor".into();
            node.input.swap(0, 2);
        }
    });
    expect(&text, &["a step replaces a list by a list of tensors", "in argument"]);
}

/// Damaged models give an error or another model, and never a panic.
#[test]
fn damaged_functions() {
    let copy = Copy::of("saved_model_v2_loops", "damaged-functions");
    let path = copy.0.join("saved_model.pb");
    let whole = std::fs::read(&path).unwrap();
    let mut random = random_numbers(5);
    let mut n_refused = 0;
    for _ in 0..300 {
        std::fs::write(&path, &whole).unwrap();
        copy.edit_graph(|graph| {
            let functions = &mut graph.library.as_mut().unwrap().function;
            let i = random(functions.len());
            let n = functions[i].node_def.len();
            let (at, other) = (random(n), functions[i].node_def[random(n)].clone());
            let node = &mut functions[i].node_def[at];
            match random(5) {
                0 => node.op = other.op,
                1 => drop(node.attr.pop_last()),
                2 => drop(node.input.pop()),
                3 => node.input = other.input,
                _ => {
                    let names = ["loops_while_body", "y:output:0", "x", ":", "a:b", "^"];
                    node.input.insert(0, names[random(names.len())].to_string());
                }
            }
        });
        let model = SavedModel::open_within(&copy.0, ReadLimits::default().loop_steps(20)).unwrap();
        match model.signature(SIGNATURE) {
            Err(_) => n_refused += 1,
            Ok(signature) => {
                let inputs = [("x", Array::from_vec([1, 3], vec![1f32; 3]).unwrap()), ("steps", Array::scalar(2i32))];
                drop(signature.run(&inputs));
            }
        }
    }
    assert!(n_refused > 50, "only {n_refused} of 300 damaged models were refused");
}

/// Every attribute of a call may be missing or wrong.
#[test]
fn calls_without_functions() {
    let copy = Copy::of("saved_model_v2_linear", "no-name");
    copy.edit_graph(|graph| {
        for node in graph.node.iter_mut().filter(|node| node.op == "StatefulPartitionedCall") {
            node.attr.insert("f".into(), AttrValue { value: Some(Attr::I(3)) });
        }
    });
    expect(&copy.error(SIGNATURE), &["does not name its function", "StatefulPartitionedCall"]);
    let model = SavedModel::open(fixture("saved_model_v2_linear")).unwrap();
    let names: Vec<&str> = model.signatures().map(|(name, _)| name).collect();
    assert_eq!(names, ["scaled", SIGNATURE]);
}
