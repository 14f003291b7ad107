//! Errors of heads for invalid configurations, labels and weights.

use estimand::graph::Axes;
use estimand::head::{LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead, SequentialHeadWrapper};
use estimand::nn::Reduction;
use estimand::prelude::*;

use super::rows::{Rows, column, estimator, evaluate, predict, rows};
use crate::models::Folder;

#[track_caller]
fn says<T: std::fmt::Debug>(found: Result<T>, texts: &[&str]) {
    let error = found.unwrap_err().to_string();
    for text in texts {
        assert!(error.contains(text), "`{text}` is not in:\n{error}");
    }
}

fn two() -> Rows {
    Rows::new(column([0.0, 1.0]), [0i64, 1])
}

#[test]
fn configurations() {
    let wrong = |head: BinaryClassHead, texts: &[&str]| {
        says(head.check(), texts);
        says(evaluate(head.clone(), &two(), 2), texts);
        // Also where nothing would be computed with it.
        says(predict(head, &two()), texts);
    };
    for t in [0.0, 1.0, -0.5, f64::NAN] {
        wrong(BinaryClassHead::new().thresholds([0.5, t]), &[&format!("a threshold is {t}")]);
    }
    wrong(BinaryClassHead::new().loss_reduction(Reduction::None), &["Reduction::None", "SumOverBatchSize"]);
    wrong(BinaryClassHead::new().label_vocabulary(["a"]), &["1 terms for 2 classes"]);
    wrong(BinaryClassHead::new().label_vocabulary(["a", "a"]), &["in the label vocabulary", "the same term, \"a\""]);
    wrong(BinaryClassHead::new().class_weights([1.0]), &["1 class weights for 2 classes"]);
    wrong(BinaryClassHead::new().class_weights([1.0, -1.0]), &["a class weight is -1"]);
    wrong(BinaryClassHead::new().name(""), &["the name of the head is empty"]);
    wrong(
        BinaryClassHead::new().slice_by("sex", [0i64; 0]),
        &["sliced by `sex`, but no value of it is given", ".slice_by("],
    );
    says(MultiClassHead::new(1).check(), &["1 classes", "at least 2"]);
    says(MultiClassHead::new(4).label_vocabulary(["a", "b", "c"]).check(), &["3 terms for 4 classes"]);
    says(RegressionHead::new().label_dimension(0).check(), &["the label dimension is 0"]);
    says(MultiLabelHead::new(1).check(), &["1 classes"]);
    says(MultiLabelHead::new(2).thresholds([1.5]).check(), &["a threshold is 1.5"]);
    says(MultiLabelHead::new(2).metrics_of_classes([2]).check(), &["class `2`; expected 0 to 1"]);
    says(MultiLabelHead::new(2).metrics_of_classes(["a"]).check(), &["no label vocabulary", ".label_vocabulary("]);
    let animals = MultiLabelHead::new(2).label_vocabulary(["cat", "dog"]);
    says(
        animals.metrics_of_classes(["dogs"]).check(),
        &["`dogs`, which is not in the label vocabulary", "did you mean `dog`?"],
    );
    says(PoissonRegressionHead::new().loss_reduction(Reduction::None).check(), &["Reduction::None"]);
}

#[test]
fn several_heads() {
    let binary = || BinaryClassHead::new();
    says(MultiHead::new().check(), &["the MultiHead has no heads", ".head("]);
    says(MultiHead::new().head(binary()).check(), &["has no name", ".name("]);
    says(MultiHead::new().head(binary().name("a")).head(binary().name("a")).check(), &["two heads are named `a`"]);
    says(MultiHead::new().weighted_head(f64::NAN, binary().name("a")).check(), &["the weight of head `a` is NaN"]);
    says(MultiHead::new().head(binary().name("a").thresholds([2.0])).check(), &["in head `a`", "a threshold is 2"]);
    let both = || MultiHead::new().head(binary().name("label")).head(binary().name("other"));
    let wide = Rows::new(rows([[0.0, 1.0], [1.0, 0.0]]), [0i64, 1]);
    says(evaluate(both(), &wide, 2), &["there is no label `other`", "by the name of the head", "in head `other`"]);
    says(evaluate(both(), &two(), 2), &["expected f32[batch, 2]"]);
}

