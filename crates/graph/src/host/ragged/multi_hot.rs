//! The coordinates and weights of a multi-hot encoding.

use estimand_tensor::{Array, DType, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{check_weights, expect_splits, expect_weights, splits, wide_ids};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_rank, integer_ids};
use crate::op::spelling::{Spelling, typed};

/// (ids `[n]`, row_splits, optional weights `[n]`) -> (row and id of each id below `depth`
/// `[k, 2]`, its weight or 1 `[k]`).
///
/// The step sums them into the dense result, which may be large, because the step already has the
/// memory for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiHot {
    pub depth: usize,
}

impl HostRules for MultiHot {
    fn name(&self) -> &'static str {
        "MultiHot"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "ids")?;
        expect_rank(1, x[0], "list of ids")?;
        expect_splits(x[1])?;
        if let Some(weights) = x.get(2) {
            expect_weights(weights, x[0])?;
        }
        let kept = inference.axis(0, 0);
        Ok(smallvec![
            TensorSpec { dtype: DType::I64, shape: Shape::from([kept, 2.into()]) },
            TensorSpec { dtype: DType::F32, shape: Shape::from([kept]) }
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let ids = wide_ids(x[0])?;
        let splits = splits(x[1], ids.len())?;
        let weights = check_weights(x.get(2).copied(), ids.len())?;
        let mut places = Vec::with_capacity(2 * ids.len());
        let mut counts = Vec::with_capacity(ids.len());
        for (row, ends) in splits.windows(2).enumerate() {
            for i in ends[0] as usize..ends[1] as usize {
                if (0..self.depth as i64).contains(&ids[i]) {
                    places.extend([row as i64, ids[i]]);
                    counts.push(weights.map_or(1.0, |w| w[i]));
                }
            }
        }
        Ok(vec![Array::from_vec([counts.len(), 2], places)?, Array::from(counts)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let owner = def.name.clone();
        let [ids, splits] = [def.input[0].clone(), def.input[1].clone()];
        let ids = writer.converted(ids, writer.dtype(node, 0), DType::I64);
        let rows = writer.row_ids(&owner, splits.clone(), ids.clone(), DType::I64)?;
        let mut bound = |role: &str, op: &str, bound: i64| -> Result<String> {
            let limit = writer.constant(&owner, &format!("{role}_limit"), &Array::scalar(bound))?;
            let mask = writer.part(&owner, role, op).input(ids.clone()).input(limit);
            Ok(writer.add(typed(mask, "T", DType::I64)))
        };
        let (low, high) = (bound("above", "GreaterEqual", 0)?, bound("below", "Less", self.depth as i64)?);
        let known = writer.part(&owner, "known", "LogicalAnd").input(low).input(high);
        let known = writer.add(known);
        let kept = writer.kept(&owner, known, &rows, &splits)?.positions;
        let rows = writer.gather_rows(&owner, "rows", rows, kept.clone(), DType::I64, DType::I64)?;
        let ids = writer.gather_rows(&owner, "ids", ids, kept.clone(), DType::I64, DType::I64)?;
        let counts = match def.input.get(2).cloned() {
            Some(weights) => writer.gather_rows(&owner, "weights", weights, kept, DType::F32, DType::I64)?,
            None => {
                let ones = writer.part(&owner, "ones_like", "OnesLike").input(ids.clone());
                let ones = writer.add(typed(ones, "T", DType::I64));
                writer.converted(ones, DType::I64, DType::F32)
            }
        };
        let at = writer.part(&owner, "at", "Pack").input(rows).input(ids).attr("N", 2i64).attr("axis", 1i64);
        let at = writer.add(typed(at, "T", DType::I64));
        Ok(writer.several(def, [(at, DType::I64), (counts, DType::F32)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_count_nowhere() {
        // Rows [1, 1, 7], [], [0, -1].
        let (ids, splits) = (Array::from([1i32, 1, 7, 0, -1]), Array::from([0i64, 3, 3, 5]));
        let out = MultiHot { depth: 2 }.run(&[&ids, &splits]).unwrap();
        assert_eq!(out[0].as_slice::<i64>().unwrap(), [0, 1, 0, 1, 2, 0]);
        assert_eq!(out[1].as_slice::<f32>().unwrap(), [1.0; 3]);
        let weights = Array::from([0.5f32, -2.0, 9.0, 3.0, 9.0]);
        let out = MultiHot { depth: 2 }.run(&[&ids, &splits, &weights]).unwrap();
        assert_eq!(out[1].as_slice::<f32>().unwrap(), [0.5, -2.0, 3.0]);
        let error = MultiHot { depth: 2 }.run(&[&ids, &splits, &Array::from([1f32])]).unwrap_err().to_string();
        assert!(error.contains("1 weights for 5 ids"), "{error}");
    }
}
