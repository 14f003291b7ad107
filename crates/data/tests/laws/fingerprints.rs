//! What plans are, in numbers: which positions are refused, and what may change.

use estimand_data::{Dataset, InputContext, Position};
use estimand_tensor::cpu::text::fingerprint64;
use estimand_tensor::{Array, Result};

use crate::plans::{add_1000, all_ids, files, ids, not_3_or_7, rows, spec};

fn numbers() -> Dataset {
    Dataset::from_arrays([("id", Array::from((0..40).collect::<Vec<i64>>()))])
}

/// The position after the second batch, as a checkpoint keeps it.
fn place(data: &Dataset) -> Position {
    let mut batches = data.iter();
    batches.by_ref().take(2).for_each(|batch| drop(batch.unwrap()));
    Position::from_bytes(&batches.position().to_bytes()).unwrap()
}

#[test]
fn a_position_of_another_plan_is_refused_by_the_stage_that_differs() {
    let source = numbers();
    let data = source.map(add_1000).skip(1).batch(4);
    for (other, text) in [
        (source.map(add_1000).skip(2).batch(4), "differs at `skip(2)`"),
        (source.filter(not_3_or_7).skip(1).batch(4), "differs at `filter(rows)`"),
        (Dataset::from_tfrecord(files(), spec()).map(add_1000).skip(1).batch(4), "differs at `tfrecord`"),
        (source.map(add_1000).skip(1), "differs at `skip(1)`"),
        (data.map(Ok), "differs at `map(batches)`"),
        (data.prefetch(1), "differs at `prefetch`"),
    ] {
        let error = other.iter_from(&InputContext::default(), &place(&data)).next().unwrap().unwrap_err().to_string();
        assert!(error.contains("another plan") && error.contains(text), "{error}");
    }
    let (short, long) = (Dataset::zip([source.clone()]), Dataset::zip([source.clone()]).concatenate(&source));
    let error = short.iter_from(&InputContext::default(), &place(&long)).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("differs at `zip(1)`"), "{error}");
}

/// What may change between runs goes on with the very next row.
#[test]
fn batches_epochs_threads_and_workers_may_change() -> Result<()> {
    let plan = |n_epochs, n_rows, n_ahead: usize| {
        numbers()
            .shuffle(9, 3)
            .repeat(n_epochs)
            .take(1_000 * n_epochs)
            .shard_by_worker()
            .batch(n_rows)
            .prefetch(n_ahead)
    };
    let place = place(&plan(1, 5, 1));
    let rest: Vec<i64> = plan(2, 7, 3)
        .iter_from(&InputContext { n_threads: 3, ..InputContext::default() }, &place)
        .map(|batch| Ok(ids(&batch?)))
        .collect::<Result<Vec<_>>>()?
        .concat();
    let all = all_ids(&numbers().shuffle(9, 3).repeat(2));
    assert_eq!(rest, all[10..]);
    Ok(())
}

/// The text behind the number, by hand: it must be the same in every run and version.
#[test]
fn a_fingerprint_is_that_of_a_text() {
    let data = Dataset::from_arrays([("x", Array::from([0.5f32, 1.5]))])
        .prefetch(3)
        .shuffle(9, 4)
        .repeat(2)
        .batch(2)
        .drop_remainder();
    let text = "\
batch(2, drop_remainder)
  repeat(2)
    shuffle(seed 4): a permutation of all rows, in a run of seed 0
      arrays: 2 rows of `x`, `x` f32[]
";
    assert_eq!(data.fingerprint(), fingerprint64(text.as_bytes()));
    assert_eq!(data.prefetch(5).fingerprint(), data.fingerprint());
    let source = Dataset::from_batch(rows(3));
    assert_eq!(source.parallel_map(add_1000).fingerprint(), source.map(add_1000).fingerprint());
    assert_ne!(source.label("id").fingerprint(), source.label("name").fingerprint());
}
