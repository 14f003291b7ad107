//! The cells of a recurrent network: their units and type, or a cell given by the user.

use std::sync::Arc;

use estimand_nn::config::{Field, Fields, Json, Node};
use estimand_nn::{Gru, GruCell, Layer, Lstm, LstmCell, Rnn, RnnCell, SimpleRnn, SimpleRnnCell, StackedRnnCells};
use estimand_tensor::{Error, Result};

/// Limits of what a description may ask for: memory is taken before a checkpoint is read.
const MAX_UNITS: usize = 1 << 20;
const MAX_CELLS: usize = 1_000;

/// A type of recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// [`SimpleRnnCell`]: the state is a function of the input and the last state.
    SimpleRnn,
    /// [`LstmCell`]: gates control what enters, stays in and leaves the state.
    Lstm,
    /// [`GruCell`]: as an LSTM, with fewer weights.
    Gru,
}

/// The cell types by their names in TensorFlow.
const CELL_TYPES: [(&str, Option<CellType>); 3] =
    [("simple_rnn", Some(CellType::SimpleRnn)), ("lstm", Some(CellType::Lstm)), ("gru", Some(CellType::Gru))];

/// The units of a recurrent network: a number, or a list with a number for each cell.
///
/// ```
/// use estimand::premade::Units;
/// assert_eq!(Units::from([32, 16]), Units::Cells(vec![32, 16]));
/// assert_eq!(Units::from(32), Units::Layer(32));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Units {
    /// One recurrent layer of Keras.
    Layer(usize),
    /// Cells on top of each other.
    Cells(Vec<usize>),
}

impl Units {
    fn all(&self) -> &[usize] {
        match self {
            Units::Layer(units) => std::slice::from_ref(units),
            Units::Cells(units) => units,
        }
    }
}

impl From<usize> for Units {
    fn from(units: usize) -> Units {
        Units::Layer(units)
    }
}

impl From<Vec<usize>> for Units {
    fn from(units: Vec<usize>) -> Units {
        Units::Cells(units)
    }
}

impl From<&[usize]> for Units {
    fn from(units: &[usize]) -> Units {
        Units::Cells(units.to_vec())
    }
}

impl<const N: usize> From<[usize; N]> for Units {
    fn from(units: [usize; N]) -> Units {
        Units::Cells(units.to_vec())
    }
}

impl Field for Units {
    fn write(&self) -> Result<Json> {
        match self {
            Units::Layer(units) => units.write(),
            Units::Cells(units) => units.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<Units> {
        match node.value().is_array() {
            true => Vec::read(node).map(Units::Cells),
            false => usize::read(node).map(Units::Layer),
        }
    }
}

/// The settings that say which cells a network has.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    pub units: Option<Units>,
    pub cell_type: Option<CellType>,
    pub cell: Option<Arc<dyn RnnCell>>,
}

impl Cells {
    /// Writes or reads the settings.
    pub fn fields(&self, fields: &mut Fields<'_>) -> Cells {
        Cells {
            units: fields.optional("units", &self.units),
            cell_type: fields.choice_or_null("cell_type", &self.cell_type, &CELL_TYPES, &None),
            cell: fields.optional("rnn_cell", &self.cell),
        }
    }

    pub fn check(&self) -> Result<()> {
        let given = match (&self.cell, &self.units) {
            (None, None) => {
                return Err(Error::config("a recurrent network was given no cells")
                    .help("set the units of its cells, such as .units([32]), or a cell with .rnn_cell(..)"));
            }
            (None, Some(units)) => units.all().to_vec(),
            (Some(_), Some(units)) => {
                return Err(both("units", units.all()));
            }
            (Some(cell), None) => match self.cell_type {
                Some(cell_type) => return Err(both("cell_type", cell_type)),
                None => cell.state_sizes(),
            },
        };
        let what = if self.cell.is_some() { "the states of rnn_cell are" } else { "units is" };
        if given.is_empty() {
            return Err(Error::config(format!("{what} an empty list")).help("give at least one cell"));
        }
        if given.len() > MAX_CELLS {
            return Err(Error::config(format!("{what} a list of {}; expected at most {MAX_CELLS}", given.len()))
                .help("stack fewer cells, with more units each"));
        }
        match given.iter().copied().find(|units| !(1..=MAX_UNITS).contains(units)) {
            Some(units) => Err(Error::config(format!("{what} {given:?}: a cell has {units} units"))
                .help(format!("give every cell from 1 to {MAX_UNITS} units"))),
            None => Ok(()),
        }
    }

    /// The recurrent layer.
    pub fn layer(&self, return_sequences: bool) -> Result<Box<dyn Layer>> {
        let cell_type = self.cell_type.unwrap_or(CellType::SimpleRnn);
        let cell: Arc<dyn RnnCell> = match (&self.cell, &self.units) {
            (Some(cell), _) => cell.clone(),
            (None, Some(Units::Layer(units))) => return Ok(cell_type.layer(*units, return_sequences)),
            (None, Some(Units::Cells(units))) => match units[..] {
                [units] => cell_type.cell(units),
                _ => Arc::new(units.iter().fold(StackedRnnCells::new(), |cells, &units| cell_type.on(cells, units))),
            },
            (None, None) => return Err(Error::internal("a recurrent network without cells was let through")),
        };
        Ok(Box::new(Rnn::from_cell(cell).return_sequences(return_sequences).name("rnn")))
    }
}

impl CellType {
    /// A layer of this type, with Keras' name.
    fn layer(self, units: usize, return_sequences: bool) -> Box<dyn Layer> {
        match self {
            CellType::SimpleRnn => {
                Box::new(SimpleRnn::new(units).return_sequences(return_sequences).name("simple_rnn"))
            }
            CellType::Lstm => Box::new(Lstm::new(units).return_sequences(return_sequences).name("lstm")),
            CellType::Gru => Box::new(Gru::new(units).return_sequences(return_sequences).name("gru")),
        }
    }

    fn cell(self, units: usize) -> Arc<dyn RnnCell> {
        match self {
            CellType::SimpleRnn => Arc::new(SimpleRnnCell::new(units)),
            CellType::Lstm => Arc::new(LstmCell::new(units)),
            CellType::Gru => Arc::new(GruCell::new(units)),
        }
    }

    /// Cells with one more of this type on top.
    fn on(self, cells: StackedRnnCells, units: usize) -> StackedRnnCells {
        match self {
            CellType::SimpleRnn => cells.cell(SimpleRnnCell::new(units)),
            CellType::Lstm => cells.cell(LstmCell::new(units)),
            CellType::Gru => cells.cell(GruCell::new(units)),
        }
    }
}

/// The error of a cell beside settings that it excludes.
fn both(setting: &str, value: impl std::fmt::Debug) -> Error {
    Error::config(format!("{setting} is set to {value:?}, but rnn_cell is set too"))
        .help("a cell has its own units and type: set rnn_cell alone, or units and cell_type")
}
