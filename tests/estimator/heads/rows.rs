//! Models whose logits are a feature, so that a head's results can be computed by hand.

use std::sync::Arc;

use estimand::prelude::*;
use estimand::{Metrics, Prediction};

use crate::models::Folder;

/// A column `[n, 1]` of logits.
pub fn column<const N: usize>(values: [f32; N]) -> Array {
    Array::from_vec([N, 1], values.to_vec()).unwrap()
}

/// Rows of logits.
pub fn rows<const R: usize, const N: usize>(values: [[f32; N]; R]) -> Array {
    Array::from_vec([R, N], values.concat()).unwrap()
}

/// Rows with the feature `logits`, labels, and more features.
pub struct Rows {
    pub logits: Array,
    pub labels: Vec<(&'static str, Array)>,
    pub features: Vec<(&'static str, Array)>,
}

impl Rows {
    pub fn new(logits: Array, labels: impl Into<Array>) -> Rows {
        Rows { logits, labels: vec![("label", labels.into())], features: Vec::new() }
    }

    pub fn feature(mut self, name: &'static str, values: impl Into<Array>) -> Rows {
        self.features.push((name, values.into()));
        self
    }

    pub fn data(&self) -> Dataset {
        let own = [("logits", self.logits.clone())];
        let all = own.into_iter().chain(self.features.iter().cloned()).chain(self.labels.iter().cloned());
        let data = Dataset::from_arrays(all.collect::<Vec<_>>());
        self.labels.iter().fold(data, |data, (name, _)| data.label(name))
    }
}

/// An estimator of a model that is nothing but a head.
pub fn estimator(head: impl Head + 'static, folder: &Folder) -> Estimator {
    with_regularization(head, &[], folder)
}

pub fn with_regularization(head: impl Head + 'static, losses: &[f32], folder: &Folder) -> Estimator {
    let (head, losses): (Arc<dyn Head>, Vec<f32>) = (Arc::new(head), losses.to_vec());
    let model = move |cx: &ModelFnContext<'_>| {
        for loss in &losses {
            cx.graph().add_regularization_loss(&cx.graph().constant(*loss));
        }
        head.spec(cx, &cx.feature("logits"), Optimizer::new(Sgd::default(), 0.1))
    };
    Estimator::new(model).model_dir(folder.path()).build().unwrap()
}

/// The metrics of a head over batches of a size.
pub fn evaluate(head: impl Head + 'static, rows: &Rows, batch: usize) -> Result<Metrics> {
    let folder = Folder::new();
    estimator(head, &folder).evaluate(rows.data().batch(batch))
}

/// The predictions of a head for all rows at once.
pub fn predict(head: impl Head + 'static, rows: &Rows) -> Result<Prediction> {
    let folder = Folder::new();
    let n = rows.logits.dims()[0];
    let data = rows.data().batch(n);
    let found = estimator(head, &folder).predict(PredictSpec::new(&data).by_batch(true)).next();
    found.unwrap_or_else(|| Err(Error::config("no predictions")))
}

/// Fails unless metrics have these values, to the digits of f32.
#[track_caller]
pub fn assert_metrics(metrics: &Metrics, expected: &[(&str, f64)]) {
    for (key, value) in expected {
        let found = metrics.get(key).unwrap();
        assert!((found - value).abs() <= 2e-6 * value.abs().max(1.0), "{key} is {found}, expected {value}");
    }
}
