//! Formats numbers as text.

use estimand_tensor::cpu::text::{AsString as Settings, as_string};
use estimand_tensor::{Array, DType, Result, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::accepts;
use crate::op::spelling::{Spelling, typed};

/// The text of each number, as C's `printf` writes it. The settings are TensorFlow's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsString {
    pub precision: i64,
    pub scientific: bool,
    pub shortest: bool,
    pub width: i64,
    pub fill: String,
}

impl Default for AsString {
    fn default() -> AsString {
        let Settings { precision, scientific, shortest, width, fill } = Settings::default();
        AsString { precision, scientific, shortest, width, fill }
    }
}

impl AsString {
    fn settings(&self) -> Settings {
        let AsString { precision, scientific, shortest, width, fill } = self.clone();
        Settings { precision, scientific, shortest, width, fill }
    }
}

impl HostRules for AsString {
    fn name(&self) -> &'static str {
        "AsString"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[0].dtype != DType::Str, x[0].dtype)?;
        // Invalid settings are reported before the first number arrives.
        let empty = Array::zeros(x[0].dtype, [0])?;
        self.run(&[&empty])?;
        Ok(smallvec![TensorSpec { dtype: DType::Str, shape: x[0].shape.clone() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let settings = self.settings();
        let mut text = Strings::with_capacity(x[0].len());
        match x[0].dtype() {
            DType::F32 => as_string(x[0].as_slice::<f32>()?, &settings, &mut text)?,
            DType::F64 => as_string(x[0].as_slice::<f64>()?, &settings, &mut text)?,
            DType::I32 => as_string(x[0].as_slice::<i32>()?, &settings, &mut text)?,
            DType::U8 => as_string(x[0].as_slice::<u8>()?, &settings, &mut text)?,
            DType::Bool => as_string(x[0].as_slice::<bool>()?, &settings, &mut text)?,
            _ => as_string(x[0].as_slice::<i64>()?, &settings, &mut text)?,
        }
        Ok(vec![Array::from_string_list(x[0].dims(), text)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let def = typed(def, "T", writer.dtype(node, 0));
        Ok(def
            .attr("precision", self.precision)
            .attr("scientific", self.scientific)
            .attr("shortest", self.shortest)
            .attr("width", self.width)
            .attr("fill", self.fill.as_str()))
    }
}
