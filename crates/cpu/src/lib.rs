//! The CPU executor: compiled programs over the kernels of `estimand_tensor::cpu`, in memory that
//! is reused from run to run.
//!
//! `pass` fuses several nodes into one kernel. `tile` compiles element-wise groups. `plan` decides
//! where values live. `workspace` holds the memory of one run. `call` and its neighbours pass each
//! step to its kernel. `apply` runs the updates.

mod apply;
mod arena;
mod call;
mod index;
mod kernel;
mod layout;
mod operands;
mod pass;
mod plan;
mod products;
mod rates;
mod recurrent;
mod reductions;
mod softmax;
mod state;
mod summed;
mod tile;
mod windows;
mod workspace;

use std::collections::BTreeSet;
use std::sync::Arc;

use estimand_graph::executor::{Executable, Executor, RunArgs, State, foreign};
use estimand_graph::sizes::SizePlan;
use estimand_graph::{NodeId, Op, Program, Rates, Step, VarId, Variables};
use estimand_tensor::cpu::elementwise::TileProgram;
use estimand_tensor::cpu::float_mode::flush_subnormals;
use estimand_tensor::parallel::{Idle, Pool};
use estimand_tensor::{Array, DType, Error, Result};
use indexmap::IndexMap;
use smallvec::SmallVec;

use kernel::{After, Fused, fused};
use plan::{Place, Plan};
use state::CpuState;
use summed::Summed;
use workspace::Workspace;

/// Runs programs on the processor's cores. The number of threads changes only the speed, not the
/// results.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Threads,
    /// The names of the passes that are skipped.
    left_out: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum Threads {
    /// One thread for each core, shared by the whole process.
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
    /// Creates an executor with one thread for each core.
    pub fn new() -> Cpu {
        Cpu { pool: Threads::Global, left_out: Vec::new() }
    }

    /// Creates an executor with its own pool of `n` threads.
    pub fn with_threads(n: usize) -> Cpu {
        Cpu { pool: Threads::Own(Arc::new(Pool::new(n.max(1)))), left_out: Vec::new() }
    }

    /// Returns the names of the passes, in the order they run.
    pub fn pass_names() -> impl Iterator<Item = &'static str> {
        pass::ALL.iter().map(|pass| pass.name)
    }

    /// Skips some passes: slower, with the same results bit for bit.
    pub fn without(mut self, passes: &[&'static str]) -> Cpu {
        self.left_out.extend(passes);
        self
    }
}

impl Executor for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn place(&self, variables: &Variables, seed: u64) -> Result<Box<dyn State>> {
        Ok(Box::new(CpuState::new(variables, seed)?))
    }

    fn freeze(&self, values: IndexMap<String, Array>) -> Result<Arc<dyn State>> {
        Ok(Arc::new(CpuState::frozen(values)?))
    }

    fn compile(&self, program: Program) -> Result<Arc<dyn Executable>> {
        let program = estimand_graph::pass::run(&pass::ALL, program, |name| !self.left_out.contains(&name));
        Ok(Arc::new(CpuExecutable::new(program, self.pool.clone())?))
    }

    fn rates(&self) -> Option<Rates> {
        Some(rates::measure(&self.pool))
    }
}

/// A compiled program: its memory plan and its compiled element-wise groups.
struct CpuExecutable {
    program: Program,
    plan: Plan,
    sizes: SizePlan,
    steps: Vec<CompiledStep>,
    /// The plan's indices of the fetched values.
    fetches: Vec<usize>,
    pool: Threads,
    variables: Vec<VarId>,
    /// Memory that no run uses at the moment. A run takes a workspace and puts it back afterwards.
    idle: Idle<Workspace>,
}

/// The data of a step that a run needs, looked up once.
struct CompiledStep {
    node: NodeId,
    /// The plan's indices of the step's inputs and outputs.
    inputs: SmallVec<[usize; 4]>,
    outputs: SmallVec<[usize; 2]>,
    work: Work,
}

enum Work {
    /// An element-wise group.
    Tile(TileProgram),
    /// An element-wise group whose results are added up.
    Summed(Summed),
    /// The result is the input in another shape.
    View,
    /// A kernel of `call`; a product with its operations on the result.
    Node(After),
    /// A convolution followed by a max pooling of its result.
    PooledProduct { after: After, pool: NodeId },
    /// The gradients of a convolution from the gradient of the max pooling after it.
    PooledGradient { pool: NodeId },
    /// Writes a variable; `staged` lists the inputs that are copied before anything is written.
    Write { staged: SmallVec<[Stage; 2]> },
}

/// When an input of a writing step is copied first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Never,
    /// If gradients may be changed before they are applied: the memory does not belong to the run,
    /// or two steps read it.
    IfChanged,
    /// Always, because it is a variable: every read in a run sees the value from before the run.
    Always,
}

