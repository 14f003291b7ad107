//! Updates as nodes: the formulas of rules, schedules and constraints, read with symbols.
//!
//! A training on the CPU runs one `Apply` node for each variable. This module writes the same
//! update with ops that TensorFlow and devices know, for exported training steps and for executors
//! without the rules' kernels:
//! 1. [`SymbolicUpdate::scalars`] computes the scalars of a step from the step's number. A device
//!    may be fed `Hyper` in their place.
//! 2. [`SymbolicUpdate::update`] computes new weights and slots of each variable.
//! 3. [`symbolic_projection`] applies a variable's constraint to the new weights.
//!
//! All results are plain values: the caller assigns them.

use std::cell::RefCell;
use std::panic::Location;

use estimand_tensor::{Binary, DType, Dim, Error, Result, Unary};
use estimand_update::{
    Constraint, Measure, Operation, Schedule, Slot, SparseRule, Symbol, SymbolicRule, Tape, UpdateRule,
};

use crate::gradient::Gradient;
use crate::op::{AxisSet, Cast, Gather, Range, Reduction, Select};
use crate::tensor::Tensor;

type Site = &'static Location<'static>;

/// An optimizer's update as nodes of a graph. Made by
/// [`Optimizer::symbolic`](crate::Optimizer::symbolic).
///
/// ```
/// use estimand_graph::{Gradient, Graph, Initializer, Optimizer, Role};
/// use estimand_tensor::DType;
/// use estimand_update::Sgd;
///
/// let g = Graph::new();
/// let w = g.variable("w", [2], Initializer::Ones);
/// let step = g.variable_with("step", DType::I64, [], Initializer::Zeros, Role::Step);
/// let optimizer = Optimizer::new(Sgd::default(), 0.1);
/// let update = optimizer.symbolic()?;
/// let h = update.scalars(&step, None)?;
/// let new = update.update(&h.scalars, &w, &Gradient::Dense(&w * 2.0), &[])?;
/// let train = g.group(&[&w.assign(&new.weights), &step.assign_add(1.0)]);
/// # g.check()?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct SymbolicUpdate<'a> {
    of: &'a dyn UpdateRule,
    rule: &'a dyn SymbolicRule,
    rate: &'a Schedule,
    decays: bool,
}

/// The scalars of one step as nodes.
#[derive(Clone, Debug)]
pub struct SymbolicScalars {
    /// The scalars (f32), in the positions of `Hyper`.
    pub scalars: Vec<Tensor>,
    /// The carried scalar after the step, if the rule has one.
    pub carried: Option<Tensor>,
}

/// New values of a variable and its slots.
#[derive(Clone, Debug)]
pub struct Updated {
    /// The new weights, before a constraint.
    pub weights: Tensor,
    /// The new slots, in the rule's order.
    pub slots: Vec<Tensor>,
}

