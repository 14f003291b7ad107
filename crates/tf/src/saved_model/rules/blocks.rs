//! Blocks of images as rows of the batch, and back. TensorFlow writes a dilated convolution as a
//! plain one between the two: neighbours in a row are then as far apart as the filter's taps.

use estimand_graph::op::Pad;
use estimand_graph::op::reading::Reading;
use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, Dim, Error, Result, Shape};

use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::Number;
use super::slicing::part;

/// The blocks of a node: their sizes, from the second axis on.
fn blocks(call: &mut NodeReader<'_, '_>, x: &Tensor) -> Result<Vec<usize>> {
    let sizes = call.integers(1)?;
    let known: Option<Vec<usize>> = sizes.iter().map(|&n| usize::try_from(n).ok().filter(|&n| n > 0)).collect();
    let blocks = known.ok_or_else(|| Error::config(format!("the block is {sizes:?}; expected sizes of at least 1")))?;
    if blocks.is_empty() || blocks.len() >= x.rank() {
        return Err(Error::shape(format!(
            "the block is {sizes:?} for {}; expected one size for each axis after the batch that is divided",
            x.spec()
        )));
    }
    Ok(blocks)
}

/// The borders of a node, (before, after) for each size of the block.
fn borders(call: &mut NodeReader<'_, '_>, n: usize) -> Result<Vec<(Number, Number)>> {
    let borders = call.elements(2)?;
    if borders.dims != [n, 2] {
        return Err(Error::shape(format!("the borders have the sizes {:?}; expected [{n}, 2]", borders.dims)));
    }
    Ok(borders.elements.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// `dim / n`, which must be exact. The run checks sizes that are not known here.
fn quotient(graph: &Graph, dim: Dim, n: usize, what: &str) -> Result<Dim> {
    if let Dim::Known(size) = dim
        && size % n != 0
    {
        return Err(Error::shape(format!("{what} has size {size}; expected a multiple of {n}, the size of the block")));
    }
    graph.symbols_mut(|s| Ok(s.exact_quotient(&[dim], &[Dim::Known(n)])?.unwrap_or_else(|| s.div(dim, Dim::Known(n)))))
}

pub(super) fn space_to_batch(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    let blocks = blocks(call, &x)?;
    let (mut before, mut after) = (vec![Dim::Known(0); x.rank()], vec![Dim::Known(0); x.rank()]);
    for (axis, (first, last)) in borders(call, blocks.len())?.iter().enumerate() {
        (before[axis + 1], after[axis + 1]) = (call.reader.size(first)?, call.reader.size(last)?);
    }
    let padding = Pad { before: before.into_iter().collect(), after: after.into_iter().collect() };
    let zero = call.graph().constant(Array::zeros(x.dtype(), [])?);
    let x = call.add(padding, &[&x, &zero])?.remove(0);
    let dims = x.shape().dims();
    // [batch, n, block, .., rest] -> [block, .., batch, n, .., rest]
    let (mut divided, mut joined) = (Shape::from([dims[0]]), Shape::from([dims[0]]));
    for (i, &block) in blocks.iter().enumerate() {
        let n = quotient(call.graph(), dims[i + 1], block, &format!("axis {} with its borders", i + 1))?;
        divided.0.extend([n, Dim::Known(block)]);
        joined.0[0] = call.graph().symbols_mut(|s| s.mul(joined.0[0], Dim::Known(block)))?;
        joined.0.push(n);
    }
    let rest = &dims[blocks.len() + 1..];
    divided.0.extend(rest.iter().copied());
    joined.0.extend(rest.iter().copied());
    let n = blocks.len();
    let order: Vec<usize> = (0..n)
        .map(|i| 2 * i + 2)
        .chain([0])
        .chain((0..n).map(|i| 2 * i + 1))
        .chain(2 * n + 1..divided.rank())
        .collect();
    one(x.reshape_as(divided).transpose(&order).reshape_as(joined))
}

pub(super) fn batch_to_space(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    let (blocks, dims) = (blocks(call, &x)?, x.shape().dims());
    let all = blocks.iter().try_fold(1usize, |all, &block| all.checked_mul(block));
    let all = all.ok_or_else(|| Error::shape(format!("the block {blocks:?} has too many elements")))?;
    let rows = quotient(call.graph(), dims[0], all, "the batch")?;
    // [block, .., batch, n, .., rest] -> [batch, n, block, .., rest]
    let mut divided: Shape = blocks.iter().map(|&block| Dim::Known(block)).chain([rows]).collect();
    divided.0.extend(dims[1..].iter().copied());
    let (mut joined, mut cropped) = (Shape::from([rows]), Vec::with_capacity(blocks.len()));
    for (i, (first, last)) in borders(call, blocks.len())?.into_iter().enumerate() {
        let (before, after) = (call.reader.size(&first)?, call.reader.size(&last)?);
        let (whole, cut) = call.graph().symbols_mut(|s| -> Result<(Dim, Dim)> {
            Ok((s.mul(dims[i + 1], Dim::Known(blocks[i]))?, s.add(before, after)?))
        })?;
        if let (Dim::Known(whole), Dim::Known(cut)) = (whole, cut)
            && cut > whole
        {
            let axis = i + 1;
            return Err(Error::shape(format!("{cut} elements are cropped from axis {axis}, which has size {whole}")));
        }
        let size = call.graph().symbols_mut(|s| s.sub(whole, cut));
        // A difference of sizes stops at 0. So the sum of both parts is the whole, or the reshape
        // fails when it runs.
        joined.0.push(call.graph().symbols_mut(|s| s.add(size, cut))?);
        cropped.push((first, size));
    }
    let n = blocks.len();
    joined.0.extend(dims[n + 1..].iter().copied());
    let order: Vec<usize> =
        [n].into_iter().chain((0..n).flat_map(|i| [n + 1 + i, i])).chain(2 * n + 1..divided.rank()).collect();
    let mut result = x.reshape_as(divided).transpose(&order).reshape_as(joined);
    for (i, (first, size)) in cropped.iter().enumerate() {
        result = part(call, &result, i + 1, first, *size)?;
    }
    one(result)
}
