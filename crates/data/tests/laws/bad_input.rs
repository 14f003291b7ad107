//! Mistakes and damaged files: what the error says.

use std::panic::{AssertUnwindSafe, catch_unwind};

use estimand_data::{Dataset, InputContext, Position};
use estimand_tensor::{Array, Batch, DType, ErrorKind, FeatureSpec};
use estimand_wire::ExampleBuilder;
use estimand_wire::record::RecordWriter;

use crate::plans::{files, folder, rows, spec};

/// The rows before the first error, and its text.
fn fails(data: &Dataset) -> (usize, String) {
    let mut n_rows = 0;
    let mut batches = data.iter();
    let error = loop {
        match batches.next().expect("an error") {
            Ok(batch) => n_rows += batch.n_rows(),
            Err(error) => break error,
        }
    };
    assert!(batches.next().is_none(), "nothing follows an error");
    (n_rows, error.to_string())
}

#[test]
fn mistakes_in_plans() {
    let some = Dataset::from_batch(rows(5));
    let none: [(&str, Array); 0] = [];
    let two = [("x", Array::from([1i64, 2])), ("y", Array::from([1i64]))];
    let twice = [("x", Array::from([1i64])), ("x", Array::from([1i64]))];
    for (data, text) in [
        (Dataset::from_arrays(none), "the dataset has no arrays"),
        (Dataset::from_arrays(two), "feature `y` has 1 rows, but the batch has 2"),
        (Dataset::from_arrays(twice), "two arrays named `x`"),
        (Dataset::from_array(Array::from(1i64)), "a single number"),
        (some.batch(0), "the batch size is 0"),
        (some.batch(2).map(Ok).batch(2), "`batch(2)` was given batches"),
        (some.shuffle(0, 1).take(1), "the buffer of `shuffle` has room for 0 elements"),
        (some.take(3).reshuffle_each_iteration(false), "was called after `take(3)`, which does not shuffle"),
        (some.label("name").reshuffle_each_iteration(true), "which does not shuffle"),
        (some.split([0.5, 0.6], 1)[0].take(1), "which add up to 1.1; expected 1"),
        (some.split([1.5, -0.5], 1)[1].take(1), "expected numbers above 0"),
        (some.split([f64::NAN, 0.5], 1)[0].take(1), "expected numbers above 0"),
        (some.split([], 1).first().cloned().unwrap_or_else(|| some.batch(0)), "the batch size is 0"),
        (some.split([0.99999, 0.00001], 1)[1].take(1), "0.00001 is less than one of 10000 rows"),
        (some.batch(2).split([0.5, 0.5], 1)[0].take(1), "`split` was called after `batch`"),
        (some.shuffle(5, 1).split([0.5, 0.5], 1)[0].take(1), "`split` was called after something that shuffles"),
        (some.shuffle(5, 1).repeat(2).take(9).split([0.5, 0.5], 1)[0].take(1), "after something that shuffles"),
        (some.shard_by_worker().split([0.5, 0.5], 1)[0].take(1), "gives each worker its own rows"),
        (some.prefetch(0), "the buffer of `prefetch` has room for 0 items"),
        (some.shard(2, 2), "shard(2, 2)"),
        (some.shard(0, 0), "shard(0, 0)"),
        (some.label("nam"), "did you mean `name`?"),
        (some.weights("tags"), "are ragged"),
        (Dataset::from_tfrecord(Vec::<String>::new(), spec()), "the list of files is empty"),
        (Dataset::from_tfrecord(files(), Vec::<(String, FeatureSpec)>::new()), "no features"),
        (Dataset::from_tfrecord(files(), [("x", FeatureSpec::dense(DType::F64, []))]), "not f64"),
        (Dataset::from_tfrecord(files(), [("x", FeatureSpec::padded(DType::F32, []))]), "has a padded spec"),
        (Dataset::from_tfrecord(["/no/such/file"], spec()), "cannot open /no/such/file"),
        (some.filter(|_| Ok(vec![])), "0 answers for 1 rows"),
        (some.map(|_| Ok(Batch::new())), "returned 0 rows for 1"),
        (some.filter(|b| Ok(vec![false; b.n_rows()])).repeat_forever(), "16 epochs in a row"),
        (Dataset::from_batch(rows(0)).repeat(u64::MAX), "16 epochs in a row"),
    ] {
        let (n_rows, error) = fails(&data);
        assert!(error.contains(text) && n_rows == 0, "{error}");
        let (_, ahead) = fails(&data.clone().prefetch(2));
        assert_eq!(ahead, error, "read ahead");
    }
    let specless = some.batch(0).spec().unwrap_err().to_string();
    assert!(specless.contains("the batch size is 0"), "{specless}");
    let cx = InputContext { worker: 2, n_workers: 2, ..InputContext::default() };
    let error = some.iter_from(&cx, &Position::default()).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("the worker is number 2, but there are 2 workers"), "{error}");
}