impl<'a> SymbolicUpdate<'a> {
    /// Reads a rule with symbols. A rule that is written for slices alone is refused by its name.
    pub(crate) fn new(rule: &'a dyn UpdateRule, rate: &'a Schedule, lazy: bool) -> Result<SymbolicUpdate<'a>> {
        let name = rule.name();
        rule.check().and_then(|()| rate.check()).map_err(|text| Error::config(format!("{name}: {text}")))?;
        let decays = rule.sparse() == SparseRule::DecayWholeTable && !lazy;
        let symbolic = rule.symbolic().ok_or_else(|| refused("optimizer", name, "Formula", "UpdateRule"))?;
        Ok(SymbolicUpdate { of: rule, rule: symbolic, rate, decays })
    }

    /// The scalar that the rule carries from step to step, with its name and its first value:
    /// Nadam's `momentum_cache`. It needs a variable next to the optimizer's step.
    pub fn carried(&self) -> Option<Slot> {
        self.rule.carried()
    }

    /// Computes the scalars of a step, in f64 and rounded at the end. `step` counts the updates
    /// before this one. `carried` is the carried scalar before the step, if the rule has one.
    #[track_caller]
    pub fn scalars(&self, step: &Tensor, carried: Option<&Tensor>) -> Result<SymbolicScalars> {
        self.scalars_at(step, None, carried)
    }

    /// As [`scalars`](SymbolicUpdate::scalars), with a learning rate in place of the optimizer's.
    #[track_caller]
    pub fn scalars_at(
        &self,
        step: &Tensor,
        rate: Option<&Tensor>,
        carried: Option<&Tensor>,
    ) -> Result<SymbolicScalars> {
        if let (Some(slot), None) = (self.carried(), carried) {
            let name = self.of.name();
            let text = format!("{name} carries the scalar `{}` from step to step, and none was given", slot.name);
            return Err(Error::config(text));
        }
        let nodes = Nodes::new(Location::caller());
        let wide = |t: &Tensor| nodes.symbol(nodes.cast(t, DType::F64));
        let at = wide(step);
        let rate = rate.map_or_else(|| self.rate.rate_at(at), wide);
        let after = match carried {
            Some(carried) => self.rule.carry(at, wide(carried)),
            None => at,
        };
        let scalars = self.rule.hyper(at, rate, after);
        let scalars = scalars.into_iter().map(|s| nodes.cast(&nodes.tensor(s), DType::F32)).collect();
        let carried = carried.map(|before| nodes.cast(&nodes.tensor(after), before.dtype()));
        Ok(SymbolicScalars { scalars, carried })
    }

    /// Computes the new weights and slots of a variable.
    ///
    /// For a gradient of rows, equal indices are summed. The new rows are computed from the old
    /// ones; rows without a gradient decay if the optimizer decays them. For a rule that needs
    /// whole variables, rows without a gradient have a gradient of zero.
    #[track_caller]
    pub fn update(
        &self,
        scalars: &[Tensor],
        weights: &Tensor,
        gradient: &Gradient,
        slots: &[Tensor],
    ) -> Result<Updated> {
        let site = Location::caller();
        let n_slots = self.n_slots(weights);
        if slots.len() != n_slots {
            return Err(Error::config(format!("{} has {n_slots} slots, got {}", self.of.name(), slots.len())));
        }
        let old = Updated { weights: weights.clone(), slots: slots.to_vec() };
        match gradient {
            _ if weights.is_poisoned() => Ok(old),
            Gradient::None => Ok(old),
            Gradient::Dense(gradient) => Ok(self.read(scalars, &old, Some(gradient), site)),
            Gradient::Rows { indices, values } => {
                let Some(&n_rows) = weights.shape().dims().first() else {
                    return Err(Error::shape(format!("{} has no rows to update", weights.describe())));
                };
                if self.of.is_whole() {
                    let gradient = values.segments(Reduction::Sum, indices, n_rows, site);
                    return Ok(self.read(scalars, &old, Some(&gradient), site));
                }
                Ok(self.rows(scalars, &old, n_rows, (indices, values), site))
            }
        }
    }

    /// The number of slots of a variable. The sizes of a variable are known.
    fn n_slots(&self, weights: &Tensor) -> usize {
        let dims: Vec<usize> = weights.shape().dims().iter().map(|dim| dim.known().unwrap_or(0)).collect();
        self.of.slots_of(&dims).len()
    }

    /// Reads the rule once: an update, or a decay without a gradient.
    fn read(&self, scalars: &[Tensor], old: &Updated, gradient: Option<&Tensor>, site: Site) -> Updated {
        let nodes = Nodes::new(site);
        let symbol = |t: &Tensor| nodes.symbol(t.clone());
        let h: Vec<Symbol<'_>> = scalars.iter().map(symbol).collect();
        let (w, slots): (_, Vec<Symbol<'_>>) = (symbol(&old.weights), old.slots.iter().map(symbol).collect());
        let (weights, slots) = match gradient {
            Some(gradient) => self.rule.update(&h, w, symbol(gradient), &slots),
            None => self.rule.decay(&h, w, &slots),
        };
        Updated { weights: nodes.tensor(weights), slots: slots.into_iter().map(|slot| nodes.tensor(slot)).collect() }
    }

    fn rows(
        &self,
        scalars: &[Tensor],
        old: &Updated,
        n_rows: Dim,
        (indices, values): (&Tensor, &Tensor),
        site: Site,
    ) -> Updated {
        let nodes = Nodes::new(site);
        let ids = nodes.cast(indices, DType::I64);
        let Some(&n) = ids.shape().dims().first().filter(|_| !ids.is_poisoned()) else { return old.clone() };
        let of_rows = |table: &Tensor| table.then(Gather::ROWS, &[&ids], site);
        // Equal ids read the same sum and compute the same row. The last of them writes it; the
        // others have the id -1, which a segment drops.
        let sum = of_rows(&values.segments(Reduction::Sum, &ids, n_rows, site));
        let rows = old.map(of_rows);
        let rows = self.read(scalars, &rows, Some(&sum), site);
        let place = ids.graph().node(Range { size: n, dtype: DType::I64 }, &[], site);
        let last = place.segments(Reduction::Max, &ids, n_rows, site);
        let writes = place.binary(Binary::Equal, &of_rows(&last), site);
        let targets = writes.then(Select, &[&ids, &ids.number(-1.0, site)], site);
        // The lowest number marks a row without an id.
        let touched = last.binary(Binary::GreaterEqual, &last.number(0.0, site), site);
        let rest = if self.decays { self.read(scalars, old, None, site) } else { old.clone() };
        rows.zip(&rest, |rows, rest| {
            let table = rows.segments(Reduction::Sum, &targets, n_rows, site);
            let mut shape = touched.shape().clone();
            shape.0.resize(rest.rank().max(1), Dim::Known(1));
            touched.reshape_to(shape, site).then(Select, &[&table, rest], site)
        })
    }
}

impl Updated {
    fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Updated {
        Updated { weights: f(&self.weights), slots: self.slots.iter().map(f).collect() }
    }

    fn zip(&self, other: &Updated, f: impl Fn(&Tensor, &Tensor) -> Tensor) -> Updated {
        let slots = self.slots.iter().zip(&other.slots).map(|(a, b)| f(a, b)).collect();
        Updated { weights: f(&self.weights, &other.weights), slots }
    }
}

