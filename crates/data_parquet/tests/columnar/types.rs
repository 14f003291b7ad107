//! Every type that is read, with and without missing values, against values written down by hand.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use estimand_data::{Dataset, Position};
use estimand_data_parquet::{Reader, arrow, parquet};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Ragged, Result};

use crate::rows::{array, folder, parquet_file, pull_all, records};

fn all(reader: Reader) -> Result<Batch> {
    let mut items = pull_all(&reader.dataset(), 2, &Position::default(), &[1_000])?;
    assert_eq!(items.len(), 1, "few rows are one piece");
    Ok(items.remove(0).0)
}

fn strings(values: &[&str]) -> Feature {
    Array::from_strings([values.len()], values).unwrap().into()
}

fn columns() -> Vec<(&'static str, ArrayRef, Feature)> {
    let dictionary: DictionaryArray<Int8Type> = [Some("b"), None, Some("a"), Some("b")].into_iter().collect();
    let lists = [Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(7)])];
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let pairs = [Some(vec![Some(1), Some(2)]), None, Some(vec![Some(5), None]), Some(vec![Some(7), Some(8)])];
    let pairs = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(pairs, 2);
    vec![
        (
            "bool",
            array(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Array::from([true, false, false, true]).into(),
        ),
        (
            "i8",
            array(Int8Array::from(vec![Some(-128), None, Some(0), Some(127)])),
            Array::from([-128, 0, 0, 127]).into(),
        ),
        (
            "i16",
            array(Int16Array::from(vec![Some(i16::MIN), None, Some(0), Some(9)])),
            Array::from([-32768, 0, 0, 9]).into(),
        ),
        (
            "i32",
            array(Int32Array::from(vec![Some(i32::MIN), None, Some(0), Some(9)])),
            Array::from([i32::MIN, 0, 0, 9]).into(),
        ),
        (
            "i64",
            array(Int64Array::from(vec![Some(i64::MIN), None, Some(0), Some(9)])),
            Array::from([i64::MIN, 0, 0, 9]).into(),
        ),
        ("u8", array(UInt8Array::from(vec![Some(255), None, Some(0), Some(9)])), Array::from([255u8, 0, 0, 9]).into()),
        (
            "u16",
            array(UInt16Array::from(vec![Some(65535), None, Some(0), Some(9)])),
            Array::from([65535, 0, 0, 9]).into(),
        ),
        (
            "u32",
            array(UInt32Array::from(vec![Some(u32::MAX), None, Some(0), Some(9)])),
            Array::from([4294967295i64, 0, 0, 9]).into(),
        ),
        (
            "u64",
            array(UInt64Array::from(vec![Some(i64::MAX as u64), None, Some(0), Some(9)])),
            Array::from([i64::MAX, 0, 0, 9]).into(),
        ),
        (
            "f32",
            array(Float32Array::from(vec![Some(0.5), None, Some(-0.0), Some(f32::MAX)])),
            Array::from([0.5f32, 0.0, -0.0, f32::MAX]).into(),
        ),
        (
            "f64",
            array(Float64Array::from(vec![Some(0.1), None, Some(-0.0), Some(1e300)])),
            Array::from([0.1f64, 0.0, -0.0, 1e300]).into(),
        ),
        (
            "date",
            array(Date32Array::from(vec![Some(-1), None, Some(0), Some(20_000)])),
            Array::from([-1i64, 0, 0, 20_000]).into(),
        ),
        (
            "timestamp",
            array(TimestampMicrosecondArray::from(vec![Some(1), None, Some(0), Some(9)]).with_timezone("UTC")),
            Array::from([1i64, 0, 0, 9]).into(),
        ),
        (
            "string",
            array(StringArray::from(vec![Some("naïve"), None, Some(""), Some("x")])),
            strings(&["naïve", "", "", "x"]),
        ),
        (
            "large",
            array(LargeStringArray::from(vec![Some("l"), None, Some(""), Some("x")])),
            strings(&["l", "", "", "x"]),
        ),
        (
            "view",
            array(StringViewArray::from(vec![Some("longer than twelve bytes"), None, Some(""), Some("x")])),
            strings(&["longer than twelve bytes", "", "", "x"]),
        ),
        (
            "binary",
            array(BinaryArray::from(vec![Some(&b"\xff"[..]), None, Some(b""), Some(b"x")])),
            Array::from_strings([4], [&b"\xff"[..], b"", b"", b"x"]).unwrap().into(),
        ),
        (
            "binary_view",
            array(BinaryViewArray::from(vec![Some(&b"bytes"[..]), None, Some(b""), Some(b"x")])),
            strings(&["bytes", "", "", "x"]),
        ),
        (
            "fixed",
            array(FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"ef", b"gh"].into_iter()).unwrap()),
            strings(&["ab", "cd", "ef", "gh"]),
        ),
        ("dictionary", array(dictionary), strings(&["b", "", "a", "b"])),
        ("lists", array(lists), Ragged::new(Array::from([1, 0, 7]), [0, 2, 2, 2, 3]).unwrap().into()),
        ("pairs", array(pairs), Array::from_vec([4, 2], vec![1, 2, 0, 0, 5, 0, 7, 8]).unwrap().into()),
    ]
}

