//! `HostProgram`: a compiled part of a program that the host runs.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_graph::pass::{all_given, first_batch_value};
use estimand_graph::sizes::check_feed;
use estimand_graph::trace::{Phase, Trace};
use estimand_graph::{Body, Cost, HostOp, NodeId, Op, Program, Value};
use estimand_tensor::parallel::Idle;
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
    constants: Vec<Array>,
    work: Vec<Work>,
    /// The number of values that all work makes.
    n_made: usize,
    outputs: Vec<Output>,
    /// Empty lists of finished runs. The allocator would search for memory of their size each time.
    idle: Idle<Vec<Option<Array>>>,
}

/// A result of the program.
struct Output {
    source: Source,
    /// Whether no later output is the same value: it is passed on instead of shared.
    is_last: bool,
}

/// Where a value is during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A value of the caller, by its index.
    Given(usize),
    Constant(usize),
    /// A result of earlier work, by the number of results before it.
    Made(usize),
}

/// One unit of work: reads some values and makes others.
struct Work {
    node: NodeId,
    reads: SmallVec<[Source; 4]>,
    n_makes: usize,
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
        let mut sources = Sources { body: &part.body, known: HashMap::new(), constants: Vec::new(), n_made: 0 };
        for (i, &value) in part.given.iter().enumerate() {
            sources.known.insert(value, Source::Given(i));
        }
        let mut work = Vec::new();
        let mut numbered: Option<Numbered> = None;
        // The first available value that determines the batch size.
        let mut batch_value = first_batch_value(&part.body, part.given.iter().copied());
        for piece in schedule(part) {
            work.push(compile(part, &piece, batch_value, &mut numbered, &mut sources)?);
            let made = match &piece {
                Piece::Single(step) => &step.outputs[..],
                Piece::Numbers(_, makes) => &makes[..],
            };
            batch_value = batch_value.or_else(|| first_batch_value(&part.body, made.iter().copied()));
        }
        let found = part.results.iter().map(|&v| sources.find(v)).collect::<Result<Vec<_>>>()?;
        let output = |(i, &source): (usize, &Source)| Output { source, is_last: !found[i + 1..].contains(&source) };
        let outputs = found.iter().enumerate().map(output).collect();
        let Sources { constants, n_made, .. } = sources;
        Ok(HostProgram {
            body: part.body.clone(),
            given: part.given.clone(),
            constants,
            work,
            n_made,
            outputs,
            idle: Idle::default(),
        })
    }

    /// Whether there is no work: the program returns the given values unchanged.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
            && self.outputs.iter().map(|output| output.source).eq((0..self.given.len()).map(Source::Given))
    }

    /// Computes the results from one array for each given value. Before the steps, these are the
    /// placeholders.
    pub fn run(&self, given: &[Array]) -> Result<Vec<Array>> {
        self.run_traced(given, Phase::Host, None)
    }

    /// Like `run`; also records the times of its work as those of a part of the program.
    pub(crate) fn run_traced(&self, given: &[Array], section: Phase, trace: Option<&mut Trace>) -> Result<Vec<Array>> {
        if given.len() != self.given.len() {
            let names: Vec<String> = self.given.iter().map(|v| format!("`{}`", self.body.node(v.node).name)).collect();
            return Err(Error::config(format!(
                "{} values were given for {} placeholders: {}",
                given.len(),
                names.len(),
                names.join(", ")
            )));
        }
        for (&value, array) in self.given.iter().zip(given) {
            check_feed(&self.body, value, array)?;
        }
        let mut made = self.idle.take().unwrap_or_default();
        made.reserve(self.n_made);
        let outputs = self.work(given, &mut made, section, trace);
        made.clear();
        self.idle.keep(made);
        outputs
    }

    /// Does all work. `made` is an empty list for the results.
    fn work(
        &self,
        given: &[Array],
        made: &mut Vec<Option<Array>>,
        section: Phase,
        mut trace: Option<&mut Trace>,
    ) -> Result<Vec<Array>> {
        for (index, work) in self.work.iter().enumerate() {
            let mut inputs: SmallVec<[&Array; 4]> = SmallVec::new();
            for &source in &work.reads {
                inputs.push(self.find(source, given, made)?);
            }
            let results = match &mut trace {
                None => self.run_work(work, &inputs, None)?,
                Some(trace) => {
                    let (start, mut inner) = (trace.now(), Trace::new());
                    let results = self.run_work(work, &inputs, Some(&mut inner))?;
                    let flops = inner.cost().flops;
                    let written = || byte_count(results.iter());
                    let cost = || Cost { read: byte_count(inputs.iter().copied()), written: written(), flops };
                    trace.add(section, index, work.node, start, cost);
                    results
                }
            };
            drop(inputs);
            made.extend(results.into_iter().map(Some));
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for &Output { source, is_last } in &self.outputs {
            outputs.push(match source {
                Source::Made(i) if is_last => made[i].take().ok_or_else(taken)?,
                _ => self.find(source, given, made)?.clone(),
            });
        }
        Ok(outputs)
    }

    fn run_work(&self, work: &Work, inputs: &[&Array], trace: Option<&mut Trace>) -> Result<Vec<Array>> {
        let results = match &work.kind {
            WorkKind::Op(op) => op.rules().run(inputs),
            WorkKind::Numeric(numeric) => numeric.run(inputs, trace),
            WorkKind::Rearrange(rearrange) => rearrange.run(inputs),
        };
        let node = self.body.node(work.node);
        let results = results.map_err(|e| e.context(format!("{} `{}`", node.op.name(), node.name)).at(node.site))?;
        match results.len() == work.n_makes {
            true => Ok(results),
            false => {
                let (n, expected) = (results.len(), work.n_makes);
                Err(Error::internal(format!("`{}` made {n} values; expected {expected}", node.name)))
            }
        }
    }

    fn find<'a>(&'a self, source: Source, given: &'a [Array], made: &'a [Option<Array>]) -> Result<&'a Array> {
        match source {
            Source::Given(i) => Ok(&given[i]),
            Source::Constant(i) => Ok(&self.constants[i]),
            Source::Made(i) => made[i].as_ref().ok_or_else(taken),
        }
    }
}

