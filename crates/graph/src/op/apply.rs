//! The update of a variable by an optimizer's rule.

use super::rules::*;
use crate::body::Body;
use crate::optimizer::{Apply, OptimizerConfig, rows_fit};

fn optimizer<'a>(body: &'a Body, apply: &Apply) -> &'a OptimizerConfig {
    &body.optimizers()[apply.optimizer.0 as usize]
}

impl OpRules for Apply {
    fn name(&self) -> &'static str {
        "Apply"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let spec = inference.variables.spec(self.variable);
        let gradient = x[x.len() - 1];
        expect_dtype(spec.dtype, gradient, "gradient")?;
        let expected = Shape::from(&spec.dims[..]);
        let fits = match x {
            [dense] => dense.shape == expected,
            [ids, rows] => rows_fit(&ids.shape, &rows.shape, &expected),
            _ => false,
        };
        if !fits {
            return Err(Error::shape(format!(
                "the gradient for variable `{}` is {}, but the variable is {expected}",
                spec.name, gradient.shape
            )));
        }
        Ok(Specs::new())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    /// Reads and writes a variable and its slots: all of it, or the rows that have a gradient, each
    /// row once after the host has merged them. Changing an element takes 2 operations for the
    /// variable and 4 for a slot.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        let whole = count(&operands.body.variables().spec(self.variable).dims);
        let changed = match operands.x {
            [_, rows] if !optimizer(operands.body, self).decays_all_rows() => count(rows),
            _ => whole,
        };
        let n_slots = self.slots.len();
        let state = product(&[changed, 1 + n_slots, size_of::<f32>()]);
        let flops = product(&[changed, 2 + 4 * n_slots]);
        Cost { read: operands.read().saturating_add(state), written: state, flops }
    }

    fn spell(&self, _def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let rule = optimizer(writer.body(), self).rule.name();
        let variable = &writer.body().variables().spec(self.variable).name;
        Err(Error::unsupported(format!("the {rule} update of variable `{variable}` cannot be written to a GraphDef"))
            .help("write the loss or the predictions, or the train op that Graph::plain_train_op makes"))
    }

    fn has_effect(&self) -> bool {
        true
    }
}
