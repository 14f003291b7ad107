//! Filters the values of a ragged tensor.

use estimand_tensor::{Array, DType, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{expect_splits, kept_splits, splits};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::{Spelling, typed};

/// (mask `[n]`, row_splits) -> (the positions of the kept values, their row splits).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaggedFilter;

impl HostRules for RaggedFilter {
    fn name(&self) -> &'static str {
        "RaggedFilter"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::Bool, x[0], "mask")?;
        expect_rank(1, x[0], "mask")?;
        expect_splits(x[1])?;
        let kept = Shape::from([inference.axis(0, 0)]);
        Ok(smallvec![TensorSpec { dtype: DType::I64, shape: kept }, x[1].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let mask = x[0].as_slice::<bool>()?;
        let kept: Vec<i64> = (0i64..).zip(mask).filter(|(_, keep)| **keep).map(|(i, _)| i).collect();
        let splits = kept_splits(splits(x[1], mask.len())?, |i| mask[i]);
        Ok(vec![Array::from(kept), Array::from(splits)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let [mask, splits] = [def.input[0].clone(), def.input[1].clone()];
        let rows = writer.row_ids(&def.name, splits.clone(), mask.clone(), DType::Bool)?;
        let kept = writer.kept(&def.name, mask, &rows, &splits)?;
        Ok(writer.several(def, [(kept.positions, DType::I64), (kept.splits, DType::I64)]))
    }
}

/// The kept values of a ragged tensor, in TensorFlow's spelling.
pub struct Kept {
    /// Positions among the values.
    pub positions: String,
    /// The row splits of the kept values.
    pub splits: String,
}

impl dyn Spelling + '_ {
    /// Writes the positions where a mask holds, and their row splits. `rows` are the row ids of all
    /// values.
    pub(crate) fn kept(&mut self, owner: &str, mask: String, rows: &str, splits: &str) -> Result<Kept> {
        let found = self.part(owner, "where", "Where").input(mask);
        let found = self.add(typed(found, "T", DType::Bool));
        let flat = self.ints(owner, "flat", &mut [-1].into_iter())?;
        let positions = self.part(owner, "positions", "Reshape").input(found).input(flat);
        let positions = self.add(typed(typed(positions, "T", DType::I64), "Tshape", DType::I32));
        let kept_rows = self.gather_rows(owner, "kept_rows", rows.into(), positions.clone(), DType::I64, DType::I64)?;
        let n_rows = self.rows_of(owner, splits)?;
        let splits = self.splits_of(owner, kept_rows, &n_rows)?;
        Ok(Kept { positions, splits })
    }

    /// Writes the number of rows of row splits.
    pub(crate) fn rows_of(&mut self, owner: &str, splits: &str) -> Result<String> {
        let n = self.part(owner, "splits_size", "Size").input(splits);
        let n = self.add(typed(typed(n, "T", DType::I64), "out_type", DType::I32));
        let one = self.int(owner, "one", 1)?;
        let n_rows = self.part(owner, "n_rows", "Sub").input(n).input(one);
        Ok(self.add(typed(n_rows, "T", DType::I32)))
    }

    /// Writes the row splits of values with these row ids, for `n_rows` rows.
    pub(crate) fn splits_of(&mut self, owner: &str, rows: String, n_rows: &str) -> Result<String> {
        let ones = self.part(owner, "ones", "OnesLike").input(rows.clone());
        let ones = self.add(typed(ones, "T", DType::I64));
        let lengths = self.segment_sum(owner, "lengths", ones, &rows, n_rows, DType::I64);
        self.splits_of_lengths(owner, lengths)
    }

    /// Writes the row splits of rows with these lengths (i64).
    pub(crate) fn splits_of_lengths(&mut self, owner: &str, lengths: String) -> Result<String> {
        let axis = self.int(owner, "sum_axis", 0)?;
        let ends = self.part(owner, "ends", "Cumsum").input(lengths).input(axis.clone());
        let ends = self.add(typed(typed(ends, "T", DType::I64), "Tidx", DType::I32));
        let zero = self.constant(owner, "zero", &Array::from([0i64]))?;
        let splits = self.part(owner, "splits", "ConcatV2").input(zero).input(ends).input(axis).attr("N", 2i64);
        Ok(self.add(typed(typed(splits, "T", DType::I64), "Tidx", DType::I32)))
    }

    /// Writes a node whose outputs are those of other nodes.
    pub(crate) fn several(&mut self, def: NodeDef, outputs: impl IntoIterator<Item = (String, DType)>) -> NodeDef {
        let (input, types): (Vec<String>, Vec<DType>) = outputs.into_iter().unzip();
        NodeDef { op: "IdentityN".into(), input, ..def }.attr("T", crate::op::spelling::type_list(&types))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_splits() {
        // Rows [0, 1], [], [2, 3, 4], of which 1, 2 and 4 are kept.
        let mask = Array::from([false, true, true, false, true]);
        let out = RaggedFilter.run(&[&mask, &Array::from([0i64, 2, 2, 5])]).unwrap();
        assert_eq!(out[0].as_slice::<i64>().unwrap(), [1, 2, 4]);
        assert_eq!(out[1].as_slice::<i64>().unwrap(), [0, 1, 1, 3]);
        let error = RaggedFilter.run(&[&mask, &Array::from([0i64, 2])]).unwrap_err().to_string();
        assert!(error.contains("ends at 2, but there are 5 values"), "{error}");
    }
}
