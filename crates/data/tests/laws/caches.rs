//! Rows that are read once: what is kept, when, and which files are refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_data::{Dataset, InputContext, Position};
use estimand_tensor::{Array, Batch, DType, Error, FeatureSpec, Result};

use crate::plans::{all_ids, files, folder, ids, rows, spec};

/// 2,500 rows, and how many of them were read.
fn counted() -> (Dataset, Arc<AtomicUsize>) {
    let n_read = Arc::new(AtomicUsize::new(0));
    let counter = n_read.clone();
    let data = Dataset::from_batch(rows(2_500)).map(move |batch| {
        counter.fetch_add(batch.n_rows(), Ordering::Relaxed);
        Ok(batch)
    });
    (data, n_read)
}

/// A path at which there is no file yet.
fn path(name: &str) -> PathBuf {
    let path = folder().join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// Files beside a path whose names begin with its name.
fn beside(path: &Path) -> usize {
    let name = path.file_name().unwrap().to_str().unwrap();
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_str().unwrap().starts_with(name)).count()
}

#[test]
fn rows_are_read_once() {
    let path = path("once.cache");
    for to_file in [false, true] {
        let (source, n_read) = counted();
        let data = if to_file { source.cache_to(&path) } else { source.cache() };
        assert_eq!(all_ids(&data.take(2_000)), (0..2_000).collect::<Vec<_>>());
        // Two pieces of 1,024 rows were needed, and are forgotten: the pass was not complete.
        assert_eq!((n_read.swap(0, Ordering::Relaxed), beside(&path)), (2_048, 0));
        for _ in 0..3 {
            assert_eq!(all_ids(&data.batch(100)), (0..2_500).collect::<Vec<_>>());
        }
        assert_eq!(n_read.load(Ordering::Relaxed), 2_500, "to a file: {to_file}");
        let place = Position::new([1_030], []);
        let rest: Vec<i64> = data.iter_from(&InputContext::default(), &place).flat_map(|b| ids(&b.unwrap())).collect();
        assert_eq!(rest, (1_030..2_500).collect::<Vec<_>>());
        assert_eq!(n_read.load(Ordering::Relaxed), 2_500);
    }
    // Another run with the same plan reads the file.
    let (source, n_read) = counted();
    let all: Vec<_> = source.cache_to(&path).batch(2_500).drop_remainder().iter().collect::<Result<_>>().unwrap();
    assert_eq!((all, n_read.load(Ordering::Relaxed), beside(&path)), (vec![rows(2_500)], 0, 1));
}

#[test]
fn a_cache_fixes_the_order_below_it() {
    let shuffled = Dataset::from_batch(rows(50)).shuffle(50, 1);
    for data in [shuffled.cache(), shuffled.cache_to(path("order.cache")), shuffled.batch(7).cache()] {
        let ids = all_ids(&data.repeat(2));
        assert_eq!(ids[..50], ids[50..]);
        assert_eq!(ids[..50], all_ids(&shuffled), "that of epoch 0");
        let anew = all_ids(&data.shuffle(60, 2).repeat(2));
        assert_ne!(anew[..50], anew[50..], "after it, each epoch has its own");
        assert!(data.explain().contains("all epochs in the order of the first"), "{}", data.explain());
    }
    // Each seed has its own order, also in memory.
    let cached = shuffled.cache();
    let of = |seed| -> Vec<i64> {
        let cx = InputContext { seed, ..InputContext::default() };
        cached.iter_from(&cx, &Position::default()).flat_map(|batch| ids(&batch.unwrap())).collect()
    };
    assert_ne!(of(1), of(2));
    assert_eq!(of(1), of(1));
}

/// What comes before an error is given, and nothing is kept.
#[test]
fn an_error_ends_the_pass() {
    let path = path("error.cache");
    let bad = Dataset::from_generator([("id", FeatureSpec::dense(DType::I64, []))], |_| {
        (0..9i64).map(|id| match id {
            0..5 => Batch::new().with_feature("id", Array::from([id])),
            _ => Err(Error::config("no luck")),
        })
    });
    for data in [bad.cache(), bad.cache_to(&path)] {
        for _ in 0..2 {
            let mut batches = data.iter();
            let good: Vec<i64> = batches.by_ref().take(5).flat_map(|batch| ids(&batch.unwrap())).collect();
            assert_eq!(good, [0, 1, 2, 3, 4]);
            assert!(batches.next().unwrap().unwrap_err().to_string().contains("no luck"));
        }
    }
    assert_eq!(beside(&path), 0);
}

