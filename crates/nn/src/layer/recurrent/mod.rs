//! Recurrent layers: a cell, and the way it reads sequences.
//!
//! `rnn_cell` defines what a cell is. `cell` holds the arithmetic of the cells of `simple_rnn`,
//! `lstm` and `gru`, each with its layer; `setters` their options; `stacked` puts cells on top of
//! each other; `rnn` is the layer that runs any cell, `conv_lstm` LSTMs of signals, images and
//! volumes, `bidirectional` the wrapper that reads both ways. `reading` is what all these layers
//! share.

mod bidirectional;
mod cell;
mod conv_lstm;
mod gru;
mod lstm;
mod reading;
mod rnn;
mod rnn_cell;
mod setters;
mod simple_rnn;
mod stacked;

pub use bidirectional::{Bidirectional, MergeMode};
pub use conv_lstm::{ConvLstm, ConvLstm1d, ConvLstm2d, ConvLstm3d};
pub use gru::{Gru, GruCell};
pub use lstm::{Lstm, LstmCell};
pub use reading::{Reading, RecurrentLayer};
pub use rnn::Rnn;
pub use rnn_cell::{CellOutputs, RnnCell};
pub use simple_rnn::{SimpleRnn, SimpleRnnCell};
pub use stacked::StackedRnnCells;
