//! The mode a graph is built for, and the update ops and losses that its layers register.
//!
//! While a graph is built, layers register ops that belong to every training step (the moving
//! statistics of a batch normalisation) and terms of the loss (regularization). Both are plain
//! lists. A train loop fetches the updates together with the train op; a model adds the losses to
//! its own loss.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;

use estimand_tensor::{DType, Error, Mode};

use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::value::Value;

/// The part of a graph that programs do not contain.
#[derive(Default)]
pub(crate) struct BuildState {
    mode: Cell<Mode>,
    // Values, not tensors: a tensor holds its graph, and the graph would never be freed.
    updates: RefCell<Vec<Value>>,
    losses: RefCell<Vec<Value>>,
    attachments: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
}

impl Graph {
    /// An empty graph for training, evaluation or prediction. [`Graph::new`] is one for training.
    ///
    /// ```
    /// use estimand_graph::Graph;
    /// use estimand_tensor::Mode;
    /// assert_eq!(Graph::with_mode(Mode::Eval).mode(), Mode::Eval);
    /// assert_eq!(Graph::new().mode(), Mode::Train);
    /// ```
    pub fn with_mode(mode: Mode) -> Graph {
        let graph = Graph::new();
        graph.build_state().mode.set(mode);
        graph
    }

    /// Returns the mode this graph is built for. Layers that behave differently in training and in
    /// prediction check it.
    pub fn mode(&self) -> Mode {
        self.build_state().mode.get()
    }

    /// Registers an op that belongs to every training step, beside the train op.
    ///
    /// `Optimizer::minimize` does not run it: fetch [`Graph::updates`] together with the train op.
    /// An Estimator does so.
    #[track_caller]
    pub fn add_update(&self, update: &Tensor) {
        self.gather(&self.build_state().updates, update, "an update", Location::caller());
    }

    /// Returns the ops that belong to every training step, in the order they were added.
    pub fn updates(&self) -> Vec<Tensor> {
        self.build_state().updates.borrow().iter().map(|&v| self.tensor(v)).collect()
    }

    /// Registers a term that a regularizer adds to the loss. It is a single number.
    ///
    /// The term is not added automatically: a model adds [`Graph::regularization_loss`] to its
    /// loss.
    #[track_caller]
    pub fn add_regularization_loss(&self, loss: &Tensor) {
        let site = Location::caller();
        if loss.rank() != 0 {
            let error =
                Error::shape(format!("the regularization loss is {}; expected a single number", loss.describe()));
            self.record(error, site);
        } else {
            self.gather(&self.build_state().losses, loss, "a regularization loss", site);
        }
    }

    /// Returns the terms that regularizers add to the loss, in the order they were added.
    pub fn regularization_losses(&self) -> Vec<Tensor> {
        self.build_state().losses.borrow().iter().map(|&v| self.tensor(v)).collect()
    }

    /// Returns the sum of all regularization losses; 0 if there are none.
    #[track_caller]
    pub fn regularization_loss(&self) -> Tensor {
        let site = Location::caller();
        let sum = |a: Tensor, b: &Tensor| a.binary(estimand_tensor::Binary::Add, b, site);
        match &self.regularization_losses()[..] {
            [] => self.number(DType::F32, 0.0, site),
            [first, rest @ ..] => rest.iter().fold(first.clone(), sum),
        }
    }

    fn gather(&self, list: &RefCell<Vec<Value>>, tensor: &Tensor, what: &str, site: &'static Location<'static>) {
        if tensor.is_poisoned() {
            return;
        }
        match tensor.graph().same(self) {
            true => list.borrow_mut().push(tensor.value()),
            false => {
                self.record(Error::config(format!("{what} belongs to another graph: {}", tensor.describe())), site)
            }
        }
    }

    /// Returns the value of type `T` that another crate stores with this graph. The first call
    /// creates it; a graph holds one value of each type.
    pub fn attachment<T: Default + 'static>(&self) -> Rc<T> {
        let mut attachments = self.build_state().attachments.borrow_mut();
        let found = attachments.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default()));
        found.clone().downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_checked() {
        let g = Graph::new();
        g.add_update(&Graph::new().constant(1.0f32));
        assert!(g.check().unwrap_err().to_string().contains("an update belongs to another graph"));
        let g = Graph::new();
        g.add_regularization_loss(&g.constant([1.0f32, 2.0]));
        let text = g.check().unwrap_err().to_string();
        assert!(text.contains("expected a single number") && text.contains("build_state.rs:"), "{text}");
    }

    #[test]
    fn an_op_without_a_value_is_no_operand() {
        let sums: [fn(&Tensor); 3] = [
            |group| drop(group.sum()),
            |group| drop(crate::gradients(group, &[group])),
            |group| drop(crate::gradients(&group.graph().constant(1.0f32), &[group])),
        ];
        for use_value in sums {
            let g = Graph::new();
            use_value(&g.group(&[&g.constant(1.0f32)]));
            let text = g.check().unwrap_err().to_string();
            assert!(text.contains("which has no value: it runs for its effect"), "{text}");
        }
        let g = Graph::new();
        let _ = g.group(&[&g.group(&[])]);
        g.check().unwrap();
    }

    #[test]
    fn lists_do_not_keep_a_graph_alive() {
        let g = Graph::new();
        g.add_update(&g.constant(1.0f32));
        let witness = Rc::downgrade(&g.attachment::<Cell<u8>>());
        drop(g);
        assert!(witness.upgrade().is_none());
    }

    #[test]
    fn an_attachment_is_one_for_each_type() {
        let g = Graph::new();
        g.attachment::<Cell<u8>>().set(3);
        assert_eq!(g.clone().attachment::<Cell<u8>>().get(), 3);
        assert_eq!(g.attachment::<Cell<u16>>().get(), 0);
        assert_eq!(Graph::new().attachment::<Cell<u8>>().get(), 0);
    }
}
