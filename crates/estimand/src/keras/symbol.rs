//! Symbolic values: `Input`, the values that layers make of them, and layers that are used in
//! several places.
//!
//! A symbolic value remembers the layer and the values it came from. Nothing is computed and no
//! graph is kept: `recipe` turns the values into a plain list of calls.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand_graph::{Graph, Tensor};
use estimand_nn::Layer;
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::recipe::Recipe;
use super::replay::{self, Replay};
use super::sharing::Sharing;

/// An input of a model, without its batch axis: Keras' `Input`.
///
/// ```
/// use estimand::graph::Graph;
/// use estimand::keras::Input;
/// use estimand::prelude::*;
///
/// let image = Input::new([28, 28, 1]).name("image").tensor();
/// let words = Input::new([Graph::ANY]).dtype(DType::I64).tensor();
/// assert_eq!(image.shape().to_string(), "[batch, 28, 28, 1]");
/// # assert_eq!(words.dtype(), DType::I64);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Input {
    pub(super) name: Option<String>,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
}

impl Input {
    /// Numbers of this shape in each row. Use [`Graph::ANY`] for a size that differs from batch to
    /// batch.
    pub fn new(shape: impl Into<Shape>) -> Input {
        let axes = shape.into();
        let shape = std::iter::once(Dim::BATCH).chain(axes.dims().iter().copied()).collect();
        Input { name: None, dtype: DType::F32, shape }
    }

    /// The name of the input. By default `input_1`, `input_2`, ...
    pub fn name(mut self, name: &str) -> Input {
        self.name = Some(name.to_string());
        self
    }

    /// The dtype. By default f32. Numbers of other dtypes are cast to it.
    pub fn dtype(mut self, dtype: DType) -> Input {
        self.dtype = dtype;
        self
    }

    /// The symbolic value that layers are applied to.
    #[track_caller]
    pub fn tensor(self) -> KerasTensor {
        SharedLayer::of(Step::Input(self)).input_value()
    }
}

impl<S: Into<Shape>> From<S> for Input {
    fn from(shape: S) -> Input {
        Input::new(shape)
    }
}

/// The dtype and shape of a symbolic value. Sizes that are not known are the batch or
/// [`Graph::ANY`].
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Spec {
    pub dtype: DType,
    pub shape: Shape,
}

impl Spec {
    /// Symbols belong to one graph, so another graph sees sizes of any value.
    pub fn of(tensor: &Tensor) -> Spec {
        let plain = |dim: &Dim| match dim {
            Dim::Known(_) | &Dim::BATCH => *dim,
            Dim::Sym(_) => Graph::ANY,
        };
        Spec { dtype: tensor.dtype(), shape: tensor.shape().dims().iter().map(plain).collect() }
    }

    fn is_known(&self) -> bool {
        self.shape.dims().iter().all(|dim| matches!(dim, Dim::Known(_) | &Dim::BATCH))
    }
}

/// A symbolic value: an [`Input`], or the result of a layer.
#[derive(Clone)]
pub struct KerasTensor {
    pub(super) call: Arc<Call>,
    pub(super) output: usize,
}

/// A layer applied to symbolic values.
pub(super) struct Call {
    pub layer: SharedLayer,
    pub inputs: Vec<KerasTensor>,
    pub outputs: Vec<Spec>,
    /// The first mistake, in this call or in the calls before it.
    pub error: Option<Error>,
}

impl KerasTensor {
    /// The shape; its first axis is the batch.
    pub fn shape(&self) -> &Shape {
        &self.spec().shape
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.spec().dtype
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.call.outputs[self.output]
    }

    /// Returns the first mistake that was made on the way to this value.
    pub fn check(&self) -> Result<()> {
        self.call.error.clone().map_or(Ok(()), Err)
    }
}

impl fmt::Debug for KerasTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KerasTensor({}{} of {})", self.dtype(), self.shape(), self.call.layer.kind())
    }
}

/// What a layer can be applied to: one symbolic value, or a list of them.
pub trait Symbols {
    /// The values, in order.
    fn symbols(&self) -> Vec<KerasTensor>;
}

impl Symbols for KerasTensor {
    fn symbols(&self) -> Vec<KerasTensor> {
        vec![self.clone()]
    }
}

impl<S: Symbols + ?Sized> Symbols for &S {
    fn symbols(&self) -> Vec<KerasTensor> {
        (**self).symbols()
    }
}

