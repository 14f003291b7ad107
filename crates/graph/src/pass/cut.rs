//! The cut: what the host computes before a step, and what the step computes.
//!
//! The host's part is a pure function of what is fed: everything with strings, tables, and results whose size only the data
//! tells; and whatever those are computed from. It may run ahead of time, in other threads. The rest is the step's: numbers,
//! variables, randomness. What crosses the cut is fed to the step like a placeholder's value.

use std::collections::{BTreeSet, HashMap, HashSet};

use estimand_tensor::{DType, Error, Result};

use crate::graph::{Body, NodeId, Value};
use crate::op::Op;
use crate::pass::prune::{each_source, tells_batch};
use crate::program::{Program, Step};
use crate::symbols::SymbolDef;

pub(crate) fn cut(mut program: Program) -> Result<Program> {
    let body = program.body.clone();
    let on_host = on_host(&program)?;
    if !on_host.contains(&true) {
        return Ok(program);
    }
    let mut on_host = on_host.iter();
    let is_host = |_: &Step| *on_host.next().unwrap_or(&false);
    (program.host, program.steps) = std::mem::take(&mut program.steps).into_iter().partition(is_host);
    program.n_compute -= program.host.len();
    let tellers = program.placeholders.iter().map(|&node| Value { node, output: 0 });
    program.feeds = reads(&body, &program.steps, &program.fetches, tellers);
    Ok(program)
}

/// Which steps the host runs.
fn on_host(program: &Program) -> Result<Vec<bool>> {
    let body = &program.body;
    let producers: HashMap<Value, usize> =
        program.steps.iter().enumerate().flat_map(|(i, step)| step.outputs.iter().map(move |&v| (v, i))).collect();
    let mut on_host = vec![false; program.steps.len()];
    for i in (0..program.steps.len()).rev() {
        let step = &program.steps[i];
        let node = body.node(step.kernel.node());
        on_host[i] |=
            matches!(node.op, Op::Host(_)) || step.inputs.iter().chain(&step.outputs).any(|&v| is_text(body, v));
        // Sizes are known before a step begins.
        each_source(body, node, &mut |source| {
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

/// The host knows what is fed, and nothing else.
fn check_pure(program: &Program, step: &Step) -> Result<()> {
    let body = &program.body;
    let node = body.node(step.kernel.node());
    let refuse = |what: String| {
        Error::unsupported(format!("{} runs on the host, before a step, and {what}", node.op.name()))
            .help(
                "strings, tables and results of unknown size can be computed from what is fed and from constants only",
            )
            .context(format!("node `{}`", node.name))
            .at(node.site)
    };
    for input in &step.inputs {
        if let Op::Variable(id) = body.node(input.node).op {
            return Err(refuse(format!("reads variable `{}`", body.variables().spec(id).name)));
        }
    }
    match &node.op {
        Op::Random { .. } => Err(refuse("draws random numbers".into())),
        Op::Assign(id) => Err(refuse(format!("writes variable `{}`", body.variables().spec(*id).name))),
        Op::Apply(apply) => Err(refuse(format!("updates variable `{}`", body.variables().spec(apply.variable).name))),
        _ => Ok(()),
    }
}

/// What some steps and fetches read that the steps do not make: values that are fed to them, and those that tell a size.
///
/// Any of the `tellers` may be asked for the size of the batch.
pub(crate) fn reads(
    body: &Body,
    steps: &[Step],
    fetches: &[Value],
    mut tellers: impl Iterator<Item = Value>,
) -> Vec<Value> {
    let made: HashSet<Value> = steps.iter().flat_map(|s| &s.outputs).copied().collect();
    let is_fed = |v: &Value| !made.contains(v) && !matches!(body.node(v.node).op, Op::Constant(_) | Op::Variable(_));
    let read = steps.iter().flat_map(|s| &s.inputs).chain(fetches);
    let mut found: BTreeSet<Value> = read.copied().filter(is_fed).collect();
    let mut batch = false;
    let mut nodes: Vec<NodeId> = steps.iter().map(|s| s.kernel.node()).collect();
    nodes.extend(found.iter().map(|v| v.node));
    while let Some(node) = nodes.pop() {
        each_source(body, body.node(node), &mut |source| match source {
            // What tells a size has sizes itself.
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
        && let Some(teller) = tellers.find(|&v| tells_batch(body, v))
    {
        found.insert(teller);
    }
    found.into_iter().collect()
}
