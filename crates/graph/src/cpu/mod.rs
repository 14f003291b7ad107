//! The CPU executor: compiled programs over the kernels of `estimand_tensor::cpu`, in memory that is reused from run to run.
//!
//! `tile` compiles element-wise groups, `plan` decides where values live, `workspace` holds the memory of one run, `call` and its
//! neighbours hand each step to its kernel, `apply` runs the updates.

mod apply;
mod arena;
mod call;
mod index;
mod layout;
mod plan;
mod products;
mod rates;
mod recurrent;
mod reductions;
mod softmax;
pub(crate) mod tile;
mod windows;
mod workspace;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use estimand_tensor::cpu::elementwise::TileProgram;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, DType, Error, Result};
use smallvec::SmallVec;

use crate::cost::Rates;
use crate::executor::{Entry, Executable, Executor, RunArgs, State};
use crate::graph::NodeId;
use crate::op::Op;
use crate::program::{Kernel, Member, Program, Step};
use crate::sizes::SizePlan;
use crate::variables::{VarId, Variables};
use plan::Plan;
use workspace::Workspace;

/// Runs programs on the processor's cores. The number of threads changes the speed and nothing else.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Threads,
}

#[derive(Clone, Debug)]
enum Threads {
    /// One for each core, shared by the whole process.
    Global,
    Own(Arc<Pool>),
}

impl std::ops::Deref for Threads {
    type Target = Pool;
    fn deref(&self) -> &Pool {
        match self {
            Threads::Global => Pool::global(),
            Threads::Own(pool) => pool,
        }
    }
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu::new()
    }
}

impl Cpu {
    /// One thread for each core.
    pub fn new() -> Cpu {
        Cpu { pool: Threads::Global }
    }

    /// A pool of its own with this many threads.
    pub fn with_threads(n: usize) -> Cpu {
        Cpu { pool: Threads::Own(Arc::new(Pool::new(n.max(1)))) }
    }
}

impl Executor for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn place(&self, variables: &Variables, seed: u64) -> Result<Box<dyn State>> {
        let mut state = CpuState::default();
        state.extend(variables, seed)?;
        Ok(Box::new(state))
    }

    fn compile(&self, program: Program) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(CpuExecutable::new(program, self.pool.clone())?))
    }

    fn rates(&self) -> Option<Rates> {
        Some(rates::measure(&self.pool))
    }
}

/// Variables in the machine's memory. Each owns its buffer alone.
#[derive(Default)]
struct CpuState {
    arrays: Vec<Array>,
    /// Where each array's elements begin.
    starts: Vec<*mut u8>,
}

// SAFETY: `starts` points into `arrays`, which the state owns alone.
unsafe impl Send for CpuState {}

impl CpuState {
    fn start(&self, id: VarId) -> *mut u8 {
        self.starts[id.0 as usize]
    }

    fn array(&self, id: VarId) -> Result<&Array> {
        self.arrays.get(id.0 as usize).ok_or_else(|| {
            Error::config(format!("variable {} was made after the state was placed", id.0))
                .help("add it with State::extend")
        })
    }

    fn put(&mut self, index: usize, value: Array) -> Result<()> {
        let mut array = value;
        // Kernels are fastest on memory that begins at a cache line, which a vector's may not.
        if array.as_mut_ptr().is_none_or(|start| !(start as usize).is_multiple_of(64)) {
            array = own(&array)?;
        }
        // Strings have no address; no kernel asks for one.
        let start = array.as_mut_ptr().unwrap_or(std::ptr::null_mut());
        match self.arrays.get_mut(index) {
            Some(held) => (*held, self.starts[index]) = (array, start),
            None => {
                self.arrays.push(array);
                self.starts.push(start);
            }
        }
        Ok(())
    }

    /// The elements of an f32 variable, to be changed.
    ///
    /// # Safety
    /// Nothing else may use them meanwhile.
    #[allow(clippy::mut_from_ref, reason = "several variables are open at once; the contract forbids aliasing")]
    unsafe fn weights(&self, id: VarId) -> &mut [f32] {
        let array = &self.arrays[id.0 as usize];
        debug_assert_eq!(array.dtype(), DType::F32);
        // SAFETY: the array holds `len` floats from `start`; exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.start(id).cast(), array.len()) }
    }
}

/// A copy that shares nothing.
fn own(array: &Array) -> Result<Array> {
    match array.dtype() {
        DType::Str => Array::from_strings(array.dims(), array.strings()?),
        dtype => Array::from_bytes(dtype, array.dims(), array.bytes()),
    }
}

impl State for CpuState {
    fn holds(&self, id: VarId) -> bool {
        (id.0 as usize) < self.arrays.len()
    }

    fn read(&self, id: VarId) -> Result<Array> {
        own(self.array(id)?)
    }

