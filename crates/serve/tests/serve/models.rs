//! Models to serve: exports of small estimators, and fixtures that TensorFlow wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use estimand::adapt_once;
use estimand::export::{ExportSpec, Receiver};
use estimand::prelude::*;
use estimand_serve::{Running, Server};

/// A folder that is removed when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("estimand-serve-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies a folder with its subfolders.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Places a version as exporters do: under a temporary name, then renamed.
pub fn publish(export: &Path, base_path: &Path, version: i64) {
    let temporary = base_path.join(format!("temp-{version}"));
    copy(export, &temporary);
    fs::rename(temporary, base_path.join(version.to_string())).unwrap();
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures").join(name)
}

/// Rows of a flat: its size, its city, and whether it is dear.
pub fn flats() -> Result<Dataset> {
    let n = 60;
    let size: Vec<f32> = (0..n).map(|i| (20 + i * 37 % 120) as f32).collect();
    let city: Vec<&str> = (0..n).map(|i| ["Rome", "Oslo", "Bergen"][i % 3]).collect();
    let dear: Vec<i64> = (0..n).map(|i| i64::from(size[i] + if i % 3 == 1 { 40.0 } else { 0.0 } > 100.0)).collect();
    let rows = [("size", Array::from(size)), ("city", Array::from_strings([n], city)?), ("dear", Array::from(dear))];
    Ok(Dataset::from_arrays(rows).label("dear"))
}

/// An export of a small classifier, trained once: named features and Examples. Seeds give other
/// weights.
pub fn classifier(seed: u64) -> &'static Path {
    static EXPORTS: [OnceLock<(Folder, PathBuf)>; 2] = [OnceLock::new(), OnceLock::new()];
    let trained = EXPORTS[seed as usize].get_or_init(|| {
        let folder = Folder::new();
        let data = flats().unwrap().batch(20);
        let city = categorical_column_with_vocabulary_list("city", ["Rome", "Oslo"]).n_oov_buckets(2);
        let columns = columns![numeric_column("size"), embedding_column(city, 3)];
        let model = DnnClassifier::new([8, 4], columns.clone())
            .config(RunConfig::new().tf_random_seed(seed + 1))
            .model_dir(folder.path().join("model"))
            .build()
            .unwrap();
        model.train(data.repeat(3 + 5 * seed)).unwrap();
        let receiver = Receiver::like(&data).unwrap().and_examples(columns).unwrap();
        let export = model.export_saved_model(folder.path().join("export"), receiver).unwrap();
        (folder, export)
    });
    &trained.1
}

/// An export of a classifier whose columns have defaults, a vocabulary and buckets, with the
/// statistics of its data. Sizes are 20 to 135.
pub fn described() -> &'static Path {
    static EXPORT: OnceLock<(Folder, PathBuf)> = OnceLock::new();
    let trained = EXPORT.get_or_init(|| {
        let folder = Folder::new();
        let data = flats().unwrap();
        let adapted = adapt_once(folder.path().join("model"), &data).unwrap();
        let size = numeric_column("size").default_value(50f32);
        let city = adapted.vocabulary("city", 2).unwrap().n_oov_buckets(2);
        let columns = columns![bucketized_column(&size, [40.0, 60.0]), embedding_column(city, 3)];
        let model = DnnClassifier::new([4], columns)
            .config(RunConfig::new().tf_random_seed(5))
            .model_dir(folder.path().join("model"))
            .build();
        let model = model.unwrap();
        model.train(data.batch(20).repeat(5)).unwrap();
        let export = model.export_saved_model(folder.path().join("export"), ExportSpec::default()).unwrap();
        (folder, export)
    });
    &trained.1
}

/// A folder of versions with one version.
pub fn served(export: &Path, version: i64) -> Folder {
    let folder = Folder::new();
    publish(export, folder.path(), version);
    folder
}

/// A server at free ports that looks at its folders often.
pub fn server() -> Server {
    Server::new().rest_port(0).grpc_port(0).poll_wait(Duration::from_millis(5)).threads(2)
}

pub fn rest(running: &Running) -> super::client::Client {
    super::client::Client::new(running.rest_address().unwrap())
}
