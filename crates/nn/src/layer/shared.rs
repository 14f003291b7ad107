//! `Shared`: one layer used in several places, with the same weights.

use std::cell::RefCell;
use std::rc::Rc;

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::build::BuiltLayer;
use super::{Config, Layer, LayerCall};

/// A layer that is built once, at its first `apply`, and may be applied many times.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Dense, Layer, Shared};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let left = g.placeholder("left", DType::F32, [Dim::BATCH, 4.into()]);
/// let right = g.placeholder("right", DType::F32, [Dim::BATCH, 4.into()]);
/// let tower = Shared::new(Dense::new(3));
/// let distance = (tower.apply(&left) - tower.apply(&right)).square();
/// assert_eq!(g.body().variables().len(), 2);
/// # assert!(!distance.is_poisoned());
/// ```
///
/// Create it inside the model function: its weights belong to one graph, and using it in another
/// graph is an error.
#[derive(Clone, Debug)]
pub struct Shared {
    layer: Rc<dyn Layer>,
    built: Rc<RefCell<Option<(Tensor, BuiltLayer)>>>,
}

impl Shared {
    /// Wraps a layer. Clones of the result share the weights too.
    pub fn new(layer: impl Layer + 'static) -> Shared {
        Shared { layer: Rc::new(layer), built: Rc::default() }
    }
}

impl Layer for Shared {
    fn kind(&self) -> &'static str {
        self.layer.kind()
    }

    fn config(&self) -> &Config {
        self.layer.config()
    }

    /// Calls the layer inside another layer. It keeps its own weights.
    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.apply_training(call.input(), call.training())
    }

    fn apply_training(&self, x: &Tensor, training: bool) -> Tensor {
        if x.is_poisoned() {
            return x.clone();
        }
        let earlier = self.built.borrow().clone();
        // No closure here: it would hide the caller's line.
        let (first, built) = match earlier {
            Some(earlier) => earlier,
            None => (x.clone(), BuiltLayer::new(&*self.layer, x)),
        };
        if !first.graph().same(x.graph()) {
            let text =
                format!("a shared {} is applied to {}, but it was built in another graph", self.kind(), x.describe());
            return x.graph().error(Error::config(text).help("make it with Shared::new inside the model function"));
        }
        let y = built.call(&*self.layer, x, training);
        *self.built.borrow_mut() = Some((first, built));
        y
    }
}
