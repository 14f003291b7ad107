//! Prints a value.

use std::sync::Arc;

use estimand_wire::DataType;

use super::rules::*;

/// Returns its input and prints it to stderr when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Print {
    /// The text printed before the value.
    pub label: Arc<str>,
}

impl OpRules for Print {
    fn name(&self) -> &'static str {
        "Print"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        same(x[0])
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.dy(0)])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    /// TensorFlow's first `Print` returns its input, as ours does. It prints a list of tensors;
    /// here the list is the input itself.
    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let dtype = writer.dtype(node, 0);
        def.input.push(def.input[0].clone());
        let message = format!("{}: ", self.label);
        Ok(typed(def, "T", dtype).attr("U", vec![DataType::from(dtype)]).attr("message", message.as_str()))
    }

    fn has_effect(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Print", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let message = reading.text_or("message", "")?;
    Ok(vec![reading.tensor(0)?.print(message.trim_end_matches(": "))])
}
