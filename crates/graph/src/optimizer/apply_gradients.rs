//! From gradients to the train op: checks, clipping, slots, one `Apply` node for each variable, and
//! the counter of updates. A rule that needs whole variables has plain nodes instead of `Apply`.

use std::collections::BTreeSet;
use std::panic::Location;

use estimand_tensor::{Binary, DType, Error, Result, Shape};
use estimand_update::Schedule;
use smallvec::SmallVec;

use super::clip::clipped;
use super::minimize::variable_of;
use super::state::slot_name;
use super::{Apply, Optimizer, OptimizerConfig};
use crate::Initializer;
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::op::{Assign, Group};
use crate::tensor::Tensor;
use crate::variables::{Role, VarId, VarSpec};

/// The arguments of [`Optimizer::apply_gradients`]: variables with their gradients. A list of pairs
/// converts into one.
///
/// ```
/// # use estimand_graph::{ApplyGradients, Graph, Initializer, Optimizer, Role};
/// # use estimand_tensor::DType;
/// # use estimand_update::Sgd;
/// # let g = Graph::new();
/// let w = g.variable("w", [], Initializer::Constant(1.0));
/// let step = g.variable_with("global_step", DType::I64, [], Initializer::Zeros, Role::Step);
/// let sgd = Optimizer::new(Sgd::default(), 0.1);
/// let pairs = sgd.compute_gradients(&w.square());
/// let train = sgd.apply_gradients(ApplyGradients::new(pairs).global_step(&step));
/// # g.check().unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ApplyGradients {
    pairs: Vec<(Gradient, Tensor)>,
    global_step: Option<Tensor>,
}

impl ApplyGradients {
    /// Changes each variable by its gradient. A variable with [`Gradient::None`] does not change.
    pub fn new(pairs: impl IntoIterator<Item = (Gradient, Tensor)>) -> ApplyGradients {
        ApplyGradients { pairs: pairs.into_iter().collect(), global_step: None }
    }

    /// Counts the updates in an existing variable, as [`Minimize::global_step`] does. By default
    /// the optimizer has its own counter.
    ///
    /// [`Minimize::global_step`]: super::Minimize::global_step
    pub fn global_step(mut self, step: &Tensor) -> ApplyGradients {
        self.global_step = Some(step.clone());
        self
    }
}

impl From<Vec<(Gradient, Tensor)>> for ApplyGradients {
    fn from(pairs: Vec<(Gradient, Tensor)>) -> ApplyGradients {
        ApplyGradients::new(pairs)
    }
}

impl<const N: usize> From<[(Gradient, Tensor); N]> for ApplyGradients {
    fn from(pairs: [(Gradient, Tensor); N]) -> ApplyGradients {
        ApplyGradients::new(pairs)
    }
}

