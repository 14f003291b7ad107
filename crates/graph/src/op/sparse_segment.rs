//! Combines rows for each ragged row, and the gradient.
//!
//! In TensorFlow these are sparse segment ops, whose segment ids come from the row splits.

pub use estimand_tensor::cpu::combine::Combiner;

use super::rules::*;
use super::{Gather, Op};
use crate::host::sparse::SegmentSplits;
use crate::host::{HostOp, RowIds};
use crate::symbols::Symbols;

/// (rows, index `[n]`, row_splits `[b + 1]`, optional weights `[n]`): combines the rows that each
/// ragged row names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseSegment {
    /// Sum, mean, or sum divided by the square root of the number.
    pub combiner: Combiner,
}

impl OpRules for SparseSegment {
    fn name(&self) -> &'static str {
        match self.combiner {
            Combiner::Sum => "SparseSegmentSum",
            Combiner::Mean => "SparseSegmentMean",
            Combiner::SqrtN => "SparseSegmentSqrtN",
        }
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let n_rows = lookups(x, inference.symbols)?;
        if x[0].shape.rank() == 0 {
            return Err(Error::shape(format!("the rows are {}, expected at least one axis", x[0])));
        }
        one(x[0].dtype, [n_rows].iter().chain(&x[0].shape.dims()[1..]).copied().collect())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        x[2][0] == y[0] + 1 && x.get(3).is_none_or(|w| *w == x[1])
    }

    /// Each row gets its shares of the gradient. A weight gets the gradient through its row.
    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let mut found = vec![Gradient::None; back.x.len()];
        if back.wanted[0] {
            let n_rows = back.x[0].shape().dims()[0];
            found[0] = Gradient::Dense(like_lookups(SparseSegmentGrad { combiner: self.combiner, n_rows }, back));
        }
        if back.wanted.get(3) == Some(&true) {
            found[3] = Gradient::Dense(weights_gradient(self.combiner, back));
        }
        Ok(found)
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(looked_up(self.combiner, operands.x, operands.y[0]))
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let [rows, index] = [def.input[0].clone(), def.input[1].clone()];
        let (dtype, ids) = (writer.dtype(node, 0), writer.dtype(node, 1));
        let segments = segments(&def.name, node, writer)?;
        let n_segments = writer.size(node.outputs[0].shape.dims()[0], &def.name, "num_segments")?;
        let Some(weights) = def.input.get(3).cloned() else {
            def.op.push_str("WithNumSegments");
            def.input = vec![rows, index, segments, n_segments];
            let def = typed(typed(def, "T", dtype), "Tidx", ids);
            return Ok(typed(typed(def, "Tsegmentids", DType::I64), "Tnumsegments", DType::I32));
        };
        let owner = def.name.clone();
        let looked_up = writer.gather_rows(&owner, "rows", rows, index, dtype, ids)?;
        let rank = node.outputs[0].shape.rank();
        let weights_column = column(&owner, "weights", weights.clone(), dtype, rank, writer)?;
        let weighted = writer.part(&owner, "weighted", "Mul").input(looked_up).input(weights_column);
        let weighted = writer.add(typed(weighted, "T", dtype));
        let sum = writer.segment_sum(&owner, "sum", weighted, &segments, &n_segments, dtype);
        match divisor(&owner, self.combiner, weights, &segments, &n_segments, dtype, writer) {
            None => Ok(typed(NodeDef { op: "Identity".into(), input: vec![sum], ..def }, "T", dtype)),
            Some(divisor) => {
                let divisor = column(&owner, "divisors", divisor, dtype, rank, writer)?;
                Ok(typed(NodeDef { op: "DivNoNan".into(), input: vec![sum, divisor], ..def }, "T", dtype))
            }
        }
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![
            ("SparseSegmentSum", |reading| read(reading, Combiner::Sum)),
            ("SparseSegmentMean", |reading| read(reading, Combiner::Mean)),
            ("SparseSegmentSqrtN", |reading| read(reading, Combiner::SqrtN)),
            ("SparseSegmentSumWithNumSegments", |reading| read(reading, Combiner::Sum)),
            ("SparseSegmentMeanWithNumSegments", |reading| read(reading, Combiner::Mean)),
            ("SparseSegmentSqrtNWithNumSegments", |reading| read(reading, Combiner::SqrtN)),
        ]
    }
}

/// (dy, index, row_splits, optional weights) -> the gradient of `n_rows` rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseSegmentGrad {
    /// As in `SparseSegment`.
    pub combiner: Combiner,
    /// The number of rows in the first input of `SparseSegment`.
    pub n_rows: Dim,
}

