//! The forward pass: all steps of all rows.

use super::order::Order;
use super::row::{Forward, Half, forward_kernel};
use super::{Cell, Inputs, Recurrent, Sizes, take};
use crate::cpu::isa::Isa;
use crate::cpu::matmul::{Epilogue, PackedShape, matmul_packed};
use crate::cpu::prefetch;
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};

/// The arrays that receive the results.
pub struct Results<'a> {
    /// `[batch, time, units]`: `h` after every step.
    pub sequence: &'a mut [f32],
    /// The states after the last step.
    pub last: [&'a mut [f32]; 2],
    /// `[batch, time, kept * units]`: the values that the gradient needs.
    pub kept: &'a mut [f32],
}

/// The shape of the packed recurrent kernel.
fn packed(step: &Recurrent, units: usize) -> PackedShape {
    PackedShape { k: units, n: product(&[step.n_gates(), units]) }
}

/// The scratch memory of a row: the state as the kernel sees it, its product, `h`, and `c`.
fn row_len(step: &Recurrent, units: usize) -> usize {
    product(&[units, 3 + step.n_gates()])
}

/// The number of floats of scratch memory that [`forward`] needs.
pub fn forward_scratch_len(step: &Recurrent, sizes: Sizes) -> usize {
    let Sizes { batch, units, .. } = sizes;
    packed(step, units).packed_len() + product(&[batch, row_len(step, units) + Order::row_len(step)])
}

/// Applies a cell to sequences. `x` `[batch, time, gates * units]` holds the products of the inputs
/// with their kernel, including the bias.
///
/// A row's bits do not depend on the other rows. `scratch` must hold at least
/// [`forward_scratch_len`] floats.
pub fn forward(
    pool: &Pool,
    step: &Recurrent,
    sizes: Sizes,
    x: &[f32],
    inputs: Inputs<'_>,
    results: Results<'_>,
    mut scratch: &mut [f32],
) {
    let Sizes { batch, time, units } = sizes;
    inputs.check(step, sizes);
    let (width, n_kept) = (step.n_gates() * units, step.n_kept() * units);
    let lens = (product(&[batch, time, width]), product(&[batch, time, units]));
    assert_eq!((x.len(), results.sequence.len()), lens, "sequences");
    assert_eq!(results.kept.len(), product(&[batch, time, n_kept]), "what is kept");
    if batch == 0 || units == 0 {
        return;
    }
    assert!(scratch.len() >= forward_scratch_len(step, sizes), "scratch of {sizes:?}");
    let shape = packed(step, units);
    let kernel = take(&mut scratch, shape.packed_len());
    shape.pack(pool, inputs.kernel, false, kernel);
    let kernel = &*kernel;
    let rows_scratch = DisjointMut::new(take(&mut scratch, batch * row_len(step, units)));
    let (sequence, kept) = (DisjointMut::new(results.sequence), DisjointMut::new(results.kept));
    let [last_h, last_c] = results.last.map(DisjointMut::new);
    let has_c = step.n_states() == 2;
    let compute = forward_kernel(Isa::active());
    let epilogue = Epilogue { bias: step.has_bias().then_some(inputs.bias), ..Epilogue::default() };
    let (per_task, order) = (sizes.rows_per_task(), Order::new(&inputs, sizes, &mut scratch));
    pool.run(sizes.n_tasks(), &|task| {
        let first = task * per_task;
        let n_rows = per_task.min(batch - first);
        // SAFETY: each task has its own rows, and scratch memory for each of them.
        let mut scratch = unsafe { rows_scratch.slice(first * row_len(step, units), n_rows * row_len(step, units)) };
        let [left, h] = [(); 2].map(|()| take(&mut scratch, n_rows * units));
        let c = take(&mut scratch, if has_c { n_rows * units } else { 0 });
        let z = take(&mut scratch, n_rows * width);
        for (i, h) in h.chunks_exact_mut(units).enumerate() {
            h.copy_from_slice(&inputs.states[0][order.row(first + i) * units..][..units]);
        }
        for (i, c) in c.chunks_exact_mut(units).enumerate() {
            c.copy_from_slice(&inputs.states[1][order.row(first + i) * units..][..units]);
        }
        // The results of a row at a step.
        let results = |place: usize| {
            // SAFETY: this task's rows.
            unsafe { (sequence.slice(place * units, units), kept.slice(place * n_kept, n_kept)) }
        };
        let end = order.end(first);
        for t in 0..end {
            for (i, (left, h)) in left.chunks_exact_mut(units).zip(h.chunks_exact(units)).enumerate() {
                inputs.dropped(order.row(first + i), h, left);
            }
            let parts: &[Half] = match step.cell {
                Cell::Gru { reset_after: false } => &[Half::First, Half::Second],
                _ => &[Half::First],
            };
            let n = order.not_ended(first, n_rows, t);
            for &part in parts {
                matmul_packed(pool, n, false, &left[..n * units], shape, kernel, &mut z[..n * width], epilogue);
                for i in 0..n_rows {
                    let place = order.row(first + i) * time + t;
                    let (y, kept) = results(place);
                    // Fetch this row's next step. The other rows of the task come first, so the
                    // processor does not foresee it.
                    prefetch::soon(x.as_ptr().wrapping_add((place + 1) * width), width);
                    prefetch::soon(kept.as_ptr().wrapping_add(n_kept), n_kept);
                    let own = i * units..(i + 1) * units;
                    let mut row = Forward {
                        x: &x[place * width..(place + 1) * width],
                        z: &mut z[i * width..(i + 1) * width],
                        left: &mut left[own.clone()],
                        h: &mut h[own.clone()],
                        c: if has_c { &mut c[own.clone()] } else { &mut [] },
                        kept,
                    };
                    if inputs.counts(place) {
                        // SAFETY: the processor has the active instruction set.
                        unsafe { compute(step, part, &mut row) };
                    } else {
                        pass_on(row.kept, row.c);
                    }
                    y.copy_from_slice(row.h);
                }
            }
        }
        for i in 0..n_rows {
            let (row, own) = (order.row(first + i), i * units..(i + 1) * units);
            let (h, c) = (&h[own.clone()], if has_c { &c[own] } else { &[] });
            for t in end..time {
                let (y, kept) = results(row * time + t);
                pass_on(kept, c);
                y.copy_from_slice(h);
            }
            // SAFETY: this task's rows.
            unsafe {
                last_h.slice(row * units, units).copy_from_slice(h);
                last_c.slice(row * c.len(), c.len()).copy_from_slice(c);
            }
        }
    });
}

/// What is kept of a step that does not count: the gates are 0, and `c` is that of the step before.
fn pass_on(kept: &mut [f32], c: &[f32]) {
    kept.fill(0.0);
    if !c.is_empty() {
        kept[4 * c.len()..5 * c.len()].copy_from_slice(c);
    }
}
