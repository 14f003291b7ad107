//! What a layer sees while it is built and called, and what is left of it in between: `BuiltLayer`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use estimand_graph::{Graph, Initializer, Role, Scope, Tensor};
use estimand_tensor::{DType, Dim, Error};
use estimand_update::Constraint;

use super::{Layer, name};
use crate::defaults::Defaults;
use crate::regularizer::Regularizer;

/// A layer's variables, and the defaults it was built under: all that calls of it share.
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
    /// Names the layer and makes its variables for an input like this one.
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
        // After an error there is no shape to build for; the graph has it already.
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

    /// The layer's variables and its scope, for as long as something is computed; `None` for an
    /// input that stands for an error.
    ///
    /// Not a function that takes what to compute: a closure would hide the caller's line.
    pub fn open<'a>(&'a self, x: &'a Tensor, training: bool) -> Option<Open<'a>> {
        if x.is_poisoned() {
            return None;
        }
        // A layer inside another may have no scope of its own.
        let scope = (!self.name.is_empty()).then(|| x.graph().reopen(&self.name));
        Some(Open { call: LayerCall { x, training, built: self }, _scope: scope })
    }
}

/// A call with the scope it happens in.
pub(crate) struct Open<'a> {
    pub call: LayerCall<'a>,
    _scope: Option<Scope>,
}

/// What a layer's `build` gets: its input, and the means to make variables.
pub struct Build<'a> {
    x: &'a Tensor,
    built: &'a mut BuiltLayer,
}

impl Build<'_> {
    /// What the layer is first called with.
    pub fn input(&self) -> &Tensor {
        self.x
    }

    /// The graph it is built in.
    pub fn graph(&self) -> &Graph {
        self.x.graph()
    }

    /// The size of the input's last axis, which must be known.
    #[track_caller]
    pub fn channels(&self) -> usize {
        match self.x.shape().dims().last() {
            Some(Dim::Known(n)) => *n,
            _ => {
                let text =
                    format!("layer `{}` got {}, whose last size is not known", self.built.name, self.x.describe());
                let help = "variables need sizes: declare the placeholder's last axis, or reshape";
                self.graph().error(Error::shape(text).help(help));
                1
            }
        }
    }

    /// The options of the scopes around the layer.
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

    /// Says what a variable that was made before must be like after every update.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use estimand_graph::{Initializer, Tensor};
    /// use estimand_nn::layer::{Build, Call, Config, Layer};
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
    ///     fn call(&self, call: &Call<'_>) -> Tensor {
    ///         call.input() * call.weight("w")
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn constrain(&self, name: &str, constraint: Arc<dyn Constraint>) {
        match self.built.weights.iter().find(|(n, _)| *n == name) {
            Some((_, weight)) => self.graph().constrain(weight, constraint),
            None => {
                let text = format!("{} for a weight `{name}`, which was not made", constraint.name());
                self.refuse(Error::config(text).help("make it with build.weight before"));
            }
        }
    }

    /// Makes a variable that no optimizer changes.
    #[track_caller]
    pub fn statistic(&mut self, name: &'static str, dims: &[usize], initializer: Initializer) {
        self.variable(name, dims, initializer, false);
    }

    /// Builds a layer inside this one, for the same input; its variables are in the scope of this
    /// name, or in this layer's own if it is empty.
    #[track_caller]
    pub(crate) fn child<L: Layer + ?Sized>(&mut self, key: &'static str, scope: &str, layer: &L) {
        self.child_for(key, scope, layer, &self.x.clone());
    }

    /// As [`Build::child`], for another input.
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

    /// Records an error unless the input is of f32, as weights are, and has this many axes; `form`
    /// shows what is expected.
    #[track_caller]
    pub(crate) fn takes(&self, ranks: RangeInclusive<usize>, form: &str) -> bool {
        let (rank, dtype) = (self.x.rank(), self.x.dtype());
        if !ranks.contains(&rank) {
            self.graph().error(rank_error(&self.built.name, self.x, form));
        } else if dtype != DType::F32 {
            let text = format!("layer `{}` got {}; expected f32", self.built.name, self.x.describe());
            let error = Error::dtype(Some(DType::F32), dtype, text);
            self.graph().error(error.help("use .cast(DType::F32), or an Embedding for ids"));
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

/// What a layer's `call` gets: its input, its variables, and whether this is training.
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

    /// The options of the scopes around the layer when it was built.
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

    /// A variable that `build` may have made.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        self.built.weights.iter().find(|(n, _)| *n == name).map(|(_, weight)| weight)
    }

    /// An axis of the input, counted from the end if negative, or the tensor that stands for the
    /// error.
    #[track_caller]
    pub(crate) fn axis(&self, axis: i64) -> Result<usize, Tensor> {
        match resolve_axis(self.x, axis) {
            Some(axis) => Ok(axis),
            None => {
                let text = format!("layer `{}`: axis {axis} of {}", self.built.name, self.x.describe());
                Err(self.x.graph().error(Error::shape(text)))
            }
        }
    }

    /// A layer that `build` has built inside this one.
    pub(crate) fn child(&self, key: &str) -> Option<&BuiltLayer> {
        self.built.children.iter().find(|(k, _)| *k == key).map(|(_, built)| built)
    }

    /// Records an error about the input's axes unless there are this many.
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

/// The axis among a tensor's, counted from the end if negative.
pub(crate) fn resolve_axis(x: &Tensor, axis: i64) -> Option<usize> {
    let axis = if axis < 0 { axis + x.rank() as i64 } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < x.rank())
}

/// The sizes of a shape with one axis replaced.
pub(super) fn with_last(x: &Tensor, size: usize) -> estimand_tensor::Shape {
    let mut shape = x.shape().clone();
    if let Some(last) = shape.0.last_mut() {
        *last = Dim::Known(size);
    }
    shape
}
