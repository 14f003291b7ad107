//! Clipping of gradients by a number, by their own statistics, or by a function.

use std::fmt;

use estimand_graph::{Gradient, Graph, Initializer, Role, Tensor};
use estimand_tensor::{DType, Error, Result};

use super::Pairs;
use super::gradients::global_norm;
use crate::summary::Summaries;

/// How [`OptimizeLoss`](super::OptimizeLoss) limits gradients. A number or an [`AdaptiveClipping`]
/// converts to it.
pub enum ClipGradients<'a> {
    /// Limits the norm of all gradients together.
    GlobalNorm(f64),
    /// Finds the limit from the norms so far.
    Adaptive(AdaptiveClipping),
    /// A function of all variables with their gradients.
    Function(ClipFn<'a>),
}

/// A function that clips.
type ClipFn<'a> = Box<dyn FnOnce(Vec<(Gradient, Tensor)>) -> Vec<(Gradient, Tensor)> + 'a>;

impl From<f64> for ClipGradients<'_> {
    fn from(norm: f64) -> Self {
        ClipGradients::GlobalNorm(norm)
    }
}

impl From<AdaptiveClipping> for ClipGradients<'_> {
    fn from(adaptive: AdaptiveClipping) -> Self {
        ClipGradients::Adaptive(adaptive)
    }
}

impl fmt::Debug for ClipGradients<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClipGradients::GlobalNorm(norm) => f.debug_tuple("GlobalNorm").field(norm).finish(),
            ClipGradients::Adaptive(adaptive) => f.debug_tuple("Adaptive").field(adaptive).finish(),
            ClipGradients::Function(_) => f.write_str("Function"),
        }
    }
}

impl ClipGradients<'_> {
    /// Returns the clipped gradients. Ops that must run with the step are added to `effects`.
    pub(super) fn apply(
        self,
        graph: &Graph,
        pairs: Pairs,
        global_step: Option<&Tensor>,
        summaries: Option<&Summaries>,
        effects: &mut Vec<Tensor>,
    ) -> Result<Pairs> {
        match self {
            ClipGradients::GlobalNorm(limit) => {
                positive("clip_gradients", limit, "leave clip_gradients out to limit nothing")?;
                // TF: limit / max(norm, limit), so that gradients of norm 0 stay.
                let norm = global_norm(&pairs)?;
                // An infinite norm, times 0, makes all gradients NaN. 0 would hide the failure.
                let factor = norm.maximum(limit).reciprocal() * limit + &norm * 0.0;
                Ok(scaled(pairs, &factor))
            }
            ClipGradients::Adaptive(adaptive) => adaptive.apply(graph, pairs, global_step, summaries, effects),
            ClipGradients::Function(clip) => Ok(clip(pairs)),
        }
    }
}

/// Clips by the statistics of the norms so far: `tf.contrib.layers.adaptive_clipping_fn`.
///
/// It keeps moving averages of the logarithm of the norm and of its square. If a norm exceeds
/// `exp(mean + std_factor * std)`, all gradients are scaled so that their norm is `exp(mean)`. The
/// averages are variables, so checkpoints store them.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct AdaptiveClipping {
    std_factor: f64,
    decay: f64,
    static_max_norm: Option<f64>,
    adapts_quickly: bool,
    report_summary: bool,
    epsilon: f64,
    name: String,
}

impl Default for AdaptiveClipping {
    fn default() -> Self {
        AdaptiveClipping {
            std_factor: 2.0,
            decay: 0.95,
            static_max_norm: None,
            adapts_quickly: false,
            report_summary: false,
            epsilon: 1e-8,
            name: "AdaptiveMaxNorm".to_string(),
        }
    }
}

impl AdaptiveClipping {
    /// Clips with TensorFlow's defaults.
    pub fn new() -> AdaptiveClipping {
        AdaptiveClipping::default()
    }

    /// Sets how many deviations above the mean a norm may be. By default, 2.
    pub fn std_factor(mut self, factor: f64) -> AdaptiveClipping {
        self.std_factor = factor;
        self
    }

    /// Sets the decay of the moving averages. By default, 0.95.
    pub fn decay(mut self, decay: f64) -> AdaptiveClipping {
        self.decay = decay;
        self
    }

    /// Sets a norm that gradients never exceed. By default, there is none.
    pub fn static_max_norm(mut self, norm: impl Into<Option<f64>>) -> AdaptiveClipping {
        self.static_max_norm = norm.into();
        self
    }