#[test]
fn every_type_from_both_formats() -> Result<()> {
    let columns = columns();
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(n, a, _)| (*n, a.clone(), true))).unwrap();
    let parquet_path = parquet_file("types.parquet", &batch, 100);
    let arrow_path = folder().join("types.arrow");
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(std::fs::File::create(&arrow_path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let in_memory = batch.clone();
    let foreign =
        arrow::from_batches(move || Ok(RecordBatchIterator::new([Ok(in_memory.clone())], in_memory.schema())));
    for reader in [parquet::read(&parquet_path), arrow::read(&arrow_path), foreign] {
        let found = all(reader.clone())?;
        for (name, _, expected) in &columns {
            assert_eq!(found.feature(name)?, expected, "`{name}`");
        }
        // Some, in the order of the file.
        let found = all(reader.clone().select(["lists", "u8", "bool"]).label("u8"))?;
        assert_eq!(found.features().keys().map(|k| &**k).collect::<Vec<_>>(), ["bool", "lists"]);
        assert_eq!(found.labels().keys().map(|k| &**k).collect::<Vec<_>>(), ["u8"]);
        assert_eq!(found.features()["lists"], columns[20].2);
    }
    Ok(())
}

#[test]
fn values_for_what_is_missing() -> Result<()> {
    let columns = columns();
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(n, a, _)| (*n, a.clone(), true))).unwrap();
    let path = parquet_file("missing.parquet", &batch, 100);
    let found = all(parquet::read(&path)
        .feature("i8", FeatureSpec::dense_or(Array::from(-1)))
        .feature("i16", FeatureSpec::dense_or(Array::from(f32::NAN)))
        .feature("f64", FeatureSpec::dense_or(Array::from(-1.0f32)))
        .feature("u64", FeatureSpec::dense_or(Array::from([2.5f64])))
        .feature("dictionary", FeatureSpec::dense_or(Array::from_strings([], ["?"])?))
        .feature("lists", FeatureSpec::ragged(DType::I64))
        .feature("pairs", FeatureSpec::dense_or(Array::from([-8.0f32, -9.0]))))?;
    assert_eq!(found.features()["i8"], Array::from([-128, -1, 0, 127]).into());
    assert_eq!(found.features()["dictionary"], strings(&["b", "?", "a", "b"]));
    assert_eq!(found.features()["lists"], Ragged::new(Array::from([1i64, 0, 7]), [0, 2, 2, 2, 3])?.into());
    let pairs = vec![1.0f32, 2.0, -8.0, -9.0, 5.0, -9.0, 7.0, 8.0];
    assert_eq!(found.features()["pairs"], Array::from_vec([4, 2], pairs)?.into());
    assert_eq!(found.features()["f64"], Array::from([0.1f32, -1.0, -0.0, f32::INFINITY]).into());
    assert_eq!(found.features()["u64"], Array::from_vec([4, 1], vec![2f64.powi(63), 2.5, 0.0, 9.0])?.into());
    let Feature::Dense(floats) = &found.features()["i16"] else { panic!("dense") };
    assert!(floats.as_slice::<f32>()?[1].is_nan());

    // The rows before the first missing value still come, by whatever column.
    for (name, n_good) in [("i8", 1), ("string", 1), ("dictionary", 1), ("lists", 0), ("pairs", 1)] {
        let data = parquet::read(&path).select([name]).refuse_missing().dataset();
        let mut batches = data.iter();
        for _ in 0..n_good {
            assert_eq!(batches.next().unwrap()?.n_rows(), 1);
        }
        let error = batches.next().unwrap().unwrap_err().to_string();
        assert!(error.contains(&format!("in row {} of", n_good + 1)), "{error}");
        assert!(
            error.contains("the value is missing") && error.contains(name) && error.contains("dense_or"),
            "{error}"
        );
        assert!(batches.next().is_none());
    }
    // A spec without a default asks for the same.
    let strict = parquet::read(&path).select(["i8"]).feature("i8", FeatureSpec::dense(DType::I32, []));
    assert_eq!(strict.dataset().iter().filter(Result::is_ok).count(), 1);
    let filled = FeatureSpec::dense_or(Array::from(0));
    let filled = parquet::read(&path).select(["i8"]).feature("i8", filled).refuse_missing().dataset();
    assert_eq!(filled.iter().count(), 4);
    Ok(())
}

