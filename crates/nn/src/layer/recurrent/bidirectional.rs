//! `Bidirectional`: a recurrent layer that reads sequences in both directions.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::super::build::BuiltLayer;
use super::super::{AsInputs, Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use super::reading::Way;
use super::{ConvLstm1d, ConvLstm2d, ConvLstm3d, Gru, Lstm, RecurrentLayer, Rnn, SimpleRnn};
use crate::config::{self, Described, Field, Fields, Json, Node};

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
    layer: Arc<dyn RecurrentLayer>,
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
        Bidirectional { layer: Arc::new(layer), merge_mode: MergeMode::default(), config: Config::default() }
    }

    /// The way both results are merged. By default they are concatenated.
    pub fn merge_mode(mut self, mode: MergeMode) -> Bidirectional {
        self.merge_mode = mode;
        self
    }

    /// Like `apply`, but also returns the last states of the forward layer, followed by those of
    /// the backward layer.
    #[track_caller]
    pub fn apply_states(&self, inputs: &dyn AsInputs) -> DirectionOutput {
        match self.directions(&inputs.as_inputs()) {
            Ok(directions) => self.joined(directions),
            Err(error) => (error.clone(), vec![error; 2 * self.layer.n_states()]),
        }
    }

    /// The two results separately, as Keras returns them without a merge mode.
    #[track_caller]
    pub fn apply_both(&self, inputs: &dyn AsInputs) -> (Tensor, Tensor) {
        match self.directions(&inputs.as_inputs()) {
            Ok([(forward, _), (backward, _)]) => (forward, backward),
            Err(error) => (error.clone(), error),
        }
    }

    #[track_caller]
    fn directions(&self, inputs: &LayerInputs) -> Result<[DirectionOutput; 2], Tensor> {
        if let Some(error) = inputs.check(self) {
            return Err(error);
        }
        let built = BuiltLayer::new(self, inputs);
        let open = built.open(inputs);
        Ok([self.run(&open.call, 0), self.run(&open.call, 1)])
    }

    /// The output and last states of one direction.
    #[track_caller]
    fn run(&self, call: &LayerCall<'_>, direction: usize) -> DirectionOutput {
        let reading = self.layer.reading();
        // TF: with outputs of all steps, those of masked steps are 0, whatever the layer's option
        // is; otherwise they are never 0.
        let is_second = direction == 1;
        let way = Way {
            backwards: reading.go_backwards != is_second,
            zero_output: reading.return_sequences,
            set: direction,
            n_sets: 2,
        };
        let built = match call.built_child(DIRECTIONS[direction]) {
            Ok(built) => built,
            Err(error) => return (error.clone(), vec![error; self.layer.n_states()]),
        };
        let open = built.open(call.all_inputs());
        let (y, states) = self.layer.read(&open.call, way);
        // Puts every step next to the forward step that read the same input.
        (if is_second && reading.return_sequences { y.reverse(&[1]) } else { y }, states)
    }

    /// The merged result, and the states of both directions.
    #[track_caller]
    fn joined(&self, [(forward, mut states), (backward, others)]: [DirectionOutput; 2]) -> DirectionOutput {
        states.extend(others);
        (self.merged(&forward, &backward), states)
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

impl Described for Bidirectional {
    const CLASS: &'static str = "Bidirectional";

    fn template() -> Bidirectional {
        Bidirectional::new(SimpleRnn::new(1))
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Bidirectional {
        let modes =
            [("concat", MergeMode::Concat), ("sum", MergeMode::Sum), ("mul", MergeMode::Mul), ("ave", MergeMode::Ave)];
        let layer = fields.required("layer", &self.layer);
        fields.check("backward_layer", |node| check_backward(&layer, node));
        Bidirectional {
            layer,
            merge_mode: fields.choice("merge_mode", &self.merge_mode, &modes),
            config: self.config.fields(fields),
        }
    }
}

/// Keras 3 writes the second layer too. It must be the first one, read the other way.
fn check_backward(forward: &Arc<dyn RecurrentLayer>, node: &Node<'_>) -> Result<()> {
    let plain = |mut json: Json| {
        json["config"]["name"] = Json::Null;
        json
    };
    let mut expected = plain(forward.to_json()?);
    expected["config"]["go_backwards"] = (!forward.reading().go_backwards).into();
    match plain(Arc::<dyn RecurrentLayer>::read(node)?.to_json()?) == expected {
        true => Ok(()),
        false => Err(node.refuse("the backward layer differs from the forward layer; expected the same options")),
    }
}

/// The layers that read sequences.
impl Field for Arc<dyn RecurrentLayer> {
    fn write(&self) -> Result<Json> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<Arc<dyn RecurrentLayer>> {
        let class = node.field("class_name")?;
        let config = node.field("config")?;
        Ok(match class.text()? {
            ConvLstm1d::CLASS => Arc::new(config::read::<ConvLstm1d>(&config)?),
            ConvLstm2d::CLASS => Arc::new(config::read::<ConvLstm2d>(&config)?),
            ConvLstm3d::CLASS => Arc::new(config::read::<ConvLstm3d>(&config)?),
            Gru::CLASS => Arc::new(config::read::<Gru>(&config)?),
            Lstm::CLASS => Arc::new(config::read::<Lstm>(&config)?),
            Rnn::CLASS => Arc::new(config::read::<Rnn>(&config)?),
            SimpleRnn::CLASS => Arc::new(config::read::<SimpleRnn>(&config)?),
            _ => return Err(class.expected("ConvLSTM1D, ConvLSTM2D, ConvLSTM3D, GRU, LSTM, RNN or SimpleRNN")),
        })
    }
}

impl Layer for Bidirectional {
    fn kind(&self) -> &'static str {
        "bidirectional"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        self.layer.reading().return_sequences
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let name = self.layer.config().name.as_deref().unwrap_or(self.layer.kind());
        // Keras 3 writes the name with the direction.
        let name = name.strip_prefix("forward_").unwrap_or(name);
        let x = build.input().clone();
        for direction in DIRECTIONS {
            build.child(direction, &format!("{direction}_{name}"), &*self.layer, &x);
        }
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        self.layer.named_inputs()
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.merged(&self.run(call, 0).0, &self.run(call, 1).0)
    }

    fn call_all(&self, call: &LayerCall<'_>) -> Vec<Tensor> {
        self.layer.reading().results(self.joined([self.run(call, 0), self.run(call, 1)]))
    }
}
