//! Concatenates ragged tensors row by row.

use estimand_tensor::{Array, DType, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{expect_splits, splits};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_equal, expect_rank};
use crate::op::spelling::{Spelling, typed};

/// (values of each, as shapes only; then row_splits of each) -> (the order of the values,
/// row_splits).
///
/// Values are numbered consecutively: those of the first tensor, then those of the second. A gather
/// from all values completes the op.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaggedConcat;

impl HostRules for RaggedConcat {
    fn name(&self) -> &'static str {
        "RaggedConcat"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let (values, all_splits) = x.split_at(x.len() / 2);
        let mut n = 0.into();
        for (values, splits) in values.iter().zip(all_splits) {
            expect_rank(1, values, "list of values")?;
            expect_splits(splits)?;
            expect_equal("list of row_splits", &splits.shape, &all_splits[0].shape)?;
            n = inference.symbols.add(n, values.shape.dims()[0])?;
        }
        Ok(smallvec![TensorSpec { dtype: DType::I64, shape: Shape::from([n]) }, all_splits[0].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (values, all_splits) = x.split_at(x.len() / 2);
        let mut parts = Vec::new();
        let mut first = 0;
        for (values, all) in values.iter().zip(all_splits) {
            parts.push((first, splits(all, values.len())?));
            first += values.len() as i64;
        }
        let n_rows = parts[0].1.len() - 1;
        if parts.iter().any(|(_, splits)| splits.len() - 1 != n_rows) {
            let rows: Vec<usize> = parts.iter().map(|(_, splits)| splits.len() - 1).collect();
            return Err(Error::shape(format!(
                "the ragged tensors have {rows:?} rows; expected the same number to join them row by row"
            )));
        }
        let mut order = Vec::with_capacity(first as usize);
        let mut joined = vec![0];
        for row in 0..n_rows {
            for (first, splits) in &parts {
                order.extend(first + splits[row]..first + splits[row + 1]);
            }
            joined.push(order.len() as i64);
        }
        Ok(vec![Array::from(order), Array::from(joined)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        // A stable sort by row groups each row's values, those of earlier tensors first.
        let owner = def.name.clone();
        let (values, all_splits) = def.input.split_at(def.input.len() / 2);
        let mut rows = writer.part(&owner, "rows", "ConcatV2").attr("N", values.len() as i64);
        for (i, (value, splits)) in values.iter().zip(all_splits).enumerate() {
            let dtype = writer.dtype(node, i);
            let ids = writer.row_ids(&format!("{owner}/{i}"), splits.clone(), value.clone(), dtype)?;
            rows = rows.input(ids);
        }
        let axis = writer.int(&owner, "axis", 0)?;
        let rows = writer.add(typed(typed(rows.input(axis), "T", DType::I64), "Tidx", DType::I32));
        // TopKV2 keeps the order of equal elements and sorts in descending order, so it sorts the
        // negated rows.
        let negative = writer.part(&owner, "negative", "Neg").input(rows.clone());
        let negative = writer.add(typed(negative, "T", DType::I64));
        let n = writer.part(&owner, "n", "Size").input(rows.clone());
        let n = writer.add(typed(typed(n, "T", DType::I64), "out_type", DType::I32));
        let sorted = writer.part(&owner, "sorted", "TopKV2").input(negative).input(n).attr("sorted", true);
        let sorted = writer.add(typed(sorted, "T", DType::I64));
        let order = writer.converted(format!("{sorted}:1"), DType::I32, DType::I64);
        let n_rows = writer.rows_of(&owner, &all_splits[0])?;
        let splits = writer.splits_of(&owner, rows, &n_rows)?;
        Ok(writer.several(def, [(order, DType::I64), (splits, DType::I64)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_by_row() {
        // [a, b], [] and [], [c]: a b, c
        let x = [
            Array::from_strings([2], ["a", "b"]).unwrap(),
            Array::from_strings([1], ["c"]).unwrap(),
            Array::from([0i64, 2, 2]),
            Array::from([0i64, 0, 1]),
        ];
        let out = RaggedConcat.run(&x.each_ref()).unwrap();
        assert_eq!(out[0].as_slice::<i64>().unwrap(), [0, 1, 2]);
        assert_eq!(out[1].as_slice::<i64>().unwrap(), [0, 2, 3]);
    }
}
