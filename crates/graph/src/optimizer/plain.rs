//! A train op made of plain nodes, for graphs that leave this library.
//!
//! A training runs one `Apply` for each variable, which calls the kernel of the rule. TensorFlow
//! does not have these ops. This file writes the same updates with the nodes of `symbolic.rs` and
//! assignments. A rule that needs whole variables (Adafactor) has no kernel and trains with them.

use std::collections::{BTreeMap, HashSet};
use std::panic::Location;

use estimand_tensor::{DType, Error, Result};

use super::{Apply, OptimizerConfig};
use crate::Initializer;
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::op::{Assign, Group, Op};
use crate::symbolic::{SymbolicScalars, symbolic_projection};
use crate::tensor::Tensor;
use crate::value::{NodeId, Value};
use crate::variables::{Role, VarSpec};

type Site = &'static Location<'static>;

impl Graph {
    /// Returns an op that does the same as a train op, without the update rules' kernels: each
    /// update becomes the nodes of its formula and assignments. TensorFlow has all of these ops.
    ///
    /// Nadam carries a number from step to step. It gets a variable under the name that it has in a
    /// checkpoint. A rule or a constraint that is written for slices alone is an error that names
    /// it.
    ///
    /// ```
    /// use estimand_engine::Session;
    /// use estimand_graph::{Graph, Initializer, Optimizer};
    /// use estimand_update::Sgd;
    ///
    /// let g = Graph::new();
    /// let w = g.variable("w", [], Initializer::Ones);
    /// let train = Optimizer::new(Sgd::default(), 0.25).minimize(&w.square());
    /// let plain = g.plain_train_op(&train)?;
    /// let mut session = Session::new(&g)?;
    /// session.run(&[&plain], &[])?;
    /// // 1 - 0.25 * 2.
    /// assert_eq!(session.value("w")?.item::<f32>()?, 0.5);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn plain_train_op(&self, train_op: &Tensor) -> Result<Tensor> {
        let site = Location::caller();
        if !train_op.graph().same(self) {
            return Err(Error::config(format!("the train op {} belongs to another graph", train_op.describe())));
        }
        self.check()?;
        let (mut members, mut scalars) = (Vec::new(), BTreeMap::new());
        for (node, op) in self.effects(train_op) {
            match op {
                Op::Apply(apply) => members.extend(self.plain_update(node, &apply, &mut scalars, site)?),
                _ => members.push(self.tensor(Value { node, output: 0 })),
            }
        }
        let plain = self.node(Group, &members.iter().collect::<Vec<_>>(), site);
        self.check()?;
        Ok(plain)
    }

    /// The members of a train op and of the groups in it, in order.
    fn effects(&self, train_op: &Tensor) -> Vec<(NodeId, Op)> {
        let body = self.body();
        let (mut found, mut seen, mut stack) = (Vec::new(), HashSet::new(), vec![train_op.value().node]);
        while let Some(id) = stack.pop() {
            let node = body.node(id);
            match &node.op {
                _ if !seen.insert(id) => {}
                Op::Group(_) => stack.extend(node.inputs.iter().rev().map(|value| value.node)),
                op => found.push((id, op.clone())),
            }
        }
        found
    }

    /// The assignments of one update. The scalars of an optimizer are computed once.
    fn plain_update(
        &self,
        node: NodeId,
        apply: &Apply,
        scalars: &mut BTreeMap<u32, SymbolicScalars>,
        site: Site,
    ) -> Result<Vec<Tensor>> {
        let (config, name, inputs) = {
            let body = self.body();
            let config = body.optimizers()[apply.optimizer.0 as usize].clone();
            (config, body.variables().spec(apply.variable).name.clone(), body.node(node).inputs.clone())
        };
        let place = |e: Error| e.context(format!("in the update of variable `{name}`"));
        let mut members = Vec::new();
        let scalars = match scalars.get(&apply.optimizer.0) {
            Some(known) => known.clone(),
            None => {
                let (new, carried) = self.plain_scalars(&config, site).map_err(place)?;
                members.extend(carried);
                scalars.insert(apply.optimizer.0, new.clone());
                new
            }
        };
        let gradient = match inputs[..] {
            [indices, values] => Gradient::Rows { indices: self.tensor(indices), values: self.tensor(values) },
            [gradient] => Gradient::Dense(self.tensor(gradient)),
            _ => return Err(place(Error::internal(format!("an update with {} inputs", inputs.len())))),
        };
        members.extend(self.assignments(&config, &scalars, apply, &gradient, site)?);
        Ok(members)
    }

    /// The assignments of one update: the variable with its constraint, and the slots.
    pub(super) fn assignments(
        &self,
        config: &OptimizerConfig,
        scalars: &SymbolicScalars,
        apply: &Apply,
        gradient: &Gradient,
        site: Site,
    ) -> Result<Vec<Tensor>> {
        let spec = self.body().variables().spec(apply.variable).clone();
        let place = |e: Error| e.context(format!("in the update of variable `{}`", spec.name));
        let slots: Vec<Tensor> = apply.slots.iter().map(|&slot| self.read(slot, site)).collect();
        let weights = self.read(apply.variable, site);
        let update = config.symbolic().map_err(place)?;
        let mut new = update.update(&scalars.scalars, &weights, gradient, &slots).map_err(place)?;
        if let Some(constraint) = &spec.constraint {
            new.weights = symbolic_projection(&**constraint, &new.weights).map_err(place)?;
        }
        let mut members = vec![self.node(Assign(apply.variable), &[&new.weights], site)];
        let slots = apply.slots.iter().zip(&new.slots);
        members.extend(slots.map(|(&slot, value)| self.node(Assign(slot), &[value], site)));
        Ok(members)
    }

    /// The scalars of a step, and the assignment of the carried one.
    pub(super) fn plain_scalars(
        &self,
        config: &OptimizerConfig,
        site: Site,
    ) -> Result<(SymbolicScalars, Option<Tensor>)> {
        let update = config.symbolic()?;
        let carried = update.carried().map(|slot| {
            self.add_variable(VarSpec {
                name: format!("{}/{}", config.scope, slot.name),
                dtype: DType::F32,
                dims: Default::default(),
                initializer: Initializer::Constant(slot.initial.into()),
                role: Role::Model { trainable: false },
                constraint: None,
                site,
            })
        });
        let carried = carried.transpose()?;
        let before = carried.map(|id| self.read(id, site));
        let rate = config.rate_variable.map(|id| self.read(id, site));
        let step = self.read(config.iterations, site);
        let scalars = update.scalars_at(&step, rate.as_ref(), before.as_ref())?;
        let assigned = carried.zip(scalars.carried.as_ref()).map(|(id, after)| self.node(Assign(id), &[after], site));
        Ok((scalars, assigned))
    }
}
