//! Optimizers: an update rule of the crate `estimand-update`, a learning rate schedule, and
//! gradient clipping.
//!
//! `minimize` adds the backward nodes, the slots, and one `Apply` node for each variable. If a
//! variable has a constraint, its update ends with the constraint.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use estimand_tensor::{Binary, DType, Error, Result, Unary};
use estimand_update::{ALL_RULES, Schedule, SparseRule, UpdateRule};
use smallvec::SmallVec;

use crate::Initializer;
use crate::gradient::{Gradient, gradients};
use crate::graph::Graph;
use crate::op::{Assign, AxisSet, Group, Reduction};
use crate::tensor::Tensor;
use crate::variables::{Role, VarId, VarSpec};

/// How gradients are limited before they are applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// Clips every element to [-limit, limit].
    Value(f64),
    /// Limits the norm of each variable's gradient.
    Norm(f64),
    /// Limits the norm of all gradients together.
    GlobalNorm(f64),
}

/// An optimizer: trains variables. It is a plain value; all state is in the graph's variables.
///
/// ```
/// use estimand_graph::{Clip, Optimizer};
/// use estimand_update::Adam;
/// let adam = Optimizer::new(Adam::default(), 0.001).clip(Clip::GlobalNorm(5.0));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Optimizer {
    rule: Arc<dyn UpdateRule>,
    rate: Schedule,
    clip: Option<Clip>,
    lazy: bool,
}

/// The index of an optimizer in its graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptimizerId(pub u32);

/// The configuration of an optimizer that an executor needs.
#[derive(Clone)]
pub struct OptimizerConfig {
    /// The update rule.
    pub rule: Arc<dyn UpdateRule>,
    /// The learning rate at each step.
    pub rate: Schedule,
    /// Leaves rows without a gradient unchanged where TensorFlow would decay them.
    pub lazy: bool,
    /// The variable that counts the updates.
    pub iterations: VarId,
    /// The scope of the optimizer. The names of its slots and scalars start with it.
    pub scope: String,
}

impl OptimizerConfig {
    /// Returns the scalars that TensorFlow stores in a checkpoint for an optimizer after `steps`
    /// updates. A scheduled learning rate is not among them.
    pub fn scalars(&self, steps: u64) -> Vec<(String, f32)> {
        let (rate, decay) = self.rate.rate_and_decay().unzip();
        let mut scalars = self.rule.scalars(steps);
        if let Some((_, slot)) = scalars.iter_mut().find(|(name, _)| *name == "decay").filter(|(_, own)| *own == 0.0) {
            *slot = decay.unwrap_or(0.0);
        }
        scalars.extend(rate.map(|rate| ("learning_rate", rate)));
        scalars.into_iter().map(|(name, value)| (format!("{}/{name}", self.scope), value as f32)).collect()
    }
}

impl OptimizerConfig {
    /// Whether rows without a gradient change too.
    pub fn decays_all_rows(&self) -> bool {
        self.rule.sparse() == SparseRule::DecayWholeTable && !self.lazy
    }
}

impl fmt::Debug for OptimizerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.rule, self.rate)
    }
}

/// The update of one variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Apply {
    /// The variable.
    pub variable: VarId,
    /// Its optimizer.
    pub optimizer: OptimizerId,
    /// The optimizer's slots of the variable, in the rule's order.
    pub slots: SmallVec<[VarId; 3]>,
}

/// The arguments of `Optimizer::minimize`: a loss and the variables to change. A `&Tensor`, the
/// loss, converts into one.
///
/// ```
/// # use estimand_graph::{Graph, Initializer, Minimize, Optimizer};
/// # use estimand_update::Sgd;
/// # let g = Graph::new();
/// let a = g.variable("a", [], Initializer::Constant(1.0));
/// let b = g.variable("b", [], Initializer::Constant(2.0));
/// let loss = (&a * &b).square();
/// // Changes `a` alone.
/// let train = Optimizer::new(Sgd::default(), 0.1).minimize(Minimize::new(&loss).variables([&a]));
/// # g.check().unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Minimize {
    loss: Tensor,
    variables: Option<Vec<Tensor>>,
    global_step: Option<Tensor>,
}

impl Minimize {
    /// Changes every trainable variable that the loss depends on.
    pub fn new(loss: &Tensor) -> Minimize {
        Minimize { loss: loss.clone(), variables: None, global_step: None }
    }