/// Applies a constraint to the weights of a whole variable. A constraint that is written for slices
/// alone is refused by its name.
#[track_caller]
pub fn symbolic_projection(constraint: &dyn Constraint, weights: &Tensor) -> Result<Tensor> {
    let nodes = Nodes::new(Location::caller());
    let name = constraint.name();
    let symbolic = constraint.symbolic().ok_or_else(|| refused("constraint", name, "Scaling", "Constraint"))?;
    let dims: Option<Vec<usize>> = weights.shape().dims().iter().map(|dim| dim.known()).collect();
    if let Some(dims) = dims.filter(|_| !weights.is_poisoned()) {
        constraint.check(&dims).map_err(|text| Error::config(format!("{name}: {text}")))?;
    }
    let measure = match symbolic.measure() {
        Measure::Weight => weights.clone(),
        Measure::Length(axes) => {
            let Some(axes) = weights.axes(axes, nodes.site) else { return Ok(weights.graph().poison()) };
            let squares = nodes.cast(weights, DType::F64).unary(Unary::Square, nodes.site);
            let sum = squares.reduce(Reduction::Sum, axes, true, nodes.site);
            nodes.cast(&sum.unary(Unary::Sqrt, nodes.site), DType::F32)
        }
    };
    let factor = nodes.tensor(symbolic.factor(nodes.symbol(measure)));
    Ok(weights.binary(Binary::Mul, &factor, nodes.site))
}

fn refused(kind: &str, name: &str, generic: &str, slices: &str) -> Error {
    Error::unsupported(format!("the {kind} `{name}` cannot become nodes of a graph: it is written for slices alone"))
        .help(format!("implement `{generic}` for it instead of `{slices}`"))
}

/// A tape whose values are tensors.
struct Nodes {
    tensors: RefCell<Vec<Tensor>>,
    site: Site,
}

impl Nodes {
    fn new(site: Site) -> Nodes {
        Nodes { tensors: RefCell::default(), site }
    }

    fn push(&self, tensor: Tensor) -> u32 {
        let mut tensors = self.tensors.borrow_mut();
        tensors.push(tensor);
        tensors.len() as u32 - 1
    }

    fn at(&self, index: u32) -> Tensor {
        self.tensors.borrow()[index as usize].clone()
    }

    fn symbol(&self, tensor: Tensor) -> Symbol<'_> {
        Symbol::new(self, self.push(tensor))
    }

    fn tensor(&self, symbol: Symbol<'_>) -> Tensor {
        self.at(symbol.index())
    }

    fn cast(&self, x: &Tensor, to: DType) -> Tensor {
        if x.dtype() == to { x.clone() } else { x.then(Cast { to }, &[], self.site) }
    }
}

impl Tape for Nodes {
    fn constant(&self, like: u32, value: f64) -> u32 {
        let like = self.at(like);
        self.push(if like.is_poisoned() { like } else { like.number(value, self.site) })
    }

    fn operation(&self, operation: Operation, inputs: &[u32]) -> u32 {
        let x = self.at(inputs[0]);
        let other = |i: usize| self.at(inputs[i]);
        let unary = |op: Unary| x.unary(op, self.site);
        let binary = |op: Binary| x.binary(op, &other(1), self.site);
        self.push(match operation {
            Operation::Add => binary(Binary::Add),
            Operation::Sub => binary(Binary::Sub),
            Operation::Mul => binary(Binary::Mul),
            Operation::Div => binary(Binary::Div),
            Operation::Neg => unary(Unary::Neg),
            Operation::Rounded => self.cast(&self.cast(&x, DType::F32), x.dtype()),
            Operation::Sqrt => unary(Unary::Sqrt),
            Operation::Abs => unary(Unary::Abs),
            Operation::Floor => unary(Unary::Floor),
            Operation::Ceil => unary(Unary::Ceil),
            Operation::Ln => unary(Unary::Log),
            Operation::Cos => unary(Unary::Cos),
            Operation::Max => binary(Binary::Maximum),
            Operation::Min => binary(Binary::Minimum),
            Operation::Pow => binary(Binary::Pow),
            Operation::CopySign => {
                let (magnitude, sign) = (unary(Unary::Abs), other(1));
                let zero = self.at(self.constant(inputs[1], 0.0));
                let is_negative = sign.binary(Binary::Less, &zero, self.site);
                is_negative.then(Select, &[&magnitude.unary(Unary::Neg, self.site), &magnitude], self.site)
            }
            Operation::Above => binary(Binary::Greater),
            Operation::AtLeast => binary(Binary::GreaterEqual),
            Operation::Select => x.then(Select, &[&other(1), &other(2)], self.site),
            Operation::Mean => x.reduce(Reduction::Mean, AxisSet::all(x.rank()), false, self.site),
            Operation::MeanAlong(axis) => match x.axes(&[axis.into()], self.site) {
                Some(axes) => x.reduce(Reduction::Mean, axes, false, self.site),
                None => x.graph().poison(),
            },
            Operation::WithAxis(axis) => x.expand_dims_at(axis.into(), self.site),
        })
    }
}
