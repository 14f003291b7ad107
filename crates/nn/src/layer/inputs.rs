//! `LayerInputs`: the tensors that a layer is applied to, and what else a call passes.

use std::ops::RangeInclusive;

use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Error, Mode};

use super::Layer;
use crate::config::Dialect;

/// The tensors that a layer is applied to, with the named tensors and flags of the call.
///
/// Where only tensors are passed, they stand alone ([`AsInputs`]). The other parts are for layers
/// that take them ([`Layer::named_inputs`]); another layer refuses them.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::layer::LayerInputs;
/// use estimand_nn::{Add, Layer, Lstm};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let lengths = g.placeholder("lengths", DType::I64, [Dim::BATCH]);
/// let y = Lstm::new(4).return_sequences(true).apply(&LayerInputs::of(&x).lengths(&lengths));
/// assert_eq!(Add::new().apply(&[&x, &y]).shape().to_string(), "[batch, 7, 4]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LayerInputs {
    tensors: Vec<Tensor>,
    named: Vec<(String, Vec<Tensor>)>,
    /// The masks that the inputs carry in a model, in their order.
    masks: Vec<Option<Tensor>>,
    /// The generation of Keras whose rules hold.
    dialect: Dialect,
    uses_causal_mask: bool,
    training: Option<bool>,
}

/// The names of inputs that layers of this crate take.
pub(super) const MASK: &str = "mask";
pub(super) const LENGTHS: &str = "lengths";
pub(super) const INITIAL_STATE: &str = "initial_state";
pub(super) const ATTENTION_MASK: &str = "attention_mask";
pub(super) const CAUSAL_MASK: &str = "use_causal_mask";

impl LayerInputs {
    /// These tensors, and nothing else.
    pub fn of(tensors: &dyn AsInputs) -> LayerInputs {
        tensors.as_inputs()
    }

    fn new(tensors: Vec<Tensor>) -> LayerInputs {
        LayerInputs {
            tensors,
            named: Vec::new(),
            masks: Vec::new(),
            dialect: Dialect::Keras2,
            uses_causal_mask: false,
            training: None,
        }
    }

    /// Booleans `[batch, time]`: recurrent layers leave their states unchanged at steps with
    /// `false`. By default all steps count.
    pub fn mask(self, mask: &Tensor) -> LayerInputs {
        self.named(MASK, mask)
    }

    /// The number of steps that count in each sequence, `[batch]`, as returned by
    /// [`sequence_input_layer`](crate::column::sequence_input_layer). By default all steps count.
    pub fn lengths(self, lengths: &Tensor) -> LayerInputs {
        self.named(LENGTHS, lengths)
    }

    /// The states of a recurrent layer before the first step, `[batch, units]`: `h`, and `c` of an
    /// LSTM. For [`Bidirectional`](crate::Bidirectional), the states of the backward layer follow.
    /// By default 0.
    pub fn initial_state(self, states: &[Tensor]) -> LayerInputs {
        self.with(INITIAL_STATE, states.to_vec())
    }

    /// Booleans that broadcast to `[batch, steps, places]`: whether a step of
    /// [`MultiHeadAttention`](crate::MultiHeadAttention) may attend to a place. By default every
    /// step attends to all places.
    ///
    /// To use the mask of a sequence, `[batch, places]`, call `.expand_dims(1)` on it.
    pub fn attention_mask(self, mask: &Tensor) -> LayerInputs {
        self.named(ATTENTION_MASK, mask)
    }

    /// Whether a step of [`MultiHeadAttention`](crate::MultiHeadAttention) attends only to itself
    /// and to earlier steps. By default it attends to all.
    pub fn use_causal_mask(mut self, use_causal_mask: bool) -> LayerInputs {
        self.uses_causal_mask = use_causal_mask;
        self
    }

    /// A named tensor, for a layer of one's own.
    pub fn named(self, name: &str, tensor: &Tensor) -> LayerInputs {
        self.with(name, vec![tensor.clone()])
    }

    /// The masks that the inputs carry, one for each: booleans `[batch, time]`, false for steps
    /// that do not count. A layer that has no use for them ignores them. Keras models pass them
    /// from layer to layer.
    pub fn carried_masks(mut self, masks: Vec<Option<Tensor>>) -> LayerInputs {
        self.masks = masks;
        self
    }

    /// The generation of Keras whose rules hold where both differ. By default those of Keras 2.
    /// They tell which mask the result carries, for layers such as [`Add`](crate::Add): in Keras 2
    /// a step counts if it does in all inputs that have a mask. In Keras 3 it counts if it does in
    /// any input, and without the mask of one input the result has none. And they tell how a
    /// [`BatchNorm`](crate::BatchNorm) of images measures its variance.
    pub fn rules_of(mut self, dialect: Dialect) -> LayerInputs {
        self.dialect = dialect;
        self
    }

    /// The generation of Keras whose rules hold.
    pub fn rules(&self) -> Dialect {
        self.dialect
    }

    /// The mask of an input: the one passed by name, or the one that the input carries.
    pub fn mask_of(&self, input: usize) -> Option<&Tensor> {
        let named = self.get(MASK).first().filter(|_| input == 0);
        named.or_else(|| self.masks.get(input).and_then(Option::as_ref))
    }

    /// Whether to compute as in training. By default the graph's mode decides.
    pub fn training(mut self, training: bool) -> LayerInputs {
        self.training = Some(training);
        self
    }

