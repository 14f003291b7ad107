//! Leaves steps after the ends of sequences out of the products around a recurrent layer: of the
//! inputs with their kernel, and of the gradients of both.
//!
//! The layer does not read the products of masked steps, and their gradients are 0. A product with
//! a 0 changes a sum only if the other factor is infinite or NaN: here such inputs of masked steps
//! do not reach the gradient of the kernel.

use std::collections::HashMap;

use estimand_graph::looks::look;
use estimand_graph::slots::Slots;
use estimand_graph::{Body, Op, Program, Value};
use estimand_tensor::DType;

use crate::kernel::{After, Ended, Fused};

pub(crate) fn leave_out_what_has_ended(mut program: Program) -> Program {
    let body = program.body.clone();
    let uses = program.use_counts();
    let once = |value: Value| uses.get(&value) == Some(&1);
    // The steps that compute values.
    let mut makers: HashMap<Value, usize> = HashMap::new();
    // The masks of gradients: `[batch, time, width]` of a layer, and the same as a matrix.
    let mut masks: HashMap<Value, Value> = HashMap::new();
    // A product and its reshape that must wait for the mask, by the step of their layer.
    let mut late: HashMap<usize, [usize; 2]> = HashMap::new();
    for i in 0..program.n_compute {
        look(1);
        let step = &program.steps[i];
        makers.extend(step.outputs.iter().map(|output| (*output, i)));
        match &body.node(step.kernel.node()).op {
            Op::Recurrent(layer) => {
                let Some(mask) = Slots::of(layer).mask.map(|at| step.inputs[at]) else { continue };
                let (x, maker) = (step.inputs[0], |value: Value| makers.get(&value).copied());
                let Some(reshape) = maker(x).filter(|_| once(x)) else { continue };
                let rows = program.steps[reshape].inputs[0];
                let Some(product) = maker(rows).filter(|_| once(rows)) else { continue };
                let is_reshape = matches!(body.node(program.steps[reshape].kernel.node()).op, Op::Reshape(_));
                if !is_reshape || !has_rows_of(&body, rows, x) {
                    continue;
                }
                let left_out = match &body.node(program.steps[product].kernel.node()).op {
                    Op::MatMul(op) if !op.transpose_a => leave_out(&mut program, product, Ended::Rows, mask),
                    _ => false,
                };
                if left_out && maker(mask).is_some_and(|mask| mask > product) {
                    late.insert(i, [product, reshape]);
                }
            }
            Op::RecurrentGrad(gradient) => {
                if let Some(mask) = Slots::of(&gradient.0).mask {
                    masks.insert(step.outputs[0], step.inputs[mask]);
                }
            }
            Op::Reshape(_) => {
                if let Some(mask) = masks.get(&step.inputs[0]).copied()
                    && has_rows_of(&body, step.outputs[0], step.inputs[0])
                {
                    masks.insert(step.outputs[0], mask);
                }
            }
            Op::MatMul(op) => {
                let (a, b) = (masks.get(&step.inputs[0]).copied(), masks.get(&step.inputs[1]).copied());
                if let (Some(mask), false) = (a, op.transpose_a) {
                    leave_out(&mut program, i, Ended::Rows, mask);
                } else if let (Some(mask), true, false) = (b, op.transpose_a, op.transpose_b) {
                    leave_out(&mut program, i, Ended::Terms, mask);
                }
            }
            _ => {}
        }
    }
    move_to(&mut program, &late);
    program
}

/// Whether a matrix has a row for each step of some sequences.
fn has_rows_of(body: &Body, matrix: Value, sequences: Value) -> bool {
    let (matrix, sequences) = (body.spec(matrix), body.spec(sequences));
    matrix.dtype == DType::F32
        && matrix.shape.rank() == 2
        && sequences.shape.rank() == 3
        && matrix.shape.dims().last() == sequences.shape.dims().last()
        && sequences.shape.dims()[2].known().is_some()
}

/// Lets a product leave out what its mask says. Returns false if it cannot.
fn leave_out(program: &mut Program, at: usize, ended: Ended, mask: Value) -> bool {
    let step = &mut program.steps[at];
    let Some(after) = After::of(&step.kernel) else { return false };
    if after.ended != Ended::Computed {
        return false;
    }
    step.kernel = Fused::Product { node: step.kernel.node(), after: After { ended, ..after }, pool: None }.into();
    step.inputs.push(mask);
    true
}

/// Moves pairs of steps to the steps before which they must run.
fn move_to(program: &mut Program, late: &HashMap<usize, [usize; 2]>) {
    if late.is_empty() {
        return;
    }
    let mut steps: Vec<_> = std::mem::take(&mut program.steps).into_iter().map(Some).collect();
    let mut moved: HashMap<usize, Vec<_>> = HashMap::new();
    for (&to, pair) in late {
        moved.insert(to, pair.iter().filter_map(|&at| steps[at].take()).collect());
    }
    for (i, step) in steps.into_iter().enumerate() {
        program.steps.extend(moved.remove(&i).unwrap_or_default());
        program.steps.extend(step);
    }
}
