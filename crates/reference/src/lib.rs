//! The reference executor: every node separately, floats in f64, integers in i64, no threads.
//!
//! It shows that executors can be exchanged, detects errors of the others, and is exact enough for
//! finite differences of gradients. In a run, `sizes` binds the feeds, `evaluate` selects each
//! node's kernel from the families here, and `apply` collects the writes and commits them at the
//! end.

mod apply;
mod combine;
mod elementwise;
mod evaluate;
#[cfg(test)]
mod gradient_check;
mod index;
mod layout;
mod product;
mod recurrent;
mod reduce;
mod resize;
mod softmax;
mod state;
#[cfg(test)]
mod tensorflow;
#[cfg(test)]
mod tests;
mod value;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use estimand_graph::cost::cost;
use estimand_graph::draw::Position;
use estimand_graph::executor::{Executable, Executor, RunArgs, State, foreign};
use estimand_graph::op::{Op, Variable};
use estimand_graph::sizes::{SizePlan, Sizes, resolve};
use estimand_graph::trace::{self, Phase, Trace};
use estimand_graph::{Node, Program, Step, Value, Variables};
use estimand_tensor::{Array, Error, Result};
use indexmap::IndexMap;

use apply::Writes;
use state::Live;
use value::Wide;

/// An executor for readability: naive kernels in f64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Executor for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn place(&self, variables: &Variables, seed: u64) -> Result<Box<dyn State>> {
        let mut live = Live::default();
        live.extend(variables, seed)?;
        Ok(Box::new(live))
    }

    fn freeze(&self, values: IndexMap<String, Array>) -> Result<Arc<dyn State>> {
        Ok(Arc::new(Live::of(&values)?))
    }

    fn compile(&self, program: Program) -> Result<Arc<dyn Executable>> {
        let mut constants = HashMap::new();
        for value in program.steps().iter().flat_map(|step| &step.inputs).chain(program.fetches()) {
            if let Op::Constant(constant) = &program.body().node(value.node).op {
                constants.insert(*value, Arc::new(Wide::from_array(&constant.0)?));
            }
        }
        let sizes = SizePlan::new(&program);
        Ok(Arc::new(Plain { program, sizes, constants }))
    }
}

/// A program whose steps are single nodes.
struct Plain {
    program: Program,
    sizes: SizePlan,
    constants: HashMap<Value, Arc<Wide>>,
}

impl Executable for Plain {
    fn program(&self) -> &Program {
        &self.program
    }

    fn forward(&self, state: &dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        let live = state.as_any().downcast_ref::<Live>().ok_or_else(foreign)?;
        self.run(live, args, outputs, false).map(drop)
    }

    fn step(&self, state: &mut dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        let live = state.as_any_mut().downcast_mut::<Live>().ok_or_else(foreign)?;
        self.run(live, args, outputs, true)?.commit(self.program.body(), live)
    }
}

impl Plain {
    /// Computes the fetches and, in a step, the values to write.
    fn run(&self, live: &Live, mut args: RunArgs<'_>, outputs: &mut Vec<Array>, is_step: bool) -> Result<Writes> {
        let program = &self.program;
        let mut sizes = Sizes::default();
        self.sizes.bind(program, args.feeds, &mut sizes)?;
        let mut values = Values { program, constants: &self.constants, live, computed: HashMap::new() };
        for (&fed, array) in program.feeds().iter().zip(args.feeds) {
            values.computed.insert(fed, Arc::new(Wide::from_array(array)?));
        }
        let position = Position { seed: args.seed, step: args.step, row_offset: args.row_offset };
        for (i, step) in program.compute_steps().iter().enumerate() {
            let node = program.body().node(step.kernel.node());
            let start = trace::start(&args.trace);
            let results = values
                .inputs(step)
                .and_then(|inputs| evaluate::evaluate(node, &inputs, &sizes, position))
                .and_then(|results| self.spread(step, results, &sizes))
                .map_err(|error| at(node, error))?;
            values.computed.extend(step.outputs.iter().copied().zip(results.into_iter().map(Arc::new)));
            values.note(i, start, &mut args.trace)?;
        }
        *outputs = program.fetches().iter().map(|&fetch| values.get(fetch)?.to_array()).collect::<Result<_>>()?;

        let mut writes = Writes::default();
        if !is_step {
            return Ok(writes);
        }
        for (i, step) in program.apply_steps().iter().enumerate() {
            let node = program.body().node(step.kernel.node());
            let start = trace::start(&args.trace);
            let inputs = values.inputs(step)?;
            match &node.op {
                Op::Assign(assign) => writes.assign(assign.0, inputs[0].clone()),
                Op::Apply(apply) => writes
                    .apply(program.body(), values.live, apply, &inputs, &mut args.on_gradient)
                    .map_err(|error| at(node, error))?,
                _ => return Err(at(node, Error::internal("a step that writes nothing"))),
            }
            values.note(program.compute_steps().len() + i, start, &mut args.trace)?;
        }
        Ok(writes)
    }
}

impl Plain {
    /// Broadcasts results to the shape of their node: an element-wise step may read a single number
    /// where its graph has that number broadcast to a shape (see `pass/reroute.rs`).
    fn spread(&self, step: &Step, results: Vec<Wide>, sizes: &Sizes) -> Result<Vec<Wide>> {
        if !step.is_elementwise(self.program.body()) {
            return Ok(results);
        }
        let spread =
            |(wide, value): (Wide, &Value)| wide.broadcast_to(&resolve(&self.program.spec(*value).shape, sizes)?);
        results.into_iter().zip(&step.outputs).map(spread).collect()
    }
}

/// Adds the node to an error.
fn at(node: &Node, error: Error) -> Error {
    error.context(format!("in `{}` ({})", node.name, node.op.name())).at(node.site)
}

/// The values that a step of a run can read.
struct Values<'a> {
    program: &'a Program,
    constants: &'a HashMap<Value, Arc<Wide>>,
    live: &'a Live,
    computed: HashMap<Value, Arc<Wide>>,
}

impl Values<'_> {
    fn get(&self, value: Value) -> Result<Arc<Wide>> {
        if let Op::Variable(Variable(id)) = self.program.body().node(value.node).op {
            return self.live.value(self.program.body().variables().spec(id)).cloned();
        }
        let found = self.computed.get(&value).or_else(|| self.constants.get(&value));
        found.cloned().ok_or_else(|| {
            let name = &self.program.body().node(value.node).name;
            Error::internal(format!("output {} of `{name}` was not computed", value.output))
        })
    }

    /// Records the time of a step, if there is a trace.
    fn note(&self, i: usize, start: u64, trace: &mut Option<&mut Trace>) -> Result<()> {
        let Some(trace) = trace else { return Ok(()) };
        let step = &self.program.steps()[i];
        let outputs = step.outputs.iter().map(|&value| self.get(value)).collect::<Result<Vec<_>>>()?;
        let inputs = self.inputs(step)?;
        trace.add(Phase::Step, i, step.kernel.node(), start, || {
            let x: Vec<&[usize]> = inputs.iter().map(|x| &x.dims[..]).collect();
            let y: Vec<&[usize]> = outputs.iter().map(|y| &y.dims[..]).collect();
            cost(self.program, step, &x, &y)
        });
        Ok(())
    }

    fn inputs(&self, step: &Step) -> Result<Vec<Arc<Wide>>> {
        step.inputs.iter().map(|&value| self.get(value)).collect()
    }
}
