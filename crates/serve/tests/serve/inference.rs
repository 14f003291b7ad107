//! The Open Inference Protocol over gRPC, and the repository.

use std::collections::BTreeMap;

use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand_serve::Running;
use estimand_wire::Message;

use crate::grpc::{Failure, call};
use crate::inference_messages::*;
use crate::models::{Folder, classifier, publish, rest, served, server};

fn ask<A: Message + Default>(
    running: &Running,
    method: &str,
    request: &impl Message,
) -> std::result::Result<A, Failure> {
    call(running.grpc_address().unwrap(), &format!("inference.GRPCInferenceService/{method}"), request, &[])
}

fn input(name: &str, datatype: &str, n: i64) -> InferTensor {
    InferTensor { name: name.into(), datatype: datatype.into(), shape: vec![n], ..InferTensor::default() }
}

fn request() -> ModelInferRequest {
    ModelInferRequest {
        model_name: "flats".into(),
        id: "7".into(),
        inputs: vec![input("size", "FP32", 2), input("city", "BYTES", 2)],
        ..ModelInferRequest::default()
    }
}

fn raw() -> Vec<Vec<u8>> {
    let size = [55f32.to_le_bytes(), 80f32.to_le_bytes()].concat();
    vec![size, b"\x04\0\0\0Oslo\x04\0\0\0Rome".to_vec()]
}

#[test]
fn information() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let yes: YesResponse = ask(&running, "ServerLive", &Nothing {}).unwrap();
    let ready: YesResponse = ask(&running, "ServerReady", &Nothing {}).unwrap();
    assert!(yes.is_so && ready.is_so);
    let model = |name: &str, version: &str| ModelVersionRequest { name: name.into(), version: version.into() };
    for (name, version, expected) in
        [("flats", "", true), ("flats", "3", true), ("flats", "4", false), ("no", "", false)]
    {
        let ready: YesResponse = ask(&running, "ModelReady", &model(name, version)).unwrap();
        assert_eq!(ready.is_so, expected, "{name} {version}");
    }
    let server: ServerMetadataResponse = ask(&running, "ServerMetadata", &Nothing {}).unwrap();
    assert_eq!((server.name.as_str(), server.extensions.len()), ("estimand-serve", 2));
    let metadata: ModelMetadataResponse = ask(&running, "ModelMetadata", &model("flats", "")).unwrap();
    let inputs: Vec<_> =
        metadata.inputs.iter().map(|one| (one.name.as_str(), one.datatype.as_str(), &one.shape[..])).collect();
    assert_eq!(inputs, [("city", "BYTES", &[-1][..]), ("size", "FP32", &[-1])]);
    assert_eq!(metadata.versions, ["3"]);
    let (code, _) = ask::<ModelMetadataResponse>(&running, "ModelMetadata", &model("no", "")).unwrap_err();
    assert_eq!(code, 5);
    let index: RepositoryIndexResponse = ask(&running, "RepositoryIndex", &RepositoryIndexRequest::default()).unwrap();
    assert_eq!((index.models[0].version.as_str(), index.models[0].state.as_str()), ("3", "READY"));
}

/// Values as bytes and in their own fields give the bits of the signature itself.
#[test]
fn infer() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let feeds = [("size", Array::from([55f32, 80.0])), ("city", Array::from_strings([2], ["Oslo", "Rome"]).unwrap())];
    let expected = SavedModel::open(classifier(0)).unwrap().signature("predict").unwrap().run(&feeds).unwrap();
    let as_bytes = ModelInferRequest { raw_input_contents: raw(), ..request() };
    let mut as_fields = request();
    let contents = |change: &dyn Fn(&mut InferTensorContents)| {
        let mut contents = InferTensorContents::default();
        change(&mut contents);
        Some(contents)
    };
    as_fields.inputs[0].contents = contents(&|c| c.fp32_contents = vec![55.0, 80.0]);
    as_fields.inputs[1].contents = contents(&|c| c.bytes_contents = vec![b"Oslo".to_vec(), b"Rome".to_vec()]);
    for request in [as_bytes, as_fields] {
        let answer: ModelInferResponse = ask(&running, "ModelInfer", &request).unwrap();
        assert_eq!((answer.id.as_str(), answer.model_version.as_str()), ("7", "3"));
        assert_eq!(answer.outputs.len(), expected.len());
        for (output, bytes) in answer.outputs.iter().zip(&answer.raw_output_contents) {
            let array = &expected[&output.name];
            assert_eq!(output.shape, array.dims().iter().map(|&n| n as i64).collect::<Vec<_>>(), "{}", output.name);
            if output.datatype != "BYTES" {
                assert_eq!(bytes, array.bytes(), "{}", output.name);
            }
        }
    }
    // Another signature, and one output.
    let text = InferParameter { choice: Some(ParameterChoice::Text("predict".into())) };
    let request = ModelInferRequest {
        raw_input_contents: raw(),
        parameters: BTreeMap::from([("signature_name".to_string(), text)]),
        outputs: vec![InferRequestedOutput { name: "logits".into(), ..Default::default() }],
        ..request()
    };
    let answer: ModelInferResponse = ask(&running, "ModelInfer", &request).unwrap();
    assert_eq!((answer.outputs.len(), &answer.raw_output_contents[0][..]), (1, expected["logits"].bytes()));
}

