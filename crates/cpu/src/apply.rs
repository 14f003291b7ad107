//! Steps that write variables: assignments and optimizer updates. They run after all other steps.

use std::collections::HashMap;

use estimand_graph::looks::look;
use estimand_graph::{Apply, GradientMut, Op, Program, RunArgs, Step, Value, VarId, trace};
use estimand_tensor::cpu::prefetch::{AHEAD, Prefetch};
use estimand_tensor::cpu::scatter;
use estimand_tensor::parallel::{DisjointMut, Pool};
use estimand_tensor::{DType, Dims, Error, Result};
use estimand_update::{Hyper, UpdateRule};
use smallvec::SmallVec;

use super::plan::{Place, Plan};
use super::state::{Bound, CpuState};
use super::workspace::Workspace;
use super::{CompiledStep, CpuExecutable, Stage, Work};

/// Elements of a dense update per task.
const DENSE_TASK: usize = 1 << 14;
/// Elements of a sparse update per task.
const ROWS_TASK: usize = 1 << 13;

/// Scratch memory of a sparse update besides the gradient: every id once, with its summed row.
struct RowsScratch<'a> {
    ids: &'a mut [i64],
    rows: &'a mut [f32],
    inverse: &'a mut [i32],
    table: &'a mut [u32],
    /// One bit for each row of the variable that has a gradient; empty if it is not needed.
    touched: &'a mut [u64],
}

impl RowsScratch<'_> {
    fn bytes(n: usize, width: usize, n_rows: usize) -> usize {
        n * 8 + n_rows.div_ceil(64) * 8 + n * width * 4 + n * 4 + scatter::unique_scratch_len(n) * 4
    }
}

impl CpuExecutable {
    /// Bytes of scratch memory of a step that writes a variable: the kernel's scratch memory, then
    /// a copy of each staged input.
    pub(super) fn write_scratch(&self, step: &CompiledStep, staged: &[Stage], dims: &[Dims]) -> usize {
        let copies = step.inputs.iter().zip(staged).filter(|(_, stage)| **stage != Stage::Never);
        let copies = copies.map(|(&n, _)| (byte_count(&dims[n], self.dtype(n))).next_multiple_of(64));
        self.kernel_scratch(step, dims) + copies.sum::<usize>()
    }

    fn kernel_scratch(&self, step: &CompiledStep, dims: &[Dims]) -> usize {
        match (&self.program.body().node(step.node).op, &step.inputs[..]) {
            (Op::Apply(apply), &[ids, values]) => {
                let width = dims[values][1..].iter().product();
                RowsScratch::bytes(dims[ids][0], width, self.decayed_rows(apply)).next_multiple_of(64)
            }
            _ => 0,
        }
    }

    /// Counts, for each value, the writing steps that read it.
    pub(super) fn n_writers(program: &Program) -> HashMap<Value, usize> {
        let mut n_writers: HashMap<Value, usize> = HashMap::new();
        for step in program.apply_steps() {
            look(1);
            for (i, input) in step.inputs.iter().enumerate() {
                if !step.inputs[..i].contains(input) {
                    *n_writers.entry(*input).or_default() += 1;
                }
            }
        }
        n_writers
    }

    /// Decides when the inputs of a writing step must be copied before anything is written.
    pub(super) fn staged(plan: &Plan, step: &Step, n_writers: &HashMap<Value, usize>) -> SmallVec<[Stage; 2]> {
        let shared = |v: &Value| n_writers.get(v).is_some_and(|n| *n > 1);
        let stage = |v: &Value| match plan.place(*v) {
            Place::Variable(_) => Stage::Always,
            Place::Feed(_) | Place::Constant(_) => Stage::IfChanged,
            Place::Buffer(_) if shared(v) => Stage::IfChanged,
            Place::Buffer(_) => Stage::Never,
        };
        step.inputs.iter().map(stage).collect()
    }

    /// Copies the staged inputs of all writing steps, and points the steps to the copies.
    /// `changed`: gradients may change.
    fn stage(&self, changed: bool, workspace: &mut Workspace) {
        workspace.written.clear();
        for (i, step) in self.steps.iter().enumerate().skip(self.program.compute_steps().len()) {
            let Work::Write { staged } = &step.work else { continue };
            // The copies follow the kernel's part of the step's scratch memory.
            let mut offset = self.kernel_scratch(step, &workspace.dims);
            let mut addresses = [std::ptr::null_mut(); 2];
            for ((&number, &stage), to) in step.inputs.iter().zip(staged).zip(&mut addresses) {
                let (mut address, len) = (workspace.addresses[number], workspace.lens[number]);
                if stage == Stage::Always || (stage == Stage::IfChanged && changed) {
                    let scratch = workspace.buffer(self.plan.n_value_buffers + i);
                    // SAFETY: `write_scratch` has reserved room for the copy, which does not
                    // overlap the value.
                    unsafe {
                        let copy = scratch.add(offset);
                        std::ptr::copy_nonoverlapping(address, copy, len);
                        address = copy;
                    }
                }
                if stage != Stage::Never {
                    offset += len.next_multiple_of(64);
                }
                *to = address;
            }
            workspace.written.push(addresses);
        }
    }

