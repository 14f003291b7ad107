//! Compares random heads with those of TensorFlow: `oracles/gen/heads.py` explains the fixture.

use std::collections::BTreeSet;
use std::sync::Arc;

use estimand::data::slice_rows;
use estimand::graph::Axes;
use estimand::head::Term;
use estimand::head::{LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead, SequentialHeadWrapper};
use estimand::nn::Reduction;
use estimand::prelude::*;
use estimand::tensor::{Batch, Feature, Ragged};
use estimand_fixture::{Case, FromJson, Json, cases};

use super::rows::with_regularization;
use crate::fixture::array;
use crate::models::Folder;

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
        if let Some(name) = $config.option::<String>("name") {
            head = head.name(name);
        }
        if let Some(column) = $config.option::<String>("weight_column") {
            head = head.weight_column(column);
        }
        if $config.option::<String>("reduction").as_deref() == Some("sum") {
            head = head.loss_reduction(Reduction::Sum);
        }
        head
    }};
}

macro_rules! loss_fn {
    ($head:expr, $config:expr) => {
        match $config.option::<String>("loss_fn").as_deref() {
            Some("absolute") => $head.loss_fn(|cx| (cx.labels - cx.logits).abs()),
            Some("mean_absolute") => {
                $head.loss_fn(|cx| (cx.labels.cast(DType::F32) - cx.logits).abs().mean_axes(Axes::of([-1]).keep_dims()))
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
        if let Some(terms) = $config.option::<Vec<String>>("vocabulary") {
            head = head.label_vocabulary(terms);
        }
        head
    }};
}

fn head(config: &Case) -> Box<dyn Head> {
    let n_classes = config.option("n_classes").unwrap_or(0);
    let label_dimension = config.option("label_dimension").unwrap_or(1);
    let thresholds: Vec<f64> = config.option("thresholds").unwrap_or_default();
    match config.setting::<String>("kind").as_str() {
        "binary" => Box::new(classes!(BinaryClassHead::new(), config).thresholds(thresholds)),
        "multi_class" => Box::new(classes!(MultiClassHead::new(n_classes), config)),
        "multi_label" => {
            let class = |class: &Json| {
                String::from_json(class).map_or_else(|| i64::from_json(class).unwrap().into(), Term::from)
            };
            let of_classes: Vec<Json> = config.option("classes").unwrap_or_default();
            let of_classes: Vec<Term> = of_classes.iter().map(class).collect();
            let head = classes!(MultiLabelHead::new(n_classes), config);
            Box::new(head.thresholds(thresholds).metrics_of_classes(of_classes))
        }
        "regression" => {
            let head = loss_fn!(common!(RegressionHead::new(), config), config).label_dimension(label_dimension);
            Box::new(match config.option::<String>("link").as_deref() {
                Some("exp") => head.inverse_link_fn(Tensor::exp),
                Some("square") => head.inverse_link_fn(Tensor::square),
                Some(other) => panic!("{other}"),
                None => head,
            })
        }
        "poisson" => {
            let full = config.option("full_loss").unwrap_or(true);
            let head = common!(PoissonRegressionHead::new(), config);
            Box::new(head.label_dimension(label_dimension).compute_full_loss(full))
        }
        "logistic" => Box::new(common!(LogisticRegressionHead::new(), config)),
        "multi" => {
            let heads = config.objects("heads");
            let weights = config.option("head_weights").unwrap_or(vec![1.0; heads.len()]);
            let both = heads.iter().zip(weights);
            Box::new(both.fold(MultiHead::new(), |all, (one, weight)| all.weighted_head(weight, head(one))))
        }
        "sequential" => {
            let mask: String = config.setting("mask");
            Box::new(SequentialHeadWrapper::new(head(&config.object("head"))).sequence_length_mask(mask))
        }
        other => panic!("{other}"),
    }
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs().max(0.1)
}

/// Rows of logits, labels and features.
fn rows(case: &Case) -> Result<Batch> {
    let mut batch = Batch::new().with_feature("logits", array(&case.array("logits")))?;
    for (name, values) in case.arrays("features") {
        batch = batch.with_feature(&name, array(&values))?;
    }
    let of_ragged: Vec<String> = case.option("ragged").unwrap_or_default();
    for (name, values) in case.arrays("labels") {
        let label: Feature = match of_ragged.contains(&name) {
            true => ragged(&array(&values)).into(),
            false => array(&values).into(),
        };
        batch = batch.with_label(&name, label)?;
    }
    Ok(batch)
}

fn check(case: &Case) -> Result<()> {
    let batch = rows(case)?;
    let mut first = 0;
    let mut data: Option<Dataset> = None;
    for n in case.setting::<Vec<usize>>("batches") {
        let part = Dataset::from_batch(slice_rows(&batch, first..first + n)?).batch(n);
        data = Some(data.map_or(part.clone(), |data| data.concatenate(&part)));
        first += n;
    }
    let regularization: Vec<f32> = case.option("regularization").unwrap_or_default();
    let folder = Folder::new();
    let estimator = with_regularization(head(&case.object("head")), &regularization, &folder);

    let metrics = estimator.evaluate(data.unwrap())?;
    let expected = case.object("metrics");
    let (own, theirs): (BTreeSet<&str>, BTreeSet<&str>) =
        (metrics.iter().map(|(key, _)| key).collect(), expected.keys().collect());
    assert_eq!(own, theirs, "{}", case.json("head"));
    for key in expected.keys() {
        let (found, value) = (metrics.get(key)?, expected.setting(key));
        assert!(close(found, value), "{key} is {found}, TensorFlow has {value}: {}", case.json("head"));
    }

    let whole = Dataset::from_batch(batch.clone()).batch(batch.n_rows());
    let predictions = estimator.predict(PredictSpec::new(&whole).by_batch(true)).next().unwrap()?;
    let expected = case.arrays("predictions");
    let (own, theirs): (BTreeSet<&str>, BTreeSet<&str>) =
        (predictions.keys().collect(), expected.iter().map(|(key, _)| key.as_str()).collect());
    assert_eq!(own, theirs, "{}", case.json("head"));
    for (key, value) in &expected {
        let (found, value) = (predictions.array(key).unwrap(), array(value));
        assert_eq!((found.dtype(), found.dims()), (value.dtype(), value.dims()), "{key}: {}", case.json("head"));
        let same = match value.dtype() {
            DType::F32 => found.to_f64_vec()?.into_iter().zip(value.to_f64_vec()?).all(|(a, b)| close(a, b)),
            _ => *found == value,
        };
        assert!(same, "{key} is {found:?}, TensorFlow has {value:?}: {}", case.json("head"));
    }
    Ok(())
}

/// A step of gradient descent at the rate 1, from 0: what is added to the logits is their gradient,
/// with the other sign.
fn check_gradient(case: &Case) -> Result<()> {
    let batch = rows(case)?;
    let (expected, n) = (array(&case.array("gradient")), batch.n_rows());
    let (head, dims): (Arc<dyn Head>, Vec<usize>) = (head(&case.object("head")).into(), expected.dims().to_vec());
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
        assert!(
            close(-found, expected),
            "gradient {i} is {}, TensorFlow has {expected}: {}",
            -found,
            case.json("head")
        );
    }
    Ok(())
}

#[test]
fn gradients_agree_with_tensorflow() -> Result<()> {
    let place = |(i, case): (usize, &Case)| {
        check_gradient(case).map_err(|e| e.context(format!("case {i}: {}", case.json("head"))))
    };
    cases("heads").iter().enumerate().try_for_each(place)
}

#[test]
fn heads_agree_with_tensorflow() -> Result<()> {
    let cases = cases("heads");
    for (i, case) in cases.iter().enumerate() {
        check(case).map_err(|e| e.context(format!("case {i}: {}", case.json("head"))))?;
    }
    assert!(cases.len() > 100);
    let kinds: BTreeSet<&str> = cases.iter().map(Case::name).collect();
    assert_eq!(kinds.len(), estimand::head::ALL_HEADS.len());
    Ok(())
}
