//! Bypasses steps that only pass a value on: `StopGradient(x)` and `x * 1` become `x`. An
//! element-wise step that reads one number broadcast to a shape reads the number instead.

use std::collections::{HashMap, HashSet};

use estimand_tensor::Binary;

use crate::body::Body;
use crate::op::{Constant, Op};
use crate::pass::prune::each_source;
use crate::program::{Kernel, Program};
use crate::sources::Sources;
use crate::symbols::SymbolDef;
use crate::value::Value;

pub(crate) fn reroute(mut program: Program) -> Program {
    let body = program.body.clone();
    let mut passed_on: HashMap<Value, Value> = HashMap::new();
    // Maps values that hold the same number everywhere to a value of one element that holds it.
    let mut uniform: HashMap<Value, Value> = HashMap::new();
    let is_single = |v: Value| body.spec(v).shape.dims().iter().all(|d| d.known() == Some(1));
    for step in &mut program.steps {
        for input in &mut step.inputs {
            *input = *passed_on.get(input).unwrap_or(input);
        }
        if step.is_elementwise(&body) {
            let rank = body.spec(step.outputs[0]).shape.rank();
            for input in &mut step.inputs {
                if let Some(&number) = uniform.get(input)
                    && body.spec(number).shape.rank() <= rank
                {
                    *input = number;
                }
            }
        }
        let Kernel::Node(id) = &step.kernel else { continue };
        match body.node(*id).op {
            Op::StopGradient(_) => {
                passed_on.insert(step.outputs[0], step.inputs[0]);
            }
            Op::BroadcastTo(_) | Op::Reshape(_) => {
                let input = step.inputs[0];
                if let Some(&number) = uniform.get(&input).or_else(|| is_single(input).then_some(&step.inputs[0])) {
                    uniform.insert(step.outputs[0], number);
                }
            }
            // Gradients begin with a 1. Multiplying by 1 keeps the bits. Adding 0 does not: -0 + 0
            // is 0.
            Op::Binary(Binary::Mul) => {
                let [a, b] = [step.inputs[0], step.inputs[1]];
                let shape = &body.spec(step.outputs[0]).shape;
                let factor =
                    [(a, b), (b, a)].into_iter().find(|(x, one)| is_one(&body, *one) && body.spec(*x).shape == *shape);
                if let Some((x, _)) = factor {
                    passed_on.insert(step.outputs[0], x);
                }
            }
            _ => {}
        }
    }
    for fetch in &mut program.fetches {
        *fetch = *passed_on.get(fetch).unwrap_or(fetch);
    }
    drop_unread(&mut program);
    program
}

fn is_one(body: &Body, value: Value) -> bool {
    let one = |c: &Constant| c.0.to_f64_vec().is_ok_and(|v| v == [1.0]);
    body.scalar_constant(value).is_some_and(one)
}

/// Removes steps without effect whose results nobody reads.
fn drop_unread(program: &mut Program) {
    let body = program.body.clone();
    let mut uses = program.use_counts();
    // A value may be needed for its size, or as a size, even if no step reads it.
    let mut size_sources: HashSet<Value> = HashSet::new();
    let mut sources = Sources::default();
    let mut keep = vec![true; program.steps.len()];
    for (i, step) in program.steps.iter().enumerate().rev() {
        let node = body.node(step.kernel.node());
        let read = step.outputs.iter().any(|v| size_sources.contains(v) || uses.get(v).is_some_and(|n| *n > 0));
        if i < program.n_compute && !read && !node.op.has_effect() {
            keep[i] = false;
            for input in &step.inputs {
                *uses.entry(*input).or_default() -= 1;
            }
            continue;
        }
        each_source(&body, node, &mut sources, &mut |source| {
            if let SymbolDef::Axis(value, _) | SymbolDef::Number(value) = source {
                size_sources.insert(value);
            }
        });
    }
    let mut kept = keep.iter();
    program.steps.retain(|_| *kept.next().unwrap_or(&true));
    program.n_compute -= keep.iter().filter(|k| !**k).count();
}
