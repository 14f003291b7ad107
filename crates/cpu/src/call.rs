//! Runs one step: makes slices of its inputs and outputs and calls its kernel.

use estimand_graph::draw::Position;
use estimand_graph::op::shape::spreads_to;
use estimand_graph::op::{Op, Print, Random, RandomKind};
use estimand_graph::trace::{self, Phase, Trace};
use estimand_graph::{Node, Program, RunArgs, Step, Value};
use estimand_tensor::cpu::elementwise::{InputView, TileProgram, is_integer_division};
use estimand_tensor::parallel::{DisjointMut, Pool};
use estimand_tensor::{Array, DType, Dims, Element, Error, MAX_RANK, Result};
use smallvec::SmallVec;

use super::kernel::{After, Fused, Member, fused};
use super::operands::{KernelCall, View, ViewMut};
use super::workspace::Workspace;
use super::{CompiledStep, CpuExecutable, Work};

/// Refuses a step that this executor cannot run before anything runs. The error names the op.
pub(super) fn check_supported(program: &Program, step: &Step) -> Result<()> {
    let node = program.body().node(step.kernel.node());
    let products = |op: &Op| {
        matches!(
            op,
            Op::MatMul(_)
                | Op::BatchMatMul(_)
                | Op::Conv2d(_)
                | Op::Conv2dBackpropInput(_)
                | Op::Conv2dBackpropFilter(_)
                | Op::DepthwiseConv2d(_)
                | Op::DepthwiseConv2dBackpropInput(_)
                | Op::DepthwiseConv2dBackpropFilter(_)
                | Op::MaxPool(_)
                | Op::MaxPoolGrad(_)
                | Op::AvgPool(_)
                | Op::AvgPoolGrad(_)
                | Op::Softmax(_)
                | Op::LogSoftmax(_)
                | Op::SoftmaxCrossEntropy(_)
                | Op::SparseSoftmaxCrossEntropy(_)
                | Op::SparseSegment(_)
                | Op::SparseSegmentGrad(_)
                | Op::Recurrent(_)
                | Op::RecurrentGrad(_)
        )
    };
    let dtype = |v: &Value| program.spec(*v).dtype;
    if step.inputs.iter().chain(&step.outputs).any(|v| dtype(v) == DType::Str) {
        return Err(unsupported(node, "strings"));
    }
    if products(&node.op) && step.outputs.iter().any(|v| dtype(v) == DType::F64) {
        return Err(unsupported(node, "f64").help("cast to f32, or run it on the reference executor"));
    }
    Ok(())
}

fn unsupported(node: &Node, what: &str) -> Error {
    Error::unsupported(format!("the cpu executor cannot compute {} of {what}", node.op.name()))
        .context(format!("in node `{}`", node.name))
        .at(node.site)
}

impl CpuExecutable {
    /// Checks that sizes fit that were symbols when the graph was built and are known only now.
    pub(super) fn check_sizes(&self, dims: &[Dims]) -> Result<()> {
        for step in &self.steps {
            let x: SmallVec<[&[usize]; 10]> = step.inputs.iter().map(|&n| &dims[n][..]).collect();
            let y = step.outputs.first().map_or(&[][..], |&n| &dims[n][..]);
            let op = &self.program.body().node(step.node).op;
            let fits = match &step.work {
                Work::Tile(_) => x.iter().all(|d| spreads_to(d, y)),
                Work::Summed(summed) => x.iter().all(|d| spreads_to(d, summed.space(&x))),
                _ => op.rules().fits(&x, y),
            };
            if !fits {
                let list: Vec<String> = x.iter().map(|d| format!("{d:?}")).collect();
                let error = Error::shape(format!(
                    "{} was given the shapes {}, which do not fit",
                    op.name(),
                    list.join(" and ")
                ));
                return Err(self.located(error, step.node));
            }
        }
        Ok(())
    }

