//! The cut: splits a program into the host's part before a step, the step, and the host's part
//! after it.
//!
//! The host's part is a pure function of the feeds. It contains everything with strings, tables,
//! and results whose size depends on the data, and the values those are computed from. It may run
//! ahead of time, in other threads. The step has the rest: numbers, variables, randomness. Values
//! that cross the cut are fed to the step like placeholders. Host ops on the step's results (the
//! name of the most likely class) run after it, and so does everything that reads them.

use std::collections::{BTreeSet, HashMap, HashSet};

use estimand_tensor::{DType, Error, Result};

use crate::body::Body;
use crate::looks::look;
use crate::op::{Op, Placeholder, Variable};
use crate::pass::prune::{each_dim, each_source, tells_batch};
use crate::program::{Program, Step};
use crate::sources::{Facts, Sources};
use crate::symbols::SymbolDef;
use crate::value::{NodeId, Value};

pub(crate) fn cut(mut program: Program) -> Result<Program> {
    let body = program.body.clone();
    program.results = program.fetches.clone();
    let late = late(&program)?;
    let on_host = on_host(&program, &late)?;
    let mut steps = Vec::new();
    for (i, step) in std::mem::take(&mut program.steps).into_iter().enumerate() {
        match (on_host[i], late[i]) {
            (true, _) => program.host.push(step),
            (_, true) => program.after.push(step),
            _ => steps.push(step),
        }
    }
    program.steps = steps;
    program.n_compute -= program.host.len() + program.after.len();
    let given: Vec<Value> = program.placeholders.iter().map(|&node| Value { node, output: 0 }).collect();
    // The step passes on strings that are fed to it, but has no strings of its own.
    let is_fixed_text = |v: &Value| matches!(body.node(v.node).op, Op::Constant(_)) && is_text(&body, *v);
    if !program.after.is_empty() || program.results.iter().any(is_fixed_text) {
        let made_before = program.host.iter().chain(&program.steps).flat_map(|s| s.outputs.iter().copied());
        let given_or_made = given.iter().copied().chain(made_before);
        let all_given = all_given(&body);
        program.fetches =
            reads(&all_given, &program.after, &program.results, first_batch_value(&all_given, given_or_made));
    }
    if !program.host.is_empty() {
        program.feeds = reads(&body, &program.steps, &program.fetches, first_batch_value(&body, given.into_iter()));
    }
    Ok(program)
}

/// A body in which variables become placeholders, as for the part that runs after the step.
pub fn all_given(body: &Body) -> Body {
    let mut body = body.clone();
    for node in &mut body.nodes {
        if let Op::Variable(_) = node.op {
            node.op = Placeholder.into();
        }
    }
    body
}

/// Maps each value to the step that computes it.
fn producers(program: &Program) -> HashMap<Value, usize> {
    program.steps.iter().enumerate().flat_map(|(i, step)| step.outputs.iter().map(move |&v| (v, i))).collect()
}

fn is_hosts(body: &Body, step: &Step) -> bool {
    let node = body.node(step.kernel.node());
    matches!(node.op, Op::Host(_)) || step.inputs.iter().chain(&step.outputs).any(|&v| is_text(body, v))
}

/// Finds the steps that the host runs last: host ops that depend on variables, and all readers of
/// their results.
fn late(program: &Program) -> Result<Vec<bool>> {
    let body = &program.body;
    let producers = producers(program);
    let mut varies = vec![false; program.steps.len()];
    let mut late = vec![false; program.steps.len()];
    // Whether sizes are known only after the step.
    let mut late_sizes: Facts<bool> = Facts::default();
    for (i, step) in program.steps.iter().enumerate() {
        look(1);
        let node = body.node(step.kernel.node());
        varies[i] = matches!(node.op, Op::Random(_));
        for input in &step.inputs {
            varies[i] |= matches!(body.node(input.node).op, Op::Variable(_));
            if let Some(&producer) = producers.get(input) {
                varies[i] |= varies[producer];
                late[i] |= late[producer];
            }
        }
        late[i] |= varies[i] && is_hosts(body, step);
        let mut is_late = late[i];
        each_dim(node, &mut |dim| {
            is_late |= late_sizes.of(body.symbols(), dim, |value| match producers.get(&value) {
                // A size that a step computes itself is as late as the step.
                Some(&producer) if producer >= i => None,
                Some(&producer) => Some(late[producer]),
                None => Some(false),
            });
        });
        late[i] = is_late;
        if late[i] && i >= program.n_compute {
            return Err(refuse(program, step, "uses strings, tables or sizes that depend on variables"));
        }
    }
    Ok(late)
}

