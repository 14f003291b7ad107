//! Lists of tensors, which the steps of loops read and write.

use estimand_graph::op::reading::Reading;
use estimand_tensor::{DType, Error, Shape};

use super::super::node_output::{List, NodeOutput};
use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::{Number, Numbers};

/// (shape of an element, number of elements): a list that a loop fills.
pub(super) fn reserve(call: &mut NodeReader<'_, '_>) -> Outputs {
    let dtype = call.dtype("element_dtype")?;
    let n = match &call.elements(1)?.elements[..] {
        [n] => n.clone(),
        other => return Err(Error::config(format!("the length has {} numbers; expected one", other.len()))),
    };
    Ok(vec![NodeOutput::List(List::Reserved { n, dtype })])
}

/// The rows of a tensor as a list.
pub(super) fn from_tensor(call: &mut NodeReader<'_, '_>) -> Outputs {
    let rows = call.tensor(0)?;
    if rows.rank() == 0 {
        return Err(Error::shape("a list of the rows of a scalar; expected at least one axis"));
    }
    Ok(vec![NodeOutput::List(List::Rows(rows))])
}

fn list(call: &NodeReader<'_, '_>) -> Result<List, Error> {
    match call.item(0)? {
        NodeOutput::List(list) => Ok(list),
        other => Err(Error::config(format!("input 0 is {}; expected a list of tensors", other.kind()))),
    }
}

/// The elements of a list as one tensor, in their order.
pub(super) fn stack(call: &mut NodeReader<'_, '_>) -> Outputs {
    match list(call)? {
        List::Columns(sequence) => one(sequence.transpose(&[1, 0, 2])),
        List::Rows(rows) => one(rows),
        // Elements that were never written are zeros.
        List::Reserved { n, dtype } => {
            let mut shape = vec![call.reader.size(&n)?];
            shape.extend(call.sizes(1, false)?);
            let zero = call.graph().constant(estimand_tensor::Array::zeros(dtype, [])?);
            one(zero.broadcast_to(shape.into_iter().collect::<Shape>()))
        }
        List::Argument { .. } => Err(Error::unsupported("a step of a loop stacks a list that other steps write")),
    }
}

/// (list, index, shape of an element).
pub(super) fn get_item(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (list, index) = (list(call)?, call.tensor(1)?);
    match list {
        List::Rows(rows) => one(rows.gather(&index)),
        List::Argument { at, writes } if writes.is_empty() => one(call.reader.element_of(at, &index)?),
        List::Argument { .. } => Err(Error::unsupported("a step of a loop reads a list that it has written")),
        List::Reserved { .. } => Err(Error::unsupported("an element is read from a list without elements")),
        List::Columns(_) => Err(Error::unsupported("an element is read from the results of a recurrent network")),
    }
}

/// (list, index, item).
pub(super) fn set_item(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (list, index, item) = (list(call)?, call.tensor(1)?, call.tensor(2)?);
    match list {
        List::Argument { at, mut writes } => {
            writes.push((index, item));
            Ok(vec![NodeOutput::List(List::Argument { at, writes })])
        }
        _ => Err(Error::unsupported("an element of a list is written outside of a loop")),
    }
}

pub(super) fn length(call: &mut NodeReader<'_, '_>) -> Outputs {
    let n = match list(call)? {
        List::Rows(rows) => Number::of(rows.shape().dims()[0]),
        List::Reserved { n, .. } => n,
        List::Columns(_) | List::Argument { .. } => {
            return Err(Error::unsupported("the length of a list that a loop writes"));
        }
    };
    one(Numbers::scalar(DType::I32, n))
}
