//! The Open Inference Protocol over REST.

use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use serde_json::{Value, json};

use crate::models::{classifier, rest, served, server};

const INFER: &str = "/v2/models/flats/infer";

fn expected() -> Vec<f32> {
    let feeds = [("size", Array::from([55f32, 80.0])), ("city", Array::from_strings([2], ["Oslo", "Rome"]).unwrap())];
    let signature = SavedModel::open(classifier(0)).unwrap().signature("predict").unwrap();
    signature.run(&feeds).unwrap()["probabilities"].as_slice::<f32>().unwrap().to_vec()
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

/// The output with a name.
fn output<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["outputs"].as_array().unwrap().iter().find(|output| output["name"] == name).unwrap()
}

fn body() -> Value {
    json!({"id": "42", "inputs": [
        {"name": "size", "shape": [2], "datatype": "FP32", "data": [55.0, 80]},
        {"data": [["Oslo"], ["Rome"]], "name": "city", "datatype": "BYTES", "shape": [2]}
    ]})
}

#[test]
fn information() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    assert_eq!(client.get("/v2").json()["name"], "estimand-serve");
    for path in ["/v2/health/live", "/v2/health/ready", "/v2/models/flats/ready", "/v2/models/flats/versions/3/ready"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    let model = client.get("/v2/models/flats").json();
    assert_eq!((&model["versions"], &model["platform"]), (&json!(["3"]), &json!("tensorflow_savedmodel")));
    assert_eq!(
        model["inputs"],
        json!([{"name": "city", "datatype": "BYTES", "shape": [-1]}, {"name": "size", "datatype": "FP32", "shape": [-1]}])
    );
    assert_eq!(
        client.post("/v2/repository/index", "").json(),
        json!([{"name": "flats", "version": "3", "state": "READY", "reason": ""}])
    );
    for path in ["/v2/models/no", "/v2/models/no/ready", "/v2/models/flats/versions/9", "/v2/x", "/v2/models/flats/x"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn values_as_json() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    for path in [INFER, "/v2/models/flats/versions/3/infer"] {
        let answer = client.post(path, &body().to_string()).json();
        assert_eq!((&answer["id"], &answer["model_version"]), (&json!("42"), &json!("3")));
        let probabilities = output(&answer, "probabilities");
        assert_eq!((&probabilities["datatype"], &probabilities["shape"]), (&json!("FP32"), &json!([2, 2])));
        assert_eq!(floats(&probabilities["data"]), expected());
        assert_eq!(output(&answer, "classes")["datatype"], "BYTES");
    }
    // The data of one input come before its type, and one output is enough.
    let mut one = body();
    one["inputs"][0] =
        serde_json::from_str(r#"{"data": [[55.0], [80.0]], "datatype": "FP32", "shape": [2], "name": "size"}"#)
            .unwrap();
    one["outputs"] = json!([{"name": "probabilities"}]);
    let answer = client.post(INFER, &one.to_string()).json();
    assert_eq!(answer["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(floats(&answer["outputs"][0]["data"]), expected());
    let mut named = body();
    named["parameters"] = json!({"signature_name": "predict"});
    assert_eq!(client.post(INFER, &named.to_string()).status, 200);
}

#[test]
fn binary_values() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let head = json!({
        "inputs": [
            {"name": "city", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": 16}},
            {"name": "size", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
        ],
        "outputs": [
            {"name": "probabilities", "parameters": {"binary_data": true}},
            {"name": "class_ids", "parameters": {"binary_data": false}},
            {"name": "classes", "parameters": {"binary_data": true}}
        ]
    })
    .to_string();
    let mut bytes = b"\x04\0\0\0Oslo\x04\0\0\0Rome".to_vec();
    bytes.extend([55f32, 80.0].iter().flat_map(|v| v.to_le_bytes()));
    let ask = |client: &mut crate::client::Client, head: &str, bytes: &[u8], length: usize| {
        let all = [head.as_bytes(), bytes].concat();
        client.ask("POST", INFER, &[("inference-header-content-length", &length.to_string())], &all)
    };
    let reply = ask(&mut client, &head, &bytes, head.len());
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/octet-stream")),
        "{:?}",
        reply.body
    );
    let length: usize = reply.header("inference-header-content-length").unwrap().parse().unwrap();
    let answer: Value = serde_json::from_slice(&reply.body[..length]).unwrap();
    assert_eq!(answer["outputs"][0]["parameters"], json!({"binary_data_size": 16}));
    let found: Vec<f32> =
        reply.body[length..length + 16].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(found, expected());
    assert_eq!(answer["outputs"][1]["data"].as_array().unwrap().len(), 2);
    assert_eq!(reply.body.len(), length + 16 + 10, "two strings of one letter");
    for (bytes, length, text) in [
        (&bytes[..20], head.len(), "claims 8 bytes of binary data, 4 follow"),
        (&[bytes.as_slice(), b"x"].concat(), head.len(), "1 bytes follow"),
        (&bytes, 1_000_000, "but the body has only"),
    ] {
        let reply = ask(&mut client, &head, bytes, length);
        assert_eq!((reply.status, reply.error().contains(text)), (400, true), "{}", reply.text());
    }
}

#[test]
fn wrong_requests() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = body();
        change(&mut body);
        body.to_string()
    };
    for (body, text) in [
        ("[]".to_string(), "expected {\"inputs\": [..]}"),
        ("{\"inputs\": [}".to_string(), "JSON Parse error"),
        (with(&|b| b["inputs"] = json!([])), "no inputs"),
        (with(&|b| b["inputs"] = json!(3)), "`inputs` is Number; expected a list"),
        (with(&|b| b["inputs"][0]["datatype"] = json!("FP64")), "has the datatype FP64; expected FP32"),
        (with(&|b| b["inputs"][0]["datatype"] = json!("FP16")), "`FP16` cannot be read"),
        (with(&|b| b["inputs"][0]["shape"] = json!([3])), "2 elements were given"),
        (with(&|b| b["inputs"][0]["shape"] = json!([1, 2])), "expected f32[-1]"),
        (with(&|b| b["inputs"][0]["shape"] = json!([-1])), "a size is not a number of 0 or more"),
        (with(&|b| b["inputs"][0]["data"] = json!(["x", 1])), "input `size`: JSON Value: \"x\""),
        (with(&|b| b["inputs"][0]["name"] = json!("sizes")), "input `size` is missing"),
        (with(&|b| b["outputs"] = json!([{"name": "x"}])), "there is no output `x`"),
        (with(&|b| b["parameters"] = json!({"signature_name": "x"})), "no signature `x`"),
    ] {
        let reply = client.post(INFER, &body);
        assert_eq!((reply.status, reply.error().contains(text)), (400, true), "{body}: {}", reply.text());
    }
    assert_eq!(client.post("/v2/models/no/infer", &body().to_string()).status, 404);
}
