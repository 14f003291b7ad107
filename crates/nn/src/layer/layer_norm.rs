//! `LayerNorm`: rows of mean 0 and variance 1.

use estimand_graph::{Init, Tensor};

use super::{Build, Call, Config, Layer, config_setters};

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, with mean and variance of each row's last axis.
///
/// Variables: `gamma` and `beta`, each `[channels]`.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    epsilon: f64,
    center: bool,
    scale: bool,
    config: Config,
}

impl LayerNorm {
    /// Over the last axis.
    pub fn new() -> LayerNorm {
        LayerNorm { epsilon: 1e-3, center: true, scale: true, config: Config::default() }
    }

    /// Added to variances. By default 0.001.
    pub fn epsilon(mut self, epsilon: f64) -> LayerNorm {
        self.epsilon = epsilon;
        self
    }

    /// Whether there is a `beta`. By default there is.
    pub fn center(mut self, center: bool) -> LayerNorm {
        self.center = center;
        self
    }

    /// Whether there is a `gamma`. By default there is.
    pub fn scale(mut self, scale: bool) -> LayerNorm {
        self.scale = scale;
        self
    }
}

impl Default for LayerNorm {
    fn default() -> LayerNorm {
        LayerNorm::new()
    }
}

config_setters!(LayerNorm);

impl Layer for LayerNorm {
    fn kind(&self) -> &'static str {
        "layer_normalization"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn build(&self, build: &mut Build<'_>) {
        if !build.takes(2..=usize::MAX, "[batch, ..., channels]") {
            return;
        }
        let dims = [build.channels()];
        if self.scale {
            build.weight("gamma", &dims, Init::Ones, None);
        }
        if self.center {
            build.weight("beta", &dims, Init::Zeros, None);
        }
    }

    fn call(&self, call: &Call<'_>) -> Tensor {
        let x = call.input();
        let number = |n: f32| x.graph().constant(n);
        let gamma = call.find("gamma").cloned().unwrap_or_else(|| number(1.0));
        let beta = call.find("beta").cloned().unwrap_or_else(|| number(0.0));
        x.layer_normalization(&beta, &gamma, self.epsilon)
    }
}
