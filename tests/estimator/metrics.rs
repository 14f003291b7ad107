//! Metrics of `nn` in evaluations.

use estimand::nn::metric;
use estimand::prelude::*;

use crate::models::Folder;

/// A classifier that says what `x` is the largest of, and a confusion matrix beside its metrics:
/// rows are labels, and a weight counts.
#[test]
fn a_confusion_matrix_of_several_batches() -> Result<()> {
    let folder = Folder::new();
    let model = LinearClassifier::new([numeric_column("x").shape([3]).into()]).n_classes(3).weight_column("w");
    let model = model.model_dir(folder.path()).build()?.add_metrics(|cx| {
        let (labels, classes) = (cx.label(), cx.prediction("class_ids")?.squeeze(&[-1]));
        let weights = cx.features().dense("w");
        let thresholds =
            metric::recall_at_thresholds(&labels.equal(0.0), &classes.equal(0.0).cast(DType::F32), &[0.25, 0.5], None);
        Ok(vec![
            ("confusion", metric::confusion_matrix(&labels, &classes, 3, Some(&weights))),
            ("iou", metric::mean_iou(&labels, &classes, 3, Some(&weights))),
            ("recalls", thresholds),
        ])
    });
    let one_hot = |class: usize| (0..3).map(move |i| f32::from(u8::from(i == class)));
    let seen = [0, 1, 2, 2, 1, 0, 2];
    let x = Array::from_vec([7, 3], seen.into_iter().flat_map(one_hot).collect())?;
    let rows = |labels: [i64; 7]| {
        let weights = Array::from([1f32, 1.0, 2.0, 1.0, 1.0, 1.0, 0.5]);
        Dataset::from_arrays([("x", x.clone()), ("w", weights), ("y", Array::from(labels))]).label("y")
    };
    model.train(rows([0, 1, 2, 2, 1, 0, 2]).repeat(30).batch(7))?;
    let metrics = model.evaluate(rows([0, 1, 2, 0, 2, 0, 2]).batch(3))?;
    // Class 0: twice right, once (weight 1) taken for 2. Class 2: weights 2 and 0.5 right, 1 taken
    // for 1.
    assert_eq!(metrics.array("confusion")?.as_slice::<f64>()?, [2.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 2.5]);
    // 2 of 3, 1 of 2, 2.5 of 4.5.
    assert!((metrics["iou"] - (2.0 / 3.0 + 1.0 / 2.0 + 2.5 / 4.5) / 3.0).abs() < 1e-12);
    assert_eq!(metrics.array("recalls")?.as_slice::<f64>()?, [2.0 / 3.0; 2]);
    let shown = metrics.to_string();
    assert!(shown.contains("confusion") && shown.contains("[0"), "{shown}");
    Ok(())
}

/// A name that is none gets the nearest, wherever one is taken.
#[test]
fn the_nearest_metric_is_named() -> Result<()> {
    let folder = Folder::new();
    let rows = Dataset::from_arrays([("x", Array::from([1f32, 2.0])), ("y", Array::from([0i64, 1]))]).label("y");
    let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.path()).build()?;
    let metrics = model.evaluate(rows.batch(2))?;
    let error = metrics.get("acuracy").unwrap_err().to_string();
    assert!(error.contains("no metric `acuracy`") && error.contains("did you mean `accuracy`?"), "{error}");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| metrics["acuracy"])).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("did you mean `accuracy`?"), "{text}");
    assert!(metric::named("meen_iou").unwrap_err().to_string().contains("did you mean `mean_iou`?"));
    Ok(())
}
