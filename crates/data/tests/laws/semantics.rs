//! What transformations mean, against plain vectors of numbers.

use std::collections::BTreeSet;

use estimand_data::{Dataset, Files, InputContext, Position};
use estimand_tensor::{Array, DType, Feature, FeatureSpec, Result};

use crate::plans::{Dice, add_1000, all_ids, files, ids, not_3_or_7, rows, spec};

/// Random plans without shuffling beside the same steps on a vector.
#[test]
fn transformations_do_to_rows_what_they_do_to_a_vector() {
    for number in 0..400 {
        let mut dice = Dice(number);
        let (mut data, mut plain): (Dataset, Vec<i64>) = match dice.below(2) {
            0 => (Dataset::from_batch(rows(17)), (0..17).collect()),
            _ => (Dataset::from_tfrecord(files(), spec()), (0..23).collect()),
        };
        for _ in 0..dice.below(6) {
            (data, plain) = match dice.below(7) {
                0 => (data.repeat(2), plain.repeat(2)),
                1 => {
                    let n = dice.below(40);
                    (data.take(n), plain.into_iter().take(n as usize).collect())
                }
                2 => {
                    let n = dice.below(8);
                    (data.skip(n), plain.into_iter().skip(n as usize).collect())
                }
                3 => (data.shard(3, 1), plain.into_iter().skip(1).step_by(3).collect()),
                4 => (data.map(add_1000), plain.into_iter().map(|id| id + 1000).collect()),
                5 => (data.filter(not_3_or_7), plain.into_iter().filter(|id| !matches!(id % 10, 3 | 7)).collect()),
                _ => (data.prefetch(2), plain),
            };
        }
        let n = 1 + dice.below(6) as usize;
        let batches = |data: &Dataset| data.iter().map(|batch| ids(&batch.unwrap())).collect::<Vec<_>>();
        assert_eq!(batches(&data.batch(n)), plain.chunks(n).collect::<Vec<_>>(), "{}", data.explain());
        assert_eq!(
            batches(&data.batch(n).drop_remainder()),
            plain.chunks_exact(n).collect::<Vec<_>>(),
            "{}",
            data.explain()
        );
        // Behind `batch`, elements are batches.
        let behind = data.batch(n).skip(1).shard(2, 1).take(2);
        let expected: Vec<_> = plain.chunks(n).skip(1).skip(1).step_by(2).take(2).collect();
        assert_eq!(batches(&behind), expected, "{}", behind.explain());
    }
}

/// All features of a row stay together, whatever moves it.
#[test]
fn rows_move_as_a_whole() -> Result<()> {
    let all = rows(23);
    for data in [Dataset::from_batch(all.clone()), Dataset::from_tfrecord(files(), spec())] {
        let data = data.shuffle(10, 1).repeat(2).shard(2, 1).filter(not_3_or_7).batch(5).prefetch(1);
        for batch in &data {
            let batch = batch?;
            let row = |name: &str, i: usize| match &batch.features()[name] {
                Feature::Dense(array) => array.rows(i..i + 1).unwrap(),
                Feature::Ragged(ragged) => ragged.row(i).unwrap(),
            };
            for (i, &id) in ids(&batch).iter().enumerate() {
                assert_eq!(row("pair", i), Array::from_vec([1, 2], vec![2.0 * id as f32, 2.0 * id as f32 + 1.0])?);
                assert_eq!(row("name", i), Array::from_strings([1], [id.to_string()])?);
                let tags = (0..id % 4).map(|j| format!("{id}/{j}"));
                assert_eq!(row("tags", i), Array::from_strings([(id % 4) as usize], tags)?);
            }
        }
    }
    Ok(())
}

#[test]
fn a_shuffle_is_a_function_of_seed_and_epoch() {
    for source in [Dataset::from_batch(rows(23)), Dataset::from_tfrecord(files(), spec())] {
        let of = |seed, run| -> Vec<i64> {
            let cx = InputContext { seed: run, ..InputContext::default() };
            let data = source.shuffle(100, seed);
            data.iter_from(&cx, &Position::default()).flat_map(|batch| ids(&batch.unwrap())).collect()
        };
        assert_eq!(of(1, 0), of(1, 0));
        let orders: BTreeSet<_> = [of(1, 0), of(2, 0), of(1, 1), (0..23).collect()].into_iter().collect();
        assert_eq!(orders.len(), 4, "seeds of the plan and of the run count");

        let epochs = all_ids(&source.shuffle(100, 1).repeat(3));
        assert_eq!(epochs[..23], of(1, 0)[..], "the first epoch is the one without repeat");
        let orders: BTreeSet<_> = epochs.chunks(23).collect();
        assert_eq!(orders.len(), 3, "each epoch has its own order");
        for epoch in orders {
            assert_eq!(epoch.iter().copied().collect::<BTreeSet<_>>(), (0..23).collect(), "and all rows");
        }
        // Shuffled behind `repeat` and others, the same.
        assert_eq!(all_ids(&source.repeat(3).prefetch(2).shuffle(100, 1)), epochs);
        // Repeated twice, no order is used again.
        let nested = all_ids(&source.shuffle(100, 1).repeat(2).repeat(2));
        assert_eq!(nested.chunks(23).collect::<BTreeSet<_>>().len(), 4);
    }
}

