//! [`OptimizeLoss`]: a train op with gradient noise, multipliers, clipping and summaries. It is
//! `tf.contrib.layers.optimize_loss`.
//!
//! `mod.rs` has the options and the order of the work, `gradients.rs` changes gradients,
//! `clipping.rs` limits them, `chosen.rs` knows the optimizers by name.

mod chosen;
mod clipping;
mod gradients;

pub use clipping::{AdaptiveClipping, ClipGradients};

use std::fmt;
use std::panic::Location;

use estimand_graph::{ApplyGradients, Gradient, Graph, Minimize, Optimizer, Tensor};
use estimand_tensor::{Error, Result};
use estimand_update::{Schedule, Sgd};

use crate::summary::Summaries;
use chosen::Chosen;
use gradients::{add_noise, global_norm, multiply};

/// Variables with their gradients.
type Pairs = Vec<(Gradient, Tensor)>;

/// What [`OptimizeLoss`] can show in TensorBoard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimizerSummary {
    /// `loss`: the loss.
    Loss,
    /// `learning_rate_1`: the rate of the step, if a decay changes it.
    LearningRate,
    /// `gradients/<variable>`: a histogram of each gradient.
    Gradients,
    /// `gradient_norm/<variable>`: the norm of each gradient, and what
    /// [`GlobalGradientNorm`](OptimizerSummary::GlobalGradientNorm) shows.
    GradientNorm,
    /// `global_norm/gradient_norm` and, if gradients are clipped,
    /// `global_norm/clipped_gradient_norm`: the norm of all gradients.
    GlobalGradientNorm,
}

impl OptimizerSummary {
    /// Those that are shown by default.
    pub const DEFAULT: [OptimizerSummary; 3] =
        [OptimizerSummary::Loss, OptimizerSummary::LearningRate, OptimizerSummary::GlobalGradientNorm];
}

/// The arguments of `tf.contrib.layers.optimize_loss`, and the train op made from them.
///
/// The work is done in this order: gradients, noise, multipliers, clipping, update.
///
/// ```
/// use estimand::prelude::*;
/// use estimand::{OptimizeLoss, OptimizerSummary};
///
/// fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let out = Dense::new(1).name("out").apply(&cx.feature("x"));
///     let spec = EstimatorSpec::new(cx).prediction("y", &out);
///     if cx.mode() == Mode::Predict {
///         return Ok(spec);
///     }
///     let loss = (&out - cx.label()).square().mean();
///     if cx.mode() == Mode::Eval {
///         return Ok(spec.loss(&loss));
///     }
///     let train_op = OptimizeLoss::named(&loss, "Adam", 0.002)
///         .global_step(cx.global_step())
///         .gradient_multiplier("out/bias", 2.0)
///         .clip_gradients(5.0)
///         .learning_rate_decay(|rate| Schedule::Exponential {
///             initial: rate,
///             decay_steps: 1000,
///             decay_rate: 0.9,
///             staircase: true,
///         })
///         .summaries(cx.summary(), OptimizerSummary::DEFAULT)
///         .train_op();
///     Ok(spec.loss(&loss).train_op(&train_op))
/// }
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-optimize-loss-{}", std::process::id()));
/// # let x = Array::from_vec([2, 1], vec![1f32, 2.0])?;
/// # let y = Array::from_vec([2, 1], vec![3f32, 6.0])?;
/// # let data = Dataset::from_arrays([("x", x), ("y", y)]).label("y").repeat(5).batch(2);
/// # Estimator::new(model).model_dir(&folder).build()?.train(data)?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct OptimizeLoss<'a> {
    loss: Tensor,
    chosen: Chosen,
    global_step: Option<Tensor>,
    increments: bool,
    noise_scale: Option<f64>,
    multipliers: Vec<(String, f64)>,
    clip: Option<ClipGradients<'a>>,
    decay: Option<Box<dyn FnOnce(f64) -> Schedule + 'a>>,
    update_ops: Vec<Tensor>,
    variables: Option<Vec<Tensor>>,
    name: String,
    summaries: Option<(Summaries, Vec<OptimizerSummary>)>,
}

