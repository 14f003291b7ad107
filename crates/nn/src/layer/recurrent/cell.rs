//! `CellOptions`: the options of the three cells, and what they compute.

use estimand_graph::op::{Cell, CellFunction};
use estimand_graph::{Axes, Initializer, RecurrentInputs, Tensor};
use estimand_tensor::{DType, Error, Shape};

use super::super::affine::build_kernel;
use super::super::weight_options::{BIAS, KERNEL, WeightOptions};
use super::super::{Build, LayerCall, LayerInputs};
use super::rnn_cell::{CellOutputs, zero_states};
use crate::activation::Activation;
use crate::config::Fields;

/// The options of a cell: what happens in one step.
#[derive(Clone, Debug)]
pub(super) struct CellOptions {
    pub cell: Cell,
    pub units: usize,
    pub kernel: WeightOptions,
    pub recurrent: WeightOptions,
    pub bias: WeightOptions,
    pub activation: Activation,
    pub recurrent_activation: Activation,
    pub use_bias: bool,
    pub unit_forget_bias: bool,
    pub dropout: f64,
    pub recurrent_dropout: f64,
}

/// The keys of the recurrent kernel.
pub(super) const RECURRENT: [&str; 3] = ["recurrent_initializer", "recurrent_regularizer", "recurrent_constraint"];

impl CellOptions {
    pub fn new(cell: Cell, units: usize) -> CellOptions {
        CellOptions {
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
        }
    }

    /// Writes or reads the options; the number of units under this key.
    pub fn fields(&self, fields: &mut Fields<'_>, units: &'static str) -> CellOptions {
        // How Keras computes, which does not change the result.
        for key in ["implementation", "seed"] {
            fields.ignored(key);
        }
        let has_gates = self.cell != Cell::Simple;
        CellOptions {
            units: fields.required(units, &self.units),
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
        }
    }

    fn n_gates(&self) -> usize {
        match self.cell {
            Cell::Simple => 1,
            Cell::Lstm => 4,
            Cell::Gru { .. } => 3,
        }
    }

    /// The sizes of the states: `h`, and `c` of an LSTM.
    pub fn state_sizes(&self) -> Vec<usize> {
        vec![self.units; if self.cell == Cell::Lstm { 2 } else { 1 }]
    }

    fn has_two_biases(&self) -> bool {
        self.cell == Cell::Gru { reset_after: true }
    }

    /// Records an error unless the options are in their range.
    #[track_caller]
    pub fn check(&self, build: &Build<'_>) -> bool {
        if self.units == 0 {
            build.refuse(Error::config("the layer has 0 units; expected at least 1"));
            return false;
        }
        check_rates(build, self.dropout, self.recurrent_dropout)
    }

    /// Makes the variables for steps `[batch, inputs]`, or sequences of them.
    #[track_caller]
    pub fn build(&self, build: &mut Build<'_>) {
        let width = self.n_gates() * self.units;
        build_kernel(&self.kernel, build, "kernel", &[build.channels(), width]);
        let initializer = Initializer::Orthogonal { gain: 1.0 };
        self.recurrent.build(build, "recurrent_kernel", &[self.units, width], initializer);
        if self.use_bias {
            let dims: &[usize] = if self.has_two_biases() { &[2, width] } else { &[width] };
            let has_forget_gate = self.cell == Cell::Lstm && self.unit_forget_bias;
            build_bias(&self.bias, build, dims, has_forget_gate.then_some(self.units));
        }
    }

    /// Runs the cell over all steps of `[batch, time, inputs]`.
    #[track_caller]
    pub fn sequence(&self, call: &LayerCall<'_>) -> CellOutputs {
        let x = call.input();
        let graph = x.graph();
        let Some(&[batch, time, _]) = x.shape().dims().first_chunk() else {
            let error = Error::shape(format!("{} is not a sequence; expected [batch, time, inputs]", x.describe()));
            return CellOutputs::failed(&graph.error(error), self.state_sizes().len());
        };
        let (mask, given) = (call.mask_of(0), call.initial_state());
        let states = match given {
            [] => zero_states(call, &self.state_sizes()),
            given => given.to_vec(),
        };
        let x = match call.training() && self.dropout > 0.0 {
            // The same inputs are dropped at all steps.
            true => x * keep(x, Shape::from([batch, 1.into(), x.channels().into()]), self.dropout),
            false => x.clone(),
        };
        let dropped = call.training() && self.recurrent_dropout > 0.0;
        let keep = dropped.then(|| keep(&x, Shape::from([batch, self.units.into()]), self.recurrent_dropout));
        let biases = self.biases(call);
        let width = self.n_gates() * self.units;
        let product = x.reshape([-1, x.channels() as i64]).matmul(&call.weight("kernel"));
        let product = match &biases[0] {
            Some(bias) => product + bias,
            None => product,
        };
        let product = product.reshape_as(Shape::from([batch, time, width.into()]));
        let bias = self.has_two_biases().then(|| {
            let none = || graph.fill([width], DType::F32, 0.0);
            biases[1].clone().unwrap_or_else(none)
        });
        let kernel = call.weight("recurrent_kernel");
        let inputs = RecurrentInputs { kernel, bias, states, mask: mask.cloned(), keep };
        let functions = cell_function(self.activation).zip(cell_function(self.recurrent_activation));
        let outputs = match functions {
            Some((activation, recurrent)) => product.recurrent(self.cell, activation, recurrent, &inputs),
            None => {
                let (activation, recurrent) = (self.activation, self.recurrent_activation);
                product.recurrent_unrolled(self.cell, &|x| activation.of(x), &|x| recurrent.of(x), &inputs)
            }
        };
        let (sequence, last) = (outputs.sequence, outputs.states[0].clone());
        let (sequence, last) = match mask.filter(|_| !given.is_empty()) {
            // TF: before the first step that counts there is no output to repeat, so the output is
            // 0 and not the first state.
            Some(mask) => {
                let begun = mask.cast(DType::I32).cumsum(1).greater(0).expand_dims(2);
                (begun.select(&sequence, 0.0), mask.any_axes(Axes::of([1]).keep_dims()).select(&last, 0.0))
            }
            None => (sequence, last),
        };
        CellOutputs { sequence, last, states: outputs.states }
    }

