//! `StackedRnnCells`: cells on top of each other.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::inputs::INITIAL_STATE;
use super::super::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use super::rnn_cell::{CellOutputs, RnnCell};
use crate::config::{self, Described, Fields, Json};

/// Cells on top of each other, as one cell: the output of each is the input of the next. The states
/// are those of the first cell, then those of the second, and so on.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{GruCell, Layer, LstmCell, Rnn, StackedRnnCells};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let y = Rnn::new(StackedRnnCells::new().cell(LstmCell::new(5)).cell(GruCell::new(3))).apply(&x);
/// assert_eq!(y.shape().to_string(), "[batch, 3]");
/// assert!(g.body().variables().find("rnn/stacked_rnn_cells/gru_cell/kernel").is_ok());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct StackedRnnCells {
    cells: Vec<Arc<dyn RnnCell>>,
    config: Config,
}

impl StackedRnnCells {
    /// No cells yet.
    pub fn new() -> StackedRnnCells {
        StackedRnnCells::default()
    }

    /// Puts a cell on top.
    pub fn cell(mut self, cell: impl RnnCell + 'static) -> StackedRnnCells {
        self.cells.push(Arc::new(cell));
        self
    }

    /// The cells with their keys and their parts of the states.
    fn parts<'a>(&'a self, states: &'a [Tensor]) -> impl Iterator<Item = (String, &'a dyn RnnCell, &'a [Tensor])> {
        let mut rest = states;
        self.cells.iter().enumerate().map(move |(i, cell)| {
            let (own, others) = rest.split_at(cell.state_sizes().len().min(rest.len()));
            rest = others;
            (i.to_string(), &**cell, own)
        })
    }

    /// The names of the cells' scopes: `lstm_cell`, `lstm_cell_1`, and so on.
    fn scopes(&self) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        for cell in &self.cells {
            let name = cell.config().name.clone().unwrap_or(cell.kind().to_string());
            let numbered = (1..).map(|n| format!("{name}_{n}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|scope| !scopes.contains(scope));
            scopes.extend(free);
        }
        scopes
    }
}

config_setters!(StackedRnnCells);

impl Described for StackedRnnCells {
    const CLASS: &'static str = "StackedRNNCells";

    fn template() -> StackedRnnCells {
        StackedRnnCells::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> StackedRnnCells {
        fields.only_read("reverse_state_order", &[false.into()]);
        StackedRnnCells { cells: fields.required("cells", &self.cells), config: self.config.fields(fields) }
    }
}

impl Layer for StackedRnnCells {
    fn kind(&self) -> &'static str {
        "stacked_rnn_cells"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.cells.is_empty() {
            return build.refuse(Error::config("there are no cells; expected at least one").help("call .cell(..)"));
        }
        let mut x = build.input().clone();
        let batch = x.shape().dims().first().copied().unwrap_or(Dim::BATCH);
        for (i, (cell, scope)) in self.cells.iter().zip(self.scopes()).enumerate() {
            build.child(&i.to_string(), &scope, &**cell, &x);
            // The next cell needs the shape alone.
            x = build.graph().fill(Shape::from([batch, cell.output_size().into()]), DType::F32, 0.0);
        }
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &[INITIAL_STATE]
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.call_cell(call)
    }
}

impl RnnCell for StackedRnnCells {
    fn state_sizes(&self) -> Vec<usize> {
        self.cells.iter().flat_map(|cell| cell.state_sizes()).collect()
    }

    fn output_size(&self) -> usize {
        self.cells.last().map_or(0, |cell| cell.output_size())
    }

    fn step(&self, call: &LayerCall<'_>, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        let (mut x, mut after) = (call.input().clone(), Vec::new());
        for (key, cell, own) in self.parts(states) {
            let built = match call.built_child(&key) {
                Ok(built) => built,
                Err(error) => return (error.clone(), vec![error; states.len()]),
            };
            let inputs = LayerInputs::of(&x).training(call.training());
            let (output, new) = cell.step(&built.open(&inputs).call, own);
            x = output;
            after.extend(new);
        }
        (x, after)
    }

    /// One cell after the other reads the whole sequence. The result is that of taking the steps
    /// one by one, since a cell needs only the outputs of the cell below.
    fn sequence(&self, call: &LayerCall<'_>) -> CellOutputs {
        let mut below: Option<CellOutputs> = None;
        let mut states = Vec::new();
        for (key, cell, own) in self.parts(call.initial_state()) {
            let built = match call.built_child(&key) {
                Ok(built) => built,
                Err(error) => return CellOutputs::failed(&error, self.state_sizes().len()),
            };
            let x = below.as_ref().map_or(call.input(), |below| &below.sequence);
            let mut inputs = LayerInputs::of(x).training(call.training());
            if let Some(mask) = call.mask_of(0) {
                inputs = inputs.mask(mask);
            }
            if !own.is_empty() {
                inputs = inputs.initial_state(own);
            }
            let outputs = cell.sequence(&built.open(&inputs).call);
            states.extend(outputs.states.iter().cloned());
            below = Some(outputs);
        }
        match below {
            Some(outputs) => CellOutputs { states, ..outputs },
            // `build` has refused a stack without cells.
            None => CellOutputs::failed(call.input(), 0),
        }
    }
}