#[test]
fn wrong_requests() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let with = |change: &dyn Fn(&mut ModelInferRequest)| {
        let mut request = ModelInferRequest { raw_input_contents: raw(), ..request() };
        change(&mut request);
        request
    };
    let cases = [
        (with(&|r| r.model_name = "no".into()), 5, "Servable not found"),
        (with(&|r| r.model_version = "x".into()), 3, "expected a number"),
        (with(&|r| drop(r.raw_input_contents.pop())), 3, "2 inputs, but 1 raw_input_contents"),
        (with(&|r| r.inputs[0].datatype = "FP16".into()), 3, "input `size`: the datatype `FP16` cannot be read"),
        (with(&|r| r.inputs[0].shape = vec![-1]), 3, "has the shape [-1]"),
        (with(&|r| r.inputs[0].shape = vec![1 << 60]), 3, "does not fit into the address space"),
        (with(&|r| r.inputs[0].contents = Some(Default::default())), 3, "both contents and raw_input_contents"),
        (with(&|r| r.raw_input_contents.clear()), 3, "has no contents"),
        (with(&|r| r.inputs[1].name = "town".into()), 3, "there is no input `town`"),
        (with(&|r| r.raw_input_contents[1] = vec![9, 0, 0, 0, 1]), 3, "end inside of a string"),
    ];
    for (request, code, text) in cases {
        let (found, message) = ask::<ModelInferResponse>(&running, "ModelInfer", &request).unwrap_err();
        assert!(found == code && message.contains(text), "{found} {message}; expected {code} {text}");
    }
}

/// A model is unloaded and loaded again by both protocols; a version that failed is tried again.
#[test]
fn models_are_loaded_and_unloaded() {
    let folder = served(classifier(0), 3);
    let running = server()
        .poll_wait(None)
        .load_retries(0, std::time::Duration::from_secs(60))
        .model("flats", folder.path())
        .start()
        .unwrap();
    let body = r#"{"instances": [{"size": 1.0, "city": "Oslo"}]}"#;
    let predict = || rest(&running).post("/v1/models/flats:predict", body).status;
    let flats = RepositoryModelRequest { model_name: "flats".into(), ..Default::default() };
    let mut client = rest(&running);
    for is_rest in [true, false] {
        match is_rest {
            true => assert_eq!(client.post("/v2/repository/models/flats/unload", "{}").status, 200),
            false => _ = ask::<Nothing>(&running, "RepositoryModelUnload", &flats).unwrap(),
        }
        assert_eq!(predict(), 404);
        assert!(running.is_ready(), "a model that is not wanted is not missing");
        match is_rest {
            true => assert_eq!(client.post("/v2/repository/models/flats/load", "{}").status, 200),
            false => _ = ask::<Nothing>(&running, "RepositoryModelLoad", &flats).unwrap(),
        }
        assert_eq!(predict(), 200);
    }
    // A new version is found at once; one that is damaged is an error that says why.
    publish(classifier(1), folder.path(), 4);
    assert_eq!(client.post("/v2/repository/models/flats/load", "").status, 200);
    assert_eq!(client.post("/v2/models/flats/versions/4/ready", "").status, 404, "ready is asked with GET");
    assert_eq!(client.get("/v2/models/flats/versions/4/ready").status, 200);
    let broken = Folder::new();
    std::fs::write(broken.path().join("saved_model.pb"), b"no").unwrap();
    publish(broken.path(), folder.path(), 5);
    for _ in 0..2 {
        let reply = client.post("/v2/repository/models/flats/load", "");
        assert!(reply.status == 400 && reply.error().contains("version 5 could not be loaded"), "{}", reply.text());
    }
    assert_eq!(predict(), 200);
    assert_eq!(client.post("/v2/repository/models/no/load", "").status, 404);
    assert_eq!(client.post("/v2/repository/models/flats/x", "").status, 404);
}
