//! What tf.data makes of the same plans: `oracles/gen/pipelines.py` explains the fixture.

use estimand_data::{Buckets, Dataset, Pad, Unit, input_fn};
use estimand_fixture::{FromJson, Json, cases_of};
use estimand_tensor::{Array, Batch, Feature, Ragged, Result};

#[test]
fn plans_mean_what_they_mean_to_tf_data() {
    let cases = cases_of("pipelines", "plan");
    assert_eq!(cases.len(), 397);
    for case in cases {
        let steps = case.json("steps");
        let data = plan(steps.as_array().unwrap()).unwrap_or_else(|| panic!("{steps}"));
        let found = data.iter().map(|element| match element {
            Ok(batch) => json(&batch, data.unit()),
            Err(_) => "\"error\"".to_string(),
        });
        // As text, in which features have an order.
        let found = format!("[{}]", found.collect::<Vec<_>>().join(","));
        assert_eq!(found, case.json("elements").to_string(), "{steps}\n{}", data.explain());
    }
}

#[test]
fn input_functions_give_the_batches_of_numpy_input_fn() {
    let cases = cases_of("pipelines", "input_fn");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let x = Array::from((0..case.setting("n_rows")).collect::<Vec<i64>>());
        let input =
            input_fn::arrays([("a", x)]).batch_size(case.setting("batch_size")).n_epochs(case.option("n_epochs"));
        let batches = input.shuffle(false).iter().take(9).map(|batch| match &batch.unwrap().features()["a"] {
            Feature::Dense(array) => nested(array),
            Feature::Ragged(_) => panic!("a dense feature became ragged"),
        });
        let batches = format!("[{}]", batches.collect::<Vec<_>>().join(","));
        assert_eq!(batches, case.json("batches").to_string(), "{case}");
    }
}

/// The dataset that the steps leave on the stack.
fn plan(steps: &[Json]) -> Option<Dataset> {
    let mut stack: Vec<Dataset> = Vec::new();
    for step in steps {
        let words = step.as_array()?;
        let word = |i: usize| words[i].as_str().unwrap();
        let number = |i: usize| words[i].as_i64().unwrap();
        let n = |i: usize| number(i) as usize;
        let drop = words.iter().any(|word| word == "drop");
        let data = match word(0) {
            "range" => Dataset::from_arrays([(word(1), Array::from((number(2)..number(3)).collect::<Vec<_>>()))]),
            "ragged" => Dataset::from_arrays([(word(1), ragged(number(2)..number(3)).unwrap())]),
            "zip" => Dataset::zip(stack.split_off(stack.len() - n(1))),
            "concatenate" => {
                let second = stack.pop()?;
                stack.pop()?.concatenate(&second)
            }
            "enumerate" => stack.pop()?.enumerate(word(1), number(2)),
            "batch" | "ragged_batch" => stack.pop()?.batch(n(1)),
            "padded_batch" => {
                let pad = (3..words.len()).step_by(3).fold(Pad::new(), |pad, i| {
                    let pad = pad.value(word(i), number(i + 2));
                    if words[i + 1].is_null() { pad } else { pad.size(word(i), n(i + 1)) }
                });
                stack.pop()?.padded_batch(n(1), pad)
            }
            "interleave" => Dataset::interleave(stack.split_off(stack.len() - n(1)), n(2), n(3) as u64),
            "window" => stack.pop()?.window(n(1), n(2), n(3)),
            "bucket" => {
                let numbers = |i: usize| Vec::from_json(&words[i]).unwrap();
                let buckets = Buckets::by_feature(word(1), numbers(2), numbers(3));
                let buckets = buckets.pad_to_bucket_boundary(word(4) == "boundary");
                let buckets = if drop { buckets.drop_remainder() } else { buckets };
                stack.pop()?.bucket_by_sequence_length(buckets)
            }
            "unbatch" => stack.pop()?.unbatch(),
            "take" => stack.pop()?.take(n(1) as u64),
            "skip" => stack.pop()?.skip(n(1) as u64),
            "repeat" => stack.pop()?.repeat(n(1) as u64),
            "shard" => stack.pop()?.shard(n(1), n(2)),
            _ => return None,
        };
        let data = if drop && word(0) != "bucket" { data.drop_remainder() } else { data };
        stack.push(data);
    }
    stack.pop().filter(|_| stack.is_empty())
}

/// Row i: the i % 4 numbers from 10 i on.
fn ragged(rows: std::ops::Range<i64>) -> Result<Ragged> {
    let values: Vec<i64> = rows.clone().flat_map(|i| 10 * i..10 * i + i % 4).collect();
    let mut splits = vec![0];
    rows.for_each(|i| splits.push(splits[splits.len() - 1] + i % 4));
    Ragged::new(Array::from(values), splits)
}

/// An element as the fixture has it: a batch, or the only row of one.
fn json(batch: &Batch, unit: Unit) -> String {
    let features = batch.features().iter().map(|(name, feature)| {
        let rows: Vec<String> = (0..batch.n_rows())
            .map(|i| match feature {
                Feature::Dense(array) => nested(&array.rows(i..i + 1).unwrap().reshape(&array.dims()[1..]).unwrap()),
                Feature::Ragged(ragged) => nested(&ragged.row(i).unwrap()),
            })
            .collect();
        match unit {
            Unit::Row => format!("\"{name}\":{}", rows[0]),
            Unit::Batch => format!("\"{name}\":[{}]", rows.join(",")),
        }
    });
    format!("{{{}}}", features.collect::<Vec<_>>().join(","))
}

fn nested(array: &Array) -> String {
    if array.rank() == 0 {
        return array.item::<i64>().unwrap().to_string();
    }
    let rows =
        (0..array.dims()[0]).map(|i| nested(&array.rows(i..i + 1).unwrap().reshape(&array.dims()[1..]).unwrap()));
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}
