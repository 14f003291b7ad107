//! Merges common subexpressions: equal ops on equal inputs are computed once.
//!
//! The shapes must be equal too: after `reroute`, the result of an element-wise step may be larger
//! than its inputs suggest.

use std::collections::{HashMap, HashSet};

use estimand_tensor::TensorSpec;
use smallvec::SmallVec;

use crate::op::Op;
use crate::program::{Kernel, Program};
use crate::symbols::SymbolDef;
use crate::value::Value;

/// A computation: an op, its inputs and its results.
type Computation<'a> = (&'a Op, SmallVec<[Value; 4]>, &'a [TensorSpec]);

pub(crate) fn merge(mut program: Program) -> Program {
    let body = program.body.clone();
    let mut first: HashMap<Computation<'_>, SmallVec<[Value; 1]>> = HashMap::new();
    let mut same: HashMap<Value, Value> = HashMap::new();
    // Constants and variables are not steps, but several nodes may read the same one.
    let mut sources: HashMap<&Op, Value> = HashMap::new();
    for (i, node) in body.nodes().iter().enumerate() {
        if matches!(node.op, Op::Constant(_) | Op::Variable(_)) {
            let value = Value { node: crate::value::NodeId(i as u32), output: 0 };
            let known = *sources.entry(&node.op).or_insert(value);
            same.insert(value, known);
        }
    }
    // A symbol refers to the node that computes it as a number.
    let number = |def: &SymbolDef| if let SymbolDef::Number(value) = def { Some(*value) } else { None };
    let sizes: HashSet<Value> = body.symbols().defs().iter().filter_map(number).collect();
    let mut n_removed = 0;
    program.steps.retain_mut(|step| {
        for input in &mut step.inputs {
            *input = *same.get(input).unwrap_or(input);
        }
        let Kernel::Node(id) = &step.kernel else { return true };
        let node = body.node(*id);
        if node.op.has_effect() {
            return true;
        }
        let key = (&node.op, step.inputs.clone(), &node.outputs[..]);
        let Some(known) = first.get(&key).filter(|_| !step.outputs.iter().any(|v| sizes.contains(v))) else {
            first.insert(key, step.outputs.clone());
            return true;
        };
        for (output, known) in step.outputs.iter().zip(known) {
            same.insert(*output, *known);
        }
        n_removed += 1;
        false
    });
    program.n_compute -= n_removed;
    for fetch in &mut program.fetches {
        *fetch = *same.get(fetch).unwrap_or(fetch);
    }
    program
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use estimand_tensor::{Array, DType, Dim};

    use crate::{Graph, Program, Tensor};

    #[test]
    fn numbers_spread_over_different_shapes_stay_apart() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, 1.into()]);
        let row = g.constant(Array::from([1f32, 2.0]));
        let wide = &g.fill(x.shape().clone(), DType::F32, 3.0) * &row;
        let narrow = &g.fill([1, 1], DType::F32, 3.0) * &row;
        let fetches = [&wide, &narrow].map(Tensor::value);
        let program = Program::new(Arc::new(g.body().clone()), &fetches).unwrap();
        assert_eq!(program.steps().len(), 2, "{program}");
        assert_ne!(program.fetches()[0], program.fetches()[1]);
    }
}