impl<S: Symbols> Symbols for [S] {
    fn symbols(&self) -> Vec<KerasTensor> {
        self.iter().flat_map(Symbols::symbols).collect()
    }
}

impl<S: Symbols, const N: usize> Symbols for [S; N] {
    fn symbols(&self) -> Vec<KerasTensor> {
        self[..].symbols()
    }
}

impl<S: Symbols> Symbols for Vec<S> {
    fn symbols(&self) -> Vec<KerasTensor> {
        self[..].symbols()
    }
}

/// Applies layers to symbolic values: Keras' `Dense(64)(x)` is `Dense::new(64).on(&x)`.
///
/// ```
/// use estimand::keras::{Functional, Input, Model};
/// use estimand::nn::Concat;
/// use estimand::prelude::*;
///
/// let (a, b) = (Input::new([4]).name("a").tensor(), Input::new([6]).name("b").tensor());
/// let hidden = Dense::new(8).relu().on(&Concat::new().on(&[&a, &b]));
/// let model = Model::new(&[&a, &b], &Dense::new(1).on(&hidden))?;
/// assert_eq!(model.count_params(), 10 * 8 + 8 + 8 + 1);
/// # Ok::<(), Error>(())
/// ```
pub trait Functional: Layer + Sized + 'static {
    /// Applies the layer. A mistake is returned when a model is made of the result.
    #[track_caller]
    fn on(self, inputs: &dyn Symbols) -> KerasTensor {
        SharedLayer::new(self).on(inputs)
    }
}

impl<L: Layer + Sized + 'static> Functional for L {}

/// A layer or model that may be applied several times, also in several models. All calls use the
/// same weights.
///
/// ```
/// use estimand::keras::{Input, Model, SharedLayer};
/// use estimand::prelude::*;
///
/// let (left, right) = (Input::new([4]).tensor(), Input::new([4]).tensor());
/// let tower = SharedLayer::new(Dense::new(3));
/// let model = Model::new(&[&left, &right], &[tower.on(&left), tower.on(&right)])?;
/// assert_eq!(model.count_params(), 15);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct SharedLayer(pub(super) Arc<LayerNode>);

pub(super) struct LayerNode {
    /// The order in which layers were made; names are given in this order.
    pub id: u64,
    pub step: Step,
    pub site: &'static Location<'static>,
    /// Its weights, in all models that use it.
    pub sharing: Arc<Sharing>,
}

/// The identity of a layer: calls of layers with the same one are calls of one layer.
pub(super) struct LayerId(u64);

impl LayerId {
    pub fn new() -> LayerId {
        static MADE: AtomicU64 = AtomicU64::new(0);
        LayerId(MADE.fetch_add(1, Ordering::Relaxed))
    }

    /// The layer of this identity, made by this line.
    pub fn layer(&self, step: Step, site: &'static Location<'static>) -> SharedLayer {
        SharedLayer(Arc::new(LayerNode { id: self.0, step, site, sharing: Arc::default() }))
    }
}

/// What a call computes with.
#[derive(Clone)]
pub(super) enum Step {
    Input(Input),
    Layer(Arc<dyn Layer>),
    Model(Arc<Recipe>),
}

impl Step {
    /// Keras' word for the kind of layer, from which names are made.
    pub fn kind(&self) -> &str {
        match self {
            Step::Input(_) => "input",
            Step::Layer(layer) => layer.kind(),
            Step::Model(recipe) => recipe.kind(),
        }
    }

    pub fn given_name(&self) -> Option<&str> {
        match self {
            Step::Input(input) => input.name.as_deref(),
            Step::Layer(layer) => layer.config().name.as_deref(),
            Step::Model(recipe) => Some(&recipe.name),
        }
    }

    /// The class in Keras, as `summary` shows it.
    pub fn class_name(&self) -> String {
        match self {
            Step::Input(_) => "InputLayer".to_string(),
            Step::Layer(layer) => {
                let written = layer.to_json().ok();
                let class = written.as_ref().and_then(|json| json["class_name"].as_str());
                class.map_or_else(|| camel_case(layer.kind()), str::to_string)
            }
            Step::Model(recipe) => recipe.class_name().to_string(),
        }
    }
}

/// `my_layer` as `MyLayer`.
fn camel_case(kind: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    kind.split('_').filter_map(word).collect()
}

