//! Optimizers: an update rule of the crate `estimand-update`, a learning rate schedule, and
//! gradient clipping.
//!
//! An optimizer works in two parts. `compute_gradients` (`minimize.rs`) adds the backward nodes.
//! `apply_gradients` (`apply_gradients.rs`) clips (`clip.rs`), adds the slots, and adds one `Apply`
//! node for each variable. If a variable has a constraint, its update ends with the constraint. A
//! rule that needs whole variables has plain nodes instead.
//! `minimize` does both. `state.rs` finds the slots and the counter of updates again. `plain.rs`
//! writes updates without `Apply`, for exports.

mod apply_gradients;
mod clip;
mod minimize;
mod plain;
mod state;

pub use apply_gradients::ApplyGradients;
pub(crate) use apply_gradients::rows_fit;
pub use clip::Clip;
pub use minimize::Minimize;

use std::fmt;
use std::sync::Arc;

use estimand_tensor::{Error, Result};
use estimand_update::{ALL_RULES, Ema, Extended, Hyper, Schedule, SparseRule, UpdateRule};
use smallvec::SmallVec;

use crate::symbolic::SymbolicUpdate;
use crate::variables::VarId;

/// An optimizer: trains variables. It is a plain value; all state is in the graph's variables.
///
/// ```
/// use estimand_graph::{Clip, Optimizer};
/// use estimand_update::Adam;
/// let adam = Optimizer::new(Adam::default(), 0.001).clip(Clip::GlobalNorm(5.0));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Optimizer {
    /// The rule with its options: what runs.
    rule: Arc<dyn UpdateRule>,
    /// The rule without weight decay and average.
    plain: Arc<dyn UpdateRule>,
    rate: Schedule,
    clip: Option<Clip>,
    lazy: bool,
    weight_decay: Option<f64>,
    ema: Option<Ema>,
    has_rate_variable: bool,
}

/// The index of an optimizer in its graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptimizerId(pub u32);

/// The configuration of an optimizer that an executor needs.
#[derive(Clone)]
pub struct OptimizerConfig {
    /// The update rule.
    pub rule: Arc<dyn UpdateRule>,
    /// The learning rate at each step.
    pub rate: Schedule,
    /// Leaves rows without a gradient unchanged where TensorFlow would decay them.
    pub lazy: bool,
    /// The variable that holds the learning rate, if it can be set between steps. Then `rate` is
    /// its first value.
    pub rate_variable: Option<VarId>,
    /// The variable that counts the updates.
    pub iterations: VarId,
    /// The scope of the optimizer. The names of its slots and scalars start with it.
    pub scope: String,
}

impl OptimizerConfig {
    /// Returns the scalars that TensorFlow stores in a checkpoint for an optimizer after `steps`
    /// updates. A scheduled learning rate is not among them.
    pub fn scalars(&self, steps: u64) -> Vec<(String, f32)> {
        let (rate, decay) = self.rate.rate_and_decay().unzip();
        let mut scalars = self.rule.scalars(steps);
        if let Some((_, slot)) = scalars.iter_mut().find(|(name, _)| *name == "decay").filter(|(_, own)| *own == 0.0) {
            *slot = decay.unwrap_or(0.0);
        }
        scalars.extend(rate.map(|rate| ("learning_rate", rate)));
        scalars.into_iter().map(|(name, value)| (format!("{}/{name}", self.scope), value as f32)).collect()
    }
}

impl OptimizerConfig {
    /// The scalars of a step. `read` returns the value of a scalar variable.
    pub fn hyper(&self, step: u64, read: impl FnOnce(VarId) -> Result<f64>) -> Result<Hyper> {
        let rate = match self.rate_variable {
            Some(variable) => read(variable)?,
            None => self.rate.rate(step),
        };
        Ok(self.rule.hyper(step, rate))
    }

    /// Whether rows without a gradient change too.
    pub fn decays_all_rows(&self) -> bool {
        self.rule.sparse() == SparseRule::DecayWholeTable && !self.lazy
    }

    /// Returns the update as nodes. A rule that is written for slices alone is an error that names
    /// it.
    pub fn symbolic(&self) -> Result<SymbolicUpdate<'_>> {
        SymbolicUpdate::new(&*self.rule, &self.rate, self.lazy)
    }
}

impl fmt::Debug for OptimizerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.rule, self.rate)
    }
}

/// The update of one variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Apply {
    /// The variable.
    pub variable: VarId,
    /// Its optimizer.
    pub optimizer: OptimizerId,
    /// The optimizer's slots of the variable, in the rule's order.
    pub slots: SmallVec<[VarId; 3]>,
}

impl Optimizer {
    /// Creates an optimizer from a rule and a learning rate: a number or a [`Schedule`].
    pub fn new(rule: impl UpdateRule + 'static, rate: impl Into<Schedule>) -> Optimizer {
        Optimizer::from_rule(Arc::new(rule), rate)
    }

    /// Creates an optimizer from a rule whose type is known only at run time.
    pub fn from_rule(rule: Arc<dyn UpdateRule>, rate: impl Into<Schedule>) -> Optimizer {
        Optimizer {
            plain: rule.clone(),
            rule,
            rate: rate.into(),
            clip: None,
            lazy: false,
            weight_decay: None,
            ema: None,
            has_rate_variable: false,
        }
    }

