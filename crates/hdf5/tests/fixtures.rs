//! Files of h5py, Keras 2.15 and Keras 3 hold what h5py says they hold (oracles/gen/hdf5.py).

use std::path::PathBuf;

use estimand_fixture::{Array as Expected, Case, cases};
use estimand_hdf5::{File, Node};
use estimand_tensor::{Array, DType, Limits, Result};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../oracles/fixtures/hdf5", name].iter().collect()
}

/// Compares everything in the cases of a fixture, and that there is nothing else.
fn compare(fixture: &str) {
    let cases = cases(fixture);
    let mut at = 0;
    while at < cases.len() {
        let name = cases[at].name();
        let n = cases[at..].iter().take_while(|case| case.name() == name).count();
        let limits = Limits::default();
        let on_disk = File::open(path(name), &limits).unwrap();
        let in_memory = File::from_bytes(std::fs::read(path(name)).unwrap(), &limits).unwrap();
        for file in [on_disk, in_memory] {
            for case in &cases[at..at + n] {
                check(&file, case);
            }
        }
        at += n;
    }
}

fn check(file: &File, case: &Case) {
    let path: String = case.setting("path");
    let place = format!("{case} {path}");
    let attribute: Option<String> = case.option("attribute");
    if let Some(feature) = case.option::<String>("feature") {
        let error = refused(file, &path, attribute.as_deref()).expect_err(&place).to_string();
        assert!(error.contains(&feature) && error.contains(&format!("in `{path}` of ")), "{place}: {error}");
        return;
    }
    let node = file.root().get(&path).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(node.path(), path);
    match (&node, attribute) {
        (_, Some(name)) => {
            assert!(node.attribute_names().unwrap().contains(&name), "{place}");
            expect(node.attribute(&name), case.array("value"), &format!("{place}@{name}"));
        }
        (Node::Group(group), None) => {
            assert_eq!(group.names().collect::<Vec<_>>(), case.setting::<Vec<String>>("names"), "{place}");
            if let Some(order) = case.option::<Vec<String>>("order") {
                assert_eq!(group.names_by_creation().unwrap(), order, "{place}");
            }
        }
        (Node::Dataset(dataset), None) => {
            let array = dataset.read();
            if let Ok(array) = &array {
                assert_eq!((dataset.shape(), dataset.dtype().unwrap()), (array.dims(), array.dtype()), "{place}");
            }
            expect(array, case.array("value"), &place);
        }
    }
}

/// Reads an object or an attribute that should be refused.
fn refused(file: &File, path: &str, attribute: Option<&str>) -> Result<Array> {
    match (file.root().get(path)?, attribute) {
        (node, Some(name)) => node.attribute(name),
        (Node::Dataset(dataset), None) => dataset.read(),
        (Node::Group(_), None) => panic!("{path} is a group"),
    }
}

fn expect(found: Result<Array>, expected: Expected, place: &str) {
    let found = found.unwrap_or_else(|error| panic!("{place}: {error}"));
    let dtype = found.dtype();
    assert_eq!((dtype.to_string(), found.dims()), (expected.dtype.to_string(), &expected.dims[..]), "{place}");
    match dtype {
        DType::Str => assert_eq!(found.strings().unwrap().collect::<Vec<_>>(), expected.strings(), "{place}"),
        _ => assert_eq!(found.bytes(), expected.to_ne_bytes(), "{place}"),
    }
}

#[test]
fn files_of_h5py_and_keras_2() {
    compare("hdf5");
}

#[test]
fn files_of_keras_3() {
    compare("hdf5_keras3");
}

/// The number of attributes is the number of cases, so none is hidden.
#[test]
fn all_attributes_are_listed() {
    let expected = cases("hdf5");
    let of = |path: &str| {
        let here = |case: &&Case| case.name() == "types.h5" && case.setting::<String>("path") == path;
        expected.iter().filter(here).filter(|case| case.has("attribute")).count()
    };
    let file = File::open(path("types.h5"), &Limits::default()).unwrap();
    for place in ["/", "/numbers", "/strings", "/storage"] {
        assert_eq!(file.root().get(place).unwrap().attribute_names().unwrap().len(), of(place), "{place}");
    }
}

#[test]
fn errors_name_the_object_and_the_remedy() {
    let file = File::open(path("keras2_model.h5"), &Limits::default()).unwrap();
    let root = file.root();
    let error = root.group("model_weights/a/c").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no child `c`\n  in `/model_weights/a` of ") && error.ends_with("`a`"),
        "{error}"
    );
    let error = root.dataset("model_weights").unwrap_err().to_string();
    assert!(error.starts_with("`model_weights` is a group, expected a dataset\n  in `/model_weights` of"), "{error}");
    let error = root.attribute("model_confg").unwrap_err().to_string();
    assert!(error.contains("did you mean `model_config`?"), "{error}");
    assert!(root.find_attribute("model_confg").unwrap().is_none());
    assert!(
        root.contains("model_weights/a/a/") && root.contains("/model_weights") && !root.contains("model_weights/c")
    );
    assert!(!root.contains("") && !root.contains("model_weights/a/a/kernel:0/x"));
    let error = root.get("model_weights/a/a/kernel:0/x").unwrap_err().to_string();
    assert!(error.contains("leads through a dataset"), "{error}");
    let error = File::open(path("../vocabulary.txt"), &Limits::default()).unwrap_err().to_string();
    assert!(error.starts_with("this is no HDF5 file"), "{error}");
}
