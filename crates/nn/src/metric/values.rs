//! Metrics as values, one for each class of Keras. Each calls its function of this module; `auc.rs`
//! and `mean_loss.rs` hold two more.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::confusion_matrix::WholeWeights;
use super::normalizer::Normalizer;
use super::thresholds::{Threshold, Thresholds};
use super::value::{MODULE, OWN_MODULE, name_and_dtype};
use super::*;
use crate::config::{self, Described, Fields, Json};

/// Defines a metric: its name, its class in JSON, its arguments and options with their keys, the
/// fields that Keras has and that can have only one value here, and its function.
macro_rules! metric {
    (
        $(#[$doc:meta])*
        $metric:ident: $class:literal of $module:ident, $name:literal;
        arguments { $($argument:ident: $argument_type:ty, $argument_key:literal, $place:expr;)* }
        options { $($(#[$option_doc:meta])* $option:ident($given:ty): $option_type:ty, $option_key:literal, $default:expr;)* }
        fixed { $($fixed_key:literal: $fixed:expr;)* }
        |$this:pat_param, $labels:pat_param, $predictions:ident, $weights:ident| $apply:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $metric {
            name: Option<String>,
            $($argument: $argument_type,)*
            $($option: $option_type,)*
        }

        impl $metric {
            /// Creates the metric with the defaults of its options.
            #[allow(clippy::new_without_default, reason = "some have arguments")]
            pub fn new($($argument: $argument_type),*) -> $metric {
                $metric { name: None, $($argument,)* $($option: $default,)* }
            }

            /// The name under which results show the metric. By default that of its function.
            pub fn name(mut self, name: &str) -> $metric {
                self.name = Some(name.to_string());
                self
            }

            $(
                $(#[$option_doc])*
                pub fn $option(mut self, $option: $given) -> $metric {
                    self.$option = $option.into();
                    self
                }
            )*
        }

        impl Described for $metric {
            const CLASS: &'static str = $class;

            fn template() -> $metric {
                $metric { name: None, $($argument: $place,)* $($option: $default,)* }
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $metric {
                $(fields.only($fixed_key, $fixed);)*
                $metric {
                    $($argument: fields.required($argument_key, &self.$argument),)*
                    $($option: fields.value($option_key, &self.$option),)*
                    name: name_and_dtype(fields, &self.name, MetricValue::name(self)),
                }
            }
        }

        impl MetricValue for $metric {
            fn name(&self) -> &str {
                self.name.as_deref().unwrap_or($name)
            }

            fn apply(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
                let ($this, $labels, $predictions, $weights) = (self, labels, predictions, weights);
                $apply
            }

            fn to_json(&self) -> Result<Json> {
                config::write($module, self)
            }
        }
    };
}

metric! {
    /// The share of predictions that equal the labels: [`accuracy`].
    Accuracy: "Accuracy" of MODULE, "accuracy";
    arguments {}
    options {}
    fixed {}
    |_, labels, predictions, weights| accuracy(labels, predictions, weights)
}

metric! {
    /// The share of probabilities on the label's side of a threshold: [`binary_accuracy`].
    BinaryAccuracy: "BinaryAccuracy" of MODULE, "binary_accuracy";
    arguments {}
    options {
        /// The threshold. By default 0.5.
        threshold(f64): f64, "threshold", 0.5;
    }
    fixed {}
    |this, labels, predictions, weights| binary_accuracy(labels, predictions, this.threshold, weights)
}

metric! {
    /// The share of rows whose maximum is at the label's position: [`categorical_accuracy`].
    CategoricalAccuracy: "CategoricalAccuracy" of MODULE, "categorical_accuracy";
    arguments {}
    options {}
    fixed {}
    |_, labels, predictions, weights| categorical_accuracy(labels, predictions, weights)
}

metric! {
    /// How often each class was predicted as each class: [`confusion_matrix`].
    ConfusionMatrix: "ConfusionMatrix" of OWN_MODULE, "confusion_matrix";
    arguments { n_classes: usize, "num_classes", 1; }
    options {}
    fixed {}
    |this, labels, predictions, weights| confusion_matrix(labels, predictions, this.n_classes, weights)
}

metric! {
    /// The mean cosine of the angle between label rows and prediction rows: [`cosine_similarity`].
    CosineSimilarity: "CosineSimilarity" of MODULE, "cosine_similarity";
    arguments {}
    options {}
    fixed { "axis": -1; }
    |_, labels, predictions, weights| cosine_similarity(labels, predictions, weights)
}

metric! {
    /// The mean distance between probabilities and frequencies: [`expected_calibration_error`].
    ExpectedCalibrationError: "ExpectedCalibrationError" of OWN_MODULE, "expected_calibration_error";
    arguments {}
    options {
        /// The number of ranges of probabilities. By default 10.
        n_bins(usize): usize, "n_bins", 10;
    }
    fixed {}
    |this, labels, predictions, weights| expected_calibration_error(labels, predictions, this.n_bins, weights)
}

metric! {
    /// The number of true labels predicted negative: [`false_negatives`].
    FalseNegatives: "FalseNegatives" of MODULE, "false_negatives";
    arguments {}
    options {
        /// The threshold. By default 0.5.
        threshold(f64): Threshold, "thresholds", Threshold::default();
    }
    fixed {}
    |this, labels, predictions, weights| false_negatives(labels, predictions, this.threshold.0, weights)
}

metric! {
    /// The number of false labels predicted positive: [`false_positives`].
    FalsePositives: "FalsePositives" of MODULE, "false_positives";
    arguments {}
    options {
        /// The threshold. By default 0.5.
        threshold(f64): Threshold, "thresholds", Threshold::default();
    }
    fixed {}
    |this, labels, predictions, weights| false_positives(labels, predictions, this.threshold.0, weights)
}

metric! {
    /// The mean of predictions, whatever the labels: [`mean`].
    Mean: "Mean" of MODULE, "mean";
    arguments {}
    options {}
    fixed {}
    |_, _, predictions, weights| mean(predictions, weights)
}

metric! {
    /// The mean of absolute differences: [`mean_absolute_error`].
    MeanAbsoluteError: "MeanAbsoluteError" of MODULE, "mean_absolute_error";
    arguments {}
    options {}
    fixed {}
    |_, labels, predictions, weights| mean_absolute_error(labels, predictions, weights)
}

metric! {
    /// The mean over classes of intersection over union: [`mean_iou`].
    MeanIou: "MeanIoU" of MODULE, "mean_iou";
    arguments { n_classes: usize, "num_classes", 1; }
    options {
        /// Whether fractions of weights are cut off, as Keras 3 does by default. By default not.
        whole_weights(bool): WholeWeights, "dtype", WholeWeights(false);
    }
    fixed { "ignore_class": Json::Null; "sparse_y_true": true; "sparse_y_pred": true; "axis": -1; }
    |this, labels, predictions, weights| {
        let weights = weights.map(|weights| this.whole_weights.of(weights));
        mean_iou(labels, predictions, this.n_classes, weights.as_ref())
    }
}

metric! {
    /// The mean over classes of the share that is predicted right: [`mean_per_class_accuracy`].
    MeanPerClassAccuracy: "MeanPerClassAccuracy" of OWN_MODULE, "mean_per_class_accuracy";
    arguments { n_classes: usize, "num_classes", 1; }
    options {}
    fixed {}
    |this, labels, predictions, weights| mean_per_class_accuracy(labels, predictions, this.n_classes, weights)
}

metric! {
    /// The mean of absolute differences, each divided by a number: [`mean_relative_error`].
    MeanRelativeError: "MeanRelativeError" of MODULE, "mean_relative_error";
    arguments {}
    options {
        /// The divisors, one for each element of a row. By default each difference is divided by
        /// its label, which Keras does not have.
        normalizer(impl Into<Normalizer>): Normalizer, "normalizer", Normalizer::Labels;
    }
    fixed {}
    |this, labels, predictions, weights| {
        mean_relative_error(labels, predictions, &this.normalizer.of(labels, predictions), weights)
    }
}

metric! {
    /// The mean of squared differences: [`mean_squared_error`].
    MeanSquaredError: "MeanSquaredError" of MODULE, "mean_squared_error";
    arguments {}
    options {}
    fixed {}
    |_, labels, predictions, weights| mean_squared_error(labels, predictions, weights)
}

metric! {
    /// The share of the positive predictions that are right: [`precision`], or
    /// [`precision_at_thresholds`] if there are several thresholds.
    Precision: "Precision" of MODULE, "precision";
    arguments {}
    options {
        /// The threshold, or several: the metric then has as many values. By default 0.5.
        thresholds(impl Into<Thresholds>): Thresholds, "thresholds", Thresholds::default();
    }
    fixed { "top_k": Json::Null; "class_id": Json::Null; }
    |this, labels, predictions, weights| match this.thresholds.0[..] {
        [threshold] => precision(labels, predictions, threshold, weights),
        ref thresholds => precision_at_thresholds(labels, predictions, thresholds, weights),
    }
}

metric! {
    /// The largest precision with a recall of at least `recall`: [`precision_at_recall`].
    PrecisionAtRecall: "PrecisionAtRecall" of MODULE, "precision_at_recall";
    arguments { recall: f64, "recall", 0.5; }
    options {}
    fixed { "class_id": Json::Null; "num_thresholds": 200; }
    |this, labels, predictions, weights| precision_at_recall(labels, predictions, this.recall, weights)
}

metric! {
    /// The share of the labels' variance that predictions explain: [`r2_score`].
    R2Score: "R2Score" of MODULE, "r2_score";
    arguments {}
    options {}
    fixed { "class_aggregation": "uniform_average"; "num_regressors": 0; }
    |_, labels, predictions, weights| r2_score(labels, predictions, weights)
}

metric! {
    /// The share of the true labels that are predicted positive: [`recall`], or
    /// [`recall_at_thresholds`] if there are several thresholds.
    Recall: "Recall" of MODULE, "recall";
    arguments {}
    options {
        /// The threshold, or several: the metric then has as many values. By default 0.5.
        thresholds(impl Into<Thresholds>): Thresholds, "thresholds", Thresholds::default();
    }
    fixed { "top_k": Json::Null; "class_id": Json::Null; }
    |this, labels, predictions, weights| match this.thresholds.0[..] {
        [threshold] => recall(labels, predictions, threshold, weights),
        ref thresholds => recall_at_thresholds(labels, predictions, thresholds, weights),
    }
}

metric! {
    /// The largest recall with a precision of at least `precision`: [`recall_at_precision`].
    RecallAtPrecision: "RecallAtPrecision" of MODULE, "recall_at_precision";
    arguments { precision: f64, "precision", 0.5; }
    options {}
    fixed { "class_id": Json::Null; "num_thresholds": 200; }
    |this, labels, predictions, weights| recall_at_precision(labels, predictions, this.precision, weights)
}

metric! {
    /// The root of the mean of squared differences: [`root_mean_squared_error`].
    RootMeanSquaredError: "RootMeanSquaredError" of MODULE, "root_mean_squared_error";
    arguments {}
    options {}
    fixed {}
    |_, labels, predictions, weights| root_mean_squared_error(labels, predictions, weights)
}

metric! {
    /// The largest sensitivity with a specificity of at least `specificity`:
    /// [`sensitivity_at_specificity`].
    SensitivityAtSpecificity: "SensitivityAtSpecificity" of MODULE, "sensitivity_at_specificity";
    arguments { specificity: f64, "specificity", 0.5; }
    options {}
    fixed { "class_id": Json::Null; "num_thresholds": 200; }
    |this, labels, predictions, weights| sensitivity_at_specificity(labels, predictions, this.specificity, weights)
}

metric! {
    /// The share of rows whose largest logit belongs to the label: [`sparse_categorical_accuracy`].
    SparseCategoricalAccuracy: "SparseCategoricalAccuracy" of MODULE, "sparse_categorical_accuracy";
    arguments {}
    options {}
    fixed {}
    |_, labels, predictions, weights| sparse_categorical_accuracy(labels, predictions, weights)
}

metric! {
    /// The same for labels that are class numbers: [`sparse_top_k_categorical_accuracy`].
    SparseTopKCategoricalAccuracy: "SparseTopKCategoricalAccuracy" of MODULE, "sparse_top_k_categorical_accuracy";
    arguments {}
    options {
        /// The number of predictions that count. By default 5.
        k(usize): usize, "k", 5;
    }
    fixed {}
    |this, labels, predictions, weights| sparse_top_k_categorical_accuracy(labels, predictions, this.k, weights)
}

metric! {
    /// The largest specificity with a sensitivity of at least `sensitivity`:
    /// [`specificity_at_sensitivity`].
    SpecificityAtSensitivity: "SpecificityAtSensitivity" of MODULE, "specificity_at_sensitivity";
    arguments { sensitivity: f64, "sensitivity", 0.5; }
    options {}
    fixed { "class_id": Json::Null; "num_thresholds": 200; }
    |this, labels, predictions, weights| specificity_at_sensitivity(labels, predictions, this.sensitivity, weights)
}

metric! {
    /// The share of rows whose label is among the `k` most probable classes:
    /// [`top_k_categorical_accuracy`].
    TopKCategoricalAccuracy: "TopKCategoricalAccuracy" of MODULE, "top_k_categorical_accuracy";
    arguments {}
    options {
        /// The number of predictions that count. By default 5.
        k(usize): usize, "k", 5;
    }
    fixed {}
    |this, labels, predictions, weights| top_k_categorical_accuracy(labels, predictions, this.k, weights)
}

metric! {
    /// The number of false labels predicted negative: [`true_negatives`].
    TrueNegatives: "TrueNegatives" of MODULE, "true_negatives";
    arguments {}
    options {
        /// The threshold. By default 0.5.
        threshold(f64): Threshold, "thresholds", Threshold::default();
    }
    fixed {}
    |this, labels, predictions, weights| true_negatives(labels, predictions, this.threshold.0, weights)
}

metric! {
    /// The number of true labels predicted positive: [`true_positives`].
    TruePositives: "TruePositives" of MODULE, "true_positives";
    arguments {}
    options {
        /// The threshold. By default 0.5.
        threshold(f64): Threshold, "thresholds", Threshold::default();
    }
    fixed {}
    |this, labels, predictions, weights| true_positives(labels, predictions, this.threshold.0, weights)
}
