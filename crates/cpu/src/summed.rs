//! Element-wise groups whose results are added up over all axes but the last.

use estimand_graph::{Program, Step, Value};
use estimand_tensor::cpu::elementwise::{InputView, MAX_SUMS, OutputSum, TileProgram, sums_scratch_len};
use estimand_tensor::{Error, Result};
use smallvec::SmallVec;

use super::call::spread;
use super::kernel::{Member, Sum};
use super::workspace::Workspace;
use super::{CpuExecutable, tile};

/// A compiled group. The outputs of its step are the results that are stored, then the sums.
pub(super) struct Summed {
    program: TileProgram,
    /// The index of an input that has the sizes of the group.
    pub(super) like: usize,
    /// For each result of the group: its index among the step's outputs, if it is stored.
    stored: SmallVec<[Option<usize>; TileProgram::MAX_OUTPUTS]>,
    sums: SmallVec<[Sum; MAX_SUMS]>,
}

impl Summed {
    pub(super) fn new(
        program: &Program,
        step: &Step,
        members: &[Member],
        made: &[Value],
        sums: &[Sum],
    ) -> Result<Summed> {
        let shape = &program.spec(made[0]).shape;
        let like = step.inputs.iter().position(|&input| program.spec(input).shape == *shape);
        Ok(Summed {
            program: tile::compile(program.body(), members, &step.inputs, made)?,
            like: like.ok_or_else(|| Error::internal("no input of a group has its shape"))?,
            stored: made.iter().map(|value| step.outputs.iter().position(|output| output == value)).collect(),
            sums: sums.into(),
        })
    }

    /// The sizes of the group, from those of its inputs.
    pub(super) fn space<'a>(&self, x: &[&'a [usize]]) -> &'a [usize] {
        x[self.like]
    }

    pub(super) fn scratch_bytes(&self, space: &[usize]) -> usize {
        sums_scratch_len(space, self.sums.len()) * size_of::<f64>()
    }
}

impl CpuExecutable {
    pub(super) fn run_summed(&self, i: usize, summed: &Summed, workspace: &Workspace) -> Result<()> {
        let step = &self.steps[i];
        let space = &workspace.dims[step.inputs[summed.like]];
        let inputs: SmallVec<[InputView; 6]> = (step.inputs.iter())
            .map(|&n| InputView { ptr: workspace.addresses[n], strides: spread(&workspace.dims[n], space) })
            .collect();
        let address = |output: usize| workspace.addresses[step.outputs[output]];
        let outputs: SmallVec<[*mut u8; TileProgram::MAX_OUTPUTS]> =
            summed.stored.iter().map(|stored| stored.map_or(std::ptr::null_mut(), address)).collect();
        let first = step.outputs.len() - summed.sums.len();
        let sum =
            |(k, sum): (usize, &Sum)| OutputSum { kind: sum.kind, output: sum.of, out: address(first + k).cast() };
        let sums: SmallVec<[OutputSum; MAX_SUMS]> = summed.sums.iter().enumerate().map(sum).collect();
        let scratch = workspace.buffer(self.plan.n_value_buffers + i).cast::<f64>();
        // SAFETY: the step's own scratch buffer, aligned to 64 bytes; inputs and outputs are
        // buffers of the sizes that `bind` has checked, and the plan lets none of them overlap.
        let by_zero = unsafe {
            let scratch = std::slice::from_raw_parts_mut(scratch, workspace.scratch[i] / size_of::<f64>());
            summed.program.run_and_sum(&self.pool, space, &inputs, &outputs, &sums, scratch)
        };
        by_zero.map_or(Ok(()), |number| Err(self.division_by_zero(i, number)))
    }
}