#[test]
fn sequences() {
    let steps = |mask: Option<Array>| {
        let logits = Array::from_vec([2, 2, 1], vec![0.0f32, 1.0, 2.0, 3.0]).unwrap();
        let data = Rows::new(logits, Array::from_vec([2, 2], vec![0i64, 1, 1, 0]).unwrap());
        mask.map_or(Rows { ..Rows::new(data.logits.clone(), data.labels[0].1.clone()) }, |mask| {
            data.feature("mask", mask)
        })
    };
    let head = || SequentialHeadWrapper::new(BinaryClassHead::new().weight_column("w")).sequence_length_mask("mask");
    says(evaluate(head(), &steps(None), 2), &["there is no feature `mask`"]);
    says(evaluate(head(), &steps(Some(Array::from([true, false]))), 2), &["expected [batch, steps]"]);
    let mask = || Array::from_vec([2, 2], vec![true, true, true, false]).unwrap();
    says(evaluate(head(), &steps(Some(mask())), 2), &["there is no feature of steps `w`"]);
    let flat = Rows::new(column([0.0, 1.0]), [0i64, 1]).feature("mask", mask());
    says(evaluate(head(), &flat, 2), &["expected [batch, steps, ...]"]);
}

#[test]
fn logits() {
    says(evaluate(MultiClassHead::new(3), &two(), 2), &["f32[batch, 1]", "expected f32[batch, 3]", "Dense::new(3)"]);
    let list = Rows::new(Array::from([1.0f32, 2.0]), [0i64, 1]);
    says(predict(RegressionHead::new().name("price"), &list), &["in head `price`", "expected f32[batch, 1]"]);
}

#[test]
fn labels() {
    let mut none = two();
    none.labels.clear();
    says(evaluate(BinaryClassHead::new(), &none, 2), &["no labels", ".label(name)"]);
    let mut both = two();
    both.labels.push(("other", Array::from([1i64, 1])));
    says(evaluate(BinaryClassHead::new(), &both, 2), &["labels label, other", "MultiHead"]);
    let wide = Rows::new(column([0.0, 1.0]), Array::from_vec([2, 3], vec![0i64; 6]).unwrap());
    says(evaluate(BinaryClassHead::new(), &wide, 2), &["[batch, 3]", "expected [batch, 1]"]);
    let list = Rows::new(rows([[0.0, 1.0], [2.0, 3.0]]), [0.0f32, 1.0]);
    says(evaluate(RegressionHead::new().label_dimension(2), &list, 2), &["expected [batch, 2]"]);
    let words = || Rows::new(column([0.0, 1.0]), Array::from_strings([2], ["yes", "no"]).unwrap());
    says(evaluate(BinaryClassHead::new(), &words(), 2), &["labels are strings", ".label_vocabulary("]);
    says(evaluate(RegressionHead::new(), &words(), 2), &["labels are strings"]);
    says(evaluate(BinaryClassHead::new().label_vocabulary(["a", "b"]), &two(), 2), &["the label vocabulary holds str"]);
    says(evaluate(BinaryClassHead::new().label_vocabulary([1, 2]), &words(), 2), &["the label vocabulary holds i64"]);
    let several = Rows::new(rows([[0.0, 1.0], [1.0, 0.0]]), [0.5f32, 1.0]);
    says(evaluate(MultiLabelHead::new(2), &several, 2), &["expected [batch, 2]"]);
    let fractions = Rows::new(rows([[0.0, 1.0, 2.0]]), [0.5f32]);
    says(evaluate(MultiClassHead::new(3), &fractions, 1), &["expected class numbers", ".label_vocabulary("]);
}