impl OpRules for SparseSegmentGrad {
    fn name(&self) -> &'static str {
        match self.combiner {
            Combiner::Sum => "SparseSegmentSumGrad",
            Combiner::Mean => "SparseSegmentMeanGrad",
            Combiner::SqrtN => "SparseSegmentSqrtNGrad",
        }
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let n_segments = lookups(x, inference.symbols)?;
        let differ = |a: Dim, b: Dim| matches!((a.known(), b.known()), (Some(a), Some(b)) if a != b);
        if x[0].shape.rank() == 0 || differ(x[0].shape.dims()[0], n_segments) {
            return Err(Error::shape(format!("the gradient is {}, expected {n_segments} rows", x[0])));
        }
        one(x[0].dtype, [self.n_rows].iter().chain(&x[0].shape.dims()[1..]).copied().collect())
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[2][0] == x[0][0] + 1 && x.get(3).is_none_or(|w| *w == x[1])
    }

    /// The op is linear, so its gradient is the forward op.
    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        if back.wanted.get(3) == Some(&true) {
            return Err(not_differentiable("the gradient of a weighted lookup with respect to its weights"));
        }
        let mut found = vec![Gradient::None; back.x.len()];
        found[0] = Gradient::Dense(like_lookups(SparseSegment { combiner: self.combiner }, back));
        Ok(found)
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(looked_up(self.combiner, operands.x, operands.x[0]))
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let [dy, index] = [def.input[0].clone(), def.input[1].clone()];
        let (dtype, ids) = (writer.dtype(node, 0), writer.dtype(node, 1));
        let segments = segments(&def.name, node, writer)?;
        let n_rows = writer.size(self.n_rows, &def.name, "num_rows")?;
        let Some(weights) = def.input.get(3).cloned() else {
            def.input = vec![dy, index, segments, n_rows];
            return Ok(typed(typed(typed(def, "T", dtype), "Tidx", ids), "Tsegmentids", DType::I64));
        };
        let owner = def.name.clone();
        let n_segments = writer.spec(node, 0).shape.dims()[0];
        let n_segments = writer.size(n_segments, &owner, "num_segments")?;
        let mut share = weights.clone();
        if let Some(divisor) = divisor(&owner, self.combiner, weights, &segments, &n_segments, dtype, writer) {
            let divisor = writer.gather_rows(&owner, "divisor", divisor, segments.clone(), dtype, DType::I64)?;
            let def = writer.part(&owner, "share", "DivNoNan").input(share).input(divisor);
            share = writer.add(typed(def, "T", dtype));
        }
        let looked_up = writer.gather_rows(&owner, "rows", dy, segments, dtype, DType::I64)?;
        let shares = column(&owner, "shares", share, dtype, node.outputs[0].shape.rank(), writer)?;
        let shared = writer.part(&owner, "shared", "Mul").input(looked_up).input(shares);
        let shared = writer.add(typed(shared, "T", dtype));
        let def = NodeDef { op: "UnsortedSegmentSum".into(), input: vec![shared, index, n_rows], ..def };
        Ok(typed(typed(typed(def, "T", dtype), "Tindices", ids), "Tnumsegments", DType::I32))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![
            ("SparseSegmentSumGrad", |reading| read_gradient(reading, Combiner::Sum)),
            ("SparseSegmentMeanGrad", |reading| read_gradient(reading, Combiner::Mean)),
            ("SparseSegmentSqrtNGrad", |reading| read_gradient(reading, Combiner::SqrtN)),
        ]
    }
}

/// Checks (rows, index, row_splits, weights) and returns the number of ragged rows.
fn lookups(x: &[&TensorSpec], symbols: &mut Symbols) -> Result<Dim> {
    accepts(x[0].dtype.is_float(), x[0].dtype)?;
    integer_ids(x[1], "indices")?;
    expect_rank(1, x[1], "list of indices")?;
    expect_dtype(DType::I64, x[2], "list of row_splits")?;
    expect_rank(1, x[2], "list of row_splits")?;
    if let Some(weights) = x.get(3) {
        same_dtype(x[0], weights)?;
        expect_equal("list of weights", &weights.shape, &x[1].shape)?;
    }
    Ok(symbols.sub(x[2].shape.dims()[0], Dim::Known(1)))
}

/// The operations: the row of each id is added, weighted if there are weights, and the combined row
/// is divided.
fn looked_up(combiner: Combiner, x: &[&[usize]], combined: &[usize]) -> u64 {
    let width = count(&combined[1..]);
    let divided = if combiner == Combiner::Sum { 0 } else { product(combined) };
    product(&[count(x[1]), width, if x.len() > 3 { 2 } else { 1 }]) + divided
}

/// Applies an op to the gradient and the same lookups.
fn like_lookups(op: impl Into<Op>, back: &Backprop<'_>) -> Tensor {
    let dy = back.dy(0);
    let inputs: Vec<&Tensor> = std::iter::once(&dy).chain(&back.x[1..]).collect();
    back.node(op, &inputs)
}

