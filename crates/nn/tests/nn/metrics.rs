//! Metrics against Keras's over streams of batches, their contract, and what they say to wrong
//! inputs.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_nn::metric::*;
use estimand_nn::testing::{check_metric, metric_array, metric_value};
use estimand_tensor::{Array, DType, Dim, Result};

use crate::fixture::{Case, cases, rows};

/// The metric of a case.
fn metric(case: &Case, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let with_threshold = match case.name() {
        "binary_accuracy" => Some(binary_accuracy as fn(&_, &_, _, _) -> _),
        "precision" => Some(precision as _),
        "recall" => Some(recall as _),
        "true_positives" => Some(true_positives as _),
        "false_positives" => Some(false_positives as _),
        "true_negatives" => Some(true_negatives as _),
        "false_negatives" => Some(false_negatives as _),
        "sensitivity_at_specificity" => Some(sensitivity_at_specificity as _),
        "specificity_at_sensitivity" => Some(specificity_at_sensitivity as _),
        "precision_at_recall" => Some(precision_at_recall as _),
        "recall_at_precision" => Some(recall_at_precision as _),
        _ => None,
    };
    if let Some(make) = with_threshold {
        return make(labels, predictions, case.settings.setting("threshold"), weights);
    }
    let k = || case.settings.setting("k");
    match case.name() {
        "auc" if case.settings.has("curve") => auc_of(case).of(labels, predictions, weights),
        "top_k_categorical_accuracy" => top_k_categorical_accuracy(labels, predictions, k(), weights),
        "sparse_top_k_categorical_accuracy" => sparse_top_k_categorical_accuracy(labels, predictions, k(), weights),
        plain => match named(plain) {
            Ok(metric) => metric.apply(labels, predictions, weights),
            Err(error) => panic!("the test does not know a metric of the fixture: {error}"),
        },
    }
}

/// The settings of an `auc`.
fn auc_of(case: &Case) -> Auc {
    let settings = &case.settings;
    let curve = if settings.bytes("curve") == b"PR" { Curve::Pr } else { Curve::Roc };
    let summation = match settings.setting::<String>("method").as_str() {
        "minoring" => Summation::Minoring,
        "majoring" => Summation::Majoring,
        _ => Summation::Interpolation,
    };
    let auc = Auc::new().curve(curve).summation_method(summation).n_thresholds(settings.setting("n_thresholds"));
    let auc = auc.multi_label(settings.option("multi_label").unwrap_or(false));
    let auc = if settings.option("from_logits").unwrap_or(false) { auc.from_logits() } else { auc };
    match settings.option::<Vec<f64>>("label_weights") {
        Some(weights) => auc.label_weights(weights),
        None => auc,
    }
}

fn value(case: &Case) -> Result<Array> {
    let g = Graph::new();
    // The mean has no labels.
    let arrays = [
        Some(case.find("labels").unwrap_or(case.array("predictions"))),
        Some(case.array("predictions")),
        case.find("weights"),
    ];
    let names = ["labels", "predictions", "weights"];
    let places: Vec<(Tensor, &Array)> =
        names.iter().zip(arrays).filter_map(|(name, array)| Some((rows(&g, name, array?), array?))).collect();
    let metric = metric(case, &places[0].0, &places[1].0, places.get(2).map(|p| &p.0));
    let mut first = 0;
    let mut batches = Vec::new();
    for &n in case.array("batches").as_slice::<i64>()? {
        let range = first..first + n as usize;
        batches.push(places.iter().map(|(place, all)| (place, all.rows(range.clone()).unwrap())).collect());
        first += n as usize;
    }
    metric_array(&metric, &batches)
}

