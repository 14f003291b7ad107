//! `GaussianNoise`, `GaussianDropout` and `AlphaDropout`: in training, elements are changed at random.

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::{Call, Config, Layer, config_setters};

macro_rules! noise {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $option:ident: $what:literal, $range:expr, $expected:literal, $disturbed:path) => {
        $(#[$doc])*
        ///
        /// Outside of training it changes nothing. What is drawn is a pure function of seed, name, step and row.
        #[derive(Clone, Debug)]
        pub struct $layer {
            $option: f64,
            config: Config,
        }

        impl $layer {
            #[doc = $what]
            pub fn new($option: f64) -> $layer {
                $layer { $option, config: Config::default() }
            }
        }

        config_setters!($layer);

        impl Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn call(&self, call: &Call<'_>) -> Tensor {
                let x = call.input();
                if !$range.contains(&self.$option) {
                    let text = format!(concat!($kind, " ", stringify!($option), " {}, expected ", $expected), self.$option);
                    return x.graph().error(Error::config(text));
                }
                if call.training() { $disturbed(x, self.$option) } else { x.clone() }
            }
        }
    };
}

noise!(
    /// Adds numbers of mean 0 to the elements.
    GaussianNoise,
    "gaussian_noise",
    stddev: "The deviation of what is added.",
    (0.0..f64::INFINITY),
    "0 or more",
    add_noise
);
noise!(
    /// Multiplies elements with numbers of mean 1.
    GaussianDropout,
    "gaussian_dropout",
    rate: "The deviation is `sqrt(rate / (1 - rate))`, as that of a dropout of this rate.",
    (0.0..1.0),
    "0 <= rate < 1",
    multiply_noise
);
noise!(
    /// Sets elements to the value that a SELU tends to, and scales so that mean and variance stay as they were: the dropout of
    /// networks with [`Selu`](crate::Activation::Selu).
    AlphaDropout,
    "alpha_dropout",
    rate: "Changes this part of the elements.",
    (0.0..1.0),
    "0 <= rate < 1",
    drop_to_alpha
);

#[track_caller]
fn add_noise(x: &Tensor, stddev: f64) -> Tensor {
    x + x.graph().random_normal(x.shape().clone()) * stddev
}

#[track_caller]
fn multiply_noise(x: &Tensor, rate: f64) -> Tensor {
    x * (x.graph().random_normal(x.shape().clone()) * (rate / (1.0 - rate)).sqrt() + 1.0)
}

#[track_caller]
fn drop_to_alpha(x: &Tensor, rate: f64) -> Tensor {
    // What SELU tends to below 0: minus its scale times its alpha.
    const FLOOR: f64 = -1.050_700_987_355_480_5 * 1.673_263_242_354_377_2;
    let scale = ((1.0 - rate) * (1.0 + rate * FLOOR * FLOOR)).powf(-0.5);
    let keep = x.graph().random_uniform(x.shape().clone()).greater_equal(rate);
    keep.select(x, FLOOR) * scale - scale * FLOOR * rate
}
