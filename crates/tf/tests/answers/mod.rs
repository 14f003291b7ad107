//! Fixtures: requests and TensorFlow's answers beside a model, and copies of models to damage.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use estimand_tensor::Array;
use estimand_tf::saved_model::{SavedModel, SignatureModel};
use estimand_wire::record::RecordReader;
use estimand_wire::{AttrValue, GraphDef, Message, MetaGraphDef, NameAttrList, SavedModel as SavedModelProto};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures").join(name)
}

/// Tensors by name.
pub type Tensors = BTreeMap<String, Array>;

/// The records of a file: a signature and tensors each.
pub fn records(path: &Path) -> Vec<(String, Tensors)> {
    let bytes = fs::read(path).unwrap();
    let mut records = RecordReader::new(&bytes[..]);
    let mut all = Vec::new();
    while let Some(record) = records.read().unwrap() {
        let message = NameAttrList::decode(record).unwrap();
        let tensor = |(key, attr): (&String, &AttrValue)| (key.clone(), attr.tensor().unwrap().to_array().unwrap());
        all.push((message.name.clone(), message.attr.iter().map(tensor).collect()));
    }
    all
}

/// Checks the answers of a fixture against those of TensorFlow.
pub fn check(name: &str, open: impl Fn(SavedModel) -> SavedModel) {
    let folder = fixture(name);
    check_model(&folder, &open(SavedModel::open(&folder).unwrap()));
}

/// Checks a model's answers to the requests in a folder against those of TensorFlow.
pub fn check_model(folder: &Path, model: &SavedModel) {
    let name = folder.display();
    let mut signatures: BTreeMap<String, SignatureModel> = BTreeMap::new();
    let (requests, answers) = (records(&folder.join("requests")), records(&folder.join("answers")));
    assert_eq!(requests.len(), answers.len());
    for (i, ((signature, request), (_, answer))) in requests.iter().zip(&answers).enumerate() {
        let place = format!("{name}, request {i}, {signature}");
        let read = || model.signature(signature).unwrap_or_else(|e| panic!("{place}: {e}"));
        let ours = signatures.entry(signature.clone()).or_insert_with(read);
        let inputs: Vec<(&str, Array)> = request.iter().map(|(key, array)| (key.as_str(), array.clone())).collect();
        let found = ours.run(&inputs);
        if answer.contains_key("refused") {
            assert!(found.is_err(), "{place} should be refused");
            continue;
        }
        let found = found.unwrap_or_else(|e| panic!("{place}: {e}"));
        for (key, expected) in answer {
            compare(&found[key], expected, &format!("{place}, {key}"));
        }
    }
}

pub fn compare(found: &Array, expected: &Array, place: &str) {
    assert_eq!((found.dtype(), found.dims()), (expected.dtype(), expected.dims()), "{place}");
    if !expected.dtype().is_float() {
        assert_eq!(found, expected, "{place}");
        return;
    }
    for (a, b) in found.to_f64_vec().unwrap().iter().zip(expected.to_f64_vec().unwrap()) {
        assert!((a - b).abs() <= 1e-6 + 1e-5 * b.abs(), "{place}: {a} is not {b}");
    }
}

/// A copy of a fixture that can be damaged; removed when dropped.
pub struct Copy(pub PathBuf);

impl Copy {
    pub fn of(name: &str, role: &str) -> Copy {
        let target = std::env::temp_dir().join(format!("estimand-{role}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&target);
        for folder in ["", "variables", "assets"] {
            fs::create_dir_all(target.join(folder)).unwrap();
            let Ok(entries) = fs::read_dir(fixture(name).join(folder)) else { continue };
            for entry in entries.map(Result::unwrap).filter(|entry| entry.path().is_file()) {
                fs::copy(entry.path(), target.join(folder).join(entry.file_name())).unwrap();
            }
        }
        Copy(target)
    }

    /// Changes the message in `saved_model.pb`.
    pub fn edit(&self, change: impl FnOnce(&mut MetaGraphDef)) {
        let path = self.0.join("saved_model.pb");
        let mut message = SavedModelProto::decode(&fs::read(&path).unwrap()[..]).unwrap();
        change(&mut message.meta_graphs[0]);
        fs::write(path, message.encode_to_vec()).unwrap();
    }

    /// Changes the graph in `saved_model.pb`.
    pub fn edit_graph(&self, change: impl FnOnce(&mut GraphDef)) {
        self.edit(|graph| change(graph.graph_def.as_mut().unwrap()));
    }

    /// What reading a signature says.
    pub fn error(&self, signature: &str) -> String {
        let error = SavedModel::open(&self.0).and_then(|model| model.signature(signature));
        error.err().expect("the model should not be read").to_string()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn expect(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{error}\nshould contain {part}");
    }
}
