//! Combines rows for each ragged row, directly by the definition.

use estimand_graph::Combiner;
use estimand_tensor::{Error, Result};

use super::value::{Wide, count};

/// For every ragged row, its lookups: the row index and its share of the result.
fn shares(combiner: Combiner, index: &Wide, splits: &Wide, weights: Option<&Wide>) -> Result<Vec<Vec<(usize, f64)>>> {
    let (index, splits) = (index.as_ints()?, splits.as_ints()?);
    let weights = weights.map(|w| w.as_floats()).transpose()?;
    splits
        .windows(2)
        .map(|ends| {
            let row = usize::try_from(ends[0]).ok().zip(usize::try_from(ends[1]).ok());
            let row = row.map(|(from, to)| from..to).filter(|r| r.start <= r.end && r.end <= index.len());
            let row = row.ok_or_else(|| {
                Error::index(format!("invalid row_splits: a row goes from {} to {}", ends[0], ends[1]))
            })?;
            let weight = |n: usize| weights.map_or(1.0, |w| w[n]);
            let divisor = match combiner {
                Combiner::Sum => 1.0,
                Combiner::Mean => row.clone().map(weight).sum(),
                Combiner::SqrtN => row.clone().map(|n| weight(n) * weight(n)).sum::<f64>().sqrt(),
            };
            let share = |n: usize| {
                let at = usize::try_from(index[n]);
                let at =
                    at.map_err(|_| Error::index(format!("lookup {n} reads row {}; expected 0 or more", index[n])))?;
                Ok((at, if divisor == 0.0 { 0.0 } else { weight(n) / divisor }))
            };
            row.map(share).collect()
        })
        .collect()
}

/// (rows, index, row_splits, weights) -> one row for each ragged row.
pub(super) fn combine(combiner: Combiner, x: &[&Wide], dims: &[usize]) -> Result<Wide> {
    let width = count(&dims[1..]);
    let rows = x[0].as_floats()?;
    let mut out = vec![0.0; count(dims)];
    for (b, row) in shares(combiner, x[1], x[2], x.get(3).copied())?.into_iter().enumerate() {
        for (at, share) in row {
            for j in 0..width {
                let value = rows.get(at * width + j).ok_or_else(|| Error::index(format!("there is no row {at}")))?;
                out[b * width + j] += share * value;
            }
        }
    }
    Ok(Wide::floats(x[0].dtype, dims, out))
}

/// (dy, index, row_splits, weights) -> the gradient of the rows.
pub(super) fn gradient(combiner: Combiner, x: &[&Wide], dims: &[usize]) -> Result<Wide> {
    let width = count(&dims[1..]);
    let dy = x[0].as_floats()?;
    let mut out = vec![0.0; count(dims)];
    for (b, row) in shares(combiner, x[1], x[2], x.get(3).copied())?.into_iter().enumerate() {
        for (at, share) in row {
            for j in 0..width {
                let sum = out.get_mut(at * width + j).ok_or_else(|| Error::index(format!("there is no row {at}")))?;
                *sum += share * dy[b * width + j];
            }
        }
    }
    Ok(Wide::floats(x[0].dtype, dims, out))
}
