//! Parts of a split: every row is in exactly one, and always in the same one.

use std::collections::BTreeSet;

use estimand_data::{Dataset, InputContext, Position};
use estimand_tensor::Result;
use estimand_tensor::random::{self, Key};

use crate::combined::generated;
use crate::plans::{add_1000, all_ids, csv, files, ids, not_3_or_7, rows, spec};

fn of_run(data: &Dataset, seed: u64, worker: usize) -> Vec<i64> {
    let cx = InputContext { seed, worker, n_workers: 3, ..InputContext::default() };
    data.iter_from(&cx, &Position::default()).flat_map(|batch| ids(&batch.unwrap())).collect()
}

#[test]
fn every_row_is_in_one_part() {
    for n in [0, 1, 19, 20, 150, 1_000] {
        let data = Dataset::from_batch(rows(n));
        for seed in 0..5 {
            let parts = data.split([0.6, 0.25, 0.15], seed).map(|part| all_ids(&part));
            assert!(parts.iter().all(|part| part.is_sorted()), "the order of the rows stays");
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
    }
}

/// 0.7 of 20 rows is 14. So whole blocks are exact: 700 of 1,000 rows. 150 rows are 7 blocks with
/// 98 rows, and half a block, with 4 to 10 of the other 14.
#[test]
fn shares_are_exact_in_blocks() {
    for seed in 0..50 {
        let [train, test] = Dataset::from_batch(rows(1_000)).split([0.7, 0.3], seed);
        assert_eq!((train.iter().count(), test.iter().count()), (700, 300));
        let [train, test] = Dataset::from_batch(rows(150)).split([0.7, 0.3], seed);
        let n = train.iter().count();
        assert!((102..=108).contains(&n) && n + test.iter().count() == 150, "{n}");
        // Thirds need blocks of 21 rows, and a thousandth needs one of 1,000.
        let thirds = Dataset::from_batch(rows(210)).split([1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], seed);
        assert!(thirds.iter().all(|part| part.iter().count() == 70));
        let [_, few] = Dataset::from_batch(rows(3_000)).split([0.999, 0.001], seed);
        assert_eq!(few.iter().count(), 3);
    }
}

/// Every row has the same chance, whatever its place in a block: 0.3 of 400 seeds are 120, with a
/// standard deviation of 9.2.
#[test]
fn every_row_has_the_same_chance() {
    let data = Dataset::from_batch(rows(60));
    let mut counts = vec![0; 60];
    for seed in 0..400 {
        let [_, test] = data.split([0.7, 0.3], seed);
        all_ids(&test).into_iter().for_each(|id| counts[id as usize] += 1);
    }
    assert!(counts.iter().all(|n| (80..=160).contains(n)), "{counts:?}");
    let [_, a] = data.split([0.7, 0.3], 1);
    let [_, b] = data.split([0.7, 0.3], 2);
    assert_ne!(all_ids(&a), all_ids(&b));
}

/// The rows of a part are the same for every source, run and worker. The rule for halves: a
/// permutation of 20 rows, whose random numbers depend on the seed and the number of the block; the
/// first part has the rows with the places 0 to 9. A release that changes it moves rows to other
/// parts.
#[test]
fn parts_are_the_same_everywhere() {
    let expected: Vec<i64> = all_ids(&Dataset::from_batch(rows(23)).split([0.5, 0.5], 7)[0]);
    let by_rule = |row: &u64| {
        let mut order = [0; 20];
        random::Stream::new(Key::new(7, "split"), row / 20).fill_permutation(&mut order);
        order[(row % 20) as usize] < 10
    };
    assert_eq!(expected, (0..23).filter(by_rule).map(|row| row as i64).collect::<Vec<_>>());
    let sources = [
        Dataset::from_batch(rows(23)),
        generated(23),
        csv(1),
        csv(100),
        Dataset::from_tfrecord(files(), spec()),
        Dataset::from_batch(rows(23)).cache(),
    ];
    for data in sources {
        let [part, _] = data.split([0.5, 0.5], 7);
        for (seed, worker) in [(0, 0), (5, 2)] {
            assert_eq!(of_run(&part, seed, worker), expected, "{}", part.explain());
        }
        assert_eq!(all_ids(&part.repeat(3)), expected.repeat(3), "every epoch");
        // Placed after them, it is applied to their input.
        assert_eq!(all_ids(&data.repeat(3).split([0.5, 0.5], 7)[0]), expected.repeat(3));
        assert_eq!(all_ids(&data.prefetch(2).split([0.5, 0.5], 7)[0]), expected);
        let moved: Vec<i64> = expected.iter().map(|id| id + 1_000).collect();
        assert_eq!(all_ids(&data.map(add_1000).split([0.5, 0.5], 7)[0]), moved);
        let kept: Vec<i64> = expected.iter().copied().filter(|id| !matches!(id % 10, 3 | 7)).collect();
        assert_eq!(all_ids(&data.filter(not_3_or_7).split([0.5, 0.5], 7)[0]), kept, "a filter moves no row");
    }
}

/// What `shuffle` and then `take` and `skip` does not give: rows of one part never reach another.
#[test]
fn shuffled_parts_do_not_mix() {
    for data in [Dataset::from_batch(rows(23)), csv(50)] {
        let seen = |part: &Dataset| all_ids(part).into_iter().collect::<BTreeSet<_>>();
        let [train, test] = data.split([0.7, 0.3], 3);
        let shuffled = train.shuffle(100, 1).repeat(5);
        assert!(seen(&shuffled).is_disjoint(&seen(&test)));
        assert_eq!(seen(&shuffled), seen(&train));
        assert_ne!(all_ids(&shuffled), all_ids(&train.repeat(5)));

        // The mistake, and the fixed order that mends it.
        let leaks = data.shuffle(100, 1);
        assert!(!seen(&leaks.skip(7).repeat(5)).is_disjoint(&seen(&leaks.take(7))));
        let fixed = leaks.reshuffle_each_iteration(false);
        assert!(seen(&fixed.skip(7).repeat(5)).is_disjoint(&seen(&fixed.take(7))));
    }
    // A permutation of all rows of the part, with no regard to the buffer.
    let [train, _] = Dataset::from_batch(rows(23)).split([0.7, 0.3], 3);
    assert!(train.shuffle(1, 1).explain().contains("a permutation of all rows"));
}

#[test]
fn a_shuffle_that_does_not_reshuffle_has_one_order() -> Result<()> {
    for data in [Dataset::from_batch(rows(23)), csv(50)] {
        let fixed = data.shuffle(9, 4).reshuffle_each_iteration(false);
        let order = all_ids(&fixed);
        assert_ne!(order, (0..23).collect::<Vec<_>>());
        assert_eq!(all_ids(&fixed.repeat(2)), order.repeat(2));
        assert_eq!(of_run(&fixed, 5, 1), order, "in every run");
        assert_ne!(of_run(&data.shuffle(9, 4), 5, 1), of_run(&data.shuffle(9, 4), 6, 1));
        let again = data.label("name").shuffle(9, 4).reshuffle_each_iteration(false);
        assert_eq!(all_ids(&again), order, "the shuffle is below the label");
        let reshuffled = fixed.reshuffle_each_iteration(true);
        assert_eq!(reshuffled.fingerprint(), data.shuffle(9, 4).fingerprint());
        assert_ne!(reshuffled.fingerprint(), fixed.fingerprint());
        // A position of one is no position of the other.
        let mut batches = fixed.iter();
        batches.next().unwrap()?;
        assert!(data.shuffle(9, 4).check_position(batches.position()).is_err());
        assert!(fixed.shuffle(9, 4).explain().contains("the same in every epoch"));
    }
    Ok(())
}