impl CpuExecutable {
    fn new(program: Program, pool: Threads) -> Result<CpuExecutable> {
        for step in program.steps() {
            call::check_supported(&program, step)?;
        }
        let program = pass::group_singles(program);
        let plan = Plan::new(&program);
        let sizes = SizePlan::new(&program);
        let n_writers = CpuExecutable::n_writers(&program);
        let compile = |step: &Step| -> Result<CompiledStep> {
            let work = match fused(&step.kernel) {
                Some(Fused::Elementwise(members)) => {
                    Work::Tile(tile::compile(program.body(), members, &step.inputs, &step.outputs)?)
                }
                Some(Fused::Summed { members, made, sums }) => {
                    Work::Summed(Summed::new(&program, step, members, made, sums)?)
                }
                Some(Fused::Which(_)) => Work::Node(After::default()),
                Some(Fused::Product { after, pool: None, .. }) => Work::Node(*after),
                Some(Fused::Product { after, pool: Some(pool), .. }) => {
                    Work::PooledProduct { after: *after, pool: *pool }
                }
                Some(Fused::PooledGradient { pool, .. }) => Work::PooledGradient { pool: *pool },
                None if plan::is_view(&program, &step.kernel) => Work::View,
                None => match program.body().node(step.kernel.node()).op {
                    Op::Assign(_) | Op::Apply(_) => {
                        Work::Write { staged: CpuExecutable::staged(&plan, step, &n_writers) }
                    }
                    _ => Work::Node(After::default()),
                },
            };
            let inputs = step.inputs.iter().map(|v| plan.number[v]).collect();
            let outputs = step.outputs.iter().map(|v| plan.number[v]).collect();
            Ok(CompiledStep { node: step.kernel.node(), inputs, outputs, work })
        };
        let steps = program.steps().iter().map(compile).collect::<Result<_>>()?;
        let fetches = program.fetches().iter().map(|value| plan.number[value]).collect();
        let variables = used_variables(&program, &plan);
        Ok(CpuExecutable { program, plan, sizes, steps, fetches, pool, variables, idle: Idle::default() })
    }

    fn dtype(&self, number: usize) -> DType {
        self.plan.dtypes[number]
    }

    /// Adds a node and its source line to an error.
    fn located(&self, error: Error, node: NodeId) -> Error {
        let node = self.program.body().node(node);
        error.context(format!("in {} `{}`", node.op.name(), node.name)).at(node.site)
    }
}

impl Executable for CpuExecutable {
    fn program(&self) -> &Program {
        &self.program
    }

    fn forward(&self, state: &dyn State, mut args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        let state = state.as_any().downcast_ref::<CpuState>().ok_or_else(foreign)?;
        self.in_workspace(|workspace| self.evaluate(workspace, state, &mut args, outputs))
    }

    fn step(&self, state: &mut dyn State, mut args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        let state = state.as_any_mut().downcast_mut::<CpuState>().ok_or_else(foreign)?;
        state.check_live()?;
        self.in_workspace(|workspace| {
            self.evaluate(workspace, state, &mut args, outputs)?;
            self.apply(workspace, state, &mut args)
        })
    }
}

impl CpuExecutable {
    /// Runs a closure in memory that no other run uses, with subnormal numbers flushed to zero.
    fn in_workspace(&self, run: impl FnOnce(&mut Workspace) -> Result<()>) -> Result<()> {
        let mut workspace = self.idle.take().unwrap_or_default();
        let result = flush_subnormals(|| run(&mut workspace));
        self.idle.keep(workspace);
        result
    }

    fn evaluate(
        &self,
        workspace: &mut Workspace,
        state: &CpuState,
        args: &mut RunArgs<'_>,
        outputs: &mut Vec<Array>,
    ) -> Result<()> {
        workspace.bind(self, args.feeds, state)?;
        self.compute(workspace, args)?;
        workspace.fetch(self, args.feeds, outputs)
    }
}

/// The variables that a program reads or writes.
fn used_variables(program: &Program, plan: &Plan) -> Vec<VarId> {
    let body = program.body();
    let mut used: BTreeSet<VarId> = BTreeSet::new();
    used.extend(plan.places.iter().filter_map(|place| match place {
        Place::Variable(id) => Some(*id),
        Place::Feed(_) | Place::Constant(_) | Place::Buffer(_) => None,
    }));
    for step in program.apply_steps() {
        match &body.node(step.kernel.node()).op {
            Op::Assign(assign) => drop(used.insert(assign.0)),
            Op::Apply(apply) => {
                used.insert(apply.variable);
                used.extend(&apply.slots);
                let config = &body.optimizers()[apply.optimizer.0 as usize];
                used.insert(config.iterations);
                used.extend(config.rate_variable);
            }
            _ => {}
        }
    }
    used.into_iter().collect()
}
