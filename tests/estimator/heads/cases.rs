//! The test cases of TensorFlow's heads, numbered as in the inventory of its behaviour.

use estimand::graph::Graph;
use estimand::head::{LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead};
use estimand::nn::Reduction;
use estimand::nn::metric;
use estimand::nn::testing::metric_value;
use estimand::prelude::*;

use super::rows::{Rows, assert_metrics, column, evaluate, predict, rows, with_regularization};
use crate::models::Folder;

fn five() -> Rows {
    Rows::new(column([-1.0, 0.0, 0.5, 2.0, -0.3]), [0i64, 1, 0, 1, 1])
}

/// Case 49: the loss of the first is 0 and that of the second 41; the first is found, the second is
/// not.
#[test]
fn case_49_binary_classes() -> Result<()> {
    let metrics = evaluate(BinaryClassHead::new(), &Rows::new(column([45.0, -41.0]), [1i64, 1]), 2)?;
    assert_metrics(
        &metrics,
        &[
            ("loss", 20.5),
            ("average_loss", 20.5),
            ("accuracy", 0.5),
            ("accuracy_baseline", 1.0),
            ("auc", 0.0),
            ("auc_precision_recall", 1.0),
            ("precision", 1.0),
            ("recall", 0.5),
            ("prediction/mean", 0.5),
            ("label/mean", 1.0),
        ],
    );
    assert_eq!(metrics.iter().len(), 10);
    Ok(())
}

#[test]
fn case_50_binary_classes_that_overlap() -> Result<()> {
    let expected = [
        ("loss", 0.5923539),
        ("accuracy", 0.4),
        ("accuracy_baseline", 0.6),
        ("auc", 2.0 / 3.0),
        ("auc_precision_recall", 0.7689510),
        ("precision", 0.5),
        ("recall", 1.0 / 3.0),
        ("prediction/mean", 0.5395511),
    ];
    assert_metrics(&evaluate(BinaryClassHead::new(), &five(), 5)?, &expected);
    // Metrics do not depend on batches.
    assert_metrics(&evaluate(BinaryClassHead::new(), &five(), 2)?, &expected[1..]);
    Ok(())
}

#[test]
fn case_51_weights() -> Result<()> {
    let weighed = five().feature("w", [1.0f32, 2.0, 0.0, 1.0, 0.5]);
    let head = || BinaryClassHead::new().weight_column("w");
    let metrics = [
        ("average_loss", 0.5008137),
        ("accuracy", 4.0 / 9.0),
        ("label/mean", 7.0 / 9.0),
        ("auc", 1.0),
        ("recall", 0.2857143),
    ];
    let found = evaluate(head(), &weighed, 5)?;
    assert_metrics(&found, &metrics);
    assert_metrics(&found, &[("loss", 0.4507323)]);
    let found = evaluate(head().loss_reduction(Reduction::Sum), &weighed, 5)?;
    assert_metrics(&found, &metrics);
    assert_metrics(&found, &[("loss", 2.2536616)]);
    Ok(())
}

#[test]
fn case_52_thresholds_and_a_name() -> Result<()> {
    let head = BinaryClassHead::new().thresholds([0.25, 0.5, 0.9]).name("hd");
    let metrics = evaluate(head, &five(), 5)?;
    assert_metrics(
        &metrics,
        &[
            ("recall/positive_threshold_0.25/hd", 1.0),
            ("precision/positive_threshold_0.9/hd", 0.0),
            ("accuracy/hd", 0.4),
            ("prediction/mean/hd", 0.5395511),
        ],
    );
    assert!(metrics.iter().all(|(key, _)| key == "loss" || key.ends_with("/hd")), "{metrics}");
    assert_eq!(metrics.iter().len(), 1 + 9 + 3 * 3);
    Ok(())
}

