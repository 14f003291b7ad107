//! Symbolic values: `Input`, the values that layers make of them, and layers that are used in
//! several places.
//!
//! A symbolic value remembers the layer and the values it came from. Nothing is computed and no
//! graph is kept: `walk` turns the values into a plain list of calls.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand_nn::Layer;
use estimand_tensor::{DType, Error, Result, Shape};

use super::input::Input;
use super::recipe::{CallArguments, Spec, Step};
use super::sharing::Sharing;

impl Input {
    /// The symbolic value that layers are applied to.
    #[track_caller]
    pub fn tensor(self) -> KerasTensor {
        SharedLayer::of(Step::Input(self)).input_value()
    }
}

/// A symbolic value: an [`Input`], or the result of a layer or of arithmetic.
///
/// ```
/// use estimand::keras::{Input, Model};
/// use estimand::prelude::*;
///
/// let image = Input::new([2]).tensor();
/// let scaled = &image / 127.5 - 1.0;
/// let mut scale = Model::new(&image, &scaled)?;
/// assert_eq!(scale.predict(Array::from_vec([1, 2], vec![0f32, 255.0])?)?.to_f64_vec()?, [-1.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct KerasTensor {
    pub(super) call: Arc<Call>,
    pub(super) output: usize,
}

/// A layer applied to symbolic values.
pub(super) struct Call {
    pub layer: SharedLayer,
    pub inputs: Vec<KerasTensor>,
    pub arguments: CallArguments,
    pub outputs: Vec<Spec>,
    /// The first mistake, in this call or in the calls before it.
    pub error: Option<Error>,
}

/// The list takes the place of recursion: a chain of calls may be deeper than a stack.
impl Drop for Call {
    fn drop(&mut self) {
        let mut dropped = std::mem::take(&mut self.inputs);
        while let Some(value) = dropped.pop() {
            if let Some(mut call) = Arc::into_inner(value.call) {
                dropped.append(&mut call.inputs);
            }
        }
    }
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

    /// What the call says beside its values; see [`CallInputs`](super::CallInputs).
    fn arguments(&self) -> CallArguments {
        CallArguments::default()
    }
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

    fn arguments(&self) -> CallArguments {
        (**self).arguments()
    }
}

impl<S: Symbols> Symbols for [S] {
    fn symbols(&self) -> Vec<KerasTensor> {
        self.iter().flat_map(Symbols::symbols).collect()
    }

    fn arguments(&self) -> CallArguments {
        self.iter().fold(CallArguments::default(), |all, one| all.and(one.arguments()))
    }
}

impl<S: Symbols, const N: usize> Symbols for [S; N] {
    fn symbols(&self) -> Vec<KerasTensor> {
        self[..].symbols()
    }

    fn arguments(&self) -> CallArguments {
        self[..].arguments()
    }
}

impl<S: Symbols> Symbols for Vec<S> {
    fn symbols(&self) -> Vec<KerasTensor> {
        self[..].symbols()
    }

    fn arguments(&self) -> CallArguments {
        self[..].arguments()
    }
}

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
            Step::Layer(_) | Step::Operation(_) | Step::Model(_) => Vec::new(),
        };
        let arguments = CallArguments::default();
        let call = Call { layer: self, inputs: Vec::new(), arguments, outputs, error: None };
        KerasTensor { call: Arc::new(call), output: 0 }
    }

    pub(super) fn kind(&self) -> &str {
        self.0.step.kind()
    }
}

impl fmt::Debug for SharedLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedLayer({})", self.kind())
    }
}
