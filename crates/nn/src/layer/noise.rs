//! `GaussianNoise`, `GaussianDropout` and `AlphaDropout`: change elements at random in training.

use estimand_graph::Tensor;

use super::LayerCall;
use super::one_number::one_number_layer;

one_number_layer!(
    /// Adds random numbers of mean 0 to the elements.
    ///
    /// Outside of training it changes nothing. The random numbers are a pure function of seed,
    /// name, step and row.
    GaussianNoise,
    "gaussian_noise",
    "GaussianNoise",
    ["stddev"],
    ["seed"],
    stddev: "The deviation of what is added.",
    (0.0..f64::INFINITY),
    "0 or more",
    add_noise
);
one_number_layer!(
    /// Multiplies elements by random numbers of mean 1.
    ///
    /// Outside of training it changes nothing. The random numbers are a pure function of seed,
    /// name, step and row.
    GaussianDropout,
    "gaussian_dropout",
    "GaussianDropout",
    ["rate"],
    ["seed"],
    rate: "The deviation is `sqrt(rate / (1 - rate))`, as that of a dropout of this rate.",
    (0.0..1.0),
    "0 <= rate < 1",
    multiply_noise
);
one_number_layer!(
    /// Sets elements to the value that a SELU tends to, and scales the result so that mean and
    /// variance stay the same. It is the dropout for networks with
    /// [`Selu`](crate::Activation::Selu).
    ///
    /// Outside of training it changes nothing. The random numbers are a pure function of seed,
    /// name, step and row.
    AlphaDropout,
    "alpha_dropout",
    "AlphaDropout",
    ["rate"],
    ["seed"],
    rate: "Changes this part of the elements.",
    (0.0..1.0),
    "0 <= rate < 1",
    drop_to_alpha
);

#[track_caller]
fn add_noise(call: &LayerCall<'_>, stddev: f64) -> Tensor {
    let x = call.input();
    if !call.training() {
        return x.clone();
    }
    x + x.graph().random_normal(x.shape().clone()) * stddev
}

#[track_caller]
fn multiply_noise(call: &LayerCall<'_>, rate: f64) -> Tensor {
    let x = call.input();
    if !call.training() {
        return x.clone();
    }
    x * (x.graph().random_normal(x.shape().clone()) * (rate / (1.0 - rate)).sqrt() + 1.0)
}

#[track_caller]
fn drop_to_alpha(call: &LayerCall<'_>, rate: f64) -> Tensor {
    let x = call.input();
    if !call.training() {
        return x.clone();
    }
    // The limit of SELU at minus infinity: minus its scale times its alpha.
    const FLOOR: f64 = -1.050_700_987_355_480_5 * 1.673_263_242_354_377_2;
    let scale = ((1.0 - rate) * (1.0 + rate * FLOOR * FLOOR)).powf(-0.5);
    let keep = x.graph().random_uniform(x.shape().clone()).greater_equal(rate);
    keep.select(x, FLOOR) * scale - scale * FLOOR * rate
}
