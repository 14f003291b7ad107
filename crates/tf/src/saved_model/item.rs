//! What the outputs of TensorFlow's nodes become: tensors of ours, or things that only other nodes
//! use.

use std::rc::Rc;

use estimand_graph::{Tensor, VarId};
use estimand_tensor::Array;

use super::numbers::Numbers;
use super::rules::table::Table;

/// One output of a node that was read.
#[derive(Clone)]
pub(super) enum Item {
    /// A value, in at least one of its forms.
    Value(Box<Known>),
    /// A variable, to be read.
    Variable(VarId),
    /// A lookup table.
    Table(Rc<Table>),
    /// The axes over which to sum to get to a shape.
    AxesTo(Box<Numbers>),
}

/// What is known of a value. A form that is missing is made when it is asked for.
#[derive(Clone, Default)]
pub(super) struct Known {
    pub tensor: Option<Tensor>,
    pub array: Option<Array>,
    pub numbers: Option<Numbers>,
}

impl From<Tensor> for Item {
    fn from(tensor: Tensor) -> Item {
        Item::value(Known { tensor: Some(tensor), ..Known::default() })
    }
}

impl From<Array> for Item {
    fn from(array: Array) -> Item {
        Item::value(Known { numbers: Numbers::of_array(&array), array: Some(array), ..Known::default() })
    }
}

impl From<Numbers> for Item {
    fn from(numbers: Numbers) -> Item {
        Item::value(Known { numbers: Some(numbers), ..Known::default() })
    }
}

impl Item {
    pub(super) fn value(known: Known) -> Item {
        Item::Value(Box::new(known))
    }

    /// A tensor whose elements are known too.
    pub(super) fn both(tensor: Tensor, numbers: Numbers) -> Item {
        Item::value(Known { tensor: Some(tensor), array: None, numbers: Some(numbers) })
    }

    /// What to call it in a message.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Item::Value(_) => "a tensor",
            Item::Variable(_) => "a variable",
            Item::Table(_) => "a table",
            Item::AxesTo(_) => "a list of axes that only the run knows",
        }
    }
}
