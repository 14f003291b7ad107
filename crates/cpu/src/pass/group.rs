//! An element-wise group under construction. It grows backwards from its last step.
//!
//! The tile interpreter has few inputs, outputs, constants and registers. The group keeps counts of
//! them to decide whether a step may join. A group of many thousand steps therefore takes no longer
//! to build than many small groups.

use std::collections::{HashMap, HashSet};

use estimand_graph::looks::look;
use estimand_graph::{Body, Step, Value};
use estimand_tensor::DType;
use estimand_tensor::cpu::elementwise::TileProgram;
use smallvec::SmallVec;

use crate::kernel::Member;
use crate::tile;

/// The largest number of different values that an element-wise operation reads, plus its result.
const MAX_RANGES: usize = 4;

pub(super) struct Group {
    /// The reads of the members, by value.
    reads: HashMap<Value, Read>,
    /// The number of values that are read but not computed by members. Constants are instructions
    /// and do not count.
    n_inputs: usize,
    n_outputs: usize,
    constants: HashSet<(DType, u64)>,
    registers: Registers,
}

/// How a value is read by the members of a group.
struct Read {
    /// The member that reads the value first when the group runs: the one that joined last.
    first: usize,
    /// The number of reads.
    n: usize,
}

impl Group {
    /// Creates a group from one step, the last. Its result is always stored.
    pub(super) fn new(body: &Body, root: &Step) -> Group {
        let mut group = Group {
            reads: HashMap::new(),
            n_inputs: 0,
            n_outputs: 1,
            constants: HashSet::new(),
            registers: Registers::default(),
        };
        let operands = distinct(root);
        group.registers.push(peak(operands.len(), operands.len()));
        group.note(body, root, &operands, 0);
        group
    }

    /// Counts how often members read a value.
    pub(super) fn n_reads(&self, value: Value) -> usize {
        self.reads.get(&value).map_or(0, |read| read.n)
    }

    /// Adds a step before all members, if the tile interpreter can still run the group.
    /// `is_stored`: other steps read its result.
    pub(super) fn join(&mut self, body: &Body, step: &Step, is_stored: bool) -> bool {
        let made = step.outputs[0];
        let operands = distinct(step);
        let is_new = |v: &&Value| !self.reads.contains_key(*v);
        let n_new = operands.iter().filter(is_new).count();
        let new_inputs = operands.iter().filter(is_new).filter(|v| body.scalar_constant(**v).is_none()).count();
        let new_constants: HashSet<_> =
            operands.iter().filter_map(|v| bits(body, *v)).filter(|c| !self.constants.contains(c)).collect();
        // Its result is no longer an input.
        let n_inputs = self.n_inputs + new_inputs - usize::from(self.reads.contains_key(&made));
        let n_outputs = self.n_outputs + usize::from(is_stored);
        if n_inputs > TileProgram::MAX_INPUTS
            || n_outputs > TileProgram::MAX_OUTPUTS
            || self.constants.len() + new_constants.len() > TileProgram::MAX_CONSTANTS
            || !runs_alone(body, step)
        {
            return false;
        }
        // Its operands and its result are held from here to the member that loaded them before.
        let held = operands.iter().chain([&made]).filter_map(|v| Some(self.reads.get(v)?.first + 1)).collect();
        if !self.registers.extend(held, peak(operands.len(), n_new)) {
            return false;
        }
        (self.n_inputs, self.n_outputs) = (n_inputs, n_outputs);
        self.note(body, step, &operands, self.registers.len() - 1);
        true
    }

    fn note(&mut self, body: &Body, step: &Step, operands: &[Value], member: usize) {
        if member == 0 {
            self.n_inputs = operands.iter().filter(|v| body.scalar_constant(**v).is_none()).count();
        }
        self.constants.extend(operands.iter().filter_map(|v| bits(body, *v)));
        for value in &step.inputs {
            let read = self.reads.entry(*value).or_insert(Read { first: member, n: 0 });
            read.first = member;
            read.n += 1;
        }
    }
}

/// The registers in use while a member's operands are loaded and its result is computed: `n`
/// operands, of which `dying` are not needed afterwards. All other held values are added to this.
fn peak(n: usize, dying: usize) -> usize {
    n.max(n - dying + 1)
}

fn distinct(step: &Step) -> SmallVec<[Value; 4]> {
    let mut values: SmallVec<[Value; 4]> = step.inputs.clone();
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns the bits of a constant, by which the interpreter distinguishes constants.
fn bits(body: &Body, value: Value) -> Option<(DType, u64)> {
    let constant = body.scalar_constant(value)?;
    Some((constant.0.dtype(), tile::constant_bits(constant)))
}

/// Whether the interpreter supports the operation at all.
fn runs_alone(body: &Body, step: &Step) -> bool {
    let member = Member { node: step.kernel.node(), reads: step.inputs.clone() };
    let inputs: SmallVec<[Value; 4]> =
        distinct(step).into_iter().filter(|v| body.scalar_constant(*v).is_none()).collect();
    tile::compile(body, &[member], &inputs, &step.outputs).is_ok()
}

/// The number of registers in use at each member, counted backwards from the last one.
///
/// When a step joins, its operands and its result are held longer: from the step to the member that
/// loaded them before. No value is held for longer than the group, and at each member no more
/// values are held than there are registers. All extensions together therefore cost as much as the
/// group is long.
#[derive(Default)]
struct Registers {
    taken: Vec<usize>,
    /// For each number of registers, one more than the index of the last member (the first to run)
    /// that uses at least that many.
    reached: [usize; TileProgram::MAX_REGISTERS + 1],
}

impl Registers {
    fn len(&self) -> usize {
        self.taken.len()
    }

    fn push(&mut self, taken: usize) {
        self.taken.push(0);
        self.set(self.taken.len() - 1, taken);
    }

    fn set(&mut self, member: usize, taken: usize) {
        self.taken[member] = taken;
        for reached in &mut self.reached[..=taken.min(TileProgram::MAX_REGISTERS)] {
            *reached = (*reached).max(member + 1);
        }
    }

    /// Adds a member that uses `taken` registers. One more value is held from each of the members
    /// in `from` on (counted backwards). Changes nothing if there are too few registers.
    fn extend(&mut self, mut from: SmallVec<[usize; MAX_RANGES]>, taken: usize) -> bool {
        from.sort_unstable();
        // Members from `from[i]` on hold at least i + 1 more values.
        for (i, &first) in from.iter().enumerate() {
            let most = TileProgram::MAX_REGISTERS - (i + 1);
            if self.reached[most + 1] > first {
                return false;
            }
        }
        for first in from {
            look(self.taken.len() - first);
            for member in first..self.taken.len() {
                self.set(member, self.taken[member] + 1);
            }
        }
        self.push(taken);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_run_out_where_too_many_values_are_held() {
        let mut registers = Registers::default();
        registers.push(2);
        // Fourteen values more are held at the second member than it takes itself.
        assert!(registers.extend(SmallVec::new(), 2));
        for _ in 0..14 {
            assert!(registers.extend(SmallVec::from_slice(&[1]), 1));
        }
        assert_eq!(registers.taken[..3], [2, 16, 14]);
        assert!(!registers.extend(SmallVec::from_slice(&[1]), 1));
        // Two at once are too many for the third, one is not.
        assert!(registers.extend(SmallVec::from_slice(&[2]), 1));
        assert!(!registers.extend(SmallVec::from_slice(&[2, 2]), 1));
        assert_eq!(registers.len(), 17);
    }
}
