//! The parts that recurrent layers share: kernels, options, masks, and the conversion of one op's
//! results to the results of Keras.
//!
//! `simple_rnn`, `lstm` and `gru` hold one layer each, `setters` their options, `bidirectional` the
//! wrapper that reads both ways.

mod bidirectional;
mod gru;
mod lstm;
mod setters;
mod simple_rnn;

use estimand_graph::op::{Cell, CellFunction};
use estimand_graph::{Axes, Graph, Initializer, RecurrentInputs, Tensor};
use estimand_tensor::{Array, DType, Dim, Error, Shape};

use super::affine::build_kernel;
use super::build::BuiltLayer;
use super::inputs::{INITIAL_STATE, LENGTHS, MASK};
use super::weight_options::{BIAS, KERNEL, WeightOptions};
use super::{AsInputs, Build, Layer, LayerCall};
use crate::activation::Activation;
use crate::config::{Fields, Json};
pub use bidirectional::{Bidirectional, MergeMode};
pub use gru::Gru;
pub use lstm::Lstm;
use setters::rnn_setters;
pub use simple_rnn::SimpleRnn;

/// A layer that processes sequences step by step: [`SimpleRnn`], [`Lstm`], [`Gru`].
pub trait RecurrentLayer: Layer {
    /// The layer's cell and options.
    fn rnn(&self) -> &Rnn;

    /// Like `apply`, but also returns the states after the last step: `h`, and `c` of an LSTM.
    #[track_caller]
    fn apply_states(&self, inputs: &dyn AsInputs) -> (Tensor, Vec<Tensor>) {
        let inputs = inputs.as_inputs();
        match inputs.check(self) {
            Some(error) => (error.clone(), vec![error; self.rnn().n_states()]),
            None => self.rnn().run(&BuiltLayer::new(self, &inputs).open(&inputs).call, self.rnn().way()),
        }
    }
}

/// The options of a recurrent layer.
#[derive(Clone, Debug)]
pub struct Rnn {
    cell: Cell,
    units: usize,
    kernel: WeightOptions,
    recurrent: WeightOptions,
    bias: WeightOptions,
    activation: Activation,
    recurrent_activation: Activation,
    use_bias: bool,
    unit_forget_bias: bool,
    dropout: f64,
    recurrent_dropout: f64,
    return_sequences: bool,
    go_backwards: bool,
    zero_output_for_mask: bool,
}

/// The direction and the first states of one pass over sequences.
#[derive(Clone, Copy)]
struct Way {
    backwards: bool,
    /// Whether the output of masked steps is 0.
    zero_output: bool,
    /// The set of initial states that this pass starts with, of `n_sets`.
    set: usize,
    n_sets: usize,
}

impl Way {
    /// The sequence in reading order.
    #[track_caller]
    fn in_order(self, x: &Tensor) -> Tensor {
        if self.backwards { x.reverse(&[1]) } else { x.clone() }
    }
}

/// The names of a cell's variables.
struct Names {
    kernel: &'static str,
    recurrent_kernel: &'static str,
    bias: &'static str,
}

impl Rnn {
    fn new(cell: Cell, units: usize) -> Rnn {
        Rnn {
            cell,
            units,
            kernel: WeightOptions::default(),
            recurrent: WeightOptions::default(),
            bias: WeightOptions::default(),
            activation: Activation::Tanh,
            recurrent_activation: Activation::Sigmoid,
            use_bias: true,
            unit_forget_bias: true,
            dropout: 0.0,
            recurrent_dropout: 0.0,
            return_sequences: false,
            go_backwards: false,
            zero_output_for_mask: false,
        }
    }

