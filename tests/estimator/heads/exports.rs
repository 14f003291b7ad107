//! The outputs of an exported model, by key: section 5.3 of the inventory of TensorFlow's
//! behaviour.

use estimand::ExportOutput;
use estimand::graph::Graph;
use estimand::head::{LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead};
use estimand::prelude::*;

/// Keys with the kind of answer, in order.
fn exports(head: &dyn Head) -> Result<Vec<(String, String)>> {
    let graph = Graph::new();
    let logits = graph.placeholder("logits", DType::F32, [Dim::BATCH, head.logits_dimension().into()]);
    let outputs = head.export_outputs(&head.predictions(&logits)?)?;
    graph.check()?;
    let kind = |output: &ExportOutput| match output {
        ExportOutput::Classification { scores: Some(_), classes: Some(_) } => "classification".to_string(),
        ExportOutput::Classification { .. } => "half a classification".to_string(),
        ExportOutput::Regression { value } => format!("regression {}", value.shape()),
        ExportOutput::Predict(all) => format!("predict {}", all.len()),
    };
    Ok(outputs.iter().map(|(key, output)| (key.clone(), kind(output))).collect())
}

#[test]
fn every_head_answers_as_tensorflow_does() -> Result<()> {
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(key, kind)| (key.to_string(), kind.to_string())).collect()
    };
    let classes =
        |n: &'static str| [("serving_default", "classification"), ("classification", "classification"), ("predict", n)];
    let binary = [&classes("predict 7")[..], &[("regression", "regression [batch, 1]")]].concat();
    assert_eq!(exports(&BinaryClassHead::new())?, pairs(&binary));
    assert_eq!(exports(&MultiClassHead::new(3))?, pairs(&classes("predict 6")));
    assert_eq!(exports(&MultiLabelHead::new(3))?, pairs(&classes("predict 3")));
    let numbers = |n| {
        let value = "regression [batch, 1]";
        pairs(&[("serving_default", value), ("regression", value), ("predict", n)])
    };
    assert_eq!(exports(&RegressionHead::new())?, numbers("predict 1"));
    assert_eq!(exports(&PoissonRegressionHead::new())?, numbers("predict 2"));
    assert_eq!(exports(&LogisticRegressionHead::new())?, numbers("predict 2"));
    let both = MultiHead::new().head(RegressionHead::new().name("a")).head(MultiClassHead::new(3).name("b"));
    let expected = [
        ("serving_default", "regression [batch, 1]"),
        ("a", "regression [batch, 1]"),
        ("a/regression", "regression [batch, 1]"),
        ("a/predict", "predict 1"),
        ("b", "classification"),
        ("b/classification", "classification"),
        ("b/predict", "predict 6"),
        ("predict", "predict 7"),
    ];
    assert_eq!(exports(&both)?, pairs(&expected));
    Ok(())
}
