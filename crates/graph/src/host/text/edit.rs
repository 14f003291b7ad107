//! Edits strings one by one: case, white space, substrings, regular expressions.

use estimand_tensor::cpu::text::{Case, Encoding, RegexReplace, Unit, strip, substr, to_case};
use estimand_tensor::{Array, DType, Result, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::expect_dtype;
use crate::op::spelling::{Spelling, typed};

/// An edit of each string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    /// Lower case: of ASCII letters, or of all scripts.
    Lower { utf8: bool },
    /// Upper case: of ASCII letters, or of all scripts.
    Upper { utf8: bool },
    /// Removes white space at both ends.
    Strip,
    /// The substring from a position, up to a length, in bytes or characters.
    Substr { position: i64, length: i64, utf8: bool },
    /// Replaces the matches of a regular expression.
    Replace { pattern: String, rewrite: String, global: bool },
}

fn encoding(utf8: bool) -> Encoding {
    if utf8 { Encoding::Utf8 } else { Encoding::Bytes }
}

impl HostRules for Edit {
    fn name(&self) -> &'static str {
        match self {
            Edit::Lower { .. } => "StringLower",
            Edit::Upper { .. } => "StringUpper",
            Edit::Strip => "StringStrip",
            Edit::Substr { .. } => "Substr",
            Edit::Replace { .. } => "StaticRegexReplace",
        }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::Str, x[0], "input")?;
        if let Edit::Replace { pattern, rewrite, global } = self {
            RegexReplace::new(pattern, rewrite.as_bytes(), *global)?;
        }
        Ok(smallvec![x[0].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let strings = x[0].string_slice()?;
        let mut out = Strings::with_capacity(strings.len());
        match self {
            Edit::Lower { utf8 } => to_case(strings, Case::Lower, encoding(*utf8), &mut out),
            Edit::Upper { utf8 } => to_case(strings, Case::Upper, encoding(*utf8), &mut out),
            Edit::Strip => strip(strings, &mut out),
            Edit::Substr { position, length, utf8 } => {
                let unit = if *utf8 { Unit::Utf8Char } else { Unit::Byte };
                substr(strings, &[*position], &[*length], unit, 0, &mut out)?;
            }
            Edit::Replace { pattern, rewrite, global } => {
                RegexReplace::new(pattern, rewrite.as_bytes(), *global)?.apply(strings, &mut out)?;
            }
        }
        Ok(vec![Array::from_string_list(x[0].dims(), out)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(match self {
            Edit::Lower { utf8 } | Edit::Upper { utf8 } => def.attr("encoding", if *utf8 { "utf-8" } else { "" }),
            Edit::Strip => def,
            Edit::Substr { position, length, utf8 } => {
                let position = writer.constant(&def.name, "position", &Array::scalar(*position))?;
                let length = writer.constant(&def.name, "length", &Array::scalar(*length))?;
                let def = def.input(position).input(length).attr("unit", if *utf8 { "UTF8_CHAR" } else { "BYTE" });
                typed(def, "T", DType::I64)
            }
            Edit::Replace { pattern, rewrite, global } => {
                def.attr("pattern", pattern.as_str()).attr("rewrite", rewrite.as_str()).attr("replace_global", *global)
            }
        })
    }
}
