//! `CustomObjects`: the classes of users that documents may name.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use estimand_tensor::Result;
use estimand_update::{Constraint, UpdateRule};

use super::optimizer::ReadRule;
use super::{Described, Fields, Node, read};
use crate::column::{Column, FeatureColumn};
use crate::layer::Layer;
use crate::loss::Loss;
use crate::metric::MetricValue;

/// Reads a value of a type from the `config` of its class.
pub type Read<T> = fn(&Node<'_>) -> Result<T>;

/// A function of any type that reads a class.
#[derive(Clone)]
struct AnyReader(Arc<dyn Any + Send + Sync>);

impl fmt::Debug for AnyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyReader")
    }
}
/// Reads the fields of a loss.
pub(crate) type ReadLoss = fn(&mut Fields<'_>) -> Box<dyn Loss>;

/// Reads the fields of a metric.
pub(crate) type ReadMetric = fn(&mut Fields<'_>) -> Box<dyn MetricValue>;

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
    /// By the type of the function that reads, and the name of the class.
    readers: BTreeMap<(TypeId, &'static str), AnyReader>,
}

impl CustomObjects {
    /// None.
    pub fn new() -> CustomObjects {
        CustomObjects::default()
    }

    /// Adds a layer. It takes the place of another of its name, also of one of this crate.
    pub fn layer<L: Layer + Described + 'static>(self) -> CustomObjects {
        self.object::<Box<dyn Layer>>(L::CLASS, |config| read::<L>(config).map(|layer| Box::new(layer) as _))
    }

    /// Adds a loss. It takes the place of another of its name, also of one of this crate.
    pub fn loss<L: Loss + Described + 'static>(self) -> CustomObjects {
        self.with::<ReadLoss>(L::CLASS, |fields| Box::new(L::template().fields(fields)))
    }

    /// Adds a metric. It takes the place of another of its name, also of one of this crate.
    pub fn metric<M: MetricValue + Described + 'static>(self) -> CustomObjects {
        self.with::<ReadMetric>(M::CLASS, |fields| Box::new(M::template().fields(fields)))
    }

    /// Adds a constraint by its name and a function that reads it from its `config`.
    pub fn constraint(self, class: &'static str, read: Read<Arc<dyn Constraint>>) -> CustomObjects {
        self.object(class, read)
    }

    /// Adds a column. It takes the place of another of its name.
    pub fn column<C: Column + Described + 'static>(self) -> CustomObjects {
        self.object::<FeatureColumn>(C::CLASS, |config| read::<C>(config).map(FeatureColumn::new))
    }

    /// Adds a class of another type, such as `Arc<dyn Head>`, by its name and a function that reads
    /// it from its `config`. It takes the place of another of its name.
    ///
    /// An `Activation`, `Initializer` or `Regularizer` of the user becomes one of this crate that
    /// does the same:
    ///
    /// ```
    /// use estimand_nn::config::CustomObjects;
    /// use estimand_nn::{Activation, layer};
    /// let objects = CustomObjects::new().object("my_relu", |_| Ok(Activation::Relu));
    /// let json = r#"{"class_name": "Dense", "config": {"units": 2, "activation": "mine>my_relu"}}"#;
    /// assert_eq!(layer::from_json(json, &objects)?.to_json()?["config"]["activation"], "relu");
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn object<T: 'static>(self, class: &'static str, read: Read<T>) -> CustomObjects {
        self.with(class, read)
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
    pub fn rule(self, class: &'static str, read: fn(&mut Fields<'_>) -> Arc<dyn UpdateRule>) -> CustomObjects {
        self.with::<ReadRule>(class, read)
    }

    fn with<R: Any + Send + Sync>(mut self, class: &'static str, read: R) -> CustomObjects {
        self.readers.insert((TypeId::of::<R>(), class), AnyReader(Arc::new(read)));
        self
    }

    /// The function of a type that reads a class.
    pub(crate) fn find<R: Any + Copy>(&self, class: &str) -> Option<R> {
        let of_type = self.readers.iter().filter(|((kind, _), _)| *kind == TypeId::of::<R>());
        of_type.into_iter().find(|((_, name), _)| *name == class)?.1.0.downcast_ref().copied()
    }

    /// The names of the classes that functions of a type read.
    pub(crate) fn names<R: Any>(&self) -> impl Iterator<Item = &'static str> {
        self.readers.keys().filter(|(kind, _)| *kind == TypeId::of::<R>()).map(|(_, name)| *name)
    }
}
