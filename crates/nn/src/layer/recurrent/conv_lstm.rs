//! `ConvLstm1d`, `ConvLstm2d` and `ConvLstm3d`: LSTMs over sequences of signals, images or volumes,
//! whose products are convolutions.

use std::fmt::Debug;

use estimand_graph::op::Cell;
use estimand_graph::{Graph, Initializer, Padding, Tensor};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::affine::build_kernel;
use super::super::volume;
use super::super::window::check_steps;
use super::super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use super::cell::{CellOptions, build_bias, keep};
use super::reading::{NAMED_INPUTS, Reading, RecurrentLayer, Way};
use super::rnn_cell::{CellOutputs, unrolled};
use super::setters::{cell_setters, reading_setters};
use crate::activation::Activation;
use crate::config::{self, Described, Field, Fields, Json};
use crate::size::{Size1d, Size2d, Size3d};

/// Sizes in one, two or three dimensions, and what the layers of these dimensions differ in.
pub trait Space: Field + From<usize> + Copy + Debug + Send + Sync + 'static {
    /// The layer's class in Keras.
    const CLASS: &'static str;
    /// The layer's kind.
    const KIND: &'static str;
    /// The axes of an input.
    const AXES: &'static str;

    /// The size along each axis.
    fn sides(self) -> Vec<usize>;

    /// Convolves `[n, sides.., channels]` with a kernel, by these strides and this dilation.
    #[track_caller]
    fn convolve(x: &Tensor, kernel: &Tensor, strides: Self, dilation: Self, padding: Padding) -> Tensor;
}

impl Space for Size1d {
    const CLASS: &'static str = "ConvLSTM1D";
    const KIND: &'static str = "conv_lstm1d";
    const AXES: &'static str = "[batch, time, steps, channels]";

    fn sides(self) -> Vec<usize> {
        vec![self.0]
    }

    fn convolve(x: &Tensor, kernel: &Tensor, strides: Size1d, dilation: Size1d, padding: Padding) -> Tensor {
        // A signal is an image of one row.
        let (x, kernel) = (x.expand_dims(1), kernel.expand_dims(0));
        let product = x.conv2d_dilated(&kernel, (1, strides.0), (1, dilation.0), padding);
        if product.is_poisoned() { product } else { product.squeeze(&[1]) }
    }
}

impl Space for Size2d {
    const CLASS: &'static str = "ConvLSTM2D";
    const KIND: &'static str = "conv_lstm2d";
    const AXES: &'static str = "[batch, time, height, width, channels]";

    fn sides(self) -> Vec<usize> {
        vec![self.height, self.width]
    }

    fn convolve(x: &Tensor, kernel: &Tensor, strides: Size2d, dilation: Size2d, padding: Padding) -> Tensor {
        x.conv2d_dilated(kernel, strides.pair(), dilation.pair(), padding)
    }
}

impl Space for Size3d {
    const CLASS: &'static str = "ConvLSTM3D";
    const KIND: &'static str = "conv_lstm3d";
    const AXES: &'static str = "[batch, time, depth, height, width, channels]";

    fn sides(self) -> Vec<usize> {
        vec![self.depth, self.height, self.width]
    }

    fn convolve(x: &Tensor, kernel: &Tensor, strides: Size3d, dilation: Size3d, padding: Padding) -> Tensor {
        volume::convolve(x, kernel, strides, dilation, padding)
    }
}

/// Long short-term memory over sequences of signals `[batch, time, steps, channels]`: an
/// [`Lstm`](super::Lstm) whose products with the kernels are convolutions. The number of steps in
/// time must be known when the graph is built.
pub type ConvLstm1d = ConvLstm<Size1d>;

/// Long short-term memory over sequences of images `[batch, time, height, width, channels]`: an
/// [`Lstm`](super::Lstm) whose products with the kernels are convolutions. The number of steps must
/// be known when the graph is built.
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
pub type ConvLstm2d = ConvLstm<Size2d>;

/// Long short-term memory over sequences of volumes
/// `[batch, time, depth, height, width, channels]`: an [`Lstm`](super::Lstm) whose products with
/// the kernels are convolutions. The number of steps and the depth must be known when the graph is
/// built.
pub type ConvLstm3d = ConvLstm<Size3d>;

/// [`ConvLstm1d`], [`ConvLstm2d`] and [`ConvLstm3d`].
///
/// Variables: `kernel` `[sides.., channels, 4 filters]`, `recurrent_kernel`
/// `[sides.., filters, 4 filters]` and `bias` `[4 filters]`, in the order input gate, forget gate,
/// candidate, output gate.
#[derive(Clone, Debug)]
#[must_use]
pub struct ConvLstm<S> {
    size: S,
    strides: S,
    dilation: S,
    padding: Padding,
    options: CellOptions,
    reading: Reading,
    config: Config,
}

impl<S: Space> ConvLstm<S> {
    /// `filters` filters of a size: one number for all sides, or one for each. The result is the
    /// last `h`.
    pub fn new(filters: usize, kernel_size: impl Into<S>) -> ConvLstm<S> {
        let mut options = CellOptions::new(Cell::Lstm, filters);
        options.recurrent_activation = Activation::HardSigmoid;
        ConvLstm {
            size: kernel_size.into(),
            strides: 1.into(),
            dilation: 1.into(),
            padding: Padding::Valid,
            options,
            reading: Reading::default(),
            config: Config::default(),
        }
    }

