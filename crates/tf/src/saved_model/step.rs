//! The arguments of a step of a loop: placeholders of the graph that the step is read into.
//!
//! The step has sizes of its own. Each stands for a size of the graph around the loop.

use std::collections::BTreeMap;

use estimand_graph::{Graph, SymbolDef, Tensor};
use estimand_tensor::{Dim, Error, Result, Shape, TensorSpec};

use super::reader::Reader;

/// The placeholders of a step, and the sizes that they stand for.
#[derive(Default)]
pub(super) struct StepArguments {
    /// Pairs of a size around the loop and one in the step.
    sizes: Vec<(Dim, Dim)>,
    /// The placeholder of each argument that is a tensor.
    pub values: BTreeMap<usize, Tensor>,
    /// What an element of each list is around the loop. Lists without elements are left out.
    pub lists: BTreeMap<usize, TensorSpec>,
    /// The elements that the step reads.
    pub elements: Vec<Element>,
}

/// An element of a list that a step reads.
pub(super) struct Element {
    /// The argument that is the list, and the argument that is the index.
    pub list: usize,
    pub index: usize,
    /// The placeholder of the element.
    pub tensor: Tensor,
}

impl StepArguments {
    /// Adds a placeholder for a tensor from around the loop.
    pub(super) fn placeholder(&mut self, graph: &Graph, name: &str, spec: &TensorSpec) -> Result<Tensor> {
        let inside = |&dim: &Dim| match dim {
            Dim::Known(_) => dim,
            Dim::Sym(_) => self.sizes.iter().find(|(outside, _)| *outside == dim).map_or(Graph::ANY, |(_, dim)| *dim),
        };
        let shape: Shape = spec.shape.dims().iter().map(inside).collect();
        let tensor = graph.placeholder(name, spec.dtype, shape);
        graph.check()?;
        for (&outside, &inside) in spec.shape.dims().iter().zip(tensor.shape().dims()) {
            if matches!(outside, Dim::Sym(_)) && !self.sizes.iter().any(|(known, _)| *known == outside) {
                self.sizes.push((outside, inside));
            }
        }
        Ok(tensor)
    }

    /// The shape around the loop that a shape in the step stands for.
    pub(super) fn outside(&self, step: &Graph, around: &Graph, shape: &Shape) -> Result<Shape> {
        let defs = step.body().symbols().defs().to_vec();
        // A symbol uses only earlier ones.
        let mut known: Vec<Option<Dim>> = Vec::with_capacity(defs.len());
        for (i, def) in defs.iter().enumerate() {
            let symbol = Dim::Sym(estimand_tensor::Symbol(i as u32));
            let of = |dim: Dim| match dim {
                Dim::Known(_) => Some(dim),
                Dim::Sym(symbol) => known.get(symbol.0 as usize).copied().flatten(),
            };
            let argument = self.sizes.iter().find(|(_, inside)| *inside == symbol).map(|(outside, _)| *outside);
            let both = def.parts().and_then(|(a, b)| Some((of(a)?, of(b)?)));
            let outside = match (argument, both) {
                (Some(dim), _) => Some(dim),
                (None, None) => None,
                (None, Some((a, b))) => around.symbols_mut(|s| match def {
                    SymbolDef::Add(..) => s.add(a, b).ok(),
                    SymbolDef::Sub(..) => Some(s.sub(a, b)),
                    SymbolDef::Mul(..) => s.mul(a, b).ok(),
                    SymbolDef::Div(..) => Some(s.div(a, b)),
                    SymbolDef::CeilDiv(..) => b.known().filter(|&b| b > 0).map(|b| s.ceil_div(a, b)),
                    SymbolDef::Broadcast(..) => s.broadcast(a, b),
                    SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_) => None,
                }),
            };
            known.push(outside);
        }
        let outside = |&dim: &Dim| match dim {
            Dim::Known(_) => Ok(dim),
            Dim::Sym(symbol) => known
                .get(symbol.0 as usize)
                .copied()
                .flatten()
                .ok_or_else(|| Error::unsupported("the size of a list's element is known only inside of the loop")),
        };
        shape.dims().iter().map(outside).collect::<Result<Vec<_>>>().map(|dims| dims.into_iter().collect())
    }
}

impl Reader<'_> {
    /// The element of a list that a step reads, by an index that is an argument of the loop.
    pub(super) fn element_of(&mut self, list: usize, index: &Tensor) -> Result<Tensor> {
        let graph = self.graph.clone();
        let step = self.step.as_mut().ok_or_else(|| Error::internal("an argument outside of a loop"))?;
        let index = step.values.iter().find(|(_, tensor)| tensor.value() == index.value()).map(|(&at, _)| at);
        let index = index.ok_or_else(|| {
            Error::unsupported("a step of a loop computes the index of an element that it reads")
                .help("only an argument of the loop, such as the number of the step, can be the index")
        })?;
        let known = step.elements.iter().find(|element| element.list == list && element.index == index);
        if let Some(known) = known {
            return Ok(known.tensor.clone());
        }
        let spec = step.lists.get(&list).cloned().ok_or_else(|| {
            Error::unsupported("a step of a loop reads a list to which only the loop itself adds elements")
        })?;
        let name = format!("element_{}", step.elements.len());
        let tensor = step.placeholder(&graph, &name, &spec)?;
        step.elements.push(Element { list, index, tensor: tensor.clone() });
        Ok(tensor)
    }
}