/// Missing lists may span values, and slices begin anywhere.
#[test]
fn lists_in_slices_and_with_values_that_nobody_sees() -> Result<()> {
    let values = StringArray::from(vec!["a", "hidden", "b", "c", "d"]);
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([1, 1, 2, 1]), Arc::new(values), Some(nulls));
    let dense = LargeListArray::from_iter_primitive::<Int32Type, _, _>((0..4).map(|i| Some((0..i).map(Some))));
    let batch = records([("lists", array(lists)), ("dense", array(dense))]);
    let rows = |range: std::ops::Range<usize>| {
        let batch = batch.slice(range.start, range.len());
        all(arrow::from_batches(move || Ok(RecordBatchIterator::new([Ok(batch.clone())], batch.schema()))))
    };
    let words = |words: &[&str], splits: &[i64]| -> Feature {
        Ragged::new(Array::from_strings([words.len()], words).unwrap(), splits).unwrap().into()
    };
    assert_eq!(rows(0..4)?.features()["lists"], words(&["a", "b", "c", "d"], &[0, 1, 1, 3, 4]));
    assert_eq!(rows(1..3)?.features()["lists"], words(&["b", "c"], &[0, 0, 2]));
    assert_eq!(rows(3..4)?.features()["lists"], words(&["d"], &[0, 1]));
    assert_eq!(rows(2..4)?.features()["dense"], Ragged::new(Array::from([0, 1, 0, 1, 2]), [0, 2, 5])?.into());
    Ok(())
}

#[test]
fn the_example_of_explain() {
    let plan = |data: Dataset| data.explain();
    assert_eq!(
        plan(parquet::read(["a.parquet", "b.parquet"]).select(["x", "y"]).label("y").dataset()),
        "label(`y`)\n  parquet: 2 columns from a.parquet and 1 more; going on reads at most one row group again\n"
    );
    assert_eq!(
        plan(arrow::read("a.arrow").dataset()),
        "arrow: all columns from a.arrow; going on passes over the batches before, and reads one again\n"
    );
}
