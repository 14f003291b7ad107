//! Steps of random plans that put datasets together or take batches apart, and a generator.

use estimand_data::{Dataset, InputContext, Unit};
use estimand_tensor::{Array, Batch, Feature, Result};

use crate::plans::{Dice, rows, spec};

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
    match dice.below(5) {
        0 if is_rows => {
            let name = format!("z{}", dice.below(1 << 30));
            let other = Dataset::from_arrays([(name, Array::from((0..dice.below(50) as i64).collect::<Vec<_>>()))]);
            Dataset::zip([data.clone(), other])
        }
        1 => data.concatenate(&data.skip(dice.below(9))),
        2 => data.enumerate(&format!("n{}", dice.below(1 << 30)), 0),
        3 if !is_rows => data.unbatch(),
        _ => data.take(30).concatenate(&data.shuffle(3, 1)),
    }
}
