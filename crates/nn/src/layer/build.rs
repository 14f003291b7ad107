//! The contexts that a layer's `build` and `call` receive, and `BuiltLayer`, the state between the
//! two.

use std::ops::RangeInclusive;
use std::sync::Arc;

use estimand_graph::{Graph, Initializer, Role, Scope, Tensor};
use estimand_tensor::{DType, Dim, Error};
use estimand_update::Constraint;

use super::{Layer, name};
use crate::defaults::Defaults;
use crate::regularizer::Regularizer;

/// A layer's variables and the defaults it was built under. All calls of the layer share them.
#[derive(Clone, Debug)]
pub(crate) struct BuiltLayer {
    name: String,
    trainable: bool,
    defaults: Defaults,
    weights: Vec<(&'static str, Tensor)>,
    /// Layers inside this one, by key.
    children: Vec<(&'static str, BuiltLayer)>,
}

impl BuiltLayer {
    /// Names the layer and makes its variables for an input of this shape.
    #[track_caller]
    pub fn new<L: Layer + ?Sized>(layer: &L, x: &Tensor) -> BuiltLayer {
        let graph = x.graph();
        let config = layer.config();
        let name = match &config.name {
            Some(given) => {
                name::given(graph, given);
                given.clone()
            }
            None => name::made(graph, layer.kind()),
        };
        let mut built = BuiltLayer {
            name,
            trainable: config.trainable,
            defaults: Defaults::of(graph),
            weights: Vec::new(),
            children: Vec::new(),
        };
        // A poisoned input has no shape to build for; the graph has already recorded the error.
        if !x.is_poisoned() {
            let _scope = graph.reopen(&built.name);
            layer.build(&mut Build { x, built: &mut built });
        }
        built
    }

    /// Computes the layer's result for an input.
    #[track_caller]
    pub fn call<L: Layer + ?Sized>(&self, layer: &L, x: &Tensor, training: bool) -> Tensor {
        match self.open(x, training) {
            Some(open) => layer.call(&open.call),
            None => x.clone(),
        }
    }

    /// Opens the layer's scope and gives access to its variables while the result is computed.
    /// Returns `None` if the input stands for an error.
    ///
    /// This is not a function with a closure argument, since a closure would hide the caller's
    /// line.
    pub fn open<'a>(&'a self, x: &'a Tensor, training: bool) -> Option<Open<'a>> {
        if x.is_poisoned() {
            return None;
        }
        // A layer inside another may have no scope of its own.
        let scope = (!self.name.is_empty()).then(|| x.graph().reopen(&self.name));
        Some(Open { call: LayerCall { x, training, built: self }, _scope: scope })
    }
}

/// A call together with the scope it runs in.
pub(crate) struct Open<'a> {
    pub call: LayerCall<'a>,
    _scope: Option<Scope>,
}

/// The context of a layer's `build`: the layer's input, and methods that make variables.
pub struct Build<'a> {
    x: &'a Tensor,
    built: &'a mut BuiltLayer,
}

impl Build<'_> {
    /// The input of the layer's first call.
    pub fn input(&self) -> &Tensor {
        self.x
    }

    /// The graph that the layer is built in.
    pub fn graph(&self) -> &Graph {
        self.x.graph()
    }

    /// The size of the input's last axis. It must be known.
    #[track_caller]
    pub fn channels(&self) -> usize {
        match self.x.shape().dims().last() {
            Some(Dim::Known(n)) => *n,
            _ => {
                let text =
                    format!("layer `{}` got {}, whose last size is not known", self.built.name, self.x.describe());
                let help = "declare the size of the placeholder's last axis, or reshape: variables need known sizes";
                self.graph().error(Error::shape(text).help(help));
                1
            }
        }
    }

    /// The options of the enclosing scopes.
    pub fn defaults(&self) -> &Defaults {
        &self.built.defaults
    }

    /// Makes a variable that optimizers change, unless the layer is frozen.
    #[track_caller]
    pub fn weight(
        &mut self,
        name: &'static str,
        dims: &[usize],
        initializer: Initializer,
        regularizer: Option<Regularizer>,
    ) {
        let weight = self.variable(name, dims, initializer, self.built.trainable);
        if let Some(regularizer) = regularizer {
            self.graph().add_regularization_loss(&regularizer.loss(&weight));
        }
    }

    /// Sets the constraint of a variable that was made before. It holds after every update.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use estimand_graph::{Initializer, Tensor};
    /// use estimand_nn::layer::{Build, Config, Layer, LayerCall};
    /// use estimand_update::NonNeg;
    ///
    /// /// Positive weights of the channels.
    /// #[derive(Debug, Default)]
    /// struct Weigh(Config);
    ///
    /// impl Layer for Weigh {
    ///     fn kind(&self) -> &'static str {
    ///         "weigh"
    ///     }
    ///     fn config(&self) -> &Config {
    ///         &self.0
    ///     }
    ///     fn build(&self, build: &mut Build<'_>) {
    ///         build.weight("w", &[build.channels()], Initializer::Ones, None);
    ///         build.constrain("w", Arc::new(NonNeg));
    ///     }
    ///     fn call(&self, call: &LayerCall<'_>) -> Tensor {
    ///         call.input() * call.weight("w")
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn constrain(&self, name: &str, constraint: Arc<dyn Constraint>) {
        match self.built.weights.iter().find(|(n, _)| *n == name) {
            Some((_, weight)) => self.graph().constrain(weight, constraint),
            None => {
                let text =
                    format!("constraint {} is for weight `{name}`, which the layer has not made", constraint.name());
                self.refuse(Error::config(text).help("make the weight with build.weight(..) first"));
            }
        }
    }

    /// Makes a variable that no optimizer changes.
    #[track_caller]
    pub fn statistic(&mut self, name: &'static str, dims: &[usize], initializer: Initializer) {
        self.variable(name, dims, initializer, false);
    }

    /// Builds a layer inside this one, for the same input. Its variables are in the scope of this
    /// name, or in this layer's own scope if the name is empty.
    #[track_caller]
    pub(crate) fn child<L: Layer + ?Sized>(&mut self, key: &'static str, scope: &str, layer: &L) {
        self.child_for(key, scope, layer, &self.x.clone());
    }

    /// Like [`Build::child`], for another input.
    #[track_caller]
    pub(crate) fn child_for<L: Layer + ?Sized>(&mut self, key: &'static str, scope: &str, layer: &L, x: &Tensor) {
        let mut built = BuiltLayer {
            name: scope.to_string(),
            trainable: self.built.trainable && layer.config().trainable,
            defaults: self.built.defaults.clone(),
            weights: Vec::new(),
            children: Vec::new(),
        };
        if !x.is_poisoned() {
            let _scope = (!scope.is_empty()).then(|| self.graph().reopen(scope));
            layer.build(&mut Build { x, built: &mut built });
        }
        self.built.children.push((key, built));
    }

    /// Records an error unless the input has dtype f32, as weights do, and this number of axes.
    /// `form` shows the expected shape in the message.
    #[track_caller]
    pub(crate) fn takes(&self, ranks: RangeInclusive<usize>, form: &str) -> bool {
        let (rank, dtype) = (self.x.rank(), self.x.dtype());
        if !ranks.contains(&rank) {
            self.graph().error(rank_error(&self.built.name, self.x, form));
        } else if dtype != DType::F32 {
            let text = format!("layer `{}` got {}; expected f32", self.built.name, self.x.describe());
            let error = Error::dtype(Some(DType::F32), dtype, text);
            self.graph().error(error.help("call .cast(DType::F32), or use an Embedding for ids"));
        }
        ranks.contains(&rank) && dtype == DType::F32
    }

    /// Records an error about the layer's own options.
    #[track_caller]
    pub(crate) fn refuse(&self, error: Error) {
        self.graph().error(error.context(format!("in layer `{}`", self.built.name)));
    }

    #[track_caller]
    fn variable(&mut self, name: &'static str, dims: &[usize], initializer: Initializer, trainable: bool) -> Tensor {
        let variable = self.graph().variable_with(name, DType::F32, dims, initializer, Role::Model { trainable });
        self.built.weights.push((name, variable.clone()));
        variable
    }
}

