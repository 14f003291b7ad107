//! Prints a value.

use std::sync::Arc;

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

    /// A server of the model would print at every request.
    fn spell(&self, _def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Err(Error::unsupported(format!("print `{}` is for the program that builds the model", self.label))
            .help("remove it from the model, or print only in other modes than the one that is exported"))
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
