//! `HostProgram`: a compiled part of a program that the host runs.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_graph::pass::{all_given, first_batch_value};
use estimand_graph::sizes::check_feed;
use estimand_graph::trace::{self, Phase, Trace};
use estimand_graph::{Body, Cost, HostOp, NodeId, Op, Program, Value};
use estimand_tensor::{Array, DType, Error, Result};
use smallvec::SmallVec;

use super::host_section::HostSection;
use super::numeric_steps::NumericSteps;
use super::rearrange::{Numbered, Rearrange};
use super::schedule::{Piece, schedule};

/// Computes the feeds of a step from the feeds of a caller. It is a pure function: threads may
/// share it and run it ahead of the step.
///
/// ```
/// use estimand_engine::HostProgram;
/// use estimand_graph::{Encoding, Graph, Program};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let g = Graph::new();
/// let words = g.placeholder("words", DType::Str, [Dim::BATCH]);
/// let lengths = words.string_length(Encoding::Bytes);
/// let program = Program::new(std::sync::Arc::new(g.body().clone()), &[lengths.value()])?;
/// let host = HostProgram::new(&program)?;
/// let step_feeds = host.run(&[Array::from_strings([2], ["abc", "wide"])?])?;
/// assert_eq!(step_feeds[0].as_slice::<i32>()?, [3, 4]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct HostProgram {
    body: Arc<Body>,
    given: Vec<Value>,
    work: Vec<Work>,
    n_slots: usize,
    /// Constants with their slots. They are stored before the work begins.
    constants: Vec<(usize, Array)>,
    outputs: Vec<usize>,
}

/// One unit of work: reads some slots and writes others.
struct Work {
    node: NodeId,
    reads: SmallVec<[usize; 4]>,
    writes: SmallVec<[usize; 4]>,
    kind: WorkKind,
}

enum WorkKind {
    /// A host op.
    Op(HostOp),
    /// Numeric nodes on the kernels of `cpu`.
    Numeric(NumericSteps),
    /// A node that moves strings.
    Rearrange(Rearrange),
}

impl HostProgram {
    /// Compiles the part before the steps: from the values of the placeholders to the feeds of the
    /// steps.
    pub fn new(program: &Program) -> Result<HostProgram> {
        let given = program.placeholders.iter().map(|&node| Value { node, output: 0 }).collect();
        let part = HostSection { body: program.body.clone(), steps: &program.host, given, results: &program.feeds };
        HostProgram::compile(&part)
    }

    /// Compiles the part after the steps: from their fetches to the results of the program.
    pub fn after(program: &Program) -> Result<HostProgram> {
        let body = Arc::new(all_given(&program.body));
        let (given, results) = (program.fetches.clone(), program.results.as_slice());
        HostProgram::compile(&HostSection { body, steps: &program.after, given, results })
    }

    fn compile(part: &HostSection<'_>) -> Result<HostProgram> {
        let mut slots = Slots { body: &part.body, of: HashMap::new(), constants: Vec::new() };
        // The given values come first, so that their slots are known.
        for &value in &part.given {
            slots.slot(value);
        }
        let mut work = Vec::new();
        let mut numbered: Option<Numbered> = None;
        // The first available value that determines the batch size.
        let mut batch_value = first_batch_value(&part.body, part.given.iter().copied());
        for piece in schedule(part) {
            work.push(compile(part, &piece, batch_value, &mut numbered, &mut slots)?);
            let made = match &piece {
                Piece::Single(step) => &step.outputs[..],
                Piece::Numbers(_, makes) => &makes[..],
            };
            batch_value = batch_value.or_else(|| first_batch_value(&part.body, made.iter().copied()));
        }
        let outputs = part.results.iter().map(|&v| slots.slot(v)).collect();
        let Slots { of, constants, .. } = slots;
        Ok(HostProgram {
            body: part.body.clone(),
            given: part.given.clone(),
            work,
            n_slots: of.len(),
            constants,
            outputs,
        })
    }

    /// Whether there is no work: the program returns the given values unchanged.
    pub fn is_empty(&self) -> bool {
        // The given values have the first slots, in order.
        self.work.is_empty() && self.outputs.iter().copied().eq(0..self.given.len())
    }

