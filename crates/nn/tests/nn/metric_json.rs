//! Metrics as values and as JSON: every option goes there and back, and bad documents get errors
//! that name the place.

use std::collections::BTreeSet;

use estimand_graph::{Graph, Tensor};
use estimand_nn::config::{self, CustomObjects, Described, Fields, Json};
use estimand_nn::metric::*;
use estimand_nn::testing::metric_array;
use estimand_nn::{KlDivergence, LogCosh, Loss, Reduction};
use estimand_tensor::{Result, Shape};

use crate::object_options::metrics;

fn read(text: &str) -> Result<Box<dyn MetricValue>> {
    from_json(text, &CustomObjects::new())
}

/// The value for some rows, with weights.
fn value(metric: &dyn MetricValue) -> Result<Vec<f64>> {
    let class = metric.to_json()?["class_name"].to_string();
    let g = Graph::new();
    let rows = |values: [f32; 6]| -> Tensor { g.constant(values).reshape_as(Shape::from([2, 3])) };
    let (zeros, ones) = (rows([0.0, 1.0, 0.0, 1.0, 0.0, 0.0]), rows([0.0, 1.0, 1.0, 1.0, 0.0, 1.0]));
    let probabilities = rows([0.125, 0.5, 0.375, 0.25, 0.625, 0.125]);
    let (labels, predictions) = match &class[..] {
        _ if class.contains("Sparse") => (g.constant([2i64, 0]), probabilities),
        _ if class.contains("Matrix") || class.contains("IoU") || class.contains("PerClass") => (zeros, ones),
        _ => (zeros, probabilities),
    };
    let weights = g.constant([1.5f32, 2.5]);
    metric_array(&metric.apply(&labels, &predictions, Some(&weights)), &[vec![]])?.to_f64_vec()
}

fn check_again(metric: &dyn MetricValue) -> Result<Json> {
    let json = metric.to_json()?;
    let again = read(&json.to_string())?;
    assert_eq!(again.to_json()?, json, "{metric:?}");
    assert_eq!(again.name(), metric.name());
    assert_eq!(value(&*again)?, value(metric)?, "{metric:?}");
    Ok(json)
}

#[test]
fn every_metric_goes_to_json_and_back() -> Result<()> {
    for make in ALL_METRICS {
        check_again(&*make())?;
    }
    Ok(())
}

/// Fields that have one value only.
const FIXED: [&str; 10] = [
    "dtype",
    "axis",
    "class_aggregation",
    "num_regressors",
    "top_k",
    "class_id",
    "num_thresholds",
    "ignore_class",
    "sparse_y_true",
    "sparse_y_pred",
];

#[test]
fn every_option_goes_to_json_and_back() -> Result<()> {
    let mut changed: BTreeSet<(String, String)> = BTreeSet::new();
    let defaults: Vec<Json> = ALL_METRICS.iter().map(|make| make().to_json().unwrap()).collect();
    for metric in metrics() {
        let json = check_again(&*metric)?;
        let default = defaults.iter().find(|default| default["class_name"] == json["class_name"]).unwrap();
        for (key, value) in json["config"].as_object().unwrap() {
            if default["config"].get(key) != Some(value) {
                changed.insert((json["class_name"].to_string(), key.clone()));
            }
        }
    }
    for default in &defaults {
        let class = default["class_name"].to_string();
        for key in default["config"].as_object().unwrap().keys() {
            let fixed = FIXED.contains(&key.as_str()) && !(class.contains("AUC") && key == "num_thresholds");
            let is_changed = changed.contains(&(class.clone(), key.clone()));
            assert!(fixed != is_changed, "{key} of {class} in the metrics above");
        }
    }
    Ok(())
}

