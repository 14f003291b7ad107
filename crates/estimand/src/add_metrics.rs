//! Extra metrics for an estimator: `tf.estimator.add_metrics`.

use std::panic::Location;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::Inputs;
use estimand_nn::metric::Metric;
use estimand_tensor::{Mode, Result};
use indexmap::IndexMap;

use crate::estimator::unknown_prediction;
use crate::model_fn::{ModelFn, ModelFnContext};
use crate::{Estimator, EstimatorSpec, RunConfig};

/// The values from which metrics can be computed.
#[derive(Clone, Copy)]
pub struct MetricsContext<'a> {
    cx: &'a ModelFnContext<'a>,
    predictions: &'a IndexMap<String, Tensor>,
}

impl<'a> MetricsContext<'a> {
    /// The features.
    pub fn features(&self) -> &'a Inputs {
        self.cx.features()
    }

    /// The labels, unchanged from the input.
    pub fn labels(&self) -> &'a Inputs {
        self.cx.labels()
    }

    /// The only label.
    #[track_caller]
    pub fn label(&self) -> Tensor {
        self.cx.label()
    }

    /// The weight of every row, if the input has weights.
    pub fn weights(&self) -> Option<&'a Tensor> {
        self.cx.weights()
    }

    /// A prediction of the model by key.
    #[track_caller]
    pub fn prediction(&self, key: &str) -> Result<&'a Tensor> {
        let (site, keys) = (Location::caller(), self.predictions.keys().map(String::as_str));
        self.predictions.get(key).ok_or_else(|| unknown_prediction(key, keys).at(site))
    }

    /// All predictions of the model.
    pub fn predictions(&self) -> &'a IndexMap<String, Tensor> {
        self.predictions
    }

    /// The configuration of the run.
    pub fn config(&self) -> &'a RunConfig {
        self.cx.config()
    }
}

impl Estimator {
    /// Returns the same estimator with additional evaluation metrics. A metric with the name of an
    /// existing one replaces it.
    /// [`RunConfig::running_metrics`] may name them too.
    ///
    /// ```
    /// use estimand::nn::metric;
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-metrics-{}", std::process::id()));
    /// let model = |cx: &ModelFnContext<'_>| {
    ///     let logits = Dense::new(1).apply(&cx.feature("x"));
    ///     RegressionHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))
    /// };
    /// let estimator = Estimator::new(model).model_dir(&folder).build()?.add_metrics(|cx| {
    ///     let rmse = metric::root_mean_squared_error(&cx.label(), cx.prediction("predictions")?, None);
    ///     Ok(vec![("rmse", rmse)])
    /// });
    /// let rows = [("x", Array::from_vec([2, 1], vec![0.0f32, 0.0])?), ("y", Array::from([3.0f32, 4.0]))];
    /// let metrics = estimator.evaluate(Dataset::from_arrays(rows).label("y").batch(2))?;
    /// assert!((metrics["rmse"] - 12.5f64.sqrt()).abs() < 1e-6);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn add_metrics<N: Into<String>>(
        self,
        metrics: impl Fn(&MetricsContext<'_>) -> Result<Vec<(N, Metric)>> + Send + Sync + 'static,
    ) -> Estimator {
        self.map_model_fn("metrics that `add_metrics` adds", |model_fn: ModelFn| {
            Arc::new(move |cx: &ModelFnContext<'_>| {
                let spec = model_fn(cx)?;
                // Training computes only the metrics that the configuration names.
                let is_measured = match cx.mode() {
                    Mode::Eval => true,
                    Mode::Train => !cx.config().running_metrics.is_empty(),
                    Mode::Predict => false,
                };
                if !is_measured {
                    return Ok(spec);
                }
                let more = metrics(&MetricsContext { cx, predictions: &spec.predictions })?;
                Ok(more.into_iter().fold(spec, |spec: EstimatorSpec, (name, metric)| spec.metric(name, metric)))
            })
        })
    }
}