#[test]
fn a_stream_is_shuffled_in_blocks() {
    let data = Dataset::from_tfrecord(files(), spec()).shuffle(10, 4);
    let found = all_ids(&data);
    for (block, expected) in found.chunks(10).zip([0..10, 10..20, 20..23]) {
        // Three rows keep their order once in six times.
        assert!(block.len() < 10 || !block.is_sorted());
        assert_eq!(block.iter().copied().collect::<BTreeSet<_>>(), expected.collect());
    }
    let explained = data.explain();
    assert!(explained.contains("blocks of 10 rows; going on reads up to 10 again"), "{explained}");
}

/// Batch t of all workers together is batch t of one.
#[test]
fn shards_together_are_the_whole() {
    let shuffled = Dataset::from_batch(rows(29)).shuffle(100, 9).repeat(2);
    let whole: Vec<_> = shuffled.batch(12).iter().map(|batch| ids(&batch.unwrap())).collect();
    let shards: Vec<Vec<_>> =
        (0..3).map(|i| shuffled.shard(3, i).batch(4).iter().map(|batch| ids(&batch.unwrap())).collect()).collect();
    for (t, expected) in whole.iter().enumerate() {
        let together: BTreeSet<i64> = shards.iter().filter_map(|shard| shard.get(t)).flatten().copied().collect();
        assert_eq!(together, expected.iter().copied().collect(), "batch {t}");
    }
}

#[test]
fn labels_weights_and_specs() -> Result<()> {
    let arrays =
        [("x", Array::from([1.0f32, 2.0])), ("y", Array::from([0.0f32, 1.0])), ("w", Array::from([0.5f32, 2.0]))];
    let data = Dataset::from_arrays(arrays).label("y").weights("w").shuffle(9, 0).batch(2);
    let batch = data.iter().next().unwrap()?;
    assert_eq!(batch.features().keys().map(|k| &**k).collect::<Vec<_>>(), ["x"]);
    assert_eq!(batch.labels().keys().map(|k| &**k).collect::<Vec<_>>(), ["y"]);
    assert_eq!(batch.weights().unwrap().len(), 2);
    assert_eq!(data.spec()?.into_iter().collect::<Vec<_>>(), [("x".to_string(), FeatureSpec::dense(DType::F32, []))]);

    let mapped = Dataset::from_batch(rows(3)).map(|batch| batch.with_feature("new", Array::from([true])));
    assert_eq!(mapped.spec()?["new"], FeatureSpec::dense(DType::Bool, []));
    assert_eq!(mapped.spec()?["pair"], FeatureSpec::dense(DType::F32, [2]));
    assert_eq!(mapped.spec()?["tags"], FeatureSpec::ragged(DType::Str));
    Ok(())
}

/// Every worker reads all rows, in an order of its own.
#[test]
fn workers_may_shuffle_on_their_own() {
    for source in [Dataset::from_batch(rows(23)), Dataset::from_tfrecord(files(), spec())] {
        let data = source.repeat(2).shuffle_by_worker(100, 3);
        let order = |worker| -> Vec<i64> {
            let cx = InputContext { worker, n_workers: 3, ..InputContext::default() };
            data.iter_from(&cx, &Position::default()).flat_map(|batch| ids(&batch.unwrap())).collect()
        };
        let orders: BTreeSet<_> = (0..3).map(order).collect();
        assert_eq!(orders.len(), 3);
        for order in orders {
            assert_eq!(order[..23].iter().copied().collect::<BTreeSet<_>>(), (0..23).collect());
        }
        let error = data.shard_by_worker().iter().next().unwrap().unwrap_err().to_string();
        assert!(error.contains("`shard_by_worker` follows `shuffle_by_worker`"), "{error}");
    }
}

/// By file: all rows once, and no worker reads another's files.
#[test]
fn files_may_be_shared_among_workers() {
    let data = Dataset::from_tfrecord(Files::new(files()).shuffle(5).shard_by_worker(), spec());
    let of = |worker, n_workers| -> Vec<i64> {
        let cx = InputContext { worker, n_workers, ..InputContext::default() };
        data.iter_from(&cx, &Position::default()).flat_map(|batch| ids(&batch.unwrap())).collect()
    };
    let mut together = [of(0, 2), of(1, 2)].concat();
    together.sort_unstable();
    assert_eq!(together, (0..23).collect::<Vec<_>>());
    assert!(data.explain().contains("their number cannot change"), "{}", data.explain());
    let cx = InputContext { worker: 0, n_workers: 4, ..InputContext::default() };
    let error = data.iter_from(&cx, &Position::default()).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("3 files for 4 workers"), "{error}");
    // The order of files is another in every epoch.
    let epochs = all_ids(&data.repeat(6));
    assert_eq!(epochs.len(), 6 * 23);
    assert!(epochs.chunks(23).collect::<BTreeSet<_>>().len() > 1);
}
