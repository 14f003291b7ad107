//! `Shared`: one layer used in several places, with the same weights.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::build::BuiltLayer;
use super::{AsInputs, Layer, LayerInputs};

/// A layer that is built once, at its first `apply`, and may be applied many times.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Dense, Shared};
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
/// It is not a layer itself, because it holds the weights of one graph. Create it inside the model
/// function: using it in another graph is an error.
#[derive(Clone, Debug)]
pub struct Shared {
    layer: Arc<dyn Layer>,
    built: Rc<RefCell<Option<(Tensor, BuiltLayer)>>>,
}

impl Shared {
    /// Wraps a layer. Clones of the result share the weights too.
    pub fn new(layer: impl Layer + 'static) -> Shared {
        Shared { layer: Arc::new(layer), built: Rc::default() }
    }

    /// Computes the layer's result. The first call makes the variables.
    #[track_caller]
    pub fn apply(&self, inputs: &dyn AsInputs) -> Tensor {
        let inputs = inputs.as_inputs();
        match self.built_for(&inputs) {
            Ok(built) => built.call(&*self.layer, &inputs),
            Err(error) => error,
        }
    }

    /// Computes all results of a layer that has several; see [`Layer::call_all`]. A mistake gives
    /// one tensor that stands for it.
    #[track_caller]
    pub fn apply_all(&self, inputs: &dyn AsInputs) -> Vec<Tensor> {
        let inputs = inputs.as_inputs();
        match self.built_for(&inputs) {
            Ok(built) => built.call_all(&*self.layer, &inputs),
            Err(error) => vec![error],
        }
    }

    /// Makes the variables at the first call. The error is the tensor that stands for it.
    #[track_caller]
    fn built_for(&self, inputs: &LayerInputs) -> Result<BuiltLayer, Tensor> {
        if let Some(error) = inputs.check(&*self.layer) {
            return Err(error);
        }
        let x = inputs.first();
        let _line = x.graph().line(Location::caller(), file!());
        let earlier = self.built.borrow().clone();
        // No closure here: it would hide the caller's line.
        let (first, built) = match earlier {
            Some(earlier) => earlier,
            None => (x.clone(), BuiltLayer::new(&*self.layer, inputs)),
        };
        if !first.graph().same(x.graph()) {
            let text = format!(
                "a shared {} is applied to {}, but it was built in another graph",
                self.layer.kind(),
                x.describe()
            );
            return Err(x
                .graph()
                .error(Error::config(text).help("make it with Shared::new inside the model function")));
        }
        *self.built.borrow_mut() = Some((first, built.clone()));
        Ok(built)
    }
}