impl SharedLayer {
    /// Makes a layer that can be applied several times.
    #[track_caller]
    pub fn new(layer: impl Layer + 'static) -> SharedLayer {
        SharedLayer::of(Step::Layer(Arc::new(layer)))
    }

    #[track_caller]
    pub(super) fn of(step: Step) -> SharedLayer {
        SharedLayer::at(step, Location::caller())
    }

    /// A layer that this line has made.
    pub(super) fn at(step: Step, site: &'static Location<'static>) -> SharedLayer {
        LayerId::new().layer(step, site)
    }

    /// The value of an input; of another layer, a value without calls before it.
    pub(super) fn input_value(self) -> KerasTensor {
        let outputs = match &self.0.step {
            Step::Input(input) => vec![Spec { dtype: input.dtype, shape: input.shape.clone() }],
            Step::Layer(_) | Step::Model(_) => Vec::new(),
        };
        KerasTensor { call: Arc::new(Call { layer: self, inputs: Vec::new(), outputs, error: None }), output: 0 }
    }

    fn kind(&self) -> &str {
        self.0.step.kind()
    }

    /// Applies the layer. A mistake is returned when a model is made of the result.
    #[track_caller]
    pub fn on(&self, inputs: &dyn Symbols) -> KerasTensor {
        let mut outputs = self.on_all(inputs);
        if outputs.len() == 1 {
            return outputs.remove(0);
        }
        let text = format!("{} has {} outputs; expected one", self.kind(), outputs.len());
        let error = Error::config(text).help("use on_all for a model with several outputs").at(Location::caller());
        poisoned(self.clone(), inputs.symbols(), error)
    }

    /// Applies a model that may have several outputs.
    #[track_caller]
    pub fn on_all(&self, inputs: &dyn Symbols) -> Vec<KerasTensor> {
        self.call_at(inputs.symbols(), Location::caller())
    }

    /// Applies the layer at a line of the user.
    pub(super) fn call_at(&self, inputs: Vec<KerasTensor>, site: &'static Location<'static>) -> Vec<KerasTensor> {
        let earlier = inputs.iter().find_map(|input| input.call.error.clone());
        let outputs = match earlier {
            Some(error) => Err(error),
            None => self.infer(&inputs, site),
        };
        match outputs {
            Ok(outputs) => {
                let n = outputs.len();
                let call = Arc::new(Call { layer: self.clone(), inputs, outputs, error: None });
                (0..n).map(|output| KerasTensor { call: call.clone(), output }).collect()
            }
            Err(error) => vec![poisoned(self.clone(), inputs, error)],
        }
    }

    /// The dtypes and shapes of the results, found in a graph of their own.
    fn infer(&self, inputs: &[KerasTensor], site: &'static Location<'static>) -> Result<Vec<Spec>> {
        if inputs.is_empty() {
            return Err(Error::config(format!("{} got no values; expected at least one", self.kind())).at(site));
        }
        let graph = Graph::new();
        // Sizes that only a run tells are related to each other in the whole model alone.
        let tensors = match inputs.iter().all(|input| input.spec().is_known()) {
            true => inputs.iter().map(|input| placeholder(&graph, input.call.layer.kind(), input.spec())).collect(),
            false => {
                let recipe = Recipe::all_of(inputs)?;
                let places: Vec<Tensor> = recipe.placeholders(&graph);
                Replay::new(&recipe).call(&graph, &places, replay::Flags::default())
            }
        };
        let _line = graph.line(site, file!());
        let name = self.0.step.given_name().unwrap_or(self.kind()).to_string();
        let inputs: Vec<replay::Masked> = tensors.iter().map(replay::Masked::from).collect();
        let results = replay::apply(&self.0.step, &mut None, &name, &graph, &inputs, replay::Flags::default());
        graph.check()?;
        Ok(results.iter().map(|result| Spec::of(&result.tensor)).collect())
    }
}

/// A placeholder for a symbolic value.
pub(super) fn placeholder(graph: &Graph, name: &str, spec: &Spec) -> Tensor {
    graph.placeholder(name, spec.dtype, spec.shape.clone())
}

fn poisoned(layer: SharedLayer, inputs: Vec<KerasTensor>, error: Error) -> KerasTensor {
    let outputs = vec![Spec { dtype: DType::F32, shape: Shape::scalar() }];
    KerasTensor { call: Arc::new(Call { layer, inputs, outputs, error: Some(error) }), output: 0 }
}

impl fmt::Debug for SharedLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedLayer({})", self.kind())
    }
}
