//! Reads what TensorFlow wrote, prints it, and writes it again for others to read: one side of
//! `oracles/live/records.py`.
//!
//! ```text
//! record_exchange examples PATTERN FOLDER    prints tf.Examples; writes them to FOLDER as TFRecord and CSV
//! record_exchange sequences PATTERN          prints tf.SequenceExamples
//! ```
//!
//! A line is `name = values`, the rows of a ragged feature separated by `|`. Floats are printed as
//! their bits and strings as hexadecimal bytes.

use std::env;
use std::path::Path;

use estimand_data::writer::{CsvWriter, TfRecordWriter};
use estimand_data::{Dataset, ListSpec};
use estimand_tensor::{Array, Batch, DType, Error, Feature, FeatureSpec, Ragged, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["examples", pattern, folder] => examples(pattern, Path::new(folder)),
        ["sequences", pattern] => sequences(pattern),
        _ => Err(Error::config("usage: record_exchange examples PATTERN FOLDER | sequences PATTERN")),
    }
}

fn examples(pattern: &str, folder: &Path) -> Result<()> {
    let data = Dataset::from_tfrecord(
        pattern,
        [
            ("id", FeatureSpec::dense(DType::I64, [])),
            ("pair", FeatureSpec::dense(DType::F32, [2])),
            ("name", FeatureSpec::dense_or(Array::from_strings([], ["nobody"])?)),
            ("tags", FeatureSpec::ragged(DType::Str)),
            ("clicks", FeatureSpec::ragged(DType::I64)),
            ("scores", FeatureSpec::ragged(DType::F32)),
        ],
    );
    print(&data)?;
    data.write_tfrecord(folder.join("rows.tfrecord"))?;
    data.write_tfrecord(folder.join("rows.gz"))?;
    data.write_tfrecord(folder.join("rows.zlib"))?;
    TfRecordWriter::new(folder.join("shards")).n_shards(3).write(&data)?;

    let table = data.map(|batch| {
        let mut dense = batch.features().iter().filter(|(_, feature)| matches!(feature, Feature::Dense(_)));
        dense.try_fold(Batch::new(), |table, (name, feature)| table.with_feature(name, feature.clone()))
    });
    table.write_csv(folder.join("rows.csv"))?;
    CsvWriter::new(folder.join("rows.tsv.gz")).delimiter(b'\t').header(false).write(&table)?;
    Ok(())
}

fn sequences(pattern: &str) -> Result<()> {
    print(&Dataset::from_sequence_tfrecord(
        pattern,
        [("user", FeatureSpec::dense(DType::I64, [])), ("tags", FeatureSpec::ragged(DType::Str))],
        [("words", ListSpec::ragged(DType::Str)), ("vectors", ListSpec::optional(DType::F32, [2]))],
    ))
}

/// Prints all rows.
fn print(data: &Dataset) -> Result<()> {
    for batch in &data.batch(1 << 20) {
        for (name, feature) in batch?.features() {
            println!("{name} = {}", values(feature)?);
        }
    }
    Ok(())
}

fn values(feature: &Feature) -> Result<String> {
    fn row_of(ragged: &Ragged, row: usize) -> Result<String> {
        Ok(flat(&ragged.row(row)?)?.join(" "))
    }
    match feature {
        Feature::Dense(array) => Ok(flat(array)?.join(" ")),
        Feature::Ragged(ragged) => {
            Ok((0..ragged.n_rows()).map(|row| row_of(ragged, row)).collect::<Result<Vec<_>>>()?.join("|"))
        }
    }
}

fn flat(array: &Array) -> Result<Vec<String>> {
    Ok(match array.dtype() {
        DType::F32 => array.as_slice::<f32>()?.iter().map(|v| format!("{:08x}", v.to_bits())).collect(),
        DType::I64 => array.as_slice::<i64>()?.iter().map(i64::to_string).collect(),
        _ => {
            array.strings()?.map(|s| format!("x{}", s.iter().map(|b| format!("{b:02x}")).collect::<String>())).collect()
        }
    })
}