impl<'a> OptimizeLoss<'a> {
    /// Minimizes a loss with an optimizer, which has its own learning rate.
    pub fn new(loss: &Tensor, optimizer: Optimizer) -> OptimizeLoss<'a> {
        OptimizeLoss::with(loss, Chosen::Ready(optimizer))
    }

    /// Minimizes a loss with an optimizer of TensorFlow 1, by its name: `Adagrad`, `Adam`, `Ftrl`,
    /// `Momentum`, `RMSProp` or `SGD`. Its settings are the defaults of TensorFlow 1.
    pub fn named(loss: &Tensor, optimizer: &str, learning_rate: f64) -> OptimizeLoss<'a> {
        OptimizeLoss::with(loss, Chosen::Named { name: optimizer.to_string(), rate: learning_rate })
    }

    fn with(loss: &Tensor, chosen: Chosen) -> OptimizeLoss<'a> {
        OptimizeLoss {
            loss: loss.clone(),
            chosen,
            global_step: None,
            increments: true,
            noise_scale: None,
            multipliers: Vec::new(),
            clip: None,
            decay: None,
            update_ops: Vec::new(),
            variables: None,
            name: "OptimizeLoss".to_string(),
            summaries: None,
        }
    }

    /// Sets the variable that counts steps. A decay of the learning rate and adaptive clipping read
    /// it. By default, the optimizer counts its own updates.
    pub fn global_step(mut self, step: &Tensor) -> OptimizeLoss<'a> {
        self.global_step = Some(step.clone());
        self
    }

    /// Sets whether the train op increments the global step. By default, it does. A model with
    /// several train ops increments it in one of them; an [`Estimator`](crate::Estimator) counts
    /// each of its steps once in any case.
    pub fn increment_global_step(mut self, increment: bool) -> OptimizeLoss<'a> {
        self.increments = increment;
        self
    }

    /// Adds normal noise of mean 0 and this deviation, cut at two deviations, to each gradient. By
    /// default, there is none. A gradient of rows becomes dense.
    pub fn gradient_noise_scale(mut self, scale: f64) -> OptimizeLoss<'a> {
        self.noise_scale = Some(scale);
        self
    }

    /// Multiplies the gradient of the variable with this name. By default, none is multiplied.
    pub fn gradient_multiplier(mut self, variable: impl Into<String>, multiplier: f64) -> OptimizeLoss<'a> {
        self.multipliers.push((variable.into(), multiplier));
        self
    }

    /// Limits gradients: a number limits the norm of all gradients together, an
    /// [`AdaptiveClipping`] finds the limit itself. By default, they are not limited.
    pub fn clip_gradients(mut self, clip: impl Into<ClipGradients<'a>>) -> OptimizeLoss<'a> {
        self.clip = Some(clip.into());
        self
    }

    /// Limits gradients by a function of all variables with their gradients.
    pub fn clip_gradients_with(
        mut self,
        clip: impl FnOnce(Vec<(Gradient, Tensor)>) -> Vec<(Gradient, Tensor)> + 'a,
    ) -> OptimizeLoss<'a> {
        self.clip = Some(ClipGradients::Function(Box::new(clip)));
        self
    }

    /// Makes a schedule of the learning rate. Only for an optimizer by name: another one has a
    /// schedule of its own. By default, the rate is constant.
    pub fn learning_rate_decay(mut self, decay: impl FnOnce(f64) -> Schedule + 'a) -> OptimizeLoss<'a> {
        self.decay = Some(Box::new(decay));
        self
    }

    /// Runs these ops in each step too. By default, none. Updates of layers, such as those of batch
    /// normalisation, run without it in an [`Estimator`](crate::Estimator).
    pub fn update_ops<'t>(mut self, ops: impl IntoIterator<Item = &'t Tensor>) -> OptimizeLoss<'a> {
        self.update_ops.extend(ops.into_iter().cloned());
        self
    }

    /// Changes only these variables. By default, all trainable ones.
    pub fn variables<'t>(mut self, variables: impl IntoIterator<Item = &'t Tensor>) -> OptimizeLoss<'a> {
        self.variables = Some(variables.into_iter().cloned().collect());
        self
    }

    /// Sets the scope of the names of variables and summaries. By default, `OptimizeLoss`. A second
    /// scope of that name gets `_1`.
    pub fn name(mut self, name: impl Into<String>) -> OptimizeLoss<'a> {
        self.name = name.into();
        self
    }

    /// Adds summaries to a list, that of
    /// [`ModelFnContext::summary`](crate::ModelFnContext::summary). By default, none.
    pub fn summaries(
        mut self,
        list: &Summaries,
        shown: impl IntoIterator<Item = OptimizerSummary>,
    ) -> OptimizeLoss<'a> {
        self.summaries = Some((list.clone(), shown.into_iter().collect()));
        self
    }

    /// Adds all nodes and returns the train op, for
    /// [`EstimatorSpec::train_op`](crate::EstimatorSpec::train_op). As for all ops, the graph keeps
    /// errors.
    #[track_caller]
    pub fn train_op(self) -> Tensor {
        let graph = self.loss.graph().clone();
        let _line = graph.line(Location::caller(), file!());
        let _scope = graph.scope(&self.name);
        match self.build(&graph) {
            Ok(op) => op,
            Err(error) => graph.error(error),
        }
    }

    fn build(mut self, graph: &Graph) -> Result<Tensor> {
        graph.check()?;
        if self.loss.rank() != 0 {
            return Err(Error::shape(format!("the loss is {}; expected one number", self.loss.describe()))
                .help("take the mean or the sum over the batch"));
        }
        let decays = self.decay.is_some();
        let optimizer = self.chosen.optimizer(self.decay.take())?;
        if decays && self.global_step.is_none() {
            return Err(Error::config("global_step is required for learning_rate_decay_fn.")
                .help("call OptimizeLoss::global_step, with ModelFnContext::global_step in a model function"));
        }
        if decays {
            self.show_rate(&optimizer)?;
        }
        let what = Minimize::new(&self.loss);
        let pairs = optimizer.compute_gradients(match &self.variables {
            Some(variables) => what.variables(variables),
            None => what,
        });
        graph.check()?;
        let pairs = match self.noise_scale {
            Some(scale) => add_noise(pairs, scale)?,
            None => pairs,
        };
        let pairs = multiply(pairs, &self.multipliers)?;
        let shows_norm = self.shows(OptimizerSummary::GlobalGradientNorm) || self.shows(OptimizerSummary::GradientNorm);
        if shows_norm {
            self.show("global_norm/gradient_norm", &global_norm(&pairs)?);
        }
        let (clips, mut effects) = (self.clip.is_some(), self.update_ops.clone());
        let pairs = match self.clip.take() {
            Some(clip) => clip.apply(graph, pairs, self.global_step.as_ref(), self.list(), &mut effects)?,
            None => pairs,
        };
        self.show_gradients(&pairs, shows_norm && clips)?;
        let what = ApplyGradients::new(pairs);
        let update = optimizer.apply_gradients(match self.global_step.as_ref().filter(|_| self.increments) {
            Some(step) => what.global_step(step),
            None => what,
        });
        let all: Vec<&Tensor> = std::iter::once(&update).chain(&effects).collect();
        Ok(graph.group(&all))
    }

    fn list(&self) -> Option<&Summaries> {
        self.summaries.as_ref().map(|(list, _)| list)
    }

    fn shows(&self, what: OptimizerSummary) -> bool {
        self.summaries.as_ref().is_some_and(|(_, shown)| shown.contains(&what))
    }

    fn show(&self, name: &str, number: &Tensor) {
        if let Some(list) = self.list() {
            list.scalar(name, number);
        }
    }

    fn show_rate(&self, optimizer: &Optimizer) -> Result<()> {
        let Some(step) = self.global_step.as_ref().filter(|_| self.shows(OptimizerSummary::LearningRate)) else {
            return Ok(());
        };
        // The first scalar of gradient descent is its rate.
        let rate = Optimizer::new(Sgd::default(), optimizer.learning_rate().clone());
        if let Some(rate) = rate.symbolic()?.scalars(step, None)?.scalars.first() {
            // TF: its variable has the plain name, so the summary gets a number. (fixture
            // `optimize_loss`)
            self.show("learning_rate_1", rate);
        }
        Ok(())
    }

    fn show_gradients(&self, pairs: &Pairs, shows_clipped: bool) -> Result<()> {
        if self.shows(OptimizerSummary::Loss) {
            self.show("loss", &self.loss);
        }
        for (gradient, variable) in pairs {
            let Some(values) = gradient.values() else { continue };
            // TF: the name of a variable ends with `:0`, and the colon becomes `_`.
            let name = format!("{}_0", variable.name());
            if let Some(list) = self.list().filter(|_| self.shows(OptimizerSummary::Gradients)) {
                list.histogram(&format!("gradients/{name}"), values);
            }
            if self.shows(OptimizerSummary::GradientNorm) {
                self.show(&format!("gradient_norm/{name}"), &values.square().sum().sqrt());
            }
        }
        if shows_clipped {
            self.show("global_norm/clipped_gradient_norm", &global_norm(pairs)?);
        }
        Ok(())
    }
}

impl fmt::Debug for OptimizeLoss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OptimizeLoss")
            .field("loss", &self.loss)
            .field("optimizer", &self.chosen)
            .field("gradient_noise_scale", &self.noise_scale)
            .field("gradient_multipliers", &self.multipliers)
            .field("clip_gradients", &self.clip)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
