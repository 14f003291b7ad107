//! Features that pass through to predictions, metrics of slices, and batches with their own
//! weights.

use estimand::head::{MultiHead, SequentialHeadWrapper};
use estimand::nn::AbsoluteError;
use estimand::nn::metric;
use estimand::prelude::*;

use super::rows::{Rows, assert_metrics, column, estimator, evaluate, predict};
use crate::models::Folder;

fn people() -> Rows {
    let sex = Array::from_strings([4], ["f", "m", "f", "x"]).unwrap();
    Rows::new(column([1.0, -1.0, -1.0, 2.0]), [1i64, 0, 1, 0])
        .feature("sex", sex)
        .feature("age", [[30i64], [40], [30], [50]].concat())
        .feature("id", Array::from_strings([4], ["a", "b", "c", "d"]).unwrap())
}

#[test]
fn features_pass_through() -> Result<()> {
    let found = predict(BinaryClassHead::new().forward_feature("id").forward_feature("age"), &people())?;
    assert_eq!(*found.array("id")?, Array::from_strings([4], ["a", "b", "c", "d"])?);
    assert_eq!(*found.array("age")?, Array::from([30i64, 40, 30, 50]));
    // Row by row as well.
    let folder = Folder::new();
    let model = estimator(MultiClassHead::new(2).forward_feature("id"), &folder);
    let data = Rows { logits: super::rows::rows([[1.0, 0.0]; 4]), ..people() }.data().batch(3);
    let ids: Vec<Array> = model.predict(&data).map(|row| Ok(row?.array("id")?.clone())).collect::<Result<_>>()?;
    assert_eq!(ids[3], Array::from_strings([], ["d"])?);
    // What is evaluated on need not have it.
    let mut without = people();
    without.features.retain(|(name, _)| *name != "id");
    assert!(evaluate(BinaryClassHead::new().forward_feature("id"), &without, 4).is_ok());
    Ok(())
}

/// Women: logits 1 and -1, labels 1 and 1. Men: logit -1, label 0. Nobody is called `z`.
#[test]
fn metrics_of_slices() -> Result<()> {
    let head = BinaryClassHead::new().slice_by("sex", ["f", "m", "z"]).slice_by("age", [30, 50]).name("hd");
    for batch in [4, 1] {
        let metrics = evaluate(head.clone(), &people(), batch)?;
        assert_metrics(
            &metrics,
            &[
                ("accuracy/hd", 0.5),
                ("accuracy/hd/sex=f", 0.5),
                ("recall/hd/sex=f", 0.5),
                ("label/mean/hd/sex=f", 1.0),
                // ln(1 + e^-1) and one more.
                ("average_loss/hd/sex=f", 0.8132617),
                ("accuracy/hd/sex=m", 1.0),
                ("average_loss/hd/sex=m", 0.3132617),
                ("accuracy/hd/sex=z", 0.0),
                ("accuracy/hd/age=30", 0.5),
                ("accuracy/hd/age=50", 0.0),
            ],
        );
        assert_eq!(metrics.iter().len(), 1 + 9 * 6);
    }
    Ok(())
}

#[test]
fn slices_and_weights_multiply() -> Result<()> {
    let data = people().feature("w", [3.0f32, 1.0, 1.0, 1.0]);
    let metrics = evaluate(RegressionHead::new().weight_column("w").slice_by("sex", ["f"]), &data, 4)?;
    // (3 * 0 + 1 * 4) / 4 of the women.
    assert_metrics(&metrics, &[("average_loss/sex=f", 1.0), ("label/mean/sex=f", 1.0), ("prediction/mean/sex=f", 0.5)]);
    Ok(())
}

/// Weights of the batch itself count, and multiply with those of a feature.
#[test]
fn batches_with_weights() -> Result<()> {
    let data =
        Rows::new(column([1.0, 2.0]), [0.0f32, 0.0]).feature("own", [1.0f32, 3.0]).feature("w", [[2i64], [1]].concat());
    let folder = Folder::new();
    let weighed = data.data().weights("own").batch(2);
    let metrics = estimator(RegressionHead::new(), &folder).evaluate(&weighed)?;
    // (1 * 1 + 3 * 4) / 2 and / 4
    assert_metrics(&metrics, &[("loss", 6.5), ("average_loss", 3.25)]);
    let metrics = estimator(RegressionHead::new().weight_column("w"), &folder).evaluate(&weighed)?;
    // (2 * 1 + 3 * 4) / 2 and / 5
    assert_metrics(&metrics, &[("loss", 7.0), ("average_loss", 2.8)]);
    Ok(())
}

/// Absolute errors 1 and 3, of which the feature takes a tenth.
#[test]
fn losses_of_ones_own() -> Result<()> {
    let data = Rows::new(column([1.0, 3.0]), [0.0f32, 0.0]).feature("cost", [[0.1f32], [0.1]].concat());
    let head = RegressionHead::new().loss_fn(|cx| {
        let cost = cx.batch.features().dense("cost").expand_dims(-1);
        AbsoluteError::new().elements(cx.labels, cx.logits) * cost
    });
    assert_metrics(&evaluate(head, &data, 2)?, &[("loss", 0.2), ("average_loss", 0.2)]);
    // The link is for predictions; the loss sees logits.
    let head = RegressionHead::new().inverse_link_fn(|logits| logits * 10.0);
    assert_metrics(&evaluate(head.clone(), &data, 2)?, &[("loss", 5.0), ("prediction/mean", 20.0)]);
    let found = predict(head, &data)?;
    assert_eq!(found.f32("predictions")?, [10.0, 30.0]);
    assert_eq!(found.f32("logits")?, [1.0, 3.0]);
    Ok(())
}

