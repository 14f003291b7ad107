//! What TensorFlow wrote (oracles/gen/wire.py, oracles/gen/events.py) is read and written again.

use std::fs::{read, read_to_string};
use std::path::PathBuf;

use estimand_tensor::Array;
use estimand_wire::event::{self, FILE_VERSION, What};
use estimand_wire::graph_def::Attr;
use estimand_wire::record::{RecordReader, RecordWriter};
use estimand_wire::saved_model::{CheckpointFormatVersion, Encoding};
use estimand_wire::{
    CheckpointState, DataType, Event, GraphDef, Message, NodeDef, SavedModel, TensorProto, TensorShapeProto,
};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures").join(name)
}

fn graph() -> GraphDef {
    GraphDef::decode(read(fixture("wire_graph.pb")).unwrap().as_slice()).unwrap()
}

fn node<'a>(graph: &'a GraphDef, name: &str) -> &'a NodeDef {
    graph.node.iter().find(|node| node.name == name).unwrap()
}

/// The fixture was serialized with its maps sorted, so a field we misread or drop changes the
/// bytes.
#[test]
fn a_graph_keeps_its_bytes() {
    assert!(graph().encode_to_vec() == read(fixture("wire_graph.pb")).unwrap());
}

#[test]
fn a_graph_prints_as_tensorflow_prints_it() {
    let (ours, theirs) = (graph().to_text(), read_to_string(fixture("wire_graph.pbtxt")).unwrap());
    for (n, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", n + 1);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn a_graph_of_tensorflow() {
    let graph = graph();
    let versions = graph.versions.as_ref().unwrap();
    assert_eq!(versions.bad_consumers, [5]);
    assert!(versions.producer > 1000);

    let square = &graph.library.as_ref().unwrap().function[0];
    let signature = square.signature.as_ref().unwrap();
    assert!(graph.library.as_ref().unwrap().function(&signature.name) == Some(square));
    assert_eq!((signature.input_arg[0].name.as_str(), signature.input_arg[0].r#type()), ("v", DataType::Float));
    assert_eq!(square.ret["identity"], "Identity:output:0");
    assert_eq!(square.node_def[0].input, ["v", "v"]);

    let x = node(&graph, "x");
    assert_eq!((x.op.as_str(), x.input.len()), ("Placeholder", 0));
    assert_eq!(x.attr["dtype"].data_type(), Some(DataType::Float));
    assert_eq!(x.attr["shape"].shape(), Some(&TensorShapeProto::of([-1, 3])));

    let y = node(&graph, "y");
    assert_eq!((y.op.as_str(), y.input.as_slice()), ("MatMul", &["x".to_string(), "w".to_string()][..]));
    assert_eq!(y.attr["transpose_a"].bool(), Some(false));
    assert_eq!(node(&graph, "after").input, ["x", "^y"]);

    let w = node(&graph, "w").attr["value"].tensor().unwrap();
    assert_eq!((w.dtype(), w.tensor_shape.as_ref()), (DataType::Float, Some(&TensorShapeProto::of([3, 1]))));
    let expected: Vec<u8> = [0.5f32, -1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(w.tensor_content, expected);
    assert_eq!(node(&graph, "words").attr["value"].tensor().unwrap().string_val, [b"a".to_vec(), b"bcd".to_vec()]);
    assert_eq!(node(&graph, "seven").attr["value"].tensor().unwrap().int64_val, [7]);
}

#[test]
fn every_kind_of_attribute() {
    let graph = graph();
    let node = node(&graph, "every/attribute");
    assert_eq!((node.op.as_str(), node.device.as_str()), ("Unknown", "/cpu:0"));
    let attr = &node.attr;
    assert_eq!(attr["bytes"].bytes(), Some(&b"\x00\xff text"[..]));
    assert_eq!(attr["int"].int(), Some(i64::MIN));
    assert_eq!(attr["float"].float(), Some(0.1));
    assert_eq!(attr["bool"].bool(), Some(false));
    assert_eq!(attr["type"].data_type(), Some(DataType::Bfloat16));
    let shape = attr["shape"].shape().unwrap();
    assert_eq!((shape.dim[0].size, shape.dim[0].name.as_str()), (-1, "rows"));
    assert!(attr["unknown_shape"].shape().unwrap().sizes().is_none());
    assert_eq!(attr["placeholder"].value, Some(Attr::Placeholder("T".to_string())));
    let Some(Attr::Func(func)) = &attr["func"].value else { panic!("{:?}", attr["func"]) };
    assert_eq!((func.name.as_str(), func.attr["depth"].int()), ("callee", Some(2)));
    let list = |name: &str| attr[name].list().unwrap();
    assert_eq!(list("empty_list"), &Default::default());
    assert_eq!(list("list_bytes").s, [b"".to_vec(), b"two".to_vec()]);
    assert_eq!(list("list_int").i, [-1, 0, 1]);
    assert_eq!(list("list_float").f.iter().map(|f| f.to_bits()).collect::<Vec<_>>(), [0x3fc0_0000, 0x8000_0000]);
    assert_eq!(list("list_bool").b, [true, false]);
    assert_eq!(list("list_type").r#type().collect::<Vec<_>>(), [DataType::String, DataType::Uint4]);
    assert_eq!(list("list_shape").shape, [TensorShapeProto::of([4])]);
    assert_eq!(
        (list("list_tensor").tensor[0].dtype(), &list("list_tensor").tensor[0].int_val),
        (DataType::Int32, &vec![9])
    );
    assert_eq!(list("list_func").func[0].name, "other");
    let expected = TensorProto {
        dtype: 0,
        tensor_shape: None,
        version_number: 1,
        tensor_content: b"raw".to_vec(),
        half_val: vec![0x3c00],
        float_val: vec![1.25],
        double_val: vec![-2.5],
        int_val: vec![-3],
        string_val: vec![b"s".to_vec()],
        scomplex_val: vec![1.0, 2.0],
        int64_val: vec![-4],
        bool_val: vec![true],
        dcomplex_val: vec![3.0, 4.0],
        uint32_val: vec![u32::MAX],
        uint64_val: vec![u64::MAX],
        float8_val: vec![0x38],
        ..Default::default()
    };
    assert_eq!(attr["tensor"].tensor(), Some(&expected));
}

fn saved_model(version: &str) -> (Vec<u8>, SavedModel) {
    let bytes = read(fixture(&format!("wire_saved_model_{version}.pb"))).unwrap();
    let model = SavedModel::decode(bytes.as_slice()).unwrap();
    (bytes, model)
}

/// Fields may be written in another order, but a field that we do not know would make the file
/// shorter.
#[test]
fn saved_models_keep_all_their_fields() {
    for version in ["v1", "v2"] {
        let (bytes, model) = saved_model(version);
        let written = model.encode_to_vec();
        assert_eq!(written.len(), bytes.len(), "{version}");
        assert!(SavedModel::decode(written.as_slice()).unwrap() == model, "{version}");
    }
}

#[test]
fn the_saved_model_of_a_session() {
    let (_, model) = saved_model("v1");
    assert_eq!(model.saved_model_schema_version, 1);
    let graph = model.meta_graph(&["serve"]).unwrap();
    let error = model.meta_graph(&["serve", "gpu"]).unwrap_err().to_string();
    assert!(error.contains(r#"its graphs have: [["serve"]]"#), "{error}");

    let signature = graph.signature("serving_default").unwrap();
    assert_eq!(signature.inputs["inputs"].name(), Some("examples:0"));
    assert_eq!(signature.inputs["inputs"].dtype(), DataType::String);
    assert_eq!(signature.outputs["scores"].tensor_shape, Some(TensorShapeProto::of([-1])));
    assert_eq!(signature.method_name, "tensorflow/serving/predict");
    let Some(Encoding::CooSparse(ids)) = &graph.signature("ids").unwrap().outputs["ids"].encoding else { panic!() };
    assert_eq!(ids.values_tensor_name, "ParseExample/ParseExampleV2:1");
    let error = graph.signature("serving_defualt").unwrap_err().to_string();
    assert!(error.contains("did you mean `serving_default`?"), "{error}");

    let assets = graph.assets().unwrap();
    assert_eq!(assets.len(), 1);
    assert_eq!(assets[0].filename, "colours.txt");
    let path = assets[0].tensor_info.as_ref().unwrap().name().unwrap().trim_end_matches(":0");
    let nodes = &graph.graph_def.as_ref().unwrap().node;
    assert!(nodes.iter().any(|node| node.name == path && node.op == "Const"), "{path}");
    assert_eq!(graph.saver_def.as_ref().unwrap().restore_op_name, "save/restore_all");
    assert_eq!(graph.saver_def.as_ref().unwrap().version(), CheckpointFormatVersion::V2);
    let constants = nodes.iter().filter(|node| node.op == "Const").map(|node| node.attr["value"].tensor().unwrap());
    let constants: Vec<_> = constants.map(|value| value.to_array().unwrap()).collect();
    assert!(constants.contains(&Array::from([0.5f32, -1.0, 2.0])), "{constants:?}");
}

#[test]
fn the_saved_model_of_objects() {
    let (_, model) = saved_model("v2");
    let graph = model.meta_graph(&["serve"]).unwrap();
    assert_eq!(graph.signature("serving_default").unwrap().inputs["x"].name(), Some("serving_default_x:0"));
    assert!(graph.object_graph_def.is_some() && graph.assets().unwrap().is_empty());
    let graph_def = graph.graph_def.as_ref().unwrap();
    let call = node(graph_def, "StatefulPartitionedCall");
    let Some(Attr::Func(function)) = &call.attr["f"].value else { panic!("{:?}", call.attr["f"]) };
    assert!(graph_def.library.as_ref().unwrap().function(&function.name).is_some());
}

#[test]
fn a_damaged_graph_is_no_panic() {
    let bytes = read(fixture("wire_graph.pb")).unwrap();
    for length in 0..bytes.len() {
        let _ = GraphDef::decode(&bytes[..length]);
    }
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0xff;
        let _ = GraphDef::decode(damaged.as_slice());
    }
}

#[test]
fn records_of_tensorflow() {
    let bytes = read(fixture("wire_records.tfrecord")).unwrap();
    let all: Vec<u8> = (0..=255).collect();
    let payloads: [&[u8]; 4] = [b"", b"one", &all, &[b'z'; 1000]];
    let mut reader = RecordReader::new(bytes.as_slice());
    let mut writer = RecordWriter::new(Vec::new());
    for payload in payloads {
        assert_eq!(reader.read().unwrap(), Some(payload));
        writer.write(payload).unwrap();
    }
    assert_eq!(reader.read().unwrap(), None);
    assert_eq!(reader.offset(), bytes.len() as u64);
    assert!(writer.into_inner() == bytes);
}

#[test]
fn events_of_tensorflow_keep_their_bytes() {
    let bytes = read(fixture("wire_events.tfevents")).unwrap();
    let mut reader = RecordReader::new(bytes.as_slice());
    let (mut events, mut writer) = (Vec::new(), RecordWriter::new(Vec::new()));
    while let Some(payload) = reader.read().unwrap() {
        let event = Event::decode(payload).unwrap();
        writer.write(&event.encode_to_vec()).unwrap();
        events.push(event);
    }
    assert!(writer.into_inner() == bytes);

    // As oracles/gen/events.py has chosen them.
    assert_eq!(events[0].what, Some(What::FileVersion(FILE_VERSION.to_string())));
    assert_eq!((events[5].wall_time, events[5].step), (1_700_000_005.5, 1 << 40));
    let Some(What::Summary(summary)) = &events[5].what else { panic!("{:?}", events[5]) };
    assert_eq!(summary.value.len(), 8);
    assert_eq!(summary.value[0], event::Value::scalar("loss", 0.25));
    assert_eq!(summary.value[7], event::Value::text("checkpoint_path", "dir/model.ckpt-7"));
}

#[test]
fn checkpoint_states_of_tensorflow() {
    let text = read_to_string(fixture("wire_checkpoint_state.txt")).unwrap();
    let state = CheckpointState::parse(&text).unwrap();
    assert_eq!(state.model_checkpoint_path, "model.ckpt-7");
    assert_eq!(state.all_model_checkpoint_paths, ["model.ckpt-0", "model.ckpt-7"]);
    assert_eq!(state.to_string(), text);

    let text = read_to_string(fixture("wire_checkpoint_state_odd.txt")).unwrap();
    let state = CheckpointState::parse(&text).unwrap();
    assert_eq!(state.model_checkpoint_path, "mé'\"\\\t-1");
    assert_eq!(state.all_model_checkpoint_timestamps, [1_700_000_000.25, 1_700_000_001.0]);
    assert_eq!(state.last_preserved_timestamp, Some(1_699_999_999.5));
    assert_eq!(state.to_string(), text);
}
