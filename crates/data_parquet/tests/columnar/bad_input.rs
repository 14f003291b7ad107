//! Mistakes, and files that do not fit: what the error says.

use arrow_array::*;
use arrow_schema::DataType;
use estimand_data::{Dataset, Files, OnError, Position};
use estimand_data_parquet::{arrow, parquet};
use estimand_tensor::{Array, DType, ErrorKind, FeatureSpec};

use crate::rows::{array, folder, parquet_file, pull_all, records};

/// The rows before the first error, and its text.
fn fails(data: &Dataset) -> (usize, estimand_tensor::Error) {
    let mut n_rows = 0;
    let mut batches = data.iter();
    let error = loop {
        match batches.next().expect("an error") {
            Ok(batch) => n_rows += batch.n_rows(),
            Err(error) => break error,
        }
    };
    assert!(batches.next().is_none(), "nothing follows an error");
    (n_rows, error)
}

#[test]
fn mistakes_in_what_is_asked_for() {
    let batch =
        records([("age", array(Int64Array::from(vec![1, 2]))), ("income", array(StringArray::from(vec!["a", "b"])))]);
    let path = parquet_file("mistakes.parquet", &batch, 10);
    let text = folder().join("text.parquet");
    std::fs::write(&text, "age,income\n1,a\n").unwrap();
    let short = folder().join("short.arrow");
    std::fs::write(&short, "AR").unwrap();
    let read = || parquet::read(&path);
    let feature = |name: &str, spec: FeatureSpec| read().feature(name, spec).dataset();
    let quarantine = OnError::Quarantine { file: folder().join("bad.csv"), budget: 1 };
    for (data, text) in [
        (read().select(["agee"]).dataset(), "did you mean `age`?"),
        (read().select(["zzzzz"]).dataset(), "there are age, income"),
        (read().label("incom").dataset(), "did you mean `income`?"),
        (read().select(["age", "age"]).dataset(), "`age` is selected twice"),
        (read().select(Vec::<String>::new()).dataset(), "no column is selected"),
        (read().select(["age"]).label("income").dataset(), "the label `income` is not among the selected"),
        (feature("agee", FeatureSpec::dense(DType::I64, [])), "did you mean `age`?"),
        (feature("age", FeatureSpec::dense(DType::Str, [])), "the spec asks for string, but the column holds i64"),
        (feature("income", FeatureSpec::dense(DType::I64, [])), "convert others in `map`"),
        (feature("age", FeatureSpec::dense(DType::I64, [2])), "give the spec the shape that the column has"),
        (feature("age", FeatureSpec::ragged(DType::I64)), "the column holds i64"),
        (feature("age", FeatureSpec::padded(DType::I64, [])), "cannot be padded"),
        (
            feature("age", FeatureSpec::Dense { dtype: DType::I64, dims: vec![], default: Some(Array::from(1.5f32)) }),
            "the default is f32[], expected i64[]",
        ),
        (parquet::read("no/such/file.parquet").dataset(), "cannot open no/such/file.parquet"),
        (parquet::read("no/such/*.parquet").dataset(), "no file matches"),
        (parquet::read(Vec::<String>::new()).dataset(), "the list of files is empty"),
        (parquet::read("packed.parquet.gz").dataset(), "packed.parquet.gz is a compressed file"),
        (parquet::read(Files::new(&path).on_error(quarantine.clone())).dataset(), "cannot be left out"),
        (parquet::read(Files::new(&path).on_error(OnError::Skip)).dataset(), "cannot be left out"),
        (parquet::read(&text).dataset(), "text.parquet"),
        (arrow::read(Files::new(&path).on_error(quarantine)).dataset(), "cannot be left out"),
        (arrow::read(&short).dataset(), "only 2 bytes, which is not an Arrow stream"),
        (arrow::read(&text).dataset(), "check that the file is in Arrow's IPC format"),
        (arrow::read(&path).dataset(), "check that the file is in Arrow's IPC format"),
    ] {
        let (n_rows, error) = fails(&data);
        assert!(error.to_string().contains(text) && n_rows == 0, "{error}");
        let spec = data.spec().unwrap_err().to_string();
        assert!(spec.contains(text), "the spec says so too: {spec}");
    }
}

