//! The seam between programs and machines: an executor places state, compiles programs and runs them.

use std::any::Any;
use std::sync::Arc;

use estimand_tensor::{Array, Result};

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

    /// Prepares a program. An op that this executor lacks is an error that names it.
    fn compile(&self, program: Program) -> Result<Arc<dyn Executable>>;

    /// What the machine can do at best, measured now, which takes some hundredths of a second; `None` where speed is no aim.
    fn rates(&self) -> Option<Rates> {
        None
    }
}

/// A program ready to run.
pub trait Executable: Send + Sync {
    /// The program it was made from.
    fn program(&self) -> &Program;

    /// Runs it. The fetched values replace `outputs`, in memory that is reused when it is large enough.
    fn run(&self, state: &mut dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()>;
}

/// Which part of a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Entry {
    /// Everything.
    #[default]
    Step,
    /// Only what comes before variables change.
    Forward,
}

/// The gradient of one variable, ready to be applied, and open to change: this is where workers add theirs.
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
    /// Which part runs.
    pub entry: Entry,
    /// One array for each of the program's feeds.
    pub feeds: &'a [Array],
    /// The number of the step, for randomness.
    pub step: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of this batch's first row in the global batch.
    pub row_offset: u64,
    /// Called between gradients and updates.
    pub on_gradient: Option<OnGradient<'a>>,
    /// Gets the time of every step. By default, nobody looks at the clock.
    pub trace: Option<&'a mut Trace>,
}

impl RunArgs<'_> {
    /// The same with other feeds, which may live shorter.
    pub(crate) fn with_feeds<'b>(&'b mut self, feeds: &'b [Array]) -> RunArgs<'b> {
        let RunArgs { entry, step, seed, row_offset, .. } = *self;
        let on_gradient = self.on_gradient.as_mut().map(|f| &mut **f as OnGradient<'b>);
        RunArgs { entry, feeds, step, seed, row_offset, on_gradient, trace: self.trace.as_deref_mut() }
    }
}

/// The live values of a model's variables.
pub trait State: Any + Send {
    /// Whether it holds a variable: it was there when the state was placed or last extended.
    fn holds(&self, id: VarId) -> bool;

    /// The value of a variable now.
    fn read(&self, id: VarId) -> Result<Array>;

    /// Replaces a variable's value; dtype and sizes must fit.
    fn write(&mut self, id: VarId, value: &Array) -> Result<()>;

    /// Adds variables that were made after the state was placed.
    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()>;

    /// Itself, for the executor it belongs to.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}
