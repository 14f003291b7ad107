//! Folds `convolution * factors + shift`, a batch norm with fixed statistics, and the relu after it
//! into the convolution, which applies them while the result is in registers.
//!
//! Factors and shift are often computed from the statistics after the node of the convolution, so
//! the convolution moves to where its result was shifted.

use std::collections::HashMap;

use estimand_graph::looks::look;
use estimand_graph::{Body, Op, Program, Value};
use estimand_tensor::{Binary, DType, Dim, Unary};

use super::pooled::remove;
use crate::kernel::{After, Fused};

/// A value with a single reader that may become a part of a folded convolution.
#[derive(Clone, Copy)]
enum Found {
    /// The result of a convolution: its step.
    Convolution(usize),
    /// That result times factors: both steps, and the factors.
    Multiplied(usize, usize, Value),
    /// The result of a folded convolution: its step.
    Scaled(usize),
}

pub(crate) fn fold_scale(mut program: Program) -> Program {
    let body = program.body.clone();
    let uses = program.use_counts();
    let mut found: HashMap<Value, Found> = HashMap::new();
    let mut is_removed = vec![false; program.steps.len()];
    for i in 0..program.n_compute {
        look(1);
        let step = program.steps[i].clone();
        let Some(after) = After::of(&step.kernel) else { continue };
        let next = match (&body.node(step.kernel.node()).op, &step.inputs[..]) {
            (Op::Conv2d(_), _) if after.relu || body.spec(step.outputs[0]).dtype != DType::F32 => None,
            (Op::Conv2d(_), _) => Some(Found::Convolution(i)),
            (Op::Binary(Binary::Mul), &[a, b]) => {
                [(a, b), (b, a)].into_iter().find_map(|(image, row)| match found.get(&image) {
                    Some(&Found::Convolution(at)) if is_row(&body, row, image, step.outputs[0]) => {
                        Some(Found::Multiplied(at, i, row))
                    }
                    _ => None,
                })
            }
            (Op::Binary(Binary::Add), &[a, b]) => {
                [(a, b), (b, a)].into_iter().find_map(|(image, row)| match found.get(&image) {
                    Some(&Found::Multiplied(at, multiplied, factors)) if is_row(&body, row, image, step.outputs[0]) => {
                        let mut product = program.steps[at].clone();
                        let after = After { scale: true, ..After::of(&product.kernel)? };
                        product.kernel = Fused::Product { node: product.kernel.node(), after, pool: None }.into();
                        product.inputs.extend([factors, row]);
                        product.outputs = step.outputs.clone();
                        program.steps[i] = product;
                        (is_removed[at], is_removed[multiplied]) = (true, true);
                        Some(Found::Scaled(i))
                    }
                    _ => None,
                })
            }
            (Op::Unary(Unary::Relu), &[image]) => {
                if let Some(&Found::Scaled(at)) = found.get(&image) {
                    let mut product = program.steps[at].clone();
                    let after = After { relu: true, ..After::of(&product.kernel).unwrap_or_default() };
                    product.kernel = Fused::Product { node: product.kernel.node(), after, pool: None }.into();
                    product.outputs = step.outputs.clone();
                    program.steps[i] = product;
                    is_removed[at] = true;
                }
                None
            }
            _ => None,
        };
        if let (Some(next), Some(1)) = (next, uses.get(&step.outputs[0])) {
            found.insert(step.outputs[0], next);
        }
    }
    remove(&mut program, &is_removed);
    program
}

/// Whether a value has a number for each channel of an image and for nothing else, so that both
/// together have the shape of the image.
fn is_row(body: &Body, row: Value, image: Value, together: Value) -> bool {
    let (row, image) = (body.spec(row), body.spec(image));
    let Some((channels, before)) = row.shape.dims().split_last() else { return false };
    row.dtype == DType::F32
        && image.shape.dims().last() == Some(channels)
        && before.iter().all(|dim| *dim == Dim::Known(1))
        && image.shape == body.spec(together).shape
}
