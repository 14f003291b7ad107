//! Exports to ONNX: the files, their inputs and outputs, and the models that are refused.
//! `oracles/live/onnx.py` runs them in onnxruntime.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use estimand::export::{ExportSpec, Receiver};
use estimand::graph::onnx::decode;
use estimand::graph::onnx::message::{DimensionValue, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use estimand::keras::Sequential;
use estimand::keras::applications::mobile_net_v2;
use estimand::nn::{Conv1d, GlobalMaxPool1d, MaxPool1d};
use estimand::prelude::*;
use estimand_wire::Message;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("estimand-onnx-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn data() -> Dataset {
    let city = Array::from_strings([4], ["Rome", "Oslo", "Rome", "Bonn"]).unwrap();
    let rows = [("size", Array::from([50f32, 80.0, 120.0, 60.0])), ("city", city), ("y", Array::from([0i64, 1, 1, 0]))];
    Dataset::from_arrays(rows).label("y").batch(4)
}

fn trained(folder: &Path, columns: Vec<FeatureColumn>) -> Estimator {
    let config = RunConfig::new().tf_random_seed(1);
    let model = DnnClassifier::new([4], columns).config(config).model_dir(folder).build().unwrap();
    model.train(data().repeat(3)).unwrap();
    model
}

fn columns() -> Vec<FeatureColumn> {
    let city = categorical_column_with_vocabulary_list("city", ["Rome", "Oslo"]);
    vec![numeric_column("size").into(), embedding_column(city, 2).into()]
}

fn read(export: &Path) -> ModelProto {
    decode(&fs::read(export.join("model.onnx")).unwrap()).unwrap()
}

/// A value as text: its name, and its sizes.
fn shown(values: &[ValueInfoProto]) -> Vec<String> {
    let sizes = |value: &ValueInfoProto| -> Vec<String> {
        let shape = value.r#type.clone().unwrap().tensor_type.unwrap().shape.unwrap();
        let size = |value: Option<DimensionValue>| match value {
            Some(DimensionValue::Size(n)) => n.to_string(),
            Some(DimensionValue::Name(name)) => name,
            None => "?".to_string(),
        };
        shape.dim.into_iter().map(|dim| size(dim.value)).collect()
    };
    values.iter().map(|value| format!("{} [{}]", value.name, sizes(value).join(", "))).collect()
}

/// Every name is defined once, before it is used.
fn check_names(graph: &GraphProto, known: &mut HashSet<String>) {
    let given = graph.input.iter().map(|value| &value.name).chain(graph.initializer.iter().map(|tensor| &tensor.name));
    for name in given {
        assert!(known.insert(name.clone()), "{name} is defined twice");
    }
    for node in &graph.node {
        for input in node.input.iter().filter(|name| !name.is_empty()) {
            assert!(known.contains(input), "{} reads {input} before it is defined", node.name);
        }
        for inner in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
            check_names(inner, &mut known.clone());
        }
        for output in &node.output {
            assert!(known.insert(output.clone()), "{output} is defined twice");
        }
    }
    for output in &graph.output {
        assert!(known.contains(&output.name), "{} is not computed", output.name);
    }
}

#[test]
fn a_premade_estimator() {
    let folder = Folder::new("premade");
    let model = trained(&folder.0.join("model"), columns());
    let export = model.export_onnx(folder.0.join("onnx"), ExportSpec::default()).unwrap();
    let written = read(&export);
    let opsets: Vec<(String, Option<i64>)> =
        written.opset_import.iter().map(|opset| (opset.domain.clone().unwrap_or_default(), opset.version)).collect();
    assert_eq!(opsets, [("".to_string(), Some(17)), ("ai.onnx.ml".to_string(), Some(3))]);
    assert_eq!(written.metadata_props[0].key, "estimand.global_step");
    assert_eq!(written.metadata_props[0].value, "3");
    let graph = written.graph.unwrap();
    assert_eq!(shown(&graph.input), ["size [batch]", "city [batch]"]);
    let outputs = shown(&graph.output);
    for expected in ["logits [batch, 1]", "probabilities [batch, 2]", "class_ids [batch, 1]", "classes [batch, 1]"] {
        assert!(outputs.contains(&expected.to_string()), "{outputs:?}");
    }
    check_names(&graph, &mut HashSet::new());
    // The rows of the training, and rows that are made up.
    let sets = fs::read_dir(&export).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    assert!(sets >= 4, "{sets}");
    let names: Vec<bool> = ["input_0.pb", "input_1.pb", "output_0.pb"]
        .map(|name| export.join("test_data_set_0").join(name).exists())
        .to_vec();
    assert_eq!(names, [true; 3]);

    let again = model.export_onnx(folder.0.join("again"), ExportSpec::default()).unwrap();
    assert_eq!(fs::read(again.join("model.onnx")).unwrap(), fs::read(export.join("model.onnx")).unwrap());
    let private = model.export_onnx(folder.0.join("private"), ExportSpec::default().without_rows()).unwrap();
    let fewer = fs::read_dir(private).unwrap().count();
    assert!(fewer < sets + 1, "{fewer}");
}

