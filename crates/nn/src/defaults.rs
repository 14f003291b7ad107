//! Options for all layers of a scope, as slim's `arg_scope` sets them.

use std::cell::RefCell;

use estimand_graph::{Graph, Initializer};

use crate::activation::Activation;
use crate::regularizer::Regularizer;

/// Options for layers that do not set their own.
///
/// ```
/// use estimand_graph::{Graph, Initializer};
/// use estimand_nn::{Activation, Defaults, Dense, Layer, Regularizer};
/// use estimand_tensor::{DType, Dim};
///
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
/// let defaults = Defaults::new().kernel_initializer(Initializer::HeNormal).regularizer(Regularizer::l2(1e-4)).activation(Activation::Relu);
/// let logits = defaults.scope(&g, || {
///     let hidden = Dense::new(16).apply(&Dense::new(16).apply(&x));
///     Dense::new(3).linear().apply(&hidden)
/// });
/// assert_eq!(g.regularization_losses().len(), 3);
/// # assert!(!logits.is_poisoned());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Defaults {
    pub(crate) kernel_initializer: Option<Initializer>,
    pub(crate) bias_initializer: Option<Initializer>,
    pub(crate) kernel_regularizer: Option<Regularizer>,
    pub(crate) bias_regularizer: Option<Regularizer>,
    pub(crate) activation: Option<Activation>,
}

impl Defaults {
    /// Creates an empty set of defaults: every layer uses its own.
    pub fn new() -> Defaults {
        Defaults::default()
    }

    /// The initializer of kernels. Without it, a layer uses Glorot's uniform distribution.
    pub fn kernel_initializer(mut self, initializer: Initializer) -> Defaults {
        self.kernel_initializer = Some(initializer);
        self
    }

    /// The initializer of biases. Without it, a layer's biases start at 0.
    pub fn bias_initializer(mut self, initializer: Initializer) -> Defaults {
        self.bias_initializer = Some(initializer);
        self
    }

    /// The penalty on kernels. Without it, a layer has none.
    pub fn regularizer(mut self, regularizer: Regularizer) -> Defaults {
        self.kernel_regularizer = Some(regularizer);
        self
    }

    /// The penalty on biases. Without it, a layer has none.
    pub fn bias_regularizer(mut self, regularizer: Regularizer) -> Defaults {
        self.bias_regularizer = Some(regularizer);
        self
    }

    /// The activation after a product or convolution. Without it, a layer has none. `.linear()` on
    /// a layer overrides this default.
    pub fn activation(mut self, activation: Activation) -> Defaults {
        self.activation = Some(activation);
        self
    }

    /// Runs `build` with these defaults. Options that are not set here come from the enclosing
    /// scopes.
    pub fn scope<T>(&self, graph: &Graph, build: impl FnOnce() -> T) -> T {
        let outer = Defaults::of(graph);
        graph.attachment::<Stack>().0.borrow_mut().push(self.clone().or(outer));
        // Closes the scope even if `build` panics and the caller continues with the graph.
        let _open = Open(graph);
        build()
    }

    /// The options of the open scopes. Inner scopes override outer ones.
    pub(crate) fn of(graph: &Graph) -> Defaults {
        graph.attachment::<Stack>().0.borrow().last().cloned().unwrap_or_default()
    }

    /// Fills options that are not set here from `outer`.
    pub(crate) fn or(self, outer: Defaults) -> Defaults {
        Defaults {
            kernel_initializer: self.kernel_initializer.or(outer.kernel_initializer),
            bias_initializer: self.bias_initializer.or(outer.bias_initializer),
            kernel_regularizer: self.kernel_regularizer.or(outer.kernel_regularizer),
            bias_regularizer: self.bias_regularizer.or(outer.bias_regularizer),
            activation: self.activation.or(outer.activation),
        }
    }
}

/// The open scopes of a graph, each already merged with its enclosing scopes.
#[derive(Default)]
struct Stack(RefCell<Vec<Defaults>>);

struct Open<'a>(&'a Graph);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.attachment::<Stack>().0.borrow_mut().pop();
    }
}
