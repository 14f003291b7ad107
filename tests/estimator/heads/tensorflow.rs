//! Compares random heads with those of TensorFlow: `oracles/gen/heads.py` explains the fixture.

use std::collections::BTreeSet;
use std::sync::Arc;

use estimand::data::slice_rows;
use estimand::head::Term;
use estimand::prelude::*;
use estimand::tensor::{Batch, Feature};
use serde_json::Value;

use super::rows::with_regularization;
use crate::models::Folder;

const CASES: &str = include_str!("../../../oracles/fixtures/heads.jsonl");

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|v| Some(v.as_str()?.to_string())).collect()
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

fn array(value: &Value) -> Array {
    let dims: Vec<usize> = value[1].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let values = value[2].as_array().unwrap();
    let made = match value[0].as_str().unwrap() {
        "f32" => Array::from_vec(dims, values.iter().map(|v| v.as_f64().unwrap() as f32).collect()),
        "i32" => Array::from_vec(dims, values.iter().map(|v| v.as_i64().unwrap() as i32).collect()),
        "i64" => Array::from_vec(dims, values.iter().map(|v| v.as_i64().unwrap()).collect()),
        "bool" => Array::from_vec(dims, values.iter().map(|v| v.as_bool().unwrap()).collect()),
        _ => Array::from_strings(dims, values.iter().map(|v| v.as_str().unwrap())),
    };
    made.unwrap()
}

/// Rows of different length from rows that were filled up.
fn ragged(padded: &Array) -> Ragged {
    let (rows, width) = (padded.dims()[0], padded.dims()[1]);
    let mut splits = vec![0];
    let is_there = |i: usize| match padded.dtype() {
        DType::Str => !padded.string_slice().unwrap().get(i).is_empty(),
        _ => padded.as_slice::<i64>().unwrap()[i] >= 0,
    };
    let there: Vec<usize> = (0..rows * width).filter(|&i| is_there(i)).collect();
    for row in 0..rows {
        splits.push(there.iter().filter(|&&i| i < (row + 1) * width).count() as i64);
    }
    let values = match padded.dtype() {
        DType::Str => {
            let all = padded.string_slice().unwrap();
            Array::from_strings([there.len()], there.iter().map(|&i| all.get(i))).unwrap()
        }
        _ => Array::from(there.iter().map(|&i| padded.as_slice::<i64>().unwrap()[i]).collect::<Vec<i64>>()),
    };
    Ragged::new(values, splits).unwrap()
}

/// What all heads are told.
macro_rules! common {
    ($head:expr, $config:expr) => {{
        let mut head = $head;
        if let Some(name) = $config["name"].as_str() {
            head = head.name(name);
        }
        if let Some(column) = $config["weight_column"].as_str() {
            head = head.weight_column(column);
        }
        if $config["reduction"].as_str() == Some("sum") {
            head = head.loss_reduction(Reduction::Sum);
        }
        head
    }};
}

macro_rules! loss_fn {
    ($head:expr, $config:expr) => {
        match $config["loss_fn"].as_str() {
            Some("absolute") => $head.loss_fn(|cx| (cx.labels - cx.logits).abs()),
            Some("mean_absolute") => {
                $head.loss_fn(|cx| (cx.labels.cast(DType::F32) - cx.logits).abs().mean_axes(&[-1], true))
            }
            Some(other) => panic!("{other}"),
            None => $head,
        }
    };
}

/// What classifiers are told.
macro_rules! classes {
    ($head:expr, $config:expr) => {{
        let mut head = loss_fn!(common!($head, $config), $config);
        if let Some(terms) = strings(&$config["vocabulary"]) {
            head = head.label_vocabulary(terms);
        }
        head
    }};
}

fn head(config: &Value) -> Box<dyn Head> {
    let n_classes = config["n_classes"].as_u64().unwrap_or(0) as usize;
    let label_dimension = config["label_dimension"].as_u64().unwrap_or(1) as usize;
    let thresholds = numbers(&config["thresholds"]).unwrap_or_default();
    match config["kind"].as_str().unwrap() {
        "binary" => Box::new(classes!(BinaryClassHead::new(), config).thresholds(thresholds)),
        "multi_class" => Box::new(classes!(MultiClassHead::new(n_classes), config)),
        "multi_label" => {
            let of_classes = match (strings(&config["classes"]), numbers(&config["classes"])) {
                (Some(names), _) => names.into_iter().map(Term::from).collect(),
                (_, Some(ids)) => ids.into_iter().map(|id| Term::from(id as i64)).collect(),
                _ => Vec::new(),
            };
            let head = classes!(MultiLabelHead::new(n_classes), config);
            Box::new(head.thresholds(thresholds).metrics_of_classes(of_classes))
        }
        "regression" => {
            let head = loss_fn!(common!(RegressionHead::new(), config), config).label_dimension(label_dimension);
            Box::new(match config["link"].as_str() {
                Some("exp") => head.inverse_link_fn(Tensor::exp),
                Some("square") => head.inverse_link_fn(Tensor::square),
                Some(other) => panic!("{other}"),
                None => head,
            })
        }
        "poisson" => {
            let full = config["full_loss"].as_bool().unwrap_or(true);
            let head = common!(PoissonRegressionHead::new(), config);
            Box::new(head.label_dimension(label_dimension).compute_full_loss(full))
        }
        "logistic" => Box::new(common!(LogisticRegressionHead::new(), config)),
        "multi" => {
            let heads = config["heads"].as_array().unwrap();
            let weights = numbers(&config["head_weights"]).unwrap_or(vec![1.0; heads.len()]);
            let both = heads.iter().zip(weights);
            Box::new(both.fold(MultiHead::new(), |all, (one, weight)| all.weighted_head(weight, head(one))))
        }
        "sequential" => {
            let mask = config["mask"].as_str().unwrap();
            Box::new(SequentialHeadWrapper::new(head(&config["head"])).sequence_length_mask(mask))
        }
        other => panic!("{other}"),
    }
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs().max(0.1)
}

