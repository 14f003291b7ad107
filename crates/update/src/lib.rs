//! Optimizer update rules as plain element-wise functions over slices, and learning-rate schedules.
//!
//! A leaf: it depends on nothing, so that the CPU executor and a parameter server link the same
//! functions and produce the same bits, whatever the length of the slice, the thread or the width
//! of the vectors.
//!
//! The flow of one step, for one variable:
//! 1. [`Schedule::rate`] turns the step into a learning rate.
//! 2. [`UpdateRule::hyper`] turns step and rate into the few scalars of the step: computed once, in
//!    `f64`, rounded once.
//! 3. [`UpdateRule::update`] walks over weights, gradient and slots together (`width.rs` picks the
//!    vector width).
//! 4. A sparse gradient calls it per touched row, duplicates summed beforehand in order of
//!    position. If the rule is [`SparseRule::DecayWholeTable`], the rows without a gradient go
//!    through [`UpdateRule::decay`]; a lazy caller leaves that out, and every rule stays well
//!    defined: slots keep the values of the row's last gradient.
//! 5. [`Constraint::project`] takes the new weights to where they may be, if the variable has a
//!    constraint.
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

mod adadelta;
mod adagrad;
mod adam;
mod adamax;
mod bounds;
mod constraint;
mod ftrl;
mod nadam;
mod rmsprop;
mod schedule;
mod sgd;
mod width;

pub use adadelta::Adadelta;
pub use adagrad::Adagrad;
pub use adam::Adam;
pub use adamax::Adamax;
pub use constraint::{ALL_CONSTRAINTS, Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm};
pub use ftrl::Ftrl;
pub use nadam::Nadam;
pub use rmsprop::RmsProp;
pub use schedule::Schedule;
pub use sgd::Sgd;

/// All scalars of one step; each rule knows the meaning of its own places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyper(pub [f32; 8]);

impl Hyper {
    fn round<const N: usize>(scalars: [f64; N]) -> Hyper {
        Hyper(std::array::from_fn(|i| scalars.get(i).map_or(0.0, |&x| x as f32)))
    }
}

/// A tensor of a variable's shape that the rule keeps between steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// TensorFlow's name of the slot, which ends its name in a checkpoint.
    pub name: &'static str,
    /// The value of every element before the first step.
    pub initial: f32,
}

impl Slot {
    const fn new(name: &'static str, initial: f32) -> Slot {
        Slot { name, initial }
    }
}

/// What TensorFlow does to the rows of a table that have no gradient in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseRule {
    /// Nothing.
    TouchedRows,
    /// They go through [`UpdateRule::decay`].
    DecayWholeTable,
}

/// How an optimizer changes weights, given gradients.
///
/// Slices passed together have equal lengths, and slots come in the order of
/// [`slots`](UpdateRule::slots); anything else is a bug of the caller, and panics.
pub trait UpdateRule: Send + Sync + std::fmt::Debug {
    /// TensorFlow's name of the optimizer.
    fn name(&self) -> &'static str;

    /// The learning rate if the user gives none.
    fn default_learning_rate(&self) -> f64 {
        0.001
    }

    /// The slots of every variable, in TensorFlow's order.
    fn slots(&self) -> Vec<Slot>;

    /// The numbers that TensorFlow keeps beside the slots, under its names, after so many updates:
    /// settings, and Nadam's product. All but the learning rate, which is the schedule's.
    fn scalars(&self, steps: u64) -> Vec<(&'static str, f64)>;

    /// Refuses settings outside their range, in words for the user.
    fn check(&self) -> Result<(), String>;

    /// The scalars of one step; `step` counts from 0, the first update.
    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper;

    /// How a sparse gradient treats the rows it does not name.
    fn sparse(&self) -> SparseRule;

    /// One step. Element-wise; no reduction and no contraction to FMA, so any split of the slices
    /// gives the same bits.
    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]);

    /// One step for elements in rows without a gradient, for [`SparseRule::DecayWholeTable`].
    fn decay(&self, _h: &Hyper, _w: &mut [f32], _slots: &mut [&mut [f32]]) {}
}

/// Every rule with its defaults, for looking one up by name and for the tests that hold for all of
/// them.
pub const ALL_RULES: [fn() -> Box<dyn UpdateRule>; 8] = [
    || Box::new(Sgd::default()),
    || Box::new(Adagrad::default()),
    || Box::new(Adam::default()),
    || Box::new(Ftrl::default()),
    || Box::new(RmsProp::default()),
    || Box::new(Adadelta::default()),
    || Box::new(Adamax::default()),
    || Box::new(Nadam::default()),
];
