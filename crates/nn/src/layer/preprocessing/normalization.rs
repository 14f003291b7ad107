//! `Normalization`: numbers of mean 0 and deviation 1.

use estimand_graph::meaning::Listing;
use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{Array, Dim, Error, Result, Shape};

use super::rescaling::numbers;
use crate::config::{self, Described, Dialect, Elements, Fields, Json, Single};
use crate::layer::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters, resolve_axis};

/// `(x - mean) / sqrt(variance)`, with a mean and a variance for each place along an axis.
///
/// They are settings of the layer: `estimand::Adapt` computes them from data. In files of Keras
/// they are weights, and so they are after [`weights`](Normalization::weights).
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, Normalization};
/// let g = Graph::new();
/// let x = g.constant([7.0f32, 1.0]).expand_dims(0);
/// let y = Normalization::new().moments([3.0, 1.0], [4.0, 1.0]).apply(&x);
/// assert_eq!(y.eval()?.as_slice::<f32>()?, [2.0, 0.0]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Normalization {
    axis: Option<i64>,
    invert: bool,
    moments: Option<Moments>,
    has_weights: bool,
    config: Config,
}

/// The mean and variance of each place. One number stands for all places.
#[derive(Clone, PartialEq, Debug)]
struct Moments {
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl Normalization {
    /// Normalizes each place of the last axis by itself.
    pub fn new() -> Normalization {
        Normalization { axis: Some(-1), invert: false, moments: None, has_weights: false, config: Config::default() }
    }

    /// The axis whose places have their own mean and variance. `None` has one of each for all
    /// numbers. By default the last, -1.
    pub fn axis(mut self, axis: impl Into<Option<i64>>) -> Normalization {
        self.axis = axis.into();
        self
    }

    /// Computes the original numbers of normalized ones. By default it normalizes.
    pub fn invert(mut self, invert: bool) -> Normalization {
        self.invert = invert;
        self
    }

    /// Sets the means and variances, one of each for every place along the axis, or one for all.
    pub fn moments(mut self, mean: impl Into<Vec<f32>>, variance: impl Into<Vec<f32>>) -> Normalization {
        self.moments = Some(Moments { mean: mean.into(), variance: variance.into() });
        self.has_weights = false;
        self
    }

    /// Keeps mean, variance and the count of rows as weights that no optimizer changes, as Keras
    /// does with an adapted layer. They begin at 0, 1 and 0; a file sets them.
    ///
    /// Variables: `mean`, `variance` `[places]`, and `count`, a number of dtype i64.
    pub fn weights(mut self) -> Normalization {
        self.moments = None;
        self.has_weights = true;
        self
    }

    /// The means and variances, if they are set.
    pub fn mean_and_variance(&self) -> Option<(&[f32], &[f32])> {
        self.moments.as_ref().map(|moments| (&moments.mean[..], &moments.variance[..]))
    }

    /// The axis whose places have their own mean and variance.
    pub fn kept_axis(&self) -> Option<i64> {
        self.axis
    }

    /// The number of places along the axis, or a mistake of the settings.
    fn n_places(&self, x: &Tensor) -> Result<usize> {
        if self.moments.is_none() && !self.has_weights {
            return Err(Error::config("the mean and the variance are not set")
                .help("call adapt with the training data, or .moments(mean, variance)"));
        }
        let n = match self.axis {
            None => 1,
            Some(axis) => {
                let place = resolve_axis(x, axis).filter(|&axis| axis > 0 || x.rank() == 1);
                let Some(place) = place else {
                    return Err(Error::shape(format!("{} has no axis {axis} after the batch", x.describe()))
                        .help("call .axis(None) for one mean of all numbers"));
                };
                match x.shape().dims()[place] {
                    Dim::Known(n) => n,
                    _ if place == 0 => 1,
                    _ => {
                        let text = format!("the size of axis {axis} of {} is not known", x.describe());
                        return Err(Error::shape(text).help("declare it, or call .axis(None)"));
                    }
                }
            }
        };
        let Some(moments) = &self.moments else { return Ok(n) };
        for (what, values) in [("means", &moments.mean), ("variances", &moments.variance)] {
            if values.len() != n && values.len() != 1 {
                let text = format!("there are {} {what} for {}; expected {n}", values.len(), x.describe());
                return Err(Error::shape(text));
            }
        }
        match moments.variance.iter().find(|v| v.is_nan() || **v < 0.0) {
            Some(v) => Err(Error::config(format!("a variance is {v}; expected at least 0"))),
            None => Ok(n),
        }
    }
}

impl Default for Normalization {
    fn default() -> Normalization {
        Normalization::new()
    }
}

config_setters!(Normalization);

/// Keras writes the numbers of all places as a list, and one number without an axis.
fn moment(fields: &mut Fields<'_>, key: &'static str, own: Option<&Vec<f32>>) -> Option<Vec<f32>> {
    let own = own.map(|values| Elements(values.iter().copied().map(Single).collect()));
    fields.value(key, &own).map(|values| values.0.into_iter().map(|v| v.0).collect())
}

impl Described for Normalization {
    const CLASS: &'static str = "Normalization";

