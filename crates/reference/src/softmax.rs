//! Softmax over the last axis and its cross entropies.

use estimand_tensor::Result;

use super::elementwise::maximum;
use super::index::checked_ids;
use super::value::{Wide, check_dims};

/// `x - log(sum(exp(x)))`, shifted by the maximum so that nothing overflows.
fn log_softmax_row(row: &[f64]) -> Vec<f64> {
    let peak = row.iter().copied().fold(f64::NEG_INFINITY, maximum);
    let log_sum = row.iter().map(|v| (v - peak).exp()).sum::<f64>().ln();
    row.iter().map(|v| v - peak - log_sum).collect()
}

fn rows(x: &Wide) -> Result<impl Iterator<Item = &[f64]>> {
    let width = x.dims[x.dims.len() - 1];
    Ok(x.as_floats()?.chunks(width.max(1)))
}

pub(super) fn log_softmax(x: &Wide) -> Result<Wide> {
    Ok(Wide::floats(x.dtype, &x.dims, rows(x)?.flat_map(log_softmax_row).collect()))
}

pub(super) fn softmax(x: &Wide) -> Result<Wide> {
    let values = rows(x)?.flat_map(log_softmax_row).map(f64::exp).collect();
    Ok(Wide::floats(x.dtype, &x.dims, values))
}

/// (loss per row, gradient of the logits), for one row of probabilities each.
pub(super) fn cross_entropy(logits: &Wide, labels: &Wide) -> Result<[Wide; 2]> {
    check_dims("labels tensor", labels.dims(), logits.dims())?;
    let (mut losses, mut gradient) = (Vec::new(), Vec::new());
    for (logits, labels) in rows(logits)?.zip(rows(labels)?) {
        let log = log_softmax_row(logits);
        losses.push(log.iter().zip(labels).map(|(log, label)| -label * log).sum());
        // TF: the gradient assumes that the labels sum to 1, whether they do or not.
        gradient.extend(log.iter().zip(labels).map(|(log, label)| log.exp() - label));
    }
    // Rows without classes have no logits to iterate over.
    losses.resize(logits.dims[0], 0.0);
    Ok(pair(logits, losses, gradient))
}

/// The same for one integer label each.
pub(super) fn sparse_cross_entropy(logits: &Wide, labels: &Wide) -> Result<[Wide; 2]> {
    check_dims("labels tensor", labels.dims(), &logits.dims[..1])?;
    let labels = checked_ids("labels", labels, logits.dims[1])
        .map_err(|e| e.help("labels count from 0, and each needs a logit of its own"))?;
    let (mut losses, mut gradient) = (Vec::new(), Vec::new());
    for (logits, label) in rows(logits)?.zip(labels) {
        let log = log_softmax_row(logits);
        losses.push(-log[label]);
        gradient.extend(log.iter().enumerate().map(|(i, log)| log.exp() - if i == label { 1.0 } else { 0.0 }));
    }
    Ok(pair(logits, losses, gradient))
}

fn pair(logits: &Wide, losses: Vec<f64>, gradient: Vec<f64>) -> [Wide; 2] {
    [Wide::floats(logits.dtype, &logits.dims[..1], losses), Wide::floats(logits.dtype, &logits.dims, gradient)]
}
