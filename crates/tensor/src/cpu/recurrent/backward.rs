//! The backward pass: all steps of all rows from the last to the first, then one product for the
//! recurrent kernel.

use super::order::Order;
use super::row::{Backward, Half, backward_kernel};
use super::{Cell, Inputs, Recurrent, Sizes, take};
use crate::cpu::isa::Isa;
use crate::cpu::matmul::{Epilogue, PackedShape, Product, matmul, matmul_of_pieces, matmul_packed};
use crate::cpu::prefetch;
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};

/// The results of [`forward`](super::forward), and their gradients.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// The values that the forward pass kept.
    pub kept: &'a [f32],
    /// `h` after every step.
    pub sequence: &'a [f32],
    /// The gradient of the sequence.
    pub d_sequence: &'a [f32],
    /// The gradients of the last states.
    pub d_last: [&'a [f32]; 2],
}

/// The arrays that receive the gradients.
pub struct Gradients<'a> {
    /// The gradient of the inputs' products, `[batch, time, gates * units]`.
    pub x: &'a mut [f32],
    /// The gradient of the recurrent kernel.
    pub kernel: &'a mut [f32],
    /// The gradient of the recurrent bias, if the cell has one.
    pub bias: &'a mut [f32],
    /// The gradients of the first states.
    pub states: [&'a mut [f32]; 2],
}

/// The shape of the packed, transposed recurrent kernel.
fn packed(step: &Recurrent, units: usize) -> PackedShape {
    PackedShape { k: product(&[step.n_gates(), units]), n: units }
}

/// The product of all states with all gradients.
fn kernel_gradient(step: &Recurrent, Sizes { batch, time, units }: Sizes) -> Product {
    let (n, k) = (product(&[step.n_gates(), units]), product(&[batch, time]));
    Product { m: units, n, k, transpose_a: true, transpose_b: false }
}

/// The scratch memory of a row: the gradients of `h` and `c`, the gradient of the product, and its
/// product with the kernel.
fn row_len(step: &Recurrent, units: usize) -> usize {
    product(&[units, 3 + step.n_gates()])
}

/// Whether the gradient of the state's product differs from that of the input's.
fn has_own_gradient(step: &Recurrent) -> bool {
    step.cell == Cell::Gru { reset_after: true }
}

/// Whether the candidate sees a different state than the gates.
fn resets_before(step: &Recurrent) -> bool {
    step.cell == Cell::Gru { reset_after: false }
}

/// The number of floats of scratch memory that [`backward`] needs.
pub fn backward_scratch_len(step: &Recurrent, sizes: Sizes) -> usize {
    let Sizes { batch, time, units } = sizes;
    let (steps, width) = (product(&[batch, time]), product(&[step.n_gates(), units]));
    let own = if has_own_gradient(step) { product(&[steps, width]) } else { 0 };
    let reset = if resets_before(step) { product(&[steps, units]) + product(&[units, width]) } else { 0 };
    let products = packed(step, units).packed_len() + kernel_gradient(step, sizes).scratch_len();
    let rows = product(&[batch, row_len(step, units) + Order::row_len(step)]);
    // The sum of seven products fits; see `product`.
    products + rows + product(&[steps, units]) + own + reset
}

/// The data that the tasks share.
struct Job<'a> {
    step: &'a Recurrent,
    sizes: Sizes,
    inputs: Inputs<'a>,
    upstream: Upstream<'a>,
    order: &'a Order<'a>,
    /// The gradients of the input's products.
    dx: DisjointMut<'a, f32>,
    /// The gradients of the states' products, if they differ.
    own: DisjointMut<'a, f32>,
    /// The states as the kernel saw them, and as the candidate's part of the kernel saw them if
    /// that differs; of each row up to its end.
    seen: DisjointMut<'a, f32>,
    reset: DisjointMut<'a, f32>,
}

/// The scratch memory of all rows of one task, or of one row.
struct Scratch<'a> {
    dh: &'a mut [f32],
    dc: &'a mut [f32],
    dz: &'a mut [f32],
    product: &'a mut [f32],
}

impl Scratch<'_> {
    fn row(&mut self, i: usize, units: usize, width: usize) -> Scratch<'_> {
        let part = |of: &mut [f32], width: usize| if of.is_empty() { 0..0 } else { i * width..(i + 1) * width };
        let (h, c) = (part(self.dh, units), part(self.dc, units));
        Scratch {
            dz: &mut self.dz[i * width..(i + 1) * width],
            product: &mut self.product[h.clone()],
            dh: &mut self.dh[h],
            dc: &mut self.dc[c],
        }
    }
}

