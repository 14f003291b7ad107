//! `BatchNorm`: normalizes channels to mean 0 and variance 1. Training uses the statistics of the
//! batch; evaluation and prediction use moving averages of them.

use estimand_graph::{Axes, Initializer, Tensor};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::build::resolve_axis;
use super::weight_options::{BETA, GAMMA, WeightOptions, weight_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Dialect, Fields, Json, OneAxis};

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta` for each channel.
///
/// In training, mean and variance are those of the batch. The moving statistics follow them through
/// [`Graph::updates`], which run with every step of an Estimator. Outside of training the moving
/// statistics are used. A frozen layer (`trainable(false)`) never uses the batch's statistics and
/// updates nothing, as in Keras.
///
/// Variables: `gamma`, `beta`, and untrained `moving_mean`, `moving_variance`, each `[channels]`.
///
/// [`Graph::updates`]: estimand_graph::Graph::updates
#[derive(Clone, Debug)]
#[must_use]
pub struct BatchNorm {
    axis: i64,
    momentum: f64,
    epsilon: f64,
    center: bool,
    scale: bool,
    beta: WeightOptions,
    gamma: WeightOptions,
    moving_mean_initializer: Initializer,
    moving_variance_initializer: Initializer,
    config: Config,
}

impl BatchNorm {
    /// Normalizes over the last axis, with momentum 0.99.
    pub fn new() -> BatchNorm {
        BatchNorm {
            axis: -1,
            momentum: 0.99,
            epsilon: 1e-3,
            center: true,
            scale: true,
            beta: WeightOptions::default(),
            gamma: WeightOptions::default(),
            moving_mean_initializer: Initializer::Zeros,
            moving_variance_initializer: Initializer::Ones,
            config: Config::default(),
        }
    }

    /// The axis of the channels. By default the last, -1.
    pub fn axis(mut self, axis: i64) -> BatchNorm {
        self.axis = axis;
        self
    }

    /// The fraction of the moving statistics that each step keeps. By default 0.99.
    pub fn momentum(mut self, momentum: f64) -> BatchNorm {
        self.momentum = momentum;
        self
    }

    /// A small number added to variances. By default 0.001.
    pub fn epsilon(mut self, epsilon: f64) -> BatchNorm {
        self.epsilon = epsilon;
        self
    }

    /// Whether the layer has a `beta`. By default it does.
    pub fn center(mut self, center: bool) -> BatchNorm {
        self.center = center;
        self
    }

    /// Whether the layer has a `gamma`. By default it does.
    pub fn scale(mut self, scale: bool) -> BatchNorm {
        self.scale = scale;
        self
    }

    /// The initializer of the moving mean. By default 0.
    pub fn moving_mean_initializer(mut self, initializer: Initializer) -> BatchNorm {
        self.moving_mean_initializer = initializer;
        self
    }

    /// The initializer of the moving variance. By default 1.
    pub fn moving_variance_initializer(mut self, initializer: Initializer) -> BatchNorm {
        self.moving_variance_initializer = initializer;
        self
    }
}

impl Default for BatchNorm {
    fn default() -> BatchNorm {
        BatchNorm::new()
    }
}

config_setters!(BatchNorm);
weight_setters!(BatchNorm, beta, "offset `beta`", "at 0": beta_initializer, beta_regularizer, beta_constraint);
weight_setters!(BatchNorm, gamma, "factor `gamma`", "at 1": gamma_initializer, gamma_regularizer, gamma_constraint);

impl Described for BatchNorm {
    const CLASS: &'static str = "BatchNormalization";

    fn template() -> BatchNorm {
        BatchNorm::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> BatchNorm {
        fields.only_read("synchronized", &[false.into()]);
        fields.only_read("renorm", &[false.into()]);
        fields.only_read("renorm_clipping", &[Json::Null]);
        // It says something only with `renorm`.
        fields.ignored("renorm_momentum");
        BatchNorm {
            axis: fields.value("axis", &OneAxis(self.axis)).0,
            momentum: fields.value("momentum", &self.momentum),
            epsilon: fields.value("epsilon", &self.epsilon),
            center: fields.value("center", &self.center),
            scale: fields.value("scale", &self.scale),
            beta: self.beta.fields(fields, BETA, Initializer::Zeros),
            gamma: self.gamma.fields(fields, GAMMA, Initializer::Ones),
            moving_mean_initializer: fields.value("moving_mean_initializer", &self.moving_mean_initializer),
            moving_variance_initializer: fields.value("moving_variance_initializer", &self.moving_variance_initializer),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for BatchNorm {
    fn kind(&self) -> &'static str {
        "batch_normalization"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let Some(axis) = resolve_axis(build.input(), self.axis) else {
            return build.refuse(Error::shape(format!("{} has no axis {}", build.input().describe(), self.axis)));
        };
        if !(0.0..=1.0).contains(&self.momentum) {
            return build.refuse(Error::config(format!("momentum is {}; expected 0 to 1", self.momentum)));
        }
        if !build.takes(2..=usize::MAX, "[batch, ..., channels]") {
            return;
        }
        let dims = [build.input().dim(axis)];
        if self.scale {
            self.gamma.build(build, "gamma", &dims, Initializer::Ones);
        }
        if self.center {
            self.beta.build(build, "beta", &dims, Initializer::Zeros);
        }
        build.statistic("moving_mean", &dims, self.moving_mean_initializer.clone());
        build.statistic("moving_variance", &dims, self.moving_variance_initializer.clone());
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let (moving_mean, moving_variance) = (call.weight("moving_mean"), call.weight("moving_variance"));
        let Some(channels) = resolve_axis(x, self.axis).filter(|_| !moving_mean.is_poisoned()) else {
            return moving_mean;
        };
        // The channels' size on their axis and 1 elsewhere, so that a vector of channels broadcasts
        // against x.
        let beside = |v: &Tensor| {
            let size = |axis| if axis == channels { v.shape().dims()[0] } else { Dim::Known(1) };
            v.reshape_as((0..x.rank()).map(size).collect::<Shape>())
        };
        let number = |n: f32| x.graph().constant(n);
        let gamma = call.find("gamma").map_or_else(|| number(1.0), beside);
        let beta = call.find("beta").map_or_else(|| number(0.0), beside);
        if !(call.training() && call.trainable()) {
            let (mean, variance) = (beside(&moving_mean), beside(&moving_variance));
            return x.batch_normalization(&mean, &variance, &beta, &gamma, self.epsilon);
        }
        let others: Vec<i64> = (0..x.rank()).filter(|axis| *axis != channels).map(|axis| axis as i64).collect();
        // TF: the fused kernel, which tf.keras takes for images and volumes, sees no mask.
        let is_keras_3 = call.rules() == Dialect::Keras3;
        let is_fused = !is_keras_3 && (x.rank() == 4 || x.rank() == 5 && [1, 4].contains(&channels));
        let (mean, variance) = match call.mask_of(0).filter(|mask| mask.rank() + 1 == x.rank() && !is_fused) {
            Some(mask) => masked_moments(x, mask, &others, is_keras_3),
            None => x.moments(&others),
        };
        let spread = if is_fused { unbiased(&variance, x, &others) } else { variance.clone() };
        follow(&moving_mean, &mean, self.momentum);
        follow(&moving_variance, &spread, self.momentum);
        x.batch_normalization(&mean, &variance, &beta, &gamma, self.epsilon)
    }
}

/// Mean and variance of the steps that count. TF: Keras 3 adds 1e-7 to their number, so it does not
/// divide by 0 if no step counts.
#[track_caller]
fn masked_moments(x: &Tensor, mask: &Tensor, axes: &[i64], is_keras_3: bool) -> (Tensor, Tensor) {
    let mut counts = mask.cast(DType::F32).expand_dims(-1);
    if axes.contains(&(x.rank() as i64 - 1)) {
        // The last axis is counted too.
        counts = counts * x.ones_like();
    }
    let sum = |x: Tensor| x.sum_axes(Axes::of(axes).keep_dims());
    let n = sum(counts.clone());
    let n = if is_keras_3 { n + 1e-7 } else { n };
    let mean = sum(x * &counts) / &n;
    let variance = sum(x.squared_difference(&mean) * &counts) / &n;
    (mean, variance)
}

/// TF: what images leave in `moving_variance` is the sample's variance times n / (n - 1), from the
/// fused kernel; what matrices leave is not (pinned by the cases `batch_norm` and
/// `batch_norm_image` of the fixture `layers.jsonl`).
#[track_caller]
fn unbiased(variance: &Tensor, x: &Tensor, axes: &[i64]) -> Tensor {
    let mut n = x.graph().constant(1.0f32);
    for &axis in axes {
        n = n * x.size(axis).cast(DType::F32);
    }
    let rest = (&n - 1.0).maximum(1.0);
    variance * (n / rest)
}

/// Adds the update of a moving statistic: `moving -= (moving - new) * (1 - momentum)`.
#[track_caller]
fn follow(moving: &Tensor, new: &Tensor, momentum: f64) {
    let new = new.reshape_as(moving.shape().clone());
    let next = moving - (moving - new) * (1.0 - momentum);
    moving.graph().add_update(&moving.assign(&next));
}
