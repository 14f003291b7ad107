//! Positions of datasets: any input gives a position or an error, and every plan resumes from it or
//! refuses it.

use std::sync::OnceLock;

use estimand_data::{Buckets, Dataset, InputContext, Pad, Position};
use estimand_tensor::{Array, Ragged};

/// Parses a position, writes it again, and opens plans of all stages from it.
pub fn check(bytes: &[u8]) {
    let Ok(position) = Position::from_bytes(bytes) else { return };
    let again = Position::from_bytes(&position.to_bytes()).expect("what was written can be read");
    assert_eq!(again, position);
    for plan in plans() {
        let batches = plan.iter_from(&InputContext::default(), &position);
        batches.take(4).for_each(drop);
    }
}

/// Returns positions along each plan.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for plan in plans() {
        let mut batches = plan.iter();
        while let Some(Ok(_)) = batches.next() {
            seeds.push(batches.position().to_bytes());
        }
        // Without the marks of the plan, which mutations would damage first.
        let mut stream = plan.open(&InputContext::default(), &Position::default()).expect("the plan is right");
        while let Ok(Some(item)) = stream.pull(2) {
            seeds.push(item.after.to_bytes());
        }
    }
    seeds
}

/// All plans end after a few rows, so that a position far after the end is detected at once.
fn plans() -> &'static [Dataset] {
    static PLANS: OnceLock<Vec<Dataset>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let ids = |name: &str| Dataset::from_arrays([(name, Array::from([0i64, 1, 2, 3, 4, 5, 6]))]);
        let ragged = Ragged::new(Array::from([7i64, 8, 9, 10]), [0, 1, 1, 4]).expect("the splits are right");
        let rows = ids("x").filter(|batch| Ok(vec![true; batch.n_rows()]));
        vec![
            rows.shuffle(3, 1).repeat(2).batch(2),
            rows.skip(1).take(5).shard(2, 0).enumerate("n", 0),
            Dataset::zip([rows.clone(), ids("y")]).batch(2).unbatch(),
            rows.concatenate(&rows).window(2, 1, 2),
            Dataset::interleave([rows.clone(), rows.take(2), rows.skip(3)], 2, 2),
            Dataset::sample_from_datasets([(rows.clone(), 0.5), (rows.take(3), 0.5)], 1, false),
            rows.cache().shuffle(2, 1),
            Dataset::from_arrays([("w", ragged.clone())]).padded_batch(2, Pad::new()).shuffle(2, 1),
            Dataset::from_arrays([("w", ragged)]).bucket_by_sequence_length(Buckets::by_feature("w", [2], [2, 1])),
        ]
    })
}
