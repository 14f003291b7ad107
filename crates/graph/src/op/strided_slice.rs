//! Strided slices and their gradient.

use super::rules::*;

/// Every `strides[i]`-th element from `begin[i]`; strides may be negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StridedSlice {
    /// First index on each axis.
    pub begin: Vec<usize>,
    /// Step on each axis, not 0.
    pub strides: Vec<i64>,
    /// Size of the result.
    pub size: Vec<usize>,
}

impl OpRules for StridedSlice {
    fn name(&self) -> &'static str {
        "StridedSlice"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_rank_of(self.begin.len(), x[0], "begins")?;
        expect_rank_of(self.strides.len(), x[0], "strides")?;
        check_bounds(&self.begin, &self.strides, &self.size, &x[0].shape)?;
        one(x[0].dtype, Shape::from(&self.size[..]))
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (begin, strides) = (self.begin.clone(), self.strides.clone());
        let op = StridedSliceGrad { begin, strides, shape: back.x[0].shape().clone() };
        dense([back.node(op, &[&back.dy(0)])])
    }

    /// Reads only the elements of the slice.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        Cost { read: operands.written(), written: operands.written(), flops: 0 }
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let def = with_bounds(def, &self.begin, &self.strides, &self.size, writer)?;
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn moves_elements(&self) -> bool {
        true
    }
}

/// The gradient of `StridedSlice`: zeros of the given shape, with the input at the positions of the
/// slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StridedSliceGrad {
    /// As in `StridedSlice`.
    pub begin: Vec<usize>,
    /// As in `StridedSlice`.
    pub strides: Vec<i64>,
    /// The shape of the slice's input.
    pub shape: Shape,
}

impl OpRules for StridedSliceGrad {
    fn name(&self) -> &'static str {
        "StridedSliceGrad"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let size = x[0]
            .shape
            .known()
            .ok_or_else(|| Error::shape("the sizes of a strided slice must be known before the run"))?;
        check_bounds(&self.begin, &self.strides, &size, &self.shape)?;
        one(x[0].dtype, self.shape.clone())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let size = back.x[0].shape().known().unwrap_or_default().to_vec();
        let op = StridedSlice { begin: self.begin.clone(), strides: self.strides.clone(), size };
        dense([back.node(op, &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        // `infer` has refused a strided slice of unknown size.
        let size = writer.spec(node, 0).shape.known().unwrap_or_default();
        let dy = def.input[0].clone();
        let shape = writer.shape(&def.name, "shape", self.shape.dims(), DType::I32)?;
        let def = NodeDef::new(def.name, def.op).input(shape);
        let def = with_bounds(def, &self.begin, &self.strides, &size, writer)?.input(dy);
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }
}

fn check_bounds(begin: &[usize], strides: &[i64], size: &[usize], shape: &Shape) -> Result<()> {
    for axis in 0..size.len() {
        let Some(d) = shape.dims()[axis].known() else {
            if begin[axis] == 0 && strides[axis] == 1 {
                continue;
            }
            return Err(Error::shape(format!(
                "cannot slice axis {axis} of {shape} with a stride: its size is known only at run time"
            )));
        };
        let last = (begin[axis] as i64).saturating_add(strides[axis].saturating_mul(size[axis] as i64 - 1));
        if strides[axis] == 0 || (size[axis] > 0 && (begin[axis] >= d || !(0..d as i64).contains(&last))) {
            return Err(Error::index(format!(
                "the slice is outside axis {axis} of {shape}: it has {} elements from {} with stride {}",
                size[axis], begin[axis], strides[axis]
            )));
        }
    }
    Ok(())
}

/// Adds begin, end and strides. A descending slice that includes index 0 has no valid end: -1 would
/// mean the last element.
fn with_bounds(
    def: NodeDef,
    begin: &[usize],
    strides: &[i64],
    size: &[usize],
    writer: &mut dyn Spelling,
) -> Result<NodeDef> {
    let (mut ends, mut open) = (Vec::new(), 0i64);
    for (i, ((&b, &stride), &n)) in begin.iter().zip(strides).zip(size).enumerate() {
        let last = b as i64 + stride * (n as i64 - 1);
        let end = if n == 0 { b as i64 } else { last + stride.signum() };
        open |= i64::from(end < 0) << i;
        ends.push(end.max(0));
    }
    let begin = writer.ints(&def.name, "begin", &mut begin.iter().map(|&b| b as i64))?;
    let end = writer.ints(&def.name, "end", &mut ends.into_iter())?;
    let strides = writer.ints(&def.name, "strides", &mut strides.iter().copied())?;
    let def = def.input(begin).input(end).input(strides).attr("end_mask", open);
    Ok(typed(def, "Index", DType::I32))
}