#[test]
fn case_53_a_tie_is_the_first_class() -> Result<()> {
    let found = predict(BinaryClassHead::new(), &Rows::new(column([0.0]), [0i64]))?;
    assert_eq!(*found.array("class_ids")?, Array::from_vec([1, 1], vec![0i64])?);
    assert_eq!(*found.array("classes")?, Array::from_strings([1, 1], ["0"])?);
    assert_eq!(*found.array("probabilities")?, Array::from_vec([1, 2], vec![0.5f32, 0.5])?);
    assert_eq!(*found.array("logistic")?, Array::from_vec([1, 1], vec![0.5f32])?);
    assert_eq!(*found.array("all_class_ids")?, Array::from_vec([1, 2], vec![0i32, 1])?);
    assert_eq!(*found.array("all_classes")?, Array::from_strings([1, 2], ["0", "1"])?);
    let keys: Vec<&str> = found.keys().collect();
    let expected = ["logits", "logistic", "probabilities", "class_ids", "classes", "all_class_ids", "all_classes"];
    assert_eq!(keys, expected);
    Ok(())
}

/// Case 54: 0.5923539 + 1 + 0.5, whatever the reduction.
#[test]
fn case_54_regularization() -> Result<()> {
    for (reduction, loss) in [(Reduction::SumOverBatchSize, 2.0923538), (Reduction::Sum, 5.0 * 0.5923539 + 1.5)] {
        let folder = Folder::new();
        let head = BinaryClassHead::new().loss_reduction(reduction).name("hd");
        let metrics = with_regularization(head, &[1.0, 0.5], &folder).evaluate(five().data().batch(5))?;
        assert_metrics(&metrics, &[("loss", loss), ("regularization_loss/hd", 1.5), ("average_loss/hd", 0.5923539)]);
    }
    Ok(())
}

#[test]
fn case_55_labels_out_of_range() -> Result<()> {
    let error = |labels: [i64; 2]| {
        let found = evaluate(BinaryClassHead::new(), &Rows::new(column([0.0, 0.0]), labels), 2);
        found.unwrap_err().to_string()
    };
    assert!(error([0, 2]).contains("the label in row 1 is 2; expected 0 to 1"), "{}", error([0, 2]));
    assert!(error([-1, 1]).contains("the label in row 0 is -1"), "{}", error([-1, 1]));
    let words = Rows::new(column([0.0, 0.0]), Array::from_strings([2], ["no", "maybe"])?);
    let unknown = evaluate(BinaryClassHead::new().label_vocabulary(["no", "yes"]), &words, 2).unwrap_err().to_string();
    assert!(unknown.contains("label `maybe` in row 1 is not in the vocabulary"), "{unknown}");
    // A fraction is a probability: -ln(0.5).
    let half = evaluate(BinaryClassHead::new(), &Rows::new(column([0.0]), [0.5f32]), 1)?;
    assert_metrics(&half, &[("loss", std::f64::consts::LN_2)]);
    Ok(())
}

/// Losses of ln 2 for both rows, of which those of class 1 count four times; with weights of rows,
/// 1 * 1 * 2 + 4 * 1 * 3.
#[test]
fn weights_of_classes() -> Result<()> {
    let ln2 = std::f64::consts::LN_2;
    let data = || Rows::new(column([0.0, 0.0]), [0i64, 1]).feature("w", [2.0f32, 3.0]);
    let head = || BinaryClassHead::new().class_weights([1.0, 4.0]);
    assert_metrics(&evaluate(head(), &data(), 2)?, &[("loss", 2.5 * ln2), ("average_loss", ln2), ("label/mean", 0.5)]);
    assert_metrics(&evaluate(head().weight_column("w"), &data(), 2)?, &[("loss", 7.0 * ln2), ("average_loss", ln2)]);
    let half = Rows::new(column([0.0]), [0.5f32]);
    assert_metrics(&evaluate(head(), &half, 1)?, &[("loss", 2.5 * ln2)]);
    let ln3 = 3.0f64.ln();
    let data = Rows::new(rows([[0.0, 0.0, 0.0]; 3]), Array::from_strings([3], ["c", "a", "c"])?);
    let head = MultiClassHead::new(3).label_vocabulary(["a", "b", "c"]).class_weights([1.0, 100.0, 0.5]);
    let metrics = evaluate(head.loss_reduction(Reduction::Mean), &data, 3)?;
    // The mean with any weights of losses that are all the same.
    assert_metrics(&metrics, &[("loss", ln3), ("average_loss", ln3)]);
    let sum = MultiClassHead::new(3).class_weights([1.0, 100.0, 0.5]).loss_reduction(Reduction::Sum);
    assert_metrics(&evaluate(sum, &Rows::new(rows([[0.0; 3]; 3]), [2i64, 0, 2]), 3)?, &[("loss", 2.0 * ln3)]);
    Ok(())
}

