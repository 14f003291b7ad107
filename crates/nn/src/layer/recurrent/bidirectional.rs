//! `Bidirectional`: a recurrent layer from both ends.

use std::rc::Rc;

use estimand_graph::Tensor;
use estimand_tensor::Mode;

use super::super::build::BuiltLayer;
use super::super::{Build, Config, Layer, LayerCall, config_setters};
use super::{RecurrentLayer, Way};

/// How the results of both directions become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MergeMode {
    /// Side by side, `2 units` wide.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Mul,
    /// Their mean.
    Ave,
}

/// A recurrent layer that reads sequences forwards, and another like it that reads them backwards.
///
/// With outputs of all steps, those of steps that do not count are 0. Variables: those of the
/// layer, in `forward_<kind>/` and `backward_<kind>/`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Bidirectional, Gru, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let y = Bidirectional::new(Gru::new(3).return_sequences(true)).apply(&x);
/// assert_eq!(y.shape().to_string(), "[batch, 7, 6]");
/// assert!(g.body().variables().find("bidirectional/backward_gru/gru_cell/kernel").is_ok());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Bidirectional {
    layer: Rc<dyn RecurrentLayer>,
    merge_mode: MergeMode,
    config: Config,
}

/// The keys of both parts.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];

/// An output with the last states.
type DirectionOutput = (Tensor, Vec<Tensor>);

impl Bidirectional {
    /// Both directions side by side.
    pub fn new(layer: impl RecurrentLayer + 'static) -> Bidirectional {
        Bidirectional { layer: Rc::new(layer), merge_mode: MergeMode::default(), config: Config::default() }
    }

    /// How both results become one. By default they stand side by side.
    pub fn merge_mode(mut self, mode: MergeMode) -> Bidirectional {
        self.merge_mode = mode;
        self
    }

    /// As `apply`, with the last states of the forward layer and, after them, of the backward
    /// layer.
    #[track_caller]
    pub fn apply_states(&self, x: &Tensor) -> DirectionOutput {
        match self.parts(x) {
            Some([(forward, mut states), (backward, others)]) => {
                states.extend(others);
                (self.merged(&forward, &backward), states)
            }
            None => (x.clone(), Vec::new()),
        }
    }

    /// Both results, each on its own, as Keras has them with no merge mode.
    #[track_caller]
    pub fn apply_both(&self, x: &Tensor) -> (Tensor, Tensor) {
        match self.parts(x) {
            Some([(forward, _), (backward, _)]) => (forward, backward),
            None => (x.clone(), x.clone()),
        }
    }

    #[track_caller]
    fn parts(&self, x: &Tensor) -> Option<[DirectionOutput; 2]> {
        let training = x.graph().mode() == Mode::Train;
        let built = BuiltLayer::new(self, x);
        let open = built.open(x, training)?;
        Some([self.run(&open.call, 0), self.run(&open.call, 1)])
    }

    /// What one direction makes of the input.
    #[track_caller]
    fn run(&self, call: &LayerCall<'_>, direction: usize) -> DirectionOutput {
        let (rnn, x) = (self.layer.rnn(), call.input());
        // TF: with outputs of all steps, those of steps that do not count are 0, whatever the layer
        // says; else they never are.
        let is_second = direction == 1;
        let way = Way {
            backwards: rnn.go_backwards != is_second,
            zero_output: rnn.return_sequences,
            set: direction,
            n_sets: 2,
        };
        let part = call.child(DIRECTIONS[direction]);
        let Some(open) = part.and_then(|part| part.open(x, call.training())) else { return (x.clone(), Vec::new()) };
        let (y, states) = rnn.run(&open.call, way);
        // Every step beside the one that has read the same input.
        (if is_second && rnn.return_sequences { y.reverse(&[1]) } else { y }, states)
    }

    #[track_caller]
    fn merged(&self, forward: &Tensor, backward: &Tensor) -> Tensor {
        match self.merge_mode {
            MergeMode::Concat => Tensor::concat(&[forward, backward], -1),
            MergeMode::Sum => forward + backward,
            MergeMode::Mul => forward * backward,
            MergeMode::Ave => (forward + backward) / 2.0,
        }
    }
}

config_setters!(Bidirectional);

impl Layer for Bidirectional {
    fn kind(&self) -> &'static str {
        "bidirectional"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn build(&self, build: &mut Build<'_>) {
        let name = self.layer.config().name.as_deref().unwrap_or(self.layer.kind());
        for direction in DIRECTIONS {
            build.child(direction, &format!("{direction}_{name}"), &*self.layer);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.merged(&self.run(call, 0).0, &self.run(call, 1).0)
    }
}
