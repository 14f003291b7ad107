//! Keras' names of losses, metrics and optimizers.

use std::sync::Arc;

use estimand_graph::Optimizer;
use estimand_nn::config::CustomObjects;
use estimand_nn::loss::Loss;
use estimand_nn::metric::MetricValue;
use estimand_tensor::{Error, Result};
use serde_json::json;

/// Keras' names of losses, with the classes that they stand for.
const LOSSES: [(&str, &str); 27] = [
    ("mse", "MeanSquaredError"),
    ("mean_squared_error", "MeanSquaredError"),
    ("mae", "MeanAbsoluteError"),
    ("mean_absolute_error", "MeanAbsoluteError"),
    ("mape", "MeanAbsolutePercentageError"),
    ("mean_absolute_percentage_error", "MeanAbsolutePercentageError"),
    ("msle", "MeanSquaredLogarithmicError"),
    ("mean_squared_logarithmic_error", "MeanSquaredLogarithmicError"),
    ("bce", "BinaryCrossentropy"),
    ("binary_crossentropy", "BinaryCrossentropy"),
    ("categorical_crossentropy", "CategoricalCrossentropy"),
    ("sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"),
    ("huber", "Huber"),
    ("huber_loss", "Huber"),
    ("hinge", "Hinge"),
    ("squared_hinge", "SquaredHinge"),
    ("categorical_hinge", "CategoricalHinge"),
    ("log_cosh", "LogCosh"),
    ("logcosh", "LogCosh"),
    ("poisson", "Poisson"),
    ("kld", "KLDivergence"),
    ("kl_divergence", "KLDivergence"),
    ("kullback_leibler_divergence", "KLDivergence"),
    ("cosine_similarity", "CosineSimilarity"),
    ("MSE", "MeanSquaredError"),
    ("MAE", "MeanAbsoluteError"),
    ("KLD", "KLDivergence"),
];

/// The loss with this name.
pub(super) fn loss(name: &str) -> Result<Box<dyn Loss>> {
    let alias = LOSSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
    let document = json!({"class_name": alias.unwrap_or(name), "config": {}}).to_string();
    let found = estimand_nn::loss::from_json(&document, &CustomObjects::new());
    // Classes are names too; the names of functions are nearer to most mistakes.
    found.map_err(|_| Error::unknown("loss", name, LOSSES.iter().map(|(known, _)| *known)))
}

/// Keras' names of optimizers.
const OPTIMIZERS: [&str; 11] =
    ["sgd", "rmsprop", "adam", "adamw", "adadelta", "adafactor", "adagrad", "adamax", "nadam", "ftrl", "lion"];

/// The optimizer of the newer generation with this name, all settings at their defaults.
pub(super) fn optimizer(name: &str) -> Result<Optimizer> {
    if !OPTIMIZERS.contains(&&*name.to_ascii_lowercase()) {
        return Err(Error::unknown("optimizer", name, OPTIMIZERS));
    }
    let document = json!({"class_name": name, "config": {"use_ema": false}}).to_string();
    estimand_nn::optimizer::from_json(&document, &CustomObjects::new())
}

/// Keras' names of metrics that depend on the shapes of labels and predictions.
const BY_SHAPE: [&str; 4] = ["accuracy", "acc", "crossentropy", "ce"];

/// Keras' names of metric functions that have an alias or are not those of a class.
const METRICS: [(&str, &str); 14] = [
    ("binary_accuracy", "BinaryAccuracy"),
    ("categorical_accuracy", "CategoricalAccuracy"),
    ("sparse_categorical_accuracy", "SparseCategoricalAccuracy"),
    ("top_k_categorical_accuracy", "TopKCategoricalAccuracy"),
    ("sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy"),
    ("AUC", "AUC"),
    ("Precision", "Precision"),
    ("Recall", "Recall"),
    ("RootMeanSquaredError", "RootMeanSquaredError"),
    ("TruePositives", "TruePositives"),
    ("TrueNegatives", "TrueNegatives"),
    ("FalsePositives", "FalsePositives"),
    ("FalseNegatives", "FalseNegatives"),
    ("R2Score", "R2Score"),
];

#[derive(Clone)]
pub(super) enum MetricKind {
    Value(Arc<dyn MetricValue>),
    /// The accuracy that fits the shapes of labels and predictions.
    Accuracy,
    /// The cross entropy that fits them.
    Crossentropy,
}

/// The metric with this name, and the name that results show.
pub(super) fn metric(name: &str) -> Result<(String, MetricKind)> {
    match name {
        "accuracy" | "acc" => return Ok((name.to_string(), MetricKind::Accuracy)),
        "crossentropy" | "ce" => return Ok((name.to_string(), MetricKind::Crossentropy)),
        _ => {}
    }
    let of_class = |class: &str| {
        let document = json!({"class_name": class, "config": {}}).to_string();
        estimand_nn::metric::from_json(&document, &CustomObjects::new())
    };
    if let Some((_, class)) = LOSSES.iter().find(|(known, _)| *known == name) {
        // TF: a function keeps the name by which it was given.
        return Ok((name.to_string(), MetricKind::Value(of_class(class)?.into())));
    }
    let known = METRICS.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
    match of_class(known.unwrap_or(name)) {
        Ok(value) => Ok((value.name().to_string(), MetricKind::Value(value.into()))),
        Err(_) => {
            let names = BY_SHAPE.iter().copied().chain(METRICS.iter().chain(&LOSSES).map(|(known, _)| *known));
            Err(Error::unknown("metric", name, names))
        }
    }
}

/// Whether Keras has a loss function of this name.
#[cfg(feature = "keras_files")]
pub(super) fn is_loss(name: &str) -> bool {
    LOSSES.iter().any(|(known, _)| *known == name)
}

/// Whether a metric of Keras can be given by this name.
#[cfg(feature = "keras_files")]
pub(super) fn is_metric(name: &str) -> bool {
    BY_SHAPE.contains(&name) || metric_class(name).is_some()
}

/// The class of a metric that Keras' function of this name makes.
#[cfg(feature = "keras_files")]
pub(super) fn metric_class(function: &str) -> Option<&'static str> {
    METRICS.iter().chain(&LOSSES).find(|(known, _)| *known == function).map(|(_, class)| *class)
}
