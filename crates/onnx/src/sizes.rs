//! Sizes that are known only at run time, computed in the graph. Each is an i64 list of one value,
//! read from the shape of a fed value or made by the symbol's formula, and written once.

use std::collections::BTreeSet;

use estimand_graph::{SymbolDef, Value};
use estimand_tensor::{Array, DType, Dim, Error, Result, Symbol};

use crate::message::AttributeProto;
use crate::tensor::data_type;
use crate::writer::Writer;

/// The scope of the nodes that compute sizes.
const SCOPE: &str = "sizes";

impl Writer<'_, '_, '_> {
    /// A shape as an i64 list.
    pub(crate) fn shape(&mut self, dims: &[Dim], owner: &str) -> Result<String> {
        let known: Option<Vec<i64>> = dims.iter().map(|dim| dim.known().map(|n| n as i64)).collect();
        if let Some(known) = known {
            return self.shared.constant(owner, &Array::from(known));
        }
        let sizes = dims.iter().map(|&dim| self.size(dim, owner)).collect::<Result<Vec<_>>>()?;
        let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
        Ok(self.one(owner, "Concat", &sizes, vec![AttributeProto::int("axis", 0)]))
    }

    /// One size.
    pub(crate) fn size(&mut self, dim: Dim, owner: &str) -> Result<String> {
        let symbol = match dim {
            Dim::Known(n) => return self.shared.constant(owner, &Array::from([n as i64])),
            Dim::Sym(symbol) => symbol,
        };
        // A formula may be as deep as a graph is long, so its parts are written in a loop. Each
        // symbol uses only earlier ones.
        let (mut missing, mut open) = (BTreeSet::new(), vec![symbol]);
        while let Some(symbol) = open.pop() {
            if !self.sizes.contains_key(&symbol) && missing.insert(symbol) {
                let parts = self.body.symbols().def(symbol).parts();
                let parts = parts.into_iter().flat_map(|(a, b)| [a, b]);
                open.extend(parts.filter_map(|dim| if let Dim::Sym(part) = dim { Some(part) } else { None }));
            }
        }
        for symbol in missing {
            let name = self.symbol(symbol)?;
            self.sizes.insert(symbol, name);
        }
        self.sizes.get(&symbol).cloned().ok_or_else(|| Error::internal("a size was not written"))
    }

    /// A size whose symbol is written, or that is known.
    fn part(&mut self, dim: Dim) -> Result<String> {
        match dim {
            Dim::Known(n) => self.shared.constant(SCOPE, &Array::from([n as i64])),
            Dim::Sym(symbol) => {
                self.sizes.get(&symbol).cloned().ok_or_else(|| Error::internal("the part of a size was not written"))
            }
        }
    }

    fn symbol(&mut self, symbol: Symbol) -> Result<String> {
        let owner = format!("{SCOPE}/{}", Dim::Sym(symbol));
        let formula = |writer: &mut Self, op: &str, a: Dim, b: Dim| -> Result<String> {
            let (a, b) = (writer.part(a)?, writer.part(b)?);
            Ok(writer.one(&owner, op, &[&a, &b], Vec::new()))
        };
        Ok(match self.body.symbols().def(symbol) {
            SymbolDef::Batch => {
                let (value, axis, beyond) = self.batch_axis()?;
                let whole = self.axis_size(&owner, value, axis)?;
                if beyond == 0 {
                    return Ok(whole);
                }
                let beyond = self.shared.constant(&owner, &Array::from([beyond as i64]))?;
                self.one(&owner, "Sub", &[&whole, &beyond], Vec::new())
            }
            SymbolDef::Axis(value, axis) => self.axis_size(&owner, value, axis)?,
            SymbolDef::Number(value) => {
                let number = self.name(value)?;
                let wide = vec![AttributeProto::int("to", data_type(DType::I64).into())];
                let number = self.one(&owner, "Cast", &[&number], wide);
                let one = self.shared.constant(&owner, &Array::from([1i64]))?;
                self.one(&owner, "Reshape", &[&number, &one], Vec::new())
            }
            SymbolDef::Add(a, b) => formula(self, "Add", a, b)?,
            SymbolDef::Mul(a, b) => formula(self, "Mul", a, b)?,
            SymbolDef::Sub(a, b) => {
                let difference = formula(self, "Sub", a, b)?;
                let zero = self.shared.constant(&owner, &Array::from([0i64]))?;
                self.one(&owner, "Max", &[&difference, &zero], Vec::new())
            }
            SymbolDef::Div(a, b) => {
                // 0 / 0 is 0 here.
                let (a, b) = (self.part(a)?, self.part(b)?);
                let one = self.shared.constant(&owner, &Array::from([1i64]))?;
                let b = self.one(&owner, "Max", &[&b, &one], Vec::new());
                self.one(&owner, "Div", &[&a, &b], Vec::new())
            }
            SymbolDef::CeilDiv(a, b) => {
                let step = b.known().unwrap_or(1).max(1) as i64;
                let a = self.part(a)?;
                let beyond = self.shared.constant(&owner, &Array::from([step - 1]))?;
                let raised = self.one(&owner, "Add", &[&a, &beyond], Vec::new());
                let step = self.shared.constant(&owner, &Array::from([step]))?;
                self.one(&owner, "Div", &[&raised, &step], Vec::new())
            }
            SymbolDef::Broadcast(a, b) => {
                // b, unless b is the 1 that is broadcast. Not the maximum, since 0 wins over 1.
                let (a, b) = (self.part(a)?, self.part(b)?);
                let one = self.shared.constant(&owner, &Array::from([1i64]))?;
                let repeated = self.one(&owner, "Equal", &[&b, &one], Vec::new());
                self.one(&owner, "Where", &[&repeated, &a, &b], Vec::new())
            }
        })
    }

    fn one(&mut self, owner: &str, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        self.add(owner, ("", op), inputs, attributes, 1).remove(0)
    }

    /// The size of an axis of a value.
    fn axis_size(&mut self, owner: &str, value: Value, axis: usize) -> Result<String> {
        let source = self.name(value)?;
        let axis = axis as i64;
        let ends = vec![AttributeProto::int("start", axis), AttributeProto::int("end", axis + 1)];
        Ok(self.one(owner, "Shape", &[&source], ends))
    }

    /// A fed axis with the batch size, or the batch size plus a number.
    fn batch_axis(&self) -> Result<(Value, usize, usize)> {
        let axis = |value: &Value| {
            let dims = self.body.spec(*value).shape.dims();
            let mut dims = dims.iter().enumerate();
            let (axis, beyond) = dims.find_map(|(i, &d)| Some((i, self.body.symbols().beyond_batch(d)?)))?;
            Some((*value, axis, beyond))
        };
        let mut fed: Vec<Value> = self.fed();
        fed.sort_unstable();
        fed.iter().find_map(axis).ok_or_else(|| {
            Error::config("the size of the batch is used, but no input has a batch axis")
                .help("give one of the inputs an axis Dim::BATCH")
        })
    }
}
