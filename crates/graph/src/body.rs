//! The contents of a graph as plain data: what building leaves, and what passes and executors read.

use std::panic::Location;

use estimand_tensor::TensorSpec;
use smallvec::SmallVec;

use crate::meaning::Meanings;
use crate::op::{Constant, Op};
use crate::optimizer::OptimizerConfig;
use crate::symbols::Symbols;
use crate::value::{NodeId, Value};
use crate::variables::Variables;

/// One operation with its inputs.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The values it reads.
    pub inputs: SmallVec<[Value; 4]>,
    /// Dtype and shape of each output.
    pub outputs: SmallVec<[TensorSpec; 1]>,
    /// The unique name with its scopes: `dnn/hiddenlayer_0/MatMul`.
    pub name: String,
    /// The source line that made the node.
    pub site: &'static Location<'static>,
}

/// The contents of a graph as plain data.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub(crate) nodes: Vec<Node>,
    pub(crate) symbols: Symbols,
    pub(crate) variables: Variables,
    pub(crate) optimizers: Vec<OptimizerConfig>,
    pub(crate) meanings: Meanings,
}

impl Body {
    /// The nodes; each uses only earlier ones.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes, to rewrite them in place. A node may use only nodes before it.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// Adds a node unchanged: nothing is inferred or checked.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Dtype and shape of a value.
    pub fn spec(&self, value: Value) -> &TensorSpec {
        &self.node(value.node).outputs[value.output as usize]
    }

    /// Returns the constant of a value, if the value is a constant with a single element and no
    /// axis.
    pub fn scalar_constant(&self, value: Value) -> Option<&Constant> {
        match &self.node(value.node).op {
            Op::Constant(constant) if constant.0.len() == 1 && constant.0.rank() == 0 => Some(constant),
            _ => None,
        }
    }

    /// The sizes that are known only at run time.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The variables' names, shapes and initial values.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// The optimizers that `Apply` nodes refer to.
    pub fn optimizers(&self) -> &[OptimizerConfig] {
        &self.optimizers
    }
}
