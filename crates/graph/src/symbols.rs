//! Sizes that are known only at run time, and the source of each symbol's value.
//!
//! A symbol is the size of an axis of a fed or host-computed array, an integer that the host
//! computes, or a formula of other sizes. Equal formulas are the same symbol, so that shapes
//! compare by `==`.

use std::collections::HashMap;
use std::fmt;

use estimand_tensor::{Dim, Error, Result, Symbol};

use crate::looks::look;
use crate::sources::Sources;
use crate::value::Value;

/// The largest number of factors that a product is split into, to see whether two products are
/// equal. Sizes of real models have a handful; a graph that squares a size again and again would
/// have billions.
const MAX_FACTORS: usize = 64;

/// The source of a symbol's value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolDef {
    /// The batch size: the size of every fed axis declared as batch.
    Batch,
    /// An axis of a placeholder, or of a result whose size only the host knows.
    Axis(Value, usize),
    /// A single integer that is fed or computed by the host.
    Number(Value),
    /// A sum.
    Add(Dim, Dim),
    /// A difference, not below 0.
    Sub(Dim, Dim),
    /// A product.
    Mul(Dim, Dim),
    /// A quotient, rounded down.
    Div(Dim, Dim),
    /// A quotient, rounded up.
    CeilDiv(Dim, Dim),
    /// The size two axes have when broadcast against each other.
    Broadcast(Dim, Dim),
}

/// All symbols of a graph. Symbol 0 is the batch.
#[derive(Clone, Debug)]
pub struct Symbols {
    defs: Vec<SymbolDef>,
    index: HashMap<SymbolDef, Symbol>,
    /// For each symbol: the number of its factors, and the number of formulas between it and the
    /// fed arrays.
    n_factors: Vec<usize>,
    depths: Vec<usize>,
}

impl Default for Symbols {
    fn default() -> Symbols {
        let mut symbols =
            Symbols { defs: Vec::new(), index: HashMap::new(), n_factors: Vec::new(), depths: Vec::new() };
        symbols.intern(SymbolDef::Batch);
        symbols
    }
}

impl Symbols {
    /// The definitions, ordered so that each uses only earlier ones.
    pub fn defs(&self) -> &[SymbolDef] {
        &self.defs
    }

    /// The definition of one symbol.
    pub fn def(&self, symbol: Symbol) -> SymbolDef {
        self.defs[symbol.0 as usize]
    }

    /// Returns the symbol of a definition, and adds it if it is new.
    pub fn intern(&mut self, def: SymbolDef) -> Symbol {
        if let Some(&known) = self.index.get(&def) {
            return known;
        }
        let symbol = Symbol(self.defs.len() as u32);
        let n_factors = match def {
            SymbolDef::Mul(a, b) => self.n_factors(a).saturating_add(self.n_factors(b)),
            _ => 1,
        };
        let depth = def.parts().map_or(0, |(a, b)| 1 + self.depth(a).max(self.depth(b)));
        self.defs.push(def);
        self.n_factors.push(n_factors);
        self.depths.push(depth);
        self.index.insert(def, symbol);
        symbol
    }

    fn n_factors(&self, dim: Dim) -> usize {
        match dim {
            Dim::Known(_) => 1,
            Dim::Sym(symbol) => self.n_factors[symbol.0 as usize],
        }
    }

    /// Returns the number of formulas between a size and the fed arrays.
    pub fn depth(&self, dim: Dim) -> usize {
        match dim {
            Dim::Known(_) => 0,
            Dim::Sym(symbol) => self.depths[symbol.0 as usize],
        }
    }

    fn formula(&mut self, def: SymbolDef) -> Dim {
        Dim::Sym(self.intern(def))
    }

    /// `a + b`
    pub fn add(&mut self, a: Dim, b: Dim) -> Result<Dim> {
        match (a, b) {
            (Dim::Known(x), Dim::Known(y)) => x.checked_add(y).map(Dim::Known).ok_or_else(|| overflow(a, "+", b)),
            (Dim::Known(0), d) | (d, Dim::Known(0)) => Ok(d),
            _ => {
                let (a, b) = ordered(a, b);
                Ok(self.formula(SymbolDef::Add(a, b)))
            }
        }
    }

