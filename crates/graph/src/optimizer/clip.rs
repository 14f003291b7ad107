//! Gradient clipping: nodes between the gradients and the updates.

use std::panic::Location;

use estimand_tensor::{Binary, Unary};

use crate::gradient::Gradient;
use crate::op::{AxisSet, Reduction};
use crate::tensor::Tensor;
use crate::variables::VarId;

/// How gradients are limited before they are applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// Clips every element to [-limit, limit].
    Value(f64),
    /// Limits the norm of each variable's gradient.
    Norm(f64),
    /// Limits the norm of all gradients together.
    GlobalNorm(f64),
}

/// Clips gradients as configured. A gradient of rows is clipped by its values, as TensorFlow's
/// IndexedSlices are.
pub(super) fn clipped(
    clip: Option<Clip>,
    pairs: Vec<(VarId, Gradient)>,
    site: &'static Location<'static>,
) -> Vec<(VarId, Gradient)> {
    let Some(clip) = clip else { return pairs };
    let squares: Vec<Tensor> = pairs
        .iter()
        .filter_map(|(_, g)| g.values())
        .map(|g| g.unary(Unary::Square, site).reduce(Reduction::Sum, AxisSet::all(g.rank()), false, site))
        .collect();
    let global = squares.iter().cloned().reduce(|a, b| a.binary(Binary::Add, &b, site));
    let factor = |g: &Tensor, square: &Tensor, limit: f64| {
        // TF: g * limit / max(norm, limit); a gradient of norm 0 is unchanged.
        let limit = g.number(limit, site);
        let norm = square.unary(Unary::Sqrt, site);
        (limit.binary(Binary::Div, &norm.binary(Binary::Maximum, &limit, site), site), norm)
    };
    pairs
        .into_iter()
        .zip(squares)
        .map(|((id, gradient), square)| {
            let limited = |g: &Tensor| match clip {
                Clip::Value(limit) => {
                    let (low, high) = (g.number(-limit, site), g.number(limit, site));
                    g.binary(Binary::Minimum, &high, site).binary(Binary::Maximum, &low, site)
                }
                Clip::Norm(limit) => g.binary(Binary::Mul, &factor(g, &square, limit).0, site),
                Clip::GlobalNorm(limit) => {
                    let (factor, norm) = factor(g, global.as_ref().unwrap_or(&square), limit);
                    // TF: an infinite norm makes all gradients NaN. 0 would hide the failure.
                    let not_finite = norm.binary(Binary::Sub, &norm, site);
                    g.binary(Binary::Mul, &factor.binary(Binary::Add, &not_finite, site), site)
                }
            };
            (id, gradient.map_values(limited))
        })
        .collect()
}
