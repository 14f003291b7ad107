//! LIBSVM files and CSR matrices: what is read, what is refused, and that what is written reads
//! back.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use estimand_data::writer::LibSvmWriter;
use estimand_data::{Csr, Dataset, Files, IndexBase, InputContext, LibSvm, OnError};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Ragged, Result};

use crate::plans::{Dice, folder, libsvm};

fn file(name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let folder = folder().join("libsvm");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn all(data: impl Into<Dataset>) -> Batch {
    data.into().batch(1 << 20).iter().next().unwrap().unwrap()
}

fn error(data: impl Into<Dataset>) -> String {
    data.into().iter().find_map(Result::err).expect("an error").to_string()
}

fn ragged<T: estimand_tensor::Element>(values: &[T], splits: &[i64]) -> Feature {
    Ragged::new(Array::from(values.to_vec()), splits).unwrap().into()
}

/// A file by the definition of the format, with all that may occur in it.
const TEXT: &str = "\u{feff}# header\n\
    2 3:1.0 11:-5.2 16:-1.5 # one\r\n\
    \n\
    +1\tqid:7  6:1e3\t13:-3.25\n\
    -1\n\
    0 qid:9 21:27 #qid:1 1:1";

#[test]
fn a_file_by_hand() -> Result<()> {
    let path = file("hand.svm", TEXT);
    let batch = all(LibSvm::new(&path));
    assert_eq!(batch.features().keys().map(|name| &**name).collect::<Vec<_>>(), ["ids", "values"]);
    assert_eq!(batch.features()["ids"], ragged(&[2i64, 10, 15, 5, 12, 20], &[0, 3, 5, 5, 6]));
    assert_eq!(batch.features()["values"], ragged(&[1.0f32, -5.2, -1.5, 1000.0, -3.25, 27.0], &[0, 3, 5, 5, 6]));
    assert_eq!(batch.labels()["label"], Array::from([2.0f32, 1.0, -1.0, 0.0]).into());
    assert_eq!(LibSvm::new(&path).count_features()?, 21);

    let dense = all(LibSvm::new(&path).dense().label_dtype(DType::I64));
    let mut expected = vec![0.0f32; 4 * 21];
    for (row, column, value) in [(0, 2, 1.0), (0, 10, -5.2), (0, 15, -1.5), (1, 5, 1e3), (1, 12, -3.25), (3, 20, 27.0)]
    {
        expected[row * 21 + column] = value;
    }
    assert_eq!(dense.features()["features"], Array::from_vec([4, 21], expected)?.into());
    assert_eq!(dense.labels()["label"], Array::from([2i64, 1, -1, 0]).into());
    let spec = LibSvm::new(&path).dense().n_features(30).dataset();
    assert_eq!(spec.spec()?["features"], FeatureSpec::dense(DType::F32, [30]));
    assert_eq!(spec.label_spec()?["label"], FeatureSpec::dense(DType::F32, []));
    Ok(())
}

/// scikit-learn's rule: all files count from 0 if the index 0 occurs in any of them.
#[test]
fn the_first_index_is_found_in_all_files() -> Result<()> {
    let (one, zero) = (file("one.svm", "1 1:1\n"), file("zero.svm", "1 0:5 2:6\n"));
    assert_eq!(all(LibSvm::new(&one)).features()["ids"], ragged(&[0i64], &[0, 1]));
    let both = LibSvm::new([&one, &zero]);
    assert_eq!(all(both.clone()).features()["ids"], ragged(&[1i64, 0, 2], &[0, 1, 3]));
    assert_eq!((both.count_features()?, LibSvm::new(&one).count_features()?), (3, 1));
    let as_zero = LibSvm::new(&one).index_base(IndexBase::Zero);
    assert_eq!(
        (all(as_zero.clone()).features()["ids"].clone(), as_zero.count_features()?),
        (ragged(&[1i64], &[0, 1]), 2)
    );
    let text = error(both.index_base(IndexBase::One));
    assert!(
        text.contains("the index is 0, but the first feature has index 1") && text.contains("IndexBase::Zero"),
        "{text}"
    );
    Ok(())
}

#[test]
fn several_labels_and_queries() -> Result<()> {
    let path = file("many.svm", "1,3 qid:4 1:1\nqid:5 2:2\n2 qid:5\n");
    let batch = all(LibSvm::new(&path).multilabel().query_id());
    assert_eq!(batch.labels()["label"], ragged(&[1i64, 3, 2], &[0, 2, 2, 3]));
    assert_eq!(batch.features()["qid"], Array::from([4i64, 5, 5]).into());
    assert_eq!(LibSvm::new(&path).multilabel().dataset().label_spec()?["label"], FeatureSpec::ragged(DType::I64));
    Ok(())
}

/// An error names the file, the row, the line, and what was expected; other rows can be read.
#[test]
fn bad_lines_are_named() {
    let path = file("bad.svm", "# comment\n1 1:1\n\n1 2:1 2:3\n1 3:x\n0 1:2\n");
    let text = error(LibSvm::new(&path));
    let place = format!("in row 2 of {}, line 4", path.display());
    assert!(text.contains("the index 2 follows 2; expected rising indices") && text.contains(&place), "{text}");
    let skipping = LibSvm::new(&path).on_error(OnError::Skip);
    assert_eq!(all(skipping).labels()["label"], Array::from([1.0f32, 0.0]).into());
    let bad = folder().join("libsvm/bad.csv");
    let quarantine = OnError::Quarantine { file: bad.clone(), budget: 2 };
    assert_eq!(all(LibSvm::new(&path).on_error(quarantine)).n_rows(), 2);
    let set_aside = fs::read_to_string(bad).unwrap();
    assert!(set_aside.contains("\"1 3:x\"") && set_aside.contains("does not end with a number"), "{set_aside}");

    let one = |line: &str| file(&format!("line {}.svm", line.replace(':', "-")), format!("1 1:1\n{line}\n"));
    for (data, text) in [
        (LibSvm::new(one("1 1")), "\"1\" has no colon; expected `index:value`"),
        (LibSvm::new(one("x 1:1")), "the label is \"x\"; expected a number"),
        (LibSvm::new(one("1:1")), "the label is \"1:1\"; expected a number"),
        (LibSvm::new(one("1.5 1:1")).label_dtype(DType::I64), "the label is \"1.5\"; expected an integer"),
        (LibSvm::new(one("1 1:1")).query_id(), "no query; expected `qid:number`"),
        (LibSvm::new(one("1 9:1")).n_features(8), "the index 9 is beyond the last feature of 8, which has index 8"),
        (LibSvm::new(one("1 99999999999999999999:1")), "does not begin with an index"),
        (LibSvm::new(one("1 -1:1")), "does not begin with an index"),
        (LibSvm::new(one("1 1:1e")), "\"1:1e\" does not end with a number"),
        (LibSvm::new(one("")).label_dtype(DType::Str), "label_dtype is string; expected f32, f64, i32 or i64"),
        (LibSvm::new(one("")).multilabel().label_dtype(DType::F32), "labels of multilabel rows are i64"),
        (LibSvm::new(one("")).n_features(0), "the number of features is 0"),
        (LibSvm::new("/no/such.svm"), "cannot open /no/such.svm"),
        (LibSvm::new(file("empty.svm", "1\n")).dense(), "no features, so they cannot be made dense"),
        (LibSvm::new(one("1 9223372036854775807:1")).dense(), "the limit is 2097152 (`columns`)"),
    ] {
        let error = error(data);
        assert!(error.contains(text), "{error} should contain {text}");
    }
    // NaN and infinities are numbers, as in CSV files.
    let Feature::Ragged(odd) = all(LibSvm::new(one("nan 2:nan 3:-inf"))).features()["values"].clone() else { panic!() };
    let odd = odd.values().as_slice::<f32>().unwrap().to_vec();
    assert!(odd[1].is_nan() && odd[2] == f32::NEG_INFINITY);
}

/// A file with any damage is read or refused, in pieces of any size, without a panic.
#[test]
fn damaged_files_are_rows_or_errors() {
    let dice = &mut Dice(17);
    let odd = b"0123456789:#,.+-e \t\n\r\0qidnaf\xff";
    let (mut n_read, mut n_refused) = (0, 0);
    for _ in 0..400 {
        let mut bytes = TEXT.as_bytes().to_vec();
        for _ in 0..1 + dice.below(4) {
            let place = dice.below(bytes.len() as u64) as usize;
            match dice.below(3) {
                0 => bytes[place] = odd[dice.below(odd.len() as u64) as usize],
                1 => bytes.insert(place, odd[dice.below(odd.len() as u64) as usize]),
                _ => drop(bytes.remove(place)),
            }
        }
        let files = Files::new(file("damaged.svm", &bytes)).buffer_size(1 + dice.below(99) as usize);
        let reader = match dice.below(3) {
            0 => LibSvm::new(files).multilabel(),
            1 => LibSvm::new(files).label_dtype(DType::I32).query_id(),
            _ => LibSvm::new(files).dense().n_features(64),
        };
        match reader.dataset().iter().find_map(Result::err) {
            None => n_read += 1,
            Some(error) => {
                assert!(error.to_string().contains("damaged.svm, line "), "{error}");
                n_refused += 1;
            }
        }
    }
    assert!(n_read > 50 && n_refused > 50, "{n_read} files were read, {n_refused} refused");
}

#[test]
fn packed_files_and_patterns() {
    let mut gzip = flate2_of(b"1 1:1\n");
    gzip.extend(flate2_of(b"2 2:2\n"));
    let a = file("part-a.svm.gz", gzip);
    file("part-b.svm.gz", flate2_of(b"3 3:3"));
    let data = LibSvm::new(a.with_file_name("part-*.svm.gz"));
    assert_eq!(all(data).labels()["label"], Array::from([1.0f32, 2.0, 3.0]).into());
}

fn flate2_of(bytes: &[u8]) -> Vec<u8> {
    let path = folder().join("libsvm/packed.gz");
    let mut file = estimand_data::writer::Output::create(&path, estimand_data::Compression::Gzip).unwrap();
    file.write_all(bytes).unwrap();
    estimand_data::writer::publish(vec![file]).unwrap();
    fs::read(path).unwrap()
}

/// Rows do not depend on threads and pieces, dense or not, and positions are bytes of the file.
#[test]
fn pieces_and_threads_change_nothing() -> Result<()> {
    for dense in [false, true] {
        let expected = all(libsvm(1 << 20, dense));
        assert_eq!(expected.n_rows(), 21);
        for (buffer_size, n_threads) in [(1, 1), (7, 3), (64, 2), (1000, 4)] {
            let cx = InputContext { n_threads, ..InputContext::default() };
            let data = libsvm(buffer_size, dense).batch(1 << 20);
            let batch = data.iter_from(&cx, &Default::default()).next().unwrap()?;
            assert_eq!(batch, expected, "{buffer_size} bytes, {n_threads} threads");
        }
    }
    let text = LibSvm::new(Files::new("x.svm")).query_id().dense().n_features(7).dataset().explain();
    assert_eq!(text, "dense\n  label(`label`)\n    libsvm(auto, 7 features, query_id): x.svm\n");
    Ok(())
}

/// Random rows, written and read: the same bits, for every option.
#[test]
fn random_rows_read_back() -> Result<()> {
    let folder = folder().join("libsvm");
    fs::create_dir_all(&folder).unwrap();
    let dice = &mut Dice(13);
    for round in 0..60 {
        let n_rows = 1 + dice.below(30) as usize;
        let (mut ids, mut splits) = (Vec::new(), vec![0i64]);
        for _ in 0..n_rows {
            let mut id = dice.below(3) as i64;
            for _ in 0..dice.below(5) {
                ids.push(id);
                let bits = dice.below(40);
                id += 1 + dice.below(1 << bits) as i64;
            }
            splits.push(ids.len() as i64);
        }
        let number = |dice: &mut Dice| match f32::from_bits(dice.below(1 << 32) as u32) {
            // NaN is not equal to itself.
            value if value.is_nan() => 0.1,
            value => value,
        };
        let values: Vec<f32> = ids.iter().map(|_| number(dice)).collect();
        let mut batch = Batch::new()
            .with_feature("ids", ragged(&ids, &splits))?
            .with_feature("values", ragged(&values, &splits))?;
        let mut reader = LibSvm::new(folder.join("random.svm.gz"));
        let mut writer = LibSvmWriter::new(folder.join("random.svm.gz"));
        if dice.below(2) == 0 {
            batch = batch
                .with_feature("qid", Array::from((0..n_rows).map(|_| dice.below(9) as i64).collect::<Vec<_>>()))?;
            reader = reader.query_id();
        }
        if dice.below(2) == 0 {
            (reader, writer) = (reader.index_base(IndexBase::Zero), writer.zero_based());
        }
        batch = match dice.below(3) {
            0 => {
                let labels: Vec<i64> = (0..n_rows).map(|_| dice.below(1 << 40) as i64 - 1000).collect();
                reader = reader.label_dtype(DType::I64);
                batch.with_label("label", Array::from(labels))?
            }
            1 => batch.with_label("label", Array::from((0..n_rows).map(|_| number(dice)).collect::<Vec<_>>()))?,
            _ => {
                let labels: Vec<i64> = (0..n_rows as i64).collect();
                reader = reader.multilabel();
                // Row i has the labels i..n_rows: none in no row.
                let many: Vec<i64> = labels.iter().flat_map(|&i| i..n_rows as i64).collect();
                let mut ends = vec![0i64];
                labels.iter().for_each(|&i| ends.push(ends[i as usize] + n_rows as i64 - i));
                batch.with_label("label", ragged(&many, &ends))?
            }
        };
        let written = writer.write(&Dataset::from_batch(batch.clone()).batch(1 + dice.below(9) as usize))?;
        assert_eq!(written.n_rows, n_rows as u64);
        assert_eq!(all(reader), batch, "round {round}");
    }
    Ok(())
}

#[test]
fn dense_rows_read_back() -> Result<()> {
    let path = folder().join("libsvm-dense.svm");
    let x = Array::from_vec([3, 2, 2], vec![0.0f64, 1.5, f64::NAN, 0.0, 0.0, 0.0, 0.0, 0.0, -1e-30, 0.0, 1e300, 7.0])?;
    let y = Array::from([true, false, true]);
    Dataset::from_arrays([("x", x), ("y", y)]).label("y").write_libsvm(&path)?;
    assert_eq!(fs::read_to_string(&path).unwrap(), "1 2:1.5 3:NaN\n0\n1 1:-1e-30 3:1e300 4:7\n");
    // Sparse rows in any order are sorted.
    let ids = ragged(&[7i64, 2, 9], &[0, 2, 3]);
    let data = Dataset::from_arrays([
        ("values", ragged(&[1i64, 2, 3], &[0, 2, 3])),
        ("ids", ids),
        ("y", Array::from([1u8, 2]).into()),
    ]);
    LibSvmWriter::new(&path).zero_based().write(&data.label("y"))?;
    assert_eq!(fs::read_to_string(&path).unwrap(), "1 2:2 7:1\n2 9:3\n");
    Ok(())
}

#[test]
fn what_cannot_be_written_is_named() -> Result<()> {
    let folder = folder().join("libsvm-refused");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("rows.svm");
    fs::write(&path, "old").unwrap();
    let x = || ("x", Feature::from(Array::from([1.0f32, 2.0])));
    let y = || ("y", Feature::from(Array::from([1i64, 0])));
    let words = || Feature::from(Array::from_strings([2], ["a", "b"]).unwrap());
    let sparse = |ids: &[i64]| {
        Dataset::from_arrays([("ids", ragged(ids, &[0, 2, 2])), ("values", ragged(&[1.0f32, 2.0], &[0, 2, 2])), y()])
            .label("y")
    };
    for (data, text) in [
        (Dataset::from_arrays([x()]), "the rows have 0 labels"),
        (Dataset::from_arrays([x(), y(), ("z", y().1)]).label("y").label("z"), "the rows have 2 labels"),
        (Dataset::from_arrays([x(), ("y", words())]).label("y"), "the label is string[]; expected a number"),
        (Dataset::from_arrays([x(), ("z", x().1), y()]).label("y"), "the feature `z` (f32[]) has no place"),
        (Dataset::from_arrays([("x", words()), y()]).label("y"), "the feature `x` is string[]; expected dense numbers"),
        (Dataset::from_arrays([y()]).label("y"), "no features to write"),
        (Dataset::from_arrays([x(), ("w", x().1), y()]).label("y").weights("w"), "the rows have weights"),
        (Dataset::from_arrays([x(), ("qid", x().1), y()]).label("y"), "the feature `qid` is f32[]; expected i64"),
        (sparse(&[3, 3]), "the id 3 occurs twice in a row\n  in row 1 of the dataset"),
        (sparse(&[-3, 3]), "an id is -3; expected 0 or more"),
        (sparse(&[3, i64::MAX]), "too large for an index"),
        (
            Dataset::from_arrays([
                ("ids", ragged(&[1i64], &[0, 1, 1])),
                ("values", ragged(&[1.0f32], &[0, 0, 1])),
                y(),
            ])
            .label("y"),
            "expected ragged i64 with the row lengths of `values`",
        ),
        (
            Dataset::from_arrays([x(), ("y", ragged(&[1i64], &[0, 1, 1]))]).label("y").map_feature("x", |x| x * 0),
            "neither labels nor values",
        ),
    ] {
        let error = data.write_libsvm(&path).unwrap_err().to_string();
        assert!(error.contains(text), "{error} should contain {text}");
    }
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!((names, fs::read_to_string(&path).unwrap()), (vec!["rows.svm".into()], "old".to_string()));
    Ok(())
}

#[test]
fn matrices_in_memory() -> Result<()> {
    // [[0, 5, 0], [0, 0, 0], [1, 0, 2]], with one column in two parts.
    let matrix = || Csr::new([0i32, 1, 1, 4], [1i32, 2, 0, 2], [5.0f64, 1.5, 1.0, 0.5]);
    let batch = all(matrix());
    assert_eq!(batch.features()["ids"], ragged(&[1i64, 2, 0, 2], &[0, 1, 1, 4]));
    assert_eq!(batch.features()["values"], ragged(&[5.0f32, 1.5, 1.0, 0.5], &[0, 1, 1, 4]));
    assert!(batch.labels().is_empty());
    let dense = all(matrix().dense().labels([7i64, 8, 9]));
    let expected = Array::from_vec([3, 3], vec![0.0f32, 5.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0])?;
    assert_eq!(dense.features()["features"], expected.into());
    assert_eq!(dense.labels()["label"], Array::from([7i64, 8, 9]).into());
    let shuffled = matrix().dense().n_features(4).dataset().shuffle(2, 1);
    assert!(shuffled.explain().contains("a permutation of all rows"), "{}", shuffled.explain());
    assert_eq!(all(Dataset::from_csr(vec![0i64, 0], Vec::<i64>::new(), Vec::<f32>::new())).n_rows(), 1);

    let none = || Array::from(Vec::<f32>::new());
    for (csr, text) in [
        (Csr::new([0.0f32], [1i64], [1.0f32]), "indptr is f32[1]; expected i32 or i64"),
        (Csr::new([0i64, 1], [1.0f32], [1.0f32]), "indices is f32[1]; expected i32 or i64"),
        (Csr::new([0i64, 1], [1i64], [true]), "the values are bool[1]; expected numbers"),
        (Csr::new([0i64, 1], [1i64], [1.0f32, 2.0]), "1 indices and 2 values"),
        (Csr::new([0i64, 2], [1i64], [1.0f32]), "ends at 2, but there are 1"),
        (Csr::new([1i64, 1], [1i64], [1.0f32]), "starts at 1"),
        (Csr::new([0i64, 1, 0], [1i64], [1.0f32]), "in indptr"),
        (Csr::new([0i64, 1], [-1i64], [1.0f32]), "an index is -1"),
        (Csr::new([0i64, 1], [3i64], [1.0f32]).n_features(3), "an index is 3, but the matrix has 3 columns"),
        (Csr::new([0i64, 1], [3i64], [1.0f32]).labels([1i64, 2]), "label `label` has 2 rows, but the batch has 1"),
        (Csr::new([0i64, 0], Vec::<i64>::new(), none()).dense(), "no features, so they cannot be made dense"),
    ] {
        let error = error(csr);
        assert!(error.contains(text), "{error} should contain {text}");
    }
    Ok(())
}
