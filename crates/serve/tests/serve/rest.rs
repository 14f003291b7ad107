//! TensorFlow Serving's REST interface.

use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use serde_json::{Value, json};

use crate::models::{classifier, fixture, rest, served, server};

/// The numbers of a JSON value, in order.
fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap() as f32],
    }
}

/// Rows and columns give the bits of the signature itself, for both of its names.
#[test]
fn predict_answers_as_the_export_does() {
    let folder = served(classifier(0), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let (sizes, cities) = ([55f32, 80.5, 140.0], ["Oslo", "Bergen", "K\u{f6}ln"]);
    let feeds = [("size", Array::from(sizes)), ("city", Array::from_strings([3], cities).unwrap())];
    let expected = SavedModel::open(classifier(0)).unwrap().signature("predict").unwrap().run(&feeds).unwrap();
    let rows: Vec<Value> = sizes.iter().zip(cities).map(|(size, city)| json!({"city": city, "size": size})).collect();
    for signature in [json!("predict"), json!("serving_default")] {
        let by_row = client
            .post("/v1/models/flats:predict", &json!({"instances": rows, "signature_name": signature}).to_string());
        assert_eq!((by_row.status, by_row.header("content-type")), (200, Some("application/json")));
        let by_column = client.post(
            "/v1/models/flats/versions/3:predict",
            &json!({"signature_name": signature, "inputs": {"size": sizes, "city": cities}}).to_string(),
        );
        let (by_row, by_column) = (by_row.json(), by_column.json());
        for (name, array) in &expected {
            let row_values: Vec<Value> =
                by_row["predictions"].as_array().unwrap().iter().map(|row| row[name].clone()).collect();
            assert_eq!(by_column["outputs"][name], Value::Array(row_values), "{name}");
            if array.dtype() == DType::F32 {
                assert_eq!(numbers(&by_column["outputs"][name]), array.as_slice::<f32>().unwrap(), "{name}");
            }
        }
        let classes: Vec<&str> =
            by_row["predictions"].as_array().unwrap().iter().map(|row| row["classes"][0].as_str().unwrap()).collect();
        let own: Vec<_> = expected["classes"].strings().unwrap().map(|s| String::from_utf8_lossy(s)).collect();
        assert_eq!(classes, own);
    }
}

#[test]
fn classify_and_regress() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let feeds = [("size", Array::from([55f32, 80.0])), ("city", Array::from_strings([2], ["Oslo", "Rome"]).unwrap())];
    let expected = SavedModel::open(classifier(0)).unwrap().signature("predict").unwrap().run(&feeds).unwrap();
    let examples = json!([{"size": 55.0, "city": "Oslo"}, {"size": [80.0], "city": ["Rome"]}]);
    let body = json!({"signature_name": "classification", "examples": examples}).to_string();
    let answer = client.post("/v1/models/flats:classify", &body).json();
    let results = answer["results"].as_array().unwrap();
    let labels: Vec<&str> = results[0].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    assert_eq!(labels, ["0", "1"]);
    let scores: Vec<f32> = results
        .iter()
        .flat_map(|row| row.as_array().unwrap().iter().map(|pair| pair[1].as_f64().unwrap() as f32))
        .collect();
    assert_eq!(scores, expected["probabilities"].as_slice::<f32>().unwrap());
    let body = json!({"signature_name": "regression", "context": {"city": "Oslo"}, "examples": [{"size": 55.0}]});
    let answer = client.post("/v1/models/flats:regress", &body.to_string()).json();
    assert_eq!(numbers(&answer["results"]), expected["logistic"].as_slice::<f32>().unwrap()[..1]);

    for (path, body, text) in [
        (":classify", json!({"examples": [{"size": 1.0}]}), "Expected one input Tensor."),
        (":classify", json!({"signature_name": "no", "examples": [{}]}), "No signature was found with the name: no"),
        (
            ":classify",
            json!({"signature_name": "regression", "examples": [{}]}),
            "at least one of \"classes\" or \"scores\"",
        ),
        (":regress", json!({"signature_name": "classification", "examples": [{}]}), "Expected one output Tensor."),
        (":regress", json!({"signature_name": "regression", "examples": [{"city": "Oslo"}]}), "size"),
        (":regress", json!({"signature_name": "regression", "examples": []}), "empty array"),
    ] {
        let reply = client.post(&format!("/v1/models/flats{path}"), &body.to_string());
        assert_eq!(reply.status, 400);
        assert!(reply.error().contains(text), "{}", reply.error());
    }
}

