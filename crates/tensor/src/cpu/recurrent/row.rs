//! One row at one step: the gates, forward and backward.
//!
//! A GRU that resets the state before the product needs two products in a step, so its step has two
//! halves.

use super::{Cell, Recurrent};
use crate::cpu::twins::twins;

/// A half of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    First,
    /// After the product with the left operand that [`Half::First`] has written.
    Second,
}

/// The data of a row in the forward pass.
pub(super) struct Forward<'a> {
    /// The input's product.
    pub x: &'a [f32],
    /// The state's product; later the gates.
    pub z: &'a mut [f32],
    /// The state as the kernel sees it.
    pub left: &'a mut [f32],
    pub h: &'a mut [f32],
    pub c: &'a mut [f32],
    pub kept: &'a mut [f32],
}

/// The data of a row in the backward pass.
pub(super) struct Backward<'a> {
    /// The gradient of this step's `h` from outside the recurrence.
    pub dy: &'a [f32],
    /// The gradient of `h` after this step; later the gradient that reaches the `h` before it
    /// without passing the product.
    pub dh: &'a mut [f32],
    pub dc: &'a mut [f32],
    pub kept: &'a [f32],
    pub h: &'a [f32],
    pub h_before: &'a [f32],
    pub c_before: &'a [f32],
    /// The factors of `h` before the product; empty if there are none.
    pub keep: &'a [f32],
    /// The gradient of the input's product.
    pub dx: &'a mut [f32],
    /// The gradient of the state's product: the left operand of the next product.
    pub dz: &'a mut [f32],
    /// The result of the last product.
    pub product: &'a [f32],
    /// The state that the candidate's product saw, if it differs from that of the gates.
    pub reset: &'a mut [f32],
}