    /// `a - b`, not below 0
    pub fn sub(&mut self, a: Dim, b: Dim) -> Dim {
        match (a, b) {
            (Dim::Known(x), Dim::Known(y)) => Dim::Known(x.saturating_sub(y)),
            (d, Dim::Known(0)) => d,
            _ if a == b => Dim::Known(0),
            // (x + b) - b is x
            (Dim::Sym(s), _) => match self.def(s) {
                SymbolDef::Add(x, y) if y == b => x,
                SymbolDef::Add(x, y) if x == b => y,
                _ => self.formula(SymbolDef::Sub(a, b)),
            },
            _ => self.formula(SymbolDef::Sub(a, b)),
        }
    }

    /// `a * b`
    pub fn mul(&mut self, a: Dim, b: Dim) -> Result<Dim> {
        match (a, b) {
            (Dim::Known(x), Dim::Known(y)) => x.checked_mul(y).map(Dim::Known).ok_or_else(|| overflow(a, "*", b)),
            (Dim::Known(1), d) | (d, Dim::Known(1)) => Ok(d),
            (Dim::Known(0), _) | (_, Dim::Known(0)) => Ok(Dim::Known(0)),
            _ => {
                let (a, b) = ordered(a, b);
                Ok(self.formula(SymbolDef::Mul(a, b)))
            }
        }
    }

    /// `a / b`, rounded down
    pub fn div(&mut self, a: Dim, b: Dim) -> Dim {
        match (a, b) {
            (_, Dim::Known(0)) => Dim::Known(0),
            (Dim::Known(x), Dim::Known(y)) => Dim::Known(x / y),
            (d, Dim::Known(1)) => d,
            _ => self.formula(SymbolDef::Div(a, b)),
        }
    }

    /// `a / b`, rounded up
    pub fn ceil_div(&mut self, a: Dim, b: usize) -> Dim {
        match a {
            Dim::Known(x) => Dim::Known(x.div_ceil(b)),
            d if b == 1 => d,
            d => self.formula(SymbolDef::CeilDiv(d, Dim::Known(b))),
        }
    }

    /// The size of two broadcast axes; `None` if they cannot be broadcast.
    pub fn broadcast(&mut self, a: Dim, b: Dim) -> Option<Dim> {
        match (a, b) {
            _ if a == b => Some(a),
            (Dim::Known(1), d) | (d, Dim::Known(1)) => Some(d),
            (Dim::Known(_), Dim::Known(_)) => None,
            // The run checks that the symbol has this size, or 1.
            (Dim::Known(n), _) | (_, Dim::Known(n)) => Some(Dim::Known(n)),
            _ => {
                let (a, b) = ordered(a, b);
                Some(self.formula(SymbolDef::Broadcast(a, b)))
            }
        }
    }

    /// The product of all axes.
    pub fn product(&mut self, dims: &[Dim]) -> Result<Dim> {
        // Known factors first, so that [batch, 4, 5] and [batch, 20] have the same product.
        let known = dims.iter().filter_map(|d| d.known());
        let known = known.map(Dim::Known).collect::<Vec<_>>();
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut factor = Dim::Known(1);
        for d in known {
            factor = self.mul(factor, d)?;
        }
        for d in dims.iter().filter(|d| d.known().is_none()) {
            factor = self.collect_factors(*d, dims, &mut symbols, factor)?;
        }
        symbols.sort();
        let mut product = Dim::Known(1);
        for s in symbols {
            product = self.mul(product, Dim::Sym(s))?;
        }
        self.mul(factor, product)
    }