    /// The number of rows that change even without a gradient.
    fn decayed_rows(&self, apply: &Apply) -> usize {
        let body = self.program.body();
        let config = &body.optimizers()[apply.optimizer.0 as usize];
        if config.decays_all_rows() { body.variables().spec(apply.variable).dims[0] } else { 0 }
    }

    /// Runs the steps that write variables.
    pub(super) fn apply(&self, workspace: &mut Workspace, state: &mut CpuState, args: &mut RunArgs<'_>) -> Result<()> {
        let slots = std::mem::take(&mut workspace.slots);
        let result = self.write(workspace, Bound { state, slots: &slots }, args);
        workspace.slots = slots;
        result
    }

    /// Writes to a state that the caller borrows exclusively.
    fn write(&self, workspace: &mut Workspace, state: Bound<'_>, args: &mut RunArgs<'_>) -> Result<()> {
        workspace.hypers.clear();
        workspace.hypers.resize(self.program.body().optimizers().len(), None);
        self.stage(args.on_gradient.is_some(), workspace);
        self.prepare(workspace, state)?;
        if let Some(on_gradient) = &mut args.on_gradient {
            // All gradients are passed to the callback before any is applied: if a worker cannot be
            // reached, the state is unchanged.
            for i in self.program.compute_steps().len()..self.steps.len() {
                if let Op::Apply(apply) = &self.program.body().node(self.steps[i].node).op {
                    let (indices, values, len) = self.gradient(i, workspace);
                    // SAFETY: a buffer of the arena or a copy, and this step alone reads it.
                    let values = unsafe { std::slice::from_raw_parts_mut(values, len) };
                    let gradient = match indices {
                        None => GradientMut::Dense(values),
                        Some(indices) => GradientMut::Rows { indices, values },
                    };
                    on_gradient(apply.variable, gradient)?;
                }
            }
        }
        for i in self.program.compute_steps().len()..self.steps.len() {
            let (node, start) = (self.steps[i].node, trace::start(&args.trace));
            let result = match &self.program.body().node(node).op {
                Op::Assign(assign) => {
                    self.assign(i, assign.0, workspace, state);
                    Ok(())
                }
                Op::Apply(apply) => self.update(i, apply, workspace, state),
                other => Err(Error::internal(format!("{} among the updates", other.name()))),
            };
            result.map_err(|e| self.located(e, node))?;
            if let Some(trace) = &mut args.trace {
                self.note(i, start, workspace, trace);
            }
        }
        Ok(())
    }

    /// Reads and checks, before anything is written, what updates depend on beside their gradients:
    /// the counters of the optimizers, which this run may write too, and the ids of rows.
    fn prepare(&self, workspace: &mut Workspace, state: Bound<'_>) -> Result<()> {
        let body = self.program.body();
        for i in self.program.compute_steps().len()..self.steps.len() {
            let node = self.steps[i].node;
            let Op::Apply(apply) = &body.node(node).op else { continue };
            let number = apply.optimizer.0 as usize;
            if workspace.hypers[number].is_none() {
                let config = &body.optimizers()[number];
                let step = u64::try_from(state.array(config.iterations).item::<i64>()?).unwrap_or(0);
                let read = |id: VarId| state.array(id).item::<f32>().map(f64::from);
                workspace.hypers[number] = Some(config.hyper(step, read)?);
            }
            if let (Some(ids), ..) = self.gradient(i, workspace) {
                let n_rows = body.variables().spec(apply.variable).dims[0];
                check_ids(ids, n_rows).map_err(|e| self.located(e, node))?;
            }
        }
        Ok(())
    }

    fn assign(&self, i: usize, id: VarId, workspace: &mut Workspace, state: Bound<'_>) {
        let [from, _] = workspace.written[i - self.program.compute_steps().len()];
        // SAFETY: the value has the variable's size (checked when the graph was built) and is not
        // the variable itself.
        unsafe { std::ptr::copy_nonoverlapping(from, state.start(id), workspace.lens[self.steps[i].inputs[0]]) };
    }