/// An export of TensorFlow's Estimator, whose answers TensorFlow has written down.
#[test]
fn an_export_of_tensorflow() {
    let folder = served(&fixture("saved_model_deep"), 7);
    let running = server().model("deep", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let metadata = client.get("/v1/models/deep/metadata").json();
    assert_eq!(metadata["model_spec"], json!({"name": "deep", "signature_name": "", "version": "7"}));
    let signature = &metadata["metadata"]["signature_def"]["signature_def"]["predict"];
    assert_eq!(signature["method_name"], "tensorflow/serving/predict");
    assert_eq!(signature["inputs"]["examples"]["dtype"], "DT_STRING");
    assert_eq!(
        signature["inputs"]["examples"]["tensor_shape"],
        json!({"dim": [{"size": "-1", "name": ""}], "unknown_rank": false})
    );
    // An Example without features is answered by the defaults, or refused: never a broken
    // connection.
    let reply = client.post("/v1/models/deep:predict", r#"{"signature_name": "predict", "instances": [{"b64": ""}]}"#);
    assert!([200, 400].contains(&reply.status), "{}", reply.text());
}

#[test]
fn status_and_metadata() {
    let folder = served(classifier(0), 12);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let expected = "{\n \"model_version_status\": [\n  {\n   \"version\": \"12\",\n   \"state\": \"AVAILABLE\",\n   \
                    \"status\": {\n    \"error_code\": \"OK\",\n    \"error_message\": \"\"\n   }\n  }\n ]\n}\n";
    for path in ["/v1/models/flats", "/v1/models/flats/versions/12", "/V1/MODELS/flats"] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.text().as_str()), (200, expected));
    }
    let metadata = client.get("/v1/models/flats/versions/12/metadata").json();
    let inputs = &metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"];
    assert_eq!(inputs["size"]["dtype"], "DT_FLOAT");
    assert!(inputs["size"]["name"].as_str().unwrap().contains(":0"));
    for (path, status, text) in [
        ("/v1/models", 400, "Missing model name in request."),
        ("/v1/models/no", 404, "Could not find any versions of model no"),
        ("/v1/models/flats/versions/13", 404, "Could not find version 13 of model flats"),
        ("/v1/models/flats/versions/13/metadata", 404, "Servable not found for request: Specific(flats, 13)"),
        ("/v1/models/flats/labels/x", 400, "Unrecognized servable version label: x"),
        ("/v1/foo", 400, "Malformed request: GET /v1/foo"),
        ("/nothing", 404, "there is nothing at /nothing"),
    ] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.error().contains(text)), (status, true), "{path}: {}", reply.text());
    }
}

#[test]
fn wrong_requests_have_the_texts_of_the_original() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let row = r#"{"size": 1.0, "city": "Oslo"}"#;
    for (path, body, status, text) in [
        ("/v1/models/flats:predict", "", 400, "JSON Parse error: The document is empty"),
        ("/v1/models/flats:predict", "{]", 400, "JSON Parse error: Missing a name for object member. at offset: 1"),
        ("/v1/models/flats:predict", "{}", 400, "Missing 'inputs' or 'instances' key"),
        (
            "/v1/models/flats:predict",
            r#"{"instances": [{"size": "x", "city": "Oslo"}]}"#,
            400,
            "Failed to process element: 0 key: size of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: \"x\" Type: String is not of expected type: float",
        ),
        ("/v1/models/flats:predict", r#"{"instances": [{"size": null, "city": "Oslo"}]}"#, 400, "key: size of"),
        ("/v1/models/flats:predict", r#"{"instances": [{"city": "a"}]}"#, 400, "keys must be equal to: city,size"),
        (
            "/v1/models/flats:predict",
            r#"{"signature_name": "x", "instances": [1]}"#,
            400,
            "Serving signature name: \"x\" not found in signature def",
        ),
        ("/v1/models/flats:predict", r#"{"inputs": {"size": [1.0], "city": ["a", "b"]}}"#, 400, "has 1 rows"),
        ("/v1/models/flats:predict", r#"{"inputs": {"size": [[1.0]], "city": ["a"]}}"#, 400, "expected f32[-1]"),
        (
            "/v1/models/no:predict",
            &format!("{{\"instances\": [{row}]}}"),
            404,
            "Servable not found for request: Latest(no)",
        ),
        (
            "/v1/models/flats/versions/9:predict",
            &format!("{{\"instances\": [{row}]}}"),
            404,
            "Servable not found for request: Specific(flats, 9)",
        ),
        (
            "/v1/models/flats/labels/x:predict",
            &format!("{{\"instances\": [{row}]}}"),
            400,
            "Unrecognized servable version label: x",
        ),
        ("/v1/models/flats:explain", "{}", 400, "Malformed request: POST /v1/models/flats:explain"),
        ("/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd:predict", "{\"instances\": [1]}", 404, "Servable not found"),
    ] {
        let reply = client.post(path, body);
        assert_eq!((reply.status, reply.header("content-type")), (status, Some("application/json")), "{path} {body}");
        assert!(reply.error().contains(text), "{body}: {}", reply.error());
    }
}
