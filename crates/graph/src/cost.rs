//! The cost of a step: the bytes it moves and the operations it computes, counted from its sizes.
//! Each op reports its cost (`op/`), and so does each kernel of an executor.
//!
//! Bytes are the least that a step must read and write. For a table that is gathered from, only the
//! gathered rows count. FLOPs follow the textbook: 2 for a term of a product, 1 for an element of
//! an element-wise node or a reduction, whatever the function. Layout ops, random numbers and
//! custom ops count none. Profiles compare both with the machine's peak rates.

use std::ops::AddAssign;

use smallvec::SmallVec;

use crate::body::Body;
use crate::program::{Kernel, Program, Step};
use crate::value::Value;

/// Bytes that are moved and operations on floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Additions, multiplications, comparisons and functions of floats.
    pub flops: u64,
}

impl Cost {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read.saturating_add(self.written)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.flops = self.flops.saturating_add(other.flops);
    }
}

/// The peak rates of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Operations on floats per second.
    pub flops: f64,
    /// Bytes read and written per second.
    pub bytes: f64,
}

impl Rates {
    /// Returns a lower bound for the time of this cost in seconds, if the data it reads and writes
    /// is in memory.
    pub fn bound(&self, cost: &Cost) -> f64 {
        (cost.bytes() as f64 / self.bytes).max(cost.flops as f64 / self.flops)
    }
}

/// Multiplies without overflow: it saturates. Sizes come from the fed arrays, so they may be large.
pub fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |all, &n| all.saturating_mul(n as u64))
}

/// The number of elements of an array.
pub fn count(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// The operands of an op: the sizes and the bytes of its inputs and results.
pub struct Operands<'a> {
    /// The graph.
    pub body: &'a Body,
    /// The sizes of the inputs.
    pub x: &'a [&'a [usize]],
    /// The sizes of the results.
    pub y: &'a [&'a [usize]],
    /// The bytes of the inputs.
    pub x_bytes: SmallVec<[u64; 10]>,
    /// The bytes of the results.
    pub y_bytes: SmallVec<[u64; 4]>,
}

impl<'a> Operands<'a> {
    fn new(program: &'a Program, step: &Step, x: &'a [&'a [usize]], y: &'a [&'a [usize]]) -> Operands<'a> {
        let size =
            |(value, dims): (&Value, &&[usize])| product(dims).saturating_mul(program.spec(*value).dtype.size() as u64);
        let x_bytes = step.inputs.iter().zip(x).map(size).collect();
        let y_bytes = step.outputs.iter().zip(y).map(size).collect();
        Operands { body: program.body(), x, y, x_bytes, y_bytes }
    }

    /// The bytes of all inputs.
    pub(crate) fn read(&self) -> u64 {
        self.x_bytes.iter().sum()
    }

    /// The bytes of all results.
    pub(crate) fn written(&self) -> u64 {
        self.y_bytes.iter().sum()
    }

    /// The cost of an op that reads all of its inputs and writes all of its results.
    pub fn all(&self, flops: u64) -> Cost {
        Cost { read: self.read(), written: self.written(), flops }
    }

    /// The cost of an op that gathers its result from the first input, by indices.
    pub(crate) fn looked_up(&self) -> Cost {
        let indices: u64 = self.x_bytes[1..].iter().sum();
        Cost { read: indices + self.written(), written: self.written(), flops: 0 }
    }
}

/// The cost of a step whose inputs have the sizes `x` and whose outputs have the sizes `y`.
pub fn cost(program: &Program, step: &Step, x: &[&[usize]], y: &[&[usize]]) -> Cost {
    let operands = Operands::new(program, step, x, y);
    match &step.kernel {
        Kernel::Node(node) => program.body().node(*node).op.rules().cost(&operands),
        Kernel::Fused(fused) => fused.cost(&operands),
    }
}
