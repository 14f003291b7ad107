//! Orders the host's work: host ops one by one, the numeric nodes between them in as few runs as
//! possible.
//!
//! A run of numeric nodes is a separate program and costs some microseconds, whatever it does. A
//! model has many features, and each alternates between host ops and numeric nodes. All features
//! therefore pass through each of these together.

use std::collections::{BinaryHeap, HashMap, HashSet};

use estimand_graph::looks::look;
use estimand_graph::pass::each_dim;
use estimand_graph::sources::Facts;
use estimand_graph::{Op, Step, SymbolDef, Value};
use estimand_tensor::{Dim, Symbol};

use super::host_section::HostSection;
use super::rearrange::Rearrange;

/// A unit of work that runs at once.
pub(super) enum Piece {
    /// A host op, or a move of strings.
    Single(Step),
    /// Numeric nodes, and the results that are needed outside.
    Numbers(Vec<Step>, Vec<Value>),
}

/// Returns the pieces of a part in a valid order.
///
/// Work is done in rounds: first all host ops that are ready, one by one, then all numeric nodes
/// that are ready, as one run. A run may read values computed in the same run. Values that
/// determine the sizes of a run must exist before it begins. The given steps are in a valid order,
/// so the round of a step follows from the rounds of the steps before it.
pub(super) fn schedule(part: &HostSection<'_>) -> Vec<Piece> {
    let symbols = part.body.symbols();
    let mut producers: HashMap<Value, usize> = HashMap::new();
    for (i, step) in part.steps.iter().enumerate() {
        producers.extend(step.outputs.iter().map(|&v| (v, i)));
    }
    let mut made: Vec<Made> = Vec::with_capacity(part.steps.len());
    // The first round in which a size is known, and the last one in which it is needed.
    let mut known_at: Facts<usize> = Facts::default();
    let mut asked_at: HashMap<Symbol, usize> = HashMap::new();
    for (i, step) in part.steps.iter().enumerate() {
        look(1);
        let node = part.body.node(step.kernel.node());
        let is_numeric = !matches!(node.op, Op::Host(_)) && !Rearrange::is_for(part, step);
        let reads = step.inputs.iter().filter_map(|v| producers.get(v)).filter(|&&p| p < i);
        // Numeric nodes can read results of the same run.
        let mut round = reads.map(|&p| if is_numeric { made[p].round } else { made[p].ready() }).max().unwrap_or(0);
        each_size(part, step, &mut |dim| {
            let ready = |value: Value| match producers.get(&value) {
                // A step does not wait for itself.
                Some(&p) if p >= i => None,
                Some(&p) => Some(made[p].ready()),
                None => Some(0),
            };
            round = round.max(known_at.of(symbols, dim, ready));
        });
        each_size(part, step, &mut |dim| {
            if let Dim::Sym(symbol) = dim {
                let last = asked_at.entry(symbol).or_default();
                *last = round.max(*last);
            }
        });
        made.push(Made { round, is_numeric });
    }
    let read_at = read_at(part, &made, asked_at);
    let results: HashSet<Value> = part.results.iter().copied().collect();
    let n_rounds = made.iter().map(|made| made.round + 1).max().unwrap_or(0);
    let mut rounds: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); n_rounds];
    for (i, made) in made.iter().enumerate() {
        let (singles, run) = &mut rounds[made.round];
        if made.is_numeric { run.push(i) } else { singles.push(i) }
    }
    let mut pieces = Vec::new();
    for (round, (singles, run)) in rounds.into_iter().enumerate() {
        pieces.extend(singles.iter().map(|&i| Piece::Single(part.steps[i].clone())));
        if !run.is_empty() {
            let is_needed = |v: &Value| results.contains(v) || read_at.get(v).is_some_and(|&last| last > round);
            let makes = run.iter().flat_map(|&i| &part.steps[i].outputs).copied().filter(is_needed).collect();
            pieces.push(Piece::Numbers(run.iter().map(|&i| part.steps[i].clone()).collect(), makes));
        }
    }
    pieces
}

/// The schedule of a step.
struct Made {
    round: usize,
    is_numeric: bool,
}

impl Made {
    /// The first round in which a host op can read the results.
    fn ready(&self) -> usize {
        self.round + usize::from(self.is_numeric)
    }
}

/// Calls `f` with all sizes that a step needs: its own, and those of its inputs.
fn each_size(part: &HostSection<'_>, step: &Step, f: &mut impl FnMut(Dim)) {
    each_dim(part.body.node(step.kernel.node()), f);
    for input in &step.inputs {
        part.body.spec(*input).shape.dims().iter().for_each(|&dim| f(dim));
    }
}

/// The last round in which each value is read or determines a size. `asked_at` gives the rounds in
/// which sizes are needed.
fn read_at(part: &HostSection<'_>, made: &[Made], mut asked_at: HashMap<Symbol, usize>) -> HashMap<Value, usize> {
    let symbols = part.body.symbols();
    let mut read_at: HashMap<Value, usize> = HashMap::new();
    let mut read = |value: Value, round: usize| {
        let last = read_at.entry(value).or_default();
        *last = round.max(*last);
    };
    for (step, made) in part.steps.iter().zip(made) {
        step.inputs.iter().for_each(|&input| read(input, made.round));
    }
    // Formulas come after their parts, so the latest definition is visited first.
    let mut open: BinaryHeap<Symbol> = asked_at.keys().copied().collect();
    while let Some(symbol) = open.pop() {
        look(1);
        let round = asked_at[&symbol];
        match symbols.def(symbol) {
            SymbolDef::Axis(value, _) | SymbolDef::Number(value) => read(value, round),
            def => {
                for dim in def.parts().into_iter().flat_map(|(a, b)| [a, b]) {
                    if let Dim::Sym(part) = dim {
                        let last = asked_at.entry(part).or_insert_with(|| {
                            open.push(part);
                            0
                        });
                        *last = round.max(*last);
                    }
                }
            }
        }
    }
    read_at
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use estimand_tensor::{DType, Dim};

    use super::*;
    use estimand_graph::{Encoding, Graph, Program, Tensor};

    #[test]
    fn features_share_runs() {
        let g = Graph::new();
        let feature = |i: usize| {
            let x = g.placeholder(&format!("x{i}"), DType::Str, [Dim::BATCH]);
            // Host, numbers, host, numbers with the host's size, host.
            let doubled = x.string_length(Encoding::Bytes).cast(DType::F32) * 2.0;
            let (distinct, _) = doubled.unique();
            (distinct + 1.0).unique().1
        };
        let fetches: Vec<Tensor> = (0..4).map(feature).collect();
        let values: Vec<Value> = fetches.iter().map(Tensor::value).collect();
        let program = Program::new(Arc::new(g.body().clone()), &values).unwrap();
        let given = program.placeholders.iter().map(|&node| Value { node, output: 0 }).collect();
        let part = HostSection { body: program.body.clone(), steps: &program.host, given, results: &program.feeds };
        let runs: Vec<(usize, usize)> = schedule(&part)
            .iter()
            .filter_map(|piece| match piece {
                Piece::Single(_) => None,
                Piece::Numbers(steps, makes) => Some((steps.len(), makes.len())),
            })
            .collect();
        // Cast and product of all four, of which only the products are needed; then the four sums.
        assert_eq!(runs, [(8, 4), (4, 4)]);
    }
}