#[cold]
fn taken() -> Error {
    Error::internal("a result of the host was passed on too early")
}

/// The bytes of arrays; strings count with their length.
fn byte_count<'a>(arrays: impl Iterator<Item = &'a Array>) -> u64 {
    let bytes = |array: &Array| match array.dtype() {
        DType::Str => array.strings().map_or(0, |strings| strings.map(<[u8]>::len).sum()),
        _ => array.bytes().len(),
    };
    arrays.map(|array| bytes(array) as u64).sum()
}

/// Knows where each value is, and collects the constants.
struct Sources<'a> {
    body: &'a Body,
    known: HashMap<Value, Source>,
    constants: Vec<Array>,
    n_made: usize,
}

impl Sources<'_> {
    fn find(&mut self, value: Value) -> Result<Source> {
        if let Some(&source) = self.known.get(&value) {
            return Ok(source);
        }
        let node = self.body.node(value.node);
        let Op::Constant(constant) = &node.op else {
            return Err(Error::internal(format!("the host reads `{}` before it is made", node.name)));
        };
        let source = Source::Constant(self.constants.len());
        self.constants.push(constant.0.clone());
        self.known.insert(value, source);
        Ok(source)
    }

    /// Notes the results of the next work. Returns their number.
    fn make(&mut self, values: &[Value]) -> usize {
        for (i, &value) in values.iter().enumerate() {
            self.known.insert(value, Source::Made(self.n_made + i));
        }
        self.n_made += values.len();
        values.len()
    }
}

fn compile(
    part: &HostSection<'_>,
    piece: &Piece,
    batch_value: Option<Value>,
    numbered: &mut Option<Numbered>,
    sources: &mut Sources<'_>,
) -> Result<Work> {
    let mut find = |values: &[Value]| -> Result<SmallVec<[Source; 4]>> {
        values.iter().map(|&value| sources.find(value)).collect()
    };
    Ok(match piece {
        Piece::Numbers(steps, makes) => {
            let numeric = NumericSteps::new(part.body.clone(), steps, makes.clone(), batch_value)?;
            let reads = find(numeric.reads())?;
            let n_makes = sources.make(numeric.makes());
            Work { node: steps[0].kernel.node(), reads, n_makes, kind: WorkKind::Numeric(numeric) }
        }
        Piece::Single(step) => {
            let node = step.kernel.node();
            let (reads, kind) = match &part.body.node(node).op {
                Op::Host(op) => (find(&step.inputs)?, WorkKind::Op(op.clone())),
                _ => {
                    let numbered = numbered.get_or_insert_with(|| Numbered::new(&part.body));
                    let rearrange = Rearrange::new(part, numbered, step, batch_value)?;
                    (find(rearrange.reads())?, WorkKind::Rearrange(rearrange))
                }
            };
            Work { node, reads, n_makes: sources.make(&step.outputs), kind }
        }
    })
}
