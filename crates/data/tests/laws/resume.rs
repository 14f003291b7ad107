//! The law: stop anywhere, keep the position as bytes, go on from it, and get exactly the rest.

use estimand_data::{Dataset, InputContext, Position, Unit};
use estimand_tensor::{Batch, Result};

use crate::plans::{Dice, add_1000, ids, random_plan, rows};

fn cx(seed: u64) -> InputContext {
    InputContext { seed, ..InputContext::default() }
}

/// Batches and the bytes of the position after each. An error (there is nothing to repeat) ends the
/// list as its text.
fn run(data: &Dataset, cx: &InputContext, from: &Position) -> (Vec<(Batch, Vec<u8>)>, Option<String>) {
    let mut items = Vec::new();
    let mut batches = data.iter_from(cx, from);
    while let Some(batch) = batches.next() {
        match batch {
            Ok(batch) => items.push((batch, batches.position().to_bytes())),
            Err(error) => return (items, Some(error.to_string())),
        }
    }
    (items, None)
}

#[test]
fn going_on_from_a_position_gives_exactly_the_rest() {
    let mut n_stops = 0;
    for number in 0..600 {
        let mut dice = Dice(number);
        let data = random_plan(&mut dice);
        let cx = InputContext { n_threads: 1 + dice.below(3) as usize, ..cx(dice.below(3)) };
        let (all, error) = run(&data, &cx, &Position::default());
        for k in 0..all.len() {
            if all.len() > 12 && dice.below(all.len() as u64) > 8 {
                continue;
            }
            let from = Position::from_bytes(&all[k].1).unwrap();
            let other = InputContext { n_threads: 1 + dice.below(3) as usize, ..cx };
            let (rest, same_error) = run(&data, &other, &from);
            let batches = |items: &[(Batch, Vec<u8>)]| items.iter().map(|(batch, _)| batch.clone()).collect::<Vec<_>>();
            let (expected, found) = (batches(&all[k + 1..]), batches(&rest));
            assert!(expected == found, "plan {number} after {k}:\n{}{expected:?}\n{found:?}", data.explain());
            if k + 1 < all.len() {
                assert_eq!(same_error, error, "plan {number} after {k}:\n{}", data.explain());
            }
            n_stops += 1;
        }
    }
    assert!(n_stops > 2_000, "only {n_stops} stops");
}

#[test]
fn prefetch_changes_nothing() {
    for number in 0..300 {
        let data = random_plan(&mut Dice(number));
        let batches = |data: &Dataset| {
            let (items, error) = run(data, &cx(1), &Position::default());
            (items.into_iter().map(|(batch, _)| batch).collect::<Vec<_>>(), error)
        };
        assert!(batches(&data) == batches(&data.prefetch(2)), "plan {number}:\n{}", data.explain());
    }
}

/// Pieces of other sizes than before: rows read ahead are cut, and reading goes on within a piece.
#[test]
fn rows_read_ahead_are_cut_as_asked_for() -> Result<()> {
    let data = Dataset::from_batch(rows(20)).prefetch(2);
    let mut stream = data.open(&cx(0), &Position::default())?;
    let (mut found, mut wants) = (Vec::new(), [7, 2, 1, 9, 3].into_iter().cycle());
    while let Some(item) = stream.pull(wants.next().unwrap())? {
        found.extend(ids(&item.batch));
        // What is left, pulled in yet other pieces.
        let mut rest = data.open(&cx(0), &Position::from_bytes(&item.after.to_bytes())?)?;
        let mut left = Vec::new();
        for want in [5, 2, 4, 1, 3, 20, 20, 20] {
            let Some(item) = rest.pull(want)? else { break };
            assert!(item.batch.n_rows() <= want);
            left.extend(ids(&item.batch));
        }
        assert_eq!(left, (found.len() as i64..20).collect::<Vec<_>>());
    }
    assert_eq!(found, (0..20).collect::<Vec<_>>());
    Ok(())
}

/// Rows are the same however many are asked for at a time, and so is what follows each position.
#[test]
fn the_number_asked_for_changes_nothing() -> Result<()> {
    let mut n_plans = 0;
    for number in 0..400 {
        let mut dice = Dice(number);
        let data = random_plan(&mut dice);
        let (all, None) = run(&data, &cx(1), &Position::default()) else { continue };
        if data.unit() == Unit::Batch || all.is_empty() {
            continue;
        }
        let all: Vec<i64> = all.iter().flat_map(|(batch, _)| ids(batch)).collect();
        let mut pull_all = |from: &Position| -> Result<Vec<(Vec<i64>, Position)>> {
            let mut stream = data.open(&cx(1), from)?;
            let mut items = Vec::new();
            while let Some(item) = stream.pull(1 + dice.below(20) as usize)? {
                items.push((ids(&item.batch), item.after));
            }
            Ok(items)
        };
        let in_order =
            |items: &[(Vec<i64>, Position)]| items.iter().flat_map(|(ids, _)| ids.clone()).collect::<Vec<_>>();
        let items = pull_all(&Position::default())?;
        assert_eq!(in_order(&items), all, "plan {number}:\n{}", data.explain());
        for (i, (_, place)) in items.iter().enumerate() {
            let rest = in_order(&items[i + 1..]);
            assert_eq!(in_order(&pull_all(place)?), rest, "plan {number} after {i}:\n{}", data.explain());
        }
        n_plans += 1;
    }
    assert!(n_plans > 80, "only {n_plans} plans of rows");
    Ok(())
}

/// Two workers read 3 batches of 4 each, three go on: nothing is lost or read twice.
#[test]
fn the_number_of_workers_may_change() -> Result<()> {
    let data = Dataset::from_batch(rows(50)).shuffle(100, 3).shard_by_worker().batch(4);
    let worker = |worker, n_workers| InputContext { worker, n_workers, seed: 5, ..InputContext::default() };
    let (mut seen, mut places) = (Vec::new(), Vec::new());
    for w in 0..2 {
        let mut batches = data.iter_from(&worker(w, 2), &Position::default());
        for _ in 0..3 {
            seen.extend(ids(&batches.next().unwrap()?));
        }
        places.push(batches.position().clone());
    }
    assert_eq!(places[0], places[1]);
    for w in 0..3 {
        for batch in data.iter_from(&worker(w, 3), &places[0]) {
            seen.extend(ids(&batch?));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn dropping_a_reader_ends_its_thread() {
    let data = Dataset::from_batch(rows(5)).map(add_1000).repeat_forever().batch(3).drop_remainder().prefetch(2);
    let mut batches = data.iter();
    assert_eq!(ids(&batches.next().unwrap().unwrap()), [1000, 1001, 1002]);
    // Returns only once the thread, which could go on for ever, is joined.
    drop(batches);
}
