//! `Rnn`: the layer that runs any cell over sequences.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::{Result, Shape};

use super::super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use super::reading::{CELL, NAMED_INPUTS, Reading, RecurrentLayer, Way};
use super::rnn_cell::RnnCell;
use super::setters::reading_setters;
use super::{GruCell, LstmCell, SimpleRnnCell, StackedRnnCells};
use crate::config::{self, Described, Field, Fields, Json, Node, Read};

/// Runs a cell over the steps of `[batch, time, inputs]`: a [`LstmCell`], [`GruCell`] or
/// [`SimpleRnnCell`], cells on top of each other ([`StackedRnnCells`]), or a cell of one's own
/// ([`RnnCell`]).
///
/// The cells of this crate run all steps as one op. A cell of one's own takes one step after the
/// other, and the number of steps must be known when the graph is built.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, LstmCell, Rnn};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let y = Rnn::new(LstmCell::new(3)).return_sequences(true).apply(&x);
/// assert_eq!(y.shape().to_string(), "[batch, 7, 3]");
/// assert!(g.body().variables().find("rnn/lstm_cell/kernel").is_ok());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Rnn {
    cell: Arc<dyn RnnCell>,
    reading: Reading,
    config: Config,
}

impl Rnn {
    /// Runs this cell. The result is the last output.
    pub fn new(cell: impl RnnCell + 'static) -> Rnn {
        Rnn::from_cell(Arc::new(cell))
    }

    /// Runs a cell whose type is known only at run time. The result is the last output.
    pub fn from_cell(cell: Arc<dyn RnnCell>) -> Rnn {
        Rnn { cell, reading: Reading::default(), config: Config::default() }
    }
}

config_setters!(Rnn);
reading_setters!(Rnn);

impl Described for Rnn {
    const CLASS: &'static str = "RNN";

    fn template() -> Rnn {
        Rnn::new(SimpleRnnCell::new(1))
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Rnn {
        // A cell that takes constants is not one of these.
        fields.only_read("num_constants", &[0.into(), Json::Null]);
        Rnn {
            cell: fields.required("cell", &self.cell),
            reading: self.reading.fields(fields),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Rnn {
    fn kind(&self) -> &'static str {
        "rnn"
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
        if build.takes(3..=usize::MAX, "[batch, time, inputs]") {
            let name = self.cell.config().name.as_deref().unwrap_or(self.cell.kind()).to_string();
            // The cell needs the shape of a step alone.
            let x = build.input();
            let mut step: Shape = x.shape().clone();
            step.0.remove(1);
            let step = x.graph().fill(step, x.dtype(), 0.0);
            build.child(CELL, &name, &*self.cell, &step);
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

impl RecurrentLayer for Rnn {
    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn n_states(&self) -> usize {
        self.cell.state_sizes().len()
    }

    fn read(&self, call: &LayerCall<'_>, way: Way) -> (Tensor, Vec<Tensor>) {
        self.reading.run(call, &*self.cell, way)
    }
}

/// A class with its reader.
const fn class<C: RnnCell + Described + 'static>() -> (&'static str, Read<Arc<dyn RnnCell>>) {
    (C::CLASS, |config| config::read::<C>(config).map(|cell| Arc::new(cell) as Arc<dyn RnnCell>))
}

/// Every cell that can be read. Others are added with `CustomObjects::object`.
const CLASSES: [(&str, Read<Arc<dyn RnnCell>>); 4] =
    [class::<GruCell>(), class::<LstmCell>(), class::<SimpleRnnCell>(), class::<StackedRnnCells>()];

impl Field for Arc<dyn RnnCell> {
    fn write(&self) -> Result<Json> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<Arc<dyn RnnCell>> {
        config::read_object(node, "cell", &CLASSES)
    }
}