    /// Creates the optimizer of `tf.keras.optimizers` in TensorFlow 2.11 and later from a rule:
    /// where its arithmetic differs from the legacy optimizer, the rule takes the newer form.
    ///
    /// ```
    /// use estimand_graph::Optimizer;
    /// use estimand_update::{Ema, RmsProp};
    /// let rmsprop = Optimizer::keras(RmsProp::default().momentum(0.9), 0.001).weight_decay(0.01).ema(Ema::default());
    /// assert!(rmsprop.rule().is_newer());
    /// ```
    pub fn keras(rule: impl UpdateRule + 'static, rate: impl Into<Schedule>) -> Optimizer {
        let rule: Arc<dyn UpdateRule> = Arc::new(rule);
        Optimizer::from_rule(rule.newer().unwrap_or(rule), rate)
    }

    /// Creates the optimizer with this TensorFlow name (`SGD`, `Adagrad`, `Adam`, `Ftrl`,
    /// `RMSProp`, ...), with TensorFlow's defaults. Without `rate`, the learning rate is the rule's
    /// default.
    ///
    /// ```
    /// use estimand_graph::Optimizer;
    /// assert!(Optimizer::named("Adagrad", Some(0.05)).is_ok());
    /// assert!(Optimizer::named("Adagard", None).unwrap_err().to_string().contains("did you mean `Adagrad`?"));
    /// ```
    pub fn named(name: &str, rate: Option<f64>) -> Result<Optimizer> {
        // TF: the function argument is spelled with a capital P; the scope in a checkpoint is not.
        let wanted = if name == "RMSProp" { "RMSprop" } else { name };
        let rules = ALL_RULES.iter().map(|make| make());
        let Some(rule) = rules.clone().find(|rule| rule.name() == wanted) else {
            let names: Vec<&str> = rules.map(|rule| rule.name()).collect();
            return Err(Error::unknown("optimizer", name, names));
        };
        let rate = rate.unwrap_or_else(|| rule.default_learning_rate());
        Ok(Optimizer::from_rule(rule.into(), rate))
    }

    /// Limits gradients. By default they are not limited.
    pub fn clip(mut self, clip: Clip) -> Optimizer {
        self.clip = Some(clip);
        self
    }

    /// Subtracts `weight_decay * rate` times the weight from every weight before each step, as the
    /// option of that name does in `tf.keras.optimizers`. By default off.
    pub fn weight_decay(mut self, weight_decay: f64) -> Optimizer {
        self.weight_decay = Some(weight_decay);
        self.extended()
    }

    /// Keeps a moving average of the weights: `use_ema` of `tf.keras.optimizers`. By default off.
    ///
    /// `keras::Model::fit` replaces the weights by their average when it ends.
    pub fn ema(mut self, ema: Ema) -> Optimizer {
        self.ema = Some(ema);
        self.extended()
    }

    fn extended(mut self) -> Optimizer {
        self.rule = Arc::new(Extended::new(self.plain.clone(), self.weight_decay, self.ema));
        self
    }

    /// Keeps the learning rate in a variable, so that it can be set between steps. A schedule
    /// stays what it is. By default it is a constant of the compiled step.
    pub fn with_rate_variable(mut self) -> Optimizer {
        self.has_rate_variable = matches!(self.rate, Schedule::Constant(_));
        self
    }

    /// Updates only rows that have a gradient. By default rows without a gradient decay where they
    /// do in TensorFlow (Adam, Nadam, RMSprop).
    pub fn lazy(mut self) -> Optimizer {
        self.lazy = true;
        self
    }

    /// The update rule.
    pub fn rule(&self) -> &dyn UpdateRule {
        &*self.rule
    }

    /// The learning rate at each step.
    pub fn learning_rate(&self) -> &Schedule {
        &self.rate
    }

    /// The weight decay, if there is one.
    pub fn decay(&self) -> Option<f64> {
        self.weight_decay
    }

    /// The moving average of the weights, if there is one.
    pub fn average(&self) -> Option<Ema> {
        self.ema
    }

    /// The limit of gradients, if there is one.
    pub fn gradient_clip(&self) -> Option<Clip> {
        self.clip
    }

    /// Whether only rows that have a gradient are updated.
    pub fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Returns the update as nodes, for programs that cannot run the rule's kernels. A rule that is
    /// written for slices alone is an error that names it.
    pub fn symbolic(&self) -> Result<SymbolicUpdate<'_>> {
        SymbolicUpdate::new(&*self.rule, &self.rate, self.lazy)
    }

    /// Checks the settings of the rule and of the schedule. `minimize` does so too.
    pub fn check(&self) -> Result<()> {
        let twice = match self.weight_decay {
            Some(_) if self.rule.name() == "AdamW" => Err("the weight decay is set twice, in the rule and beside it"),
            _ => Ok(()),
        };
        let lazy = match self.lazy && self.rule.is_whole() {
            true => Err("its step needs whole variables, so it cannot be lazy"),
            false => Ok(()),
        };
        let checked =
            twice.and(lazy).map_err(str::to_string).and_then(|()| self.rule.check()).and_then(|()| self.rate.check());
        checked.map_err(|text| Error::config(format!("{}: {text}", self.rule.name())))
    }
}
