//! Optimizer update rules as plain element-wise functions over slices, and learning-rate schedules.
//!
//! This crate has no dependencies, so the CPU executor and a parameter server link the same
//! functions. They produce the same bits for any slice length, thread and vector width.
//!
//! The flow of one step, for one variable:
//! 1. [`Schedule::rate`] turns the step into a learning rate.
//! 2. [`UpdateRule::hyper`] turns step and rate into the scalars of the step. They are computed
//!    once, in `f64`, and rounded once.
//! 3. [`UpdateRule::update`] updates weights and slots from the gradient (`width.rs` picks the
//!    vector width).
//! 4. For a sparse gradient, `update` is called for each touched row; duplicates are summed
//!    beforehand, in order of position. If the rule is [`SparseRule::DecayWholeTable`], rows
//!    without a gradient go through [`UpdateRule::decay`]. A lazy caller may skip the decay. Every
//!    rule stays well defined: the slots of a row keep the values from its last gradient.
//!    A rule that needs the whole variable ([`UpdateRule::is_whole`]) has no `update`: it runs as
//!    nodes of a graph.
//! 5. [`Constraint::project`] moves the new weights into their allowed range, if the variable has a
//!    constraint.
//!
//! The arithmetic of rules, schedules and constraints is written once, for any [`Number`]
//! ([`Formula`], [`Schedule::rate_at`], [`Scaling`]). Read with floats it is the code above. Read
//! with a [`Symbol`] it writes the same operations to a [`Tape`], so a training step can become
//! nodes of a graph.
//!
//! ```
//! use estimand_update::{Adagrad, UpdateRule};
//! let rule = Adagrad::default();
//! let (mut w, mut accumulator) = ([1.0], [rule.slots()[0].initial]);
//! rule.update(&rule.hyper(0, 0.05), &mut w, &[0.1], &mut [&mut accumulator]);
//! assert!((w[0] - 0.98492444).abs() < 1e-7);
//! ```

#![warn(clippy::return_self_not_must_use)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::sync::Arc;

mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adamax;
mod bounds;
mod constraint;
mod extended;
mod formula;
mod ftrl;
mod lion;
mod nadam;
mod number;
mod rmsprop;
mod schedule;
mod setting;
mod sgd;
mod width;

pub use adadelta::Adadelta;
pub use adafactor::Adafactor;
pub use adagrad::Adagrad;
pub use adam::Adam;
pub use adamax::Adamax;
pub use constraint::{
    ALL_CONSTRAINTS, Constraint, MaxNorm, Measure, MinMaxNorm, NonNeg, Scaling, SymbolicConstraint, UnitNorm,
};
pub use extended::{Ema, Extended};
pub use formula::{Element, Formula, Reader, SymbolicRule};
pub use ftrl::Ftrl;
pub use lion::Lion;
pub use nadam::Nadam;
pub use number::{Number, Operation, Symbol, Tape};
pub use rmsprop::RmsProp;
pub use schedule::Schedule;
pub use setting::Setting;
pub use sgd::Sgd;

/// The scalars of one step. Each rule defines the meaning of its positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyper(pub [f32; N_SCALARS]);

/// The number of scalars of a step: 8 of a rule, and 3 of its [`Extended`] form.
pub const N_SCALARS: usize = 11;

/// A tensor that the rule keeps for a variable between steps. It has the variable's shape, if
/// [`UpdateRule::slots_of`] does not say otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// TensorFlow's name of the slot. It is the last part of the slot's name in a checkpoint.
    pub name: &'static str,
    /// The value of every element before the first step.
    pub initial: f32,
}

impl Slot {
    const fn new(name: &'static str, initial: f32) -> Slot {
        Slot { name, initial }
    }
}

/// TensorFlow's treatment of the rows of a table that have no gradient in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseRule {
    /// The rows stay unchanged.
    TouchedRows,
    /// The rows go through [`UpdateRule::decay`].
    DecayWholeTable,
}

/// An optimizer's rule for changing weights by gradients.
///
/// Slices passed together must have equal lengths, and slots must be in the order of
/// [`slots`](UpdateRule::slots). Otherwise the call panics, since this is a bug of the caller.
pub trait UpdateRule: Send + Sync + std::fmt::Debug {
    /// TensorFlow's name of the optimizer.
    fn name(&self) -> &'static str;

    /// The learning rate if the user gives none.
    fn default_learning_rate(&self) -> f64 {
        0.001
    }

    /// The slots of every variable, in TensorFlow's order.
    fn slots(&self) -> Vec<Slot>;

    /// The slots of a variable of these sizes with their own sizes, in the order of `slots`. By
    /// default each has those of the variable. A rule may leave out slots that a variable does not
    /// need, if it [is whole](UpdateRule::is_whole).
    fn slots_of(&self, dims: &[usize]) -> Vec<(Slot, Vec<usize>)> {
        self.slots().into_iter().map(|slot| (slot, dims.to_vec())).collect()
    }

    /// The scalars that TensorFlow stores next to the slots, under its names, after `steps`
    /// updates: settings, and Nadam's product. The learning rate is not included; it belongs to the
    /// schedule.
    fn scalars(&self, steps: u64) -> Vec<(&'static str, f64)>;

    /// The settings under Keras's names, with which the rule can be written down. By default it
    /// cannot.
    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        None
    }

    /// Checks that settings are in their range. The error message is written for the user.
    fn check(&self) -> Result<(), String>;

    /// This rule with the arithmetic of `tf.keras.optimizers` of TensorFlow 2.11 and later, if
    /// Keras has it there.
    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        None
    }

    /// Whether this is the arithmetic of the newer generation.
    fn is_newer(&self) -> bool {
        false
    }

    /// Whether a step needs the whole variable: means over it, or slots of other shapes. Such a
    /// rule is written with symbols alone, and a graph runs it as nodes. `update` and `decay` are
    /// not called.
    fn is_whole(&self) -> bool {
        false
    }

    /// The scalars of one step; `step` counts from 0, the first update.
    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper;

    /// The treatment of rows that a sparse gradient does not name.
    fn sparse(&self) -> SparseRule;

    /// Runs one step. It is element-wise, without reductions or contraction to FMA, so any split of
    /// the slices gives the same bits.
    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]);

    /// Runs one step for elements in rows without a gradient, for [`SparseRule::DecayWholeTable`].
    fn decay(&self, _h: &Hyper, _w: &mut [f32], _slots: &mut [&mut [f32]]) {}

    /// The rule read with symbols. `None` for a rule that is written for slices alone: it trains,
    /// but it cannot be exported or run on a device. A [`Formula`] has both readings.
    fn symbolic(&self) -> Option<&dyn SymbolicRule> {
        None
    }
}

/// Every rule with its defaults, for lookup by name and for tests of all rules.
pub const ALL_RULES: [fn() -> Box<dyn UpdateRule>; 10] = [
    || Box::new(Sgd::default()),
    || Box::new(Adagrad::default()),
    || Box::new(Adam::default()),
    || Box::new(Ftrl::default()),
    || Box::new(RmsProp::default()),
    || Box::new(Adadelta::default()),
    || Box::new(Adamax::default()),
    || Box::new(Nadam::default()),
    || Box::new(Lion::default()),
    || Box::new(Adafactor::default()),
];