#[test]
fn rows_that_disagree_cannot_share_a_batch() {
    let error = fails(&Dataset::from_batch(rows(1)).repeat(2).map(wider_every_second_time()).batch(2)).1;
    assert!(error.contains("in `pair`") && error.contains("a row of f32[3] follows a row of f32[2]"), "{error}");
}

fn wider_every_second_time() -> impl Fn(Batch) -> estimand_tensor::Result<Batch> {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    move |batch| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        batch.with_feature("pair", Array::zeros(DType::F32, [1, 2 + call % 2])?)
    }
}

#[test]
fn a_damaged_file_is_named_with_its_record() {
    let path = folder().join("damaged.tfrecord");
    let whole = std::fs::read(&files()[0]).unwrap();
    let data = Dataset::from_tfrecord([files()[2].clone(), path.clone()], spec());
    let mut n_rows = Vec::new();
    for position in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[position] ^= 0x40;
        std::fs::write(&path, bytes).unwrap();
        let (n, error) = fails(&data);
        assert!(error.contains(&format!("in record {} of {}", n - 9 + 1, path.display())), "{error}");
        n_rows.push(n);
    }
    assert!(n_rows.is_sorted() && n_rows[0] == 9 && n_rows[whole.len() - 1] == 9 + 13);

    std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let (n, error) = fails(&data.batch(4));
    assert!(n == 20 && error.contains("in record 14 of") && error.contains("the file ends after"), "{n} {error}");
}

#[test]
fn a_record_that_does_not_fit_the_spec_is_named() {
    let path = folder().join("unfit.tfrecord");
    let mut writer = RecordWriter::new(Vec::new());
    for i in 0..3 {
        writer.write(&ExampleBuilder::new().ints("x", &[i]).build()).unwrap();
    }
    writer.write(&ExampleBuilder::new().floats("x", &[0.5]).build()).unwrap();
    std::fs::write(&path, writer.into_inner()).unwrap();
    let data = Dataset::from_tfrecord([path.clone()], [("x", FeatureSpec::dense(DType::I64, []))]);
    let mut stream = data.open(&InputContext::default(), &Position::default()).unwrap();
    let good = stream.pull(100).unwrap().unwrap();
    assert_eq!(good.batch.n_rows(), 3);
    let error = stream.pull(100).unwrap_err();
    let kind = ErrorKind::Data { path: Some(path), row: Some(4), column: Some("x".to_string()) };
    assert_eq!(*error.kind(), kind, "{error}");
    assert!(error.to_string().contains("in record 4 of"), "{error}");
    // Going on from behind the good rows meets the same error.
    let again = data.iter_from(&InputContext::default(), &good.after).next().unwrap().unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
}

#[test]
fn positions_of_other_data_are_refused() {
    let memory = Dataset::from_batch(rows(5));
    let records = Dataset::from_tfrecord(files(), spec());
    for (data, place, text) in [
        (&memory, Position::new([6], []), "after row 6"),
        (&memory, Position::new([1, 1], []), "2 numbers"),
        (&memory.shuffle(9, 1), Position::new([7], []), "after row 7"),
        (&records, Position::new([4, 0, 0, 0], []), "file number 4, but there are 3 files"),
        (&records, Position::new([0, 1 << 40, 0, 0], []), "but the file has"),
        (&records, Position::new([0, 1, 0, 0], []), "damaged"),
        (&records.shuffle(4, 1), Position::new([0, 4], [Position::default()]), "after element 4"),
    ] {
        let error = data.iter_from(&InputContext::default(), &place).next().unwrap().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    // Counters at their end overflow nowhere; where the last epoch, take or record is passed,
    // nothing or the rest follows.
    let end = u64::MAX;
    for (data, place, n) in [
        (memory.repeat(3), Position::new([end], [Position::default()]), 0),
        (memory.repeat_forever().take(12), Position::new([0], [Position::new([end], [Position::default()])]), 12),
        (memory.take(3), Position::new([end], [Position::default()]), 0),
        (memory.prefetch(1), Position::new([end], [Position::default()]), 0),
        (records.clone(), Position::new([0, 0, end, end], []), 23),
        (records.shuffle(4, 1), Position::new([end, 0], [Position::default()]), 23),
    ] {
        let rows = data.iter_from(&InputContext::default(), &place).map(|batch| batch.unwrap().n_rows());
        assert_eq!(rows.sum::<usize>(), n, "{}", data.explain());
    }
}

#[test]
fn a_panic_in_the_thread_is_the_callers() {
    let data = Dataset::from_batch(rows(5)).map(|_| panic!("out of luck")).prefetch(2);
    let caught = catch_unwind(AssertUnwindSafe(|| data.iter().count())).unwrap_err();
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"out of luck"));
}
