//! Nodes that only move elements, applied to strings. The node runs on the indices of the strings,
//! and its result gives the new position of each string.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_graph::op::{Constant, Op, Placeholder};
use estimand_graph::{Body, NodeId, Step, Value};
use estimand_tensor::{Array, DType, Dim, Dims, Error, Result, Shape, Strings};

use super::host_section::HostSection;
use super::numeric_steps::NumericSteps;

/// One node that moves strings.
pub(super) struct Rearrange {
    numbers: NumericSteps,
    /// Set if no string changes its position and at most one size is known only at run time: the
    /// index of the input, and the shape of the result.
    in_order: Option<(usize, Shape)>,
    /// The values it reads, and which of them are strings.
    reads: Vec<Value>,
    is_text: Vec<bool>,
}

impl Rearrange {
    /// Whether a step moves strings.
    pub(super) fn is_for(part: &HostSection<'_>, step: &Step) -> bool {
        let is_text = |v: &Value| part.body.spec(*v).dtype == DType::Str;
        let node = part.body.node(step.kernel.node());
        !matches!(node.op, Op::Host(_)) && step.outputs.iter().any(is_text)
    }

    pub(super) fn new(
        part: &HostSection<'_>,
        numbered: &Numbered,
        step: &Step,
        batch_value: Option<Value>,
    ) -> Result<Rearrange> {
        let node = part.body.node(step.kernel.node());
        if !node.op.rules().moves_elements() {
            return Err(Error::unsupported(format!("{} does not work on strings", node.op.name()))
                .context(format!("node `{}`", node.name))
                .at(node.site));
        }
        let moved = step.inputs[0];
        let step = numbered.step(step);
        let body = numbered.body.clone();
        let numbers = NumericSteps::new(body, std::slice::from_ref(&step), step.outputs.to_vec(), batch_value)?;
        let reads: Vec<Value> = numbers.reads().iter().map(|v| *numbered.stands_for.get(v).unwrap_or(v)).collect();
        // Other inputs only determine sizes.
        let in_order = match &node.op {
            Op::Reshape(_) | Op::StopGradient(_) => reads.iter().position(|&v| v == moved),
            _ => None,
        };
        let in_order = in_order.map(|at| (at, node.outputs[0].shape.clone()));
        let in_order = in_order.filter(|(_, shape)| shape.dims().iter().filter(|d| d.known().is_none()).count() < 2);
        let is_text = reads.iter().map(|&v| part.body.spec(v).dtype == DType::Str).collect();
        Ok(Rearrange { numbers, in_order, reads, is_text })
    }

    pub(super) fn reads(&self) -> &[Value] {
        &self.reads
    }

    pub(super) fn run(&self, feeds: &[&Array]) -> Result<Vec<Array>> {
        if let Some((at, shape)) = &self.in_order
            && let Some(dims) = with_gap(shape, feeds[*at].len())
        {
            return Ok(vec![feeds[*at].reshape(&dims)?]);
        }
        let mut first = 0i64;
        let mut sources: Vec<&Array> = Vec::new();
        let mut numbered = Vec::with_capacity(feeds.len());
        for (&array, is_text) in feeds.iter().zip(&self.is_text) {
            if !is_text {
                numbered.push(array.clone());
                continue;
            }
            let end = first + array.len() as i64;
            numbered.push(Array::from_vec(array.dims(), (first..end).collect::<Vec<i64>>())?);
            sources.push(array);
            first = end;
        }
        let all: Vec<&[u8]> =
            sources.iter().map(|a| a.strings()).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let numbered: Vec<&Array> = numbered.iter().collect();
        let taken = self.numbers.run(&numbered, None)?;
        taken
            .iter()
            .map(|order| {
                let strings: Strings = order.as_slice::<i64>()?.iter().map(|&i| all[i as usize]).collect();
                Array::from_strings(order.dims(), strings.iter())
            })
            .collect()
    }
}

/// The sizes of a shape of `len` elements. One unknown size is computed from the others; `None` if
/// that is not possible.
fn with_gap(shape: &Shape, len: usize) -> Option<Dims> {
    let rest: usize = shape.dims().iter().filter_map(|d| d.known()).product();
    let size = |dim: &Dim| dim.known().or_else(|| len.checked_div(rest));
    let dims: Dims = shape.dims().iter().map(size).collect::<Option<_>>()?;
    (dims.iter().product::<usize>() == len).then_some(dims)
}

/// A body with numbers in place of strings, for all string moves of a part. Constant strings are
/// fed: a new node represents each of them.
pub(super) struct Numbered {
    body: Arc<Body>,
    /// Maps the nodes that represent constants to the constants, and back.
    stands_for: HashMap<Value, Value>,
    fed: HashMap<Value, Value>,
}

impl Numbered {
    pub(super) fn new(given: &Body) -> Numbered {
        let mut body = given.clone();
        for node in body.nodes_mut() {
            for spec in node.outputs.iter_mut().filter(|spec| spec.dtype == DType::Str) {
                spec.dtype = DType::I64;
            }
        }
        let (mut stands_for, mut fed) = (HashMap::new(), HashMap::new());
        for (i, node) in given.nodes().iter().enumerate() {
            if let Op::Constant(Constant(value)) = &node.op
                && value.dtype() == DType::Str
            {
                let mut node = body.nodes()[i].clone();
                node.op = Placeholder.into();
                let stand_in = Value { node: body.push(node), output: 0 };
                let constant = Value { node: NodeId(i as u32), output: 0 };
                stands_for.insert(stand_in, constant);
                fed.insert(constant, stand_in);
            }
        }
        Numbered { body: Arc::new(body), stands_for, fed }
    }

    fn step(&self, step: &Step) -> Step {
        let mut step = step.clone();
        for input in &mut step.inputs {
            *input = *self.fed.get(input).unwrap_or(input);
        }
        step
    }
}
