//! Converts a dense feature with missing values to a ragged one.

use estimand_tensor::{Array, DType, Error, Result, Shape, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::FromRows;
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::spelling::{Spelling, typed};

/// `[b, ...]` -> (values, row_splits), without missing values: `""` and -1 (0 for floats).
///
/// TF: TensorFlow's feature columns do the same with a dense categorical feature.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FromDense;

impl HostRules for FromDense {
    fn name(&self) -> &'static str {
        "FromDense"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let Some(&rows) = x[0].shape.dims().first() else {
            return Err(Error::shape(format!("the feature is {}; expected an axis of rows", x[0])));
        };
        missing(x[0].dtype)?;
        let splits = inference.symbols.add(rows, 1.into())?;
        Ok(smallvec![
            TensorSpec { dtype: x[0].dtype, shape: Shape::from([inference.axis(0, 0)]) },
            TensorSpec { dtype: DType::I64, shape: Shape::from([splits]) }
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let n_rows = x[0].dims()[0];
        if !any_missing(x[0])? {
            return FromRows.run(x);
        }
        let (values, splits) = match x[0].dtype() {
            DType::Str => {
                let mut strings = x[0].strings()?;
                let mut kept = Strings::with_capacity(strings.len());
                let width = strings.len().checked_div(n_rows).unwrap_or(0);
                let mut splits = Vec::with_capacity(n_rows + 1);
                splits.push(0);
                for _ in 0..n_rows {
                    strings.by_ref().take(width).filter(|s| !s.is_empty()).for_each(|s| kept.push(s));
                    splits.push(kept.len() as i64);
                }
                (Array::from_string_list([kept.len()], kept)?, splits)
            }
            DType::I64 => keep(x[0].as_slice::<i64>()?, n_rows, |v| v != -1)?,
            DType::I32 => keep(x[0].as_slice::<i32>()?, n_rows, |v| v != -1)?,
            _ => keep(x[0].as_slice::<f32>()?, n_rows, |v| v != 0.0)?,
        };
        Ok(vec![values, Array::from(splits)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, x, dtype) = (def.name.clone(), def.input[0].clone(), writer.dtype(node, 0));
        let none = writer.constant(&owner, "missing", &missing(dtype)?)?;
        let mask = writer.part(&owner, "present", "NotEqual").input(x.clone()).input(none);
        let mask = writer.add(typed(mask, "T", dtype));
        let positions = writer.part(&owner, "where", "Where").input(mask.clone());
        let positions = writer.add(typed(positions, "T", DType::Bool));
        let values = writer.part(&owner, "values", "GatherNd").input(x).input(positions);
        let values = writer.add(typed(typed(values, "Tparams", dtype), "Tindices", DType::I64));
        let lengths = writer.part(&owner, "flags", "Cast").input(mask);
        let mut lengths = writer.add(typed(typed(lengths, "SrcT", DType::Bool), "DstT", DType::I64));
        let rank = writer.spec(node, 0).shape.rank();
        let axes = writer.ints(&owner, "axes", &mut (1..rank as i64))?;
        let sum = writer.part(&owner, "lengths", "Sum").input(lengths).input(axes);
        lengths = writer.add(typed(typed(sum, "T", DType::I64), "Tidx", DType::I32));
        let splits = writer.splits_of_lengths(&owner, lengths)?;
        Ok(writer.several(def, [(values, dtype), (splits, DType::I64)]))
    }
}

/// The value that marks a missing value.
fn missing(dtype: DType) -> Result<Array> {
    match dtype {
        DType::Str => Array::from_strings([], [""]),
        DType::I64 => Ok(Array::scalar(-1i64)),
        DType::I32 => Ok(Array::scalar(-1i32)),
        DType::F32 => Ok(Array::scalar(0f32)),
        other => Err(Error::dtype(
            Some(DType::I64),
            other,
            format!("a feature of {other} has no value that stands for a missing one"),
        )
        .help("use strings or integers for categorical features")),
    }
}

/// Whether any value is missing. Most batches have all their values, which are then used without a
/// copy.
fn any_missing(x: &Array) -> Result<bool> {
    Ok(match x.dtype() {
        DType::Str => x.strings()?.any(|s| s.is_empty()),
        DType::I64 => x.as_slice::<i64>()?.contains(&-1),
        DType::I32 => x.as_slice::<i32>()?.contains(&-1),
        _ => x.as_slice::<f32>()?.contains(&0.0),
    })
}

fn keep<T: estimand_tensor::Element>(
    values: &[T],
    n_rows: usize,
    is_present: impl Fn(T) -> bool,
) -> Result<(Array, Vec<i64>)> {
    let width = values.len().checked_div(n_rows).unwrap_or(0);
    let mut kept = Vec::with_capacity(values.len());
    let mut splits = Vec::with_capacity(n_rows + 1);
    splits.push(0);
    for row in 0..n_rows {
        kept.extend(values[row * width..][..width].iter().copied().filter(|v| is_present(*v)));
        splits.push(kept.len() as i64);
    }
    Ok((Array::from(kept), splits))
}