    /// Computes the results from one array for each given value. Before the steps, these are the
    /// placeholders.
    pub fn run(&self, given: &[Array]) -> Result<Vec<Array>> {
        self.run_traced(given, Phase::Host, None)
    }

    /// Like `run`; also records the times of its work as those of a part of the program.
    pub(crate) fn run_traced(
        &self,
        given: &[Array],
        section: Phase,
        mut trace: Option<&mut Trace>,
    ) -> Result<Vec<Array>> {
        if given.len() != self.given.len() {
            let names: Vec<String> = self.given.iter().map(|v| format!("`{}`", self.body.node(v.node).name)).collect();
            return Err(Error::config(format!(
                "{} values were given for {} placeholders: {}",
                given.len(),
                names.len(),
                names.join(", ")
            )));
        }
        let mut slots: Vec<Option<Array>> = vec![None; self.n_slots];
        for (i, (&value, array)) in self.given.iter().zip(given).enumerate() {
            check_feed(&self.body, value, array)?;
            slots[i] = Some(array.clone());
        }
        for (slot, array) in &self.constants {
            slots[*slot] = Some(array.clone());
        }
        for (index, work) in self.work.iter().enumerate() {
            let start = trace::start(&trace);
            let mut inner = trace.as_ref().map(|_| Trace::new());
            let read =
                |&slot: &usize| slots[slot].clone().ok_or_else(|| Error::internal("a value is read before it is made"));
            let inputs = work.reads.iter().map(read).collect::<Result<SmallVec<[Array; 4]>>>()?;
            let results = match &work.kind {
                WorkKind::Op(op) => op.rules().run(&inputs),
                WorkKind::Numeric(numeric) => numeric.run(&inputs, inner.as_mut()),
                WorkKind::Rearrange(rearrange) => rearrange.run(&inputs),
            };
            let node = self.body.node(work.node);
            let results =
                results.map_err(|e| e.context(format!("{} `{}`", node.op.name(), node.name)).at(node.site))?;
            if let (Some(trace), Some(inner)) = (&mut trace, inner) {
                let flops = inner.cost().flops;
                let cost = || Cost { read: byte_count(&inputs), written: byte_count(&results), flops };
                trace.add(section, index, work.node, start, cost);
            }
            for (&slot, array) in work.writes.iter().zip(results) {
                slots[slot] = Some(array);
            }
        }
        let output = |&slot: &usize| slots[slot].clone().ok_or_else(|| Error::internal("a fed value was not made"));
        self.outputs.iter().map(output).collect()
    }
}

/// The bytes of arrays; strings count with their length.
fn byte_count(arrays: &[Array]) -> u64 {
    let bytes = |array: &Array| match array.dtype() {
        DType::Str => array.strings().map_or(0, |strings| strings.map(<[u8]>::len).sum()),
        _ => array.bytes().len(),
    };
    arrays.iter().map(|array| bytes(array) as u64).sum()
}

/// Assigns slots to values, and collects the constants.
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

fn compile(
    part: &HostSection<'_>,
    piece: &Piece,
    batch_value: Option<Value>,
    numbered: &mut Option<Numbered>,
    slots: &mut Slots<'_>,
) -> Result<Work> {
    let mut numbers = |values: &[Value]| -> SmallVec<[usize; 4]> { values.iter().map(|&v| slots.slot(v)).collect() };
    Ok(match piece {
        Piece::Numbers(steps, makes) => {
            let numeric = NumericSteps::new(part.body.clone(), steps, makes.clone(), batch_value)?;
            let (reads, writes) = (numbers(numeric.reads()), numbers(numeric.makes()));
            Work { node: steps[0].kernel.node(), reads, writes, kind: WorkKind::Numeric(numeric) }
        }
        Piece::Single(step) => {
            let node = step.kernel.node();
            let (reads, kind) = match &part.body.node(node).op {
                Op::Host(op) => (numbers(&step.inputs), WorkKind::Op(op.clone())),
                _ => {
                    let numbered = numbered.get_or_insert_with(|| Numbered::new(&part.body));
                    let rearrange = Rearrange::new(part, numbered, step, batch_value)?;
                    (numbers(rearrange.reads()), WorkKind::Rearrange(rearrange))
                }
            };
            Work { node, reads, writes: numbers(&step.outputs), kind }
        }
    })
}