/// Keras's metrics of a loss, the usual threshold as `null`, a list of one, and arrays as objects.
#[test]
fn other_spellings_of_keras_are_read() -> Result<()> {
    let of = |class: &str, config: &str| read(&format!(r#"{{"class_name": "{class}", "config": {{{config}}}}}"#));
    let same = |one: Box<dyn MetricValue>, other: &dyn MetricValue| {
        assert_eq!(one.to_json().unwrap(), other.to_json().unwrap());
    };
    let kl = KlDivergence::new().reduction(Reduction::SumOverBatchSize);
    same(of("KLDivergence", r#""name": "kld", "dtype": "float32""#)?, &MeanLoss::new(kl).name("kld"));
    let log_cosh = LogCosh::new().reduction(Reduction::SumOverBatchSize);
    same(of("LogCoshError", "")?, &MeanLoss::new(log_cosh));
    same(of("Precision", r#""thresholds": null"#)?, &Precision::new());
    same(of("TruePositives", r#""thresholds": [0.25]"#)?, &TruePositives::new().threshold(0.25));
    let normalizer = r#""normalizer": {"class_name": "__numpy__", "config": {"value": [1, 2], "dtype": "float32"}}"#;
    same(of("MeanRelativeError", normalizer)?, &MeanRelativeError::new().normalizer(vec![1.0, 2.0]));
    same(read("\"top_k_categorical_accuracy\"")?, &TopKCategoricalAccuracy::new());
    Ok(())
}

/// A metric of the user: the mean of a multiple of the predictions.
#[derive(Debug)]
struct Times(f64);

impl MetricValue for Times {
    fn name(&self) -> &str {
        "times"
    }

    fn apply(&self, _: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        mean(&(predictions * self.0), weights)
    }

    fn to_json(&self) -> Result<Json> {
        config::write("my_package", self)
    }
}

impl Described for Times {
    const CLASS: &'static str = "Times";

    fn template() -> Times {
        Times(1.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Times {
        Times(fields.required("factor", &self.0))
    }
}

/// A metric of the user that nobody has described, and a loss.
#[derive(Debug)]
struct Opaque;

impl MetricValue for Opaque {
    fn name(&self) -> &str {
        "opaque"
    }

    fn apply(&self, _: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        mean(predictions, weights)
    }
}

impl Loss for Opaque {
    fn name(&self) -> &'static str {
        "opaque"
    }

    fn loss_reduction(&self) -> Reduction {
        Reduction::Sum
    }

    fn elements(&self, _: &Tensor, predictions: &Tensor) -> Tensor {
        predictions.clone()
    }
}

#[test]
fn metrics_of_the_user_are_written_and_read() -> Result<()> {
    let (json, objects) = (Times(3.0).to_json()?, CustomObjects::new().metric::<Times>());
    let again = from_json(&json.to_string(), &objects)?;
    assert_eq!((again.to_json()?, value(&*again)?), (json, value(&Times(3.0))?));
    let refused = |metric: &dyn MetricValue| metric.to_json().unwrap_err().to_string();
    let text = refused(&Opaque);
    assert!(text.contains("the metric `opaque` cannot be written") && text.contains("Described"), "{text}");
    let text = refused(&MeanLoss::new(Opaque));
    assert!(text.contains("the loss `opaque` cannot be written"), "{text}");
    Ok(())
}

#[test]
fn bad_documents_get_errors_that_name_the_place() {
    let of = |class: &str, config: &str| format!(r#"{{"class_name": "{class}", "config": {{{config}}}}}"#);
    let deep = format!("{}1", r#"{"class_name": "MeanLoss", "config": {"loss": "#.repeat(10_000));
    let cases: [(String, &[&str]); 16] = [
        (of("Precison", ""), &["no metric `Precison`", "at $", "did you mean `Precision`?"]),
        (of("Times", ""), &["no metric `Times`", "at $"]),
        ("[]".into(), &["expected an object, found []", "at $"]),
        (r#"{"config": {}}"#.into(), &["there is no `class_name`", "at $"]),
        (r#"{"class_name": "AUC"}"#.into(), &["there is no `config`", "at $"]),
        (of("AUC", r#""num_thresholds": "a""#), &["expected a whole number from 0", "at $.config.num_thresholds"]),
        (of("AUC", r#""thresholds": [0, 0.5, 1]"#), &["expected null", "at $.config.thresholds"]),
        (of("AUC", r#""curve": "PRGAIN""#), &["expected ROC or PR, found \"PRGAIN\"", "at $.config.curve"]),
        (of("AUC", r#""num_treshold": 5"#), &["no field `num_treshold`", "at $.config", "`num_thresholds`"]),
        (of("AUC", r#""dtype": "float16""#), &["found \"float16\"", "at $.config.dtype"]),
        (of("Precision", r#""top_k": 3"#), &["expected null", "no other `top_k`", "at $.config.top_k"]),
        (of("Recall", r#""thresholds": ["a"]"#), &["expected a number", "at $.config.thresholds[0]"]),
        (of("TruePositives", r#""thresholds": [0.1, 0.2]"#), &["expected one threshold", "at $.config.thresholds"]),
        (of("MeanIoU", ""), &["there is no `num_classes`", "at $.config"]),
        (
            of("MeanLoss", r#""loss": {"class_name": "Hubert", "config": {}}"#),
            &["no loss `Hubert`", "at $.config.loss"],
        ),
        (deep, &["nested more than 100 deep", "at $.config.loss.config.loss"]),
    ];
    for (document, parts) in cases {
        let error = read(&document).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}\nshould contain {part}");
        }
        assert!(error.len() < 900, "{error}");
    }
}

/// A document that lost or changed any part is read or refused, and nothing panics.
#[test]
fn damaged_documents_do_not_panic() -> Result<()> {
    for metric in [&metrics()[1], &metrics()[13]] {
        let document = metric.to_json()?.to_string();
        for i in 0..document.len() {
            for with in ["", "0", "\"", "[", "null", "-"] {
                let _ = read(&format!("{}{with}{}", &document[..i], &document[i + 1..]));
            }
        }
    }
    Ok(())
}
