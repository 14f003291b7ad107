//! Steps of random plans that put datasets together or take batches apart, and a generator.

use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_data::{Buckets, Dataset, InputContext, Pad, Unit};
use estimand_tensor::{Array, Batch, Feature, Result};

use crate::plans::{Dice, folder, rows, spec};

/// The rows of [`rows`] from a generator, in pieces of 0 to 4.
pub fn generated(n: i64) -> Dataset {
    Dataset::from_generator(spec(), move |cx: &InputContext| {
        let mut dice = Dice(cx.epoch);
        let all = rows(n);
        let mut start = 0;
        std::iter::from_fn(move || {
            let end = (start + dice.below(5) as usize).min(all.n_rows());
            let piece = range(&all, start..end);
            let left = start < all.n_rows();
            start = end;
            left.then_some(piece)
        })
    })
}

fn range(batch: &Batch, range: std::ops::Range<usize>) -> Result<Batch> {
    let mut part = Batch::new();
    for (name, feature) in batch.features() {
        let feature: Feature = match feature {
            Feature::Dense(array) => array.rows(range.clone())?.into(),
            Feature::Ragged(ragged) => {
                let splits = &ragged.row_splits()[range.start..=range.end];
                let values = ragged.values().rows(splits[0] as usize..splits[range.len()] as usize)?;
                estimand_tensor::Ragged::new(values, splits.iter().map(|s| s - splits[0]).collect::<Vec<_>>())?.into()
            }
        };
        part = part.with_feature(name, feature)?;
    }
    Ok(part)
}

/// One more step on a random plan.
pub fn random_step(data: &Dataset, dice: &mut Dice) -> Dataset {
    let is_rows = data.unit() == Unit::Row;
    match dice.below(9) {
        0 if is_rows => {
            let name = format!("z{}", dice.below(1 << 30));
            let other = Dataset::from_arrays([(name, Array::from((0..dice.below(50) as i64).collect::<Vec<_>>()))]);
            Dataset::zip([data.clone(), other])
        }
        1 => data.concatenate(&data.skip(dice.below(9))),
        2 => data.enumerate(&format!("n{}", dice.below(1 << 30)), 0),
        3 if !is_rows => data.unbatch(),
        4 => {
            let parts = (0..1 + dice.below(4)).map(|i| data.skip(i * 3).take(20 - 4 * i)).collect::<Vec<_>>();
            Dataset::interleave(parts, 1 + dice.below(4) as usize, 1 + dice.below(4))
        }
        5 => {
            let parts = [(data.take(12), 0.5), (data.skip(20), 0.3), (data.shuffle(5, 2), 0.2)];
            Dataset::sample_from_datasets(parts, dice.below(4), dice.below(2) == 0)
        }
        6 => data.cache(),
        7 => {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            data.cache_to(folder().join(format!("plan-{}.cache", COUNT.fetch_add(1, Ordering::Relaxed))))
        }
        _ => data.take(30).concatenate(&data.shuffle(3, 1)),
    }
}

/// The last step of some plans, behind which rows have another shape.
pub fn random_end(data: Dataset, dice: &mut Dice) -> Dataset {
    if data.unit() == Unit::Batch {
        return data;
    }
    let [small, large] = [1, 3].map(|start| start + dice.below(4) as usize);
    match dice.below(8) {
        0 => {
            let batches = data.padded_batch(large, Pad::new().value("tags", string("-")).size("pair", 3));
            if dice.below(2) == 0 { batches.drop_remainder() } else { batches }
        }
        1 => {
            let whole = data.map(|batch| {
                Batch::new()
                    .with_feature("id", batch.feature("id")?.clone())?
                    .with_label("y", batch.feature("pair")?.clone())
            });
            let windows = whole.window(large, small, 1 + dice.below(3) as usize);
            if dice.below(2) == 0 { windows.drop_remainder().batch(2) } else { windows.batch(2) }
        }
        2 | 3 => {
            let buckets = Buckets::by_feature("tags", [1, 3], [small, large, 2]);
            let buckets = if dice.below(3) == 0 { buckets.drop_remainder() } else { buckets };
            let buckets = if dice.below(2) == 0 { buckets.no_padding() } else { buckets };
            data.bucket_by_sequence_length(buckets)
        }
        4 => data.dense_to_ragged("pair").batch(large),
        _ => data,
    }
}

fn string(text: &str) -> Array {
    Array::from_strings([], [text]).unwrap()
}
