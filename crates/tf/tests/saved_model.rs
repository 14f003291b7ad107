//! Exported models: what TensorFlow answered (`oracles/gen/saved_models.py`), and what is damaged
//! or missing.
//!
//! Live beside TensorFlow, with many more columns: `oracles/live/saved_model.py` and
//! `saved_ops.py`.

mod answers;

use std::fs;

use answers::{Copy, check, expect, fixture, records};
use estimand_tensor::{Array, DType, Dim, Error, Shape};
use estimand_tf::saved_model::{SavedModel, SignatureModel, read_graph_def};
use estimand_wire::{DataType, GraphDef, Message, NodeDef, SavedModel as SavedModelProto};
use estimand_wire::{TensorProto, TensorShapeProto};

/// Requests of a fixture whose input is a list of examples.
fn examples() -> Vec<Array> {
    records(&fixture("saved_model_deep").join("requests")).into_iter().map(|(_, r)| r["examples"].clone()).collect()
}

/// Eight threads ask one signature at once, and clones of it: each gets the bits that one thread
/// gets.
#[test]
fn threads_share_a_signature() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let model = SavedModel::open(fixture("saved_model_deep")).unwrap();
    shared(&model.signature("predict").unwrap());
    let (first, second) = (model.signature("predict").unwrap(), model.signature("predict").unwrap());
    let requests = examples();
    let run = |model: &SignatureModel, i: usize| model.run(&[("examples", requests[i].clone())]).unwrap();
    let alone: Vec<_> = (0..requests.len()).map(|i| run(&first, i)).collect();
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let (first, second, run, alone) = (first.clone(), &second, &run, &alone);
            threads.spawn(move || {
                for i in (0..alone.len()).cycle().skip(thread).take(40) {
                    assert_eq!(run(&first, i), alone[i]);
                    assert_eq!(run(second, i), alone[i]);
                }
            });
        }
    });
    let name = first.program().body().variables().iter().next().map(|(_, spec)| spec.name.clone()).unwrap();
    assert_eq!(first.variable(&name).unwrap(), second.variable(&name).unwrap());
    expect(&first.variable("no such").unwrap_err().to_string(), &["no variable `no such`"]);
}

#[test]
fn exports_of_the_estimator_predict_what_they_did() {
    check("saved_model_linear", |model| model);
    check("saved_model_deep", |model| model);
}

#[test]
fn ops_of_exported_graphs_give_the_same_results() {
    check("saved_model_ops", SavedModel::any_rows);
}

#[test]
fn signatures_are_described() {
    let model = SavedModel::open(fixture("saved_model_deep")).unwrap();
    let names: Vec<&str> = model.signatures().map(|(name, _)| name).collect();
    assert_eq!(names, ["classification", "predict", "regression", "serving_default"]);
    let (_, predict) = model.signatures().find(|(name, _)| *name == "predict").unwrap();
    assert_eq!(predict.method, "tensorflow/serving/predict");
    assert_eq!(predict.inputs, [("examples".to_string(), "string[-1]".to_string())]);
    assert!(predict.outputs.contains(&("probabilities".to_string(), "f32[-1, 2]".to_string())));
}

