//! Pads ragged rows to sequences of equal length.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, Strings, TensorSpec, element_count};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{expect_splits, splits};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_rank, same_dtype};
use crate::op::spelling::{Spelling, typed};

/// (values `[n]`, row_splits, the number of steps, padding) -> `[rows, steps, dims...]`: a step
/// takes as many of a row's values as the step has elements. The padding fills the rest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToSteps {
    /// The sizes of a step's axes.
    pub dims: Vec<usize>,
    /// The number of steps as a size.
    pub n_steps: Dim,
}

impl HostRules for ToSteps {
    fn name(&self) -> &'static str {
        "ToSteps"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_rank(1, x[0], "list of values")?;
        expect_splits(x[1])?;
        expect_dtype(DType::I64, x[2], "number of steps")?;
        expect_rank(0, x[2], "number of steps")?;
        same_dtype(x[0], x[3])?;
        expect_rank(0, x[3], "padding")?;
        let rows = inference.symbols.sub(x[1].shape.dims()[0], 1.into());
        let shape: Shape = [rows, self.n_steps].into_iter().chain(self.dims.iter().map(|&n| n.into())).collect();
        Ok(smallvec![TensorSpec { dtype: x[0].dtype, shape }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let splits = splits(x[1], x[0].len())?;
        let steps = x[2].item::<i64>()?;
        let n_steps = usize::try_from(steps)
            .map_err(|_| Error::shape(format!("the number of steps is {steps}; expected 0 or more")))?;
        let dims: Vec<usize> = [splits.len() - 1, n_steps].into_iter().chain(self.dims.iter().copied()).collect();
        let width = element_count(&dims[1..])?;
        let longest = splits.windows(2).map(|row| row[1] - row[0]).max().unwrap_or(0);
        if longest > width as i64 {
            return Err(Error::shape(format!("a row has {longest} values, which do not fit into {n_steps} steps")));
        }
        let total = element_count(&dims)?;
        let made = match x[0].dtype() {
            DType::F32 => padded(x[0].as_slice::<f32>()?, splits, width, x[3].item()?),
            DType::I64 => padded(x[0].as_slice::<i64>()?, splits, width, x[3].item()?),
            DType::I32 => padded(x[0].as_slice::<i32>()?, splits, width, x[3].item()?),
            DType::Str => {
                let (all, padding) = (x[0].string_slice()?, x[3].string_slice()?);
                let mut strings = Strings::with_capacity(total);
                for row in splits.windows(2) {
                    (row[0]..row[1]).for_each(|i| strings.push(all.get(i as usize)));
                    (row[1] - row[0]..width as i64).for_each(|_| strings.push(padding.get(0)));
                }
                return Ok(vec![Array::from_string_list(dims, strings)?]);
            }
            other => {
                return Err(Error::dtype(Some(DType::F32), other, format!("sequences of {other} are not supported")));
            }
        };
        Ok(vec![made.reshape(dims)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, dtype) = (def.name.clone(), writer.dtype(node, 0));
        let [values, splits, padding] = [0, 1, 3].map(|i| def.input[i].clone());
        let dims = node.outputs[0].shape.dims();
        let mut width = writer.size(dims[1], &owner, "n_steps")?;
        let step = writer.int(&owner, "step", self.dims.iter().product())?;
        let product = writer.part(&owner, "width", "Mul").input(width).input(step);
        width = writer.add(typed(product, "T", DType::I32));
        let rows = writer.size(dims[0], &owner, "n_rows")?;
        let shape = writer.part(&owner, "wanted", "Pack").input(rows).input(width).attr("N", 2i64).attr("axis", 0i64);
        let shape = writer.add(typed(shape, "T", DType::I32));
        let dense = writer.part(&owner, "dense", "RaggedTensorToTensor");
        let dense = dense.input(shape).input(values).input(padding).input(splits);
        let dense =
            dense.attr("num_row_partition_tensors", 1i64).attr("row_partition_types", vec![b"ROW_SPLITS".to_vec()]);
        let dense = writer.add(typed(typed(typed(dense, "T", dtype), "Tindex", DType::I64), "Tshape", DType::I32));
        let shape = writer.shape(&owner, "shape", dims, DType::I32)?;
        let def = NodeDef { op: "Reshape".into(), input: vec![dense, shape], ..def };
        Ok(typed(typed(def, "T", dtype), "Tshape", DType::I32))
    }
}

fn padded<T: estimand_tensor::Element>(values: &[T], splits: &[i64], width: usize, padding: T) -> Array {
    let mut all = Vec::with_capacity((splits.len() - 1) * width);
    for row in splits.windows(2) {
        all.extend_from_slice(&values[row[0] as usize..row[1] as usize]);
        all.resize(all.len() + width - (row[1] - row[0]) as usize, padding);
    }
    Array::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;

    #[test]
    fn short_rows_are_padded() {
        // Rows [1, 2, 3], [], [4]: steps of two values.
        let op = ToSteps { dims: vec![2], n_steps: Graph::ANY };
        let splits = Array::from([0i64, 3, 3, 4]);
        let run = |values: Array, steps: i64, padding: Array| {
            op.run(&[&values, &splits, &Array::scalar(steps), &padding]).map(|mut out| out.remove(0))
        };
        let out = run(Array::from([1f32, 2.0, 3.0, 4.0]), 2, Array::scalar(-1f32)).unwrap();
        assert_eq!(out.dims(), [3, 2, 2]);
        assert_eq!(
            out.as_slice::<f32>().unwrap(),
            [1.0, 2.0, 3.0, -1.0, -1.0, -1.0, -1.0, -1.0, 4.0, -1.0, -1.0, -1.0]
        );
        let words = Array::from_strings([4], ["a", "b", "c", "d"]).unwrap();
        let out = run(words, 2, Array::from_strings([], [""]).unwrap()).unwrap();
        assert_eq!(out.strings().unwrap().collect::<Vec<_>>().concat(), b"abcd");
        let error = run(Array::from([1i64, 2, 3, 4]), 1, Array::scalar(0i64)).unwrap_err().to_string();
        assert!(error.contains("a row has 3 values, which do not fit into 1 steps"), "{error}");
    }
}
