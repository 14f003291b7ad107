//! `GroupNorm`: normalizes groups of channels.

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::weight_options::{BETA, GAMMA, WeightOptions, weight_setters};
use super::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters, resolve_axis};
use crate::config::{self, Described, Dialect, Fields, Json, OneAxis};

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, with mean and variance over all places
/// of a group of channels, row by row.
///
/// Variables: `gamma` and `beta`, one number for each channel.
#[derive(Clone, Debug)]
#[must_use]
pub struct GroupNorm {
    groups: i64,
    axis: i64,
    epsilon: f64,
    center: bool,
    scale: bool,
    beta: WeightOptions,
    gamma: WeightOptions,
    config: Config,
}

impl GroupNorm {
    /// This many groups of channels, along the last axis. -1 gives each channel a group.
    pub fn new(groups: i64) -> GroupNorm {
        GroupNorm {
            groups,
            axis: -1,
            epsilon: 1e-3,
            center: true,
            scale: true,
            beta: WeightOptions::default(),
            gamma: WeightOptions::default(),
            config: Config::default(),
        }
    }

    /// The axis of the channels. By default the last, -1.
    pub fn axis(mut self, axis: i64) -> GroupNorm {
        self.axis = axis;
        self
    }

    /// A small number added to variances. By default 0.001.
    pub fn epsilon(mut self, epsilon: f64) -> GroupNorm {
        self.epsilon = epsilon;
        self
    }

    /// Whether the layer has a `beta`. By default it does.
    pub fn center(mut self, center: bool) -> GroupNorm {
        self.center = center;
        self
    }

    /// Whether the layer has a `gamma`. By default it does.
    pub fn scale(mut self, scale: bool) -> GroupNorm {
        self.scale = scale;
        self
    }

    /// The axis and size of the channels, and the number of groups.
    fn groups_of(&self, x: &Tensor) -> Result<(usize, usize, usize)> {
        let Some(axis) = resolve_axis(x, self.axis).filter(|&axis| axis > 0) else {
            return Err(Error::shape(format!("{} has no axis {} after the batch", x.describe(), self.axis)));
        };
        let Some(channels) = x.shape().dims()[axis].known() else {
            let text = format!("the size of axis {} of {} is not known", self.axis, x.describe());
            return Err(Error::shape(text).help("declare it: variables need known sizes"));
        };
        let groups = if self.groups == -1 { channels } else { usize::try_from(self.groups).unwrap_or(0) };
        if groups == 0 || channels % groups != 0 {
            let text = format!("{channels} channels cannot be cut into {} groups of the same size", self.groups);
            return Err(Error::config(text));
        }
        Ok((axis, channels, groups))
    }
}

config_setters!(GroupNorm);
weight_setters!(GroupNorm, beta, "offset `beta`", "at 0": beta_initializer, beta_regularizer, beta_constraint);
weight_setters!(GroupNorm, gamma, "factor `gamma`", "at 1": gamma_initializer, gamma_regularizer, gamma_constraint);

impl Described for GroupNorm {
    const CLASS: &'static str = "GroupNormalization";

    fn template() -> GroupNorm {
        GroupNorm::new(32)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> GroupNorm {
        GroupNorm {
            groups: fields.value("groups", &self.groups),
            axis: fields.value("axis", &OneAxis(self.axis)).0,
            epsilon: fields.value("epsilon", &self.epsilon),
            center: fields.value("center", &self.center),
            scale: fields.value("scale", &self.scale),
            beta: self.beta.fields(fields, BETA, Initializer::Zeros),
            gamma: self.gamma.fields(fields, GAMMA, Initializer::Ones),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for GroupNorm {
    fn kind(&self) -> &'static str {
        "group_normalization"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    /// TF: in Keras 3 it passes its mask on; in tf.keras a mask of steps does not fit its input.
    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.mask_of(0).filter(|_| inputs.rules() == Dialect::Keras3).cloned()
    }

    fn build(&self, build: &mut Build<'_>) {
        if !build.takes(2..=usize::MAX, "[batch, ..., channels]") {
            return;
        }
        let channels = match self.groups_of(build.input()) {
            Ok((_, channels, _)) => channels,
            Err(error) => return build.refuse(error),
        };
        if self.scale {
            self.gamma.build(build, "gamma", &[channels], Initializer::Ones);
        }
        if self.center {
            self.beta.build(build, "beta", &[channels], Initializer::Zeros);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let Ok((axis, channels, groups)) = self.groups_of(x) else { return x.clone() };
        let dims = x.shape().dims();
        let (before, after) = (dims[..axis].iter().copied(), dims[axis + 1..].iter().copied());
        let cut = [Dim::Known(groups), Dim::Known(channels / groups)];
        let wide = x.reshape_as(before.chain(cut).chain(after).collect::<Shape>());
        let axes: Vec<i64> = (1..wide.rank()).filter(|&i| i != axis).map(|i| i as i64).collect();
        let (mean, variance) = wide.moments(&axes);
        let beside = |v: &Tensor| {
            let size = |i: usize| match i {
                _ if i == axis => Dim::Known(groups),
                _ if i == axis + 1 => Dim::Known(channels / groups),
                _ => Dim::Known(1),
            };
            v.reshape_as((0..wide.rank()).map(size).collect::<Shape>())
        };
        let number = |n: f32| x.graph().constant(n);
        let gamma = call.find("gamma").map_or_else(|| number(1.0), beside);
        let beta = call.find("beta").map_or_else(|| number(0.0), beside);
        wide.batch_normalization(&mean, &variance, &beta, &gamma, self.epsilon).reshape_as(x.shape().clone())
    }
}
