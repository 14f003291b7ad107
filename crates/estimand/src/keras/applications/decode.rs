//! `decode_predictions`: the most probable classes with their names.

use std::path::Path;

use estimand_data::fetch::Checksum;
use estimand_tensor::{Array, Error, Result};
use serde_json::Value;

use super::cache::Cache;

/// Keras' file of ImageNet's classes.
const FILE: &str = "imagenet_class_index.json";
const ADDRESS: &str = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json";
const MD5: &str = "c2c37ea517e94d9795004a39431a14cb";
/// The most bytes of a file of classes. ImageNet's has 35 kB.
const MAX_BYTES: u64 = 1 << 24;

/// The classes of a network: an identifier and a name of each.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassNames(Vec<(String, String)>);

impl ClassNames {
    /// Reads a file in the form of Keras' `imagenet_class_index.json`: an object of all class
    /// numbers, each with an identifier and a name.
    pub fn from_file(path: impl AsRef<Path>) -> Result<ClassNames> {
        let path = path.as_ref();
        let read = || {
            let size = std::fs::metadata(path).map_err(|e| Error::io(path, "read", &e))?.len();
            if size > MAX_BYTES {
                let text = format!("the file of classes has {size} bytes; at most {MAX_BYTES} are read");
                return Err(Error::data(text));
            }
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, "read", &e))?;
            ClassNames::from_json(&text)
        };
        read().map_err(|error| error.in_file(path))
    }

    /// ImageNet's 1000 classes, from Keras' file. It is fetched into the cache if it is missing
    /// there, which needs the feature `download`.
    pub fn imagenet(cache: &Cache) -> Result<ClassNames> {
        ClassNames::from_file(cache.find(FILE, ADDRESS, Some(&Checksum::Md5(MD5.to_string())))?)
    }

    fn from_json(text: &str) -> Result<ClassNames> {
        let malformed = || {
            Error::data("the file is not a list of classes")
                .help("expected an object such as {\"0\": [\"n01440764\", \"tench\"], ..}, as Keras publishes it")
        };
        let document: Value = serde_json::from_str(text).map_err(|e| malformed().context(e.to_string()))?;
        let classes = document.as_object().filter(|classes| !classes.is_empty()).ok_or_else(malformed)?;
        let class = |i: usize| {
            let Some(found) = classes.get(&i.to_string()) else {
                return Err(Error::data(format!("there are {} classes, but none has the number {i}", classes.len())));
            };
            match (found[0].as_str(), found[1].as_str()) {
                (Some(id), Some(name)) => Ok((id.to_string(), name.to_string())),
                _ => Err(malformed().context(format!("in class {i}"))),
            }
        };
        (0..classes.len()).map(class).collect::<Result<_>>().map(ClassNames)
    }
}

/// A class with its score.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Decoded {
    /// The identifier, such as `n02504458`.
    pub class: String,
    /// The name, such as `African_elephant`.
    pub name: String,
    /// The prediction.
    pub score: f32,
}

/// The `top` most probable classes of each row of predictions, the most probable first: Keras'
/// `decode_predictions`.
///
/// ```
/// use estimand::keras::applications::{ClassNames, decode_predictions};
/// use estimand::prelude::*;
///
/// # let file = std::env::temp_dir().join(format!("estimand-doc-classes-{}.json", std::process::id()));
/// # std::fs::write(&file, r#"{"0": ["a1", "ant"], "1": ["b2", "bee"], "2": ["c3", "cat"]}"#).unwrap();
/// let names = ClassNames::from_file(&file)?;
/// let predictions = Array::from_vec([1, 3], vec![0.1f32, 0.7, 0.2])?;
/// let best = decode_predictions(&predictions, 2, &names)?;
/// assert_eq!(best[0].iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["bee", "cat"]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub fn decode_predictions(predictions: &Array, top: usize, names: &ClassNames) -> Result<Vec<Vec<Decoded>>> {
    let n = names.0.len();
    let &[_, found] = predictions.dims() else {
        let text = format!("the predictions have the shape {:?}; expected [rows, {n}]", predictions.dims());
        return Err(Error::shape(text));
    };
    if found != n {
        let text = format!("the predictions have {found} classes; there are names of {n}");
        return Err(Error::shape(text).help("a network with include_top and 1000 classes predicts those of ImageNet"));
    }
    let scores = predictions.as_slice::<f32>()?;
    Ok(scores.chunks_exact(n).map(|row| best(row, top, names)).collect())
}

fn best(row: &[f32], top: usize, names: &ClassNames) -> Vec<Decoded> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    // TF: an ascending order is read from its end, so of equal scores the last is the first.
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(b.cmp(&a)));
    let decoded = |&class: &usize| {
        let (id, name) = names.0[class].clone();
        Decoded { class: id, name, score: row[class] }
    };
    order.iter().take(top).map(decoded).collect()
}
