//! Sizes that are known only at run time: where each symbol's value comes from.
//!
//! A symbol is the size of an axis of something fed or made by the host, a number that the host computes, or a formula of other
//! sizes. Equal formulas are one symbol, so that shapes compare by `==`.

use std::collections::HashMap;
use std::fmt;

use estimand_tensor::{Dim, Error, Result, Symbol};

use crate::graph::Value;

/// Where the value of a symbol comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolDef {
    /// The batch: the size of every fed axis that says so.
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
}

impl Default for Symbols {
    fn default() -> Symbols {
        let mut symbols = Symbols { defs: Vec::new(), index: HashMap::new() };
        symbols.intern(SymbolDef::Batch);
        symbols
    }
}

impl Symbols {
    /// The definitions, in an order in which each uses only earlier ones.
    pub fn defs(&self) -> &[SymbolDef] {
        &self.defs
    }

    /// The definition of one symbol.
    pub fn def(&self, symbol: Symbol) -> SymbolDef {
        self.defs[symbol.0 as usize]
    }

    /// The symbol of a definition, new if it was not there.
    pub fn intern(&mut self, def: SymbolDef) -> Symbol {
        *self.index.entry(def).or_insert_with(|| {
            self.defs.push(def);
            Symbol(self.defs.len() as u32 - 1)
        })
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

    /// The size of two broadcast axes; `None` if they cannot be.
    pub fn broadcast(&mut self, a: Dim, b: Dim) -> Option<Dim> {
        match (a, b) {
            _ if a == b => Some(a),
            (Dim::Known(1), d) | (d, Dim::Known(1)) => Some(d),
            (Dim::Known(_), Dim::Known(_)) => None,
            // Checked when the program runs: the symbol is that size, or 1.
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
        for d in dims {
            if let Dim::Sym(s) = d {
                factor = self.collect_factors(*s, &mut symbols, factor)?;
            }
        }
        symbols.sort();
        let mut product = Dim::Known(1);
        for s in symbols {
            product = self.mul(product, Dim::Sym(s))?;
        }
        self.mul(factor, product)
    }

    /// Takes a product of sizes apart into its known factor and its other symbols.
    fn collect_factors(&mut self, symbol: Symbol, symbols: &mut Vec<Symbol>, mut factor: Dim) -> Result<Dim> {
        match self.def(symbol) {
            SymbolDef::Mul(a, b) => {
                for d in [a, b] {
                    factor = match d {
                        Dim::Known(_) => self.mul(factor, d)?,
                        Dim::Sym(s) => self.collect_factors(s, symbols, factor)?,
                    };
                }
                Ok(factor)
            }
            _ => {
                symbols.push(symbol);
                Ok(factor)
            }
        }
    }

    /// `total / part` where it is exact for every value of the symbols; `None` if that cannot be seen.
    pub fn exact_quotient(&mut self, total: &[Dim], part: &[Dim]) -> Result<Option<Dim>> {
        let split = |symbols: &mut Symbols, dims: &[Dim]| -> Result<(usize, Vec<Symbol>)> {
            let mut list = Vec::new();
            let mut factor = Dim::Known(1);
            for d in dims {
                factor = match d {
                    Dim::Known(_) => symbols.mul(factor, *d)?,
                    Dim::Sym(s) => symbols.collect_factors(*s, &mut list, factor)?,
                };
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

    /// Calls `f` with everything from outside that a size is computed from: `Batch`, `Axis` and `Number`.
    pub fn each_source(&self, dim: Dim, f: &mut impl FnMut(SymbolDef)) {
        let Dim::Sym(symbol) = dim else { return };
        match self.def(symbol) {
            source @ (SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_)) => f(source),
            SymbolDef::Add(a, b)
            | SymbolDef::Sub(a, b)
            | SymbolDef::Mul(a, b)
            | SymbolDef::Div(a, b)
            | SymbolDef::CeilDiv(a, b)
            | SymbolDef::Broadcast(a, b) => {
                self.each_source(a, f);
                self.each_source(b, f);
            }
        }
    }

    /// What is added to the batch to make this size: 0 for the batch itself, 1 for the number of its row splits.
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

    /// Evaluates every symbol. `given` tells the sizes that come from outside: `Batch`, `Axis` and `Number`; those it does not
    /// know have no value.
    ///
    /// Writes into `values`, which keeps its memory from run to run.
    pub fn evaluate(
        &self,
        given: impl Fn(SymbolDef) -> Result<Option<usize>>,
        values: &mut Vec<Option<usize>>,
    ) -> Result<()> {
        values.clear();
        for def in &self.defs {
            let size = |d: Dim, values: &[Option<usize>]| match d {
                Dim::Known(n) => Some(n),
                Dim::Sym(s) => values[s.0 as usize],
            };
            let (a, b) = match *def {
                SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_) => (given(*def)?, None),
                SymbolDef::Add(a, b)
                | SymbolDef::Sub(a, b)
                | SymbolDef::Mul(a, b)
                | SymbolDef::Div(a, b)
                | SymbolDef::CeilDiv(a, b)
                | SymbolDef::Broadcast(a, b) => (size(a, values), size(b, values)),
            };
            let value = match (*def, a, b) {
                (SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_), a, _) => a,
                (_, None, _) | (_, _, None) => None,
                (SymbolDef::Add(x, y), Some(a), Some(b)) => Some(a.checked_add(b).ok_or_else(|| overflow(x, "+", y))?),
                (SymbolDef::Sub(..), Some(a), Some(b)) => Some(a.saturating_sub(b)),
                (SymbolDef::Mul(x, y), Some(a), Some(b)) => Some(a.checked_mul(b).ok_or_else(|| overflow(x, "*", y))?),
                (SymbolDef::Div(..), Some(a), Some(b)) => Some(a.checked_div(b).unwrap_or(0)),
                (SymbolDef::CeilDiv(..), Some(a), Some(b)) => Some(a.div_ceil(b.max(1))),
                (SymbolDef::Broadcast(..), Some(a), Some(b)) if a == b || b == 1 => Some(a),
                (SymbolDef::Broadcast(..), Some(1), Some(b)) => Some(b),
                (SymbolDef::Broadcast(x, y), Some(a), Some(b)) => {
                    return Err(Error::shape(format!("sizes {a} and {b} (axes {x} and {y}) cannot be broadcast")));
                }
            };
            values.push(value);
        }
        Ok(())
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
