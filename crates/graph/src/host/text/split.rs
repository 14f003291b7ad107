//! Splits strings into words.

use estimand_tensor::cpu::text::split;
use estimand_tensor::{Array, DType, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::Spelling;

/// `[n]` -> (words, row_splits `[n + 1]`). An empty separator stands for any white space. The
/// number of splits is limited; -1 for no limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringSplit {
    pub separator: Vec<u8>,
    pub max_split: i64,
}

impl HostRules for StringSplit {
    fn name(&self) -> &'static str {
        "StringSplitV2"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::Str, x[0], "input")?;
        expect_rank(1, x[0], "list of strings")?;
        let splits = inference.symbols.add(x[0].shape.dims()[0], 1.into())?;
        Ok(smallvec![
            TensorSpec { dtype: DType::Str, shape: Shape::from([inference.axis(0, 0)]) },
            TensorSpec { dtype: DType::I64, shape: Shape::from([splits]) }
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (words, splits) = split(x[0].string_slice()?, &self.separator, self.max_split);
        Ok(vec![Array::from(words), Array::from(splits)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let owner = def.name.clone();
        let separator = writer.constant(&owner, "separator", &Array::from_strings([], [&self.separator])?)?;
        let words = writer.part(&owner, "words", "StringSplitV2").input(def.input[0].clone()).input(separator);
        let words = writer.add(words.attr("maxsplit", self.max_split));
        let rows = writer.first_column(&owner, words.clone())?;
        let n_rows = writer.size(writer.spec(node, 0).shape.dims()[0], &owner, "n_rows")?;
        let splits = writer.splits_of(&owner, rows, &n_rows)?;
        Ok(writer.several(def, [(format!("{words}:1"), DType::Str), (splits, DType::I64)]))
    }
}
