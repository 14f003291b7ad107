//! Models that `tf.saved_model.save` wrote are served as others are.

use std::fs;
use std::path::Path;

use estimand::prelude::*;
use estimand_wire::record::RecordReader;
use estimand_wire::{Message, NameAttrList};
use serde_json::{Map, Value, json};

use crate::models::{fixture, rest, served, server};

/// The tensors in the records of a file, by name.
fn records(path: &Path) -> Vec<Vec<(String, Array)>> {
    let bytes = fs::read(path).unwrap();
    let mut records = RecordReader::new(&bytes[..]);
    let mut all = Vec::new();
    while let Some(record) = records.read().unwrap() {
        let message = NameAttrList::decode(record).unwrap();
        all.push(
            message.attr.iter().map(|(key, attr)| (key.clone(), attr.tensor().unwrap().to_array().unwrap())).collect(),
        );
    }
    all
}

/// The elements of a matrix, as JSON rows.
fn rows(array: &Array) -> Value {
    let elements: Vec<Value> = match array.dtype() {
        DType::Str => array.strings().unwrap().map(|text| json!(String::from_utf8_lossy(text))).collect(),
        _ => array.to_f64_vec().unwrap().into_iter().map(Value::from).collect(),
    };
    elements.chunks(array.dims()[1]).map(|row| json!(row)).collect()
}

/// A functional model with a lookup, and a recurrent network over words: TensorFlow's answers.
#[test]
fn keras_models_answer_as_tensorflow_does() {
    for name in ["functional", "text_lstm"] {
        let model = fixture(&format!("saved_model_v2_{name}"));
        let folder = served(&model, 1);
        let running = server().model("keras", folder.path()).start().unwrap();
        let mut client = rest(&running);
        for (request, answer) in records(&model.join("requests")).iter().zip(records(&model.join("answers"))) {
            let inputs: Map<String, Value> = request.iter().map(|(key, array)| (key.clone(), rows(array))).collect();
            let reply = client.post("/v1/models/keras:predict", &json!({"inputs": inputs}).to_string());
            assert_eq!(reply.status, 200);
            let outputs = reply.json()["outputs"].clone();
            for (key, expected) in &answer {
                // A single output stands alone.
                let found = if answer.len() == 1 { &outputs } else { &outputs[key] };
                let found: Vec<f64> = found
                    .as_array()
                    .unwrap()
                    .iter()
                    .flat_map(|row| row.as_array().unwrap())
                    .map(|x| x.as_f64().unwrap())
                    .collect();
                let expected = expected.to_f64_vec().unwrap();
                assert_eq!(found.len(), expected.len());
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 + 1e-5 * b.abs();
                assert!(found.iter().zip(&expected).all(near), "{name}, {key}: {found:?} is not {expected:?}");
            }
        }
    }
}
