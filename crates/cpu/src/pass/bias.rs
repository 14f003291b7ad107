//! Folds `product + bias` and `relu(product + bias)` into the product, which applies them while the
//! result is in registers.

use std::collections::HashMap;

use estimand_graph::{Kernel, Op, Program, Value};
use estimand_tensor::{Binary, DType, Unary};
use smallvec::smallvec;

use crate::kernel::{After, Fused};

pub(crate) fn fold_bias(mut program: Program) -> Program {
    let body = program.body.clone();
    let uses = program.use_counts();
    let once = |v: Value| uses.get(&v) == Some(&1);
    // Products with a single reader, by their result.
    let mut products: HashMap<Value, usize> = HashMap::new();
    let mut removed = vec![false; program.steps.len()];
    for (i, is_removed) in removed.iter_mut().enumerate().take(program.n_compute) {
        let step = program.steps[i].clone();
        let Kernel::Node(id) = step.kernel else { continue };
        let spec = |v: Value| body.spec(v);
        match &body.node(id).op {
            Op::MatMul(_) | Op::Conv2d(_) if spec(step.outputs[0]).dtype == DType::F32 && once(step.outputs[0]) => {
                products.insert(step.outputs[0], i);
            }
            Op::Binary(Binary::Add) => {
                let folded = [(0, 1), (1, 0)].into_iter().find_map(|(p, b)| {
                    let (product, bias) = (step.inputs[p], step.inputs[b]);
                    let at = *products.get(&product)?;
                    let shape = &spec(product).shape;
                    let fits = spec(bias).shape.dims() == &shape.dims()[shape.rank() - 1..]
                        && shape == &spec(step.outputs[0]).shape;
                    // The bias must be computed before the product runs.
                    let ready = bias.node < program.steps[at].kernel.node() || body.node(bias.node).inputs.is_empty();
                    (fits && ready && matches!(program.steps[at].kernel, Kernel::Node(_))).then_some((at, bias))
                });
                if let Some((at, bias)) = folded {
                    products.remove(&program.steps[at].outputs[0]);
                    let product = &mut program.steps[at];
                    let node = product.kernel.node();
                    product.kernel =
                        Fused::Product { node, after: After { bias: true, ..After::default() }, pool: None }.into();
                    product.inputs.push(bias);
                    product.outputs = smallvec![step.outputs[0]];
                    *is_removed = true;
                    if once(step.outputs[0]) {
                        products.insert(step.outputs[0], at);
                    }
                }
            }
            Op::Unary(Unary::Relu) => {
                if let Some(&at) = products.get(&step.inputs[0]) {
                    let product = &mut program.steps[at];
                    let after = After { relu: true, ..After::of(&product.kernel).unwrap_or_default() };
                    product.kernel = Fused::Product { node: product.kernel.node(), after, pool: None }.into();
                    product.outputs = smallvec![step.outputs[0]];
                    products.remove(&step.inputs[0]);
                    *is_removed = true;
                }
            }
            _ => {}
        }
    }
    let mut keep = removed.iter().map(|r| !r);
    program.steps.retain(|_| keep.next().unwrap_or(true));
    program.n_compute -= removed.iter().filter(|r| **r).count();
    program
}
