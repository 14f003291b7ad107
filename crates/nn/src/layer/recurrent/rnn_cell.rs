//! `RnnCell`: what a recurrent layer does in one step.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::build::BuiltLayer;
use super::super::{AsInputs, Layer, LayerCall, LayerInputs};

/// A cell: the computation of one step of a recurrent layer. [`Rnn`](super::Rnn) runs it over
/// sequences.
///
/// As a layer, a cell takes one step, `[batch, inputs]`, with the states before it as
/// [`initial_state`](LayerInputs::initial_state), and its result is the step's output.
///
/// ```
/// use estimand_graph::{Graph, Initializer, Tensor};
/// use estimand_nn::layer::{Build, Config, Layer, LayerCall};
/// use estimand_nn::{Rnn, RnnCell};
/// use estimand_tensor::{DType, Dim};
///
/// /// A mean that forgets: `h = (1 - keep) x + keep h`.
/// #[derive(Debug, Default)]
/// struct MovingMean(Config);
///
/// impl Layer for MovingMean {
///     fn kind(&self) -> &'static str {
///         "moving_mean"
///     }
///     fn config(&self) -> &Config {
///         &self.0
///     }
///     fn build(&self, build: &mut Build<'_>) {
///         build.weight("keep", &[4], Initializer::Constant(0.5), None);
///     }
///     fn call(&self, call: &LayerCall<'_>) -> Tensor {
///         self.call_cell(call)
///     }
/// }
///
/// impl RnnCell for MovingMean {
///     fn state_sizes(&self) -> Vec<usize> {
///         vec![4]
///     }
///     fn step(&self, call: &LayerCall<'_>, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
///         let keep = call.weight("keep");
///         let h = call.input() * (1.0 - &keep) + &states[0] * keep;
///         (h.clone(), vec![h])
///     }
/// }
///
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let y = Rnn::new(MovingMean::default()).return_sequences(true).apply(&x);
/// assert_eq!(y.shape().to_string(), "[batch, 7, 4]");
/// assert!(g.body().variables().find("rnn/moving_mean/keep").is_ok());
/// ```
pub trait RnnCell: Layer {
    /// The sizes of the states, which are `[batch, size]`.
    fn state_sizes(&self) -> Vec<usize>;

    /// The size of a step's output. By default that of the first state.
    fn output_size(&self) -> usize {
        self.state_sizes().first().copied().unwrap_or(0)
    }