#[test]
fn what_is_missing_or_damaged_is_named() {
    let copy = Copy::of("saved_model_deep", "damaged");
    let path = copy.0.join("saved_model.pb");
    let model = SavedModel::open(&copy.0).unwrap();
    expect(&model.signature("predikt").err().unwrap().to_string(), &["no signature `predikt`", "mean `predict`?"]);
    expect(
        &model.signature("predict").unwrap().run(&[("example", Array::from(1f32))]).unwrap_err().to_string(),
        &["no input `example`", "did you mean `examples`?"],
    );
    expect(&model.signature("predict").unwrap().run(&[]).unwrap_err().to_string(), &["`examples`", "was not fed"]);

    fs::remove_file(copy.0.join("assets/colours.txt")).unwrap();
    expect(&copy.error("predict"), &["colours.txt", "InitializeTableFromTextFileV2", "signature `predict`"]);
    let copy = Copy::of("saved_model_deep", "damaged");
    fs::write(copy.0.join("assets/colours.txt"), "red\n").unwrap();
    expect(&copy.error("predict"), &["colours.txt", "is 3 lines, but the file has 1"]);
    let copy = Copy::of("saved_model_deep", "damaged");
    fs::remove_file(copy.0.join("variables/variables.index")).unwrap();
    expect(&copy.error("predict"), &["variables.index", "VarHandleOp"]);
    let copy = Copy::of("saved_model_deep", "damaged");
    fs::write(copy.0.join("variables/variables.data-00000-of-00001"), b"short").unwrap();
    expect(&copy.error("predict"), &["variable", "lie outside the 5 bytes of the data file"]);

    let copy = Copy::of("saved_model_deep", "damaged");
    let whole = fs::read(&path).unwrap();
    for n in [0, 1, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..n]).unwrap();
        // Nothing at all is an empty message: it has no graph.
        expect(&copy.error("predict"), &["saved_model.pb"]);
    }
    fs::remove_file(&path).unwrap();
    expect(&copy.error("predict"), &["cannot read", "saved_model.pb", "give the folder of a SavedModel"]);
}

/// A change to a graph, and what the error must say.
type Case = (fn(&mut GraphDef), &'static [&'static str]);

#[test]
fn graphs_that_make_no_sense_are_named() {
    fn first<'a>(graph: &'a mut GraphDef, op: &str) -> &'a mut NodeDef {
        graph.node.iter_mut().find(|node| node.op == op).unwrap()
    }
    fn all(graph: &mut GraphDef, op: &str, change: impl FnMut(&mut NodeDef)) {
        graph.node.iter_mut().filter(|node| node.op == op).for_each(change);
    }
    let cases: &[Case] = &[
        (|g| first(g, "Relu").op = "Relux".into(), &["cannot be read: Relux (node `dnn/hiddenlayer_0/"]),
        (
            |g| {
                g.node
                    .iter_mut()
                    .filter(|n| n.op == "Where" || n.op == "MatMul")
                    .for_each(|n| n.op = format!("My{}", n.op))
            },
            &["MyMatMul (2 nodes, such as `dnn/", "MyWhere ("],
        ),
        (|g| first(g, "Relu").input[0] = "nowhere".into(), &["no node `nowhere`", "input of node `dnn/hiddenlayer_0"]),
        (|g| first(g, "Relu").input[0] = "dnn/logits/kernal".into(), &["did you mean `dnn/logits/kernel`?"]),
        (|g| first(g, "Relu").input[0].push_str(":7"), &["output 7 of `dnn/hiddenlayer_0/BiasAdd`", "which has 1"]),
        (|g| first(g, "Relu").input[0].push_str(":x"), &["is not the name of a node's output"]),
        (
            |g| {
                let name = first(g, "Relu").name.clone();
                first(g, "BiasAdd").input[0] = name;
            },
            &["the graph has a cycle: dnn/hiddenlayer_0/"],
        ),
        (|g| first(g, "BiasAdd").input.clear(), &["the node has 0 inputs; expected more than 0", "(BiasAdd)"]),
        (|g| first(g, "BiasAdd").input.truncate(1), &["the node has 1 inputs; expected more than 1", "(BiasAdd)"]),
        (
            |g| drop(first(g, "ParseExampleV2").attr.insert("Tdense".into(), 3i64.into())),
            &["attribute `Tdense` is not a list", "(ParseExampleV2)"],
        ),
        (|g| drop(first(g, "ParseExampleV2").attr.remove("dense_shapes")), &["1 dense keys, 1 types, 0 shapes"]),
        (
            |g| all(g, "VarHandleOp", |n| drop(n.attr.insert("dtype".into(), DataType::Half.into()))),
            &["DT_HALF", "(VarHandleOp)"],
        ),
        (
            |g| all(g, "VarHandleOp", |n| drop(n.attr.insert("dtype".into(), DataType::Int32.into()))),
            &["in the checkpoint, but i32"],
        ),
        (
            |g| all(g, "VarHandleOp", |n| drop(n.attr.insert("shape".into(), TensorShapeProto::of([1, 2, 3]).into()))),
            &["in the checkpoint, but f32[1, 2, 3] in the graph"],
        ),
        (|g| g.node.retain(|n| !n.op.starts_with("InitializeTable")), &["the graph has no node that fills the table"]),
        (|g| g.node.push(g.node[0].clone()), &["two nodes named"]),
        (
            |g| {
                let perm = TensorProto::from_array(&Array::from([0i32, 9, 9]));
                let node = g.node.iter_mut().find(|n| n.op == "Const" && n.name.ends_with("ExpandDims/dim")).unwrap();
                node.attr.insert("value".into(), perm.into());
            },
            &["input 1 holds several numbers, expected one"],
        ),
    ];
    for (i, (change, parts)) in cases.iter().enumerate() {
        let copy = Copy::of("saved_model_deep", &format!("senseless-{i}"));
        copy.edit_graph(change);
        let found = SavedModel::open(&copy.0).and_then(|model| model.signature("predict"));
        let error = found.err().unwrap_or_else(|| panic!("case {i} should be an error: {parts:?}"));
        expect(&error.to_string(), parts);
    }
}