twins! {
    /// Computes a part of a step of a row.
    pub(super) fn forward_kernel[](step: &Recurrent, part: Half, row: &mut Forward<'_>) = forward
}
twins! {
    /// Computes a part of the gradient of a step of a row.
    pub(super) fn backward_kernel[](step: &Recurrent, part: Half, row: &mut Backward<'_>) = backward
}

#[inline(always)]
fn forward(step: &Recurrent, part: Half, row: &mut Forward<'_>) {
    match step.cell {
        Cell::Simple => {
            add(row.z, row.x);
            step.activation.apply(row.z);
            row.h.copy_from_slice(row.z);
        }
        Cell::Lstm => lstm(step, row),
        Cell::Gru { reset_after } => gru(step, reset_after, part, row),
    }
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

#[inline(always)]
fn lstm(step: &Recurrent, row: &mut Forward<'_>) {
    let n = row.h.len();
    add(row.z, row.x);
    step.recurrent_activation.apply(&mut row.z[..2 * n]);
    step.activation.apply(&mut row.z[2 * n..3 * n]);
    step.recurrent_activation.apply(&mut row.z[3 * n..]);
    let (gates, rest) = row.kept.split_at_mut(4 * n);
    let (new, function) = rest.split_at_mut(n);
    gates.copy_from_slice(row.z);
    let (input, forget, candidate, output) = (&gates[..n], &gates[n..2 * n], &gates[2 * n..3 * n], &gates[3 * n..]);
    let c = &mut row.c[..n];
    for j in 0..n {
        c[j] = forget[j] * c[j] + input[j] * candidate[j];
    }
    new.copy_from_slice(c);
    function.copy_from_slice(c);
    step.activation.apply(function);
    let h = &mut row.h[..n];
    for j in 0..n {
        h[j] = output[j] * function[j];
    }
}

#[inline(always)]
fn gru(step: &Recurrent, reset_after: bool, part: Half, row: &mut Forward<'_>) {
    let n = row.h.len();
    let (gates, candidate) = row.z.split_at_mut(2 * n);
    if part == Half::First {
        add(gates, &row.x[..2 * n]);
        step.recurrent_activation.apply(gates);
        row.kept[..2 * n].copy_from_slice(gates);
        let reset = &row.kept[n..2 * n];
        if !reset_after {
            let left = &mut row.left[..n];
            for j in 0..n {
                left[j] *= reset[j];
            }
            return;
        }
        row.kept[3 * n..].copy_from_slice(candidate);
        for (candidate, reset) in candidate.iter_mut().zip(&row.kept[n..2 * n]) {
            *candidate *= reset;
        }
    }
    add(candidate, &row.x[2 * n..]);
    step.activation.apply(candidate);
    row.kept[2 * n..3 * n].copy_from_slice(candidate);
    let (update, candidate) = (&row.kept[..n], &row.kept[2 * n..3 * n]);
    let h = &mut row.h[..n];
    for j in 0..n {
        h[j] = update[j] * h[j] + (1.0 - update[j]) * candidate[j];
    }
}

#[inline(always)]
fn backward(step: &Recurrent, part: Half, row: &mut Backward<'_>) {
    if part == Half::First {
        add(row.dh, row.dy);
    }
    match step.cell {
        Cell::Simple => {
            row.dx.copy_from_slice(row.dh);
            step.activation.multiply_slope(row.h, row.dx);
            row.dz.copy_from_slice(row.dx);
            row.dh.fill(0.0);
        }
        Cell::Lstm => lstm_gradient(step, row),
        Cell::Gru { reset_after } => gru_gradient(step, reset_after, part, row),
    }
}

#[inline(always)]
fn lstm_gradient(step: &Recurrent, row: &mut Backward<'_>) {
    let n = row.h.len();
    let kept = |k: usize| &row.kept[k * n..(k + 1) * n];
    let (input, forget, candidate, output, function) = (kept(0), kept(1), kept(2), kept(3), kept(5));
    // The last quarter also holds the function's part of the gradient of c.
    let (before, through) = row.dz.split_at_mut(3 * n);
    for j in 0..n {
        through[j] = row.dh[j] * output[j];
    }
    step.activation.multiply_slope(function, through);
    add(row.dc, through);
    let (dc, dh, c_before) = (&mut row.dc[..n], &mut row.dh[..n], &row.c_before[..n]);
    let (d_input, rest) = before.split_at_mut(n);
    let (d_forget, d_candidate) = rest.split_at_mut(n);
    for j in 0..n {
        d_input[j] = dc[j] * candidate[j];
        d_forget[j] = dc[j] * c_before[j];
        d_candidate[j] = dc[j] * input[j];
        through[j] = dh[j] * function[j];
        dc[j] *= forget[j];
        dh[j] = 0.0;
    }
    step.recurrent_activation.multiply_slope(&row.kept[..2 * n], &mut row.dz[..2 * n]);
    step.activation.multiply_slope(candidate, &mut row.dz[2 * n..3 * n]);
    step.recurrent_activation.multiply_slope(output, &mut row.dz[3 * n..]);
    row.dx.copy_from_slice(row.dz);
}

#[inline(always)]
fn gru_gradient(step: &Recurrent, reset_after: bool, part: Half, row: &mut Backward<'_>) {
    let n = row.h.len();
    let kept = |k: usize| &row.kept[k * n..(k + 1) * n];
    let (update, reset, candidate) = (kept(0), kept(1), kept(2));
    let (d_update, rest) = row.dx.split_at_mut(n);
    let (d_reset, d_candidate) = rest.split_at_mut(n);
    let keep = |j: usize| row.keep.get(j).copied().unwrap_or(1.0);
    if part == Half::First {
        let (dh, h_before) = (&mut row.dh[..n], &row.h_before[..n]);
        for j in 0..n {
            d_update[j] = dh[j] * (h_before[j] - candidate[j]);
            d_candidate[j] = dh[j] * (1.0 - update[j]);
            dh[j] *= update[j];
        }
        step.recurrent_activation.multiply_slope(update, d_update);
        step.activation.multiply_slope(candidate, d_candidate);
        if !reset_after {
            // Only the candidate saw the state that was reset.
            row.dz[..2 * n].fill(0.0);
            row.dz[2 * n..].copy_from_slice(d_candidate);
            for j in 0..n {
                row.reset[j] = reset[j] * h_before[j] * keep(j);
            }
            return;
        }
        let product = kept(3);
        for j in 0..n {
            d_reset[j] = d_candidate[j] * product[j];
        }
    } else {
        for j in 0..n {
            let seen = row.product[j] * keep(j);
            d_reset[j] = seen * row.h_before[j];
            row.dh[j] += seen * reset[j];
        }
    }
    step.recurrent_activation.multiply_slope(reset, d_reset);
    row.dz.copy_from_slice(row.dx);
    match reset_after {
        true => {
            for (dz, reset) in row.dz[2 * n..].iter_mut().zip(reset) {
                *dz *= reset;
            }
        }
        false => row.dz[2 * n..].fill(0.0),
    }
}
