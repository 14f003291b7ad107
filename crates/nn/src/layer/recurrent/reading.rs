//! How a recurrent layer reads sequences: order, masks, states, and which outputs it returns.

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Error, Result};

use super::super::build::BuiltLayer;
use super::super::inputs::{INITIAL_STATE, LENGTHS, MASK};
use super::super::{AsInputs, Layer, LayerCall, LayerInputs};
use super::rnn_cell::{CellOutputs, RnnCell, with_rank};
use crate::config::Fields;

/// A layer that processes sequences step by step, such as [`Lstm`](super::Lstm) or
/// [`Rnn`](super::Rnn).
pub trait RecurrentLayer: Layer {
    /// How the layer reads.
    fn reading(&self) -> &Reading;

    /// The number of states.
    fn n_states(&self) -> usize;

    /// Reads the sequences once, and returns the result and the last states.
    #[track_caller]
    fn read(&self, call: &LayerCall<'_>, way: Way) -> (Tensor, Vec<Tensor>);

    /// Like `apply`, but also returns the states after the last step: `h`, and `c` of an LSTM.
    #[track_caller]
    fn apply_states(&self, inputs: &dyn AsInputs) -> (Tensor, Vec<Tensor>) {
        let inputs = inputs.as_inputs();
        match inputs.check(self) {
            Some(error) => (error.clone(), vec![error; self.n_states()]),
            None => self.read(&BuiltLayer::new(self, &inputs).open(&inputs).call, self.reading().way()),
        }
    }
}

/// The options that all recurrent layers have beside those of their cells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub(super) return_sequences: bool,
    pub(super) return_state: bool,
    pub(super) go_backwards: bool,
    pub(super) zero_output_for_mask: bool,
}

/// The direction and the first states of one pass over sequences.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub(super) backwards: bool,
    /// Whether the output of masked steps is 0.
    pub(super) zero_output: bool,
    /// The set of initial states that this pass starts with, of `n_sets`.
    pub(super) set: usize,
    pub(super) n_sets: usize,
}

/// The key of a layer's cell.
pub(super) const CELL: &str = "cell";

/// The names of what a call of a recurrent layer may pass.
pub(super) const NAMED_INPUTS: [&str; 3] = [MASK, LENGTHS, INITIAL_STATE];

impl Way {
    /// The sequence in reading order.
    #[track_caller]
    fn in_order(self, x: &Tensor) -> Tensor {
        if self.backwards { x.reverse(&[1]) } else { x.clone() }
    }

    /// The initial states of this pass; none if the caller passed none.
    fn first_states(self, call: &LayerCall<'_>, n: usize) -> Result<Vec<Tensor>> {
        let given = call.initial_state();
        match given.len() {
            0 => Ok(Vec::new()),
            len if len == self.n_sets * n => Ok(given[self.set * n..(self.set + 1) * n].to_vec()),
            len => Err(Error::config(format!("the layer got {len} initial states; expected {}", self.n_sets * n))),
        }
    }
}

impl Reading {
    /// Writes or reads the options.
    pub(super) fn fields(&self, fields: &mut Fields<'_>) -> Reading {
        // States are given at the call.
        fields.only("stateful", false);
        fields.only_read("time_major", &[false.into()]);
        // How Keras computes, which does not change the result.
        for key in ["unroll", "use_cudnn"] {
            fields.ignored(key);
        }
        Reading {
            return_sequences: fields.value("return_sequences", &self.return_sequences),
            return_state: fields.value("return_state", &self.return_state),
            go_backwards: fields.value("go_backwards", &self.go_backwards),
            zero_output_for_mask: fields.value("zero_output_for_mask", &self.zero_output_for_mask),
        }
    }

    /// The direction and first states according to the options.
    pub(super) fn way(&self) -> Way {
        Way { backwards: self.go_backwards, zero_output: self.zero_output_for_mask, set: 0, n_sets: 1 }
    }

    /// What a cell reads: the sequences in reading order, the steps that count, and the first
    /// states, if there are any. The error is the tensor that stands for it.
    #[track_caller]
    pub(super) fn inputs(&self, call: &LayerCall<'_>, n_states: usize, way: Way) -> Result<LayerInputs, Tensor> {
        let graph = call.input().graph();
        let x = way.in_order(call.input());
        let Some(&[_, time]) = x.shape().dims().first_chunk() else {
            let error = format!("{} is not a sequence; expected [batch, time, ...]", x.describe());
            return Err(graph.error(Error::shape(error)));
        };
        let mut inputs = LayerInputs::of(&x).training(call.training());
        if let Some(mask) = counted_steps(call, time, way) {
            inputs = inputs.mask(&mask);
        }
        match way.first_states(call, n_states) {
            Ok(states) if states.is_empty() => Ok(inputs),
            Ok(states) => Ok(inputs.initial_state(&states)),
            Err(error) => Err(graph.error(error)),
        }
    }

    /// Runs a cell that the layer has built under [`CELL`], and returns the result and the last
    /// states.
    #[track_caller]
    pub(super) fn run<C: RnnCell + ?Sized>(&self, call: &LayerCall<'_>, cell: &C, way: Way) -> (Tensor, Vec<Tensor>) {
        let n_states = cell.state_sizes().len();
        // A layer that was refused has not built its cell.
        match self.inputs(call, n_states, way).and_then(|inputs| Ok((inputs, call.built_child(CELL)?))) {
            Ok((inputs, built)) => self.result(cell.sequence(&built.open(&inputs).call), &inputs, way),
            Err(error) => (error.clone(), vec![error; n_states]),
        }
    }

    /// The results of a layer: with `return_state`, the last states follow the result.
    pub(super) fn results(&self, (result, states): (Tensor, Vec<Tensor>)) -> Vec<Tensor> {
        let states = if self.return_state { states } else { Vec::new() };
        [result].into_iter().chain(states).collect()
    }

    /// What the layer returns of a cell's outputs: all or the last, and the last states.
    #[track_caller]
    pub(super) fn result(&self, outputs: CellOutputs, inputs: &LayerInputs, way: Way) -> (Tensor, Vec<Tensor>) {
        let mask = inputs.mask_of(0).filter(|_| way.zero_output);
        let (output, mask) = match self.return_sequences {
            true => (outputs.sequence, mask.cloned()),
            false => (outputs.last, mask.map(|mask| mask.reverse(&[1]).slice(&[0, 0], &[-1, 1]))),
        };
        let output = match mask {
            Some(mask) if !output.is_poisoned() => with_rank(&mask, output.rank()).select(&output, 0.0),
            _ => output,
        };
        (output, outputs.states)
    }
}

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
