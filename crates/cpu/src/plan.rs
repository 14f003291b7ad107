//! The memory plan: where every value of a program lives.
//!
//! Feeds, constants and variables stay in their own memory. All other values live in one arena. A
//! view of an input with another shape shares its memory. An element-wise result takes the memory
//! of an input that is not needed any more. Values that are never alive at the same time may
//! overlap. Each buffer has a capacity, the largest size seen: a smaller batch changes nothing, and
//! buffers move only when one grows.

use std::collections::HashMap;

use estimand_graph::{Kernel, Op, Program, Value, VarId};
use estimand_tensor::{Array, DType};

use super::arena::Lifetime;
use crate::kernel::{Fused, fused};

/// The location of a value's bytes.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Feed(usize),
    Constant(Array),
    Variable(VarId),
    Buffer(usize),
}

/// The locations of all values, fixed when a program is compiled.
#[derive(Debug)]
pub(crate) struct Plan {
    /// All values, by index.
    pub values: Vec<Value>,
    pub number: HashMap<Value, usize>,
    pub dtypes: Vec<DType>,
    pub places: Vec<Place>,
    /// The indices of feeds and variables. Each run looks up their addresses.
    pub outside: Vec<usize>,
    /// Lifetimes of the arena's buffers. One scratch buffer for each step follows the buffers of
    /// values.
    pub buffers: Vec<Lifetime>,
    pub n_value_buffers: usize,
}

impl Plan {
    pub(crate) fn new(program: &Program) -> Plan {
        let mut plan = Plan {
            values: Vec::new(),
            number: HashMap::new(),
            dtypes: Vec::new(),
            places: Vec::new(),
            outside: Vec::new(),
            buffers: Vec::new(),
            n_value_buffers: 0,
        };
        let last_use = last_uses(program);
        plan.place_sources(program);
        for (i, step) in program.steps().iter().enumerate() {
            for &output in &step.outputs {
                let last = last_use.get(&output).copied().unwrap_or(i);
                let place = match plan.shared_place(program, i, output, &last_use) {
                    Some(buffer) => {
                        plan.buffers[buffer].last = plan.buffers[buffer].last.max(last);
                        Place::Buffer(buffer)
                    }
                    None => plan.alias_of_source(program, i).unwrap_or_else(|| {
                        plan.buffers.push(Lifetime { first: i, last });
                        Place::Buffer(plan.buffers.len() - 1)
                    }),
                };
                plan.add(output, place);
            }
        }
        plan.dtypes = plan.values.iter().map(|&value| program.spec(value).dtype).collect();
        plan.n_value_buffers = plan.buffers.len();
        // Writing steps copy some of their inputs. All copies are made before the first write.
        let n_compute = program.compute_steps().len();
        plan.buffers.extend((0..program.steps().len()).map(|i| Lifetime { first: i.min(n_compute), last: i }));
        plan
    }

    fn add(&mut self, value: Value, place: Place) {
        if matches!(place, Place::Feed(_) | Place::Variable(_)) {
            self.outside.push(self.values.len());
        }
        self.number.insert(value, self.values.len());
        self.values.push(value);
        self.places.push(place);
    }

    pub(crate) fn place(&self, value: Value) -> &Place {
        &self.places[self.number[&value]]
    }

    fn place_sources(&mut self, program: &Program) {
        let feeds: HashMap<Value, usize> = program.feeds().iter().enumerate().map(|(i, &v)| (v, i)).rev().collect();
        let reads = program.steps().iter().flat_map(|s| &s.inputs);
        for &value in reads.chain(program.fetches()) {
            if self.number.contains_key(&value) {
                continue;
            }
            let fed = feeds.get(&value).copied();
            let place = match &program.body().node(value.node).op {
                _ if fed.is_some() => Place::Feed(fed.unwrap_or_default()),
                Op::Constant(c) => Place::Constant(c.0.clone()),
                Op::Variable(variable) => Place::Variable(variable.0),
                _ => continue,
            };
            self.add(value, place);
        }
    }

    /// A view of a feed, constant or variable has the location of its source.
    fn alias_of_source(&self, program: &Program, step: usize) -> Option<Place> {
        let step = &program.steps()[step];
        let is_view = is_view(program, &step.kernel);
        is_view.then(|| self.place(step.inputs[0]).clone())
    }

    /// The buffer that a step's output can share with one of its inputs.
    fn shared_place(
        &self,
        program: &Program,
        i: usize,
        output: Value,
        last_use: &HashMap<Value, usize>,
    ) -> Option<usize> {
        let step = &program.steps()[i];
        let buffer_of = |v: Value| match self.place(v) {
            Place::Buffer(b) => Some(*b),
            _ => None,
        };
        if is_view(program, &step.kernel) {
            return buffer_of(step.inputs[0]);
        }
        // In place: the only store of a group is its last instruction, so all inputs have been read
        // before it overwrites one.
        if !matches!(fused(&step.kernel), Some(Fused::Elementwise(_))) || step.outputs.len() != 1 {
            return None;
        }
        let spec = program.spec(output);
        step.inputs.iter().copied().find_map(|input| {
            let buffer = buffer_of(input)?;
            let same = program.spec(input).shape == spec.shape && program.spec(input).dtype.size() == spec.dtype.size();
            let dies = last_use.get(&input) == Some(&i) && self.buffers[buffer].last == i;
            // Another input may be a broadcast view of the same bytes.
            let alone = step.inputs.iter().filter(|v| buffer_of(**v) == Some(buffer)).count() == 1;
            (same && dies && alone && spec.dtype != DType::Str).then_some(buffer)
        })
    }
}

/// Whether a kernel only changes the shape of its input.
pub(crate) fn is_view(program: &Program, kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Node(id) if matches!(program.body().node(*id).op, Op::Reshape(_) | Op::StopGradient(_)))
}

/// The last step that reads each value, directly or through a view. Fetches are read after the last
/// computing step.
fn last_uses(program: &Program) -> HashMap<Value, usize> {
    let mut last = HashMap::new();
    for (i, step) in program.steps().iter().enumerate() {
        for input in &step.inputs {
            last.insert(*input, i);
        }
    }
    let end = program.compute_steps().len();
    for fetch in program.fetches() {
        let last = last.entry(*fetch).or_insert(end);
        *last = (*last).max(end);
    }
    // A view keeps its source alive.
    for step in program.steps().iter().rev() {
        if is_view(program, &step.kernel)
            && let Some(&until) = last.get(&step.outputs[0])
        {
            let source = last.entry(step.inputs[0]).or_insert(until);
            *source = (*source).max(until);
        }
    }
    last
}

/// Rounds up to 1, 1.25, 1.5 or 1.75 times a power of two: few different capacities, little waste.
pub(crate) fn capacity(bytes: usize) -> usize {
    if bytes <= 64 {
        return if bytes == 0 { 0 } else { 64 };
    }
    let quarter = (bytes.next_power_of_two() / 8).max(1);
    bytes.div_ceil(quarter) * quarter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_quarters_of_powers_of_two() {
        assert_eq!([0, 1, 64, 65, 80, 81, 128, 1000, 1025].map(capacity), [0, 64, 64, 80, 80, 96, 128, 1024, 1280]);
    }
}