    /// Writes or reads the options that all recurrent layers have.
    fn fields(&self, fields: &mut Fields<'_>) -> Rnn {
        // States are given and returned at the call.
        for key in ["return_state", "stateful"] {
            fields.only(key, false);
        }
        fields.only("activity_regularizer", Json::Null);
        fields.only_read("time_major", &[false.into()]);
        // How Keras computes, which does not change the result.
        for key in ["unroll", "implementation", "use_cudnn", "seed"] {
            fields.ignored(key);
        }
        let has_gates = self.cell != Cell::Simple;
        Rnn {
            units: fields.required("units", &self.units),
            activation: fields.value("activation", &self.activation),
            recurrent_activation: match has_gates {
                true => fields.value("recurrent_activation", &self.recurrent_activation),
                false => self.recurrent_activation,
            },
            use_bias: fields.value("use_bias", &self.use_bias),
            unit_forget_bias: match self.cell {
                Cell::Lstm => fields.value("unit_forget_bias", &self.unit_forget_bias),
                _ => self.unit_forget_bias,
            },
            cell: match self.cell {
                Cell::Gru { reset_after } => Cell::Gru { reset_after: fields.value("reset_after", &reset_after) },
                cell => cell,
            },
            kernel: self.kernel.fields(fields, KERNEL, Initializer::GlorotUniform),
            recurrent: self.recurrent.fields(fields, RECURRENT, Initializer::Orthogonal { gain: 1.0 }),
            bias: self.bias.fields(fields, BIAS, Initializer::Zeros),
            dropout: fields.value("dropout", &self.dropout),
            recurrent_dropout: fields.value("recurrent_dropout", &self.recurrent_dropout),
            return_sequences: fields.value("return_sequences", &self.return_sequences),
            go_backwards: fields.value("go_backwards", &self.go_backwards),
            zero_output_for_mask: fields.value("zero_output_for_mask", &self.zero_output_for_mask),
        }
    }

    fn names(&self) -> Names {
        match self.cell {
            Cell::Simple => Names {
                kernel: "simple_rnn_cell/kernel",
                recurrent_kernel: "simple_rnn_cell/recurrent_kernel",
                bias: "simple_rnn_cell/bias",
            },
            Cell::Lstm => Names {
                kernel: "lstm_cell/kernel",
                recurrent_kernel: "lstm_cell/recurrent_kernel",
                bias: "lstm_cell/bias",
            },
            Cell::Gru { .. } => Names {
                kernel: "gru_cell/kernel",
                recurrent_kernel: "gru_cell/recurrent_kernel",
                bias: "gru_cell/bias",
            },
        }
    }

    fn n_gates(&self) -> usize {
        match self.cell {
            Cell::Simple => 1,
            Cell::Lstm => 4,
            Cell::Gru { .. } => 3,
        }
    }

    fn n_states(&self) -> usize {
        if self.cell == Cell::Lstm { 2 } else { 1 }
    }

    fn has_two_biases(&self) -> bool {
        self.cell == Cell::Gru { reset_after: true }
    }

    #[track_caller]
    fn build(&self, build: &mut Build<'_>) {
        if self.units == 0 {
            return build.refuse(Error::config("the layer has 0 units; expected at least 1"));
        }
        for (what, rate) in [("dropout", self.dropout), ("recurrent dropout", self.recurrent_dropout)] {
            if !(0.0..1.0).contains(&rate) {
                return build.refuse(Error::config(format!("the {what} rate is {rate}; expected 0 <= rate < 1")));
            }
        }
        if !build.takes(3..=3, "[batch, time, inputs]") {
            return;
        }
        let (names, width) = (self.names(), self.n_gates() * self.units);
        build_kernel(&self.kernel, build, names.kernel, &[build.channels(), width]);
        let initializer = Initializer::Orthogonal { gain: 1.0 };
        self.recurrent.build(build, names.recurrent_kernel, &[self.units, width], initializer);
        if self.use_bias {
            let dims: &[usize] = if self.has_two_biases() { &[2, width] } else { &[width] };
            let defaults = build.defaults();
            let mut options = self.bias.or(defaults.bias_initializer.clone(), defaults.bias_regularizer);
            match self.bias_initializer(options.initializer.take().unwrap_or(Initializer::Zeros)) {
                Ok(initializer) => options.build(build, names.bias, dims, initializer),
                Err(error) => build.refuse(error),
            }
        }
    }

