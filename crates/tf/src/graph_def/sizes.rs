//! Writes shapes as TensorFlow expects them: i32 lists, constant if they are known, otherwise
//! computed in the graph.
//!
//! A size that is known only at run time is read from the shape of its placeholder and computed by
//! the symbol's formula. Each symbol is written once, under `sizes/`.

use std::collections::HashSet;

use estimand_graph::looks::look;
use estimand_graph::op::spelling::{Spelling, index_number, typed};
use estimand_graph::{NodeId, SymbolDef, Value};
use estimand_tensor::{Array, DType, Dim, Error, Result, Symbol};
use estimand_wire::NodeDef;

use super::Writer;

/// The scope of the nodes that compute sizes.
const SCOPE: &str = "sizes";

/// The largest depth of a formula that is written recursively.
const MAX_DEPTH: usize = 64;

impl Writer<'_> {
    /// A single size, an i32 scalar. A known size is a constant of `owner`.
    pub(super) fn dim_size(&mut self, dim: Dim, owner: &str, role: &str) -> Result<String> {
        match dim {
            Dim::Known(n) => self.int(owner, role, n),
            Dim::Sym(symbol) => match self.sizes.get(&symbol) {
                Some(name) => Ok(name.clone()),
                None => {
                    if !std::mem::replace(&mut self.is_inside_size, true) {
                        self.deep_parts(symbol)?;
                        let name = self.written_symbol(symbol);
                        self.is_inside_size = false;
                        return name;
                    }
                    self.written_symbol(symbol)
                }
            },
        }
    }

    fn written_symbol(&mut self, symbol: Symbol) -> Result<String> {
        let name = self.symbol(symbol)?;
        self.sizes.insert(symbol, name.clone());
        Ok(name)
    }

    /// Writes the deep parts of a formula first, a layer at a time. A formula may be as deep as a
    /// graph is long, and writing it recurses into its parts.
    fn deep_parts(&mut self, symbol: Symbol) -> Result<()> {
        let symbols = self.body.symbols();
        if symbols.depth(Dim::Sym(symbol)) <= MAX_DEPTH {
            return Ok(());
        }
        let (mut seen, mut stack) = (HashSet::new(), vec![symbol]);
        while let Some(symbol) = stack.pop() {
            look(1);
            let is_new = !self.sizes.contains_key(&symbol) && seen.insert(symbol);
            if let Some((a, b)) = symbols.def(symbol).parts().filter(|_| is_new) {
                stack.extend(
                    [a, b].into_iter().filter_map(|dim| if let Dim::Sym(part) = dim { Some(part) } else { None }),
                );
            }
        }
        let mut layers: Vec<Symbol> =
            seen.into_iter().filter(|&s| symbols.depth(Dim::Sym(s)).is_multiple_of(MAX_DEPTH)).collect();
        layers.sort_unstable();
        for part in layers.into_iter().filter(|part| *part != symbol) {
            if !self.sizes.contains_key(&part) {
                self.written_symbol(part)?;
            }
        }
        Ok(())
    }

    fn symbol(&mut self, symbol: Symbol) -> Result<String> {
        let owner = self.names.unused(&format!("{SCOPE}/{}", Dim::Sym(symbol)));
        let def = match self.body.symbols().def(symbol) {
            SymbolDef::Batch => {
                let (node, axis, beyond) = self.batch_axis()?;
                let value = Value { node, output: 0 };
                if beyond == 0 {
                    return self.axis_size(&owner, value, axis);
                }
                let whole = self.names.unused(&format!("{owner}/whole"));
                let whole = self.axis_size(&whole, value, axis)?;
                let beyond = self.int(&owner, "beyond", beyond)?;
                arithmetic(&owner, "Sub").input(whole).input(beyond)
            }
            SymbolDef::Axis(value, axis) => return self.axis_size(&owner, value, axis),
            SymbolDef::Number(value) => {
                let number = self.source(value)?;
                return Ok(self.converted(number, self.body.spec(value).dtype, DType::I32));
            }
            SymbolDef::Add(a, b) => self.formula(&owner, "AddV2", a, b)?,
            SymbolDef::Mul(a, b) => self.formula(&owner, "Mul", a, b)?,
            SymbolDef::Sub(a, b) => {
                let difference = self.inner_formula(&owner, "difference", "Sub", a, b)?;
                let zero = self.int(&owner, "zero", 0)?;
                arithmetic(&owner, "Maximum").input(difference).input(zero)
            }
            SymbolDef::Div(a, b @ Dim::Known(_)) => self.formula(&owner, "FloorDiv", a, b)?,
            SymbolDef::Div(a, b) => {
                // 0 / 0 is 0 here. TensorFlow would refuse to divide by 0.
                let (whole, part) = (self.size(a, &owner, "x")?, self.size(b, &owner, "y")?);
                let one = self.int(&owner, "one", 1)?;
                let positive = self.part(&owner, "part", "Maximum").input(part).input(one);
                let positive = self.add(typed(positive, "T", DType::I32));
                arithmetic(&owner, "FloorDiv").input(whole).input(positive)
            }
            SymbolDef::CeilDiv(a, b) => {
                let step = b.known().unwrap_or(1).max(1);
                let raised = self.inner_formula(&owner, "raised", "AddV2", a, Dim::Known(step - 1))?;
                let step = self.int(&owner, "step", step)?;
                arithmetic(&owner, "FloorDiv").input(raised).input(step)
            }
            SymbolDef::Broadcast(a, b) => {
                // b, unless b is the 1 that is broadcast. Not the maximum, since 0 wins over 1.
                let (a, b) = (self.size(a, &owner, "x")?, self.size(b, &owner, "y")?);
                let one = self.int(&owner, "one", 1)?;
                let repeated = self.part(&owner, "repeated", "Equal").input(b.clone()).input(one);
                let repeated = self.add(typed(repeated, "T", DType::I32));
                arithmetic(&owner, "SelectV2").input(repeated).input(a).input(b)
            }
        };
        Ok(self.add(def))
    }

    fn formula(&mut self, owner: &str, op: &str, a: Dim, b: Dim) -> Result<NodeDef> {
        Ok(arithmetic(owner, op).input(self.size(a, owner, "x")?).input(self.size(b, owner, "y")?))
    }

    fn inner_formula(&mut self, owner: &str, role: &str, op: &str, a: Dim, b: Dim) -> Result<String> {
        let name = self.names.unused(&format!("{owner}/{role}"));
        let def = self.formula(&name, op, a, b)?;
        Ok(self.add(def))
    }

    /// The name of a value that determines sizes. Writes a placeholder that has not been written
    /// yet.
    fn source(&mut self, value: Value) -> Result<String> {
        let id = value.node;
        if self.body.node(id).op.is_placeholder() {
            self.node(id)?;
        }
        Ok(self.names.tensor(value))
    }

    /// The size of an axis of a value, as the node `name`.
    fn axis_size(&mut self, name: &str, value: Value, axis: usize) -> Result<String> {
        let source = self.source(value)?;
        let dtype = self.body.spec(value).dtype;
        let shape = self.part(name, "shape", "Shape").input(source);
        let shape = self.add(typed(typed(shape, "T", dtype), "out_type", DType::I32));
        let mut bounds = |role: &str, value: usize| {
            let value = index_number(value as i64)?;
            self.constant(name, role, &Array::from_vec([1], vec![value])?)
        };
        let (begin, end, strides) = (bounds("begin", axis)?, bounds("end", axis + 1)?, bounds("strides", 1)?);
        let def = NodeDef::new(name, "StridedSlice").input(shape).input(begin).input(end).input(strides);
        let def = typed(typed(def, "T", DType::I32), "Index", DType::I32).attr("shrink_axis_mask", 1i64);
        Ok(self.add(def))
    }

    /// A fed axis with the batch size, or the batch size plus a number. Prefers a placeholder that
    /// is written anyway.
    fn batch_axis(&self) -> Result<(NodeId, usize, usize)> {
        let axis = |id: NodeId| {
            let node = self.body.node(id);
            let mut dims = node.outputs.first()?.shape.dims().iter().enumerate();
            let (axis, beyond) = dims.find_map(|(i, &d)| Some((i, self.body.symbols().beyond_batch(d)?)))?;
            Some((id, axis, beyond)).filter(|_| node.op.is_placeholder())
        };
        let others = (0..self.body.nodes().len()).map(|i| NodeId(i as u32));
        self.placeholders.iter().copied().chain(others).find_map(axis).ok_or_else(|| {
            Error::config("the size of the batch is used, but no placeholder has a batch axis")
                .help("give one of the placeholders an axis Dim::BATCH")
        })
    }
}

fn arithmetic(name: &str, op: &str) -> NodeDef {
    typed(NodeDef::new(name, op), "T", DType::I32)
}
