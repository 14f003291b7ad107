//! CSV, text and TFRecord files: any input gives rows, then perhaps an error. The rows do not
//! depend on how the file is read.

use std::path::PathBuf;
use std::sync::Arc;

use estimand_data::{Csv, Dataset, Files, InputContext, Position};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec};

/// Returns the file of this process to which the bytes are written.
fn path() -> PathBuf {
    std::env::temp_dir().join(format!("estimand-fuzz-files-{}", std::process::id()))
}

/// The features of a row by name, bit for bit: a NaN is equal to itself here.
type Bits = Vec<(String, Vec<usize>, Vec<u8>)>;

fn bits(batch: &Batch) -> Bits {
    let array = |array: &Array| match array.strings() {
        Ok(strings) => strings.flat_map(|s| [&(s.len() as u64).to_le_bytes()[..], s].concat()).collect(),
        Err(_) => array.bytes().to_vec(),
    };
    let one = |(name, feature): (&Arc<str>, &Feature)| match feature {
        Feature::Dense(dense) => (name.to_string(), dense.dims().to_vec(), array(dense)),
        Feature::Ragged(ragged) => {
            let lengths = ragged.row_splits().iter().map(|&split| split as usize).collect();
            (name.to_string(), lengths, array(ragged.values()))
        }
    };
    batch.features().iter().chain(batch.labels()).map(one).collect()
}

fn rows(data: &Dataset, from: &Position) -> (Vec<(Bits, Position)>, Option<String>) {
    let mut rows = data.iter_from(&InputContext { n_threads: 1, ..InputContext::default() }, from);
    let mut found = Vec::new();
    while let Some(row) = rows.next() {
        match row {
            Ok(row) => found.push((bits(&row), rows.position().clone())),
            Err(error) => return (found, Some(error.to_string())),
        }
    }
    (found, None)
}

/// Reads the bytes as every format of records, in pieces of several sizes and from the middle.
pub fn check(input: &[u8]) {
    std::fs::write(path(), input).expect("a file in the temporary folder");
    let features = [("a", FeatureSpec::ragged(DType::Str)), ("b", FeatureSpec::ragged(DType::I64))];
    let plans: [&dyn Fn(Files) -> Dataset; 4] = [
        &|files| Csv::new(files).dataset(),
        &|files| {
            let csv = Csv::new(files).header(false).column_names(["a", "b"]).utf8(false);
            csv.feature("a", FeatureSpec::dense(DType::Str, []))
                .feature("b", FeatureSpec::dense(DType::I32, []))
                .dataset()
        },
        &|files| Dataset::from_text_lines(files),
        &|files| Dataset::from_tfrecord(files, features.clone()),
    ];
    for plan in plans {
        let whole = rows(&plan(Files::new(path())), &Position::default());
        for buffer_size in [1, 13] {
            let pieces = rows(&plan(Files::new(path()).buffer_size(buffer_size)), &Position::default());
            assert_eq!(pieces, whole, "in pieces of {buffer_size}");
        }
        let middle = whole.0.len() / 2;
        if let Some((_, place)) = whole.0.get(middle) {
            let (rest, error) = rows(&plan(Files::new(path())), place);
            assert_eq!((&rest[..], error), (&whole.0[middle + 1..], whole.1), "from the middle");
        }
    }
}