    fn update(&self, i: usize, apply: &Apply, workspace: &mut Workspace, state: Bound<'_>) -> Result<()> {
        let body = self.program.body();
        let config = &body.optimizers()[apply.optimizer.0 as usize];
        let hyper = workspace.hypers[apply.optimizer.0 as usize];
        let hyper = hyper.ok_or_else(|| Error::internal("an update without its learning rate"))?;
        let (indices, values, len) = self.gradient(i, workspace);
        // SAFETY: the gradient has this length, and nothing writes to it any more.
        let values = unsafe { std::slice::from_raw_parts(values, len) };
        let scratch = workspace.buffer(self.plan.n_value_buffers + i);
        let mut target = Target::new(state, apply, &*config.rule, hyper);
        match indices {
            None => target.dense(&self.pool, values),
            Some(indices) => {
                let n_rows = body.variables().spec(apply.variable).dims[0];
                let scratch = split_scratch(scratch, indices.len(), target.width(n_rows), self.decayed_rows(apply));
                target.rows(&self.pool, n_rows, indices, values, scratch);
            }
        }
        drop(target);
        let spec = body.variables().spec(apply.variable);
        if let Some(constraint) = &spec.constraint {
            // SAFETY: the state is borrowed exclusively, and the update is over.
            constraint.project(&spec.dims, unsafe { state.weights(apply.variable) });
        }
        Ok(())
    }

    /// Returns the gradient that an update applies: its row ids, if it is a gradient of rows, the
    /// address of its values, and their number.
    fn gradient<'a>(&self, i: usize, workspace: &Workspace) -> (Option<&'a [i64]>, *mut f32, usize) {
        let step = &self.steps[i];
        let addresses = workspace.written[i - self.program.compute_steps().len()];
        let last = step.inputs.len() - 1;
        let indices = (last == 1).then(|| {
            // SAFETY: the ids have this length and nothing writes to them; arena and feeds stay
            // where they are until the run ends, and the slice is gone by then.
            unsafe { std::slice::from_raw_parts(addresses[0].cast(), workspace.dims[step.inputs[0]][0]) }
        });
        (indices, addresses[last].cast(), workspace.lens[step.inputs[last]] / 4)
    }
}

fn byte_count(dims: &[usize], dtype: DType) -> usize {
    dims.iter().product::<usize>() * dtype.size()
}

/// Checks that ids are rows of a variable.
fn check_ids(ids: &[i64], n_rows: usize) -> Result<()> {
    match ids.iter().position(|&id| id < 0 || id >= n_rows as i64) {
        None => Ok(()),
        Some(position) => {
            Err(Error::index(format!("index {} at position {position} is not in [0, {n_rows})", ids[position])))
        }
    }
}

/// Splits a step's scratch buffer into its parts, those with the widest elements first.
fn split_scratch<'a>(scratch: *mut u8, n: usize, width: usize, decayed_rows: usize) -> RowsScratch<'a> {
    let words = decayed_rows.div_ceil(64);
    let mut at = scratch;
    let mut take = |bytes: usize| {
        let part = at;
        // SAFETY: the parts add up to `RowsScratch::bytes`, which the buffer has room for.
        at = unsafe { at.add(bytes) };
        part
    };
    // SAFETY: the parts are disjoint. They are aligned because the buffer is and element sizes fall
    // from part to part. Any bits are valid values of these types.
    unsafe {
        RowsScratch {
            ids: std::slice::from_raw_parts_mut(take(n * 8).cast(), n),
            touched: std::slice::from_raw_parts_mut(take(words * 8).cast(), words),
            rows: std::slice::from_raw_parts_mut(take(n * width * 4).cast(), n * width),
            inverse: std::slice::from_raw_parts_mut(take(n * 4).cast(), n),
            table: {
                let len = scatter::unique_scratch_len(n);
                std::slice::from_raw_parts_mut(take(len * 4).cast(), len)
            },
        }
    }
}

/// A variable and its slots, borrowed mutably.
struct Target<'a> {
    rule: &'a dyn UpdateRule,
    hyper: Hyper,
    weights: DisjointMut<'a, f32>,
    slots: SmallVec<[DisjointMut<'a, f32>; 3]>,
    /// The addresses where weights and slots begin, for prefetching rows.
    starts: SmallVec<[*const f32; 4]>,
    len: usize,
}

// SAFETY: the addresses in `starts` are only prefetched; everything else is shared as `DisjointMut`
// allows.
unsafe impl Sync for Target<'_> {}