#[test]
fn metrics_agree_with_tensorflow() {
    let cases = cases("metrics");
    for case in &cases {
        let (actual, expected) = (value(case).unwrap(), case.array("out"));
        assert_eq!(actual.dims(), expected.dims(), "{}", case.settings);
        let mut pairs = actual.to_f64_vec().unwrap().into_iter().zip(expected.to_f64_vec().unwrap());
        let close = pairs.all(|(actual, expected)| (actual - expected).abs() <= 1e-6 * expected.abs().max(1.0));
        assert!(close, "{} is {actual:?}, TensorFlow has {expected:?}", case.settings);
    }
    let found: BTreeSet<String> = cases.iter().map(|case| case.name().to_string()).collect();
    assert_eq!(found, ALL_METRICS.iter().map(|make| make().name().to_string()).collect());
}

/// A function that makes a metric from labels, predictions and optional weights.
type MetricFn = fn(&Tensor, &Tensor, Option<&Tensor>) -> Metric;

/// Sixteenths, whose sums and squares are exact; some are equal and one is the threshold.
fn sixteenths(dims: &[usize]) -> Array {
    let n = dims.iter().product::<usize>();
    Array::from_vec(dims, (0..n).map(|i| (i * 7 % 17) as f32 / 16.0).collect()).unwrap()
}

#[test]
fn every_metric_keeps_the_contract() -> Result<()> {
    let labels = Array::from([1i64, 0, 1, 1, 0, 0, 1, 0]);
    let one_hot = [[1.0f32, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
    let one_hot = Array::from_vec([5, 3], one_hot.concat())?;
    let classes = Array::from([0i64, 2, 1, 1, 0, 2, 2, 1]);
    for make in ALL_METRICS {
        let metric = make();
        let name = metric.name();
        let make = |labels: &Tensor, p: &Tensor, weights: Option<&Tensor>| metric.apply(labels, p, weights);
        if name.contains("confusion") || name.contains("iou") || name.contains("per_class") {
            check_metric(name, &make, &labels, &classes)?;
        } else if name == "cosine_similarity" {
            // Rows whose lengths are powers of two: (1, 1, 1, 1) has 2.
            let quarters =
                Array::from_vec([3, 4], vec![0.25f32, -0.25, 0.25, 0.25, 1.0, 1.0, 1.0, 1.0, 0.0, -2.0, 0.0, 0.0])?;
            let others = Array::from_vec([3, 4], vec![0.5f32, 0.5, 0.5, 0.5, 0.0, 0.0, 4.0, 0.0, 1.0, -1.0, 1.0, 1.0])?;
            check_metric(name, &make, &quarters, &others)?;
        } else if name.starts_with("sparse") {
            check_metric(name, &make, &labels, &sixteenths(&[8, 3]))?;
        } else if name.contains("categorical") {
            check_metric(name, &make, &one_hot, &sixteenths(&[5, 3]))?;
        } else {
            check_metric(name, &make, &labels, &sixteenths(&[8]))?;
            check_metric(name, &make, &one_hot, &sixteenths(&[5, 3]))?;
        }
    }
    Ok(())
}

#[test]
fn the_contract_finds_what_is_broken() {
    let labels = Array::from([1i64, 0, 1, 1]);
    let ratio = |sums: &[Tensor]| sums[0].div_no_nan(&sums[1]);
    let broken: [(MetricFn, &str); 4] = [
        // A mean of the batches' means.
        (|_, p, _| Metric::new([p.mean(), p.graph().constant(1.0f32)], |sums| &sums[0] / &sums[1]), "rows in parts"),
        (|_, p, _| mean(p, None), "rows of weights 0, 1 and 2"),
        (|_, p, w| Metric::new(mean(p, w).sums().to_vec(), |sums| &sums[0] / &sums[1]), "a batch without rows"),
        (|_, p, _| Metric::new([p.min().log()], |sums| sums[0].clone()), "the value is [-inf]"),
    ];
    for (make, text) in broken {
        let error = check_metric("broken", &make, &labels, &sixteenths(&[4])).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("for broken"), "{error}\nshould contain {text}");
    }
    let fine = |_: &Tensor, p: &Tensor, w: Option<&Tensor>| Metric::new(mean(p, w).sums().to_vec(), ratio);
    check_metric("fine", &fine, &labels, &sixteenths(&[4])).unwrap();
    assert!(check_metric("fine", &fine, &labels, &Array::scalar(1.0f32)).is_err());
}

/// `[n, 1]` and `[n]` are not everything against everything: the last axis is dropped, as in
/// TensorFlow.
#[test]
fn a_last_axis_of_one_is_dropped() -> Result<()> {
    let g = Graph::new();
    let (list, column) = (g.constant([1.0f32, 2.0, 3.0]), g.constant([1.0f32, 2.0, 5.0]).expand_dims(-1));
    for metric in [mean_squared_error(&list, &column, None), mean_squared_error(&column, &list, None)] {
        assert_eq!(metric_value(&metric, &[vec![]])?, f64::from(4.0f32) / 3.0);
    }
    Ok(())
}

/// A mistake, and what its error must contain.
type Mistake = (fn(&Graph) -> Metric, &'static [&'static str]);