    /// The distance between windows. By default 1.
    pub fn strides(mut self, strides: impl Into<S>) -> ConvLstm<S> {
        self.strides = strides.into();
        self
    }

    /// The distance between the elements under a window. A distance above 1 requires strides of 1.
    /// By default 1: no gaps.
    pub fn dilation(mut self, dilation: impl Into<S>) -> ConvLstm<S> {
        self.dilation = dilation.into();
        self
    }

    /// The padding at the edges of inputs. By default `Valid`: the window stays inside.
    pub fn padding(mut self, padding: Padding) -> ConvLstm<S> {
        self.padding = padding;
        self
    }

    /// Zeros around an input, so that with strides of 1 the result is as large as the input.
    pub fn same(self) -> ConvLstm<S> {
        self.padding(Padding::Same)
    }

    /// The activation of the gates. By default the hard sigmoid.
    pub fn recurrent_activation(mut self, activation: Activation) -> ConvLstm<S> {
        self.options.recurrent_activation = activation;
        self
    }

    /// Whether the bias of the forget gate starts at 1 instead of the bias initializer's value. By
    /// default it does.
    pub fn unit_forget_bias(mut self, unit_forget_bias: bool) -> ConvLstm<S> {
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
        let &[batch, time, ref inner @ ..] = x.shape().dims() else { return CellOutputs::failed(&kernel, 2) };
        let x = match call.training() && options.dropout > 0.0 {
            true => x * keep(x, joined(&[batch, 1.into()], inner), options.dropout),
            false => x.clone(),
        };
        let all = x.reshape_as(joined(&[Graph::ANY], inner));
        let product = S::convolve(&all, &kernel, self.strides, self.dilation, self.padding);
        let product = match call.find("bias") {
            Some(bias) => product + bias,
            None => product,
        };
        let [_, sides @ .., gates] = product.shape().dims() else { return CellOutputs::failed(&product, 2) };
        let state = joined(&[batch], &[sides, &[options.units.into()]].concat());
        let product = product.reshape_as(joined(&[batch, time], &[sides, &[*gates]].concat()));
        let states = match call.initial_state() {
            [] => vec![x.graph().fill(state.clone(), DType::F32, 0.0); 2],
            given => given.to_vec(),
        };
        let dropped = call.training() && options.recurrent_dropout > 0.0;
        let keep = dropped.then(|| keep(&x, state, options.recurrent_dropout));
        unrolled(&product, call.mask_of(0), states, &|x, states| {
            let seen = keep.as_ref().map_or_else(|| states[0].clone(), |keep| &states[0] * keep);
            let z = x + S::convolve(&seen, &recurrent, 1.into(), 1.into(), Padding::Same);
            let parts = z.split(&[options.units; 4], -1);
            let [input, forget, output] = [0, 1, 3].map(|i| options.recurrent_activation.of(&parts[i]));
            let c = forget * &states[1] + input * options.activation.of(&parts[2]);
            let h = output * options.activation.of(&c);
            (h.clone(), vec![h, c])
        })
    }
}

fn joined(outer: &[Dim], inner: &[Dim]) -> Shape {
    outer.iter().chain(inner).copied().collect()
}

config_setters!(ConvLstm1d);
config_setters!(ConvLstm2d);
config_setters!(ConvLstm3d);
cell_setters!(ConvLstm1d, options);
cell_setters!(ConvLstm2d, options);
cell_setters!(ConvLstm3d, options);
reading_setters!(ConvLstm1d);
reading_setters!(ConvLstm2d);
reading_setters!(ConvLstm3d);

impl<S: Space> Described for ConvLstm<S> {
    const CLASS: &'static str = S::CLASS;

    fn template() -> ConvLstm<S> {
        ConvLstm::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> ConvLstm<S> {
        fields.only("activity_regularizer", Json::Null);
        fields.only("data_format", "channels_last");
        ConvLstm {
            size: fields.required("kernel_size", &self.size),
            strides: fields.value("strides", &self.strides),
            padding: fields.value("padding", &self.padding),
            dilation: fields.value("dilation_rate", &self.dilation),
            options: self.options.fields(fields, "filters"),
            reading: self.reading.fields(fields),
            config: self.config.fields(fields),
        }
    }
}

impl<S: Space> Layer for ConvLstm<S> {
    fn kind(&self) -> &'static str {
        S::KIND
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
        let (sides, filters) = (self.size.sides(), self.options.units);
        if filters == 0 || sides.contains(&0) {
            let shown: Vec<String> = sides.iter().map(usize::to_string).collect();
            let shown = shown.join(" x ");
            let text = format!("the layer has {filters} filters of {shown}; expected at least 1 of each");
            return build.refuse(Error::config(text));
        }
        let rank = sides.len() + 3;
        let is_right = self.options.check(build)
            && check_steps(build, &self.strides.sides(), &self.dilation.sides())
            && build.takes(rank..=rank, S::AXES);
        if is_right {
            let kernel = [&sides[..], &[build.channels(), 4 * filters]].concat();
            build_kernel(&self.options.kernel, build, "kernel", &kernel);
            let initializer = Initializer::Orthogonal { gain: 1.0 };
            let recurrent = [&sides[..], &[filters, 4 * filters]].concat();
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

    fn call_all(&self, call: &LayerCall<'_>) -> Vec<Tensor> {
        self.reading.results(self.read(call, self.reading.way()))
    }
}

impl<S: Space> RecurrentLayer for ConvLstm<S> {
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