    /// Lets the averages adapt quickly in the first steps: the decay is at most `n / (n + 1)` at
    /// global step `n`. It needs the global step (TensorFlow's argument `global_step`). By default,
    /// the decay is constant, and the averages start at 0.
    pub fn adapt_quickly(mut self) -> AdaptiveClipping {
        self.adapts_quickly = true;
        self
    }

    /// Shows the limit of each step as `global_norm/adaptive_max_gradient_norm`. By default, it is
    /// not shown.
    pub fn report_summary(mut self) -> AdaptiveClipping {
        self.report_summary = true;
        self
    }

    /// Sets a number that keeps the logarithm and the variance away from 0. By default, 1e-8.
    pub fn epsilon(mut self, epsilon: f64) -> AdaptiveClipping {
        self.epsilon = epsilon;
        self
    }

    /// Sets the scope of the averages. By default, `AdaptiveMaxNorm`.
    pub fn name(mut self, name: impl Into<String>) -> AdaptiveClipping {
        self.name = name.into();
        self
    }

    fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.decay) {
            return Err(Error::config(format!("decay is {}; expected a number from 0 to 1", self.decay))
                .help("0.95, the default, averages over about 20 steps"));
        }
        if !(self.std_factor >= 0.0 && self.std_factor.is_finite()) {
            return Err(Error::config(format!("std_factor is {}; expected a number from 0", self.std_factor))
                .help("2, the default, clips norms above the mean plus two deviations"));
        }
        positive("epsilon", self.epsilon, "the default is 1e-8")?;
        let help = "None, the default, sets no such norm";
        self.static_max_norm.map_or(Ok(()), |norm| positive("static_max_norm", norm, help))
    }

    fn apply(
        &self,
        graph: &Graph,
        pairs: Pairs,
        global_step: Option<&Tensor>,
        summaries: Option<&Summaries>,
        effects: &mut Vec<Tensor>,
    ) -> Result<Pairs> {
        self.check().map_err(|e| e.context("in AdaptiveClipping"))?;
        let norm = global_norm(&pairs)?;
        let (max_norm, mean) = self.max_norm(graph, &norm, global_step, effects)?;
        if self.report_summary {
            let list = summaries.ok_or_else(|| {
                Error::config("AdaptiveClipping reports a summary, but there is no list of summaries")
                    .help("call OptimizeLoss::summaries")
            })?;
            list.scalar("global_norm/adaptive_max_gradient_norm", &max_norm);
        }
        let mut factor = norm.less(&max_norm).select(1.0, mean.exp() / &norm);
        if let Some(limit) = self.static_max_norm {
            factor = (norm.reciprocal() * limit).minimum(&factor);
        }
        Ok(scaled(pairs, &factor))
    }

    /// Returns the limit of the norm, and the mean of its logarithm, both with this step's norm.
    fn max_norm(
        &self,
        graph: &Graph,
        norm: &Tensor,
        global_step: Option<&Tensor>,
        effects: &mut Vec<Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let _scope = graph.scope(&self.name);
        let log_norm = (norm + self.epsilon).log();
        let rest = match (self.adapts_quickly, global_step) {
            (false, _) => graph.constant((1.0 - self.decay) as f32),
            (true, Some(step)) => {
                let n = step.cast(DType::F32);
                let decay = (&n / (&n + 1.0)).minimum(self.decay);
                -decay + 1.0
            }
            (true, None) => {
                return Err(Error::config("AdaptiveClipping adapts quickly, which needs the global step")
                    .help("call OptimizeLoss::global_step"));
            }
        };
        let mut average = |name: &str, value: &Tensor| {
            let role = Role::Model { trainable: false };
            let variable = graph.variable_with(name, DType::F32, [], Initializer::Zeros, role);
            let new = &variable - (&variable - value) * &rest;
            effects.push(variable.assign(&new));
            new
        };
        let mean = average("mean", &log_norm);
        let square = average("sq_mean", &log_norm.square());
        let variance = square - mean.square();
        let std = variance.maximum(self.epsilon).sqrt();
        Ok(((&mean + std * self.std_factor).exp(), mean))
    }
}

/// Multiplies all gradients by a number.
fn scaled(pairs: Pairs, factor: &Tensor) -> Pairs {
    pairs.into_iter().map(|(gradient, variable)| (gradient.map_values(|values| values * factor), variable)).collect()
}

fn positive(what: &str, number: f64, help: &str) -> Result<()> {
    if number > 0.0 && number.is_finite() {
        return Ok(());
    }
    Err(Error::config(format!("{what} is {number}; expected a finite number above 0")).help(help))
}