    /// Changes only these variables. By default all trainable variables change.
    pub fn variables<'a>(mut self, variables: impl IntoIterator<Item = &'a Tensor>) -> Minimize {
        self.variables = Some(variables.into_iter().cloned().collect());
        self
    }

    /// Counts the updates in an existing variable: the global step of a training, as TensorFlow's
    /// estimators do. By default the optimizer has its own counter.
    ///
    /// Several optimizers of one step may share the variable. A run reads its value from before the
    /// step, so the count rises by one.
    pub fn global_step(mut self, step: &Tensor) -> Minimize {
        self.global_step = Some(step.clone());
        self
    }

    fn variable_ids(&self) -> Result<Vec<VarId>> {
        if let Some(variables) = &self.variables {
            return ids(variables);
        }
        let body = self.loss.graph().body();
        let trainable = body.variables().iter().filter(|(_, spec)| spec.role == Role::Model { trainable: true });
        let trainable: Vec<VarId> = trainable.map(|(id, _)| id).collect();
        if trainable.is_empty() {
            return Err(Error::config("nothing to train: the graph has no trainable variable"));
        }
        Ok(trainable)
    }

    fn counter(&self) -> Result<Option<VarId>> {
        self.global_step.as_ref().map(counter).transpose()
    }
}

impl From<&Tensor> for Minimize {
    fn from(loss: &Tensor) -> Minimize {
        Minimize::new(loss)
    }
}

impl Optimizer {
    /// Creates an optimizer from a rule and a learning rate: a number or a [`Schedule`].
    pub fn new(rule: impl UpdateRule + 'static, rate: impl Into<Schedule>) -> Optimizer {
        Optimizer { rule: Arc::new(rule), rate: rate.into(), clip: None, lazy: false }
    }

    /// Creates the optimizer with this TensorFlow name (`SGD`, `Adagrad`, `Adam`, `Ftrl`,
    /// `RMSProp`, ...), with TensorFlow's defaults. Without `rate`, the learning rate is the rule's
    /// default.
    ///
    /// ```
    /// use estimand_graph::Optimizer;
    /// assert!(Optimizer::named("Adagrad", Some(0.05)).is_ok());
    /// assert!(Optimizer::named("Adagard", None).unwrap_err().to_string().contains("did you mean `Adagrad`?"));
    /// ```
    pub fn named(name: &str, rate: Option<f64>) -> Result<Optimizer> {
        // TF: the function argument is spelled with a capital P; the scope in a checkpoint is not.
        let wanted = if name == "RMSProp" { "RMSprop" } else { name };
        let rules = ALL_RULES.iter().map(|make| make());
        let Some(rule) = rules.clone().find(|rule| rule.name() == wanted) else {
            let names: Vec<&str> = rules.map(|rule| rule.name()).collect();
            return Err(Error::unknown("optimizer", name, names));
        };
        let rate = rate.unwrap_or_else(|| rule.default_learning_rate());
        Ok(Optimizer { rule: rule.into(), rate: rate.into(), clip: None, lazy: false })
    }

    /// Limits gradients. By default they are not limited.
    pub fn clip(mut self, clip: Clip) -> Optimizer {
        self.clip = Some(clip);
        self
    }

    /// Updates only rows that have a gradient. By default rows without a gradient decay where they
    /// do in TensorFlow (Adam, Nadam, RMSprop).
    pub fn lazy(mut self) -> Optimizer {
        self.lazy = true;
        self
    }

    /// Returns the train op, which changes the variables that the loss depends on. Fetch it to run
    /// a step.
    ///
    /// `what` is a loss, for all trainable variables, or a [`Minimize`] with more options.
    #[track_caller]
    pub fn minimize(&self, what: impl Into<Minimize>) -> Tensor {
        let site = Location::caller();
        let what = what.into();
        let graph = what.loss.graph();
        if what.loss.is_poisoned() {
            return graph.poison();
        }
        let parts = what.variable_ids().and_then(|variables| Ok((variables, what.counter()?)));
        let (variables, step) = match parts {
            Ok(parts) => parts,
            Err(error) => return graph.fail(error, site),
        };
        self.minimize_over(&what.loss, &variables, step, site)
    }

    fn minimize_over(
        &self,
        loss: &Tensor,
        variables: &[VarId],
        step: Option<VarId>,
        site: &'static Location<'static>,
    ) -> Tensor {
        let graph = loss.graph();
        if let Err(text) = self.rule.check().and_then(|()| self.rate.check()) {
            return graph.fail(Error::config(format!("{}: {text}", self.rule.name())), site);
        }
        let reads: Vec<Tensor> = variables.iter().map(|&id| graph.read(id, site)).collect();
        let found = gradients(loss, &reads.iter().collect::<Vec<_>>());
        let pairs: Vec<(VarId, Gradient)> =
            variables.iter().copied().zip(found).filter(|(_, gradient)| !matches!(gradient, Gradient::None)).collect();
        if pairs.is_empty() && graph.check().is_ok() {
            let e = Error::config(format!("the loss {} depends on none of the variables", loss.describe()));
            return graph
                .fail(e.help("check that the variables are used and that no stop_gradient cuts them off"), site);
        }
        self.apply_gradients(graph, pairs, step, site)
    }

