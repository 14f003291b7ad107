//! Softmax, cross entropies and normalisation.

use estimand_tensor::{Result, Shape};

use super::facts::Facts;
use super::generator::{Generator, PoolValue};
use super::leaves;

pub(super) fn soft(g: &mut Generator) -> Result<bool> {
    // Only small logits, so that no probability vanishes beside 1.
    let fits = |i: &PoolValue| i.is_float() && i.facts.size() <= 8.0;
    let matrix = |i: &PoolValue| i.dims.len() == 2 && i.dims[1] > 0;
    let Some(x) = g.find(|i| fits(i) && matrix(i)).or_else(|| g.find(|i| fits(i) && !i.dims.is_empty())) else {
        return Ok(false);
    };
    let spread = 2.0 * x.facts.size() + (x.dims[x.dims.len() - 1].max(1) as f64).ln();
    let t = &x.tensor;
    match g.dice.below(6) {
        0 => g.push(t.softmax(), Facts::real(0.0, 1.0)),
        1 => g.push(t.log_softmax(), Facts::real(-spread, 0.0)),
        2 | 3 if matrix(&x) => {
            let rows = Shape::from([t.shape().dims()[0]]);
            let feedable = rows.dims()[0].known().is_some() || rows.dims()[0] == estimand_tensor::Dim::BATCH;
            if !feedable {
                return Ok(false);
            }
            let labels = leaves::ints(g, rows, &x.dims[..1], 0, x.dims[1] as i64)?;
            g.push(t.sparse_softmax_cross_entropy(&labels.tensor), Facts::real(0.0, spread))
        }
        4 if matrix(&x) => {
            let labels = (t * 0.5).reverse(&[1]).softmax();
            g.push(t.softmax_cross_entropy(&labels), Facts::real(0.0, spread))
        }
        _ => {
            let labels = (t * 0.25).sigmoid();
            g.push(t.sigmoid_cross_entropy(&labels), Facts::real(0.0, 2.0 * x.facts.size() + 1.0))
        }
    }
}

pub(super) fn normalization(g: &mut Generator) -> Result<bool> {
    let known = |i: &PoolValue| i.tensor.shape().dims().last().is_some_and(|d| d.known().is_some_and(|n| n > 1));
    let Some(x) = g.find(|i| i.is_float() && known(i)) else { return Ok(false) };
    let width = x.dims[x.dims.len() - 1];
    let (offset, scale) = (leaves::weights(g, &[width])?, leaves::weights(g, &[width])?);
    let normal = x.tensor.layer_normalization(&offset.tensor, &scale.tensor, 0.1);
    // A value is at most sqrt(n) deviations from the mean.
    let size = (width as f64).sqrt() * scale.facts.size() + offset.facts.size();
    g.push(normal, Facts::real(-size, size))
}
