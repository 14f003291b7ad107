//! The order of the host's work: host ops one by one, the numeric nodes between them in as few runs as possible.
//!
//! A run of numeric nodes is a program of its own and costs some microseconds whatever it does. A model has many features, each of
//! which goes through host ops and numbers in turn; so all features go through each of these together.

use std::collections::HashSet;

use crate::graph::Value;
use crate::host::program::Part;
use crate::host::rearrange::Rearrange;
use crate::op::Op;
use crate::pass::each_source;
use crate::program::Step;
use crate::symbols::SymbolDef;

/// What is run at once.
pub(super) enum Piece {
    /// A host op, or a move of strings.
    Single(Step),
    /// Numeric nodes, and those of their results that are needed outside.
    Numbers(Vec<Step>, Vec<Value>),
}

/// A step with what must be there before it.
struct Waiting<'a> {
    step: &'a Step,
    is_numeric: bool,
    /// What it reads, as far as steps make it.
    reads: Vec<Value>,
    /// What tells its sizes: these are known when a run begins, so they are made before it.
    tellers: Vec<Value>,
}

/// The pieces of a part, in an order in which each finds what it needs.
pub(super) fn schedule(part: &Part<'_>) -> Vec<Piece> {
    let made: HashSet<Value> = part.steps.iter().flat_map(|s| s.outputs.iter().copied()).collect();
    let mut waiting: Vec<Waiting<'_>> = part.steps.iter().map(|step| Waiting::new(part, step, &made)).collect();
    let mut done: HashSet<Value> = HashSet::new();
    let mut pieces = Vec::new();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|w| {
            let ready = !w.is_numeric && w.reads.iter().chain(&w.tellers).all(|v| done.contains(v));
            if ready {
                done.extend(&w.step.outputs);
                pieces.push(Piece::Single(w.step.clone()));
            }
            !ready
        });
        let mut run: Vec<Step> = Vec::new();
        let mut inside: HashSet<Value> = HashSet::new();
        waiting.retain(|w| {
            let ready = w.is_numeric
                && w.reads.iter().all(|v| done.contains(v) || inside.contains(v))
                && w.tellers.iter().all(|v| done.contains(v));
            if ready {
                inside.extend(&w.step.outputs);
                run.push(w.step.clone());
            }
            !ready
        });
        if !run.is_empty() {
            let read_later = waiting.iter().flat_map(|w| w.reads.iter().chain(&w.tellers));
            let needed: HashSet<Value> = read_later.chain(part.results).copied().collect();
            let makes = run.iter().flat_map(|s| &s.outputs).copied().filter(|v| needed.contains(v)).collect();
            pieces.push(Piece::Numbers(run, makes));
            done.extend(inside);
        }
        // Steps come in an order that works, so there is always one that is ready.
        debug_assert!(waiting.len() < before);
        if waiting.len() == before {
            break;
        }
    }
    pieces
}

impl<'a> Waiting<'a> {
    fn new(part: &Part<'_>, step: &'a Step, made: &HashSet<Value>) -> Waiting<'a> {
        let node = part.body.node(step.kernel.node());
        let is_numeric = !matches!(node.op, Op::Host(_)) && !Rearrange::is_for(part, step);
        let reads = step.inputs.iter().copied().filter(|v| made.contains(v)).collect();
        let mut tellers = Vec::new();
        let mut tell = |source: SymbolDef| {
            if let SymbolDef::Axis(value, _) | SymbolDef::Number(value) = source
                && made.contains(&value)
                && !step.outputs.contains(&value)
            {
                tellers.push(value);
            }
        };
        each_source(&part.body, node, &mut tell);
        // The sizes of what it reads are evaluated too.
        for input in &step.inputs {
            for &dim in part.body.spec(*input).shape.dims() {
                part.body.symbols().each_source(dim, &mut tell);
            }
        }
        Waiting { step, is_numeric, reads, tellers }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use estimand_tensor::{DType, Dim};

    use super::*;
    use crate::{Graph, Program, Tensor};

    #[test]
    fn features_share_runs() {
        let g = Graph::new();
        let feature = |i: usize| {
            let x = g.placeholder(&format!("x{i}"), DType::Str, [Dim::BATCH]);
            // Host, numbers, host, numbers with the host's size, host.
            let doubled = x.string_length(false).cast(DType::F32) * 2.0;
            let (distinct, _) = doubled.unique();
            (distinct + 1.0).unique().1
        };
        let fetches: Vec<Tensor> = (0..4).map(feature).collect();
        let values: Vec<Value> = fetches.iter().map(Tensor::value).collect();
        let program = Program::new(Arc::new(g.body().clone()), &values).unwrap();
        let given = program.placeholders.iter().map(|&node| Value { node, output: 0 }).collect();
        let part = Part { body: program.body.clone(), steps: &program.host, given, results: &program.feeds };
        let runs: Vec<(usize, usize)> = schedule(&part)
            .iter()
            .filter_map(|piece| match piece {
                Piece::Single(_) => None,
                Piece::Numbers(steps, makes) => Some((steps.len(), makes.len())),
            })
            .collect();
        // Cast and product of all four, of which only the products are needed; then the four sums.
        assert_eq!(runs, [(8, 4), (4, 4)]);
    }
}
