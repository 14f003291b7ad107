//! `Dropout`: sets random elements to 0 in training.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result, Shape};

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// In training, sets elements to 0 with probability `rate` and scales the others by
/// `1 / (1 - rate)`. Outside of training it changes nothing.
///
/// The choice of elements is a pure function of the seed, the layer's name, the step and the row.
/// It depends neither on threads nor on the other rows of the batch.
#[derive(Clone, Debug)]
#[must_use]
pub struct Dropout {
    rate: f64,
    noise_shape: Option<Vec<Option<usize>>>,
    config: Config,
}

impl Dropout {
    /// Drops elements with probability `rate`.
    pub fn new(rate: f64) -> Dropout {
        Dropout { rate, noise_shape: None, config: Config::default() }
    }

    /// The shape of the mask. `None` stands for the input's size; 1 drops whole slices together. By
    /// default every element is drawn separately.
    ///
    /// `[None, Some(1), Some(1), None]` drops whole channels of an image.
    pub fn noise_shape(mut self, shape: impl Into<Vec<Option<usize>>>) -> Dropout {
        self.noise_shape = Some(shape.into());
        self
    }
}

config_setters!(Dropout);

impl Described for Dropout {
    const CLASS: &'static str = "Dropout";

    fn template() -> Dropout {
        Dropout::new(0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Dropout {
        fields.ignored("seed");
        Dropout {
            rate: fields.required("rate", &self.rate),
            noise_shape: fields.value("noise_shape", &self.noise_shape),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Dropout {
    fn kind(&self) -> &'static str {
        "dropout"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        if !(0.0..1.0).contains(&self.rate) {
            return x
                .graph()
                .error(Error::config(format!("the dropout rate is {}; expected 0 <= rate < 1", self.rate)));
        }
        let mask = match &self.noise_shape {
            _ if !call.training() => return x.clone(),
            None => return x.dropout(self.rate),
            Some(mask) => mask,
        };
        if mask.len() != x.rank() {
            let text = format!(
                "the noise shape has {} sizes for {}; expected one size for each axis",
                mask.len(),
                x.describe()
            );
            return x.graph().error(Error::shape(text));
        }
        let sizes = mask.iter().zip(x.shape().dims()).map(|(size, &axis)| size.map_or(axis, Into::into));
        let keep = x.graph().random_uniform(sizes.collect::<Shape>()).greater_equal(self.rate);
        keep.select(x * (1.0 / (1.0 - self.rate)), 0.0)
    }
}