#[test]
fn files_that_differ() {
    let x = |column: ArrayRef| records([("x", column)]);
    let first = parquet_file("drift-0.parquet", &x(array(Int64Array::from(vec![1, 2]))), 1);
    let read = |name: &str, batch: &RecordBatch| {
        let second = parquet_file(name, batch, 1);
        parquet::read([first.clone(), second]).dataset()
    };
    for (name, batch, text) in [
        ("drift-a.parquet", x(array(Float64Array::from(vec![1.0]))), "column `x` is f64 in"),
        ("drift-b.parquet", x(array(Int32Array::from(vec![1]))), "column `x` is i32 in"),
        ("drift-c.parquet", records([("y", array(Int64Array::from(vec![1])))]), "there is no column `x` in"),
        (
            "drift-d.parquet",
            x(array(Decimal128Array::from(vec![1]))),
            "columns of the type Decimal128(38, 10) are not supported",
        ),
        ("drift-e.parquet", x(array(TimestampMillisecondArray::from(vec![1]))), "i64 (milliseconds) in"),
    ] {
        let (n_rows, error) = fails(&read(name, &batch));
        let text_of = error.to_string();
        assert_eq!(n_rows, 2, "the rows of the first file come before: {error}");
        assert!(text_of.contains(text) && text_of.contains(name) && text_of.contains("drift-0.parquet"), "{error}");
    }
    // Other layouts of the same values are no drift, nor are more columns in another order.
    let same = records([("w", array(StringArray::from(vec!["more"]))), ("x", array(UInt32Array::from(vec![3])))]);
    assert_eq!(read("drift-f.parquet", &same).iter().filter(Result::is_ok).count(), 3);
}

#[test]
fn values_that_do_not_fit() {
    let numbers = array(UInt64Array::from(vec![Some(1), None, Some(u64::MAX), Some(2)]));
    let batch = records([("n", numbers), ("i", array(Int32Array::from(vec![Some(0), Some(1), Some(2), None])))]);
    let path = parquet_file("large-numbers.parquet", &batch, 2);
    let (n_rows, error) = fails(&parquet::read(&path).dataset());
    assert_eq!(n_rows, 2);
    let expected = ErrorKind::Data { path: Some(path.clone()), row: Some(3), column: Some("n".to_string()) };
    assert_eq!(*error.kind(), expected);
    assert!(error.to_string().contains("18446744073709551615 does not fit"), "{error}");
    // The first bad row counts, not the first bad column.
    let (n_rows, error) = fails(&parquet::read(&path).refuse_missing().dataset());
    assert_eq!(n_rows, 1);
    assert!(error.to_string().contains("in row 2 of") && error.to_string().contains("column `n`"), "{error}");
}

#[test]
fn two_columns_of_one_name() {
    let column = || array(Int64Array::from(vec![1]));
    let schema = arrow_schema::Schema::new(vec![
        arrow_schema::Field::new("x", DataType::Int64, true),
        arrow_schema::Field::new("x", DataType::Int64, true),
    ]);
    let batch = RecordBatch::try_new(schema.into(), vec![column(), column()]).unwrap();
    let reader = arrow::from_batches(move || Ok(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())));
    let error = reader.dataset().spec().unwrap_err().to_string();
    assert!(error.contains("two columns named `x`"), "{error}");
}

#[test]
fn positions_of_other_files() {
    let batch = records([("x", array(Int64Array::from(vec![1, 2, 3])))]);
    let path = parquet_file("positions.parquet", &batch, 2);
    let data = parquet::read(&path).dataset();
    for (words, text) in [
        (vec![1, 0, 0], "file number 1, but there are 1 files"),
        (vec![u64::MAX, 0, 0], "file number 18446744073709551615, but there are 1 files"),
        (vec![0, 3, 0], "row 0 of row group 3"),
        (vec![0, 1, 2], "row 2 of row group 1"),
        (vec![0, 2, 1], "row 1 of row group 2"),
        (vec![0, 0, u64::MAX], "this one has 2 rows"),
        (vec![0, 0], "2 numbers and 0 inputs"),
    ] {
        let error = pull_all(&data, 1, &Position::new(words, []), &[1]).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let path = folder().join("positions.arrow");
    arrow::write(&data, &path).unwrap();
    let data = arrow::read(&path).dataset();
    for (words, text) in [
        (vec![1, 0, 0], "file number 1, but there are 1 files"),
        (vec![0, 9, 0], "record batch 9 of"),
        (vec![0, u64::MAX, 0], "record batch"),
        (vec![0, 0, 4], "row 4 of record batch 0"),
    ] {
        let error = pull_all(&data, 1, &Position::new(words, []), &[1]).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