    /// Takes one step, `[batch, inputs]`: a sequence of one.
    #[track_caller]
    pub fn step(&self, call: &LayerCall<'_>, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        if let Some(poison) = call.expect_rank(2..=2, "[batch, inputs]") {
            return (poison.clone(), vec![poison; states.len()]);
        }
        let x = call.input().expand_dims(1);
        let inputs = LayerInputs::of(&x).training(call.training()).initial_state(states);
        let outputs = self.sequence(&call.with_inputs(&inputs));
        (outputs.last, outputs.states)
    }

    /// The bias of the input's product and the bias of the state's product.
    fn biases(&self, call: &LayerCall<'_>) -> [Option<Tensor>; 2] {
        let Some(bias) = call.find("bias") else { return [None, None] };
        if !self.has_two_biases() {
            return [Some(bias.clone()), None];
        }
        [0, 1].map(|row| Some(bias.slice(&[row, 0], &[1, -1]).squeeze(&[0])))
    }
}

/// Records an error unless both are rates.
#[track_caller]
pub(super) fn check_rates(build: &Build<'_>, dropout: f64, recurrent_dropout: f64) -> bool {
    for (what, rate) in [("dropout", dropout), ("recurrent dropout", recurrent_dropout)] {
        if !(0.0..1.0).contains(&rate) {
            build.refuse(Error::config(format!("the {what} rate is {rate}; expected 0 <= rate < 1")));
            return false;
        }
    }
    true
}

/// Makes the bias. That of the forget gate, if there is one of this number of units, starts at 1,
/// so that the cell remembers at the start of training.
#[track_caller]
pub(super) fn build_bias(options: &WeightOptions, build: &mut Build<'_>, dims: &[usize], forget: Option<usize>) {
    let defaults = build.defaults();
    let mut options = options.or(defaults.bias_initializer.clone(), defaults.bias_regularizer);
    let initializer = options.initializer.take().unwrap_or(Initializer::Zeros);
    let initializer = match forget {
        Some(units) => remembering(units, initializer),
        None => Ok(initializer),
    };
    match initializer {
        Ok(initializer) => options.build(build, "bias", dims, initializer),
        Err(error) => build.refuse(error),
    }
}

fn remembering(units: usize, initializer: Initializer) -> Result<Initializer, Error> {
    let other = match initializer {
        Initializer::Zeros => 0.0,
        Initializer::Ones => 1.0,
        Initializer::Constant(value) => value,
        initializer => {
            return Err(Error::config(format!(
                "the bias initializer is {initializer:?}, but the forget gate's bias starts at 1; expected a constant"
            ))
            .help("call .unit_forget_bias(false)"));
        }
    };
    Ok(Initializer::Runs(vec![(other, units), (1.0, units), (other, units.saturating_mul(2))]))
}

/// Dropout factors: 0 with probability `rate`, otherwise `1 / (1 - rate)`.
#[track_caller]
pub(super) fn keep(x: &Tensor, shape: Shape, rate: f64) -> Tensor {
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
        Activation::HardSigmoidKeras3
        | Activation::Softmax
        | Activation::Gelu
        | Activation::Swish
        | Activation::LeakyRelu(_)
        | Activation::Mish
        | Activation::HardSilu
        | Activation::Celu
        | Activation::HardTanh
        | Activation::HardShrink
        | Activation::SoftShrink
        | Activation::TanhShrink
        | Activation::LogSigmoid
        | Activation::LogSoftmax
        | Activation::Squareplus
        | Activation::SparsePlus
        | Activation::SparseSigmoid => return None,
    })
}
