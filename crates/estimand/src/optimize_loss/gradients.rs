//! Changes of gradients: noise, multipliers, and their common norm.

use estimand_graph::{Gradient, Tensor};
use estimand_tensor::{Error, Result};

use super::Pairs;

/// Adds normal noise of this deviation, cut at two deviations, to each gradient.
pub(super) fn add_noise(pairs: Pairs, scale: f64) -> Result<Pairs> {
    if !scale.is_finite() {
        return Err(Error::config(format!("gradient_noise_scale is {scale}; expected a finite number"))
            .help("leave gradient_noise_scale out to add no noise"));
    }
    let noisy = pairs.into_iter().map(|(gradient, variable)| {
        // TF: the noise has the shape of the variable, so a gradient of rows becomes dense.
        let noisy = gradient.to_dense(variable.shape()).map(|dense| {
            let noise = variable.graph().truncated_normal(variable.shape().clone());
            Gradient::Dense(dense + noise * scale)
        });
        (noisy.unwrap_or(Gradient::None), variable)
    });
    Ok(noisy.collect())
}

/// Multiplies the gradients of some variables, which are given by name.
pub(super) fn multiply(pairs: Pairs, multipliers: &[(String, f64)]) -> Result<Pairs> {
    for (i, (name, multiplier)) in multipliers.iter().enumerate() {
        let is_it = |variable: &Tensor| variable.name() == plain(name);
        if !pairs.iter().any(|(_, variable)| is_it(variable)) {
            let names: Vec<String> = pairs.iter().map(|(_, variable)| variable.name()).collect();
            let error = Error::unknown("trained variable", name, names.iter().map(String::as_str));
            return Err(error.context("in the gradient multipliers"));
        }
        if multipliers[..i].iter().any(|(other, _)| plain(other) == plain(name)) {
            return Err(Error::config(format!("variable `{name}` has two gradient multipliers; expected one"))
                .help("call gradient_multiplier once for it, with the product"));
        }
        if !multiplier.is_finite() {
            return Err(Error::config(format!(
                "the gradient multiplier of `{name}` is {multiplier}; expected a finite number"
            ))
            .help("0 keeps the variable as it is, 1 is its own gradient"));
        }
    }
    let multiplied = pairs.into_iter().map(|(gradient, variable)| {
        let found = multipliers.iter().find(|(name, _)| variable.name() == plain(name));
        let gradient = match found {
            Some((_, multiplier)) => gradient.map_values(|values| values * *multiplier),
            None => gradient,
        };
        (gradient, variable)
    });
    Ok(multiplied.collect())
}

/// A name without TensorFlow's `:0`.
fn plain(name: &str) -> &str {
    name.strip_suffix(":0").unwrap_or(name)
}

/// The norm of all gradients together.
pub(super) fn global_norm(pairs: &Pairs) -> Result<Tensor> {
    let squares = pairs.iter().filter_map(|(gradient, _)| gradient.values()).map(|values| values.square().sum());
    let sum = squares.reduce(|a, b| a + b);
    sum.map(|sum| sum.sqrt())
        .ok_or_else(|| Error::config("no variable has a gradient").help("check that the loss depends on the variables"))
}
