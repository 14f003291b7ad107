//! Compiles element-wise groups to programs of the tile interpreter: assigns values to registers
//! and frees the registers.

use std::collections::HashMap;

use estimand_graph::op::{Cast, Constant, Op};
use estimand_graph::{Body, Value};
use estimand_tensor::cpu::elementwise::{Instruction, TileProgram};
use estimand_tensor::{Error, Result};

use crate::kernel::Member;

/// The bits of a scalar constant, which becomes an instruction instead of an input.
pub(crate) fn constant_bits(constant: &Constant) -> u64 {
    let mut bits = [0; 8];
    bits[..constant.0.bytes().len()].copy_from_slice(constant.0.bytes());
    u64::from_le_bytes(bits)
}

/// Returns the instructions of a group. `None` if it needs more registers than there are.
fn instructions(body: &Body, members: &[Member], inputs: &[Value], outputs: &[Value]) -> Option<Vec<Instruction>> {
    Allocator::new(body, members, inputs, outputs).run(members)
}

/// Compiles a group.
pub(crate) fn compile(body: &Body, members: &[Member], inputs: &[Value], outputs: &[Value]) -> Result<TileProgram> {
    let dtypes = |values: &[Value]| values.iter().map(|v| body.spec(*v).dtype).collect::<Vec<_>>();
    let code = instructions(body, members, inputs, outputs)
        .ok_or_else(|| Error::internal("an element-wise group needs too many registers"))?;
    TileProgram::new(&dtypes(inputs), &dtypes(outputs), code).map_err(Error::internal)
}

struct Allocator<'a> {
    body: &'a Body,
    inputs: &'a [Value],
    outputs: &'a [Value],
    /// The last member that reads a value.
    last_use: HashMap<Value, usize>,
    held: HashMap<Value, u8>,
    free: Vec<u8>,
    code: Vec<Instruction>,
}

impl<'a> Allocator<'a> {
    fn new(body: &'a Body, members: &[Member], inputs: &'a [Value], outputs: &'a [Value]) -> Allocator<'a> {
        let mut last_use = HashMap::new();
        for (i, member) in members.iter().enumerate() {
            for value in &member.reads {
                last_use.insert(*value, i);
            }
        }
        let free = (0..TileProgram::MAX_REGISTERS as u8).rev().collect();
        Allocator { body, inputs, outputs, last_use, held: HashMap::new(), free, code: Vec::new() }
    }

    fn run(mut self, members: &[Member]) -> Option<Vec<Instruction>> {
        for (i, Member { node, reads }) in members.iter().enumerate() {
            let x: Vec<u8> = reads.iter().map(|v| self.operand(*v)).collect::<Option<_>>()?;
            let made = Value { node: *node, output: 0 };
            let dtype = |k: usize| self.body.spec(reads[k]).dtype;
            // A value that is read here for the last time frees its register for the result.
            for value in reads {
                if self.last_use[value] == i
                    && let Some(register) = self.held.remove(value)
                {
                    self.free.push(register);
                }
            }
            let dst = self.free.pop()?;
            let op = &self.body.node(*node).op;
            match op {
                Op::Unary(op) => self.code.push(Instruction::Unary { op: *op, dtype: dtype(0), dst, x: x[0] }),
                Op::Binary(op) => {
                    self.code.push(Instruction::Binary { op: *op, dtype: dtype(0), dst, x: x[0], y: x[1] });
                }
                Op::Select(_) => {
                    self.code.push(Instruction::Select { dtype: dtype(1), dst, condition: x[0], x: x[1], y: x[2] });
                }
                Op::Cast(Cast { to }) => self.code.push(Instruction::Cast { from: dtype(0), to: *to, dst, x: x[0] }),
                // The load has already broadcast it to the space; a cast to the same dtype is a
                // copy.
                Op::BroadcastTo(_) => {
                    self.code.push(Instruction::Cast { from: dtype(0), to: dtype(0), dst, x: x[0] });
                }
                // Not element-wise: the interpreter cannot run it.
                _ => return None,
            }
            if let Some(output) = self.outputs.iter().position(|o| *o == made) {
                self.code.push(Instruction::Store { src: dst, output: output as u8 });
            }
            if self.last_use.contains_key(&made) {
                self.held.insert(made, dst);
            } else {
                self.free.push(dst);
            }
        }
        Some(self.code)
    }

    /// Returns the register that holds a value. Loads the value if it comes from outside.
    fn operand(&mut self, value: Value) -> Option<u8> {
        if let Some(&register) = self.held.get(&value) {
            return Some(register);
        }
        let dst = self.free.pop()?;
        if let Some(constant) = self.body.scalar_constant(value) {
            let bits = constant_bits(constant);
            self.code.push(Instruction::Constant { dst, dtype: constant.0.dtype(), bits });
        } else {
            let input = self.inputs.iter().position(|v| *v == value)?;
            self.code.push(Instruction::Load { dst, input: input as u8 });
        }
        self.held.insert(value, dst);
        Some(dst)
    }
}
