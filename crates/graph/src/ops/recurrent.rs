//! Recurrent cells over sequences: as one op, or step by step.

use std::panic::Location;

use estimand_tensor::{Error, Shape, TensorSpec};

use crate::op::recurrent::results;
use crate::op::{Cell, CellFunction, Op, Recurrent};
use crate::tensor::Tensor;

/// The inputs of a recurrent cell beside its sequence.
#[derive(Clone, Debug)]
pub struct RecurrentInputs {
    /// The recurrent kernel, `[units, gates * units]`.
    pub kernel: Tensor,
    /// `[gates * units]`, added to the product with the kernel. Only a GRU that resets after the
    /// product has it.
    pub bias: Option<Tensor>,
    /// The initial states, `[batch, units]`: `h`, and `c` of an LSTM.
    pub states: Vec<Tensor>,
    /// `[batch, time]` of booleans. A step whose mask is false leaves the states unchanged. By
    /// default all steps count.
    pub mask: Option<Tensor>,
    /// `[batch, units]`: factors of `h` before its product with the kernel, at every step. By
    /// default there are none.
    pub keep: Option<Tensor>,
}

impl RecurrentInputs {
    /// The tensors in the order of the op's inputs.
    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        [&self.kernel].into_iter().chain(&self.bias).chain(&self.states).chain(&self.mask).chain(&self.keep)
    }

    fn step(&self, cell: Cell, activation: CellFunction, recurrent_activation: CellFunction) -> Recurrent {
        let (masked, dropped) = (self.mask.is_some(), self.keep.is_some());
        Recurrent { cell, activation, recurrent_activation, masked, dropped }
    }
}

/// The outputs of a recurrent cell over a sequence.
#[derive(Clone, Debug)]
pub struct RecurrentOutputs {
    /// `[batch, time, units]`: `h` after every step.
    pub sequence: Tensor,
    /// The states after the last step.
    pub states: Vec<Tensor>,
}

/// A function of the values of one step.
pub type StepFunction<'a> = &'a dyn Fn(&Tensor) -> Tensor;

impl Tensor {
    /// Applies a recurrent cell to every step of `[batch, time, gates * units]`, the products of
    /// the inputs with their kernel.
    ///
    /// Gates are in Keras' order: input, forget, candidate, output for an LSTM; update, reset,
    /// candidate for a GRU.
    ///
    /// ```
    /// use estimand_engine::Eval;
    /// use estimand_graph::op::{Cell, CellFunction};
    /// use estimand_graph::{Graph, RecurrentInputs};
    /// use estimand_tensor::{Array, DType};
    ///
    /// let g = Graph::new();
    /// let x = g.constant(Array::from_vec([1, 3, 1], vec![1.0f32, 0.0, 0.0])?);
    /// let inputs = RecurrentInputs {
    ///     kernel: g.constant(Array::from_vec([1, 1], vec![0.5f32])?),
    ///     bias: None,
    ///     states: vec![g.fill([1, 1], DType::F32, 0.0)],
    ///     mask: None,
    ///     keep: None,
    /// };
    /// let y = x.recurrent(Cell::Simple, CellFunction::Linear, CellFunction::Linear, &inputs).sequence;
    /// assert_eq!(y.eval()?.as_slice::<f32>()?, [1.0, 0.5, 0.25]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn recurrent(
        &self,
        cell: Cell,
        activation: CellFunction,
        recurrent_activation: CellFunction,
        inputs: &RecurrentInputs,
    ) -> RecurrentOutputs {
        let step = inputs.step(cell, activation, recurrent_activation);
        let others: Vec<&Tensor> = inputs.tensors().collect();
        let sequence = self.then(Op::Recurrent(step), &others, Location::caller());
        let state = |i: usize| self.graph().output(&sequence, i as u16 + 1);
        RecurrentOutputs { states: (0..step.n_states()).map(state).collect(), sequence }
    }

    /// Like [`recurrent`](Tensor::recurrent) with functions of any kind, as one node for every
    /// operation of every step. It is slower, and the number of steps must be known when the graph
    /// is built.
    #[track_caller]
    pub fn recurrent_unrolled(
        &self,
        cell: Cell,
        activation: StepFunction<'_>,
        recurrent_activation: StepFunction<'_>,
        inputs: &RecurrentInputs,
    ) -> RecurrentOutputs {
        let graph = self.graph();
        let poison =
            || RecurrentOutputs { sequence: graph.poison(), states: vec![graph.poison(); inputs.states.len()] };
        if self.is_poisoned() || inputs.tensors().any(Tensor::is_poisoned) {
            return poison();
        }
        // Inputs that the op would refuse are refused here. The functions do not matter for this
        // check.
        let step = inputs.step(cell, CellFunction::Linear, CellFunction::Linear);
        let specs: Vec<&TensorSpec> = [self].into_iter().chain(inputs.tensors()).map(|x| x.spec()).collect();
        if let Err(error) = results(&step, &specs) {
            graph.error(error.context(format!("in the steps of {}", self.describe())));
            return poison();
        }
        let [batch, time, width] = [0, 1, 2].map(|axis| self.shape().dims()[axis]);
        let units = inputs.kernel.shape().dims()[0];
        let (Some(n_steps), Some(width)) = (time.known(), width.known()) else {
            let error = format!("the number of steps of {} is known only at run time", self.describe());
            graph.error(
                Error::unsupported(error).help("declare the size of its time axis, or use functions of CellFunction"),
            );
            return poison();
        };
        let mut states = inputs.states.clone();
        let mut sequence = Vec::new();
        for t in 0..n_steps {
            let x = self.slice(&[0, t, 0], &[-1, 1, -1]).reshape([-1, width as i64]);
            let counts = inputs.mask.as_ref().map(|mask| mask.slice(&[0, t], &[-1, 1]));
            states = next_states(cell, &x, counts.as_ref(), &states, [activation, recurrent_activation], inputs);
            sequence.push(states[0].clone());
        }
        let sequence = match &sequence[..] {
            [] => graph.fill(Shape::from([batch, 0.into(), units]), self.dtype(), 0.0),
            _ => Tensor::stack(&sequence.iter().collect::<Vec<_>>(), 1),
        };
        RecurrentOutputs { sequence, states }
    }
}