/// Case 56: the first row costs 10 + ln(1 + 2 e^-10), the second ln(1 + 2 e^-10).
#[test]
fn case_56_several_classes() -> Result<()> {
    let data = Rows::new(rows([[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]]), [1i64, 1]);
    let metrics = evaluate(MultiClassHead::new(3), &data, 2)?;
    assert_metrics(&metrics, &[("loss", 5.0000906), ("accuracy", 0.5), ("average_loss", 5.0000906)]);
    assert_eq!(metrics.iter().len(), 3);
    let found = predict(MultiClassHead::new(3).label_vocabulary(["a", "b", "c"]), &data)?;
    assert_eq!(*found.array("classes")?, Array::from_strings([2, 1], ["a", "b"])?);
    assert_eq!(*found.array("all_classes")?, Array::from_strings([2, 3], ["a", "b", "c", "a", "b", "c"])?);
    assert_eq!(*found.array("class_ids")?, Array::from_vec([2, 1], vec![0i64, 1])?);
    Ok(())
}

#[test]
fn case_57_several_labels() -> Result<()> {
    let labels = Array::from_vec([2, 2], vec![1i64, 0, 1, 1])?;
    let data = Rows::new(rows([[-1.0, 1.0], [-1.5, 1.5]]), labels);
    let head = MultiLabelHead::new(2).thresholds([0.5]).metrics_of_classes([0, 1]);
    let metrics = evaluate(head, &data, 2)?;
    assert_metrics(
        &metrics,
        &[
            ("loss", 1.1323376),
            ("average_loss", 1.1323376),
            ("auc", 1.0 / 3.0),
            ("auc_precision_recall", 0.7689509),
            ("auc/class0", 0.0),
            ("auc/class1", 1.0),
            ("accuracy/positive_threshold_0.5", 0.25),
            ("precision/positive_threshold_0.5", 0.5),
            ("recall/positive_threshold_0.5", 1.0 / 3.0),
        ],
    );
    assert_eq!(metrics.iter().len(), 1 + 3 + 3 + 2 * 3);
    let named = MultiLabelHead::new(2).label_vocabulary(["cat", "dog"]).metrics_of_classes(["dog"]).name("hd");
    let metrics = evaluate(named.clone(), &data, 2)?;
    // (sigmoid(1) + sigmoid(1.5)) / 2
    assert_metrics(&metrics, &[("auc/dog/hd", 1.0), ("probability_mean/dog/hd", 0.7743165)]);
    let found = predict(named, &data)?;
    assert_eq!(*found.array("classes")?, Array::from_strings([2, 2], ["cat", "dog", "cat", "dog"])?);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["logits", "probabilities", "classes"]);
    Ok(())
}

