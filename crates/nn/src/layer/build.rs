//! The contexts that a layer's `build` and `call` receive, and `BuiltLayer`, the state between the
//! two.

use std::ops::RangeInclusive;
use std::sync::Arc;

use estimand_graph::{Graph, Initializer, Role, Scope, Tensor};
use estimand_tensor::{DType, Dim, Error};
use estimand_update::Constraint;

use super::inputs::INITIAL_STATE;
use super::{AsInputs, Layer, LayerInputs, name};
use crate::config::Dialect;
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
    children: Vec<(String, BuiltLayer)>,
}

impl BuiltLayer {
    /// Names the layer and makes its variables for inputs of these shapes.
    #[track_caller]
    pub fn new<L: Layer + ?Sized>(layer: &L, inputs: &LayerInputs) -> BuiltLayer {
        let graph = inputs.first().graph();
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
        let _scope = graph.reopen(&built.name);
        layer.build(&mut Build { inputs, built: &mut built });
        built
    }

    /// Computes the layer's result.
    #[track_caller]
    pub fn call<L: Layer + ?Sized>(&self, layer: &L, inputs: &LayerInputs) -> Tensor {
        layer.call(&self.open(inputs).call)
    }

    /// Computes all results of the layer.
    #[track_caller]
    pub fn call_all<L: Layer + ?Sized>(&self, layer: &L, inputs: &LayerInputs) -> Vec<Tensor> {
        layer.call_all(&self.open(inputs).call)
    }

    /// Opens the layer's scope and gives access to its variables while the result is computed.
    ///
    /// This is not a function with a closure argument, since a closure would hide the caller's
    /// line.
    pub fn open<'a>(&'a self, inputs: &'a LayerInputs) -> Open<'a> {
        // A layer inside another may have no scope of its own.
        let scope = (!self.name.is_empty()).then(|| inputs.first().graph().reopen(&self.name));
        let training = inputs.is_training();
        Open { call: LayerCall { inputs, training, built: self }, _scope: scope }
    }
}

/// A call together with the scope it runs in.
pub(crate) struct Open<'a> {
    pub call: LayerCall<'a>,
    _scope: Option<Scope>,
}

/// The context of a layer's `build`: the layer's input, and methods that make variables.
pub struct Build<'a> {
    inputs: &'a LayerInputs,
    built: &'a mut BuiltLayer,
}

