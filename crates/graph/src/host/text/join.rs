//! Joins strings.

use estimand_tensor::cpu::text::{JoinInput, join, reduce_join};
use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_equal};
use crate::op::spelling::Spelling;

/// Joins several tensors of one shape, or single strings, element by element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringJoin {
    pub separator: Vec<u8>,
}

/// Joins the strings along some axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceJoin {
    /// In the order of joining: the index of the first axis changes fastest.
    pub axes: Vec<usize>,
    pub keep_dims: bool,
    pub separator: Vec<u8>,
}

impl HostRules for StringJoin {
    fn name(&self) -> &'static str {
        "StringJoin"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let mut shape = Shape::scalar();
        for input in x {
            expect_dtype(DType::Str, input, "input")?;
            if shape.rank() == 0 {
                shape = input.shape.clone();
            } else if input.shape.rank() > 0 {
                expect_equal("input", &input.shape, &shape)?;
            }
        }
        Ok(smallvec![TensorSpec { dtype: DType::Str, shape }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let dims = x.iter().map(|a| a.dims()).find(|dims| !dims.is_empty()).unwrap_or_default();
        if let Some(other) = x.iter().find(|a| a.rank() > 0 && a.dims() != dims) {
            return Err(Error::shape(format!(
                "cannot join strings of the shapes {dims:?} and {:?}; expected equal shapes or single strings",
                other.dims()
            )));
        }
        let input = |a: &'_ Array| -> Result<usize> { Ok(a.string_slice()?.len()) };
        let n = x.iter().copied().find(|a| a.rank() > 0).map_or(Ok(1), input)?;
        let mut inputs = Vec::with_capacity(x.len());
        for array in x {
            let strings = array.string_slice()?;
            inputs.push(if array.rank() == 0 { JoinInput::One(strings.get(0)) } else { JoinInput::Each(strings) });
        }
        let mut out = Strings::with_capacity(n);
        join(&inputs, &self.separator, n, &mut out)?;
        Ok(vec![Array::from_string_list(dims, out)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(def.attr("N", node.inputs.len() as i64).attr("separator", self.separator.clone()))
    }
}

impl HostRules for ReduceJoin {
    fn name(&self) -> &'static str {
        "ReduceJoin"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::Str, x[0], "input")?;
        if let Some(axis) = self.axes.iter().find(|axis| **axis >= x[0].shape.rank()) {
            return Err(Error::shape(format!("there is no axis {axis} in {}", x[0])));
        }
        if let Some((_, axis)) = self.axes.iter().enumerate().find(|(i, axis)| self.axes[..*i].contains(axis)) {
            return Err(Error::config(format!("axis {axis} is given twice; expected each axis once")));
        }
        let dims = x[0].shape.dims().iter().enumerate();
        let shape = dims.filter_map(|(axis, &dim)| match self.axes.contains(&axis) {
            true => self.keep_dims.then_some(Dim::Known(1)),
            false => Some(dim),
        });
        Ok(smallvec![TensorSpec { dtype: DType::Str, shape: shape.collect() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let axes: Vec<i64> = self.axes.iter().map(|&axis| axis as i64).collect();
        let (joined, dims) = reduce_join(x[0].string_slice()?, x[0].dims(), &axes, self.keep_dims, &self.separator)?;
        Ok(vec![Array::from_string_list(dims, joined)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axes = writer.ints(&def.name, "axes", &mut self.axes.iter().map(|&axis| axis as i64))?;
        Ok(def.input(axes).attr("keep_dims", self.keep_dims).attr("separator", self.separator.clone()))
    }
}