#[test]
fn a_keras_model() {
    let folder = Folder::new("keras");
    let layers = Sequential::new().input([6, 2]).add(Lstm::new(3)).add(Dense::new(2).softmax());
    let mut model = layers.build().unwrap();
    let export = model.export_onnx(&folder.0).unwrap();
    let graph = read(&export).graph.unwrap();
    assert_eq!(shown(&graph.input), ["lstm_input [batch, 6, 2]"]);
    assert_eq!(shown(&graph.output), ["dense [batch, 2]"]);
    assert!(graph.node.iter().any(|node| node.op_type == "Loop"));
    check_names(&graph, &mut HashSet::new());
}

/// Depthwise convolutions, odd borders and normalization; the export compares the answers.
#[test]
fn a_network_for_images() {
    let folder = Folder::new("network");
    let mut network = mobile_net_v2().alpha(0.35).input_shape([32, 32, 3]).classes(3).build().unwrap();
    // With the first weights, all images have the same answer.
    let larger = |array: &Array| match array.rank() {
        0 | 1 => array.clone(),
        _ => Array::from_vec(array.dims(), array.as_slice::<f32>().unwrap().iter().map(|v| v * 3.0).collect()).unwrap(),
    };
    let weights: Vec<Array> = network.get_weights().unwrap().iter().map(larger).collect();
    network.set_weights(&weights).unwrap();
    let export = network.export_onnx(&folder.0).unwrap();
    let groups = |node: &NodeProto| node.attribute.iter().any(|a| a.name == "group" && a.i > Some(1));
    assert!(read(&export).graph.unwrap().node.iter().any(groups));
    // The stored answer to numbers that differ is not that to zeros.
    let stored = |set: usize| fs::read(export.join(format!("test_data_set_{set}/output_0.pb"))).unwrap();
    assert_ne!(stored(2), stored(3));
}

/// Windows of 5 and, after a pooling by 4, of 2 need 5 + 4 * 1 + 3 = 12 elements. Shorter sequences
/// have no answer in onnxruntime, so rows that are made up are as long.
#[test]
fn windows_over_sequences_of_unknown_length() {
    let folder = Folder::new("windows");
    let layers = Sequential::new().input([Graph::ANY, 2.into()]);
    let layers = layers.add(Conv1d::new(3, 5)).add(MaxPool1d::new(4)).add(Conv1d::new(2, 2));
    let mut model = layers.add(GlobalMaxPool1d::new()).build().unwrap();
    let export = model.export_onnx(&folder.0).unwrap();
    let tensor = |path: PathBuf| TensorProto::decode(&*fs::read(path).unwrap()).unwrap();
    assert_eq!(tensor(export.join("test_data_set_0/input_0.pb")).dims, [2, 12, 2]);
    assert_eq!(tensor(export.join("test_data_set_0/output_0.pb")).dims, [2, 2]);
    assert!(!export.join("test_data_set_1").exists(), "no row is shorter");
}

#[test]
fn an_output_with_the_name_of_an_input() {
    let folder = Folder::new("same-name");
    let model = Estimator::new(|cx: &ModelFnContext<'_>| {
        let x = cx.feature("size");
        let weight = cx.graph().variable("w", [1], Initializer::Ones);
        let y = &x * &weight;
        let spec = EstimatorSpec::new(cx).prediction("size", &x).prediction("y", &y);
        if cx.mode() == Mode::Predict {
            return Ok(spec);
        }
        Ok(spec.loss(&y.square().mean()).optimizer(Optimizer::new(Sgd::default(), 0.01)))
    });
    let model = model.model_dir(folder.0.join("model")).build().unwrap();
    model.train(data().repeat(2)).unwrap();
    let export = model.export_onnx(folder.0.join("onnx"), Receiver::like(&data()).unwrap()).unwrap();
    let graph = read(&export).graph.unwrap();
    assert_eq!(shown(&graph.output), ["size_output [batch]", "y [batch]"]);
    check_names(&graph, &mut HashSet::new());
}

#[test]
fn a_hash_is_refused_by_its_column() {
    let folder = Folder::new("hash");
    let hashed = embedding_column(categorical_column_with_hash_bucket("city", 10), 2);
    let model = trained(&folder.0.join("model"), vec![hashed.into()]);
    let error = model.export_onnx(folder.0.join("onnx"), ExportSpec::default()).unwrap_err().to_string();
    let expected = [
        "values are hashed to 10 buckets",
        "of column `city_embedding` (feature `city`)",
        "three choices",
        "categorical_column_with_identity",
        "categorical_column_with_vocabulary_list",
        "export_saved_model",
    ];
    for part in expected {
        assert!(error.contains(part), "{error}");
    }
    let left = fs::read_dir(folder.0.join("onnx")).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "nothing is left");
}

#[test]
fn examples_are_refused() {
    let folder = Folder::new("examples");
    let model = trained(&folder.0.join("model"), columns());
    let receiver = Receiver::columns(columns()).unwrap();
    let error = model.export_onnx(folder.0.join("onnx"), receiver).unwrap_err().to_string();
    for part in ["ONNX cannot parse a tf.Example", "Receiver::like"] {
        assert!(error.contains(part), "{error}");
    }
}
