//! Fused kernels, which compute several nodes at once.

use std::collections::HashSet;

use estimand_graph::cost::{Operands, count, product};
use estimand_graph::op::{Op, Window};
use estimand_graph::{Body, Cost, FusedKernel, Kernel, NodeId, Value};
use estimand_tensor::Reduction;
use estimand_tensor::cpu::matmul::Epilogue;
use smallvec::{SmallVec, smallvec};

use super::operands::View;

/// A kernel of the passes in `pass/`.
#[derive(Clone, Debug)]
pub(crate) enum Fused {
    /// Element-wise nodes in one pass over memory, in order. The loop has the shape of the last
    /// node.
    Elementwise(Vec<Member>),
    /// Element-wise nodes, some of whose results are added up over all axes but the last while they
    /// are in the cache. The step's outputs are the results that are stored, then the sums.
    Summed {
        /// The nodes, as in `Elementwise`.
        members: Vec<Member>,
        /// The results of the members that are stored or added up, in the order of the program.
        made: Vec<Value>,
        sums: Vec<Sum>,
    },
    /// A product that changes its result while it is in cache.
    Product {
        /// The MatMul or Conv2D.
        node: NodeId,
        after: After,
        /// The MaxPool that is applied to a convolution's result image by image, as a
        /// [`Fused::Which`].
        pool: Option<NodeId>,
    },
    /// A max pooling that also returns the index of the largest element as its second output, or
    /// the gradient that reads this index instead of the pooled values.
    Which(NodeId),
    /// The gradients of a convolution's filter and bias. The gradient of the max pooling after the
    /// convolution is never written to memory. Reads the images, then the inputs of the gradient of
    /// [`Fused::Which`].
    PooledGradient {
        /// The Conv2DBackpropFilter.
        node: NodeId,
        /// The MaxPoolGrad.
        pool: NodeId,
    },
}

/// The operations of a product on its result, in their order, and what it leaves out. The inputs of
/// those that have any follow the operands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct After {
    /// Whether a bias is added.
    pub bias: bool,
    /// Whether a row of factors is multiplied, and another row added.
    pub scale: bool,
    /// Whether negative results become 0.
    pub relu: bool,
    /// What is left out after the ends of sequences. Their mask is the last input.
    pub ended: Ended,
}

/// The part of a product that sequences leave out after their ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Ended {
    /// Nothing.
    #[default]
    Computed,
    /// Rows of the result, which become 0.
    Rows,
    /// Terms, which are 0.
    Terms,
}

impl After {
    /// The operations and the inputs of a step, if it is a product without a pooling.
    pub fn of(kernel: &Kernel) -> Option<After> {
        match fused(kernel) {
            None => Some(After::default()),
            Some(Fused::Product { after, pool: None, .. }) => Some(*after),
            Some(_) => None,
        }
    }

    /// The operations, for the inputs after the operands.
    pub fn epilogue<'a>(self, inputs: &[View<'a>]) -> Epilogue<'a> {
        let (bias, scale) = inputs.split_at(usize::from(self.bias));
        Epilogue {
            bias: bias.first().map(|bias| bias.as_slice()),
            scale: self.scale.then(|| [scale[0].as_slice(), scale[1].as_slice()]),
            relu: self.relu,
        }
    }

    /// The number of operations on each element.
    fn count(self) -> usize {
        usize::from(self.bias) + 2 * usize::from(self.scale) + usize::from(self.relu)
    }
}

/// A sum or mean over all axes but the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    /// The Reduce or SumTo.
    pub node: NodeId,
    pub kind: Reduction,
    /// The index among the results of the members.
    pub of: usize,
}

/// One node of an element-wise group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The node.
    pub node: NodeId,
    /// Its inputs: results of earlier members, inputs of the step, or scalar constants.
    pub reads: SmallVec<[Value; 4]>,
}

/// Returns the fused kernel of a step; `None` for a single node.
pub(crate) fn fused(kernel: &Kernel) -> Option<&Fused> {
    kernel.fused()
}

impl FusedKernel for Fused {
    fn node(&self) -> NodeId {
        match self {
            Fused::Which(node) | Fused::Product { node, .. } | Fused::PooledGradient { node, .. } => *node,
            Fused::Elementwise(members) | Fused::Summed { members, .. } => members[members.len() - 1].node,
        }
    }

    fn nodes(&self) -> SmallVec<[NodeId; 4]> {
        match self {
            Fused::Elementwise(members) => members.iter().map(|member| member.node).collect(),
            Fused::Summed { members, sums, .. } => {
                members.iter().map(|member| member.node).chain(sums.iter().map(|sum| sum.node)).collect()
            }
            Fused::Which(node) => smallvec![*node],
            Fused::Product { node, pool, .. } => [*node].into_iter().chain(*pool).collect(),
            Fused::PooledGradient { node, pool } => smallvec![*node, *pool],
        }
    }