#[test]
fn assets_stay_in_the_model() {
    let copy = Copy::of("saved_model_deep", "assets");
    let path = copy.0.join("saved_model.pb");
    let bytes = fs::read(&path).unwrap();
    let name = b"colours.txt";
    let mut message = SavedModelProto::decode(&bytes[..]).unwrap();
    let mut asset = message.meta_graphs[0].assets().unwrap()[0].clone();
    assert_eq!(asset.filename.as_bytes(), name);
    for elsewhere in ["../../secret", "/etc/passwd", ""] {
        asset.filename = elsewhere.to_string();
        message.meta_graphs[0].asset_file_def = vec![asset.clone()];
        fs::write(&path, message.encode_to_vec()).unwrap();
        expect(&copy.error("predict"), &["is not in the folder of the model"]);
    }
}

#[test]
fn open_shapes_are_asked_for() {
    let placeholder = NodeDef::new("x", "Placeholder").attr("dtype", DataType::Float);
    let twice = NodeDef::new("y", "AddV2").input("x").input("x:0").attr("T", DataType::Float);
    let graph = GraphDef { node: vec![placeholder, twice], ..Default::default() };
    let read = read_graph_def(&graph, &[("x", Shape::from([Dim::BATCH]))], &["y"]).unwrap();
    assert_eq!(read.outputs["y"].shape(), &Shape::from([Dim::BATCH]));
    let error = |result: Result<_, Error>| result.err().map(|e: Error| e.to_string()).unwrap_or_default();
    let unfed = read_graph_def(&graph, &[], &["y"]).map(drop);
    expect(&error(unfed), &["needed, but it is not an input of the signature", "node `x` (Placeholder)"]);
    let absent = read_graph_def(&graph, &[], &["z"]).map(drop);
    expect(&error(absent), &["no node `z`"]);
}

/// Damaged models that are tried of each kind.
const ROUNDS: usize = 300;

/// Numbers that look random, and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Numbers that are most likely to be wrong.
const ODD: [i64; 9] = [-2, -1, 0, 1, 3, 1 << 20, i32::MAX as i64, i64::MAX, i64::MIN];

