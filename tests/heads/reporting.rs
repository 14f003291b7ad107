//! Features that pass through to predictions, metrics of slices, batches with weights of their own.

use estimand::prelude::*;

use crate::models::{Folder, Rows, assert_metrics, column, estimator, evaluate, predict};

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
    assert_eq!(found["id"], Array::from_strings([4], ["a", "b", "c", "d"])?);
    assert_eq!(found["age"], Array::from([30i64, 40, 30, 50]));
    // Row by row as well.
    let folder = Folder::new();
    let model = estimator(MultiClassHead::new(2).forward_feature("id"), &folder);
    let data = Rows { logits: crate::models::rows([[1.0, 0.0]; 4]), ..people() }.data().batch(3, false);
    let ids: Vec<Array> = model.predict(&data).map(|row| Ok(row?["id"].clone())).collect::<Result<_>>()?;
    assert_eq!(ids[3], Array::from_strings([], ["d"])?);
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
    let weighed = data.data().weights("own").batch(2, false);
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
    assert_eq!(found["predictions"].as_slice::<f32>()?, [10.0, 30.0]);
    assert_eq!(found["logits"].as_slice::<f32>()?, [1.0, 3.0]);
    Ok(())
}