    fn write(&mut self, id: VarId, value: &Array) -> Result<()> {
        let held = self.array(id)?;
        if value.dtype() != held.dtype() || value.dims() != held.dims() {
            return Err(Error::shape(format!(
                "{}{:?} written to a variable of {}{:?}",
                value.dtype(),
                value.dims(),
                held.dtype(),
                held.dims()
            )));
        }
        self.put(id.0 as usize, own(value)?)
    }

    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()> {
        for (id, _) in variables.iter().skip(self.arrays.len()) {
            self.put(id.0 as usize, variables.initial(id, seed)?)?;
        }
        Ok(())
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A program with its memory plan and its element-wise groups compiled.
struct CpuExecutable {
    program: Program,
    plan: Plan,
    sizes: SizePlan,
    steps: Vec<CompiledStep>,
    pool: Threads,
    /// Memory of runs that are not under way; taken by a run and put back after it.
    idle: Mutex<Vec<Workspace>>,
}

/// What a run needs of a step, looked up once.
struct CompiledStep {
    node: NodeId,
    /// The plan's numbers of the step's inputs and outputs.
    inputs: SmallVec<[usize; 4]>,
    outputs: SmallVec<[usize; 2]>,
    work: Work,
}

enum Work {
    /// An element-wise group.
    Tile(TileProgram),
    /// The result is the input in another shape.
    View,
    /// A kernel of `call`, with what a product does to its result.
    Node { bias: bool, relu: bool },
    /// A convolution and the max pooling of its result.
    PooledProduct { bias: bool, relu: bool, pool: NodeId },
    /// The gradients of a convolution from that of a max pooling behind it.
    PooledGradient { pool: NodeId },
    /// Writes a variable; says which inputs are copied before anything is written.
    Write { staged: SmallVec<[Stage; 2]> },
}

/// When an input of a step that writes is copied first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Never,
    /// If gradients may be changed before they are applied: it is not ours to change, or two steps read it.
    IfChanged,
    /// It is a variable: every read of a run sees the value before it.
    Always,
}

impl CpuExecutable {
    fn new(program: Program, pool: Threads) -> Result<CpuExecutable> {
        for step in program.steps() {
            call::check_supported(&program, step)?;
        }
        let program = group_singles(program);
        let plan = Plan::new(&program);
        let sizes = SizePlan::new(&program);
        let n_writers = CpuExecutable::n_writers(&program);
        let compile = |step: &Step| -> Result<CompiledStep> {
            let work = match &step.kernel {
                Kernel::Elementwise(members) => {
                    Work::Tile(tile::compile(program.body(), members, &step.inputs, &step.outputs)?)
                }
                kernel if plan::is_view(&program, kernel) => Work::View,
                Kernel::Node(id) if matches!(program.body().node(*id).op, Op::Assign(_) | Op::Apply(_)) => {
                    Work::Write { staged: CpuExecutable::staged(&plan, step, &n_writers) }
                }
                Kernel::Node(_) | Kernel::Which(_) => Work::Node { bias: false, relu: false },
                Kernel::Product { bias, relu, pool: None, .. } => Work::Node { bias: *bias, relu: *relu },
                Kernel::Product { bias, relu, pool: Some(pool), .. } => {
                    Work::PooledProduct { bias: *bias, relu: *relu, pool: *pool }
                }
                Kernel::PooledGradient { pool, .. } => Work::PooledGradient { pool: *pool },
            };
            let inputs = step.inputs.iter().map(|v| plan.number[v]).collect();
            let outputs = step.outputs.iter().map(|v| plan.number[v]).collect();
            Ok(CompiledStep { node: step.kernel.node(), inputs, outputs, work })
        };
        let steps = program.steps().iter().map(compile).collect::<Result<_>>()?;
        Ok(CpuExecutable { program, plan, sizes, steps, pool, idle: Mutex::new(Vec::new()) })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Workspace>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dtype(&self, number: usize) -> DType {
        self.program.spec(self.plan.values[number]).dtype
    }

    /// Adds a node and its line to an error.
    fn located(&self, error: Error, node: NodeId) -> Error {
        let node = self.program.body().node(node);
        error.context(format!("{} `{}`", node.op.name(), node.name)).at(node.site)
    }
}

/// Element-wise nodes that no pass has grouped are groups of one: there is only one way to compute them.
fn group_singles(mut program: Program) -> Program {
    let body = program.body.clone();
    for step in &mut program.steps {
        if crate::pass::is_elementwise(&body, step) {
            let member = Member { node: step.kernel.node(), reads: step.inputs.clone() };
            step.kernel = Kernel::Elementwise(vec![member]);
            step.inputs.retain(|v| tile::scalar_constant(&body, *v).is_none());
            // A tile reads an input once, however often the operation names it.
            let mut seen = Vec::new();
            step.inputs.retain(|v| {
                !seen.contains(v) && {
                    seen.push(*v);
                    true
                }
            });
        }
    }
    program
}

impl Executable for CpuExecutable {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&self, state: &mut dyn State, mut args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        let Some(state) = state.as_any_mut().downcast_mut::<CpuState>() else {
            return Err(Error::config("this state was placed by another executor"));
        };
        let taken = self.idle().pop();
        let mut workspace = taken.unwrap_or_default();
        let result = workspace.bind(self, args.feeds, state).and_then(|()| {
            self.compute(&mut workspace, &mut args)?;
            workspace.fetch(self, args.feeds, outputs)?;
            match args.entry {
                Entry::Forward => Ok(()),
                Entry::Step => self.apply(&mut workspace, state, &mut args),
            }
        });
        self.idle().push(workspace);
        result
    }
}