#[test]
fn metrics_say_what_they_got() {
    let cases: &[Mistake] = &[
        (
            |g| mean_squared_error(&list(g), &scores(g), None),
            &["mean_squared_error got the labels `list` f32[batch] and the predictions `scores` f32[batch, 4]"],
        ),
        (|g| accuracy(&scores(g), &list(g), None), &["accuracy got the labels `scores`", "expected the same shape"]),
        (|g| auc(&list(g), &scores(g), None), &["auc got the labels `list`"]),
        (
            |g| sparse_categorical_accuracy(&scores(g), &scores(g), None),
            &["one class number", "to categorical_accuracy"],
        ),
        (
            |g| sparse_top_k_categorical_accuracy(&scores(g), &scores(g), 2, None),
            &["one class number", "to top_k_categorical_accuracy"],
        ),
        (|g| top_k_categorical_accuracy(&scores(g), &scores(g), 0, None), &["k is 0; expected at least 1"]),
        (|g| precision(&list(g), &list(g), 1.5, None), &["the threshold of precision is 1.5; expected 0 to 1"]),
        (|g| recall(&list(g), &list(g), f64::NAN, None), &["the threshold of recall is NaN"]),
        (
            |g| recall_at_precision(&list(g), &list(g), 1.5, None),
            &["the limit of recall_at_precision is 1.5; expected 0 to 1"],
        ),
        (
            |g| recall_at_thresholds(&list(g), &list(g), &[], None),
            &["the thresholds of recall_at_thresholds are []; expected at least one number"],
        ),
        (
            |g| precision_at_thresholds(&list(g), &list(g), &[0.5, 2.0], None),
            &["the thresholds of precision_at_thresholds are [0.5, 2.0]"],
        ),
        (
            |g| expected_calibration_error(&list(g), &list(g), 0, None),
            &["the number of bins of expected_calibration_error is 0"],
        ),
        (|g| confusion_matrix(&list(g), &list(g), 0, None), &["confusion_matrix has 0 classes; expected 1 to 4096"]),
        (|g| mean_iou(&list(g), &scores(g), 3, None), &["mean_iou got the labels `list`"]),
        (|g| r2_score(&list(g), &scores(g), None), &["r2_score got the labels `list`"]),
        (|g| cosine_similarity(&list(g), &scores(g), None), &["cosine_similarity got the labels `list`"]),
        (
            |g| Auc::new().n_thresholds(1).of(&list(g), &list(g), None),
            &["the number of thresholds is 1; expected at least 2", "in auc"],
        ),
        (|g| Auc::new().multi_label(true).of(&list(g), &list(g), None), &["expected [batch, labels]"]),
        (
            |g| Auc::new().label_weights([1.0]).of(&scores(g), &scores(g), None),
            &["label weights are set", "call .multi_label(true)"],
        ),
        (
            |g| Auc::new().multi_label(true).label_weights([1.0, 2.0]).of(&scores(g), &scores(g), None),
            &["there are 2 label weights for 4 labels"],
        ),
        (
            |g| mean(&scores(g), Some(&g.constant([1.0f32, 2.0]).expand_dims(0))),
            &["f32[1, 2] do not fit the values [batch, 4]", "help: give one number"],
        ),
        (
            |g| auc(&list(g), &list(g), Some(&scores(g))),
            &["weights `scores` f32[batch, 4] do not fit the predictions [batch]"],
        ),
        (|g| mean(&g.placeholder("words", DType::Str, [Dim::BATCH]), None), &["string"]),
    ];
    for (build, parts) in cases {
        let g = Graph::new();
        let metric = build(&g);
        let text = g.check().expect_err(parts[0]).to_string();
        for part in parts.iter().chain(&["metrics.rs:"]) {
            assert!(text.contains(part), "{text}\nshould contain {part}");
        }
        assert!(metric_value(&metric, &[vec![]]).is_err());
    }
}

