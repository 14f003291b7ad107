//! Several datasets put together, and those that a function makes: mistakes and what rows they give.

use std::collections::BTreeSet;

use estimand_data::{Dataset, InputContext, Position};
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
    for (data, text) in [
        (Dataset::zip([]), "`zip` of no datasets"),
        (Dataset::zip([numbers("x", 3), numbers("x", 3)]), "features named `x`"),
        (Dataset::zip([numbers("x", 3).label("x"), numbers("x", 3).label("x")]), "labels named `x`"),
        (Dataset::zip([weighted(), weighted()]), "have weights"),
        (
            Dataset::zip([numbers("x", 3), numbers("y", 3).batch(2, false)]),
            "dataset 0 are rows, those of dataset 1 are batches",
        ),
        (
            Dataset::zip([numbers("x", 3).batch(3, false), numbers("y", 3).batch(2, false)]),
            "zip rows, and batch the result",
        ),
        (numbers("x", 3).concatenate(&numbers("y", 3)), "feature `x` is in dataset 0 and not in dataset 1"),
        (
            numbers("x", 3).concatenate(&Dataset::from_arrays([("x", Array::from([0.5f32]))])),
            "`x` is i64[] in dataset 0 and f32[]",
        ),
        (numbers("x", 3).concatenate(&numbers("x", 3).batch(1, false)), "dataset 1 are batches"),
        (numbers("x", 3).enumerate("x", 0), "a feature `x`, but there is one already"),
        (numbers("x", 3).unbatch(), "`unbatch` of rows"),
        (Dataset::from_generator(Vec::<(String, FeatureSpec)>::new(), |_| []), "no features"),
        (Dataset::from_generator([("x", FeatureSpec::padded(DType::I64, []))], |_| []), "`x` is padded"),
        (gives(Batch::new().with_feature("y", Array::from([1i64]))), "feature `x` is in the spec and not in the rows"),
        (
            gives(Batch::new().with_feature("x", Array::from([1.5f32]))),
            "`x` is i64[] in the spec and f32[] in the rows",
        ),
        (gives(Err(estimand_tensor::Error::config("no luck"))), "no luck\n  in what a generator made behind row 0"),
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
    for (data, place, text) in [
        (
            Dataset::zip([x.clone(), numbers("y", 3)]),
            Position::new([0], [Position::default()]),
            "1 inputs, where the plan has 1 and 2",
        ),
        (x.concatenate(&x), Position::new([2], [Position::default()]), "dataset 2 of two"),
        (x.batch(2, false).unbatch(), Position::new([3], [Position::default()]), "behind row 3 of a batch of 2"),
        (generated(9), Position::new([12], []), "3 rows behind the end"),
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
    let batch = data.batch(20, true).iter().next().unwrap()?;
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

/// Features, labels and weights that a generator gives in another order than the spec's are put in order.
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