impl Optimizer {
    /// Returns the train op that changes variables by these gradients. Fetch it to run a step.
    ///
    /// The gradients come from [`compute_gradients`](Optimizer::compute_gradients), or are any
    /// tensors of the variables' shapes. A variable that is left out does not change. Each call has
    /// its own slots and its own counter of updates.
    ///
    /// It is an error if a variable has two gradients, is not trainable, or belongs to another
    /// graph than the first one, if a gradient has another shape or dtype than its variable, and if
    /// there is no gradient at all. As with all ops, the graph keeps the error.
    ///
    /// ```
    /// use estimand_engine::Session;
    /// use estimand_graph::{Gradient, Graph, Initializer, Optimizer};
    /// use estimand_update::Sgd;
    ///
    /// let g = Graph::new();
    /// let w = g.variable("w", [2], Initializer::Ones);
    /// let gradient = Gradient::Dense(g.constant([0.5f32, -1.0]));
    /// let train = Optimizer::new(Sgd::default(), 0.5).apply_gradients([(gradient, w)]);
    /// let mut session = Session::new(&g)?;
    /// session.run(&[&train], &[])?;
    /// // 1 - 0.5 * 0.5, and 1 + 0.5 * 1.
    /// assert_eq!(session.value("w")?.as_slice::<f32>()?, [0.75, 1.5]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn apply_gradients(&self, what: impl Into<ApplyGradients>) -> Tensor {
        let site = Location::caller();
        let ApplyGradients { pairs, global_step } = what.into();
        let Some((_, first)) = pairs.first() else {
            // No variable, no graph: the error is in a graph of its own, and whoever uses the train
            // op gets it from there.
            let error = Error::config("no gradients to apply: the list of gradients and variables is empty");
            return Graph::new().fail(error, site);
        };
        let graph = first.graph().clone();
        self.apply(&graph, pairs, global_step.as_ref(), site)
    }

    /// Checks the arguments and adds the nodes.
    pub(super) fn apply(
        &self,
        graph: &Graph,
        pairs: Vec<(Gradient, Tensor)>,
        step: Option<&Tensor>,
        site: &'static Location<'static>,
    ) -> Tensor {
        let tensors = pairs.iter().flat_map(|(gradient, variable)| gradient.tensors().chain([variable]));
        if let Some(poisoned) = tensors.chain(step).find(|tensor| tensor.is_poisoned()) {
            return graph.poisoned_by(poisoned);
        }
        let parts = self.check().and_then(|()| {
            let step = step.map(|step| counter(graph, step)).transpose()?;
            Ok((checked(graph, pairs)?, step))
        });
        match parts.and_then(|(pairs, step)| self.update(graph, pairs, step, site)) {
            Ok(train) => train,
            Err(error) => graph.fail(error, site),
        }
    }

    /// Adds the clipping, the slots, the updates and the counter.
    fn update(
        &self,
        graph: &Graph,
        pairs: Vec<(VarId, Gradient)>,
        step: Option<VarId>,
        site: &'static Location<'static>,
    ) -> Result<Tensor> {
        let scope = graph.unique(&graph.scoped(self.rule.name()));
        let iterations = match step {
            Some(step) => step,
            None => graph.add_variable(VarSpec {
                name: format!("{scope}/iter"),
                dtype: DType::I64,
                dims: Default::default(),
                initializer: Initializer::Zeros,
                role: Role::Step,
                constraint: None,
                site,
            })?,
        };
        let rate_variable = match (&self.rate, self.has_rate_variable) {
            (Schedule::Constant(rate), true) => Some(graph.add_variable(VarSpec {
                name: format!("{scope}/learning_rate"),
                dtype: DType::F32,
                dims: Default::default(),
                initializer: Initializer::Constant(*rate),
                role: Role::Model { trainable: false },
                constraint: None,
                site,
            })?),
            _ => None,
        };
        let (rule, rate, lazy) = (self.rule.clone(), self.rate.clone(), self.lazy);
        let config = OptimizerConfig { rule, rate, lazy, rate_variable, iterations, scope: scope.clone() };
        let optimizer = graph.add_optimizer(config.clone());
        let plain = self.rule.is_whole().then(|| graph.plain_scalars(&config, site)).transpose()?;
        let mut members = Vec::new();
        for (variable, gradient) in clipped(self.clip, pairs, site) {
            let slots = self.add_slots(graph, variable, &scope, site)?;
            let op = Apply { variable, optimizer, slots };
            if let Some((scalars, _)) = &plain {
                members.extend(graph.assignments(&config, scalars, &op, &gradient, site)?);
                continue;
            }
            members.push(match &gradient {
                Gradient::None => continue,
                Gradient::Dense(g) => graph.node(op, &[g], site),
                Gradient::Rows { indices, values } => graph.node(op, &[&indices.cast(DType::I64), values], site),
            });
        }
        let count = graph.read(iterations, site);
        let next = count.binary(Binary::Add, &count.number(1.0, site), site);
        members.push(graph.node(Assign(iterations), &[&next], site));
        Ok(graph.node(Group, &members.iter().collect::<Vec<_>>(), site))
    }

    fn add_slots(
        &self,
        graph: &Graph,
        variable: VarId,
        scope: &str,
        site: &'static Location<'static>,
    ) -> Result<SmallVec<[VarId; 3]>> {
        let (name, dtype, dims) = {
            let body = graph.body();
            let spec = body.variables().spec(variable);
            (spec.name.clone(), spec.dtype, spec.dims.clone())
        };
        let add = |(slot, dims): (estimand_update::Slot, Vec<usize>)| {
            graph.add_variable(VarSpec {
                name: slot_name(scope, &name, slot.name),
                dtype,
                dims: dims.into(),
                initializer: Initializer::Constant(slot.initial.into()),
                role: Role::Slot { of: variable },
                constraint: None,
                site,
            })
        };
        self.rule.slots_of(&dims).into_iter().map(add).collect()
    }
}

impl Gradient {
    /// The tensors of the gradient.
    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let indices = match self {
            Gradient::Rows { indices, .. } => Some(indices),
            Gradient::None | Gradient::Dense(_) => None,
        };
        indices.into_iter().chain(self.values())
    }
}