    /// Splits one of the sizes `of` a product into its known factor and its other symbols. If the
    /// sizes have too many factors in total, a symbol stays whole.
    fn collect_factors(&mut self, dim: Dim, of: &[Dim], symbols: &mut Vec<Symbol>, mut factor: Dim) -> Result<Dim> {
        let is_short = of.iter().fold(0, |n, &d| self.n_factors(d).saturating_add(n)) <= MAX_FACTORS;
        let mut stack = vec![dim];
        while let Some(dim) = stack.pop() {
            look(1);
            match dim {
                Dim::Known(_) => factor = self.mul(factor, dim)?,
                Dim::Sym(symbol) => match self.def(symbol) {
                    SymbolDef::Mul(a, b) if is_short => stack.extend([b, a]),
                    _ => symbols.push(symbol),
                },
            }
        }
        Ok(factor)
    }

    /// Returns `total / part` if it is exact for every value of the symbols; `None` if that cannot
    /// be proven.
    pub fn exact_quotient(&mut self, total: &[Dim], part: &[Dim]) -> Result<Option<Dim>> {
        let split = |symbols: &mut Symbols, dims: &[Dim]| -> Result<(usize, Vec<Symbol>)> {
            let mut list = Vec::new();
            let mut factor = Dim::Known(1);
            for d in dims {
                factor = symbols.collect_factors(*d, dims, &mut list, factor)?;
            }
            Ok((factor.known().unwrap_or(0), list))
        };
        let (total_factor, mut rest) = split(self, total)?;
        let (part_factor, divisors) = split(self, part)?;
        if part_factor == 0 || total_factor % part_factor != 0 {
            return Ok(None);
        }
        for s in divisors {
            match rest.iter().position(|&r| r == s) {
                Some(i) => {
                    rest.remove(i);
                }
                None => return Ok(None),
            }
        }
        rest.sort();
        let dims: Vec<Dim> = rest.into_iter().map(Dim::Sym).chain([Dim::Known(total_factor / part_factor)]).collect();
        self.product(&dims).map(Some)
    }

    /// Calls `f` once with each outside source of a size: `Batch`, `Axis` and `Number`.
    pub fn each_source(&self, dim: Dim, f: &mut impl FnMut(SymbolDef)) {
        Sources::default().each(self, dim, f);
    }

    /// Returns the number that is added to the batch size to give this size: 0 for the batch
    /// itself, 1 for its row splits.
    pub fn beyond_batch(&self, dim: Dim) -> Option<usize> {
        match dim {
            Dim::BATCH => Some(0),
            Dim::Known(_) => None,
            Dim::Sym(symbol) => match self.def(symbol) {
                SymbolDef::Add(Dim::BATCH, Dim::Known(n)) | SymbolDef::Add(Dim::Known(n), Dim::BATCH) => Some(n),
                _ => None,
            },
        }
    }

    /// Evaluates every symbol. `given` returns the sizes that come from outside: `Batch`, `Axis`
    /// and `Number`. A symbol for which it returns none has no value.
    ///
    /// Writes into `values`, which keeps its memory from run to run.
    pub fn evaluate(
        &self,
        given: impl Fn(SymbolDef) -> Result<Option<usize>>,
        values: &mut Vec<Option<usize>>,
    ) -> Result<()> {
        values.clear();
        for def in &self.defs {
            let size = |d: Dim| match d {
                Dim::Known(n) => Some(n),
                Dim::Sym(s) => values[s.0 as usize],
            };
            let value = match def.parts() {
                None => given(*def)?,
                Some((a, b)) => match (size(a), size(b)) {
                    (Some(a), Some(b)) => Some(def.apply(a, b)?),
                    _ => None,
                },
            };
            values.push(value);
        }
        Ok(())
    }
}

