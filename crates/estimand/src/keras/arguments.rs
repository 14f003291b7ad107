//! The arguments of a call of a layer: Keras' `base(x, training=False)` and
//! `decoder(x, initial_state=states)`.

use super::recipe::CallArguments;
use super::symbol::{KerasTensor, Symbols};

/// Values with the arguments of a call.
///
/// ```
/// use estimand::keras::{CallInputs, Functional, Input, Model, Sequential};
/// use estimand::prelude::*;
///
/// let base = Sequential::new().name("base").input([4]).add(Dense::new(3)).add(BatchNorm::new()).build()?;
/// let x = Input::new([4]).tensor();
/// // `base(x, training=False)`: batch norm uses its moving statistics, also while it is trained.
/// let features = base.on(&CallInputs::of(&x).training(false));
/// let model = Model::new(&x, &Dense::new(1).on(&features))?;
/// # assert_eq!(model.count_params(), 15 + 12 + 4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CallInputs {
    values: Vec<KerasTensor>,
    states: Vec<KerasTensor>,
    arguments: CallArguments,
}

impl CallInputs {
    /// Values, without arguments yet.
    pub fn of(values: &dyn Symbols) -> CallInputs {
        CallInputs { values: values.symbols(), states: Vec::new(), arguments: values.arguments() }
    }

    /// Whether the layer, or each layer of a model, computes as in training, whatever runs the
    /// model. By default `fit` does, and `evaluate` and `predict` do not. This is as in tf.keras
    /// 2.15; Keras 3 does not obey the argument in a whole model.
    pub fn training(mut self, training: bool) -> CallInputs {
        self.arguments.training = Some(training);
        self
    }

    /// Whether a step of an attention layer attends only to itself and to earlier steps. By default
    /// it attends to all.
    pub fn use_causal_mask(mut self, use_causal_mask: bool) -> CallInputs {
        self.arguments.use_causal_mask = use_causal_mask;
        self
    }

    /// The states that a recurrent layer begins with: `h`, and `c` of an LSTM. By default 0. With
    /// them a decoder begins with the last states of an encoder.
    ///
    /// ```
    /// use estimand::keras::{CallInputs, Functional, Input, Model};
    /// use estimand::prelude::*;
    ///
    /// let steps = || Input::new([Graph::ANY, 8.into()]).tensor();
    /// let (question, answer) = (steps(), steps());
    /// let encoded = Lstm::new(16).return_state(true).on_all(&question);
    /// let answers = CallInputs::of(&answer).initial_state(&[&encoded[1], &encoded[2]]);
    /// let decoded = Lstm::new(16).return_sequences(true).on(&answers);
    /// let model = Model::new(&[&question, &answer], &Dense::new(8).softmax().on(&decoded))?;
    /// # assert_eq!(model.count_params(), 2 * 4 * 16 * (8 + 16 + 1) + 16 * 8 + 8);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn initial_state(mut self, states: &dyn Symbols) -> CallInputs {
        self.states = states.symbols();
        self
    }
}

impl Symbols for CallInputs {
    fn symbols(&self) -> Vec<KerasTensor> {
        self.values.iter().chain(&self.states).cloned().collect()
    }

    fn arguments(&self) -> CallArguments {
        self.arguments
    }
}
