//! Converts a dense feature to a ragged one and keeps all values.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::spelling::{Spelling, typed};

/// `[b, ...]` -> (values, row_splits): every row has the same number of values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FromRows;

impl HostRules for FromRows {
    fn name(&self) -> &'static str {
        "FromRows"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let Some(&rows) = x[0].shape.dims().first() else {
            return Err(Error::shape(format!("the feature is {}; expected an axis of rows", x[0])));
        };
        let n = inference.symbols.product(x[0].shape.dims())?;
        let splits = inference.symbols.add(rows, 1.into())?;
        Ok(smallvec![
            TensorSpec { dtype: x[0].dtype, shape: Shape::from([n]) },
            TensorSpec { dtype: DType::I64, shape: Shape::from([splits]) }
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let n_rows = x[0].dims()[0];
        let width = x[0].len().checked_div(n_rows).unwrap_or(0);
        let splits = Array::written([n_rows + 1], |splits| {
            splits.iter_mut().enumerate().for_each(|(row, split)| *split = (row * width) as i64);
            Ok(())
        })?;
        Ok(vec![x[0].reshape([x[0].len()])?, splits])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, x, dtype) = (def.name.clone(), def.input[0].clone(), writer.dtype(node, 0));
        let flat = writer.ints(&owner, "flat", &mut [-1].into_iter())?;
        let values = writer.part(&owner, "values", "Reshape").input(x).input(flat);
        let values = writer.add(typed(typed(values, "T", dtype), "Tshape", DType::I32));
        let dims: Vec<Dim> = writer.spec(node, 0).shape.dims().to_vec();
        let n_rows = writer.shape(&owner, "n_rows", &dims[..1], DType::I32)?;
        let mut width = writer.int(&owner, "one", 1)?;
        for (i, &dim) in dims.iter().enumerate().skip(1) {
            let size = writer.size(dim, &owner, &format!("size_{i}"))?;
            let product = writer.part(&owner, &format!("width_{i}"), "Mul").input(width).input(size);
            width = writer.add(typed(product, "T", DType::I32));
        }
        let width = writer.converted(width, DType::I32, DType::I64);
        let lengths = writer.part(&owner, "lengths", "Fill").input(n_rows).input(width);
        let lengths = writer.add(typed(typed(lengths, "T", DType::I64), "index_type", DType::I32));
        let splits = writer.splits_of_lengths(&owner, lengths)?;
        Ok(writer.several(def, [(values, dtype), (splits, DType::I64)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_kept() {
        let out = FromRows.run(&[&Array::from_vec([2, 2], vec![-1i64, 3, 0, -1]).unwrap()]).unwrap();
        assert_eq!(out[0].as_slice::<i64>().unwrap(), [-1, 3, 0, -1]);
        assert_eq!(out[1].as_slice::<i64>().unwrap(), [0, 2, 4]);
        let empty = FromRows.run(&[&Array::zeros(DType::F32, [0, 3]).unwrap()]).unwrap();
        assert_eq!(empty[1].as_slice::<i64>().unwrap(), [0]);
    }
}
