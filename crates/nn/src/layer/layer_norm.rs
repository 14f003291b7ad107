//! `LayerNorm`: normalizes rows to mean 0 and variance 1.

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::build::resolve_axis;
use super::weight_options::{BETA, GAMMA, WeightOptions, weight_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Elements, Fields, Json};

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, with mean and variance over one or
/// several axes of each row.
///
/// Variables: `gamma` and `beta`, each with the sizes of these axes.
#[derive(Clone, Debug)]
#[must_use]
pub struct LayerNorm {
    axes: Vec<i64>,
    epsilon: f64,
    center: bool,
    scale: bool,
    beta: WeightOptions,
    gamma: WeightOptions,
    config: Config,
}

impl LayerNorm {
    /// Normalizes over the last axis.
    pub fn new() -> LayerNorm {
        LayerNorm {
            axes: vec![-1],
            epsilon: 1e-3,
            center: true,
            scale: true,
            beta: WeightOptions::default(),
            gamma: WeightOptions::default(),
            config: Config::default(),
        }
    }

    /// The axes over which rows are normalised, counted from the end if negative. By default the
    /// last, -1.
    pub fn axes(mut self, axes: impl Into<Vec<i64>>) -> LayerNorm {
        self.axes = axes.into();
        self
    }

    /// A small number added to variances. By default 0.001.
    pub fn epsilon(mut self, epsilon: f64) -> LayerNorm {
        self.epsilon = epsilon;
        self
    }

    /// Whether the layer has a `beta`. By default it does.
    pub fn center(mut self, center: bool) -> LayerNorm {
        self.center = center;
        self
    }

    /// Whether the layer has a `gamma`. By default it does.
    pub fn scale(mut self, scale: bool) -> LayerNorm {
        self.scale = scale;
        self
    }

    /// The normalized axes in rising order. Returns `None` if an axis does not exist, is the batch,
    /// or occurs twice.
    fn resolved(&self, x: &Tensor) -> Option<Vec<usize>> {
        let mut axes = self.axes.iter().map(|&axis| resolve_axis(x, axis)).collect::<Option<Vec<usize>>>()?;
        axes.sort_unstable();
        let fits = !axes.is_empty() && axes[0] > 0 && axes.windows(2).all(|pair| pair[0] != pair[1]);
        fits.then_some(axes)
    }
}

impl Default for LayerNorm {
    fn default() -> LayerNorm {
        LayerNorm::new()
    }
}

config_setters!(LayerNorm);
weight_setters!(LayerNorm, beta, "offset `beta`", "at 0": beta_initializer, beta_regularizer, beta_constraint);
weight_setters!(LayerNorm, gamma, "factor `gamma`", "at 1": gamma_initializer, gamma_regularizer, gamma_constraint);

impl Described for LayerNorm {
    const CLASS: &'static str = "LayerNormalization";

    fn template() -> LayerNorm {
        LayerNorm::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> LayerNorm {
        fields.only_read("rms_scaling", &[false.into()]);
        LayerNorm {
            axes: fields.value("axis", &Elements(self.axes.clone())).0,
            epsilon: fields.value("epsilon", &self.epsilon),
            center: fields.value("center", &self.center),
            scale: fields.value("scale", &self.scale),
            beta: self.beta.fields(fields, BETA, Initializer::Zeros),
            gamma: self.gamma.fields(fields, GAMMA, Initializer::Ones),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for LayerNorm {
    fn kind(&self) -> &'static str {
        "layer_normalization"
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
        if !build.takes(2..=usize::MAX, "[batch, ..., channels]") {
            return;
        }
        let x = build.input();
        let Some(axes) = self.resolved(x) else {
            let text = format!(
                "the axes {:?} do not fit {}; expected at least one axis after the batch, each at most once",
                self.axes,
                x.describe()
            );
            return build.refuse(Error::shape(text));
        };
        let size = |&axis: &usize| x.shape().dims()[axis].known();
        let Some(dims) = axes.iter().map(size).collect::<Option<Vec<usize>>>() else {
            let text = format!("the sizes of the axes {:?} of {} are not all known", self.axes, x.describe());
            let help = "declare the sizes of the placeholder's axes, or reshape: variables need known sizes";
            return build.refuse(Error::shape(text).help(help));
        };
        if self.scale {
            self.gamma.build(build, "gamma", &dims, Initializer::Ones);
        }
        if self.center {
            self.beta.build(build, "beta", &dims, Initializer::Zeros);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let Some(axes) = self.resolved(x) else { return call.weight("gamma") };
        // The sizes of the axes and 1 elsewhere, so that the variables broadcast against x.
        let beside = |v: &Tensor| {
            let size = |axis| if axes.contains(&axis) { x.shape().dims()[axis] } else { Dim::Known(1) };
            if axes.len() == 1 && axes[0] + 1 == x.rank() {
                v.clone()
            } else {
                v.reshape_as((1..x.rank()).map(size).collect::<Shape>())
            }
        };
        let number = |n: f32| x.graph().constant(n);
        let gamma = call.find("gamma").map_or_else(|| number(1.0), beside);
        let beta = call.find("beta").map_or_else(|| number(0.0), beside);
        let (mean, variance) = x.moments(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>());
        x.batch_normalization(&mean, &variance, &beta, &gamma, self.epsilon)
    }
}
