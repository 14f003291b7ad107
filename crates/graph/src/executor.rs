//! The seam between programs and machines: an executor places state, compiles programs and runs
//! them.
//!
//! A state holds variables by name, so that programs of several graphs share one: training, the
//! evaluations in between, all signatures of a loaded model. Any number of threads read a state at
//! once ([`Executable::forward`]); a step of training has it alone ([`Executable::step`]).

use std::any::Any;
use std::sync::Arc;

use estimand_tensor::{Array, DType, Error, Result};
use indexmap::IndexMap;

use crate::cost::Rates;
use crate::program::Program;
use crate::trace::Trace;
use crate::variables::{VarId, Variables};

/// Something that runs programs. Implementations: `Cpu` and `Reference`.
pub trait Executor: Send + Sync {
    /// What it is called in messages.
    fn name(&self) -> &str;

    /// Live values for these variables, each as its initializer says.
    fn place(&self, variables: &Variables, seed: u64) -> Result<Box<dyn State>>;

    /// A frozen state of these values, by name. It shares their memory where it can.
    fn freeze(&self, values: IndexMap<String, Array>) -> Result<Arc<dyn State>>;

    /// Prepares a program. An op that this executor lacks is an error that names it.
    fn compile(&self, program: Program) -> Result<Arc<dyn Executable>>;

    /// What the machine can do at best, measured now, which takes some hundredths of a second;
    /// `None` where speed is no aim.
    fn rates(&self) -> Option<Rates> {
        None
    }
}

/// A program ready to run.
pub trait Executable: Send + Sync {
    /// The program it was made from.
    fn program(&self) -> &Program;

    /// Computes what is fetched, and changes nothing: updates in the program are left out. Threads
    /// may do so at once. The fetched values replace `outputs`, in memory that is reused when it is
    /// large enough.
    fn forward(&self, state: &dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()>;

    /// Computes what is fetched, as [`forward`](Executable::forward) does, then updates variables.
    fn step(&self, state: &mut dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()>;
}

/// The gradient of one variable, ready to be applied, and open to change: this is where workers add
/// theirs.
pub enum GradientMut<'a> {
    /// Of the variable's size.
    Dense(&'a mut [f32]),
    /// Rows of the variable; an index may occur several times.
    Rows {
        /// Which rows.
        indices: &'a [i64],
        /// Their gradients.
        values: &'a mut [f32],
    },
}

/// Sees every gradient before it is applied, in the order of the apply steps.
pub type OnGradient<'a> = &'a mut dyn FnMut(VarId, GradientMut<'_>) -> Result<()>;

/// What one run is given.
#[derive(Default)]
pub struct RunArgs<'a> {
    /// One array for each of the program's feeds.
    pub feeds: &'a [Array],
    /// The number of the step, for randomness.
    pub step: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of this batch's first row in the global batch.
    pub row_offset: u64,
    /// Called between gradients and updates, by steps alone.
    pub on_gradient: Option<OnGradient<'a>>,
    /// Gets the time of every step. By default, nobody looks at the clock.
    pub trace: Option<&'a mut Trace>,
}

impl RunArgs<'_> {
    /// The same with other feeds, which may live shorter.
    pub fn with_feeds<'b>(&'b mut self, feeds: &'b [Array]) -> RunArgs<'b> {
        let RunArgs { step, seed, row_offset, .. } = *self;
        let on_gradient = self.on_gradient.as_mut().map(|f| &mut **f as OnGradient<'b>);
        RunArgs { feeds, step, seed, row_offset, on_gradient, trace: self.trace.as_deref_mut() }
    }
}

/// The values of variables, by name.
///
/// While one owner trains it, it is live; behind an `Arc` it is frozen, and nobody writes to it
/// again. A program finds its variables by their names: those it reads must be there, with its
/// dtypes and sizes.
pub trait State: Any + Send + Sync {
    /// Whether it holds a variable: it was there when the state was placed or last extended.
    fn holds(&self, name: &str) -> bool;

    /// The value of a variable now.
    fn read(&self, name: &str) -> Result<Array>;

    /// Replaces a variable's value; dtype and sizes must fit.
    fn write(&mut self, name: &str, value: &Array) -> Result<()>;

    /// Adds the variables that it does not hold, each as its initializer says.
    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()>;

    /// A copy that shares nothing: what a training that goes on does not change.
    fn copy(&self) -> Result<Box<dyn State>>;

    /// Itself, for the executor it belongs to.
    fn as_any(&self) -> &dyn Any;

    /// Itself, for the executor it belongs to.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// That a state lacks a variable of a program.
pub fn missing(name: &str) -> Error {
    Error::config(format!("the state has no variable `{name}`")).help("add it with State::extend")
}

/// That an array does not fit a variable.
pub fn misfit(name: &str, given: (DType, &[usize]), held: (DType, &[usize])) -> Error {
    Error::shape(format!("{}{:?} for variable `{name}`, which is {}{:?}", given.0, given.1, held.0, held.1))
}

/// That a state was placed by another executor than the one that runs.
pub fn foreign() -> Error {
    Error::config("this state was placed by another executor")
        .help("place it with the executor that compiled the program")
}