    fn template() -> Normalization {
        Normalization::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Normalization {
        let axes = Some(self.axis.into_iter().collect::<Vec<i64>>());
        let axis = match &fields.value("axis", &axes.map(AxisList)).map(|axes| axes.0).as_deref() {
            None | Some([]) => None,
            Some([axis]) => Some(*axis),
            Some(_) => {
                fields.refuse_here("the field `axis` has several axes; Normalization here has one");
                None
            }
        };
        let own = self.moments.as_ref();
        let mean = moment(fields, "mean", own.map(|m| &m.mean));
        let variance = moment(fields, "variance", own.map(|m| &m.variance));
        let moments = match (mean, variance) {
            (Some(mean), Some(variance)) => Some(Moments { mean, variance }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                fields.refuse_here("only one of `mean` and `variance` is set; expected both or none");
                None
            }
        };
        Normalization {
            axis,
            invert: fields.value("invert", &self.invert),
            // Keras' documents of an adapted layer have no numbers: they are weights.
            has_weights: moments.is_none(),
            moments,
            config: self.config.fields(fields),
        }
    }
}

/// A list of axes, which Keras writes as a list, and a user may give as one number.
#[derive(Clone, Debug)]
struct AxisList(Vec<i64>);

impl config::Field for AxisList {
    fn write(&self) -> Result<Json> {
        self.0.write()
    }

    fn read(node: &config::Node<'_>) -> Result<AxisList> {
        Elements::read(node).map(|axes| AxisList(axes.0))
    }
}

impl Layer for Normalization {
    fn kind(&self) -> &'static str {
        "normalization"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    /// TF: in Keras 3 it passes its mask on.
    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.mask_of(0).filter(|_| inputs.rules() == Dialect::Keras3).cloned()
    }

    fn build(&self, build: &mut Build<'_>) {
        match self.n_places(build.input()) {
            Ok(n) if self.has_weights => {
                let dims: &[usize] = if self.axis.is_some() { &[n] } else { &[] };
                build.statistic("mean", dims, Initializer::Zeros);
                build.statistic("variance", dims, Initializer::Ones);
                build.count("count");
            }
            Ok(_) => {}
            Err(error) => build.refuse(error),
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = numbers(call.input());
        let Ok(n) = self.n_places(&x) else { return x };
        let Some(moments) = &self.moments else {
            let deviation = call.weight("variance").sqrt().maximum(1e-7);
            let [mean, deviation] = [call.weight("mean"), deviation].map(|values| self.spread(&x, values, n));
            return self.scaled(&x, mean, deviation);
        };
        // TF: a deviation of 0 counts as a small number.
        let deviations: Vec<f32> = moments.variance.iter().map(|v| v.sqrt().max(1e-7)).collect();
        let [mean, deviation] = [&moments.mean, &deviations].map(|values| self.beside(&x, values, n));
        let y = self.scaled(&x, mean, deviation);
        let listed = |values: &[f32]| Listing::of_floats(&values.iter().map(|&v| v.into()).collect::<Vec<f64>>());
        y.means("mean", listed(&moments.mean));
        y.means("variance", listed(&moments.variance));
        y
    }
}

impl Normalization {
    /// The numbers of the places in a shape that broadcasts to the input.
    #[track_caller]
    fn beside(&self, x: &Tensor, values: &[f32], n: usize) -> Tensor {
        let all = if values.len() == n { values.to_vec() } else { vec![values[0]; n] };
        self.spread(x, x.graph().constant(Array::from(all)), n)
    }

    #[track_caller]
    fn spread(&self, x: &Tensor, values: Tensor, n: usize) -> Tensor {
        match self.axis.and_then(|axis| resolve_axis(x, axis)) {
            Some(axis) if axis + 1 < x.rank() => {
                let size = |i: usize| Dim::Known(if i == axis { n } else { 1 });
                values.reshape_as((axis..x.rank()).map(size).collect::<Shape>())
            }
            _ => values,
        }
    }

    #[track_caller]
    fn scaled(&self, x: &Tensor, mean: Tensor, deviation: Tensor) -> Tensor {
        match self.invert {
            false => (x - mean) / deviation,
            true => mean + x * deviation,
        }
    }
}
