//! The outputs of TensorFlow nodes after reading: tensors of our graph, or objects that only other
//! nodes use.

use std::rc::Rc;

use estimand_graph::{Tensor, VarId};
use estimand_tensor::{Array, DType};

use super::numbers::{Number, Numbers};
use super::rules::table::Table;

/// One output of a node that was read.
#[derive(Clone)]
pub(super) enum NodeOutput {
    /// A value, in at least one of its forms.
    Value(Box<KnownValue>),
    /// A variable, to be read.
    Variable(VarId),
    /// A lookup table.
    Table(Rc<Table>),
    /// A list of tensors.
    List(List),
    /// A tensor of the checkpoint, by its name. It is read when it is needed.
    Saved(Rc<str>),
    /// The bits of floats, as integers that we do not have.
    Bits(Tensor),
    /// The axes to sum over to get to a shape.
    AxesTo(Box<Numbers>),
}

/// A list of tensors of one shape.
#[derive(Clone)]
pub(super) enum List {
    /// A length and a dtype. No element has been written.
    Reserved { n: Number, dtype: DType },
    /// The elements are the rows of a tensor.
    Rows(Tensor),
    /// The elements are stacked along the second axis, as our recurrent op returns them.
    Columns(Tensor),
    /// An argument of a loop, by its position, in a step that has written some elements: index and
    /// item of each.
    Argument { at: usize, writes: Vec<(Tensor, Tensor)> },
}

/// The known forms of a value. A missing form is created when it is needed.
#[derive(Clone, Default)]
pub(super) struct KnownValue {
    pub tensor: Option<Tensor>,
    pub array: Option<Array>,
    pub numbers: Option<Numbers>,
}

impl From<Tensor> for NodeOutput {
    fn from(tensor: Tensor) -> NodeOutput {
        NodeOutput::value(KnownValue { tensor: Some(tensor), ..KnownValue::default() })
    }
}

impl From<Array> for NodeOutput {
    fn from(array: Array) -> NodeOutput {
        NodeOutput::value(KnownValue {
            numbers: Numbers::of_array(&array),
            array: Some(array),
            ..KnownValue::default()
        })
    }
}

impl From<Numbers> for NodeOutput {
    fn from(numbers: Numbers) -> NodeOutput {
        NodeOutput::value(KnownValue { numbers: Some(numbers), ..KnownValue::default() })
    }
}

impl NodeOutput {
    pub(super) fn value(known: KnownValue) -> NodeOutput {
        NodeOutput::Value(Box::new(known))
    }

    /// A tensor whose elements are known, too.
    pub(super) fn both(tensor: Tensor, numbers: Numbers) -> NodeOutput {
        NodeOutput::value(KnownValue { tensor: Some(tensor), array: None, numbers: Some(numbers) })
    }

    /// Its name in messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            NodeOutput::Value(_) => "a tensor",
            NodeOutput::Variable(_) => "a variable",
            NodeOutput::Table(_) => "a table",
            NodeOutput::List(List::Reserved { .. }) => "an empty list of tensors",
            NodeOutput::List(_) => "a list of tensors",
            NodeOutput::Saved(_) => "a tensor of the checkpoint",
            NodeOutput::Bits(_) => "the bits of floats, of which only the sign can be read",
            NodeOutput::AxesTo(_) => "a list of axes that is known only at run time",
        }
    }
}