/// The context of a layer's `call`: the layer's input, its variables, and whether this is training.
pub struct LayerCall<'a> {
    x: &'a Tensor,
    training: bool,
    built: &'a BuiltLayer,
}

impl LayerCall<'_> {
    /// The layer's input.
    pub fn input(&self) -> &Tensor {
        self.x
    }

    /// Whether to compute as in training.
    pub fn training(&self) -> bool {
        self.training
    }

    /// Whether optimizers change the layer's weights.
    pub fn trainable(&self) -> bool {
        self.built.trainable
    }

    /// The options of the enclosing scopes when the layer was built.
    pub fn defaults(&self) -> &Defaults {
        &self.built.defaults
    }

    /// A variable that `build` made.
    #[track_caller]
    pub fn weight(&self, name: &str) -> Tensor {
        match self.find(name) {
            Some(weight) => weight.clone(),
            None => {
                let known: Vec<&str> = self.built.weights.iter().map(|(name, _)| *name).collect();
                let error = format!("layer `{}` has no weight `{name}`; it was built with {known:?}", self.built.name);
                self.x.graph().error(Error::config(error).help("make it in the layer's build"))
            }
        }
    }

    /// A variable, if `build` has made it.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        self.built.weights.iter().find(|(n, _)| *n == name).map(|(_, weight)| weight)
    }

    /// Resolves an axis of the input, counted from the end if negative. Returns the error's tensor
    /// if there is no such axis.
    #[track_caller]
    pub(crate) fn axis(&self, axis: i64) -> Result<usize, Tensor> {
        match resolve_axis(self.x, axis) {
            Some(axis) => Ok(axis),
            None => {
                let text = format!("layer `{}` got {}, which has no axis {axis}", self.built.name, self.x.describe());
                Err(self.x.graph().error(Error::shape(text)))
            }
        }
    }

    /// A layer that `build` has built inside this one.
    pub(crate) fn child(&self, key: &str) -> Option<&BuiltLayer> {
        self.built.children.iter().find(|(k, _)| *k == key).map(|(_, built)| built)
    }

    /// Records an error unless the input has this number of axes.
    #[track_caller]
    pub(crate) fn expect_rank(&self, ranks: RangeInclusive<usize>, form: &str) -> Option<Tensor> {
        if ranks.contains(&self.x.rank()) {
            return None;
        }
        Some(self.x.graph().error(rank_error(&self.built.name, self.x, form)))
    }
}

fn rank_error(layer: &str, x: &Tensor, form: &str) -> Error {
    Error::shape(format!("layer `{layer}` got {}; expected {form}", x.describe()))
}

/// Resolves an axis of a tensor, counted from the end if negative.
pub(crate) fn resolve_axis(x: &Tensor, axis: i64) -> Option<usize> {
    let axis = if axis < 0 { axis + x.rank() as i64 } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < x.rank())
}

/// The sizes of a shape with the last axis replaced.
pub(super) fn with_last(x: &Tensor, size: usize) -> estimand_tensor::Shape {
    let mut shape = x.shape().clone();
    if let Some(last) = shape.0.last_mut() {
        *last = Dim::Known(size);
    }
    shape
}