/// Finds the steps that the host runs first.
fn on_host(program: &Program, late: &[bool]) -> Result<Vec<bool>> {
    let body = &program.body;
    let producers = producers(program);
    let mut on_host = vec![false; program.steps.len()];
    let mut sources = Sources::default();
    for i in (0..program.steps.len()).rev() {
        let step = &program.steps[i];
        if late[i] {
            continue;
        }
        on_host[i] |= is_hosts(body, step);
        // Sizes must be known before a step begins.
        each_source(body, body.node(step.kernel.node()), &mut sources, &mut |source| {
            if let SymbolDef::Axis(value, _) | SymbolDef::Number(value) = source
                && let Some(&producer) = producers.get(&value)
            {
                on_host[producer] = true;
            }
        });
        if on_host[i] {
            check_pure(program, step)?;
            for input in &step.inputs {
                if let Some(&producer) = producers.get(input) {
                    on_host[producer] = true;
                }
            }
        }
    }
    Ok(on_host)
}

fn is_text(body: &Body, value: Value) -> bool {
    body.spec(value).dtype == DType::Str
}

/// Checks that a host step depends only on feeds.
fn check_pure(program: &Program, step: &Step) -> Result<()> {
    let body = &program.body;
    for input in &step.inputs {
        if let Op::Variable(Variable(id)) = body.node(input.node).op {
            let name = &body.variables().spec(id).name;
            return Err(refuse(program, step, &format!("computes a size from variable `{name}`")));
        }
    }
    match body.node(step.kernel.node()).op {
        Op::Random(_) => Err(refuse(program, step, "computes a size from random numbers")),
        Op::Assign(_) | Op::Apply(_) => Err(refuse(program, step, "reads or writes strings")),
        _ => Ok(()),
    }
}

fn refuse(program: &Program, step: &Step, why: &str) -> Error {
    let node = program.body.node(step.kernel.node());
    Error::unsupported(format!("{} {why}", node.op.name()))
        .help("compute strings, table lookups and sizes only from the values that are fed")
        .context(format!("in node `{}`", node.name))
        .at(node.site)
}

/// Returns the values that some steps and fetches read but do not compute: their feeds, and the
/// values that determine a size.
///
/// If no other value determines the batch size, `batch_value` is added.
pub fn reads(body: &Body, steps: &[Step], fetches: &[Value], batch_value: Option<Value>) -> Vec<Value> {
    let made: HashSet<Value> = steps.iter().flat_map(|s| &s.outputs).copied().collect();
    let is_fed = |v: &Value| !made.contains(v) && !matches!(body.node(v.node).op, Op::Constant(_) | Op::Variable(_));
    let read = steps.iter().flat_map(|s| &s.inputs).chain(fetches);
    let mut found: BTreeSet<Value> = read.copied().filter(is_fed).collect();
    let mut batch = false;
    let mut sources = Sources::default();
    let mut nodes: Vec<NodeId> = steps.iter().map(|s| s.kernel.node()).collect();
    nodes.extend(found.iter().map(|v| v.node));
    while let Some(node) = nodes.pop() {
        each_source(body, body.node(node), &mut sources, &mut |source| match source {
            // A value that determines a size has sizes itself.
            SymbolDef::Axis(value, _) | SymbolDef::Number(value) => {
                if is_fed(&value) && found.insert(value) {
                    nodes.push(value.node);
                }
            }
            _ => batch = true,
        });
    }
    if batch
        && !found.iter().any(|&v| tells_batch(body, v))
        && let Some(batch_value) = batch_value
    {
        found.insert(batch_value);
    }
    found.into_iter().collect()
}

/// Returns the first of these values whose size determines the batch size.
pub fn first_batch_value(body: &Body, mut values: impl Iterator<Item = Value>) -> Option<Value> {
    values.find(|&v| tells_batch(body, v))
}
