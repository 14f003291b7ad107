//! The interface between programs and machines: an executor places state, compiles programs and
//! runs them.
//!
//! A state holds variables by name. Programs of several graphs can therefore share one state:
//! training, the evaluations in between, all signatures of a loaded model. Any number of threads
//! may read a state at the same time ([`Executable::forward`]). A training step has exclusive
//! access ([`Executable::step`]).

use std::any::Any;
use std::sync::Arc;

use estimand_tensor::{Array, DType, Error, Result};
use indexmap::IndexMap;

use crate::cost::Rates;
use crate::program::Program;
use crate::trace::Trace;
use crate::variables::{VarId, Variables};

/// Runs programs. Implementations: `Cpu` and `Reference`.
pub trait Executor: Send + Sync {
    /// The executor's name in messages.
    fn name(&self) -> &str;

    /// Allocates live values for these variables and fills each with its initializer.
    fn place(&self, variables: &Variables, seed: u64) -> Result<Box<dyn State>>;

    /// Builds a frozen state from these values, by name. It shares their memory where it can.
    fn freeze(&self, values: IndexMap<String, Array>) -> Result<Arc<dyn State>>;

    /// Prepares a program. The error for an op that this executor lacks names the op.
    fn compile(&self, program: Program) -> Result<Arc<dyn Executable>>;

    /// Measures the peak rates of the machine, which takes some hundredths of a second. `None` for
    /// an executor that is not built for speed.
    fn rates(&self) -> Option<Rates> {
        None
    }
}

/// A program ready to run.
pub trait Executable: Send + Sync {
    /// The program it was compiled from.
    fn program(&self) -> &Program;

    /// Computes the fetches without changing any variable: updates in the program are skipped.
    /// Several threads may call it at the same time. The fetched values replace `outputs`; memory
    /// that is large enough is reused.
    fn forward(&self, state: &dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()>;

    /// Computes the fetches, as [`forward`](Executable::forward) does, then updates variables.
    fn step(&self, state: &mut dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()>;
}

/// The gradient of one variable before it is applied. It is mutable: here workers add their
/// gradients.
pub enum GradientMut<'a> {
    /// The full gradient, of the variable's size.
    Dense(&'a mut [f32]),
    /// The gradients of some rows of the variable; an index may occur several times.
    Rows {
        /// The row indices.
        indices: &'a [i64],
        /// The gradients of these rows.
        values: &'a mut [f32],
    },
}

/// A callback that sees every gradient before it is applied, in the order of the apply steps.
pub type OnGradient<'a> = &'a mut dyn FnMut(VarId, GradientMut<'_>) -> Result<()>;

/// The arguments of one run.
#[derive(Default)]
pub struct RunArgs<'a> {
    /// One array for each of the program's feeds.
    pub feeds: &'a [Array],
    /// The number of the step, for randomness.
    pub step: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// The index of this batch's first row in the global batch.
    pub row_offset: u64,
    /// Called between the gradients and the updates. Only [`Executable::step`] calls it.
    pub on_gradient: Option<OnGradient<'a>>,
    /// Records the time of every step. By default nothing is timed.
    pub trace: Option<&'a mut Trace>,
}

impl RunArgs<'_> {
    /// The same arguments with other feeds, which may have a shorter lifetime.
    pub fn with_feeds<'b>(&'b mut self, feeds: &'b [Array]) -> RunArgs<'b> {
        let RunArgs { step, seed, row_offset, .. } = *self;
        let on_gradient = self.on_gradient.as_mut().map(|f| &mut **f as OnGradient<'b>);
        RunArgs { feeds, step, seed, row_offset, on_gradient, trace: self.trace.as_deref_mut() }
    }
}

/// The values of variables, by name.
///
/// A state is live while one owner trains it. Inside an `Arc` it is frozen: nobody writes to it
/// again. A program finds its variables by name. The variables it reads must exist with the
/// program's dtypes and sizes.
pub trait State: Any + Send + Sync {
    /// Whether the state holds this variable, since it was placed or last extended.
    fn holds(&self, name: &str) -> bool;

    /// Returns the current value of a variable. Later steps do not change it. A frozen state shares
    /// its memory where it can; a live one makes a copy.
    fn read(&self, name: &str) -> Result<Array>;

    /// Replaces a variable's value; dtype and sizes must fit.
    fn write(&mut self, name: &str, value: &Array) -> Result<()>;

    /// Adds the variables that the state does not hold yet, and fills each with its initializer.
    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()>;

    /// Adds the variables that the state does not hold yet, and gives some variables these values;
    /// dtypes and sizes must fit. Other new variables are filled with their initializers. The state
    /// takes the memory of values that nobody else holds, where it can.
    fn extend_with(&mut self, variables: &Variables, seed: u64, values: Vec<(VarId, Array)>) -> Result<()> {
        self.extend(variables, seed)?;
        values.iter().try_for_each(|(id, value)| self.write(&variables.spec(*id).name, value))
    }

    /// Ends the training of the state: nobody writes to it again.
    fn freeze(self: Box<Self>) -> Arc<dyn State>;

    /// Returns an independent copy, which further training does not change.
    fn copy(&self) -> Result<Box<dyn State>>;

    /// The state as `Any`, for the executor that placed it.
    fn as_any(&self) -> &dyn Any;

    /// The state as mutable `Any`, for the executor that placed it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// The error for a variable of a program that the state does not hold.
pub fn missing(name: &str) -> Error {
    Error::config(format!("the state has no variable `{name}`")).help("add it with State::extend")
}

/// The error for an array that does not fit a variable.
pub fn misfit(name: &str, given: (DType, &[usize]), held: (DType, &[usize])) -> Error {
    Error::shape(format!(
        "the value for variable `{name}` is {}{:?}; the variable is {}{:?}",
        given.0, given.1, held.0, held.1
    ))
}

/// The error for a state that another executor placed.
pub fn foreign() -> Error {
    Error::config("this state was placed by another executor")
        .help("place it with the executor that compiled the program")
}