    /// Returns the op that applies these gradients.
    fn apply_gradients(
        &self,
        graph: &Graph,
        pairs: Vec<(VarId, Gradient)>,
        step: Option<VarId>,
        site: &'static Location<'static>,
    ) -> Tensor {
        let scope = graph.unique(&graph.scoped(self.rule.name()));
        let iterations = VarSpec {
            name: format!("{scope}/iter"),
            dtype: DType::I64,
            dims: Default::default(),
            initializer: Initializer::Zeros,
            role: Role::Step,
            constraint: None,
            site,
        };
        let iterations = match step.map_or_else(|| graph.add_variable(iterations), Ok) {
            Ok(id) => id,
            Err(e) => return graph.fail(e, site),
        };
        let (rule, rate, lazy) = (self.rule.clone(), self.rate.clone(), self.lazy);
        let config = OptimizerConfig { rule, rate, lazy, iterations, scope: scope.clone() };
        let optimizer = graph.add_optimizer(config);
        let mut members = Vec::new();
        for (variable, gradient) in clipped(self.clip, pairs, site) {
            let slots = match self.add_slots(graph, variable, &scope, site) {
                Ok(slots) => slots,
                Err(e) => return graph.fail(e, site),
            };
            let op = Apply { variable, optimizer, slots };
            members.push(match &gradient {
                Gradient::None => continue,
                Gradient::Dense(g) => graph.node(op, &[g], site),
                Gradient::Rows { indices, values } => graph.node(op, &[&indices.cast(DType::I64), values], site),
            });
        }
        let count = graph.read(iterations, site);
        let next = count.binary(Binary::Add, &count.number(1.0, site), site);
        members.push(graph.node(Assign(iterations), &[&next], site));
        graph.node(Group, &members.iter().collect::<Vec<_>>(), site)
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
        if dtype != DType::F32 {
            return Err(Error::dtype(
                Some(DType::F32),
                dtype,
                format!("variable `{name}` is {dtype}; optimizers train f32"),
            ));
        }
        let add = |slot: estimand_update::Slot| {
            graph.add_variable(VarSpec {
                name: format!("{scope}/{name}/{}", slot.name),
                dtype,
                dims: dims.clone(),
                initializer: Initializer::Constant(slot.initial.into()),
                role: Role::Slot { of: variable },
                constraint: None,
                site,
            })
        };
        self.rule.slots().into_iter().map(add).collect()
    }
}

/// The variable that counts steps.
fn counter(step: &Tensor) -> Result<VarId> {
    step.variable()
        .filter(|_| step.dtype() == DType::I64 && step.rank() == 0)
        .ok_or_else(|| Error::config(format!("{} does not count steps; expected an i64 variable", step.describe())))
}

fn ids(variables: &[Tensor]) -> Result<Vec<VarId>> {
    let id = |t: &Tensor| {
        t.variable().ok_or_else(|| Error::config(format!("{} is trained, and is no variable", t.describe())))
    };
    variables.iter().map(id).collect()
}

/// Clips gradients as configured. A gradient of rows is clipped by its values, as TensorFlow's
/// IndexedSlices are.
fn clipped(
    clip: Option<Clip>,
    pairs: Vec<(VarId, Gradient)>,
    site: &'static Location<'static>,
) -> Vec<(VarId, Gradient)> {
    let Some(clip) = clip else { return pairs };
    let squares: Vec<Tensor> = pairs
        .iter()
        .filter_map(|(_, g)| g.values())
        .map(|g| g.unary(Unary::Square, site).reduce(Reduction::Sum, AxisSet::all(g.rank()), false, site))
        .collect();
    let global = squares.iter().cloned().reduce(|a, b| a.binary(Binary::Add, &b, site));
    let limit_norm = |g: &Tensor, square: &Tensor, limit: f64| {
        // TF: g * limit / max(norm, limit); a gradient of norm 0 is unchanged.
        let limit = g.number(limit, site);
        let norm = square.unary(Unary::Sqrt, site).binary(Binary::Maximum, &limit, site);
        g.binary(Binary::Mul, &limit.binary(Binary::Div, &norm, site), site)
    };
    pairs
        .into_iter()
        .zip(squares)
        .map(|((id, gradient), square)| {
            let limited = |g: &Tensor| match clip {
                Clip::Value(limit) => {
                    let (low, high) = (g.number(-limit, site), g.number(limit, site));
                    g.binary(Binary::Minimum, &high, site).binary(Binary::Maximum, &low, site)
                }
                Clip::Norm(limit) => limit_norm(g, &square, limit),
                Clip::GlobalNorm(limit) => limit_norm(g, global.as_ref().unwrap_or(&square), limit),
            };
            let gradient = match gradient {
                Gradient::Dense(g) => Gradient::Dense(limited(&g)),
                Gradient::Rows { indices, values } => Gradient::Rows { values: limited(&values), indices },
                Gradient::None => Gradient::None,
            };
            (id, gradient)
        })
        .collect()
}
