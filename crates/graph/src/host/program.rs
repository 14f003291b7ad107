//! `HostProgram`: the host's part of a program, ready to run.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_tensor::{Array, Error, Result};
use smallvec::SmallVec;

use super::HostOp;
use super::island::Island;
use super::rearrange::Rearrange;
use crate::graph::{Body, NodeId, Value};
use crate::op::Op;
use crate::program::{Program, Step};
use crate::sizes::check_feed;

/// Turns what a caller feeds into what a step is fed. A pure function: threads may share it and run it ahead of the step.
///
/// ```
/// use estimand_graph::{Graph, HostProgram, Program};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let g = Graph::new();
/// let words = g.placeholder("words", DType::Str, [Dim::BATCH]);
/// let lengths = words.string_length();
/// let program = Program::new(std::sync::Arc::new(g.body().clone()), &[lengths.value()])?;
/// let host = HostProgram::new(&program)?;
/// let step_feeds = host.run(&[Array::from_strings([2], ["abc", "wide"])?])?;
/// assert_eq!(step_feeds[0].as_slice::<i32>()?, [3, 4]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct HostProgram {
    body: Arc<Body>,
    placeholders: Vec<NodeId>,
    work: Vec<Work>,
    n_slots: usize,
    /// Constants, and where they are put before the work begins.
    constants: Vec<(usize, Array)>,
    outputs: Vec<usize>,
}

/// One piece of work: reads some slots, writes others.
struct Work {
    node: NodeId,
    reads: SmallVec<[usize; 4]>,
    writes: SmallVec<[usize; 4]>,
    kind: Kind,
}

enum Kind {
    /// A host op.
    Op(HostOp),
    /// Numeric nodes on the kernels of `cpu`.
    Island(Island),
    /// A node that moves strings.
    Rearrange(Rearrange),
}

impl HostProgram {
    /// The host's part of a program.
    pub fn new(program: &Program) -> Result<HostProgram> {
        let mut slots = Slots { body: &program.body, of: HashMap::new(), constants: Vec::new() };
        // What is fed comes first, so that its slots are known.
        for &node in &program.placeholders {
            slots.slot(Value { node, output: 0 });
        }
        let mut work = Vec::new();
        for group in groups(program) {
            work.push(compile(program, group, &mut slots)?);
        }
        let outputs = program.feeds.iter().map(|&v| slots.slot(v)).collect();
        let Slots { of, constants, .. } = slots;
        Ok(HostProgram {
            body: program.body.clone(),
            placeholders: program.placeholders.clone(),
            work,
            n_slots: of.len(),
            constants,
            outputs,
        })
    }

    /// Whether there is nothing to do: the step is fed the placeholders themselves.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// What the step is fed, from one array for each placeholder.
    pub fn run(&self, feeds: &[Array]) -> Result<Vec<Array>> {
        if feeds.len() != self.placeholders.len() {
            let names: Vec<String> =
                self.placeholders.iter().map(|&id| format!("`{}`", self.body.node(id).name)).collect();
            return Err(Error::config(format!(
                "{} values for {} placeholders: {}",
                feeds.len(),
                names.len(),
                names.join(", ")
            )));
        }
        let mut slots: Vec<Option<Array>> = vec![None; self.n_slots];
        for (i, (&node, array)) in self.placeholders.iter().zip(feeds).enumerate() {
            check_feed(&self.body, Value { node, output: 0 }, array)?;
            slots[i] = Some(array.clone());
        }
        for (slot, array) in &self.constants {
            slots[*slot] = Some(array.clone());
        }
        for work in &self.work {
            let read =
                |&slot: &usize| slots[slot].clone().ok_or_else(|| Error::internal("a value is read before it is made"));
            let inputs = work.reads.iter().map(read).collect::<Result<SmallVec<[Array; 4]>>>()?;
            let results = match &work.kind {
                Kind::Op(op) => op.rules().run(&inputs),
                Kind::Island(island) => island.run(&inputs),
                Kind::Rearrange(rearrange) => rearrange.run(&inputs),
            };
            let node = self.body.node(work.node);
            let results =
                results.map_err(|e| e.context(format!("{} `{}`", node.op.name(), node.name)).at(node.site))?;
            for (&slot, array) in work.writes.iter().zip(results) {
                slots[slot] = Some(array);
            }
        }
        let output = |&slot: &usize| slots[slot].clone().ok_or_else(|| Error::internal("a fed value was not made"));
        self.outputs.iter().map(output).collect()
    }
}

/// Numbers for values, and the constants among them.
struct Slots<'a> {
    body: &'a Body,
    of: HashMap<Value, usize>,
    constants: Vec<(usize, Array)>,
}

impl Slots<'_> {
    fn slot(&mut self, value: Value) -> usize {
        let next = self.of.len();
        let slot = *self.of.entry(value).or_insert(next);
        if slot == next
            && let Op::Constant(constant) = &self.body.node(value.node).op
        {
            self.constants.push((slot, constant.0.clone()));
        }
        slot
    }
}

/// Host ops and moves of strings on their own, other nodes in runs as long as possible.
fn groups(program: &Program) -> Vec<&[Step]> {
    let is_numeric = |step: &Step| {
        let node = program.body.node(step.kernel.node());
        !matches!(node.op, Op::Host(_)) && !Rearrange::is_for(program, step)
    };
    program.host.chunk_by(|a, b| is_numeric(a) && is_numeric(b)).collect()
}

fn compile(program: &Program, group: &[Step], slots: &mut Slots<'_>) -> Result<Work> {
    let step = &group[0];
    let node = step.kernel.node();
    let mut numbers = |values: &[Value]| -> SmallVec<[usize; 4]> { values.iter().map(|&v| slots.slot(v)).collect() };
    Ok(match &program.body.node(node).op {
        Op::Host(op) => {
            Work { node, reads: numbers(&step.inputs), writes: numbers(&step.outputs), kind: Kind::Op(op.clone()) }
        }
        _ if Rearrange::is_for(program, step) => {
            let rearrange = Rearrange::new(program, step)?;
            let reads = numbers(rearrange.reads());
            Work { node, reads, writes: numbers(&step.outputs), kind: Kind::Rearrange(rearrange) }
        }
        _ => {
            let island = Island::new(program, group)?;
            let (reads, writes) = (numbers(island.reads()), numbers(island.makes()));
            Work { node, reads, writes, kind: Kind::Island(island) }
        }
    })
}