#[test]
fn a_file_of_other_rows_is_refused() {
    let path = path("refused.cache");
    let data = Dataset::from_batch(rows(9));
    let cx = InputContext::default();
    let other = InputContext { seed: 1, worker: 1, n_workers: 2, ..cx };
    let open = |data: &Dataset, cx: &InputContext| {
        data.cache_to(&path).iter_from(cx, &Position::default()).collect::<Result<Vec<_>>>()
    };
    open(&data.take(5), &cx).unwrap();
    for (data, text) in [
        (data.clone(), "that plan has `take(5)` where this one has `arrays: 9 rows"),
        (data.take(6), "that plan has `take(5)` where this one has `take(6)`"),
        (data.skip(1).take(5), "has `arrays: 9 rows of `id`, `pair`, `name`, `tags`, `id` i64[]"),
        (Dataset::from_batch(rows(8)).take(5), "where this one has `arrays: 8 rows"),
    ] {
        let error = open(&data, &cx).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("refused.cache is the cache of another plan"), "{error}");
    }
    // Neither threads nor, without anything that depends on them, seed and worker matter.
    assert_eq!(open(&data.prefetch(2).take(5).prefetch(1), &other).unwrap().len(), 5);

    for (data, text) in [
        (data.shuffle(9, 1), "in a run of seed 0` where this one has `shuffle(seed 1)"),
        (data.shard_by_worker(), "that plan has `shard(1, 0)` where this one has `shard(2, 1)`"),
    ] {
        std::fs::remove_file(&path).unwrap();
        open(&data, &cx).unwrap();
        let error = open(&data, &other).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }

    // All files count, not only the one that a description names.
    let records = |last: usize| Dataset::from_tfrecord([files()[0].clone(), files()[last].clone()], spec());
    std::fs::remove_file(&path).unwrap();
    open(&records(1), &cx).unwrap();
    assert_eq!(open(&records(1), &other).unwrap().len(), 14);
    let error = open(&records(2), &cx).unwrap_err().to_string();
    assert!(error.contains("that plan has `tfrecord: 4 features"), "{error}");

    std::fs::write(&path, "a file of somebody else").unwrap();
    let error = open(&data, &cx).unwrap_err().to_string();
    assert!(error.contains("is not the cache of a dataset"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a file of somebody else");
}

#[test]
fn a_damaged_file_is_an_error() {
    let path = path("damaged.cache");
    let data = Dataset::from_batch(rows(5)).cache_to(&path);
    let read = || data.iter().collect::<Result<Vec<_>>>();
    let all = read().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for position in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[position] ^= 0x11;
        std::fs::write(&path, &bytes).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains("damaged.cache"), "byte {position}: {error}");
        std::fs::write(&path, &whole[..position]).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains("damaged.cache"), "cut to {position}: {error}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(read().unwrap(), all);
}

#[test]
fn positions_behind_the_end_are_refused() {
    let data = Dataset::from_batch(rows(5));
    for data in [data.cache(), data.cache_to(path("end.cache")), data.batch(1).cache()] {
        for _ in 0..2 {
            for (place, n) in [(0, 5), (4, 1), (5, 0)] {
                assert_eq!(data.iter_from(&InputContext::default(), &Position::new([place], [])).count(), n);
            }
            for place in [6, 1_024, 5_000, u64::MAX] {
                let place = Position::new([place], []);
                let error = data.iter_from(&InputContext::default(), &place).next().unwrap().unwrap_err();
                assert!(error.to_string().contains("but the cache has 5 elements"), "{error}");
            }
        }
    }
}

/// A generator reads what a cache of strings, ragged rows, labels and weights gives back.
#[test]
fn all_kinds_of_features_come_back() -> Result<()> {
    let path = path("kinds.cache");
    let batch = rows(7).with_label("y", Array::from([1u8; 7]))?.with_weights(Array::from([0.5f64; 7]))?;
    for _ in 0..2 {
        let found =
            Dataset::from_batch(batch.clone()).cache_to(&path).batch(7).drop_remainder().iter().next().unwrap()?;
        assert_eq!(found, batch);
    }
    Ok(())
}