/// A graph that can still be decoded, with something in it changed.
fn confuse(graph: &mut GraphDef, dice: &mut Dice) {
    let n = graph.node.len();
    let (i, other) = (dice.below(n), graph.node[dice.below(n)].clone());
    let node = &mut graph.node[i];
    match dice.below(6) {
        0 => node.op = other.op,
        1 if !node.input.is_empty() => {
            let at = dice.below(node.input.len());
            node.input[at] = format!("{}:{}", other.name, dice.below(2));
        }
        2 if !node.input.is_empty() => drop(node.input.remove(dice.below(node.input.len()))),
        3 if !node.attr.is_empty() => {
            let key = dice.pick(&node.attr.keys().cloned().collect::<Vec<_>>());
            node.attr.remove(&key);
        }
        4 if !node.attr.is_empty() => {
            let key = dice.pick(&node.attr.keys().cloned().collect::<Vec<_>>());
            let value = other.attr.values().next().cloned().unwrap_or_else(|| dice.pick(&ODD).into());
            let value = if dice.below(2) == 0 { value } else { dice.pick(&ODD).into() };
            node.attr.insert(key, value);
        }
        _ => {
            let constants: Vec<usize> = (0..n).filter(|&i| graph.node[i].op == "Const").collect();
            let node = &mut graph.node[dice.pick(&constants)];
            let Some(Ok(array)) = node.attr.get("value").and_then(|attr| attr.tensor()).map(TensorProto::to_array)
            else {
                return;
            };
            let len = array.len();
            let values: Vec<i64> = (0..len).map(|_| dice.pick(&ODD)).collect();
            let changed = match array.dtype() {
                DType::I32 => Array::from_vec(array.dims(), values.iter().map(|&v| v as i32).collect()),
                DType::I64 => Array::from_vec(array.dims(), values),
                _ => return,
            };
            node.attr.insert("value".into(), TensorProto::from_array(&changed.unwrap()).into());
        }
    }
}

/// Whatever a graph says, reading and running end with an answer or an error.
#[test]
fn confused_graphs_never_panic() {
    let requests = examples();
    for name in ["saved_model_linear", "saved_model_deep"] {
        let copy = Copy::of(name, &format!("confused-{name}"));
        let path = copy.0.join("saved_model.pb");
        let whole = SavedModelProto::decode(&fs::read(&path).unwrap()[..]).unwrap();
        // Only what the signature needs: changing the rest changes nothing.
        let mut dice = Dice(2);
        for _ in 0..ROUNDS {
            let mut message = whole.clone();
            let graph = message.meta_graphs[0].graph_def.as_mut().unwrap();
            graph.node.retain(|node| !node.name.starts_with("save/") && !node.name.contains("Initializer"));
            for _ in 0..1 + dice.below(6) {
                confuse(graph, &mut dice);
            }
            fs::write(&path, message.encode_to_vec()).unwrap();
            let Ok(model) = SavedModel::open(&copy.0).and_then(|model| model.signature("predict")) else {
                continue;
            };
            for request in &requests {
                let _ = model.run(&[("examples", request.clone())]);
            }
        }
    }
}

/// Whatever the bytes of a file are, reading and running end with an answer or an error.
#[test]
fn mutations_never_panic() {
    let requests = examples();
    for name in ["saved_model_linear", "saved_model_deep"] {
        let copy = Copy::of(name, &format!("mutated-{name}"));
        let path = copy.0.join("saved_model.pb");
        let whole = fs::read(&path).unwrap();
        let mut dice = Dice(1);
        let mut random = |n: usize| dice.below(n);
        for _ in 0..ROUNDS {
            let mut bytes = whole.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at] = random(256) as u8,
                    2 => drop(bytes.drain(at..(at + 1 + random(8)).min(bytes.len()))),
                    _ => bytes.insert(at, random(256) as u8),
                }
            }
            fs::write(&path, &bytes).unwrap();
            let Ok(model) = SavedModel::open(&copy.0) else { continue };
            let Ok(model) = model.signature("predict") else { continue };
            for request in &requests {
                let _ = model.run(&[("examples", request.clone())]);
            }
        }
    }
}

/// The nodes of a graph that is read have the line that reads it, not one of the library.
#[test]
fn nodes_have_the_line_that_reads_them() {
    let g = estimand_graph::Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
    let y = x.softmax().sum_axes([1]).exp();
    let def = estimand_tf::graph_def::graph_def(&g.body(), &[y.value()]).unwrap();
    let shape = Shape::from([Dim::BATCH, 3.into()]);
    let read = read_graph_def(&def, &[("x", shape)], &[&y.name()]).unwrap();
    let line = line!() - 1;
    let body = read.graph.body();
    let places: Vec<_> = body.nodes().iter().map(|node| (node.site.file(), node.site.line())).collect();
    assert!(places.len() > 3 && places.iter().all(|place| *place == (file!(), line)), "{places:?}");
}
