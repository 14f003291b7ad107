//! `CustomObjects`: the classes of users that documents may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use estimand_tensor::Result;
use estimand_update::{Constraint, UpdateRule};

use super::optimizer::ReadRule;
use super::{Described, Fields, Node, read};
use crate::layer::Layer;
use crate::loss::Loss;
use crate::metric::MetricValue;

/// Reads a layer from its `config`.
pub(crate) type ReadLayer = fn(&Node<'_>) -> Result<Box<dyn Layer>>;

/// Reads the fields of a loss.
pub(crate) type ReadLoss = fn(&mut Fields<'_>) -> Box<dyn Loss>;

/// Reads the fields of a metric.
pub(crate) type ReadMetric = fn(&mut Fields<'_>) -> Box<dyn MetricValue>;

/// Reads a constraint from its `config`.
type ReadConstraint = fn(&Node<'_>) -> Result<Arc<dyn Constraint>>;

/// Classes that are not of this crate, by name: what Keras calls `custom_objects`.
///
/// ```
/// use estimand_graph::Tensor;
/// use estimand_nn::config::{self, CustomObjects, Described, Fields};
/// use estimand_nn::layer::{self, Config, Layer, LayerCall};
/// use estimand_tensor::Result;
///
/// /// Multiplies by a number.
/// #[derive(Clone, Debug)]
/// struct Times(f64, Config);
///
/// impl Layer for Times {
///     fn kind(&self) -> &'static str {
///         "times"
///     }
///     fn config(&self) -> &Config {
///         &self.1
///     }
///     fn call(&self, call: &LayerCall<'_>) -> Tensor {
///         call.input() * self.0
///     }
///     fn to_json(&self) -> Result<config::Json> {
///         config::write("my_package", self)
///     }
/// }
///
/// impl Described for Times {
///     const CLASS: &'static str = "Times";
///     fn template() -> Times {
///         Times(1.0, Config::default())
///     }
///     fn fields(&self, fields: &mut Fields<'_>) -> Times {
///         Times(fields.required("factor", &self.0), self.1.fields(fields))
///     }
/// }
///
/// let objects = CustomObjects::new().layer::<Times>();
/// let json = Times(3.0, Config::default()).to_json()?;
/// assert_eq!(layer::from_json(&json.to_string(), &objects)?.to_json()?, json);
/// let unknown = layer::from_json(&json.to_string(), &CustomObjects::new()).unwrap_err();
/// assert!(unknown.to_string().starts_with("there is no layer `Times`"));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CustomObjects {
    layers: BTreeMap<&'static str, ReadLayer>,
    losses: BTreeMap<&'static str, ReadLoss>,
    metrics: BTreeMap<&'static str, ReadMetric>,
    constraints: BTreeMap<&'static str, ReadConstraint>,
    rules: BTreeMap<&'static str, ReadRule>,
}

impl CustomObjects {
    /// None.
    pub fn new() -> CustomObjects {
        CustomObjects::default()
    }

    /// Adds a layer. It takes the place of another of its name, also of one of this crate.
    pub fn layer<L: Layer + Described + 'static>(mut self) -> CustomObjects {
        self.layers.insert(L::CLASS, |config| read::<L>(config).map(|layer| Box::new(layer) as Box<dyn Layer>));
        self
    }

    /// Adds a loss. It takes the place of another of its name, also of one of this crate.
    pub fn loss<L: Loss + Described + 'static>(mut self) -> CustomObjects {
        self.losses.insert(L::CLASS, |fields| Box::new(L::template().fields(fields)));
        self
    }

    /// Adds a metric. It takes the place of another of its name, also of one of this crate.
    pub fn metric<M: MetricValue + Described + 'static>(mut self) -> CustomObjects {
        self.metrics.insert(M::CLASS, |fields| Box::new(M::template().fields(fields)));
        self
    }

    /// Adds a constraint by its name and a function that reads it from its `config`.
    pub fn constraint(mut self, class: &'static str, read: ReadConstraint) -> CustomObjects {
        self.constraints.insert(class, read);
        self
    }

    /// Adds the rule of an optimizer by its name and a function that reads its settings. Fields
    /// that all optimizers have, such as `learning_rate`, are read apart.
    ///
    /// ```
    /// # use estimand_update::{Element, Formula, Number, Reader, Setting, Slot, SparseRule};
    /// # #[derive(Clone, Copy)]
    /// # struct Step<N>(N, f64);
    /// # impl<N: Number> Element<N, 0> for Step<N> {
    /// #     #[inline(always)]
    /// #     fn step(self, w: N, g: N, _: [N; 0]) -> (N, [N; 0]) {
    /// #         (w - self.0 * g * w.number(self.1), [])
    /// #     }
    /// # }
    /// use std::sync::Arc;
    /// use estimand_graph::Optimizer;
    /// use estimand_nn::{config::CustomObjects, optimizer};
    ///
    /// #[derive(Debug)]
    /// struct Scaled(f64);
    ///
    /// impl Formula for Scaled {
    ///     fn name(&self) -> &'static str {
    ///         "Scaled"
    ///     }
    ///     fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
    ///         Some(vec![("scale", Setting::Number(self.0))])
    ///     }
    ///     // ..
    /// #   fn slots(&self) -> Vec<Slot> {
    /// #       Vec::new()
    /// #   }
    /// #   fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
    /// #       Vec::new()
    /// #   }
    /// #   fn check(&self) -> Result<(), String> {
    /// #       Ok(())
    /// #   }
    /// #   fn sparse(&self) -> SparseRule {
    /// #       SparseRule::TouchedRows
    /// #   }
    /// #   fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
    /// #       [rate; 8]
    /// #   }
    /// #   fn update<N: Number>(&self, [rate, ..]: [N; 8], reader: impl Reader<N>) {
    /// #       reader.read(Step(rate, self.0))
    /// #   }
    /// }
    ///
    /// let objects = CustomObjects::new().rule("Scaled", |fields| Arc::new(Scaled(fields.required("scale", &1.0))));
    /// let json = optimizer::to_json(&Optimizer::new(Scaled(2.0), 0.1))?;
    /// assert_eq!(optimizer::to_json(&optimizer::from_json(&json.to_string(), &objects)?)?, json);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn rule(mut self, class: &'static str, read: fn(&mut Fields<'_>) -> Arc<dyn UpdateRule>) -> CustomObjects {
        self.rules.insert(class, read);
        self
    }

    pub(crate) fn find_loss(&self, class: &str) -> Option<ReadLoss> {
        self.losses.get(class).copied()
    }

    pub(crate) fn loss_names(&self) -> impl Iterator<Item = &'static str> {
        self.losses.keys().copied()
    }

    pub(crate) fn find_metric(&self, class: &str) -> Option<ReadMetric> {
        self.metrics.get(class).copied()
    }

    pub(crate) fn metric_names(&self) -> impl Iterator<Item = &'static str> {
        self.metrics.keys().copied()
    }

    pub(super) fn find_rule(&self, class: &str) -> Option<ReadRule> {
        self.rules.get(class).copied()
    }

    pub(super) fn rule_names(&self) -> impl Iterator<Item = &'static str> {
        self.rules.keys().copied()
    }

    pub(crate) fn find_layer(&self, class: &str) -> Option<ReadLayer> {
        self.layers.get(class).copied()
    }

    pub(crate) fn layer_names(&self) -> impl Iterator<Item = &'static str> {
        self.layers.keys().copied()
    }

    pub(super) fn find_constraint(&self, class: &str) -> Option<ReadConstraint> {
        self.constraints.get(class).copied()
    }

    pub(super) fn constraint_names(&self) -> impl Iterator<Item = &'static str> {
        self.constraints.keys().copied()
    }
}
