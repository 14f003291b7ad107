//! What is written is whole, and reads back as it was.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use estimand_data::writer::{CsvWriter, TfRecordWriter};
use estimand_data::{Compression, Csv, Dataset};
use estimand_tensor::{Array, Batch, DType, Error, FeatureSpec, Ragged, Result};

use crate::plans::{Dice, folder, ids, rows, spec};

/// An empty folder of a test's own.
fn scratch(name: &str) -> PathBuf {
    let folder = folder().join(format!("writers-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn file_names(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

fn all_rows(data: &Dataset) -> Batch {
    data.batch(1 << 20).iter().next().map_or_else(Batch::new, Result::unwrap)
}

#[test]
fn records_of_random_rows_read_back() {
    let path = scratch("random").join("rows.tfrecord");
    let dice = &mut Dice(11);
    for _ in 0..60 {
        let (batch, spec) = random_rows(dice);
        let data = Dataset::from_batch(batch.clone());
        let written = data.write_tfrecord(&path).unwrap();
        assert_eq!((written.n_rows, written.n_bytes), (batch.n_rows() as u64, fs::metadata(&path).unwrap().len()));
        // Batches or rows: the same bytes.
        let bytes = fs::read(&path).unwrap();
        data.batch(1 + dice.below(9) as usize).write_tfrecord(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        if batch.n_rows() > 0 {
            assert_eq!(all_rows(&Dataset::from_tfrecord([&path], spec)), batch);
        }
    }
}

#[test]
fn tables_of_random_rows_read_back() {
    let folder = scratch("tables");
    let dice = &mut Dice(12);
    for i in 0..60 {
        let n_rows = 1 + dice.below(40) as usize;
        let (mut batch, mut csv_specs) = (Batch::new(), Vec::new());
        for i in 0..1 + dice.below(5) {
            let name = format!("a \"{i}\"");
            let dtype = [DType::F32, DType::F64, DType::I32, DType::I64, DType::Str][dice.below(5) as usize];
            batch = batch.with_feature(&name, random_array(dice, dtype, &[n_rows])).unwrap();
            let empty = Array::from_strings([], [""]).unwrap();
            let spec = if dtype == DType::Str { FeatureSpec::dense_or(empty) } else { FeatureSpec::dense(dtype, []) };
            csv_specs.push((name, spec));
        }
        let (delimiter, header) = (b",;\t|"[dice.below(4) as usize], dice.below(2) == 0);
        let path = folder.join(["rows.csv", "rows.csv.gz"][i % 2]);
        let writer = CsvWriter::new(&path).delimiter(delimiter).header(header);
        assert_eq!(writer.write(&Dataset::from_batch(batch.clone())).unwrap().n_rows, n_rows as u64);
        let names: Vec<String> = csv_specs.iter().map(|(name, _)| name.clone()).collect();
        let csv = Csv::new(path.as_path()).delimiter(delimiter).header(header).utf8(false).features(csv_specs);
        let csv = if header { csv } else { csv.column_names(names) };
        assert_eq!(all_rows(&csv.dataset()), batch);
    }
}

/// Up to 40 rows of up to five features: dense of up to two axes, or ragged; numbers of any bits,
/// strings of any bytes.
fn random_rows(dice: &mut Dice) -> (Batch, Vec<(String, FeatureSpec)>) {
    let n_rows = dice.below(40) as usize;
    let (mut batch, mut spec) = (Batch::new(), Vec::new());
    for i in 0..1 + dice.below(5) {
        let name = format!("feature {i}");
        let dtype = [DType::F32, DType::I64, DType::Str][dice.below(3) as usize];
        if dice.below(2) == 0 {
            let dims: Vec<usize> = (0..dice.below(3)).map(|_| 1 + dice.below(3) as usize).collect();
            let array = random_array(dice, dtype, &[&[n_rows], &dims[..]].concat());
            batch = batch.with_feature(&name, array).unwrap();
            spec.push((name, FeatureSpec::dense(dtype, dims)));
        } else {
            let mut splits = vec![0];
            (0..n_rows).for_each(|row| splits.push(splits[row] + dice.below(4) as i64));
            let values = random_array(dice, dtype, &[splits[n_rows] as usize]);
            batch = batch.with_feature(&name, Ragged::new(values, splits).unwrap()).unwrap();
            spec.push((name, FeatureSpec::ragged(dtype)));
        }
    }
    (batch, spec)
}

fn random_array(dice: &mut Dice, dtype: DType, dims: &[usize]) -> Array {
    let n = dims.iter().product::<usize>();
    match dtype {
        DType::F32 => {
            let bits = (0..n).map(|_| f32::from_bits(dice.below(1 << 32) as u32));
            // NaN is not equal to itself.
            Array::from_vec(dims, bits.map(|v| if v.is_nan() { 0.1 } else { v }).collect()).unwrap()
        }
        DType::F64 => {
            let bits = (0..n).map(|_| f64::from_bits(dice.below(u64::MAX)));
            Array::from_vec(dims, bits.map(|v| if v.is_nan() { 0.1 } else { v }).collect()).unwrap()
        }
        DType::I32 => Array::from_vec(dims, (0..n).map(|_| dice.below(1 << 32) as u32 as i32).collect()).unwrap(),
        DType::I64 => Array::from_vec(dims, (0..n).map(|_| dice.below(u64::MAX) as i64).collect()).unwrap(),
        _ => {
            let odd = [&b""[..], b"\0", b"\xff\xfe", b"a,b;|\t", b"\"\"x\"", b"\n", b"\r\n", b" plain text "];
            Array::from_strings(dims, (0..n).map(|_| odd[dice.below(8) as usize])).unwrap()
        }
    }
}

#[test]
fn rows_are_dealt_to_files() {
    let folder = scratch("shards");
    let data = Dataset::from_batch(rows(23));
    let written = TfRecordWriter::new(folder.join("rows")).n_shards(3).write(&data).unwrap();
    let names: Vec<String> = (0..3).map(|i| format!("rows-{i:05}-of-00003")).collect();
    assert_eq!((file_names(&folder), written.n_rows), (names.clone(), 23));
    assert_eq!(written.paths, names.iter().map(|name| folder.join(name)).collect::<Vec<_>>());
    for (i, path) in written.paths.iter().enumerate() {
        let found = ids(&all_rows(&Dataset::from_tfrecord([path], spec())));
        assert_eq!(found, (i as i64..23).step_by(3).collect::<Vec<_>>());
    }
    let packed = TfRecordWriter::new(folder.join("a.b.gz")).n_shards(1).write(&data).unwrap();
    assert_eq!(packed.paths, [folder.join("a.b-00000-of-00001.gz")]);
}

#[test]
fn packed_files_hold_the_same_bytes() {
    let folder = scratch("packed");
    let data = Dataset::from_batch(rows(500));
    data.write_tfrecord(folder.join("rows")).unwrap();
    let plain = fs::read(folder.join("rows")).unwrap();
    for (name, compression) in [("rows.gz", Compression::Gzip), ("rows.zlib", Compression::Zlib)] {
        let path = folder.join(name);
        let by_name = data.write_tfrecord(&path).unwrap();
        assert!(by_name.n_bytes < plain.len() as u64 / 2 && by_name.n_bytes == fs::metadata(&path).unwrap().len());
        let by_option = TfRecordWriter::new(folder.join("rows.x")).compression(compression).write(&data).unwrap();
        assert_eq!(fs::read(&by_option.paths[0]).unwrap(), fs::read(&path).unwrap());
        let read = all_rows(&Dataset::from_tfrecord(path.as_path(), spec()));
        assert_eq!(read, rows(500));
        let mut unpacked = Vec::new();
        compression.open(&path, 0).unwrap().read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
    }
}

#[test]
fn a_table_by_hand() {
    let path = scratch("table").join("deep/er/rows.csv");
    let batch = Batch::new()
        .with_feature("n", Array::from([i64::MIN, 7]))
        .and_then(|b| b.with_feature("pair", Array::from_vec([2, 2], vec![0.1f32, f32::NAN, -0.0, 1e30])?))
        .and_then(|b| b.with_feature("a,b", Array::from_strings([2], ["x\"y", "\u{e9}"])?))
        .and_then(|b| b.with_label("ok", Array::from([true, false])))
        .and_then(|b| b.with_weights(Array::from([0.5f64, 2.0])))
        .unwrap();
    let data = Dataset::from_batch(batch);
    let writer = CsvWriter::new(&path).weights("w");
    assert_eq!(writer.write(&data).unwrap().n_rows, 2);
    let expected = "n,pair_0,pair_1,\"a,b\",ok,w\n\
        -9223372036854775808,0.1,,\"x\"\"y\",1,0.5\n\
        7,-0.0,1e30,\u{e9},0,2.0\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    // Batches or rows, with other delimiters.
    writer.delimiter(b';').header(false).write(&data.batch(1)).unwrap();
    let expected = "-9223372036854775808;0.1;;\"x\"\"y\";1;0.5\n7;-0.0;1e30;\u{e9};0;2.0\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn odd_bytes_are_written_as_they_are() {
    let path = scratch("odd").join("rows.csv");
    let words = Array::from_strings([3], [&b"\xff\x00"[..], b"", b"\xfe,"]).unwrap();
    Dataset::from_arrays([("w", words)]).write_csv(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"w\n\xff\x00\n\"\"\n\"\xfe,\"\n");
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = scratch("failed");
    let path = folder.join("rows");
    let fails = |batch: Batch| match ids(&batch).contains(&1500) {
        true => Err(Error::config("row 1500")),
        false => Ok(batch),
    };
    let data = Dataset::from_arrays([("id", Array::from((0..2000i64).collect::<Vec<_>>()))]).map(fails);
    fs::write(&path, "old").unwrap();
    for result in [data.write_tfrecord(&path), data.write_csv(&path)] {
        assert!(result.unwrap_err().to_string().contains("row 1500"));
        assert_eq!((file_names(&folder), fs::read_to_string(&path).unwrap()), (vec!["rows".into()], "old".into()));
    }
}

#[test]
fn what_cannot_be_written_is_named() {
    let folder = scratch("refused");
    let path = folder.join("rows");
    let data = Dataset::from_batch(rows(3));
    let x = Dataset::from_arrays([("x_0", Array::from([1i64])), ("x", Array::from_vec([1, 1], vec![1i64]).unwrap())]);
    let weighted = Dataset::from_arrays([("x", Array::from([1i64])), ("w", Array::from([1.0f32]))]).weights("w");
    let wide = Dataset::from_arrays([("x", Array::zeros(DType::F32, [2, 0]).unwrap())]);
    let double = Dataset::from_arrays([("x", Array::from([0.5f64]))]);
    for (result, text) in [
        (data.write_csv(&path), "`tags` is ragged"),
        (x.write_csv(&path), "two columns would have the name `x_0`"),
        (wide.write_csv(&path), "no values to write"),
        (CsvWriter::new(&path).delimiter(b'"').write(&data), "the delimiter '\"'"),
        (CsvWriter::new(&path).delimiter(0xc3).write(&data), "use an ASCII character"),
        (weighted.write_tfrecord(&path), "name them with the writer's `weights`"),
        (TfRecordWriter::new(&path).weights("x").write(&weighted), "two columns would have the name `x`"),
        (TfRecordWriter::new(&path).weights("w").write(&data), "no weights to write"),
        (double.write_tfrecord(&path), "cast it to f32 first"),
        (TfRecordWriter::new(&path).n_shards(0).write(&data), "record files is 0;"),
        (TfRecordWriter::new(&path).n_shards(1 << 20).write(&data), "record files is 1048576;"),
        (
            TfRecordWriter::new(&path).compression(Compression::Zstd).write(&data),
            "zstd files can be read but not written",
        ),
        (data.write_tfrecord("/dev/null/rows"), "cannot make the folder of /dev/null/rows"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error} should contain {text}");
    }
    assert_eq!(file_names(&folder), [""; 0]);
}