    fn with(mut self, name: &str, tensors: Vec<Tensor>) -> LayerInputs {
        self.named.retain(|(known, _)| known != name);
        self.named.push((name.to_string(), tensors));
        self
    }

    /// The first tensor. `check` has seen that there is one.
    pub(crate) fn first(&self) -> &Tensor {
        &self.tensors[0]
    }

    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Whether the caller asks for training or against it; `None` leaves it to the graph's mode.
    pub fn training_flag(&self) -> Option<bool> {
        self.training
    }

    /// The tensors of a name; none if the call does not pass it.
    pub(crate) fn get(&self, name: &str) -> &[Tensor] {
        self.named.iter().find(|(known, _)| known == name).map_or(&[], |(_, tensors)| tensors)
    }

    pub(crate) fn uses_causal_mask(&self) -> bool {
        self.uses_causal_mask
    }

    pub(crate) fn is_training(&self) -> bool {
        self.training.unwrap_or_else(|| self.first().graph().mode() == Mode::Train)
    }

    /// Sets whether this is training, unless the caller has.
    pub(crate) fn training_unless_set(mut self, training: bool) -> LayerInputs {
        self.training.get_or_insert(training);
        self
    }

    fn all(&self) -> impl Iterator<Item = &Tensor> {
        let named = self.named.iter().flat_map(|(_, tensors)| tensors);
        self.tensors.iter().chain(named).chain(self.masks.iter().flatten())
    }

    /// Checks what any layer demands: the number of tensors, known names, one graph. Returns the
    /// tensor that stands for the error.
    #[track_caller]
    pub(crate) fn check<L: Layer + ?Sized>(&self, layer: &L) -> Option<Tensor> {
        self.meet(&Demands { kind: layer.kind(), n_inputs: layer.n_inputs(), named: layer.named_inputs() })
    }

    #[track_caller]
    fn meet(&self, layer: &Demands) -> Option<Tensor> {
        let Some(first) = self.all().next() else {
            // Without inputs there is no graph to record the error in. A new empty graph reports it
            // when it is used.
            let text = format!("{} got no tensors; expected at least one", layer.kind);
            return Some(Graph::new().error(Error::config(text)));
        };
        if let Some(poisoned) = self.all().find(|t| t.is_poisoned()) {
            return Some(poisoned.clone());
        }
        // No closure here: it would hide the caller's line.
        let error = self.complaint(layer, first)?;
        Some(first.graph().error(error))
    }

    fn complaint(&self, layer: &Demands, first: &Tensor) -> Option<Error> {
        let kind = layer.kind;
        if let Some(other) = self.all().find(|t| !t.graph().same(first.graph())) {
            let text = format!("{kind} got tensors of different graphs: {} and {}", first.describe(), other.describe());
            return Some(Error::config(text));
        }
        let (n, expected) = (self.tensors.len(), &layer.n_inputs);
        if !expected.contains(&n) {
            let given: Vec<String> = self.tensors.iter().map(Tensor::describe).collect();
            let expected = match (*expected.start(), *expected.end()) {
                (1, 1) => "one".to_string(),
                (2, 2) => "two".to_string(),
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) => format!("{least} to {most}"),
            };
            let text = format!("{kind} got {n} tensors: {}; expected {expected}", given.join(", "));
            return Some(Error::config(text));
        }
        let flags = self.uses_causal_mask.then_some(CAUSAL_MASK);
        let mut names = self.named.iter().map(|(name, _)| name.as_str()).chain(flags);
        let known = layer.named;
        let name = names.find(|name| !known.contains(name))?;
        let error = Error::config(format!("{kind} got `{name}`, which it does not take"));
        Some(match known.is_empty() {
            true => error.help("it takes tensors alone"),
            false => error.suggest(name, known.iter().copied()),
        })
    }
}

/// What a layer says of its inputs. The checks are compiled once for all layers.
struct Demands {
    kind: &'static str,
    n_inputs: RangeInclusive<usize>,
    named: &'static [&'static str],
}

/// What a layer can be applied to: a tensor, an array or list of tensors, or [`LayerInputs`].
pub trait AsInputs {
    /// The tensors, with what the call passes besides them.
    fn as_inputs(&self) -> LayerInputs;
}

impl AsInputs for LayerInputs {
    fn as_inputs(&self) -> LayerInputs {
        self.clone()
    }
}

impl AsInputs for Tensor {
    fn as_inputs(&self) -> LayerInputs {
        LayerInputs::new(vec![self.clone()])
    }
}

impl<T: AsInputs + ?Sized> AsInputs for &T {
    fn as_inputs(&self) -> LayerInputs {
        (**self).as_inputs()
    }
}

/// All tensors of the elements, in order.
impl<T: AsInputs> AsInputs for [T] {
    fn as_inputs(&self) -> LayerInputs {
        let mut all = LayerInputs::new(Vec::new());
        for inputs in self.iter().map(AsInputs::as_inputs) {
            all.masks.resize(all.tensors.len(), None);
            all.masks.extend(inputs.masks);
            all.tensors.extend(inputs.tensors);
            all.named.extend(inputs.named);
            all.uses_causal_mask |= inputs.uses_causal_mask;
            all.training = inputs.training.or(all.training);
        }
        all
    }
}

impl<T: AsInputs, const N: usize> AsInputs for [T; N] {
    fn as_inputs(&self) -> LayerInputs {
        self[..].as_inputs()
    }
}

impl<T: AsInputs> AsInputs for Vec<T> {
    fn as_inputs(&self) -> LayerInputs {
        self[..].as_inputs()
    }
}