    fn name(&self, body: &Body) -> String {
        let op = |id: NodeId| body.node(id).op.name();
        match self {
            Fused::Elementwise(_) | Fused::Summed { .. } => {
                self.nodes().into_iter().map(op).collect::<Vec<_>>().join("+")
            }
            Fused::Product { node, after, pool } => {
                let ended = after.ended != Ended::Computed;
                let named = [(after.bias, "+bias"), (after.scale, "+scale"), (after.relu, "+relu"), (ended, "+ended")];
                let after: String = named.into_iter().filter(|(yes, _)| *yes).map(|(_, name)| name).collect();
                let pool = pool.map_or(String::new(), |pool| format!("+{}+which", op(pool)));
                format!("{}{after}{pool}", op(*node))
            }
            Fused::Which(node) => format!("{}+which", op(*node)),
            Fused::PooledGradient { node, pool } => format!("{}+{}+bias", op(*pool), op(*node)),
        }
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        let (x, y) = (operands.x, operands.y);
        let op = |node: NodeId| &operands.body.node(node).op;
        match self {
            Fused::Elementwise(members) => operands.all(product(&[members.len(), count(y[0])])),
            Fused::Summed { members, sums, .. } => {
                let space = x.iter().map(|dims| count(dims)).max().unwrap_or(0);
                operands.all(product(&[members.len() + sums.len(), space]))
            }
            Fused::Product { node, pool, after } => {
                let (flops, out) = match (op(*node), *pool) {
                    (Op::Conv2d(conv), Some(pool)) => {
                        let out = convolved(&conv.window, x[0], x[1]);
                        let pooling = flops(operands, pool, &[&out], y);
                        (flops(operands, *node, x, &[&out]).saturating_add(pooling), count(&out))
                    }
                    (op, _) => (op.rules().cost(operands).flops, count(y[0])),
                };
                operands.all(flops.saturating_add(product(&[after.count(), out])))
            }
            Fused::PooledGradient { node, .. } => operands.all(match op(*node) {
                // The gradient of the bias is one sum over all pixels. The gradient of the pooling
                // visits each of its elements once.
                Op::Conv2dBackpropFilter(gradient) => {
                    let out = convolved(&gradient.window, x[0], y[0]);
                    let filter = flops(operands, *node, &[x[0], &out], y);
                    filter.saturating_add(product(&out)).saturating_add(product(x[2]))
                }
                _ => 0,
            }),
            Fused::Which(node) => match op(*node) {
                // The index of the largest element is known.
                Op::MaxPoolGrad(_) => operands.all(product(x[1])),
                op => op.rules().cost(operands),
            },
        }
    }

    /// Constants inside an element-wise program are shown among its inputs.
    fn shown_inputs(&self, body: &Body, inputs: &[Value]) -> SmallVec<[Value; 4]> {
        let members = match self {
            Fused::Elementwise(members) => members,
            Fused::Summed { members, .. } => members,
            _ => return inputs.into(),
        };
        if let (Fused::Elementwise(_), [single]) = (self, &members[..]) {
            return single.reads.clone();
        }
        let mut shown: SmallVec<[Value; 4]> = inputs.into();
        let mut seen: HashSet<Value> = inputs.iter().copied().collect();
        for value in members.iter().flat_map(|m| &m.reads) {
            if body.scalar_constant(*value).is_some() && seen.insert(*value) {
                shown.push(*value);
            }
        }
        shown
    }
}

/// The operations of a node on inputs and results of these sizes.
fn flops(operands: &Operands<'_>, node: NodeId, x: &[&[usize]], y: &[&[usize]]) -> u64 {
    let bytes = (SmallVec::new(), SmallVec::new());
    let operands = Operands { body: operands.body, x, y, x_bytes: bytes.0, y_bytes: bytes.1 };
    operands.body.node(node).op.rules().cost(&operands).flops
}

/// The sizes of a convolution's result.
fn convolved(window: &Window, x: &[usize], filter: &[usize]) -> [usize; 4] {
    let place = |axis: usize, stride: usize, dilation: usize| {
        window.padding.place(x[axis + 1], filter[axis], stride, dilation).map_or(0, |(out, _, _)| out)
    };
    let (strides, dilations) = (window.strides, window.dilations);
    [x[0], place(0, strides.0, dilations.0), place(1, strides.1, dilations.1), filter[3]]
}
