//! `Sequential`: a model of layers one after another.

use std::borrow::Borrow;
use std::panic::Location;
use std::sync::Arc;

use estimand_nn::Layer;
use estimand_tensor::{Error, Result};

use super::input::Input;
use super::model::Model;
use super::recipe::{Recipe, Step};
use super::symbol::{LayerNode, SharedLayer};

/// A stack of layers, each applied to the result of the one before.
///
/// ```
/// use estimand::keras::Sequential;
/// use estimand::prelude::*;
///
/// let model = Sequential::new()
///     .input([784])
///     .add(Dense::new(512).relu())
///     .add(Dropout::new(0.2))
///     .add(Dense::new(10).softmax())
///     .build()?;
/// assert_eq!(model.count_params(), 407_050);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Sequential {
    name: Option<String>,
    input: Option<Input>,
    layers: Vec<SharedLayer>,
}

impl Sequential {
    /// A model without layers.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// The name of the model. By default `sequential`.
    pub fn name(mut self, name: &str) -> Sequential {
        self.name = Some(name.to_string());
        self
    }

    /// The shape of a row, or an [`Input`]. Every model needs it.
    pub fn input(mut self, input: impl Into<Input>) -> Sequential {
        self.input = Some(input.into());
        self
    }

    /// Adds a layer at the end.
    #[track_caller]
    #[allow(clippy::should_implement_trait, reason = "Keras' word for it")]
    pub fn add(mut self, layer: impl Layer + 'static) -> Sequential {
        self.layers.push(SharedLayer::new(layer));
        self
    }

    /// Adds a model with one input and one output at the end. Both have the same weights.
    #[track_caller]
    pub fn add_model(mut self, model: impl Borrow<Model>) -> Sequential {
        self.layers.push(model.borrow().shared());
        self
    }

    /// Adds a layer or model that was made before.
    pub(super) fn push(mut self, layer: SharedLayer) -> Sequential {
        self.layers.push(layer);
        self
    }

    /// Makes the model and its weights.
    #[track_caller]
    pub fn build(self) -> Result<Model> {
        let name = self.name.as_deref().unwrap_or("sequential");
        let Some(mut input) = self.input else {
            return Err(Error::config(format!("model `{name}` has no input shape"))
                .at(Location::caller())
                .help("call .input([..]) with the shape of a row, without the batch"));
        };
        let Some(first) = self.layers.first() else {
            return Err(Error::config(format!("model `{name}` has no layers"))
                .at(Location::caller())
                .help("add at least one with .add(..)"));
        };
        if input.name.is_none() {
            let LayerNode { step, .. } = &*first.0;
            // TF: the input that the first layer implies is called after it.
            input.name = Some(format!("{}_input", step.given_name().unwrap_or(step.kind())));
        }
        let start = input.tensor();
        let mut value = start.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            // A layer value that is added to two models is two layers.
            let (step, sharing) = (layer.0.step.clone(), Arc::default());
            let own = SharedLayer(Arc::new(LayerNode { step, sharing, ..*layer.0 }));
            value = own.on(&value);
            let place = || format!("in layer {i} ({}) of model `{name}`", layer.0.step.kind());
            value.check().map_err(|error| error.at(layer.0.site).context(place()))?;
        }
        let mut recipe = Recipe::new(name, &[start], &[value])?;
        recipe.is_sequential = true;
        Model::of(recipe)
    }
}

impl Step {
    /// Whether the step is an input.
    pub(super) fn is_input(&self) -> bool {
        matches!(self, Step::Input(_))
    }
}
