//! `Bidirectional`: a recurrent layer that reads sequences in both directions.

use std::rc::Rc;

use estimand_graph::Tensor;
use estimand_tensor::Mode;

use super::super::build::BuiltLayer;
use super::super::{Build, Config, Layer, LayerCall, config_setters};
use super::{RecurrentLayer, Way};

/// The way the results of both directions are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MergeMode {
    /// Concatenated, `2 units` wide.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Mul,
    /// Their mean.
    Ave,
}

/// A recurrent layer that reads sequences forwards, and a copy of it that reads them backwards.
///
/// If the layer returns all steps, the outputs of masked steps are 0. Variables: those of the
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

/// The keys of the two layers.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];

/// The output and last states of one direction.
type DirectionOutput = (Tensor, Vec<Tensor>);

impl Bidirectional {
    /// Wraps a layer; the results of both directions are concatenated.
    pub fn new(layer: impl RecurrentLayer + 'static) -> Bidirectional {
        Bidirectional { layer: Rc::new(layer), merge_mode: MergeMode::default(), config: Config::default() }
    }

    /// The way both results are merged. By default they are concatenated.
    pub fn merge_mode(mut self, mode: MergeMode) -> Bidirectional {
        self.merge_mode = mode;
        self
    }

    /// Like `apply`, but also returns the last states of the forward layer, followed by those of
    /// the backward layer.
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

    /// The two results separately, as Keras returns them without a merge mode.
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

    /// The output and last states of one direction.
    #[track_caller]
    fn run(&self, call: &LayerCall<'_>, direction: usize) -> DirectionOutput {
        let (rnn, x) = (self.layer.rnn(), call.input());
        // TF: with outputs of all steps, those of masked steps are 0, whatever the layer's option
        // is; otherwise they are never 0.
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
        // Puts every step next to the forward step that read the same input.
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
