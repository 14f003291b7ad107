//! TensorFlow Serving's gRPC interface, asked by messages in HTTP/2 frames. The real client is in
//! `oracles/live/serve.py`.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand_wire::{ExampleBuilder, Message, TensorProto};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::messages::*;
use crate::models::{classifier, served, server};

/// The code and the message of a failed call.
pub type Failure = (i32, String);

/// Packs bytes.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// Calls a method.
pub fn call<A: Message + Default>(
    address: SocketAddr,
    method: &str,
    request: &impl Message,
    headers: &[(&str, &str)],
) -> Result<A, Failure> {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(request.encoded_len() as u32);
    request.encode(&mut framed).unwrap();
    raw_call(address, method, framed.freeze(), headers)
}

fn raw_call<A: Message + Default>(
    address: SocketAddr,
    method: &str,
    framed: Bytes,
    headers: &[(&str, &str)],
) -> Result<A, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let mut request = hyper::Request::post(format!("http://{address}/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(framed)).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let head = response.headers().clone();
        let body = response.into_body().collect().await.unwrap();
        let end = body.trailers().cloned().unwrap_or(head);
        let code: i32 = end["grpc-status"].to_str().unwrap().parse().unwrap();
        if code != 0 {
            let message = end.get("grpc-message").map_or("", |message| message.to_str().unwrap());
            return Err((code, decode(message)));
        }
        let mut bytes = body.to_bytes();
        bytes.advance(5);
        Ok(A::decode(bytes).unwrap())
    })
}

/// Replaces `%XX`.
fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut all = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        all.push(u8::from_str_radix(&part[..2], 16).unwrap());
        all.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(all).unwrap()
}

fn spec(name: &str, signature: &str) -> Option<ModelSpec> {
    Some(ModelSpec { name: name.into(), version_choice: None, signature_name: signature.into() })
}

const PREDICT: &str = "tensorflow.serving.PredictionService/Predict";

fn inputs() -> BTreeMap<String, TensorProto> {
    [("size", Array::from([55f32, 80.0])), ("city", Array::from_strings([2], ["Oslo", "Rome"]).unwrap())]
        .map(|(name, array)| (name.to_string(), TensorProto::from_array(&array)))
        .into()
}

fn expected() -> IndexMap {
    let feeds = [("size", Array::from([55f32, 80.0])), ("city", Array::from_strings([2], ["Oslo", "Rome"]).unwrap())];
    SavedModel::open(classifier(0)).unwrap().signature("predict").unwrap().run(&feeds).unwrap()
}

type IndexMap = estimand::graph::saved_model::Named<Array>;

#[test]
fn predict() {
    let folder = served(classifier(0), 4);
    let running = server().model("flats", folder.path()).start().unwrap();
    // Both ports answer both protocols.
    for address in [running.grpc_address().unwrap(), running.rest_address().unwrap()] {
        let request = PredictRequest { model_spec: spec("flats", ""), inputs: inputs(), output_filter: vec![] };
        let answer: PredictResponse = call(address, PREDICT, &request, &[]).unwrap();
        let model_spec = answer.model_spec.unwrap();
        assert_eq!((model_spec.name.as_str(), model_spec.signature_name.as_str()), ("flats", "serving_default"));
        assert_eq!(model_spec.version_choice, Some(VersionChoice::Version(Int64Value { value: 4 })));
        for (name, array) in expected() {
            assert_eq!(answer.outputs[&name].to_array().unwrap(), array, "{name}");
        }
        assert_eq!(answer.outputs["logits"].float_val.len(), 2, "values are in the typed field");
    }
    let address = running.grpc_address().unwrap();
    // Typed fields, a broadcast value, and only one output.
    let mut typed = inputs();
    typed.get_mut("size").unwrap().tensor_content.clear();
    typed.get_mut("size").unwrap().float_val = vec![55.0];
    let filter = vec!["logits".to_string()];
    let request = PredictRequest { model_spec: spec("flats", "predict"), inputs: typed, output_filter: filter };
    let answer: PredictResponse = call(address, PREDICT, &request, &[]).unwrap();
    assert_eq!(answer.outputs.keys().collect::<Vec<_>>(), ["logits"]);
    assert_eq!(answer.outputs["logits"].float_val[0], expected()["logits"].as_slice::<f32>().unwrap()[0]);
}

