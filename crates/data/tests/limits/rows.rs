//! Rows, lines, records and fields without an end.

use estimand_data::{Csv, Dataset, Files, IndexBase, LibSvm, Limits, OnError};
use estimand_tensor::{DType, Error, FeatureSpec};
use estimand_wire::record::RecordWriter;

use crate::memory::Turn;
use crate::{Folder, says};

fn first_error(data: &Dataset) -> Error {
    data.iter().find_map(Result::err).expect("an error")
}

#[test]
fn rows_of_csv() {
    let turn = Turn::take();
    let folder = Folder::new("rows");
    let path = folder.file("x.csv", [b"a,b\n\"".as_slice(), &[b'x'; 8 << 20]].concat());
    let limits = Limits { line_bytes: 1 << 20, ..Limits::default() };
    let csv = Csv::new(&path).limits(limits).feature("a", FeatureSpec::dense(DType::Str, []));
    let data = csv.feature("b", FeatureSpec::dense(DType::Str, [])).dataset();
    let error = turn.within(8 << 20, || first_error(&data));
    says(&error, &["x.csv", "does not end within", "the limit is 1048576 (`line_bytes`)"]);
}

#[test]
fn lines_of_text() {
    let turn = Turn::take();
    let folder = Folder::new("lines");
    let path = folder.file("x.txt", vec![b'x'; 8 << 20]);
    let limits = Limits { line_bytes: 1 << 20, ..Limits::default() };
    let data = Dataset::from_text_lines(Files::new(&path).limits(limits));
    // A few pieces of the file may be read ahead.
    let error = turn.within(16 << 20, || first_error(&data));
    says(&error, &["x.txt", "the limit is 1048576 (`line_bytes`)"]);
    // 8 MiB is a line by default.
    assert_eq!(Dataset::from_text_lines(&path).iter().count(), 1);
}

/// A line without an end is found while the indices are counted, and while rows are read.
#[test]
fn lines_of_libsvm() {
    let turn = Turn::take();
    let folder = Folder::new("libsvm");
    let path = folder.file("x.svm", [b"1 1:1\n1".as_slice(), &b" 1:1".repeat(2 << 20)].concat());
    let limits = Limits { line_bytes: 1 << 20, ..Limits::default() };
    for base in [IndexBase::Auto, IndexBase::One] {
        let data = LibSvm::new(&path).limits(limits).index_base(base).dataset();
        let error = turn.within(16 << 20, || first_error(&data));
        says(&error, &["x.svm", "line 2", "the limit is 1048576 (`line_bytes`)"]);
    }
    // Short rows of a wide matrix: only the rows that are asked for are made dense.
    let path = folder.file("wide.svm", "1 1:1\n".repeat(100_000));
    let data = LibSvm::new(&path).n_features(1 << 20).index_base(IndexBase::One).dense().dataset();
    turn.within(64 << 20, || assert_eq!(data.batch(2).iter().next().unwrap().unwrap().n_rows(), 2));
}

#[test]
fn records() {
    let turn = Turn::take();
    let folder = Folder::new("records");
    let mut writer = RecordWriter::new(Vec::new());
    writer.write(&vec![0; 8 << 20]).unwrap();
    let path = folder.file("x.tfrecord", writer.into_inner());
    let limits = Limits { record_bytes: 1 << 20, ..Limits::default() };
    let features = [("a", FeatureSpec::ragged(DType::I64))];
    let data = Dataset::from_tfrecord(Files::new(&path).limits(limits), features);
    let error = turn.within(4 << 20, || first_error(&data));
    says(&error, &["x.tfrecord", "the record has 8388608 bytes", "the limit is 1048576 (`record_bytes`)"]);
}

/// A field that is too long is a bad row, and others are read.
#[test]
fn fields() {
    let _turn = Turn::take();
    let folder = Folder::new("fields");
    let long = "y".repeat(2000);
    let path = folder.file("x.csv", format!("a,b\n1,2\n3,{long}\n5,6\n"));
    let limits = Limits { field_bytes: 1000, ..Limits::default() };
    let csv = || Csv::new(&path).limits(limits).feature("b", FeatureSpec::dense(DType::Str, []));
    let error = first_error(&csv().dataset());
    says(&error, &["row 2", "x.csv", "a field has 2000 bytes", "the limit is 1000 (`field_bytes`)"]);
    let quarantine = OnError::Quarantine { file: folder.0.join("bad.csv"), budget: 1 };
    assert_eq!(csv().on_error(quarantine).dataset().iter().map(Result::unwrap).count(), 2);
}

/// A row of delimiters has a field for each byte.
#[test]
fn fields_of_a_row() {
    let turn = Turn::take();
    let folder = Folder::new("commas");
    let path = folder.file("x.csv", [b"a,b\n1,2\n".as_slice(), &[b','; 64 << 20], b"\n3,4\n"].concat());
    let limits = Limits { columns: 1000, ..Limits::default() };
    let spec = || FeatureSpec::dense(DType::I32, []);
    let csv = || Csv::new(&path).limits(limits).feature("a", spec()).feature("b", spec());
    // The bytes of the row, while their end is searched for, and hardly more.
    let error = turn.within(512 << 20, || first_error(&csv().dataset()));
    says(&error, &["row 2", "more than 1000 fields; expected 2"]);
    let quarantine = OnError::Quarantine { file: folder.0.join("bad.csv"), budget: 1 };
    assert_eq!(csv().on_error(quarantine).dataset().iter().map(Result::unwrap).count(), 2);
}