/// Computes the states after a step from its input and the previous states. `counts` is `[batch,
/// 1]`: where it is false, the states stay. The functions are those of candidates and of gates.
#[track_caller]
pub(crate) fn next_states(
    cell: Cell,
    x: &Tensor,
    counts: Option<&Tensor>,
    states: &[Tensor],
    functions: [StepFunction<'_>; 2],
    inputs: &RecurrentInputs,
) -> Vec<Tensor> {
    let new = one_step(cell, x, states, functions, inputs);
    match counts {
        None => new,
        Some(counts) => new.iter().zip(states).map(|(new, old)| counts.select(new, old)).collect(),
    }
}

#[track_caller]
fn one_step(
    cell: Cell,
    x: &Tensor,
    states: &[Tensor],
    [activation, recurrent_activation]: [StepFunction<'_>; 2],
    inputs: &RecurrentInputs,
) -> Vec<Tensor> {
    let h = &states[0];
    let units = h.channels();
    let part = |of: &Tensor, i: usize| of.slice(&[0, i * units], &[-1, units as i64]);
    let seen = inputs.keep.as_ref().map_or_else(|| h.clone(), |keep| h * keep);
    let product = |left: &Tensor, first: usize, n: usize| {
        let product = left.matmul(&inputs.kernel.slice(&[0, first * units], &[-1, (n * units) as i64]));
        match &inputs.bias {
            Some(bias) => product + bias.slice(&[first * units], &[(n * units) as i64]),
            None => product,
        }
    };
    match cell {
        Cell::Simple => vec![activation(&(x + product(&seen, 0, 1)))],
        Cell::Lstm => {
            let z = x + product(&seen, 0, 4);
            let [input, forget, output] = [0, 1, 3].map(|i| recurrent_activation(&part(&z, i)));
            let c = forget * &states[1] + input * activation(&part(&z, 2));
            vec![output * activation(&c), c]
        }
        Cell::Gru { reset_after } => {
            let gates = product(&seen, 0, 2);
            let [update, reset] = [0, 1].map(|i| recurrent_activation(&(part(x, i) + part(&gates, i))));
            let candidate = match reset_after {
                true => &reset * product(&seen, 2, 1),
                false => product(&(&reset * &seen), 2, 1),
            };
            let candidate = activation(&(part(x, 2) + candidate));
            vec![&update * h + (1.0 - &update) * candidate]
        }
    }
}