/// The variable that counts steps.
fn counter(graph: &Graph, step: &Tensor) -> Result<VarId> {
    if !step.graph().same(graph) {
        return Err(Error::config(format!("{} counts steps, and belongs to another graph", step.describe())));
    }
    step.variable().filter(|_| step.dtype() == DType::I64 && step.rank() == 0).ok_or_else(|| {
        Error::config(format!("the step counter is {}; expected an i64 variable of a single number", step.describe()))
    })
}

/// Checks that each variable can be trained and has one gradient that fits. Leaves out variables
/// without a gradient.
fn checked(graph: &Graph, pairs: Vec<(Gradient, Tensor)>) -> Result<Vec<(VarId, Gradient)>> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (gradient, variable) in pairs {
        let id = variable_of(graph, &variable)?;
        check_role(graph, id)?;
        if !seen.insert(id) {
            return Err(Error::config(format!("variable {} has two gradients", variable.describe()))
                .help("add them, and pass the sum"));
        }
        check_gradient(graph, &gradient, &variable)?;
        if gradient.values().is_some() {
            check_dtype(&variable)?;
            found.push((id, gradient));
        }
    }
    match found.is_empty() {
        true => Err(Error::config("no gradients to apply: no variable of the list has one")
            .help("check that the loss depends on the variables and that no stop_gradient cuts them off")),
        false => Ok(found),
    }
}

fn check_role(graph: &Graph, id: VarId) -> Result<()> {
    let body = graph.body();
    let spec = body.variables().spec(id);
    let what = match spec.role {
        Role::Model { trainable: true } => return Ok(()),
        Role::Model { trainable: false } => "is not trainable",
        Role::Slot { .. } => "is a slot of an optimizer",
        Role::Step => "counts steps",
        Role::Local => "holds the sums of a metric",
    };
    Err(Error::config(format!("variable `{}` {what}, and is to be trained", spec.name))
        .help("leave it out, or make it trainable"))
}

fn check_dtype(variable: &Tensor) -> Result<()> {
    match variable.dtype() {
        DType::F32 => Ok(()),
        dtype => {
            let text = format!("variable `{}` is {dtype}; optimizers train only f32", variable.name());
            Err(Error::dtype(Some(DType::F32), dtype, text))
        }
    }
}

/// Checks that a gradient has the dtype and the shape of its variable.
fn check_gradient(graph: &Graph, gradient: &Gradient, variable: &Tensor) -> Result<()> {
    let place = |text: String| format!("{text}, as the gradient of variable {}", variable.describe());
    if let Some(stranger) = gradient.tensors().find(|tensor| !tensor.graph().same(graph)) {
        return Err(Error::config(place(format!("{} belongs to another graph", stranger.describe()))));
    }
    if let Some(effect) = gradient.tensors().find(|tensor| !tensor.has_value()) {
        return Err(effect.no_value("the gradient"));
    }
    let shape = variable.shape();
    match gradient {
        Gradient::None => Ok(()),
        Gradient::Dense(g) if g.dtype() != variable.dtype() => {
            Err(Error::dtype(Some(variable.dtype()), g.dtype(), place(g.describe())).help("use .cast to change it"))
        }
        Gradient::Dense(g) if g.shape() != shape => {
            Err(Error::shape(place(g.describe())).help("a gradient has the shape of its variable"))
        }
        Gradient::Dense(_) => Ok(()),
        Gradient::Rows { values, .. } if values.dtype() != variable.dtype() => {
            let text = place(format!("rows {}", values.describe()));
            Err(Error::dtype(Some(variable.dtype()), values.dtype(), text).help("use .cast to change it"))
        }
        Gradient::Rows { indices, .. } if !matches!(indices.dtype(), DType::I32 | DType::I64) => {
            let text = place(format!("rows at {}", indices.describe()));
            Err(Error::dtype(Some(DType::I64), indices.dtype(), text).help("indices are i32 or i64"))
        }
        Gradient::Rows { indices, values } if !rows_fit(indices.shape(), values.shape(), shape) => {
            let text = place(format!("rows {} at {}", values.describe(), indices.describe()));
            Err(Error::shape(text).help("n indices and n rows, each of the shape of one row of the variable"))
        }
        Gradient::Rows { .. } => Ok(()),
    }
}

/// Returns whether there are as many rows as indices, and each is a row of this shape.
pub(crate) fn rows_fit(indices: &Shape, rows: &Shape, whole: &Shape) -> bool {
    match (indices.dims(), rows.dims(), whole.dims()) {
        ([n], [n_rows, row @ ..], [_, of_variable @ ..]) => n == n_rows && row == of_variable,
        _ => false,
    }
}