fn list(g: &Graph) -> Tensor {
    g.placeholder("list", DType::F32, [Dim::BATCH])
}

fn scores(g: &Graph) -> Tensor {
    g.placeholder("scores", DType::F32, [Dim::BATCH, 4.into()])
}

/// Logits are no probabilities.
#[test]
fn the_area_of_what_is_no_probability_is_an_error() {
    for wrong in [-0.001, 1.001, 7.5, f32::INFINITY] {
        let g = Graph::new();
        let (labels, p) = (g.constant([0i64, 1]), g.constant([0.5, wrong]));
        let metric = auc(&labels, &p, None);
        let sums: Vec<&Tensor> = metric.sums().iter().collect();
        let text = Session::new(&g).unwrap().run(&sums, &[]).unwrap_err().to_string();
        assert!(text.contains("probabilities_from_0_to_1"), "{wrong}: {text}");
    }
}

/// TF: `tf.keras.metrics.AUC` has a number for it (0.5 of these), as if NaN were some probability.
/// Where its weight is 0, it counts nowhere.
#[test]
fn metrics_of_a_probability_that_is_nan_are_nan() -> Result<()> {
    type Of = fn(&Tensor, &Tensor, Option<&Tensor>) -> Metric;
    let all: [(&str, Of); 8] = [
        ("auc", auc),
        ("auc_precision_recall", auc_precision_recall),
        ("auc by label", |labels, p, weights| Auc::new().multi_label(true).of(labels, p, weights)),
        ("sensitivity", |labels, p, weights| sensitivity_at_specificity(labels, p, 0.5, weights)),
        ("specificity", |labels, p, weights| specificity_at_sensitivity(labels, p, 0.5, weights)),
        ("precision", |labels, p, weights| precision_at_recall(labels, p, 0.5, weights)),
        ("recall", |labels, p, weights| recall_at_precision(labels, p, 0.5, weights)),
        ("calibration", |labels, p, weights| expected_calibration_error(labels, p, 10, weights)),
    ];
    for (name, of) in all {
        let value = |p: [f32; 3], weights: [f32; 3]| {
            let g = Graph::new();
            let column = |values: [f32; 3]| g.constant(values).reshape([3, 1]);
            let (labels, p, weights) = (column([0.0, 1.0, 1.0]), column(p), column(weights));
            metric_value(&of(&labels, &p, Some(&weights)), &[vec![]])
        };
        for nan in 0..3 {
            let (mut p, mut weights) = ([0.25, 0.375, 0.75], [1.0; 3]);
            p[nan] = f32::NAN;
            assert!(value(p, weights)?.is_nan(), "{name}, {nan}");
            weights[nan] = 0.0;
            let without = value([0.25, 0.375, 0.75], weights)?;
            assert_eq!(value(p, weights)?, without, "{name}, {nan}");
        }
    }
    Ok(())
}

#[test]
fn a_class_that_is_none_is_an_error_of_the_run() {
    for wrong in [-1.0, 3.0, 0.5, f32::NAN] {
        let g = Graph::new();
        let (labels, predictions) = (g.constant([0f32, 1.0]), g.constant([2.0, wrong]));
        for metric in [confusion_matrix(&labels, &predictions, 3, None), mean_iou(&predictions, &labels, 3, None)] {
            let text = metric_array(&metric, &[vec![]]).unwrap_err().to_string();
            assert!(text.contains("classes_below_3"), "{wrong}: {text}");
        }
    }
}
