//! The name of a value in a graph: a node, and which of its outputs.

/// The index of a node; inputs have smaller indices than the nodes that use them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

/// One output of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value {
    /// The node that computes it.
    pub node: NodeId,
    /// The index among the node's outputs.
    pub output: u16,
}

impl Value {
    /// The value of an op whose input is wrong. Its error is already recorded.
    pub(crate) const POISON: Value = Value { node: NodeId(u32::MAX), output: 0 };
}