    /// Bytes of scratch memory that a step needs.
    pub(super) fn scratch_bytes(&self, step: &CompiledStep, dims: &[Dims]) -> Result<usize> {
        let after = match &step.work {
            Work::Tile(_) | Work::View => return Ok(0),
            Work::Write { staged } => return Ok(self.write_scratch(step, staged, dims)),
            Work::Summed(summed) => return Ok(summed.scratch_bytes(&dims[step.inputs[summed.like]])),
            Work::Node(after) => Some(*after),
            Work::PooledProduct { .. } | Work::PooledGradient { .. } => None,
        };
        let x: SmallVec<[&[usize]; 10]> = step.inputs.iter().map(|&n| &dims[n][..]).collect();
        let y = step.outputs.first().map_or(&[][..], |&n| &dims[n][..]);
        let op = &self.program.body().node(step.node).op;
        Ok(match after {
            Some(after) => scratch_bytes(op, after, &x, y),
            None => super::windows::pooled_scratch_bytes(op, &x, y),
        })
    }

    /// Runs the steps that compute.
    pub(super) fn compute(&self, workspace: &mut Workspace, args: &mut RunArgs<'_>) -> Result<()> {
        let position = Position { seed: args.seed, step: args.step, row_offset: args.row_offset };
        for (i, step) in self.steps[..self.program.compute_steps().len()].iter().enumerate() {
            let start = trace::start(&args.trace);
            match &step.work {
                Work::Tile(tile) => self.run_tile(i, tile, workspace)?,
                Work::Summed(summed) => self.run_summed(i, summed, workspace)?,
                Work::View | Work::Write { .. } => {}
                Work::Node(after) => self.call(i, position, workspace, |call| call.dispatch(*after))?,
                Work::PooledProduct { after, pool } => {
                    let pool = &self.program.body().node(*pool).op;
                    self.call(i, position, workspace, |call| call.pooled_product(pool, *after))?;
                }
                Work::PooledGradient { pool } => {
                    let pool = &self.program.body().node(*pool).op;
                    self.call(i, position, workspace, |call| call.pooled_gradient(pool))?;
                }
            }
            if let Some(trace) = &mut args.trace {
                self.note(i, start, workspace, trace);
            }
        }
        Ok(())
    }

    /// Records the time of a step.
    pub(super) fn note(&self, i: usize, start: u64, workspace: &Workspace, trace: &mut Trace) {
        let step = &self.steps[i];
        trace.add(Phase::Step, i, step.node, start, || {
            let dims = |&n: &usize| &workspace.dims[n][..];
            let x: SmallVec<[&[usize]; 10]> = step.inputs.iter().map(dims).collect();
            let y: SmallVec<[&[usize]; 4]> = step.outputs.iter().map(dims).collect();
            estimand_graph::cost::cost(&self.program, &self.program.steps()[i], &x, &y)
        });
    }

    fn run_tile(&self, i: usize, tile: &TileProgram, workspace: &Workspace) -> Result<()> {
        let step = &self.steps[i];
        let space = &workspace.dims[step.outputs[0]];
        let view = |&n: &usize| InputView { ptr: workspace.addresses[n], strides: spread(&workspace.dims[n], space) };
        let mut inputs: SmallVec<[InputView; 6]> = SmallVec::new();
        inputs.extend(step.inputs.iter().map(view));
        let outputs: SmallVec<[*mut u8; TileProgram::MAX_OUTPUTS]> =
            step.outputs.iter().map(|&n| workspace.addresses[n]).collect();
        // SAFETY: inputs and outputs are buffers of the sizes that `bind` has checked; only an
        // output that takes a dying input's place overlaps with it, exactly.
        let by_zero = unsafe { tile.run(&self.pool, space, &inputs, &outputs) };
        by_zero.map_or(Ok(()), |number| Err(self.division_by_zero(i, number)))
    }

    /// The error for integer division `number` in the element-wise step `i`.
    // TF: InvalidArgumentError, "Integer division by zero", for FloorDiv and FloorMod of integers.
    pub(super) fn division_by_zero(&self, i: usize, number: usize) -> Error {
        let body = self.program.body();
        let divides = |member: &&Member| match body.node(member.node).op {
            Op::Binary(op) => is_integer_division(op, body.spec(member.reads[1]).dtype),
            _ => false,
        };
        let node = match fused(&self.program.steps()[i].kernel) {
            Some(Fused::Elementwise(members) | Fused::Summed { members, .. }) => {
                members.iter().filter(divides).nth(number).map(|member| member.node)
            }
            _ => None,
        };
        let error = Error::config("integer division by zero: an element of the divisor is 0")
            .help("replace zeros first, for example with `maximum(1)`, or divide floats");
        self.located(error, node.unwrap_or(self.steps[i].node))
    }

