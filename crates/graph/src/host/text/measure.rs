//! Properties of strings: length, numeric value, whether a regular expression matches.

use estimand_tensor::cpu::text::{RegexFullMatch, Unit, length, to_number};
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::expect_dtype;
use crate::op::spelling::{Spelling, typed};

/// The length of each string, i32: in bytes or characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringLength {
    pub utf8: bool,
}

/// The number that each string represents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToNumber(pub DType);

/// Whether a regular expression matches all of each string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FullMatch {
    pub pattern: String,
}

impl HostRules for StringLength {
    fn name(&self) -> &'static str {
        "StringLength"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        each(x[0], DType::I32)
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let mut lengths = vec![0; x[0].len()];
        length(x[0].string_slice()?, if self.utf8 { Unit::Utf8Char } else { Unit::Byte }, &mut lengths);
        Ok(vec![Array::from_vec(x[0].dims(), lengths)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(def.attr("unit", if self.utf8 { "UTF8_CHAR" } else { "BYTE" }))
    }
}

impl HostRules for ToNumber {
    fn name(&self) -> &'static str {
        "StringToNumber"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        match self.0 {
            DType::F32 | DType::F64 | DType::I32 | DType::I64 => each(x[0], self.0),
            other => Err(Error::dtype(Some(DType::F32), other, format!("strings cannot be converted to {other}"))
                .help("ask for f32, f64, i32 or i64")),
        }
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (strings, dims) = (x[0].string_slice()?, x[0].dims());
        macro_rules! numbers {
            ($t:ty) => {{
                let mut numbers = vec![<$t>::default(); strings.len()];
                to_number(strings, 0, &mut numbers)?;
                Array::from_vec(dims, numbers)?
            }};
        }
        Ok(vec![match self.0 {
            DType::F32 => numbers!(f32),
            DType::F64 => numbers!(f64),
            DType::I32 => numbers!(i32),
            _ => numbers!(i64),
        }])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "out_type", self.0))
    }
}

impl HostRules for FullMatch {
    fn name(&self) -> &'static str {
        "StaticRegexFullMatch"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        RegexFullMatch::new(&self.pattern)?;
        each(x[0], DType::Bool)
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let mut matches = vec![false; x[0].len()];
        RegexFullMatch::new(&self.pattern)?.apply(x[0].string_slice()?, &mut matches);
        Ok(vec![Array::from_vec(x[0].dims(), matches)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(def.attr("pattern", self.pattern.as_str()))
    }
}

/// One value of a dtype for each string.
fn each(x: &TensorSpec, dtype: DType) -> Result<Specs> {
    expect_dtype(DType::Str, x, "input")?;
    Ok(smallvec![TensorSpec { dtype, shape: x.shape.clone() }])
}