impl Job<'_> {
    /// The states of a row before a step.
    fn before(&self, row: usize, t: usize) -> [&[f32]; 2] {
        let (units, n_kept) = (self.sizes.units, self.step.n_kept() * self.sizes.units);
        let first = |states: &'_ [f32]| if states.is_empty() { 0..0 } else { row * units..(row + 1) * units };
        let [h, c] = self.inputs.states;
        if t == 0 {
            return [&h[first(h)], &c[first(c)]];
        }
        let place = row * self.sizes.time + t - 1;
        // The kept values of an LSTM hold `c` after its four gates.
        let c = if c.is_empty() { c } else { &self.upstream.kept[place * n_kept + 4 * units..][..units] };
        [&self.upstream.sequence[place * units..(place + 1) * units], c]
    }

    /// Computes a part of the gradient of a step of a row.
    ///
    /// # Safety
    /// No other thread may work on the row, and the processor must support the kernel's
    /// instructions.
    unsafe fn row(&self, part: Half, row: usize, t: usize, compute: RowKernel, scratch: Scratch<'_>) {
        let Sizes { time, units, .. } = self.sizes;
        let (width, n_kept) = (self.step.n_gates() * units, self.step.n_kept() * units);
        let place = row * time + t;
        let at = place * units..(place + 1) * units;
        let seen_at = self.order.place(row, t);
        // Fetch the step before, which this row computes next. The other rows of the task come
        // first, so the processor does not foresee it.
        let before =
            |values: &[f32], n: usize| prefetch::soon(values.as_ptr().wrapping_add((place * n).wrapping_sub(n)), n);
        before(self.upstream.kept, n_kept);
        before(self.upstream.d_sequence, units);
        prefetch::soon(self.dx.as_mut_ptr().wrapping_add((place * width).wrapping_sub(width)), width);
        let [h_before, c_before] = self.before(row, t);
        // SAFETY: only this thread works on the row.
        let dx = unsafe { self.dx.slice(place * width, width) };
        let reset = match seen_at {
            // SAFETY: as above.
            Some(at) if resets_before(self.step) => unsafe { self.reset.slice(at * units, units) },
            _ => &mut [],
        };
        let mut of_row = Backward {
            dy: &self.upstream.d_sequence[at.clone()],
            dh: scratch.dh,
            dc: scratch.dc,
            kept: &self.upstream.kept[place * n_kept..(place + 1) * n_kept],
            h: &self.upstream.sequence[at],
            h_before,
            c_before,
            keep: self.inputs.keep.map_or(&[], |keep| &keep[row * units..(row + 1) * units]),
            dx,
            dz: scratch.dz,
            product: scratch.product,
            reset,
        };
        if let (Half::First, Some(at)) = (part, seen_at) {
            // SAFETY: as above.
            self.inputs.dropped(row, h_before, unsafe { self.seen.slice(at * units, units) });
        }
        if self.inputs.counts(place) {
            // SAFETY: the caller guarantees that the processor supports the instructions.
            unsafe { compute(self.step, part, &mut of_row) };
        } else if part == Half::First {
            // The step passed the state on unchanged, so its gradient is passed on too.
            for (dh, dy) in of_row.dh.iter_mut().zip(of_row.dy) {
                *dh += dy;
            }
            of_row.dx.fill(0.0);
            of_row.dz.fill(0.0);
            of_row.reset.fill(0.0);
        }
        if has_own_gradient(self.step) {
            // SAFETY: as above.
            unsafe { self.own.slice(place * width, width) }.copy_from_slice(of_row.dz);
        }
    }

    /// Adds the product of the gradient with the kernel to the gradient of a row's state.
    fn add_product(&self, row: usize, t: usize, scratch: Scratch<'_>) {
        if !self.inputs.counts(row * self.sizes.time + t) {
            return;
        }
        let keep = self.inputs.keep.map(|keep| &keep[row * self.sizes.units..]);
        for (j, (dh, product)) in scratch.dh.iter_mut().zip(scratch.product).enumerate() {
            *dh += *product * keep.map_or(1.0, |keep| keep[j]);
        }
    }
}

