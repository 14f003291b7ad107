//! Requests that leave something out or have too much, and explanations.

use std::collections::BTreeMap;

use estimand::prelude::*;
use estimand_serve::UnknownKeys;
use estimand_wire::TensorProto;
use serde_json::{Value, json};

use crate::grpc::call;
use crate::messages::{ModelSpec, PredictRequest, PredictResponse};
use crate::models::{classifier, described, rest, served, server};

const PREDICT: &str = "/v1/models/flats:predict";

/// The logits of rows.
fn logits(reply: &crate::client::Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["predictions"].as_array().unwrap().iter().map(|row| row["logits"].clone()).collect()
}

/// A value that is absent or null is the declared default: the numeric column's own, and nothing
/// for a category.
#[test]
fn absent_values_take_the_default() {
    let folder = served(described(), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let whole =
        r#"{"instances": [{"size": 50.0, "city": "Oslo"}, {"size": 30.0, "city": ""}, {"size": 50.0, "city": ""}]}"#;
    let expected = logits(&client.post(PREDICT, whole));
    assert_ne!(expected[0], expected[2], "the city matters");
    for body in [
        r#"{"instances": [{"city": "Oslo"}, {"size": 30.0}, {}]}"#,
        r#"{"instances": [{"size": null, "city": "Oslo"}, {"city": null, "size": 30.0}, {"city": null, "size": null}]}"#,
    ] {
        assert_eq!(logits(&client.post(PREDICT, body)), expected, "{body}");
    }
    // Columns: values in a list, and a whole input.
    let columns = client.post(PREDICT, r#"{"inputs": {"size": [null, 30, 50], "city": ["Oslo", null, ""]}}"#).json();
    assert_eq!(columns["outputs"]["logits"], json!(expected));
    let columns = client.post(PREDICT, r#"{"inputs": {"city": ["Oslo"]}}"#).json();
    assert_eq!(columns["outputs"]["logits"], json!(expected[..1]));
    // KServe.
    let body = json!({"inputs": [{"name": "city", "shape": [1], "datatype": "BYTES", "data": ["Oslo"]}]});
    let answer = client.post("/v2/models/flats/infer", &body.to_string()).json();
    let output = answer["outputs"].as_array().unwrap().iter().find(|output| output["name"] == "logits").unwrap();
    assert_eq!(output["data"], expected[0]);
    // gRPC.
    let inputs =
        BTreeMap::from([("city".to_string(), TensorProto::from_array(&Array::from_strings([1], ["Oslo"]).unwrap()))]);
    let model_spec = Some(ModelSpec { name: "flats".into(), ..ModelSpec::default() });
    let request = PredictRequest { model_spec, inputs, ..PredictRequest::default() };
    let method = "tensorflow.serving.PredictionService/Predict";
    let answer: PredictResponse = call(running.grpc_address().unwrap(), method, &request, &[]).unwrap();
    let found = answer.outputs["logits"].to_array().unwrap();
    assert_eq!(found.as_slice::<f32>().unwrap()[0], expected[0][0].as_f64().unwrap() as f32);
    // Examples.
    let classify = "/v1/models/flats:classify";
    let signature = r#""signature_name": "classification""#;
    let body = format!(
        r#"{{{signature}, "examples": [{{"size": null, "city": "Oslo"}}, {{"city": "Oslo"}}, {{"size": 50.0, "city": "Oslo"}}]}}"#
    );
    let results = client.post(classify, &body).json()["results"].clone();
    assert!(results[0] == results[2] && results[1] == results[2], "{results}");
}

/// Without a default, the error names the field, the type and an example of the training.
#[test]
fn a_value_without_a_default_is_explained() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let hint = "expected float, such as 20.0";
    for (body, text) in [
        (r#"{"instances": [{"city": "Oslo"}]}"#, "Input `size` is missing and has no default: "),
        (
            r#"{"instances": [{"size": null, "city": "Oslo"}]}"#,
            "JSON Value: null Type: Null is not of expected type: float; ",
        ),
        (
            r#"{"instances": [{"size": "big", "city": "Oslo"}]}"#,
            "JSON Value: \"big\" Type: String is not of expected type: float; ",
        ),
        (
            r#"{"inputs": {"city": ["Oslo"]}}"#,
            "Missing named input: size in 'inputs' object. Input `size` is missing and has no default: ",
        ),
    ] {
        let reply = client.post(PREDICT, body);
        assert_eq!(reply.status, 400);
        assert!(reply.error().contains(&format!("{text}{hint}")), "{body}: {}", reply.error());
    }
    let body = json!({"inputs": [{"name": "city", "shape": [1], "datatype": "BYTES", "data": ["Oslo"]}]});
    let reply = client.post("/v2/models/flats/infer", &body.to_string());
    assert!(reply.status == 400 && reply.error().contains(hint), "{}", reply.text());
}

#[test]
fn unknown_keys_by_policy() {
    let folder = served(described(), 1);
    let rows = r#"{"instances": [{"size": 30.0, "city": "Oslo", "sise": {"deep": [1]}}]}"#;
    let columns = r#"{"inputs": {"size": [30.0], "city": ["Oslo"], "sise": 1}}"#;
    let infer = json!({"inputs": [
        {"name": "size", "shape": [1], "datatype": "FP32", "data": [30.0]},
        {"name": "sise", "shape": [1], "datatype": "FP32", "data": [30.0]}]})
    .to_string();
    for (policy, expected) in [
        (UnknownKeys::TensorFlow, [400, 200, 400]),
        (UnknownKeys::Ignore, [200, 200, 200]),
        (UnknownKeys::Warn, [200, 200, 200]),
        (UnknownKeys::Error, [400, 400, 400]),
    ] {
        let running = server().unknown_keys(policy).model("flats", folder.path()).start().unwrap();
        let mut client = rest(&running);
        let replies =
            [client.post(PREDICT, rows), client.post(PREDICT, columns), client.post("/v2/models/flats/infer", &infer)];
        assert_eq!(replies.each_ref().map(|reply| reply.status), expected, "{policy:?}");
        for reply in replies.iter().filter(|reply| reply.status == 400) {
            assert!(reply.error().contains("sise"), "{}", reply.text());
        }
        let n = expected.iter().filter(|status| **status == 200).count();
        let metrics = client.get("/monitoring/prometheus/metrics").text();
        assert!(metrics.contains(&format!("estimand_unknown_keys_total{{model_name=\"flats\"}} {n}\n")), "{metrics}");
    }
}

/// By hand: the buckets are below 40, 40 to 60, and above; the two most frequent cities have the
/// ids 0 and 1, others 2 or 3.
#[test]
fn explanations() {
    let folder = served(described(), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let body = r#"{"instances": [{"size": 39.5, "city": "Oslo"}, {"city": "Paris"}, {"size": 60.0}]}"#;
    let plain = client.post(PREDICT, body);
    let answer = client.post(&format!("{PREDICT}?explain=1"), body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(answer["predictions"], plain.json()["predictions"]);
    let rows = answer["explanations"].as_array().unwrap();
    let of = |row: usize, column: &str| rows[row][column].clone();
    assert_eq!(of(0, "size_bucketized"), json!({"bucket": 0, "below": 40.0, "default": false}));
    assert_eq!(of(1, "size_bucketized"), json!({"bucket": 1, "from": 40.0, "below": 60.0, "default": true}));
    assert_eq!(of(2, "size_bucketized"), json!({"bucket": 2, "from": 60.0, "default": false}));
    let city = of(0, "city_embedding");
    assert!((0..2).contains(&city["id"].as_i64().unwrap()) && city["unknown"] == false, "{city}");
    let city = of(1, "city_embedding");
    assert!((2..4).contains(&city["id"].as_i64().unwrap()) && city["unknown"] == true, "{city}");
    assert_eq!(of(2, "city_embedding"), json!({"id": null, "unknown": false, "default": true}));
    assert_eq!(client.post(&format!("{PREDICT}?explain=maybe"), body).status, 400);
}