/// Slices of a head are its own, those of several heads are everybody's; features pass through
/// once.
#[test]
fn several_heads_report() -> Result<()> {
    let mut data = people();
    data.logits = super::rows::rows([[1.0, 1.0], [-1.0, 0.0], [-1.0, 0.0], [2.0, 2.0]]);
    data.labels = vec![("a", data.labels[0].1.clone()), ("b", Array::from([1.0f32, 0.0, 1.0, 0.0]))];
    let both = MultiHead::new()
        .head(BinaryClassHead::new().name("a").slice_by("age", [30]).forward_feature("id"))
        .head(RegressionHead::new().name("b").forward_feature("id"))
        .slice_by("sex", ["f"]);
    let metrics = evaluate(both.clone(), &data, 4)?;
    assert_metrics(
        &metrics,
        &[
            ("accuracy/a/age=30", 0.5),
            ("accuracy/a/sex=f", 0.5),
            ("average_loss/b/sex=f", 0.5),
            ("label/mean/b/sex=f", 1.0),
            ("average_loss/b", 1.25),
        ],
    );
    assert_eq!(metrics.iter().len(), 1 + 2 + 9 * 3 + 3 * 2);
    let found = predict(both, &data)?;
    assert_eq!(*found.array("id")?, Array::from_strings([4], ["a", "b", "c", "d"])?);
    assert_eq!(found.keys().len(), 7 + 1 + 1);
    Ok(())
}

/// Two sequences of two and one steps; logits 1, -1 and 2 with labels 1, 1 and 0, and weights of
/// rows and of steps.
#[test]
fn sequences() -> Result<()> {
    let logits = Array::from_vec([2, 2, 1], vec![1.0f32, -1.0, 2.0, 9.0])?;
    let data = Rows::new(logits, Array::from_vec([2, 2], vec![1.0f32, 1.0, 0.0, 5.0])?)
        .feature("mask", Array::from_vec([2, 2], vec![true, true, true, false])?)
        .feature("w", Array::from_vec([2, 2], vec![1.0f32, 1.0, 0.5, 7.0])?)
        .feature("row", [3i64, 4])
        .feature("own", [3.0f32, 4.0]);
    let head = |head: RegressionHead| SequentialHeadWrapper::new(head).sequence_length_mask("mask");
    let metrics = evaluate(head(RegressionHead::new().slice_by("row", [3, 4])), &data, 2)?;
    // (0 + 4 + 4) / 3, and row by row
    assert_metrics(
        &metrics,
        &[("loss", 8.0 / 3.0), ("label/mean", 2.0 / 3.0), ("average_loss/row=3", 2.0), ("average_loss/row=4", 4.0)],
    );
    let metrics = evaluate(head(RegressionHead::new().weight_column("w")), &data, 2)?;
    // (0 + 4 + 2) / 3 and / 2.5
    assert_metrics(&metrics, &[("loss", 2.0), ("average_loss", 2.4)]);
    let found = predict(head(RegressionHead::new()), &data)?;
    assert_eq!(found.array("predictions")?.dims(), [2, 2, 1]);
    assert_eq!(found.array("mask")?.dims(), [2, 2]);
    // Rows with weights of their own.
    let folder = Folder::new();
    let weighed = data.data().weights("own").batch(2);
    let metrics = estimator(head(RegressionHead::new()), &folder).evaluate(&weighed)?;
    // (3 * 0 + 3 * 4 + 4 * 4) / 10
    assert_metrics(&metrics, &[("average_loss", 2.8)]);
    // Integers weigh as well.
    let weighed = data.data().weights("row").batch(2);
    let metrics = estimator(head(RegressionHead::new()), &folder).evaluate(&weighed)?;
    assert_metrics(&metrics, &[("average_loss", 2.8)]);
    Ok(())
}

#[test]
fn metrics_that_are_added() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(BinaryClassHead::new(), &folder).add_metrics(|cx| {
        let id = cx.prediction("class_ids")?;
        let age = cx.features().dense("age");
        Ok(vec![
            ("positives", metric::mean(id, None)),
            ("age", metric::mean(&age, cx.weights())),
            // Takes the place of the head's own.
            ("accuracy", metric::mean(&cx.label().zeros_like().cast(DType::F32), None)),
        ])
    });
    let data = people().data().batch(3);
    let metrics = model.evaluate(&data)?;
    assert_metrics(&metrics, &[("positives", 0.5), ("age", 37.5), ("accuracy", 0.0), ("recall", 0.5)]);
    assert!(model.predict(&data).next().is_some());
    let model = estimator(BinaryClassHead::new(), &folder)
        .add_metrics(|cx| Ok(vec![("x", metric::mean(cx.prediction("class_id")?, None))]));
    let error = model.evaluate(&data).unwrap_err().to_string();
    assert!(error.contains("no prediction `class_id`") && error.contains("did you mean `class_ids`?"), "{error}");
    Ok(())
}