    /// Computes a step: its output, and the states after it. `call` has the input, `[batch,
    /// inputs]`, and the weights.
    #[track_caller]
    fn step(&self, call: &LayerCall<'_>, states: &[Tensor]) -> (Tensor, Vec<Tensor>);

    /// Computes all steps of `[batch, time, inputs]`. `call` may have a mask and initial states. By
    /// default it takes one step after the other, and their number must be known when the graph is
    /// built.
    #[track_caller]
    fn sequence(&self, call: &LayerCall<'_>) -> CellOutputs {
        let states = match call.initial_state() {
            [] => zero_states(call, &self.state_sizes()),
            given => given.to_vec(),
        };
        unrolled(call.input(), call.mask_of(0), states, &|x, states| {
            let inputs = LayerInputs::of(x).training(call.training());
            self.step(&call.with_inputs(&inputs), states)
        })
    }

    /// The result of the cell as a layer: the output of one step.
    #[track_caller]
    fn call_cell(&self, call: &LayerCall<'_>) -> Tensor {
        match first_states(self, call) {
            Ok(states) => self.step(call, &states).0,
            Err(error) => call.input().graph().error(error),
        }
    }

    /// Like `apply`, but also returns the states after the step.
    #[track_caller]
    fn apply_states(&self, inputs: &dyn AsInputs) -> (Tensor, Vec<Tensor>) {
        let inputs = inputs.as_inputs();
        if let Some(error) = inputs.check(self) {
            return (error.clone(), vec![error; self.state_sizes().len()]);
        }
        let built = BuiltLayer::new(self, &inputs);
        let open = built.open(&inputs);
        match first_states(self, &open.call) {
            Ok(states) => self.step(&open.call, &states),
            Err(error) => {
                let error = inputs.first().graph().error(error);
                (error.clone(), vec![error; self.state_sizes().len()])
            }
        }
    }
}

/// The outputs of a cell over sequences.
#[derive(Clone, Debug)]
pub struct CellOutputs {
    /// `[batch, time, size]`: the output of every step. A step that does not count repeats the
    /// output before it, or is 0 if there is none.
    pub sequence: Tensor,
    /// The output of the last step that counts.
    pub last: Tensor,
    /// The states after the last step.
    pub states: Vec<Tensor>,
}

impl CellOutputs {
    /// Stands for an error.
    pub(super) fn failed(poison: &Tensor, n_states: usize) -> CellOutputs {
        CellOutputs { sequence: poison.clone(), last: poison.clone(), states: vec![poison.clone(); n_states] }
    }
}

/// The states that a call passes, or zeros.
fn first_states<C: RnnCell + ?Sized>(cell: &C, call: &LayerCall<'_>) -> Result<Vec<Tensor>> {
    let (given, sizes) = (call.initial_state(), cell.state_sizes());
    match given.len() {
        0 => Ok(zero_states(call, &sizes)),
        n if n == sizes.len() => Ok(given.to_vec()),
        n => Err(Error::config(format!("the cell got {n} states; expected {}", sizes.len()))),
    }
}

/// States of these sizes that are 0.
#[track_caller]
pub(super) fn zero_states(call: &LayerCall<'_>, sizes: &[usize]) -> Vec<Tensor> {
    let x = call.input();
    let batch = x.shape().dims().first().copied().unwrap_or(Dim::BATCH);
    let mut made: Vec<(usize, Tensor)> = Vec::new();
    let mut zeros = |size: usize| match made.iter().find(|(known, _)| *known == size) {
        Some((_, zeros)) => zeros.clone(),
        None => {
            let zeros = x.graph().fill(Shape::from([batch, size.into()]), DType::F32, 0.0);
            made.push((size, zeros.clone()));
            zeros
        }
    };
    sizes.iter().map(|&size| zeros(size)).collect()
}

/// A step: its output and the states after it, from its input and the states before.
type Step<'a> = &'a dyn Fn(&Tensor, &[Tensor]) -> (Tensor, Vec<Tensor>);

/// Takes the steps of `[batch, time, ...]` one after the other. Where the mask `[batch, time]` is
/// false, the states and the output stay.
#[track_caller]
pub(super) fn unrolled(x: &Tensor, mask: Option<&Tensor>, mut states: Vec<Tensor>, step: Step<'_>) -> CellOutputs {
    let graph = x.graph();
    let n_steps = match x.shape().dims() {
        [_, Dim::Known(n), ..] if *n > 0 => *n,
        _ => {
            let text = format!("the number of steps of {} is 0 or known only at run time", x.describe());
            let help = "declare the size of its time axis: this cell takes one step after the other";
            return CellOutputs::failed(&graph.error(Error::unsupported(text).help(help)), states.len());
        }
    };
    let mut outputs: Vec<Tensor> = Vec::new();
    for t in 0..n_steps {
        let x = at_step(x, t);
        let (mut output, mut new) = step(&x, &states);
        if let Some(mask) = mask {
            let counts = mask.slice(&[0, t], &[-1, 1]);
            let before = outputs.last().cloned().unwrap_or_else(|| output.zeros_like());
            output = with_rank(&counts, output.rank()).select(&output, &before);
            let kept = new.iter().zip(&states);
            new = kept.map(|(new, old)| with_rank(&counts, new.rank()).select(new, old)).collect();
        }
        outputs.push(output);
        states = new;
    }
    let last = outputs[n_steps - 1].clone();
    CellOutputs { sequence: Tensor::stack(&outputs.iter().collect::<Vec<_>>(), 1), last, states }
}

/// A step of `[batch, time, ...]`.
#[track_caller]
pub(super) fn at_step(x: &Tensor, t: usize) -> Tensor {
    let (mut begin, mut size) = (vec![0; x.rank()], vec![-1; x.rank()]);
    (begin[1], size[1]) = (t, 1);
    x.slice(&begin, &size).squeeze(&[1])
}

/// A mask with axes of size 1 behind it, so that it has this many.
#[track_caller]
pub(super) fn with_rank(mask: &Tensor, rank: usize) -> Tensor {
    let mut mask = mask.clone();
    while mask.rank() < rank {
        mask = mask.expand_dims(-1);
    }
    mask
}
