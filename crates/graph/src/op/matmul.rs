//! Matrix products.

use super::rules::*;

/// Product of two matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatMul {
    /// Uses the transpose of the first.
    pub transpose_a: bool,
    /// Uses the transpose of the second.
    pub transpose_b: bool,
}

impl OpRules for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        expect_rank(2, x[0], "first matrix")?;
        expect_rank(2, x[1], "second matrix")?;
        one(x[0].dtype, product_shape(x, self.transpose_a, self.transpose_b)?)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        inner_sizes_agree(x, self.transpose_a, self.transpose_b)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (a, b, dy) = (&back.x[0], &back.x[1], back.dy(0));
        let product = |x: &Tensor, y: &Tensor, transpose_a: bool, transpose_b: bool| {
            back.node(MatMul { transpose_a, transpose_b }, &[x, y])
        };
        let (da, db) = factors(a, b, &dy, self.transpose_a, self.transpose_b, &product);
        back.pair(da, db)
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(operands, self.transpose_a))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let def = typed(def, "T", writer.dtype(node, 0));
        Ok(def.attr("transpose_a", self.transpose_a).attr("transpose_b", self.transpose_b))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("MatMul", read)]
    }
}

/// Products of matrices in the last two axes; leading axes are broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchMatMul {
    /// Uses the transposes of the first.
    pub adjoint_x: bool,
    /// Uses the transposes of the second.
    pub adjoint_y: bool,
}

impl OpRules for BatchMatMul {
    fn name(&self) -> &'static str {
        "BatchMatMulV2"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        if x[0].shape.rank() < 2 || x[1].shape.rank() < 2 {
            return Err(Error::shape(format!(
                "the inputs are {} and {}; expected two axes or more for both",
                x[0].shape, x[1].shape
            )));
        }
        let matrix = product_shape(x, self.adjoint_x, self.adjoint_y)?;
        let lead = |s: &Shape| s.dims()[..s.rank() - 2].iter().copied().collect::<Shape>();
        let mut shape = broadcast(&lead(&x[0].shape), &lead(&x[1].shape), inference.symbols)?;
        shape.0.extend(matrix.0);
        one(x[0].dtype, shape)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        inner_sizes_agree(x, self.adjoint_x, self.adjoint_y)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (a, b, dy) = (&back.x[0], &back.x[1], back.dy(0));
        let product = |x: &Tensor, y: &Tensor, adjoint_x: bool, adjoint_y: bool| {
            back.node(BatchMatMul { adjoint_x, adjoint_y }, &[x, y])
        };
        let (da, db) = factors(a, b, &dy, self.adjoint_x, self.adjoint_y, &product);
        back.broadcast_pair(da, db)
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(operands, self.adjoint_x))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let def = typed(def, "T", writer.dtype(node, 0));
        Ok(def.attr("adj_x", self.adjoint_x).attr("adj_y", self.adjoint_y))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("BatchMatMul", read_batch), ("BatchMatMulV2", read_batch)]
    }
}

/// The shape of the matrices of a product.
fn product_shape(x: &[&TensorSpec], transpose_a: bool, transpose_b: bool) -> Result<Shape> {
    let last_two = |s: &Shape, transpose: bool| {
        let d = &s.dims()[s.rank() - 2..];
        if transpose { (d[1], d[0]) } else { (d[0], d[1]) }
    };
    let ((m, k), (k2, n)) = (last_two(&x[0].shape, transpose_a), last_two(&x[1].shape, transpose_b));
    if let (Some(a), Some(b)) = (k.known(), k2.known())
        && a != b
    {
        let note = |t: bool| if t { " transposed" } else { "" };
        return Err(Error::shape(format!(
            "cannot multiply {}{} by {}{}: the inner sizes {a} and {b} differ",
            x[0].shape,
            note(transpose_a),
            x[1].shape,
            note(transpose_b)
        )));
    }
    Ok(Shape::from([m, n]))
}

/// Whether the shared axis agrees: the last axis of the first factor and the second to last of the
/// second.
fn inner_sizes_agree(x: &[&[usize]], transpose_a: bool, transpose_b: bool) -> bool {
    let inner = |d: &[usize], back: usize| d[d.len() - back];
    inner(x[0], if transpose_a { 2 } else { 1 }) == inner(x[1], if transpose_b { 1 } else { 2 })
}

/// Two operations for each term.
fn terms(operands: &Operands<'_>, transpose_a: bool) -> u64 {
    let a = operands.x[0];
    product(&[2, count(operands.y[0]), a[a.len() - if transpose_a { 2 } else { 1 }]])
}

/// The gradients of both factors, as products.
fn factors<'a>(
    a: &'a Tensor,
    b: &'a Tensor,
    dy: &'a Tensor,
    transpose_a: bool,
    transpose_b: bool,
    product: &'a dyn Fn(&Tensor, &Tensor, bool, bool) -> Tensor,
) -> (impl FnOnce() -> Tensor + 'a, impl FnOnce() -> Tensor + 'a) {
    let da = move || match transpose_a {
        true => product(b, dy, transpose_b, true),
        false => product(dy, b, false, !transpose_b),
    };
    let db = move || match transpose_b {
        true => product(dy, a, true, transpose_a),
        false => product(a, dy, !transpose_a, false),
    };
    (da, db)
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (a, b) = (reading.tensor(0)?, reading.tensor(1)?);
    let (transpose_a, transpose_b) = (reading.flag("transpose_a", false)?, reading.flag("transpose_b", false)?);
    reading.add(MatMul { transpose_a, transpose_b }, &[&a, &b])
}

fn read_batch(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (a, b) = (reading.tensor(0)?, reading.tensor(1)?);
    let (adjoint_x, adjoint_y) = (reading.flag("adj_x", false)?, reading.flag("adj_y", false)?);
    reading.add(BatchMatMul { adjoint_x, adjoint_y }, &[&a, &b])
}
