//! Summaries of an evaluation beside numbers: metrics that are arrays, and the curve of all its
//! batches.

use estimand::events::{EventWriter, SummaryValue};
use estimand::nn::metric::Metric;
use estimand::prelude::*;

use super::values;
use crate::models::{Folder, line, linear};

/// Predictions x for labels 3 x > 1, a metric of two numbers, and a curve.
fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let spec = linear(cx)?;
    if cx.mode() != Mode::Eval {
        return Ok(spec);
    }
    let x = cx.feature("x");
    cx.summary().pr_curve("curve", &cx.label().greater(1.0), &x, 6, None);
    let both = Metric::new([x.sum(), x.square().sum()], |sums| Tensor::stack(&[&sums[0], &sums[1]], 0));
    Ok(spec.metric("both", both))
}

#[test]
fn arrays_and_the_curve_of_all_batches() -> Result<()> {
    let folder = Folder::new();
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    estimator.train(TrainSpec::new(line(8).batch(4).drop_remainder()))?;
    let metrics = estimator.evaluate(line(8).batch(3))?;
    // The sum of 0, 1/8, ..., 7/8, and of their squares.
    assert_eq!(metrics.array("both")?.to_f64_vec()?, [28.0 / 8.0, 140.0 / 64.0]);
    let error = metrics.get("both").unwrap_err().to_string();
    assert!(error.contains("metric `both` is f64[2], not one number"), "{error}");
    let error = metrics.array("bath").unwrap_err().to_string();
    assert!(error.contains("there is no metric `bath`") && error.contains("`both`"), "{error}");

    let all = values(&estimator.eval_dir(None));
    let tags: Vec<_> = all.iter().map(|(step, value)| (*step, value.tag.as_str())).collect();
    assert_eq!(tags, ["loss", "mae", "both", "curve", "checkpoint_path"].map(|tag| (2, tag)));
    let array = |tag: &str| {
        let (_, value) = all.iter().find(|(_, value)| value.tag == tag).unwrap();
        let Some(SummaryValue::Tensor(tensor)) = &value.value else { panic!("{value:?}") };
        tensor.to_array()
    };
    assert_eq!(&array("both")?, metrics.array("both")?);

    // The same as of all rows at once, whose points TensorBoard's own op has checked.
    let x: Vec<f32> = (0..8).map(|i| i as f32 / 8.0).collect();
    let labels: Vec<bool> = x.iter().map(|x| 3.0 * x > 1.0).collect();
    let at_once = Folder::new();
    EventWriter::create(at_once.path())?.pr_curve(1, "curve", &Array::from(labels), &Array::from(x), 6, None)?;
    assert_eq!(all.iter().find(|(_, value)| value.tag == "curve").unwrap().1, values(at_once.path())[0].1);
    Ok(())
}
