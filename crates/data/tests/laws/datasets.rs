//! Several datasets put together, and those that a function makes: mistakes and what rows they
//! give.

use std::collections::BTreeSet;

use estimand_data::{Buckets, Dataset, InputContext, Pad, Position, input_fn};
use estimand_tensor::{Array, Batch, DType, FeatureSpec, Result};

use crate::combined::generated;
use crate::plans::{all_ids, files, ids, rows, spec};

fn numbers(name: &str, n: i64) -> Dataset {
    Dataset::from_arrays([(name, Array::from((0..n).collect::<Vec<_>>()))])
}

#[test]
fn mistakes() {
    let one = [("x", FeatureSpec::dense(DType::I64, []))];
    let gives = |batch: Result<Batch>| Dataset::from_generator(one.clone(), move |_| [batch.clone()]);
    let weighted = || numbers("w", 3).weights("w");
    let padded = |pad: Pad| Dataset::from_batch(rows(4)).padded_batch(4, pad);
    let buckets = |buckets: Buckets| Dataset::from_batch(rows(4)).bucket_by_sequence_length(buckets);
    for (data, text) in [
        (Dataset::zip([]), "`zip` was given no datasets"),
        (Dataset::zip([numbers("x", 3), numbers("x", 3)]), "features named `x`"),
        (Dataset::zip([numbers("x", 3).label("x"), numbers("x", 3).label("x")]), "labels named `x`"),
        (Dataset::zip([weighted(), weighted()]), "have weights"),
        (Dataset::zip([numbers("x", 3), numbers("y", 3).batch(2)]), "dataset 0 of rows and dataset 1 of batches"),
        (Dataset::zip([numbers("x", 3).batch(3), numbers("y", 3).batch(2)]), "zip rows, and batch the result"),
        (numbers("x", 3).concatenate(&numbers("y", 3)), "feature `x` is in dataset 0 but not in dataset 1"),
        (
            numbers("x", 3).concatenate(&Dataset::from_arrays([("x", Array::from([0.5f32]))])),
            "`x` is i64[] in dataset 0 and f32[]",
        ),
        (numbers("x", 3).concatenate(&numbers("x", 3).batch(1)), "dataset 1 of batches"),
        (numbers("x", 3).enumerate("x", 0), "a feature `x`, but there is one already"),
        (numbers("x", 3).unbatch(), "`unbatch` was given rows"),
        (Dataset::from_generator(Vec::<(String, FeatureSpec)>::new(), |_| []), "no features"),
        (Dataset::from_generator([("x", FeatureSpec::padded(DType::I64, []))], |_| []), "`x` has a padded spec"),
        (gives(Batch::new().with_feature("y", Array::from([1i64]))), "feature `x` is in the spec but not in the rows"),
        (
            gives(Batch::new().with_feature("x", Array::from([1.5f32]))),
            "`x` is i64[] in the spec and f32[] in the rows",
        ),
        (
            gives(Err(estimand_tensor::Error::config("no luck"))),
            "no luck\n  in the rows that the generator yielded after row 0",
        ),
        (Dataset::interleave([], 1, 1), "`interleave` was given no datasets"),
        (Dataset::interleave([numbers("x", 3)], 0, 1), "a cycle_length of 0 and a block_length of 1"),
        (Dataset::interleave([numbers("x", 3), numbers("y", 3)], 1, 1), "feature `x` is in dataset 0 but not"),
        (Dataset::sample_from_datasets([(numbers("x", 3), 0.0)], 0, false), "the weights [0.0]"),
        (Dataset::sample_from_datasets([(numbers("x", 3), f64::NAN)], 0, false), "the weights [NaN]"),
        (numbers("x", 3).window(0, 1, 1).drop_remainder(), "the size 0, shift 1 and stride 1"),
        (numbers("x", 3).batch(2).window(1, 1, 1).drop_remainder(), "`window` was given batches"),
        (Dataset::from_batch(rows(4)).window(2, 1, 1).drop_remainder(), "feature `tags` is ragged"),
        (Dataset::zip([numbers("x", 3), weighted()]).window(2, 1, 1).drop_remainder(), "rows with weights"),
        (padded(Pad::new().size("tag", 3)), "did you mean `tags`?"),
        (
            padded(Pad::new().size("tags", 2)),
            "feature `tags` has 3 values in row 4 of a batch, but rows are padded to 2",
        ),
        (padded(Pad::new().size("pair", 1)), "feature `pair` has 2 values in row 1 of a batch"),
        (padded(Pad::new().size("id", 1)), "feature `id` has one value per row"),
        (padded(Pad::new().value("tags", 1i64)), "in the padding of `tags`"),
        (
            padded(Pad::new().value("tags", [1i64])),
            "the padding value of `tags` has the shape [1]; expected a single value",
        ),
        (Dataset::from_batch(rows(4)).dense_to_ragged("pairs"), "did you mean `pair`?"),
        (Dataset::from_batch(rows(4)).dense_to_ragged("id"), "one value per row"),
        (buckets(Buckets::by_feature("tags", [1, 2], [1, 2])), "2 boundaries and 2 batch sizes"),
        (buckets(Buckets::by_feature("tags", [2, 2], [1, 2, 3])), "the boundaries [2, 2]"),
        (buckets(Buckets::by_feature("tags", [0, 2], [1, 2, 3])), "the boundaries [0, 2]"),
        (buckets(Buckets::by_feature("tags", [2], [1, 0])), "the batch sizes [1, 0]"),
        (buckets(Buckets::by_feature("pair", [2], [1, 1])), "feature `pair` is dense"),
        (buckets(Buckets::by_feature("tag", [2], [1, 1])), "did you mean `tags`?"),
        (buckets(Buckets::by(|_| Ok(vec![1]), [2], [1, 1])), "1 lengths for 4 rows"),
        (
            buckets(Buckets::by(|_| Ok(vec![9; 4]), [2], [1, 1]).pad_to_bucket_boundary(true)),
            "a row has the length 2 or more",
        ),
    ] {
        let error = data.iter().next().expect("an error").unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert!(!data.explain().is_empty());
    }
    let spec = Dataset::zip([numbers("x", 3), numbers("x", 2)]).spec().unwrap_err().to_string();
    assert!(spec.contains("features named `x`"), "{spec}");
}