/// Rows of logits, labels and features.
fn rows(case: &Value) -> Result<Batch> {
    let mut batch = Batch::new().with_feature("logits", array(&case["logits"]))?;
    for (name, values) in case["features"].as_object().unwrap() {
        batch = batch.with_feature(name, array(values))?;
    }
    let is_ragged = |name: &String| strings(&case["ragged"]).is_some_and(|names| names.contains(name));
    for (name, values) in case["labels"].as_object().unwrap() {
        let label: Feature = match is_ragged(name) {
            true => ragged(&array(values)).into(),
            false => array(values).into(),
        };
        batch = batch.with_label(name, label)?;
    }
    Ok(batch)
}

fn check(case: &Value) -> Result<()> {
    let batch = rows(case)?;
    let mut first = 0;
    let mut data: Option<Dataset> = None;
    for n in numbers(&case["batches"]).unwrap().into_iter().map(|n| n as usize) {
        let part = Dataset::from_batch(slice_rows(&batch, first..first + n)?).batch(n);
        data = Some(data.map_or(part.clone(), |data| data.concatenate(&part)));
        first += n;
    }
    let regularization: Vec<f32> =
        numbers(&case["regularization"]).unwrap_or_default().into_iter().map(|v| v as f32).collect();
    let folder = Folder::new();
    let estimator = with_regularization(head(&case["head"]), &regularization, &folder);

    let metrics = estimator.evaluate(data.unwrap())?;
    let expected = case["metrics"].as_object().unwrap();
    let (own, theirs): (BTreeSet<&str>, BTreeSet<&str>) =
        (metrics.iter().map(|(key, _)| key).collect(), expected.keys().map(String::as_str).collect());
    assert_eq!(own, theirs, "{}", case["head"]);
    for (key, value) in expected {
        let (found, value) = (metrics.get(key)?, value.as_f64().unwrap());
        assert!(close(found, value), "{key} is {found}, TensorFlow has {value}: {}", case["head"]);
    }

    let whole = Dataset::from_batch(batch.clone()).batch(batch.n_rows());
    let predictions = estimator.predict(PredictSpec::new(&whole).by_batch(true)).next().unwrap()?;
    let expected = case["predictions"].as_object().unwrap();
    let (own, theirs): (BTreeSet<&String>, BTreeSet<&String>) =
        (predictions.keys().collect(), expected.keys().collect());
    assert_eq!(own, theirs, "{}", case["head"]);
    for (key, value) in expected {
        let (found, value) = (&predictions[key], array(value));
        assert_eq!((found.dtype(), found.dims()), (value.dtype(), value.dims()), "{key}: {}", case["head"]);
        let same = match value.dtype() {
            DType::F32 => found.to_f64_vec()?.into_iter().zip(value.to_f64_vec()?).all(|(a, b)| close(a, b)),
            _ => *found == value,
        };
        assert!(same, "{key} is {found:?}, TensorFlow has {value:?}: {}", case["head"]);
    }
    Ok(())
}

/// A step of gradient descent at the rate 1, from 0: what is added to the logits is their gradient,
/// with the other sign.
fn check_gradient(case: &Value) -> Result<()> {
    let batch = rows(case)?;
    let (expected, n) = (array(&case["gradient"]), batch.n_rows());
    let (head, dims): (Arc<dyn Head>, Vec<usize>) = (head(&case["head"]).into(), expected.dims().to_vec());
    let model = move |cx: &ModelFnContext<'_>| {
        let logits = cx.feature("logits");
        let sum =
            (&logits + cx.graph().variable("added", &dims, Initializer::Zeros)).reshape_as(logits.shape().clone());
        head.spec(cx, &sum, Optimizer::new(Sgd::default(), 1.0))
    };
    let folder = Folder::new();
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    estimator.train(Dataset::from_batch(batch).batch(n))?;
    let found = estimator.variable_value("added")?;
    let pairs = found.to_f64_vec()?.into_iter().zip(expected.to_f64_vec()?);
    for (i, (found, expected)) in pairs.enumerate() {
        assert!(close(-found, expected), "gradient {i} is {}, TensorFlow has {expected}: {}", -found, case["head"]);
    }
    Ok(())
}

fn cases() -> Vec<Value> {
    CASES.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn gradients_agree_with_tensorflow() -> Result<()> {
    let place =
        |(i, case): (usize, &Value)| check_gradient(case).map_err(|e| e.context(format!("case {i}: {}", case["head"])));
    cases().iter().enumerate().try_for_each(place)
}

#[test]
fn heads_agree_with_tensorflow() -> Result<()> {
    let cases = cases();
    for (i, case) in cases.iter().enumerate() {
        check(case).map_err(|e| e.context(format!("case {i}: {}", case["head"])))?;
    }
    assert!(cases.len() > 100);
    let kinds: BTreeSet<&str> = cases.iter().map(|case| case["head"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), estimand::head::ALL_HEADS.len());
    Ok(())
}
