//! NaN and infinity in features, labels and weights: which ones are reported, and with which
//! message.

use estimand::prelude::*;

use crate::hooks::log_lines::logged;
use crate::models::Folder;

const NAN: f32 = f32::NAN;

fn rows(x: [f32; 4], y: [f32; 4]) -> Dataset {
    let weights = Array::from([1f32, 1.0, 1.0, 1.0]);
    Dataset::from_arrays([("x", Array::from(x)), ("w", weights), ("y", Array::from(y))]).label("y").batch(2)
}

fn classifier(folder: &Folder) -> Result<Estimator> {
    let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.path()).build()?;
    model.train(rows([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0]))?;
    Ok(model)
}

/// TF: loss, `average_loss` and `prediction/mean` are NaN there too. Its areas are those of NaN as
/// some probability (0.25 for these rows), which is no area of anything: here they are NaN.
#[test]
fn nan_features_are_metrics_of_nan_and_a_warning_that_names_them() -> Result<()> {
    let folder = Folder::new();
    let model = classifier(&folder)?;
    let (metrics, lines) = logged(|| model.evaluate(rows([0.0, 1.0, NAN, NAN], [0.0, 1.0, 1.0, 0.0])));
    let metrics = metrics?;
    for key in ["loss", "average_loss", "prediction/mean", "auc", "auc_precision_recall"] {
        assert!(metrics[key].is_nan(), "{key} of {metrics:?}");
    }
    assert_eq!(metrics["label/mean"], 0.5);
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{lines:#?}");
    for part in ["the loss of batch 2 is NaN", "feature `x` is NaN in row 0", "filter"] {
        assert!(warnings[0].contains(part), "{part:?} in {warnings:?}");
    }
    // Nothing is said of rows that are right, and the next evaluation is whole again.
    let (metrics, lines) = logged(|| model.evaluate(rows([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0])));
    assert_eq!(metrics?["auc"], 1.0);
    assert!(!lines.iter().any(|line| line.starts_with("WARN")), "{lines:#?}");
    Ok(())
}

#[test]
fn labels_and_weights_are_named_too() -> Result<()> {
    let folder = Folder::new();
    let regressor = LinearRegressor::new([numeric_column("x").into()]).weight_column("w");
    let model = regressor.model_dir(folder.path()).build()?;
    let x = [0.0, 1.0, 2.0, 3.0];
    model.train(rows(x, [0.0, 1.0, 2.0, 3.0]))?;
    let said = |data: Dataset| {
        let (metrics, lines) = logged(|| model.evaluate(data));
        assert!(!metrics.unwrap()["loss"].is_finite());
        lines.into_iter().filter(|line| line.starts_with("WARN")).collect::<Vec<_>>().join("\n")
    };
    let text = said(rows(x, [0.0, NAN, 2.0, 3.0]));
    assert!(text.contains("label `y` is NaN in row 1"), "{text}");
    let text = said(rows(x, [0.0, 1.0, 2.0, f32::NEG_INFINITY]));
    assert!(text.contains("the loss of batch 2 is inf") && text.contains("label `y` is -inf in row 1"), "{text}");
    let heavy = [("x", Array::from(x)), ("w", Array::from([1f32, NAN, 1.0, 1.0])), ("y", Array::from(x))];
    let text = said(Dataset::from_arrays(heavy).label("y").batch(4));
    assert!(text.contains("feature `w` is NaN in row 1"), "{text}");
    Ok(())
}

/// The error of a NaN loss names the number of the batch that caused it, if there is one.
#[test]
fn a_training_that_ends_with_nan_says_why() -> Result<()> {
    let train = |data: Dataset, rate: f64| {
        let folder = Folder::new();
        let model = LinearRegressor::new([numeric_column("x").into()]).optimizer(Optimizer::new(Sgd::default(), rate));
        model.model_dir(folder.path()).build().unwrap().train(data).unwrap_err().to_string()
    };
    let x = [0.0, 1.0, 2.0, 3.0];
    let text = train(rows([0.0, 1.0, 2.0, NAN], x), 0.1);
    let cause = "the loss of step 2 is NaN: feature `x` is NaN in row 1 of the batch\n";
    assert!(text.starts_with(cause) && text.contains("help: fill such rows in the input (map)"), "{text}");
    let text = train(rows(x, [NAN, 1.0, 2.0, 3.0]), 0.1);
    assert!(text.starts_with("the loss of step 1 is NaN: label `y` is NaN in row 0 of the batch\n"), "{text}");
    // Infinity is a number of the input that is not finite too.
    let text = train(rows([f32::INFINITY, 1.0, 2.0, 3.0], x), 0.1);
    assert!(text.starts_with("the loss of step 1 is NaN: feature `x` is inf in row 0 of the batch\n"), "{text}");
    // Here only the rate is to blame.
    let text = train(rows(x, x).repeat(100), 1e30);
    assert!(text.contains("is NaN, but all features and labels of the batch are finite: the model diverged"), "{text}");
    assert!(text.contains("help: lower the learning rate, or clip gradients"), "{text}");
    Ok(())
}

/// A row whose weight is 0 counts nowhere: not in the area of a slice that it is not in, either.
#[test]
fn a_slice_without_the_row_has_an_area() -> Result<()> {
    let folder = Folder::new();
    let model = LinearClassifier::new([numeric_column("x").into()]).slice_by("group", ["good", "bad"]);
    let model = model.model_dir(folder.path()).build()?;
    let rows = |x: [f32; 4]| {
        let group = Array::from_strings([4], ["good", "good", "bad", "bad"]).unwrap();
        let y = Array::from([0i64, 1, 0, 1]);
        Dataset::from_arrays([("x", Array::from(x)), ("group", group), ("y", y)]).label("y").batch(4)
    };
    model.train(rows([0.0, 1.0, 0.0, 1.0]).repeat(20))?;
    let metrics = model.evaluate(rows([0.0, 1.0, NAN, 1.0]))?;
    assert_eq!((metrics["auc/group=good"], metrics["auc_precision_recall/group=good"]), (1.0, 1.0));
    for key in ["auc", "auc/group=bad", "auc_precision_recall/group=bad"] {
        assert!(metrics[key].is_nan(), "{key} of {metrics:?}");
    }
    Ok(())
}