#[test]
fn positions_of_other_data_are_refused() {
    let x = numbers("x", 3);
    let behind = Position::new([1024], [Position::default()]);
    let buckets = Dataset::from_batch(rows(9)).bucket_by_sequence_length(Buckets::by_feature("tags", [2], [2, 2]));
    for (data, place, text) in [
        (
            Dataset::zip([x.clone(), numbers("y", 3)]),
            Position::new([0], [Position::default()]),
            "1 inputs; the plan expects 1 and 2",
        ),
        (x.concatenate(&x), Position::new([2], [Position::default()]), "in dataset 2 (from 0)"),
        (
            x.batch(2).unbatch(),
            Position::new([3], [Position::default()]),
            "after row 3 of a batch, but the batch has 2 rows",
        ),
        (
            Dataset::interleave([x.clone()], 2, 2),
            Position::new([1, 0, 0, 0], [Position::default()]),
            "does not belong to the datasets",
        ),
        (
            Dataset::interleave([x.clone()], 2, 2),
            Position::new([0, 2, 0, 0], [Position::default()]),
            "does not belong to the datasets",
        ),
        (
            Dataset::interleave([x.clone()], 2, 2),
            Position::new([0, 0, 2, 0], [Position::default()]),
            "does not belong to the datasets",
        ),
        (
            Dataset::interleave([x.clone()], 2, 2),
            Position::new([0, 0, 0, 2], [Position::default()]),
            "does not belong to the datasets",
        ),
        (buckets.clone(), Position::new([0, 1, 1], [Position::default()]), "before any row was read"),
        (
            buckets.clone(),
            Position::new([1, 1, 1], [Position::default()]),
            "after row 1 of a bucket, but the bucket has 0 rows",
        ),
        (buckets, Position::new([30, 1, 1], [Position::default()]), "after the last row"),
        (
            Dataset::interleave([x.clone()], 2, 2),
            Position::new([0, 0, 1, 1], [behind.clone()]),
            "after 1024 rows of a piece",
        ),
        (Dataset::sample_from_datasets([(x.clone(), 1.0)], 1, true), Position::new([u64::MAX, 0], [behind]), "draws"),
        (
            x.window(2, 1, 1).drop_remainder(),
            Position::new([1 << 40], [Position::default()]),
            "before a window, but a window begins every 1 rows",
        ),
        (generated(9), Position::new([12], []), "3 rows after the last row"),
    ] {
        let error = data.iter_from(&InputContext::default(), &place).next().unwrap().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// What stands side by side can be had by number, and is shuffled as a whole.
#[test]
fn zipped_arrays_are_shuffled_together() -> Result<()> {
    let data = Dataset::zip([Dataset::from_batch(rows(20)), numbers("twice", 40)]).enumerate("row", 100).shuffle(4, 1);
    assert!(data.explain().contains("a permutation of all rows"), "{}", data.explain());
    let batch = data.batch(20).drop_remainder().iter().next().unwrap()?;
    let ids = ids(&batch);
    assert!(!ids.is_sorted() && ids.iter().collect::<BTreeSet<_>>().len() == 20);
    assert_eq!(batch.features()["twice"], Array::from(ids.clone()).into());
    assert_eq!(batch.features()["row"], Array::from(ids.iter().map(|id| id + 100).collect::<Vec<_>>()).into());
    Ok(())
}

/// An epoch of a generator is a call, with the context of that epoch.
#[test]
fn a_generator_is_called_once_an_epoch() {
    let data = Dataset::from_generator([("id", FeatureSpec::dense(DType::I64, []))], |cx| {
        let epoch = cx.epoch as i64;
        (0..3).map(move |i| Batch::new().with_feature("id", Array::from([10 * epoch + i, 10 * epoch + i])))
    });
    assert_eq!(all_ids(&data.repeat(2)), [0, 0, 1, 1, 2, 2, 10, 10, 11, 11, 12, 12]);
    assert!(data.explain().contains("going on makes all rows before again"));
}

/// Features, labels and weights that a generator gives in another order than the spec's are put in
/// order.
#[test]
fn a_generators_features_are_in_the_specs_order() -> Result<()> {
    let i64s = || FeatureSpec::dense(DType::I64, []);
    let data = Dataset::from_generator([("a", i64s()), ("b", i64s())], |_| {
        [Batch::new()
            .with_feature("b", Array::from([2i64]))
            .and_then(|batch| batch.with_feature("a", Array::from([1i64])))
            .and_then(|batch| batch.with_label("y", Array::from([3i64])))
            .and_then(|batch| batch.with_weights(Array::from([0.5f32])))]
    });
    let batch = data.iter().next().unwrap()?;
    assert_eq!(batch.features().keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(batch.labels()["y"], Array::from([3i64]).into());
    assert_eq!(batch.weights(), Some(&Array::from([0.5f32])));
    Ok(())
}

#[test]
fn memory_and_files_follow_one_another() {
    let data = Dataset::from_tfrecord(files(), spec()).concatenate(&Dataset::from_batch(rows(4)));
    assert_eq!(all_ids(&data), (0..23).chain(0..4).collect::<Vec<_>>());
}

/// Case 119 of the description of Estimators: 10 rows in batches of 4, in 1 epoch, 2 epochs, and
/// for ever.
#[test]
fn input_functions_batch_across_epochs() {
    let data = |n_epochs, shuffle| {
        let input = input_fn::arrays([("id", Array::from((0..10).collect::<Vec<i64>>()))]);
        input.labels(Array::from([0.5f32; 10])).batch_size(4).n_epochs(n_epochs).shuffle(shuffle)
    };
    let batches = |data: Dataset| data.iter().take(9).map(|batch| ids(&batch.unwrap())).collect::<Vec<_>>();
    assert_eq!(batches(data(Some(1), false)), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    let twice: Vec<i64> = (0..10).chain(0..10).collect();
    assert_eq!(batches(data(Some(2), false)), twice.chunks(4).collect::<Vec<_>>());
    let endless = batches(data(None, true));
    assert!(endless.len() == 9 && endless.iter().all(|batch| batch.len() == 4));
    let epochs = endless.concat();
    assert_eq!(epochs[..10].iter().collect::<BTreeSet<_>>().len(), 10, "an epoch has every row");
    assert_ne!(epochs[..10], epochs[10..20], "and its own order");
}

#[test]
fn input_functions_refuse_what_numpy_input_fn_does() {
    let x = || input_fn::arrays([("b", Array::from([1i64, 2])), ("a", Array::from([3i64, 4]))]);
    let none: [(&str, Array); 0] = [];
    for (input, text) in [
        (input_fn::arrays(none.clone()), "x has no arrays"),
        (x().labels(none), "y has no arrays"),
        (x().labels(Array::from([1i64])), "label `` has 1 rows, but the batch has 2"),
        (x().labels([("b", Array::from([1i64, 2]))]), "x and y both have an array named `b`"),
        (input_fn::arrays([("a", Array::from([1i64])), ("a", Array::from([1i64]))]), "x has two arrays named `a`"),
        (x().batch_size(0), "the batch size is 0"),
    ] {
        let error = input.shuffle(false).iter().next().unwrap().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let batch = x().labels([("y", Array::from([1i64, 2]))]).shuffle(false).iter().next().unwrap().unwrap();
    assert_eq!(batch.features().keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"], "in the order of names");
}

/// Which dataset an element is from is a function of seed and epoch; the proportions are those of
/// the weights.
#[test]
fn samples_are_a_function_of_seed_and_epoch() {
    let part = |value: i64| Dataset::from_arrays([("id", Array::from([value; 50]))]);
    let mixed =
        |seed, stop| Dataset::sample_from_datasets([(part(0), 0.25), (part(1), 0.75), (part(2), 0.0)], seed, stop);
    let all = all_ids(&mixed(1, false));
    assert_eq!((all.len(), all.iter().sum::<i64>()), (100, 50), "all elements but those that weigh nothing");
    let stopped = all_ids(&mixed(1, true));
    assert_eq!(stopped, all[..stopped.len()], "stops where one has ended");
    // The 50 ones come with about 17 zeros, give or take 3 deviations of sqrt(50 * 0.25) / 0.75 =
    // 4.7.
    assert!((53..=81).contains(&stopped.len()), "{}", stopped.len());
    assert_ne!(all_ids(&mixed(2, false)), all);
    let epochs = all_ids(&mixed(1, false).repeat(2));
    assert!(epochs[..100] == all && epochs[100..] != all);
}