    /// Makes slices of a step's inputs, outputs and scratch memory, and runs its kernel.
    fn call(
        &self,
        i: usize,
        position: Position,
        workspace: &mut Workspace,
        kernel: impl FnOnce(&mut KernelCall<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let step = &self.steps[i];
        let scratch = workspace.buffer(self.plan.n_value_buffers + i);
        let workspace = &*workspace;
        // Filled one by one: a list that is collected is copied, with the room for elements that it
        // does not have.
        let mut x: SmallVec<[View<'_>; 10]> = SmallVec::new();
        for &n in &step.inputs {
            x.push(View {
                dtype: self.dtype(n),
                dims: &workspace.dims[n],
                // SAFETY: the value has this length; nothing writes to it during the step.
                bytes: unsafe { std::slice::from_raw_parts(workspace.addresses[n], workspace.lens[n]) },
            });
        }
        let mut y: SmallVec<[ViewMut<'_>; 4]> = SmallVec::new();
        for &n in &step.outputs {
            y.push(ViewMut {
                dtype: self.dtype(n),
                dims: &workspace.dims[n],
                // SAFETY: the plan gives an output of such a step a buffer that overlaps with
                // nothing alive.
                bytes: unsafe { std::slice::from_raw_parts_mut(workspace.addresses[n], workspace.lens[n]) },
            });
        }
        let mut call = KernelCall {
            pool: &self.pool,
            node: self.program.body().node(step.node),
            x: &x,
            y: &mut y,
            // SAFETY: the step's own scratch buffer, of at least this capacity.
            scratch: unsafe { std::slice::from_raw_parts_mut(scratch, workspace.scratch[i]) },
            position,
            symbols: workspace.symbols(),
        };
        kernel(&mut call).map_err(|e| self.located(e, step.node))
    }
}

/// Draws ranges of rows on all threads: the numbers of a row depend only on its position.
fn draw_rows<T: Element>(
    pool: &Pool,
    position: Position,
    dims: &[usize],
    out: &mut [T],
    draw: &(impl Fn(Position, &[usize], &mut [T]) + Sync),
) {
    const TASK: usize = 1 << 13;
    let Some((&rows, rest)) = dims.split_first() else { return draw(position, dims, out) };
    let width = rest.iter().product::<usize>();
    let per_task = (TASK / width.max(1)).max(1);
    let out = DisjointMut::new(out);
    pool.run(rows.div_ceil(per_task), &|task| {
        let first = task * per_task;
        let n = per_task.min(rows - first);
        // SAFETY: each task has rows of its own.
        let part = unsafe { out.slice(first * width, n * width) };
        let mut part_dims: Dims = dims.into();
        part_dims[0] = n;
        draw(Position { row_offset: position.row_offset + first as u64, ..position }, &part_dims, part);
    });
}

/// Element strides of a dense array broadcast to `space`.
pub(super) fn spread(dims: &[usize], space: &[usize]) -> [usize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut stride = 1;
    let missing = space.len() - dims.len();
    for axis in (0..dims.len()).rev() {
        if dims[axis] == space[axis + missing] {
            strides[axis + missing] = stride;
        }
        stride *= dims[axis];
    }
    strides
}

/// Bytes of scratch memory that the kernel of a node needs, for inputs and a first result of these
/// sizes.
fn scratch_bytes(op: &Op, after: After, x: &[&[usize]], y: &[usize]) -> usize {
    use super::{index, products, recurrent, reductions, windows};
    match op {
        Op::Reduce(op) => reductions::scratch_bytes(op.axes, x[0]),
        Op::SumTo(_) => reductions::scratch_bytes(reductions::broadcast_axes(x[0], x[1]), x[0]),
        Op::UnsortedSegment(op) => index::segment_scratch_bytes(op, y),
        Op::MatMul(op) => products::scratch_bytes(op, after, x),
        Op::BatchMatMul(op) => products::batch_scratch_bytes(op, x, y),
        Op::Conv2d(op) => windows::conv_scratch(op, x) * 4,
        Op::Conv2dBackpropInput(op) => windows::conv_input_scratch(op, x, y) * 4,
        Op::Conv2dBackpropFilter(op) => windows::conv_filter_scratch(op, x, y) * 4,
        Op::DepthwiseConv2d(op) => windows::depthwise_scratch(&op.window, x[0], x[1]) * 4,
        Op::DepthwiseConv2dBackpropInput(op) => windows::depthwise_scratch(&op.window, y, x[0]) * 4,
        Op::DepthwiseConv2dBackpropFilter(op) => windows::depthwise_scratch(&op.window, x[0], y) * 4,
        Op::Recurrent(op) => recurrent::scratch(op, x) * 4,
        Op::RecurrentGrad(op) => recurrent::gradient_scratch(&op.0, x) * 4,
        // These kernels need no memory of their own.
        Op::Placeholder(_)
        | Op::Constant(_)
        | Op::Variable(_)
        | Op::Host(_)
        | Op::Group(_)
        | Op::Apply(_)
        | Op::Assign(_)
        | Op::DimSize(_)
        | Op::Range(_)
        | Op::Random(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Select(_)
        | Op::Cast(_)
        | Op::StopGradient(_)
        | Op::Print(_)
        | Op::Custom(_)
        | Op::Reshape(_)
        | Op::BroadcastTo(_)
        | Op::Transpose(_)
        | Op::Concat(_)
        | Op::Slice(_)
        | Op::StridedSlice(_)
        | Op::StridedSliceGrad(_)
        | Op::Pad(_)
        | Op::MirrorPad(_)
        | Op::MirrorPadGrad(_)
        | Op::Tile(_)
        | Op::Reverse(_)
        | Op::BandPart(_)
        | Op::ArgMax(_)
        | Op::Cumulate(_)
        | Op::TopK(_)
        | Op::MaxPool(_)
        | Op::MaxPoolGrad(_)
        | Op::AvgPool(_)
        | Op::AvgPoolGrad(_)
        | Op::Softmax(_)
        | Op::LogSoftmax(_)
        | Op::SoftmaxCrossEntropy(_)
        | Op::SparseSoftmaxCrossEntropy(_)
        | Op::Gather(_)
        | Op::GatherNd(_)
        | Op::ScatterNd(_)
        | Op::SparseSegment(_)
        | Op::SparseSegmentGrad(_)
        | Op::OneHot(_)
        | Op::Resize(_)
        | Op::ResizeGrad(_) => 0,
    }
}

impl KernelCall<'_, '_> {
    /// Calls the kernel of the step.
    fn dispatch(&mut self, after: After) -> Result<()> {
        let node = self.node;
        match &node.op {
            Op::DimSize(op) => self.dim_size(op),
            Op::Range(op) => self.range(op),
            Op::Random(op) => self.random(op),
            Op::Print(op) => self.print(op),
            Op::Custom(op) => self.custom(op),

            Op::SumTo(_) => self.sum_to(),
            Op::Transpose(op) => self.transpose(op),
            Op::Concat(op) => self.concat(op),
            Op::Slice(op) => self.slice(op),
            Op::StridedSlice(op) => self.strided_slice(op),
            Op::StridedSliceGrad(op) => self.strided_slice_grad(op),
            Op::Pad(op) => self.pad(op),
            Op::MirrorPad(op) => self.mirror_pad(op),
            Op::MirrorPadGrad(op) => self.mirror_pad_grad(op),
            Op::Tile(op) => self.tile(op),
            Op::Reverse(op) => self.reverse(op),
            Op::BandPart(op) => self.band_part(op),

            Op::Reduce(op) => self.reduce(op.kind, op.axes),
            Op::ArgMax(op) => self.arg_max(op),
            Op::Cumulate(op) => self.cumulate(op),
            Op::TopK(op) => self.top_k(op),

            Op::MatMul(op) => self.matmul(op, after),
            Op::BatchMatMul(op) => self.batch_matmul(op),
            Op::Conv2d(op) => self.conv2d(op, after),
            Op::Conv2dBackpropInput(op) => self.conv2d_backprop_input(op),
            Op::Conv2dBackpropFilter(op) => self.conv2d_backprop_filter(op),
            Op::DepthwiseConv2d(op) => self.depthwise_conv2d(op),
            Op::DepthwiseConv2dBackpropInput(op) => self.depthwise_conv2d_backprop_input(op),
            Op::DepthwiseConv2dBackpropFilter(op) => self.depthwise_conv2d_backprop_filter(op),
            Op::MaxPool(op) => self.max_pool(op),
            Op::MaxPoolGrad(op) => self.max_pool_grad(op),
            Op::AvgPool(op) => self.avg_pool(op),
            Op::AvgPoolGrad(op) => self.avg_pool_grad(op),

            Op::Softmax(_) => self.softmax(),
            Op::LogSoftmax(_) => self.log_softmax(),
            Op::SoftmaxCrossEntropy(_) => self.softmax_cross_entropy(),
            Op::SparseSoftmaxCrossEntropy(_) => self.sparse_softmax_cross_entropy(),

            Op::Gather(op) => self.gather(op),
            Op::GatherNd(_) => self.gather_nd(),
            Op::ScatterNd(_) => self.scatter_nd(),
            Op::UnsortedSegment(op) => self.unsorted_segment(op),
            Op::SparseSegment(op) => self.sparse_segment(op.combiner, false),
            Op::SparseSegmentGrad(op) => self.sparse_segment(op.combiner, true),
            Op::OneHot(op) => self.one_hot(op),

            Op::Recurrent(op) => self.recurrent(op),
            Op::RecurrentGrad(op) => self.recurrent_gradient(&op.0),
            Op::Resize(op) => self.resize(op),
            Op::ResizeGrad(op) => self.resize_grad(op),

            // Tiles, views, writes, and ops that are not steps.
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Select(_)
            | Op::Cast(_)
            | Op::BroadcastTo(_)
            | Op::StopGradient(_)
            | Op::Reshape(_)
            | Op::Assign(_)
            | Op::Apply(_)
            | Op::Placeholder(_)
            | Op::Constant(_)
            | Op::Variable(_)
            | Op::Host(_)
            | Op::Group(_) => Err(Error::internal(format!("{} has no kernel of its own", node.op.name()))),
        }
    }

    fn random(&mut self, op: &Random) -> Result<()> {
        let Random { kind, key, .. } = op;
        let (position, dims, pool) = (self.position, self.y[0].dims, self.pool);
        match *kind {
            RandomKind::Integers { low, high } => {
                let draw = |at: Position, dims: &[usize], out: &mut [i64]| at.draw_integers(low, high, key, dims, out);
                draw_rows(pool, position, dims, self.y[0].as_mut_slice(), &draw);
            }
            RandomKind::Uniform | RandomKind::Normal | RandomKind::TruncatedNormal => {
                let draw = |at: Position, dims: &[usize], out: &mut [f32]| at.draw_floats(*kind, key, dims, out);
                draw_rows(pool, position, dims, self.y[0].as_mut_slice(), &draw);
            }
        }
        Ok(())
    }

    /// Copies an input into a new array.
    fn array(&self, k: usize) -> Result<Array> {
        Array::from_bytes(self.x[k].dtype, self.x[k].dims, self.x[k].bytes)
    }

    #[allow(clippy::print_stderr, reason = "this is what the op is for")]
    fn print(&mut self, op: &Print) -> Result<()> {
        eprintln!("{}: {}", op.label, self.array(0)?);
        self.y[0].bytes.copy_from_slice(self.x[0].bytes);
        Ok(())
    }

    fn custom(&mut self, custom: &estimand_graph::custom::CustomOp) -> Result<()> {
        let inputs = (0..self.x.len()).map(|k| self.array(k)).collect::<Result<Vec<_>>>()?;
        let results = custom.call(&inputs, self.symbols)?;
        for (result, y) in results.iter().zip(&mut *self.y) {
            y.bytes.copy_from_slice(result.bytes());
        }
        Ok(())
    }
}