impl SymbolDef {
    /// The operands of a formula; none for a size that comes from outside.
    pub fn parts(&self) -> Option<(Dim, Dim)> {
        match *self {
            SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_) => None,
            SymbolDef::Add(a, b)
            | SymbolDef::Sub(a, b)
            | SymbolDef::Mul(a, b)
            | SymbolDef::Div(a, b)
            | SymbolDef::CeilDiv(a, b)
            | SymbolDef::Broadcast(a, b) => Some((a, b)),
        }
    }

    /// Computes a formula from the values of its operands.
    pub(crate) fn apply(&self, a: usize, b: usize) -> Result<usize> {
        Ok(match *self {
            SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_) => {
                return Err(Error::internal(format!("{self} is no formula")));
            }
            SymbolDef::Add(..) => a.checked_add(b).ok_or_else(|| overflow(Dim::Known(a), "+", Dim::Known(b)))?,
            SymbolDef::Sub(..) => a.saturating_sub(b),
            SymbolDef::Mul(..) => a.checked_mul(b).ok_or_else(|| overflow(Dim::Known(a), "*", Dim::Known(b)))?,
            SymbolDef::Div(..) => a.checked_div(b).unwrap_or(0),
            SymbolDef::CeilDiv(..) => a.div_ceil(b.max(1)),
            SymbolDef::Broadcast(..) if a == b || b == 1 => a,
            SymbolDef::Broadcast(..) if a == 1 => b,
            SymbolDef::Broadcast(x, y) => {
                return Err(Error::shape(format!("the sizes {a} and {b} (axes {x} and {y}) cannot be broadcast")));
            }
        })
    }
}

fn ordered(a: Dim, b: Dim) -> (Dim, Dim) {
    if a <= b { (a, b) } else { (b, a) }
}

fn overflow(a: Dim, op: &str, b: Dim) -> Error {
    Error::shape(format!("the size {a} {op} {b} overflows"))
}

impl fmt::Display for SymbolDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymbolDef::Batch => f.write_str("batch"),
            SymbolDef::Axis(value, axis) => {
                write!(f, "size of axis {axis} of output {} of node {}", value.output, value.node.0)
            }
            SymbolDef::Number(value) => write!(f, "output {} of node {}", value.output, value.node.0),
            SymbolDef::Add(a, b) => write!(f, "{a} + {b}"),
            SymbolDef::Sub(a, b) => write!(f, "{a} - {b}"),
            SymbolDef::Mul(a, b) => write!(f, "{a} * {b}"),
            SymbolDef::Div(a, b) => write!(f, "{a} / {b}"),
            SymbolDef::CeilDiv(a, b) => write!(f, "ceil({a} / {b})"),
            SymbolDef::Broadcast(a, b) => write!(f, "broadcast({a}, {b})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_formulas_are_one_symbol() {
        let mut s = Symbols::default();
        let b = Dim::BATCH;
        let x = s.mul(b, Dim::Known(20)).unwrap();
        assert_eq!(s.mul(Dim::Known(20), b).unwrap(), x);
        assert_eq!(s.product(&[b, 4.into(), 5.into()]).unwrap(), x);
        assert_eq!(s.product(&[x, 2.into()]).unwrap(), s.product(&[b, 40.into()]).unwrap());
        assert_eq!(s.exact_quotient(&[b, 4.into(), 4.into(), 40.into()], &[640.into()]).unwrap(), Some(b));
        assert_eq!(s.exact_quotient(&[b, 3.into()], &[b]).unwrap(), Some(Dim::Known(3)));
        assert_eq!(s.exact_quotient(&[b], &[3.into()]).unwrap(), None);
    }

    #[test]
    fn evaluation_follows_the_formulas() {
        let mut s = Symbols::default();
        let b = Dim::BATCH;
        let sum = s.add(b, 3.into()).unwrap();
        assert_eq!(s.sub(sum, 3.into()), b);
        let half = s.ceil_div(sum, 2);
        let (Dim::Sym(sum), Dim::Sym(half)) = (sum, half) else { panic!("symbols expected") };
        let mut values = Vec::new();
        s.evaluate(|def| Ok((def == SymbolDef::Batch).then_some(4)), &mut values).unwrap();
        assert_eq!((values[sum.0 as usize], values[half.0 as usize]), (Some(7), Some(4)));
        s.evaluate(|_| Ok(None), &mut values).unwrap();
        assert_eq!(values[half.0 as usize], None);
    }
}