#[test]
fn examples() {
    let folder = served(classifier(0), 4);
    let running = server().model("flats", folder.path()).start().unwrap();
    let address = running.grpc_address().unwrap();
    let (probabilities, logistic) = (expected()["probabilities"].clone(), expected()["logistic"].clone());
    let rows: Vec<Vec<u8>> = [(55.0, "Oslo"), (80.0, "Rome")]
        .map(|(size, city)| ExampleBuilder::new().floats("size", &[size]).strings("city", [city]).build())
        .into();
    let input = Some(Input { kind: Some(InputKind::ExampleList(ExampleList { examples: rows })) });
    let request = ExampleRequest { model_spec: spec("flats", "classification"), input: input.clone() };
    let answer: ClassificationResponse =
        call(address, "tensorflow.serving.PredictionService/Classify", &request, &[]).unwrap();
    let classes: Vec<Class> = answer.result.unwrap().classifications.into_iter().flat_map(|row| row.classes).collect();
    assert_eq!(classes.iter().map(|class| class.label.as_str()).collect::<Vec<_>>(), ["0", "1", "0", "1"]);
    let scores: Vec<f32> = classes.iter().map(|class| class.score).collect();
    assert_eq!(scores, probabilities.as_slice::<f32>().unwrap());

    let context = ExampleBuilder::new().strings("city", ["Oslo"]).build();
    let examples = vec![ExampleBuilder::new().floats("size", &[55.0]).build()];
    let with_context = ExampleListWithContext { examples, context };
    let request = ExampleRequest {
        model_spec: spec("flats", "regression"),
        input: Some(Input { kind: Some(InputKind::ExampleListWithContext(with_context)) }),
    };
    let answer: RegressionResponse =
        call(address, "tensorflow.serving.PredictionService/Regress", &request, &[]).unwrap();
    assert_eq!(answer.result.unwrap().regressions[0].value, logistic.as_slice::<f32>().unwrap()[0]);

    let task = |signature: &str, method: &str| InferenceTask {
        model_spec: spec("flats", signature),
        method_name: format!("tensorflow/serving/{method}"),
    };
    let both = vec![task("regression", "regress"), task("classification", "classify")];
    let request = MultiInferenceRequest { tasks: both, input: input.clone() };
    const MULTI: &str = "tensorflow.serving.PredictionService/MultiInference";
    let answer: MultiInferenceResponse = call(address, MULTI, &request, &[]).unwrap();
    let Some(TaskResult::Regression(values)) = &answer.results[0].result else { panic!("{answer:?}") };
    let values: Vec<f32> = values.regressions.iter().map(|one| one.value).collect();
    assert_eq!(values, logistic.as_slice::<f32>().unwrap());
    assert!(matches!(answer.results[1].result, Some(TaskResult::Classification(_))));
    for (tasks, code, text) in [
        (vec![task("regression", "regress"), task("regression", "regress")], 3, "Duplicate evaluation"),
        (vec![task("regression", "guess")], 12, "Unsupported signature method_name"),
        (vec![], 3, "tasks"),
    ] {
        let request = MultiInferenceRequest { tasks, input: input.clone() };
        let (found, message) = call::<MultiInferenceResponse>(address, MULTI, &request, &[]).unwrap_err();
        assert_eq!((found, message.contains(text)), (code, true), "{message}");
    }
}

#[test]
fn information() {
    let folder = served(classifier(0), 4);
    let running = server().model("flats", folder.path()).start().unwrap();
    let address = running.grpc_address().unwrap();
    let request =
        GetModelMetadataRequest { model_spec: spec("flats", ""), metadata_field: vec!["signature_def".into()] };
    const METADATA: &str = "tensorflow.serving.PredictionService/GetModelMetadata";
    let answer: GetModelMetadataResponse = call(address, METADATA, &request, &[]).unwrap();
    let map = SignatureDefMap::decode(answer.metadata["signature_def"].value.as_slice()).unwrap();
    assert_eq!(map.signature_def, *SavedModel::open(classifier(0)).unwrap().signature_defs());
    let request = GetModelMetadataRequest { model_spec: spec("flats", ""), metadata_field: vec!["x".into()] };
    assert_eq!(
        call::<GetModelMetadataResponse>(address, METADATA, &request, &[]).unwrap_err(),
        (3, "Metadata field x is not supported".into())
    );

    const STATUS: &str = "tensorflow.serving.ModelService/GetModelStatus";
    let request = GetModelStatusRequest { model_spec: spec("flats", "") };
    let answer: GetModelStatusResponse = call(address, STATUS, &request, &[]).unwrap();
    let status = Some(StatusProto::default());
    assert_eq!(answer.model_version_status, [ModelVersionStatus { version: 4, state: 30, status }]);
    let request = GetModelStatusRequest { model_spec: spec("no", "") };
    assert_eq!(call::<GetModelStatusResponse>(address, STATUS, &request, &[]).unwrap_err().0, 5);

    const HEALTH: &str = "grpc.health.v1.Health/Check";
    for (service, expected) in [("", Ok(1)), ("tensorflow.serving.PredictionService", Ok(1)), ("x", Err(5))] {
        let request = HealthCheckRequest { service: service.into() };
        let found = call::<HealthCheckResponse>(address, HEALTH, &request, &[]);
        assert_eq!(found.map(|answer| answer.status).map_err(|(code, _)| code), expected);
    }
}

