//! Optimizers: an update rule of the crate `estimand-update`, a learning rate schedule, and
//! gradient clipping.
//!
//! An optimizer works in two parts. `compute_gradients` (`minimize.rs`) adds the backward nodes.
//! `apply_gradients` (`apply_gradients.rs`) clips (`clip.rs`), adds the slots, and adds one `Apply`
//! node for each variable. If a variable has a constraint, its update ends with the constraint.
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
use estimand_update::{ALL_RULES, Schedule, SparseRule, UpdateRule};
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
    rule: Arc<dyn UpdateRule>,
    rate: Schedule,
    clip: Option<Clip>,
    lazy: bool,
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
        Optimizer { rule, rate: rate.into(), clip: None, lazy: false }
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
        let checked = self.rule.check().and_then(|()| self.rate.check());
        checked.map_err(|text| Error::config(format!("{}: {text}", self.rule.name())))
    }
}