impl Build<'_> {
    /// The input of the layer's first call; the first one, if there are several.
    pub fn input(&self) -> &Tensor {
        self.inputs.first()
    }

    /// All inputs of the layer's first call.
    pub fn inputs(&self) -> &[Tensor] {
        self.inputs.tensors()
    }

    /// The graph that the layer is built in.
    pub fn graph(&self) -> &Graph {
        self.input().graph()
    }

    /// The size of the input's last axis. It must be known.
    #[track_caller]
    pub fn channels(&self) -> usize {
        match self.input().shape().dims().last() {
            Some(Dim::Known(n)) => *n,
            _ => {
                let text = format!(
                    "layer `{}` got {}, whose last size is not known",
                    self.built.name,
                    self.input().describe()
                );
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

    /// Makes a whole number that begins at 0 and no optimizer changes.
    #[track_caller]
    pub(crate) fn count(&mut self, name: &'static str) {
        let role = Role::Model { trainable: false };
        let variable = self.graph().variable_with(name, DType::I64, [], Initializer::Zeros, role);
        self.built.weights.push((name, variable));
    }

    /// Builds a layer inside this one, for these inputs. Its variables are in the scope of this
    /// name, or in this layer's own scope if the name is empty. [`LayerCall::child`] calls it by
    /// its key.
    ///
    /// ```
    /// use estimand_graph::{Graph, Tensor};
    /// use estimand_nn::layer::{Build, Config, Layer, LayerCall};
    /// use estimand_nn::Dense;
    /// use estimand_tensor::{DType, Dim};
    ///
    /// /// `x + f(x)`, where f is a dense layer.
    /// #[derive(Debug)]
    /// struct Residual(Dense, Config);
    ///
    /// impl Layer for Residual {
    ///     fn kind(&self) -> &'static str {
    ///         "residual"
    ///     }
    ///     fn config(&self) -> &Config {
    ///         &self.1
    ///     }
    ///     fn build(&self, build: &mut Build<'_>) {
    ///         let x = build.input().clone();
    ///         build.child("inner", "dense", &self.0, &x);
    ///     }
    ///     fn call(&self, call: &LayerCall<'_>) -> Tensor {
    ///         call.input() + call.child("inner", &self.0, call.input())
    ///     }
    /// }
    ///
    /// let g = Graph::new();
    /// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    /// let y = Residual(Dense::new(4), Config::default()).apply(&x);
    /// assert!(g.body().variables().find("residual/dense/kernel").is_ok());
    /// # assert!(!y.is_poisoned());
    /// ```
    #[track_caller]
    pub fn child<L: Layer + ?Sized>(&mut self, key: &str, scope: &str, layer: &L, inputs: &dyn AsInputs) {
        let mut built = BuiltLayer {
            name: scope.to_string(),
            trainable: self.built.trainable && layer.config().trainable,
            defaults: self.built.defaults.clone(),
            weights: Vec::new(),
            children: Vec::new(),
        };
        let inputs = inputs.as_inputs();
        if inputs.check(layer).is_none() {
            let _scope = (!scope.is_empty()).then(|| self.graph().reopen(scope));
            layer.build(&mut Build { inputs: &inputs, built: &mut built });
        }
        self.built.children.push((key.to_string(), built));
    }

    /// Records an error unless the input has dtype f32, as weights do, and this number of axes.
    /// `form` shows the expected shape in the message.
    #[track_caller]
    pub(crate) fn takes(&self, ranks: RangeInclusive<usize>, form: &str) -> bool {
        let (rank, dtype) = (self.input().rank(), self.input().dtype());
        if !ranks.contains(&rank) {
            self.graph().error(rank_error(&self.built.name, self.input(), form));
        } else if dtype != DType::F32 {
            let text = format!("layer `{}` got {}; expected f32", self.built.name, self.input().describe());
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
    inputs: &'a LayerInputs,
    training: bool,
    built: &'a BuiltLayer,
}

impl LayerCall<'_> {
    /// The layer's input; the first one, if there are several.
    pub fn input(&self) -> &Tensor {
        self.inputs.first()
    }

    /// All inputs of the layer, in the caller's order.
    pub fn inputs(&self) -> &[Tensor] {
        self.inputs.tensors()
    }

    /// An input that the caller passed by name, if it did ([`Layer::named_inputs`]).
    pub fn named(&self, name: &str) -> Option<&Tensor> {
        self.inputs.get(name).first()
    }

    /// The generation of Keras whose rules hold.
    pub fn rules(&self) -> Dialect {
        self.inputs.rules()
    }

    /// The mask of an input, if it has one: booleans `[batch, time]`, false for steps that do not
    /// count.
    pub fn mask_of(&self, input: usize) -> Option<&Tensor> {
        self.inputs.mask_of(input)
    }

    /// The same variables with other inputs.
    pub(crate) fn with_inputs<'a>(&'a self, inputs: &'a LayerInputs) -> LayerCall<'a> {
        LayerCall { inputs, training: self.training, built: self.built }
    }

    /// The states that a recurrent layer begins with; none if the caller passed none.
    pub(crate) fn initial_state(&self) -> &[Tensor] {
        self.inputs.get(INITIAL_STATE)
    }

    /// Everything that the caller passed.
    pub(crate) fn all_inputs(&self) -> &LayerInputs {
        self.inputs
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
                self.input().graph().error(Error::config(error).help("make it in the layer's build"))
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
        match resolve_axis(self.input(), axis) {
            Some(axis) => Ok(axis),
            None => {
                let text =
                    format!("layer `{}` got {}, which has no axis {axis}", self.built.name, self.input().describe());
                Err(self.input().graph().error(Error::shape(text)))
            }
        }
    }

    /// Calls a layer that `build` has built inside this one, under its key.
    #[track_caller]
    pub fn child<L: Layer + ?Sized>(&self, key: &str, layer: &L, inputs: &dyn AsInputs) -> Tensor {
        let inputs = inputs.as_inputs().training_unless_set(self.training);
        if let Some(error) = inputs.check(layer) {
            return error;
        }
        match self.built_child(key) {
            Ok(built) => built.call(layer, &inputs),
            Err(error) => error,
        }
    }

    /// A layer that `build` has built inside this one, or the tensor that stands for the error.
    #[track_caller]
    pub(crate) fn built_child(&self, key: &str) -> Result<&BuiltLayer, Tensor> {
        match self.built.children.iter().find(|(k, _)| k == key) {
            Some((_, built)) => Ok(built),
            None => {
                let known: Vec<&str> = self.built.children.iter().map(|(key, _)| key.as_str()).collect();
                let text = format!("layer `{}` has no layer `{key}`; it was built with {known:?}", self.built.name);
                let error = Error::config(text).help("make it in the layer's build, with build.child");
                Err(self.input().graph().error(error))
            }
        }
    }

    /// Records an error unless the input has this number of axes.
    #[track_caller]
    pub(crate) fn expect_rank(&self, ranks: RangeInclusive<usize>, form: &str) -> Option<Tensor> {
        if ranks.contains(&self.input().rank()) {
            return None;
        }
        Some(self.input().graph().error(rank_error(&self.built.name, self.input(), form)))
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