/// Case 58: (2^2 + 3^2) / 2; with weights (4 + 4.5) / 2 and (4 + 4.5) / 1.5.
#[test]
fn case_58_regression() -> Result<()> {
    let data = || Rows::new(column([45.0, 41.0]), [43i64, 44]);
    let metrics = evaluate(RegressionHead::new(), &data(), 2)?;
    assert_metrics(&metrics, &[("loss", 6.5), ("label/mean", 43.5), ("prediction/mean", 43.0), ("average_loss", 6.5)]);
    assert_eq!(metrics.iter().len(), 4);
    let weighed = data().feature("w", [1.0f32, 0.5]);
    let metrics = evaluate(RegressionHead::new().weight_column("w"), &weighed, 2)?;
    assert_metrics(&metrics, &[("loss", 4.25), ("average_loss", 5.6666667)]);
    Ok(())
}

/// Case 59: (1 + 4 + 9) / 3.
#[test]
fn case_59_several_numbers() -> Result<()> {
    let data = Rows::new(rows([[1.0, 2.0, 3.0]]), Array::from_vec([1, 3], vec![0.0f32; 3])?);
    let head = || RegressionHead::new().label_dimension(3);
    assert_metrics(&evaluate(head(), &data, 1)?, &[("loss", 14.0 / 3.0)]);
    assert_metrics(&evaluate(head().loss_reduction(Reduction::Sum), &data, 1)?, &[("loss", 14.0)]);
    Ok(())
}

/// Case 60: exp(l) - z l, and Stirling's formula for 2 and 3.
#[test]
fn case_60_counts() -> Result<()> {
    let data = Rows::new(column([0.0, -1.0, 1.0]), [1i64, 2, 3]);
    assert_metrics(&evaluate(PoissonRegressionHead::new(), &data, 3)?, &[("loss", 1.8340163), ("label/mean", 2.0)]);
    let short = PoissonRegressionHead::new().compute_full_loss(false);
    assert_metrics(&evaluate(short, &data, 3)?, &[("loss", 1.0287204)]);
    let found = predict(PoissonRegressionHead::new(), &data)?;
    for (found, expected) in found.array("predictions")?.to_f64_vec()?.into_iter().zip([1.0, 0.3678795, 2.7182817]) {
        assert!((found - expected).abs() < 1e-6, "{found}");
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), ["predictions", "logits"]);
    Ok(())
}

#[test]
fn case_61_probabilities_as_labels() -> Result<()> {
    let data = Rows::new(column([0.0, -1.0, 1.0]), [0.4f32, 0.6, 0.8]);
    let metrics = evaluate(LogisticRegressionHead::new(), &data, 3)?;
    assert_metrics(&metrics, &[("loss", 0.7065568), ("label/mean", 0.6), ("prediction/mean", 0.5)]);
    assert_eq!(metrics.iter().len(), 4);
    Ok(())
}

/// Case 62: the first head costs (10 + (15 + 0) / 2) / 2, the second (20 + 30 / 3) / 2, both and
/// what rounds them up.
#[test]
fn case_62_several_heads() -> Result<()> {
    let mut data = Rows::new(
        rows([[-10.0, 10.0, 20.0, -20.0, 20.0], [-15.0, 10.0, -30.0, 20.0, -20.0]]),
        Array::from_vec([2, 2], vec![1i64, 0, 1, 1])?,
    );
    data.labels[0].0 = "head1";
    data.labels.push(("head2", Array::from_vec([2, 3], vec![0i64, 1, 0, 1, 1, 0])?));
    let both = MultiHead::new()
        .head(MultiLabelHead::new(2).name("head1"))
        .weighted_head(2.0, MultiLabelHead::new(3).name("head2"));
    assert_eq!(Head::name(&both).as_deref(), Some("head1_head2"));
    let metrics = evaluate(both.clone(), &data, 2)?;
    assert_metrics(
        &metrics,
        &[
            ("loss", 38.750034),
            ("loss/head1", 8.750034),
            ("loss/head2", 15.0),
            ("average_loss/head1", 8.750034),
            ("average_loss/head2", 15.0),
        ],
    );
    assert_eq!(metrics.iter().len(), 1 + 2 + 2 * 3);
    let found = predict(both, &data)?;
    assert_eq!(*found.array("head2/logits")?, rows([[20.0, -20.0, 20.0], [-30.0, 20.0, -20.0]]));
    assert_eq!(found.keys().len(), 6);
    Ok(())
}

