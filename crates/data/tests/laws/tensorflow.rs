//! What tf.data makes of the same plans: `oracles/fixtures/pipelines.txt`, written and explained by
//! `oracles/gen/pipelines.py`.

use std::fmt::Write;

use estimand_data::{Buckets, Dataset, Pad, Unit, input_fn};
use estimand_tensor::{Array, Batch, Feature, Ragged, Result};

const FIXTURE: &str = include_str!("../../../../oracles/fixtures/pipelines.txt");

#[test]
fn plans_mean_what_they_mean_to_tf_data() {
    let mut n_plans = 0;
    for case in FIXTURE.split("plan ").skip(1) {
        let (text, expected) = case.split_once('\n').unwrap();
        let data = plan(text).unwrap_or_else(|| panic!("{text}"));
        let mut found = String::new();
        for element in &data {
            match element {
                Ok(batch) => writeln!(found, "= {}", json(&batch, data.unit())).unwrap(),
                Err(_) => found.push_str("error\n"),
            }
        }
        assert_eq!(found, expected, "{text}\n{}", data.explain());
        n_plans += 1;
    }
    assert_eq!(n_plans, 397);
}

#[test]
fn input_functions_give_the_batches_of_numpy_input_fn() {
    let mut n_cases = 0;
    for line in FIXTURE.lines().filter_map(|line| line.strip_prefix("input_fn ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let n = |i: usize| words[i].parse::<usize>().unwrap();
        let x = Array::from((0..n(0) as i64).collect::<Vec<_>>());
        let input = input_fn::arrays([("a", x)]).batch_size(n(1)).n_epochs(words[2].parse().ok());
        let batches = input.shuffle(false).iter().take(9).map(|batch| match &batch.unwrap().features()["a"] {
            Feature::Dense(array) => nested(array),
            Feature::Ragged(_) => panic!("a dense feature became ragged"),
        });
        assert_eq!(format!("[{}]", batches.collect::<Vec<_>>().join(",")), words[3], "{line}");
        n_cases += 1;
    }
    assert_eq!(n_cases, 6);
}

/// The dataset that the steps leave on the stack.
fn plan(text: &str) -> Option<Dataset> {
    let mut stack: Vec<Dataset> = Vec::new();
    for step in text.split("; ") {
        let words: Vec<&str> = step.split(' ').collect();
        let number = |i: usize| words[i].parse::<i64>().unwrap();
        let n = |i: usize| number(i) as usize;
        let drop = words.contains(&"drop");
        let data = match words[0] {
            "range" => Dataset::from_arrays([(words[1], Array::from((number(2)..number(3)).collect::<Vec<_>>()))]),
            "ragged" => Dataset::from_arrays([(words[1], ragged(number(2)..number(3)).unwrap())]),
            "zip" => Dataset::zip(stack.split_off(stack.len() - n(1))),
            "concatenate" => {
                let second = stack.pop()?;
                stack.pop()?.concatenate(&second)
            }
            "enumerate" => stack.pop()?.enumerate(words[1], number(2)),
            "batch" | "ragged_batch" => stack.pop()?.batch(n(1)),
            "padded_batch" => {
                let pad = words[3..].chunks(3).fold(Pad::new(), |pad, one| {
                    let pad = pad.value(one[0], one[2].parse::<i64>().unwrap());
                    if one[1] == "-" { pad } else { pad.size(one[0], one[1].parse().unwrap()) }
                });
                stack.pop()?.padded_batch(n(1), pad)
            }
            "interleave" => Dataset::interleave(stack.split_off(stack.len() - n(1)), n(2), n(3) as u64),
            "window" => stack.pop()?.window(n(1), n(2), n(3)),
            "bucket" => {
                let numbers = |i: usize| words[i].split(',').map(|word| word.parse().unwrap()).collect::<Vec<_>>();
                let buckets = Buckets::by_feature(words[1], numbers(2), numbers(3));
                let buckets = buckets.pad_to_bucket_boundary(words[4] == "boundary");
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
        let data = if drop && words[0] != "bucket" { data.drop_remainder() } else { data };
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
