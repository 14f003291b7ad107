//! `ConvLstm2d`: an LSTM over sequences of images, whose products are convolutions.

use estimand_graph::op::Cell;
use estimand_graph::{Graph, Initializer, Padding, Tensor};
use estimand_tensor::{DType, Error, Result, Shape};

use super::super::affine::build_kernel;
use super::super::window::{Window, check_steps, window_setters};
use super::super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use super::cell::{CellOptions, build_bias, keep};
use super::reading::{NAMED_INPUTS, Reading, RecurrentLayer, Way};
use super::rnn_cell::{CellOutputs, unrolled};
use super::setters::{cell_setters, reading_setters};
use crate::activation::Activation;
use crate::config::{self, Described, Fields, Json};
use crate::size::Size2d;

/// Long short-term memory over sequences of images `[batch, time, height, width, channels]`: an
/// [`Lstm`](super::Lstm) whose products with the kernels are convolutions. The number of steps must
/// be known when the graph is built.
///
/// Variables: `kernel` `[height, width, channels, 4 filters]`, `recurrent_kernel`
/// `[height, width, filters, 4 filters]` and `bias` `[4 filters]`, in the order input gate, forget
/// gate, candidate, output gate.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{ConvLstm2d, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let films = g.placeholder("films", DType::F32, [Dim::BATCH, 7.into(), 9.into(), 9.into(), 3.into()]);
/// let y = ConvLstm2d::new(4, 3).same().return_sequences(true).apply(&films);
/// assert_eq!(y.shape().to_string(), "[batch, 7, 9, 9, 4]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ConvLstm2d {
    window: Window,
    options: CellOptions,
    reading: Reading,
    config: Config,
}

impl ConvLstm2d {
    /// `filters` filters of a size (one number or `(height, width)`). The result is the last `h`.
    pub fn new(filters: usize, kernel_size: impl Into<Size2d>) -> ConvLstm2d {
        let mut options = CellOptions::new(Cell::Lstm, filters);
        options.recurrent_activation = Activation::HardSigmoid;
        let window = Window::new(kernel_size.into());
        ConvLstm2d { window, options, reading: Reading::default(), config: Config::default() }
    }

    /// The activation of the gates. By default the hard sigmoid.
    pub fn recurrent_activation(mut self, activation: Activation) -> ConvLstm2d {
        self.options.recurrent_activation = activation;
        self
    }

    /// Whether the bias of the forget gate starts at 1 instead of the bias initializer's value. By
    /// default it does.
    pub fn unit_forget_bias(mut self, unit_forget_bias: bool) -> ConvLstm2d {
        self.options.unit_forget_bias = unit_forget_bias;
        self
    }

    /// Runs all steps. The inputs are convolved at once, the states one step after the other.
    #[track_caller]
    fn sequence(&self, call: &LayerCall<'_>) -> CellOutputs {
        let (x, options) = (call.input(), &self.options);
        let (kernel, recurrent) = (call.weight("kernel"), call.weight("recurrent_kernel"));
        if kernel.is_poisoned() || recurrent.is_poisoned() {
            return CellOutputs::failed(&kernel, 2);
        }
        let Some(&[batch, time, height, width, channels]) = x.shape().dims().first_chunk() else {
            return CellOutputs::failed(&kernel, 2);
        };
        let x = match call.training() && options.dropout > 0.0 {
            true => x * keep(x, Shape::from([batch, 1.into(), height, width, channels]), options.dropout),
            false => x.clone(),
        };
        let images = x.reshape_as(Shape::from([Graph::ANY, height, width, channels]));
        let product = self.window.convolve(&images, &kernel, 1);
        let product = match call.find("bias") {
            Some(bias) => product + bias,
            None => product,
        };
        let Some(&[_, height, width, gates]) = product.shape().dims().first_chunk() else {
            return CellOutputs::failed(&product, 2);
        };
        let product = product.reshape_as(Shape::from([batch, time, height, width, gates]));
        let state = Shape::from([batch, height, width, options.units.into()]);
        let states = match call.initial_state() {
            [] => vec![x.graph().fill(state.clone(), DType::F32, 0.0); 2],
            given => given.to_vec(),
        };
        let dropped = call.training() && options.recurrent_dropout > 0.0;
        let keep = dropped.then(|| keep(&x, state, options.recurrent_dropout));
        unrolled(&product, call.mask_of(0), states, &|x, states| {
            let seen = keep.as_ref().map_or_else(|| states[0].clone(), |keep| &states[0] * keep);
            let z = x + seen.conv2d_dilated(&recurrent, (1, 1), (1, 1), Padding::Same);
            let parts = z.split(&[options.units; 4], -1);
            let [input, forget, output] = [0, 1, 3].map(|i| options.recurrent_activation.of(&parts[i]));
            let c = forget * &states[1] + input * options.activation.of(&parts[2]);
            let h = output * options.activation.of(&c);
            (h.clone(), vec![h, c])
        })
    }
}

config_setters!(ConvLstm2d);
window_setters!(ConvLstm2d);
cell_setters!(ConvLstm2d, options);
reading_setters!(ConvLstm2d);

impl Described for ConvLstm2d {
    const CLASS: &'static str = "ConvLSTM2D";

    fn template() -> ConvLstm2d {
        ConvLstm2d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> ConvLstm2d {
        fields.only("activity_regularizer", Json::Null);
        ConvLstm2d {
            window: self.window.fields(fields),
            options: self.options.fields(fields, "filters"),
            reading: self.reading.fields(fields),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for ConvLstm2d {
    fn kind(&self) -> &'static str {
        "conv_lstm2d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        self.reading.return_sequences
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let ((height, width), filters) = (self.window.size.pair(), self.options.units);
        if filters == 0 || height == 0 || width == 0 {
            let text = format!("the layer has {filters} filters of {height} x {width}; expected at least 1 of each");
            return build.refuse(Error::config(text));
        }
        let (strides, dilation) = (self.window.strides.pair(), self.window.dilation.pair());
        let is_right = self.options.check(build)
            && check_steps(build, &[strides.0, strides.1], &[dilation.0, dilation.1])
            && build.takes(5..=5, "[batch, time, height, width, channels]");
        if is_right {
            let kernel = [height, width, build.channels(), 4 * filters];
            build_kernel(&self.options.kernel, build, "kernel", &kernel);
            let initializer = Initializer::Orthogonal { gain: 1.0 };
            let recurrent = [height, width, filters, 4 * filters];
            self.options.recurrent.build(build, "recurrent_kernel", &recurrent, initializer);
            if self.options.use_bias {
                let forget = self.options.unit_forget_bias.then_some(filters);
                build_bias(&self.options.bias, build, &[4 * filters], forget);
            }
        }
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &NAMED_INPUTS
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.read(call, self.reading.way()).0
    }
}

impl RecurrentLayer for ConvLstm2d {
    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn n_states(&self) -> usize {
        2
    }

    fn read(&self, call: &LayerCall<'_>, way: Way) -> (Tensor, Vec<Tensor>) {
        match self.reading.inputs(call, 2, way) {
            Ok(inputs) => self.reading.result(self.sequence(&call.with_inputs(&inputs)), &inputs, way),
            Err(poison) => (poison.clone(), vec![poison; 2]),
        }
    }
}