    /// The bias of an LSTM's forget gate starts at 1, so that the cell remembers at the start of
    /// training.
    fn bias_initializer(&self, initializer: Initializer) -> Result<Initializer, Error> {
        if self.cell != Cell::Lstm || !self.unit_forget_bias {
            return Ok(initializer);
        }
        let other = match initializer {
            Initializer::Zeros => 0.0,
            Initializer::Ones => 1.0,
            Initializer::Constant(value) => value as f32,
            initializer => {
                return Err(Error::config(format!(
                    "the bias initializer is {initializer:?}, but the forget gate's bias starts at 1; expected a \
                     constant"
                ))
                .help("call .unit_forget_bias(false)"));
            }
        };
        let forget = self.units..2 * self.units;
        let bias = (0..4 * self.units).map(|i| if forget.contains(&i) { 1.0 } else { other });
        Ok(Initializer::Value(Array::from(bias.collect::<Vec<f32>>())))
    }

    /// The direction and first states according to the options.
    fn way(&self) -> Way {
        Way { backwards: self.go_backwards, zero_output: self.zero_output_for_mask, set: 0, n_sets: 1 }
    }

    /// Computes the layer's output and last states.
    #[track_caller]
    fn run(&self, call: &LayerCall<'_>, way: Way) -> (Tensor, Vec<Tensor>) {
        let graph = call.input().graph();
        let x = way.in_order(call.input());
        let Some(&[batch, time, _]) = x.shape().dims().first_chunk() else {
            return self.failed(
                graph,
                Error::shape(format!("{} is not a sequence; expected [batch, time, inputs]", x.describe())),
            );
        };
        let mask = counted_steps(call, time, way);
        let states = match self.first_states(call, batch, way) {
            Ok(states) => states,
            Err(error) => return self.failed(graph, error),
        };
        let x = match call.training() && self.dropout > 0.0 {
            // The same inputs are dropped at all steps.
            true => &x * keep(&x, Shape::from([batch, 1.into(), x.channels().into()]), self.dropout),
            false => x,
        };
        let dropped = call.training() && self.recurrent_dropout > 0.0;
        let keep = dropped.then(|| keep(&x, Shape::from([batch, self.units.into()]), self.recurrent_dropout));
        let names = self.names();
        let biases = self.biases(call, &names);
        let width = self.n_gates() * self.units;
        let product = x.reshape([-1, x.channels() as i64]).matmul(&call.weight(names.kernel));
        let product = match &biases[0] {
            Some(bias) => product + bias,
            None => product,
        };
        let product = product.reshape_as(Shape::from([batch, time, width.into()]));
        let bias = self.has_two_biases().then(|| {
            let none = || graph.fill([width], DType::F32, 0.0);
            biases[1].clone().unwrap_or_else(none)
        });
        let inputs =
            RecurrentInputs { kernel: call.weight(names.recurrent_kernel), bias, states, mask: mask.clone(), keep };
        let functions = cell_function(self.activation).zip(cell_function(self.recurrent_activation));
        let outputs = match functions {
            Some((activation, recurrent)) => product.recurrent(self.cell, activation, recurrent, &inputs),
            None => {
                let (activation, recurrent) = (self.activation, self.recurrent_activation);
                product.recurrent_unrolled(self.cell, &|x| activation.of(x), &|x| recurrent.of(x), &inputs)
            }
        };
        let output = match self.return_sequences {
            true => steps_output(call, &outputs.sequence, mask.as_ref(), way.zero_output),
            false => last_output(call, &outputs.states[0], mask.as_ref(), way.zero_output),
        };
        (output, outputs.states)
    }

    /// Records an error and returns tensors that stand for it.
    #[track_caller]
    fn failed(&self, graph: &Graph, error: Error) -> (Tensor, Vec<Tensor>) {
        let poison = graph.error(error);
        (poison.clone(), vec![poison; self.n_states()])
    }

    /// The bias of the input's product and the bias of the state's product.
    fn biases(&self, call: &LayerCall<'_>, names: &Names) -> [Option<Tensor>; 2] {
        let Some(bias) = call.find(names.bias) else { return [None, None] };
        if !self.has_two_biases() {
            return [Some(bias.clone()), None];
        }
        [0, 1].map(|row| Some(bias.slice(&[row, 0], &[1, -1]).squeeze(&[0])))
    }