fn areas(labels: &[i64], probabilities: &[f32]) -> Result<(f64, f64)> {
    let g = Graph::new();
    let (labels, p) = (g.constant(labels.to_vec()), g.constant(probabilities.to_vec()));
    let value = |metric| metric_value(&metric, &[vec![]]);
    Ok((value(metric::auc(&labels, &p, None))?, value(metric::auc_precision_recall(&labels, &p, None))?))
}

#[test]
fn cases_63_to_65_areas_under_curves() -> Result<()> {
    let close = |found: (f64, f64), expected: (f64, f64)| {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(found.0, expected.0) && near(found.1, expected.1), "{found:?} is not {expected:?}");
    };
    close(areas(&[0, 0, 1, 1], &[0.1, 0.4, 0.35, 0.8])?, (0.75, 0.7972674));
    close(areas(&[1, 1, 1], &[0.2, 0.5, 0.9])?, (0.0, 1.0));
    close(areas(&[0, 1, 0, 1], &[0.5; 4])?, (0.5, 0.5));
    // Between the same two thresholds, and not.
    assert_eq!(areas(&[0, 1], &[0.5001, 0.5002])?.0, 0.5);
    assert_eq!(areas(&[0, 1], &[0.501, 0.506])?.0, 1.0);
    Ok(())
}

/// Case 66: `loss` is the mean over batches of 3, 3 and 2 rows, `average_loss` that over rows.
#[test]
fn case_66_uneven_batches() -> Result<()> {
    let logits = column([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
    let metrics = evaluate(BinaryClassHead::new(), &Rows::new(logits, [0i64, 1, 1, 1, 1, 1, 0, 1]), 3)?;
    // A 1 costs ln(1 + e^-0.5) = 0.4740770, a 0 half more.
    let (one, zero) = (0.47407698, 0.97407698);
    let batches: f64 = (zero + 2.0 * one) / 3.0 + one + (zero + one) / 2.0;
    assert_metrics(&metrics, &[("average_loss", (2.0 * zero + 6.0 * one) / 8.0), ("loss", batches / 3.0)]);
    assert!((metrics["loss"] - metrics["average_loss"]).abs() > 0.01);
    Ok(())
}

#[test]
fn case_67_a_predictor_that_is_constant() -> Result<()> {
    let data = Rows::new(column([1.0; 8]), [1i64, 1, 0, 1, 1, 0, 1, 1]);
    assert_metrics(&evaluate(BinaryClassHead::new(), &data, 3)?, &[("auc", 0.5), ("auc_precision_recall", 0.75)]);
    Ok(())
}

/// Case 68: 1 * 1 + 0 * 2 + 2 * 3 + 1 * 4 = 11, over a sum of weights of 4, over 4 elements, over 3
/// weights that are not 0.
#[test]
fn case_68_reductions_of_the_first_version() -> Result<()> {
    // The loss function returns the labels themselves.
    let data = || Rows::new(column([0.0; 4]), [1.0f32, 2.0, 3.0, 4.0]).feature("w", [1.0f32, 0.0, 2.0, 1.0]);
    for (reduction, loss) in [
        (Reduction::Sum, 11.0),
        (Reduction::Mean, 2.75),
        (Reduction::SumOverBatchSize, 2.75),
        (Reduction::SumByNonzeroWeights, 11.0 / 3.0),
    ] {
        let head = RegressionHead::new().weight_column("w").loss_reduction(reduction).loss_fn(|cx| cx.labels.clone());
        assert_metrics(&evaluate(head, &data(), 4)?, &[("loss", loss), ("average_loss", 2.75)]);
    }
    Ok(())
}