/// A kernel of `row`, compiled for one instruction set.
type RowKernel = unsafe fn(&Recurrent, Half, &mut Backward<'_>);

/// Computes the gradients of all inputs of [`forward`](super::forward) from those of its results.
///
/// `scratch` must hold at least [`backward_scratch_len`] floats.
pub fn backward(
    pool: &Pool,
    step: &Recurrent,
    sizes: Sizes,
    inputs: Inputs<'_>,
    upstream: Upstream<'_>,
    gradients: Gradients<'_>,
    mut scratch: &mut [f32],
) {
    let Sizes { batch, time, units } = sizes;
    inputs.check(step, sizes);
    let (steps, width) = (product(&[batch, time]), step.n_gates() * units);
    let n_kept = step.n_kept() * units;
    let lens = (product(&[steps, n_kept]), product(&[steps, units]));
    assert_eq!((upstream.kept.len(), upstream.sequence.len()), lens, "what was kept");
    assert_eq!(upstream.d_sequence.len(), lens.1, "the sequence's gradient");
    assert!(scratch.len() >= backward_scratch_len(step, sizes), "scratch of {sizes:?}");
    let Gradients { x: dx, kernel: d_kernel, bias: d_bias, states } = gradients;
    let shape = packed(step, units);
    let kernel = take(&mut scratch, shape.packed_len());
    shape.pack(pool, inputs.kernel, true, kernel);
    let kernel = &*kernel;
    let rows = DisjointMut::new(take(&mut scratch, batch * row_len(step, units)));
    let seen = take(&mut scratch, steps * units);
    let own = take(&mut scratch, if has_own_gradient(step) { steps * width } else { 0 });
    let reset = take(&mut scratch, if resets_before(step) { steps * units } else { 0 });
    let order = Order::new(&inputs, sizes, &mut scratch);
    let job = Job {
        step,
        sizes,
        inputs,
        upstream,
        order: &order,
        dx: DisjointMut::new(dx),
        own: DisjointMut::new(own),
        seen: DisjointMut::new(seen),
        reset: DisjointMut::new(reset),
    };
    let [d_h, d_c] = states.map(DisjointMut::new);
    let parts: &[Half] = if resets_before(step) { &[Half::First, Half::Second] } else { &[Half::First] };
    let compute = backward_kernel(Isa::active());
    let per_task = sizes.rows_per_task();
    pool.run(if units == 0 { 0 } else { sizes.n_tasks() }, &|task| {
        let first = task * per_task;
        let n_rows = per_task.min(batch - first);
        // SAFETY: each task has its own rows, and scratch memory for each of them.
        let mut scratch = unsafe { rows.slice(first * row_len(step, units), n_rows * row_len(step, units)) };
        let n_c = if step.n_states() == 2 { n_rows * units } else { 0 };
        let mut scratch = Scratch {
            dh: take(&mut scratch, n_rows * units),
            dc: take(&mut scratch, n_c),
            dz: take(&mut scratch, n_rows * width),
            product: take(&mut scratch, n_rows * units),
        };
        for (i, dh) in scratch.dh.chunks_exact_mut(units).enumerate() {
            dh.copy_from_slice(&upstream.d_last[0][order.row(first + i) * units..][..units]);
        }
        for (i, dc) in scratch.dc.chunks_exact_mut(units).enumerate() {
            dc.copy_from_slice(&upstream.d_last[1][order.row(first + i) * units..][..units]);
        }
        let run = |part: Half, t: usize, scratch: &mut Scratch<'_>| {
            for i in 0..n_rows {
                // SAFETY: the rows belong to this task; the processor has the active instruction
                // set.
                unsafe { job.row(part, order.row(first + i), t, compute, scratch.row(i, units, width)) };
            }
        };
        let end = order.end(first);
        for t in (end..time).rev() {
            run(Half::First, t, &mut scratch);
        }
        for t in (0..end).rev() {
            for &part in parts {
                run(part, t, &mut scratch);
                let n = order.not_ended(first, n_rows, t);
                let (dz, product) = (&scratch.dz[..n * width], &mut scratch.product[..n * units]);
                matmul_packed(pool, n, false, dz, shape, kernel, product, Epilogue::default());
            }
            for i in 0..n_rows {
                job.add_product(order.row(first + i), t, scratch.row(i, units, width));
            }
        }
        for (i, dh) in scratch.dh.chunks_exact(units).enumerate() {
            // SAFETY: this task's rows.
            unsafe { d_h.slice(order.row(first + i) * units, units) }.copy_from_slice(dh);
        }
        for (i, dc) in scratch.dc.chunks_exact(units).enumerate() {
            // SAFETY: this task's rows.
            unsafe { d_c.slice(order.row(first + i) * units, units) }.copy_from_slice(dc);
        }
    });
    let pieces = order.pieces();
    let dz = if has_own_gradient(step) { &*own } else { &*dx };
    let candidate = take(&mut scratch, if resets_before(step) { units * width } else { 0 });
    let mut multiply = |states: &[f32], to: &mut [f32]| {
        let sums = kernel_gradient(step, sizes);
        match pieces {
            None => matmul(pool, &sums, states, dz, to, Epilogue::default(), scratch),
            Some(pieces) => {
                let k = pieces.start(batch);
                matmul_of_pieces(pool, &Product { k, ..sums }, &states[..k * units], dz, pieces, to);
            }
        }
    };
    multiply(seen, d_kernel);
    if resets_before(step) {
        multiply(reset, candidate);
        for (to, from) in d_kernel.chunks_exact_mut(width.max(1)).zip(candidate.chunks_exact(width.max(1))) {
            to[2 * units..].copy_from_slice(&from[2 * units..]);
        }
    }
    if has_own_gradient(step) {
        d_bias.fill(0.0);
        for dz in own.chunks_exact(width.max(1)) {
            for (sum, dz) in d_bias.iter_mut().zip(dz) {
                *sum += dz;
            }
        }
    }
}
