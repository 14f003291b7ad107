//! The state of a model's optimizer: the number of its updates, and its slots by weight.
//!
//! Slots are variables of the training step. A state that was read from a file waits here until
//! that step is built.

use std::collections::HashMap;

use estimand_graph::{Graph, Role};
use estimand_tensor::{Array, Result};

use super::model::Model;

/// A weight and the name of a slot, such as `dense/kernel` and `m`.
pub(super) type SlotOf = (String, String);

/// Where the state of an optimizer is.
#[derive(Default)]
pub(super) struct Slots {
    /// The variables of the training step.
    names: HashMap<SlotOf, String>,
    /// The variables of the training step that count updates.
    counters: Vec<String>,
    /// Values that no training step has asked for yet.
    waiting: HashMap<SlotOf, Array>,
    /// The number of updates, until a training step counts them.
    n_updates: Option<u64>,
}

impl Model {
    /// Takes the state of an optimizer, after `compile`.
    pub(super) fn restore_slots(&mut self, n_updates: u64, values: HashMap<SlotOf, Array>) {
        self.slots.n_updates = Some(n_updates);
        self.slots.waiting = values;
        self.weights.step = n_updates;
    }

    /// Finds the slots in the graph of a training step whose variables were added to the state, and
    /// gives them their restored values.
    pub(super) fn connect_slots(&mut self, graph: &Graph) -> Result<()> {
        self.slots.names.clear();
        self.slots.counters.clear();
        {
            let body = graph.body();
            for (_, spec) in body.variables().iter() {
                match spec.role {
                    Role::Slot { of } => {
                        let slot = spec.name.rsplit('/').next().unwrap_or_default().to_string();
                        let weight = body.variables().spec(of).name.clone();
                        self.slots.names.insert((weight, slot), spec.name.clone());
                    }
                    Role::Step => self.slots.counters.push(spec.name.clone()),
                    Role::Model { .. } | Role::Local => {}
                }
            }
        }
        if let Some(n) = self.slots.n_updates.take() {
            for counter in &self.slots.counters {
                self.weights.write(counter, &Array::scalar(n as i64))?;
            }
        }
        for (slot, name) in &self.slots.names {
            if let Some(value) = self.slots.waiting.remove(slot) {
                self.weights.write(name, &value)?;
            }
        }
        Ok(())
    }

    /// The number of updates that the optimizer has made.
    pub(super) fn n_updates(&self) -> Result<u64> {
        if let Some(n) = self.slots.n_updates {
            return Ok(n);
        }
        match self.slots.counters.first() {
            Some(counter) => Ok(self.weights.read(counter)?.item::<i64>()?.max(0) as u64),
            None => Ok(0),
        }
    }

    /// The value of a slot. There is none before the first step, and for a weight without a
    /// gradient.
    pub(super) fn slot_value(&self, slot: &SlotOf) -> Result<Option<Array>> {
        match (self.slots.names.get(slot), self.slots.waiting.get(slot)) {
            (Some(name), _) => self.weights.read(name).map(Some),
            (None, value) => Ok(value.cloned()),
        }
    }

    /// Drops restored values that no training step has asked for: others take their place.
    pub(super) fn drop_waiting_slots(&mut self) {
        self.slots.waiting.clear();
        self.slots.n_updates = None;
    }

    /// Forgets the state of the optimizer, which another one replaces.
    pub(super) fn forget_slots(&mut self) {
        self.slots = Slots::default();
    }
}
