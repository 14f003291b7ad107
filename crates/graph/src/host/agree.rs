//! A check that several features have the same lengths or counts.

use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::assertion::{AGREE, Words, assertion, checked, comparison};
use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::op::expect::{expect_dtype, expect_equal, expect_rank};
use crate::op::spelling::Spelling;

/// Two lists of i64 `[n]` that must be equal -> the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agree {
    /// A description of the lists, for the error message.
    pub what: String,
}

impl HostRules for Agree {
    fn name(&self) -> &'static str {
        "Agree"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::I64, x[0], "list to compare")?;
        expect_dtype(DType::I64, x[1], "list to compare")?;
        expect_rank(1, x[0], "list to compare")?;
        expect_equal("list to compare", &x[1].shape, &x[0].shape)?;
        Ok(smallvec![x[0].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (a, b) = (x[0].as_slice::<i64>()?, x[1].as_slice::<i64>()?);
        match a.iter().zip(b).position(|(a, b)| a != b) {
            None if a.len() == b.len() => Ok(vec![x[0].clone()]),
            None => Err(Error::data(format!("{} differ: there are {} and {} of them", self.what, a.len(), b.len()))),
            Some(row) => {
                Err(Error::data(format!("{} differ: they are {} and {} in row {row}", self.what, a[row], b[row]))
                    .help("make them equal in every row"))
            }
        }
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, value, other) = (def.name.clone(), def.input[0].clone(), def.input[1].clone());
        let equal = comparison(writer, &owner, ("is_equal", "Equal"), &value, &other, DType::I64);
        let words = Words { kind: AGREE, what: &self.what, help: None, message: format!("{} differ at", self.what) };
        let done = assertion(writer, &owner, &words, (equal, 1), (value.clone(), DType::I64), None)?;
        Ok(checked(def, value, DType::I64, done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let op = Agree { what: "lengths".into() };
        let run = |a: [i64; 2], b: [i64; 2]| op.run(&[&Array::from(a), &Array::from(b)]);
        assert_eq!(run([1, 2], [1, 2]).unwrap()[0].as_slice::<i64>().unwrap(), [1, 2]);
        assert!(run([1, 2], [1, 3]).unwrap_err().to_string().contains("lengths differ: they are 2 and 3 in row 1"));
    }
}
