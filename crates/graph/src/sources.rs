//! A search for the values that sizes are computed from. It visits each formula once.
//!
//! Formulas share their parts: 60 doublings are 60 symbols, but 2^60 paths from the last to the
//! first. A formula may also be as deep as a graph is long, so nothing here recurses.

use std::collections::{HashMap, HashSet};

use estimand_tensor::{Dim, Symbol};

use crate::looks::look;
use crate::symbols::{SymbolDef, Symbols};
use crate::value::Value;

/// Finds the sources of sizes. Each symbol is visited once, however many formulas contain it.
#[derive(Default)]
pub(crate) struct Sources {
    seen: HashSet<Symbol>,
    stack: Vec<Dim>,
}

impl Sources {
    /// Calls `f` with each outside source of a size that has not been visited yet.
    pub(crate) fn each(&mut self, symbols: &Symbols, dim: Dim, f: &mut impl FnMut(SymbolDef)) {
        self.stack.push(dim);
        while let Some(dim) = self.stack.pop() {
            let Dim::Sym(symbol) = dim else { continue };
            look(1);
            if !self.seen.insert(symbol) {
                continue;
            }
            let def = symbols.def(symbol);
            match def.parts() {
                Some((a, b)) => self.stack.extend([b, a]),
                None => f(def),
            }
        }
    }

    /// Returns all visited symbols.
    pub(crate) fn into_seen(self) -> HashSet<Symbol> {
        self.seen
    }
}

/// A property of sizes that follows from their sources. A formula has the larger of its parts'
/// values.
///
/// Values are cached, so that each symbol is visited once.
#[derive(Default)]
pub struct Facts<T> {
    known: HashMap<Symbol, T>,
}

impl<T: Copy + Ord + Default> Facts<T> {
    /// Returns the property of a size. `source` returns it for an axis or a number of a value. If
    /// `source` returns `None`, the property is not decided yet: it counts as the smallest and is
    /// not cached.
    pub fn of(&mut self, symbols: &Symbols, dim: Dim, source: impl Fn(Value) -> Option<T>) -> T {
        let Dim::Sym(wanted) = dim else { return T::default() };
        look(1);
        if let Some(&fact) = self.known.get(&wanted) {
            return fact;
        }
        let mut unknown = Vec::new();
        let mut seen = HashSet::new();
        let mut stack = vec![dim];
        while let Some(dim) = stack.pop() {
            let Dim::Sym(symbol) = dim else { continue };
            if self.known.contains_key(&symbol) || !seen.insert(symbol) {
                continue;
            }
            look(1);
            unknown.push(symbol);
            if let Some((a, b)) = symbols.def(symbol).parts() {
                stack.extend([a, b]);
            }
        }
        // A formula has a larger index than its parts.
        unknown.sort_unstable();
        let mut open: HashMap<Symbol, T> = HashMap::new();
        for symbol in unknown {
            let def = symbols.def(symbol);
            let (fact, is_open) = match def {
                SymbolDef::Axis(value, _) | SymbolDef::Number(value) => match source(value) {
                    Some(fact) => (fact, false),
                    None => (T::default(), true),
                },
                _ => {
                    let part = |dim: Dim| match dim {
                        Dim::Known(_) => (T::default(), false),
                        Dim::Sym(s) => match (self.known.get(&s), open.get(&s)) {
                            (Some(&fact), _) => (fact, false),
                            (None, fact) => (fact.copied().unwrap_or_default(), true),
                        },
                    };
                    let (a, b) = def.parts().map_or(Default::default(), |(a, b)| (part(a), part(b)));
                    (a.0.max(b.0), a.1 || b.1)
                }
            };
            match is_open {
                true => open.insert(symbol, fact),
                false => self.known.insert(symbol, fact),
            };
        }
        self.known.get(&wanted).or_else(|| open.get(&wanted)).copied().unwrap_or_default()
    }
}
