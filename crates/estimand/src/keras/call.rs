//! Applies layers to symbolic values. Shapes and mistakes are found at once, in a graph of its own.

use std::panic::Location;
use std::sync::Arc;

use estimand_graph::{Graph, Tensor};
use estimand_nn::Layer;
use estimand_tensor::{DType, Error, Result, Shape};

use super::recipe::{CallArguments, Recipe, Spec, placeholder};
use super::replay::{self, Replay};
use super::symbol::{Call, KerasTensor, SharedLayer, Symbols};

/// Applies layers to symbolic values: Keras' `Dense(64)(x)` is `Dense::new(64).on(&x)`.
///
/// ```
/// use estimand::keras::{Functional, Input, Model};
/// use estimand::nn::Concat;
/// use estimand::prelude::*;
///
/// let (a, b) = (Input::new([4]).name("a").tensor(), Input::new([6]).name("b").tensor());
/// let hidden = Dense::new(8).relu().on(&Concat::new().on(&[&a, &b]));
/// let model = Model::new(&[&a, &b], &Dense::new(1).on(&hidden))?;
/// assert_eq!(model.count_params(), 10 * 8 + 8 + 8 + 1);
/// # Ok::<(), Error>(())
/// ```
pub trait Functional: Layer + Sized + 'static {
    /// Applies the layer. A mistake is returned when a model is made of the result.
    #[track_caller]
    fn on(self, inputs: &dyn Symbols) -> KerasTensor {
        SharedLayer::new(self).on(inputs)
    }

    /// Applies a layer that may have several results, such as an [`Lstm`](estimand_nn::Lstm) with
    /// `return_state`: the result, then the last states.
    #[track_caller]
    fn on_all(self, inputs: &dyn Symbols) -> Vec<KerasTensor> {
        SharedLayer::new(self).on_all(inputs)
    }
}

impl<L: Layer + Sized + 'static> Functional for L {}

impl SharedLayer {
    /// Applies the layer. A mistake is returned when a model is made of the result.
    #[track_caller]
    pub fn on(&self, inputs: &dyn Symbols) -> KerasTensor {
        let mut outputs = self.on_all(inputs);
        if outputs.len() == 1 {
            return outputs.remove(0);
        }
        let text = format!("{} has {} outputs; expected one", self.kind(), outputs.len());
        let error =
            Error::config(text).help("use on_all for a layer or model with several outputs").at(Location::caller());
        poisoned(self.clone(), inputs.symbols(), error)
    }

    /// Applies a layer or model that may have several outputs.
    #[track_caller]
    pub fn on_all(&self, inputs: &dyn Symbols) -> Vec<KerasTensor> {
        self.call_at(inputs.symbols(), inputs.arguments(), Location::caller())
    }

    /// Applies the layer at a line of the user.
    pub(super) fn call_at(
        &self,
        inputs: Vec<KerasTensor>,
        arguments: CallArguments,
        site: &'static Location<'static>,
    ) -> Vec<KerasTensor> {
        let earlier = inputs.iter().find_map(|input| input.call.error.clone());
        let outputs = match earlier {
            Some(error) => Err(error),
            None => self.infer(&inputs, arguments, site),
        };
        match outputs {
            Ok(outputs) => {
                let n = outputs.len();
                let call = Arc::new(Call { layer: self.clone(), inputs, arguments, outputs, error: None });
                (0..n).map(|output| KerasTensor { call: call.clone(), output }).collect()
            }
            Err(error) => vec![poisoned(self.clone(), inputs, error)],
        }
    }

    /// The dtypes and shapes of the results, found in a graph of their own.
    fn infer(
        &self,
        inputs: &[KerasTensor],
        arguments: CallArguments,
        site: &'static Location<'static>,
    ) -> Result<Vec<Spec>> {
        if inputs.is_empty() {
            return Err(Error::config(format!("{} got no values; expected at least one", self.kind())).at(site));
        }
        let graph = Graph::new();
        let mut name = self.0.step.given_name().unwrap_or(self.kind()).to_string();
        // Sizes that only a run tells are related to each other in the whole model alone.
        let tensors = match inputs.iter().all(|input| input.spec().is_known()) {
            true => inputs.iter().map(|input| placeholder(&graph, input.call.layer.kind(), input.spec())).collect(),
            false => {
                let recipe = Recipe::all_of(inputs)?;
                let places: Vec<Tensor> = recipe.placeholders(&graph);
                // The model around all layers names them; here a name only must be free.
                while recipe.layers.iter().any(|layer| layer.name == name) {
                    name.push('_');
                }
                Replay::new(&recipe).call(&graph, &places, replay::Flags::default())
            }
        };
        let _line = graph.line(site, file!());
        let inputs: Vec<replay::Masked> = tensors.iter().map(replay::Masked::from).collect();
        let flags = replay::Flags::default().with(arguments);
        let results = replay::apply(&self.0.step, &mut None, &name, &graph, &inputs, flags);
        graph.check()?;
        Ok(results.iter().map(|result| Spec::of(&result.tensor)).collect())
    }
}

fn poisoned(layer: SharedLayer, inputs: Vec<KerasTensor>, error: Error) -> KerasTensor {
    let outputs = vec![Spec { dtype: DType::F32, shape: Shape::scalar() }];
    let call = Call { layer, inputs, arguments: CallArguments::default(), outputs, error: Some(error) };
    KerasTensor { call: Arc::new(call), output: 0 }
}