/// What only the run can tell: the value and the row.
#[test]
fn labels_that_are_fed() {
    let classes = |labels: [i64; 3]| Rows::new(rows([[0.0, 1.0, 2.0]; 3]), labels);
    says(evaluate(MultiClassHead::new(3), &classes([0, 3, 1]), 3), &["label 3 in row 1"]);
    says(evaluate(MultiClassHead::new(3), &classes([0, 1, -1]), 3), &["label -1 in row 2"]);
    let head = MultiClassHead::new(3).loss_fn(|cx| cx.logits.mean_axes(Axes::of([-1]).keep_dims()));
    says(evaluate(head, &classes([0, 3, 1]), 3), &["the label in row 1 is 3; expected 0 to 2"]);
    let head = MultiClassHead::new(3).class_weights([1.0; 3]);
    says(evaluate(head, &classes([0, 1, 3]), 3), &["the label in row 2 is 3; expected 0 to 2"]);
    says(evaluate(MultiClassHead::new(3).label_vocabulary([5, 7, 9]), &classes([5, 9, 8]), 3), &["label `8` in row 2"]);
    let words = Rows::new(rows([[0.0, 1.0, 2.0]; 2]), Array::from_strings([2], ["setosa", "virginia"]).unwrap());
    let head = MultiClassHead::new(3).label_vocabulary(["setosa", "versicolor", "virginica"]);
    says(evaluate(head, &words, 2), &["label `virginia` in row 1", "did you mean `virginica`?"]);
    let hot = Rows::new(rows([[0.0, 1.0]]), Array::from_vec([1, 2], vec![1i64, 2]).unwrap());
    says(evaluate(MultiLabelHead::new(2), &hot, 1), &["the label in row 0, column 1 is 2; expected 0 to 1"]);
    let animals = Rows::new(rows([[0.0, 1.0]; 2]), Array::from_strings([2, 2], ["cat", "", "dog", "cow"]).unwrap());
    let head = MultiLabelHead::new(2).label_vocabulary(["cat", "dog"]);
    says(evaluate(head, &animals, 2), &["label `cow` in row 1 is not in the vocabulary"]);
    let counts = Rows::new(column([0.0, 1.0]), [3i64, -1]);
    says(evaluate(PoissonRegressionHead::new(), &counts, 2), &["the label in row 1 is -1; expected 0 or more"]);
    says(evaluate(LogisticRegressionHead::new(), &counts, 2), &["the label in row 0 is 3; expected 0 to 1"]);
    let nan = Rows::new(column([0.0, 1.0]), [0.0f32, f32::NAN]);
    says(evaluate(BinaryClassHead::new(), &nan, 2), &["the label in row 1 is NaN"]);
}

#[test]
fn weights() {
    let head = || BinaryClassHead::new().weight_column("weight");
    says(evaluate(head(), &two().feature("weights", [1.0f32, 1.0]), 2), &["`weight`", "did you mean `weights`?"]);
    let words = Array::from_strings([2], ["1", "2"]).unwrap();
    says(evaluate(head(), &two().feature("weight", words), 2), &["weights `weight` are str", "expected numbers"]);
    let pairs = || Array::from_vec([2, 2], vec![1.0f32; 4]).unwrap();
    says(evaluate(head(), &two().feature("weight", pairs()), 2), &["[batch, 2]", "one weight for each example"]);
    let own = two().feature("own", Array::from_strings([2], ["1", "2"]).unwrap());
    let folder = Folder::new();
    let data = own.data().weights("own").batch(2);
    says(
        estimator(BinaryClassHead::new(), &folder).evaluate(&data),
        &["weights of the rows are string", "expected numbers"],
    );
    // Only regression weighs logits one by one.
    let twice = |head: RegressionHead| {
        let data = Rows::new(rows([[1.0, 2.0], [3.0, 4.0]]), pairs()).feature("weight", pairs());
        evaluate(head.label_dimension(2).weight_column("weight"), &data, 2)
    };
    assert!(twice(RegressionHead::new()).is_ok());
}

#[test]
fn loss_functions() {
    let mean = BinaryClassHead::new().loss_fn(|cx| cx.logits.sigmoid_cross_entropy(cx.labels).mean());
    says(
        evaluate(mean, &two(), 2),
        &["the loss function returned `head/Mean` f32[]", "expected [batch, 1]", "no mean or sum"],
    );
    let unknown = BinaryClassHead::new().loss_fn(|cx| cx.batch.features().dense("costs"));
    says(evaluate(unknown, &two().feature("cost", [1.0f32, 2.0]), 2), &["`costs`", "did you mean `cost`?"]);
}

#[test]
fn reporting() {
    says(
        predict(RegressionHead::new().forward_feature("ids"), &two().feature("id", [7i64, 8])),
        &["did you mean `id`?"],
    );
    let taken = two().feature("predictions", [7i64, 8]);
    says(predict(RegressionHead::new().forward_feature("predictions"), &taken), &["the name of a prediction"]);
    let sliced = || RegressionHead::new().slice_by("sex", ["f", "m"]);
    says(evaluate(sliced(), &two(), 2), &["sliced by `sex`", "no feature `sex`"]);
    says(evaluate(sliced(), &two().feature("sex", [1i64, 2]), 2), &["the value `f` does not fit a feature of i64"]);
}
