//! Reading and writing variables.

use super::rules::*;
use crate::variables::VarId;

/// The value of a variable at the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable(pub VarId);

impl OpRules for Variable {
    fn name(&self) -> &'static str {
        "Variable"
    }

    fn infer(&self, _x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let spec = inference.variables.spec(self.0);
        one(spec.dtype, Shape::from(&spec.dims[..]))
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    fn cost(&self, _operands: &Operands<'_>) -> Cost {
        Cost::default()
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let handle = writer.handle(self.0);
        writer.readers(self.0).push(def.name.clone());
        let dtype = writer.body().variables().spec(self.0).dtype;
        Ok(typed(NodeDef { op: "ReadVariableOp".into(), ..def }, "dtype", dtype).input(handle))
    }
}

/// Writes its input to a variable at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assign(pub VarId);

impl OpRules for Assign {
    fn name(&self) -> &'static str {
        "Assign"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let spec = inference.variables.spec(self.0);
        let expected = Shape::from(&spec.dims[..]);
        expect_dtype(spec.dtype, x[0], "value")?;
        if x[0].shape != expected {
            return Err(Error::shape(format!(
                "the value for variable `{}` is {}, but the variable is {expected}",
                spec.name, x[0].shape
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

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        Cost { read: operands.read(), written: operands.read(), flops: 0 }
    }

    /// Our assignments happen at the end of the run: the node waits for all nodes that read the
    /// variable.
    fn spell(&self, mut def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let handle = writer.handle(self.0);
        def.input.insert(0, handle);
        def.input.extend(writer.readers(self.0).iter().map(|reader| format!("^{reader}")));
        let dtype = writer.body().variables().spec(self.0).dtype;
        Ok(typed(NodeDef { op: "AssignVariableOp".into(), ..def }, "dtype", dtype))
    }

    fn has_effect(&self) -> bool {
        true
    }
}