/// The gradient of the weights. With y = sum(w x) / d, the sum gives dy.x / d. If d is sum(w), its
/// part is -dy.y / d; if d is sqrt(sum(w^2)), its part is -dy.y w / d^2.
fn weights_gradient(combiner: Combiner, back: &Backprop<'_>) -> Tensor {
    use Binary::*;
    let (rows, index, splits, weights) = (&back.x[0], &back.x[1], &back.x[2], &back.x[3]);
    let row_ids = back.node(HostOp::new(RowIds), &[splits, index]);
    let gather = |from: &Tensor, at: &Tensor| back.node(Gather::ROWS, &[from, at]);
    let dy = gather(&back.dy(0), &row_ids);
    let inner = AxisSet(AxisSet::all(dy.rank()).0 & !1);
    let dot = |other: &Tensor| back.binary(Mul, &dy, other).reduce(Reduction::Sum, inner, false, back.site);
    let direct = dot(&gather(rows, index));
    let n_segments = back.y[0].shape().dims()[0];
    let total = |of: &Tensor| gather(&of.segments(Reduction::Sum, &row_ids, n_segments, back.site), &row_ids);
    let through = || dot(&gather(&back.y[0], &row_ids));
    match combiner {
        Combiner::Sum => direct,
        Combiner::Mean => back.binary(DivNoNan, &back.binary(Sub, &direct, &through()), &total(weights)),
        Combiner::SqrtN => {
            let divisor = back.unary(Unary::Sqrt, &total(&back.unary(Unary::Square, weights)));
            let part = back.binary(DivNoNan, &back.binary(Mul, &through(), weights), &divisor);
            back.binary(DivNoNan, &back.binary(Sub, &direct, &part), &divisor)
        }
    }
}

/// Writes the ragged row of each lookup.
fn segments(owner: &str, node: &Node, writer: &mut dyn Spelling) -> Result<String> {
    let (index, splits) = (writer.name_of(node.inputs[1]), writer.name_of(node.inputs[2]));
    let dtype = writer.dtype(node, 1);
    writer.row_ids(owner, splits, index, dtype)
}

/// Writes the divisor of each segment's sum.
fn divisor(
    owner: &str,
    combiner: Combiner,
    weights: String,
    segments: &str,
    n_segments: &str,
    dtype: DType,
    writer: &mut dyn Spelling,
) -> Option<String> {
    match combiner {
        Combiner::Sum => None,
        Combiner::Mean => Some(writer.segment_sum(owner, "weight_sum", weights, segments, n_segments, dtype)),
        Combiner::SqrtN => {
            let square = writer.part(owner, "weight_square", "Square").input(weights);
            let square = writer.add(typed(square, "T", dtype));
            let sum = writer.segment_sum(owner, "weight_sum", square, segments, n_segments, dtype);
            let root = writer.part(owner, "weight_root", "Sqrt").input(sum);
            Some(writer.add(typed(root, "T", dtype)))
        }
    }
}

/// Reshapes a list so that it multiplies the rows of a tensor of this rank.
fn column(
    owner: &str,
    role: &str,
    list: String,
    dtype: DType,
    rank: usize,
    writer: &mut dyn Spelling,
) -> Result<String> {
    let mut shape = vec![1i32; rank];
    shape[0] = -1;
    let shape = writer.constant(owner, &format!("{role}_shape"), &Array::from_vec([rank], shape)?)?;
    let column = writer.part(owner, &format!("{role}_column"), "Reshape").input(list).input(shape);
    Ok(writer.add(typed(typed(column, "T", dtype), "Tshape", DType::I32)))
}

/// Reads (data, indices into it, non-decreasing segment ids[, number of segments]).
fn read(reading: &mut dyn Reading, combiner: Combiner) -> Result<Vec<Tensor>> {
    let (data, places, ids) = (reading.tensor(0)?, reading.tensor(1)?, reading.tensor(2)?);
    let ids = with_rows(&ids, n_rows(&places)?);
    let n = if reading.n_inputs() > 3 { Some(reading.size(3)?) } else { None };
    let splits = segment_splits(reading, &ids, n)?;
    reading.add(SparseSegment { combiner }, &[&data, &places, &splits])
}

/// Reads (gradient, indices into the data, non-decreasing segment ids, rows of the data).
fn read_gradient(reading: &mut dyn Reading, combiner: Combiner) -> Result<Vec<Tensor>> {
    let (dy, places, ids, rows) = (reading.tensor(0)?, reading.tensor(1)?, reading.tensor(2)?, reading.size(3)?);
    let ids = with_rows(&ids, n_rows(&places)?);
    let splits = segment_splits(reading, &ids, Some(n_rows(&dy)?))?;
    reading.add(SparseSegmentGrad { combiner, n_rows: rows }, &[&dy, &places, &splits])
}

/// The row splits of non-decreasing segment ids. Without `n`, the last id determines the number of
/// segments.
pub fn segment_splits(reading: &dyn Reading, ids: &Tensor, n: Option<Dim>) -> Result<Tensor> {
    let Some(n) = n else { return Ok(reading.add(HostOp::new(SegmentSplits), &[ids])?.remove(0)) };
    let count = ids.dim_size(n, DType::I64, std::panic::Location::caller());
    let splits = reading.add(HostOp::new(SegmentSplits), &[ids, &count])?.remove(0);
    let n_splits = reading.graph().symbols_mut(|s| s.add(n, Dim::Known(1)))?;
    Ok(with_rows(&splits, n_splits))
}