#[test]
fn failures() {
    let folder = served(classifier(0), 4);
    let running = server().model("flats", folder.path()).max_body_bytes(100_000).start().unwrap();
    let address = running.grpc_address().unwrap();
    let good = PredictRequest { model_spec: spec("flats", ""), inputs: inputs(), output_filter: vec![] };
    let with = |change: fn(&mut PredictRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    for (request, code, text) in [
        (with(|r| r.model_spec = None), 3, "Missing ModelSpec"),
        (with(|r| r.model_spec = spec("no", "")), 5, "Servable not found for request: Latest(no)"),
        (with(|r| r.model_spec = spec("flats", "x")), 9, "Serving signature key \"x\" not found."),
        (with(|r| drop(r.inputs.remove("size"))), 3, "Missing but required: {size}."),
        (with(|r| r.output_filter = vec!["x".into()]), 3, "output tensor alias not found in signature: x"),
        (with(|r| r.inputs.get_mut("size").unwrap().dtype = 9), 3, "tensor parsing error: size"),
        (
            with(|r| {
                let three = TensorProto::from_array(&Array::from([1f32, 2.0, 3.0]));
                r.inputs.insert("size".into(), three);
            }),
            3,
            "rows",
        ),
    ] {
        let (found, message) = call::<PredictResponse>(address, PREDICT, &request, &[]).unwrap_err();
        assert_eq!((found, message.contains(text)), (code, true), "{message}");
    }
    let late = call::<PredictResponse>(address, PREDICT, &good, &[("grpc-timeout", "1n")]).unwrap_err();
    assert_eq!(late.0, 4, "{late:?}");
    call::<PredictResponse>(address, PREDICT, &good, &[("grpc-timeout", "20S")]).unwrap();
    assert_eq!(call::<PredictResponse>(address, "tensorflow.serving.No/No", &good, &[]).unwrap_err().0, 12);
    // Messages that are damaged, cut, or too large.
    for bytes in [&b"\0\0\0\0\x02\xff\xff"[..], b"\0\0\0\0\x09x", b"\0\x7f\xff\xff\xffx", b"\x01\0\0\0\x01x", b""] {
        let failed = raw_call::<PredictResponse>(address, PREDICT, Bytes::from_static(bytes), &[]);
        assert!(failed.is_err(), "{bytes:?}");
    }
    std::thread::sleep(Duration::from_millis(10));
    call::<PredictResponse>(address, PREDICT, &good, &[]).unwrap();
}

/// Messages may be packed with gzip, as clients in C++ and Python do when they are told to.
#[test]
fn packed_messages() {
    let folder = served(classifier(0), 4);
    let running = server().model("flats", folder.path()).max_body_bytes(100_000).start().unwrap();
    let address = running.grpc_address().unwrap();
    let good = PredictRequest { model_spec: spec("flats", ""), inputs: inputs(), output_filter: vec![] };
    let expected = call::<PredictResponse>(address, PREDICT, &good, &[]).unwrap();
    let send = |packed: &[u8], packing: &str| {
        let mut framed = BytesMut::new();
        framed.put_u8(1);
        framed.put_u32(packed.len() as u32);
        framed.put_slice(packed);
        raw_call::<PredictResponse>(address, PREDICT, framed.freeze(), &[("grpc-encoding", packing)])
    };
    let bytes = good.encode_to_vec();
    assert_eq!(send(&gzip(&bytes), "gzip").unwrap(), expected);
    // The header says how messages are packed that are packed.
    assert_eq!(call::<PredictResponse>(address, PREDICT, &good, &[("grpc-encoding", "gzip")]).unwrap(), expected);
    for (sent, packing, code, text) in [
        (gzip(&vec![0; 10_000_000]), "gzip", 8, "Received message larger than max"),
        (bytes.clone(), "gzip", 13, "not valid gzip"),
        (gzip(&bytes), "identity", 13, "the header `grpc-encoding` does not say how"),
        (bytes, "snappy", 12, "packed with `snappy`; send them as they are, or with gzip"),
    ] {
        let (found, message) = send(&sent, packing).unwrap_err();
        assert_eq!((found, message.contains(text)), (code, true), "{found} {message}");
    }
    // Also a message that is not packed has the limit: 100,000 bytes, beside the five before it.
    let (code, message) = raw_call::<PredictResponse>(address, PREDICT, vec![0; 100_006].into(), &[]).unwrap_err();
    assert_eq!((code, message.as_str()), (8, "Received message larger than max (more than 100000 vs. 100000)"));
    assert_eq!(call::<PredictResponse>(address, PREDICT, &good, &[]).unwrap(), expected);
}

/// Messages count against the limit of all bodies, and give back what they took.
#[test]
fn messages_count_against_the_limit() {
    let folder = served(classifier(0), 4);
    let running =
        server().model("flats", folder.path()).max_body_bytes(200_000).max_total_bytes(100_000).start().unwrap();
    let address = running.grpc_address().unwrap();
    let request = |n: usize| {
        let city = Array::from_strings([1], ["x".repeat(n)]).unwrap();
        let inputs = [("size", Array::from([1f32])), ("city", city)];
        let inputs = inputs.map(|(name, array)| (name.to_string(), TensorProto::from_array(&array))).into();
        PredictRequest { model_spec: spec("flats", ""), inputs, output_filter: vec![] }
    };
    for _ in 0..3 {
        call::<PredictResponse>(address, PREDICT, &request(80_000), &[]).unwrap();
        let (code, message) = call::<PredictResponse>(address, PREDICT, &request(150_000), &[]).unwrap_err();
        assert!(code == 8 && message.contains("more than 100000 bytes"), "{code} {message}");
    }
}

/// Policies and labels may be changed by a client; folders may not.
#[test]
fn a_new_configuration() {
    let folder = served(classifier(0), 1);
    crate::models::publish(classifier(1), folder.path(), 2);
    let running = server().model("flats", folder.path()).start().unwrap();
    let address = running.grpc_address().unwrap();
    let flats = ModelConfigProto {
        name: "flats".into(),
        model_version_policy: Some(PolicyProto { choice: Some(PolicyChoice::All(AllProto {})) }),
        version_labels: BTreeMap::from([("stable".to_string(), 1)]),
        ..Default::default()
    };
    let ask = |config: Vec<ModelConfigProto>| {
        let config = Some(ModelServerConfig { model_config_list: Some(ModelConfigList { config }) });
        let request = ReloadConfigRequest { config };
        call::<ReloadConfigResponse>(
            address,
            "tensorflow.serving.ModelService/HandleReloadConfigRequest",
            &request,
            &[],
        )
    };
    let stable = || {
        let version_choice = Some(VersionChoice::VersionLabel("stable".into()));
        let model_spec = Some(ModelSpec { version_choice, ..spec("flats", "").unwrap() });
        let request = PredictRequest { model_spec, inputs: inputs(), output_filter: vec![] };
        call::<PredictResponse>(address, PREDICT, &request, &[])
    };
    assert_eq!(stable().unwrap_err().0, 3);
    ask(vec![flats.clone()]).unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while stable().is_err() && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    let version = stable().unwrap().model_spec.unwrap().version_choice;
    assert_eq!(version, Some(VersionChoice::Version(Int64Value { value: 1 })));
    let elsewhere = ModelConfigProto { base_path: "/etc".into(), ..flats.clone() };
    let added = ModelConfigProto { name: "more".into(), base_path: "/etc".into(), ..flats };
    assert_eq!(ask(vec![elsewhere]).unwrap_err().0, 7);
    assert_eq!(ask(vec![added]).unwrap_err().0, 7);
    assert!(stable().is_ok(), "a refused configuration changes nothing");
}

/// A question of reflection, and the fields of its answer that are looked at.
#[derive(Clone, PartialEq, prost::Message)]
struct ReflectionRequest {
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    list: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReflectionResponse {
    #[prost(message, optional, tag = "4")]
    files: Option<Names>,
    #[prost(message, optional, tag = "6")]
    services: Option<Names>,
    #[prost(message, optional, tag = "7")]
    error: Option<Code>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Names {
    #[prost(bytes = "vec", repeated, tag = "1")]
    all: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Code {
    #[prost(int32, tag = "1")]
    code: i32,
}

/// The real client of reflection is in `oracles/live/kserve_grpc.py`.
#[test]
fn reflection() {
    let folder = served(classifier(0), 4);
    let running = server().model("flats", folder.path()).start().unwrap();
    for version in ["v1", "v1alpha"] {
        let ask = |symbol: Option<&str>, list: Option<&str>| -> ReflectionResponse {
            let request = ReflectionRequest { symbol: symbol.map(String::from), list: list.map(String::from) };
            let method = format!("grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            call(running.grpc_address().unwrap(), &method, &request, &[]).unwrap()
        };
        assert_eq!(ask(None, Some("")).services.unwrap().all.len(), 4);
        // The file of the service, and the three that it imports.
        assert_eq!(ask(Some("tensorflow.serving.PredictionService"), None).files.unwrap().all.len(), 4);
        assert_eq!(ask(Some("no.such.Thing"), None).error.unwrap().code, 5);
    }
}