impl<'a> Target<'a> {
    fn new(state: Bound<'a>, apply: &Apply, rule: &'a dyn UpdateRule, hyper: Hyper) -> Target<'a> {
        // SAFETY: the state is borrowed exclusively, and a variable and its slots are different
        // variables.
        let open = |id: VarId| unsafe { state.weights(id) };
        let weights = open(apply.variable);
        let (len, mut starts) = (weights.len(), SmallVec::from_slice(&[weights.as_ptr()]));
        let mut slots = SmallVec::new();
        for &id in &apply.slots {
            let slot = open(id);
            starts.push(slot.as_ptr());
            slots.push(DisjointMut::new(slot));
        }
        Target { rule, hyper, weights: DisjointMut::new(weights), slots, starts, len }
    }

    fn width(&self, n_rows: usize) -> usize {
        self.len.checked_div(n_rows).unwrap_or(0)
    }

    /// Passes a part of the weights and slots to the update rule.
    ///
    /// # Safety
    /// No other thread may use a part that overlaps.
    unsafe fn part(&self, start: usize, len: usize, gradient: Option<&[f32]>) {
        // SAFETY: passed on.
        let weights = unsafe { self.weights.slice(start, len) };
        let mut slots: SmallVec<[&mut [f32]; 3]> =
            // SAFETY: passed on.
            self.slots.iter().map(|slot| unsafe { slot.slice(start, len) }).collect();
        match gradient {
            Some(gradient) => self.rule.update(&self.hyper, weights, gradient, &mut slots),
            None => self.rule.decay(&self.hyper, weights, &mut slots),
        }
    }

    fn dense(&mut self, pool: &Pool, gradient: &[f32]) {
        let this = &*self;
        pool.run(self.len.div_ceil(DENSE_TASK), &|task| {
            let start = task * DENSE_TASK;
            let len = DENSE_TASK.min(this.len - start);
            // SAFETY: each task has a range of its own.
            unsafe { this.part(start, len, Some(&gradient[start..start + len])) }
        });
    }

    fn rows(&mut self, pool: &Pool, n_rows: usize, ids: &[i64], values: &[f32], scratch: RowsScratch<'_>) {
        let width = self.width(n_rows);
        let RowsScratch { ids: unique, rows, inverse, table, touched } = scratch;
        let n = scatter::unique(ids, unique, inverse, table);
        // If the host has made the ids unique, there is nothing to sum: the rows are used without a
        // copy.
        let rows = if n == ids.len() {
            values
        } else {
            scatter::sum_rows(pool, width, inverse, values, &mut rows[..n * width]);
            &*rows
        };
        let (this, unique) = (&*self, &unique[..n]);
        let per_task = (ROWS_TASK / width.max(1)).max(1);
        let tables: SmallVec<[Prefetch<f32>; 4]> =
            self.starts.iter().map(|&s| Prefetch::new(s, self.len, width)).collect();
        pool.run(n.div_ceil(per_task), &|task| {
            let range = task * per_task..n.min((task + 1) * per_task);
            for k in range {
                if let Some(&soon) = unique.get(k + AHEAD) {
                    tables.iter().filter(|t| t.pays).for_each(|t| t.row(soon as usize, 0..width));
                }
                let row = unique[k] as usize * width;
                // SAFETY: the ids are distinct, so the rows of all tasks are. `prepare` has
                // checked that the variable has them.
                unsafe { this.part(row, width, Some(&rows[k * width..(k + 1) * width])) }
            }
        });
        if !touched.is_empty() {
            touched.fill(0);
            for &id in unique {
                touched[id as usize / 64] |= 1 << (id % 64);
            }
            self.decay_rest(pool, n_rows, width, touched);
        }
    }

    /// Decays the rows without a gradient, in contiguous runs that are as long as possible.
    fn decay_rest(&self, pool: &Pool, n_rows: usize, width: usize, touched: &[u64]) {
        let per_task = (DENSE_TASK / width.max(1)).max(1);
        let is_touched = |row: usize| touched[row / 64] >> (row % 64) & 1 == 1;
        pool.run(n_rows.div_ceil(per_task), &|task| {
            let end = n_rows.min((task + 1) * per_task);
            let mut row = task * per_task;
            while row < end {
                let first = row;
                while row < end && !is_touched(row) {
                    row += 1;
                }
                // SAFETY: tasks have ranges of rows of their own.
                unsafe { self.part(first * width, (row - first) * width, None) }
                row += 1;
            }
        });
    }
}