    fn first_states(&self, call: &LayerCall<'_>, batch: Dim, way: Way) -> Result<Vec<Tensor>, Error> {
        let (n, given) = (self.n_states(), call.initial_state());
        match given.len() {
            0 => {
                let zeros = call.input().graph().fill(Shape::from([batch, self.units.into()]), DType::F32, 0.0);
                Ok(vec![zeros; n])
            }
            len if len == way.n_sets * n => Ok(given[way.set * n..(way.set + 1) * n].to_vec()),
            len => Err(Error::config(format!("the layer got {len} initial states; expected {}", way.n_sets * n))),
        }
    }
}

/// The keys of the recurrent kernel.
const RECURRENT: [&str; 3] = ["recurrent_initializer", "recurrent_regularizer", "recurrent_constraint"];

/// The names of what a call of a recurrent layer may pass.
const NAMED_INPUTS: [&str; 3] = [MASK, LENGTHS, INITIAL_STATE];

/// The mask of steps in reading order: booleans `[batch, time]`, true for steps that count. This is
/// a function because a closure would hide the caller's line.
#[track_caller]
fn counted_steps(call: &LayerCall<'_>, time: Dim, way: Way) -> Option<Tensor> {
    let lengths = call.named(LENGTHS);
    let by_length = lengths.map(|n| n.graph().range(time, n.dtype()).less(n.expand_dims(-1)));
    let mask = match (call.mask_of(0), by_length) {
        (Some(mask), Some(counted)) => mask.logical_and(&counted),
        (Some(mask), None) => mask.clone(),
        (None, counted) => counted?,
    };
    Some(way.in_order(&mask))
}

/// The outputs of all steps, as Keras returns them. TF: before the first step that counts there
/// is no output to repeat, so the output is 0 and not the first state.
fn steps_output(call: &LayerCall<'_>, sequence: &Tensor, mask: Option<&Tensor>, zero: bool) -> Tensor {
    let Some(mask) = mask else { return sequence.clone() };
    let begun = || mask.cast(DType::I32).cumsum(1).greater(0);
    let shown = match (zero, call.initial_state().is_empty()) {
        (true, _) => mask.clone(),
        (false, true) => return sequence.clone(),
        (false, false) => begun(),
    };
    shown.expand_dims(2).select(sequence, 0.0)
}

/// The output of the last step, by the same rules.
fn last_output(call: &LayerCall<'_>, last: &Tensor, mask: Option<&Tensor>, zero: bool) -> Tensor {
    let Some(mask) = mask else { return last.clone() };
    let shown = match (zero, call.initial_state().is_empty()) {
        (true, _) => mask.reverse(&[1]).slice(&[0, 0], &[-1, 1]),
        (false, true) => return last.clone(),
        (false, false) => mask.any_axes(Axes::of([1]).keep_dims()),
    };
    shown.select(last, 0.0)
}

/// Dropout factors: 0 with probability `rate`, otherwise `1 / (1 - rate)`.
#[track_caller]
fn keep(x: &Tensor, shape: Shape, rate: f64) -> Tensor {
    let kept = x.graph().random_uniform(shape).greater_equal(rate);
    kept.cast(DType::F32) * (1.0 / (1.0 - rate))
}

/// The activation as a function of the op that runs all steps, if the op supports it.
fn cell_function(activation: Activation) -> Option<CellFunction> {
    Some(match activation {
        Activation::Linear => CellFunction::Linear,
        Activation::Relu => CellFunction::Relu,
        Activation::Relu6 => CellFunction::Relu6,
        Activation::Elu => CellFunction::Elu,
        Activation::Selu => CellFunction::Selu,
        Activation::Softplus => CellFunction::Softplus,
        Activation::Softsign => CellFunction::Softsign,
        Activation::Sigmoid => CellFunction::Sigmoid,
        Activation::HardSigmoid => CellFunction::HardSigmoid,
        Activation::Tanh => CellFunction::Tanh,
        Activation::Exponential => CellFunction::Exponential,
        Activation::Softmax | Activation::Gelu | Activation::Swish | Activation::LeakyRelu(_) => return None,
    })
}
