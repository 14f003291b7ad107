//! Losses against those of Keras and TensorFlow 1: values and gradients, with weights and every
//! reduction.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, gradients};
use estimand_nn::*;

use crate::fixture::{Case, assert_close, cases, rows};

/// The loss of a case.
fn loss(case: &Case) -> Box<dyn Loss> {
    let reduction = case.reduction();
    match case.settings.setting::<String>("loss").as_str() {
        "hinge_loss" => Box::new(Hinge::new().reduction(reduction)),
        "log_loss" => Box::new(LogLoss::new().reduction(reduction)),
        "squared_hinge" => Box::new(SquaredHinge::new().reduction(reduction)),
        "categorical_hinge" => Box::new(CategoricalHinge::new().reduction(reduction)),
        "kl_divergence" => Box::new(KlDivergence::new().reduction(reduction)),
        "poisson" => Box::new(Poisson::new().reduction(reduction)),
        "cosine_similarity" => Box::new(CosineSimilarity::new().reduction(reduction)),
        "log_cosh" => Box::new(LogCosh::new().reduction(reduction)),
        "mean_absolute_percentage_error" => Box::new(MeanAbsolutePercentageError::new().reduction(reduction)),
        "mean_squared_logarithmic_error" => Box::new(MeanSquaredLogarithmicError::new().reduction(reduction)),
        other => panic!("the fixture has a loss `{other}` that the test does not know"),
    }
}

/// Checks a loss against its case: result and gradient.
pub fn check_loss(case: &Case, loss: &dyn Loss) {
    let g = Graph::new();
    let place = |key: &str| rows(&g, key, case.array(key));
    let (labels, x, coef) = (place("labels"), place("in"), place("coef"));
    let weights = case.find("weights").map(|_| place("weights"));
    let y = match &weights {
        Some(weights) => loss.apply_weighted(&labels, &x, weights),
        None => loss.apply(&labels, &x),
    };
    let gradient = gradients(&(&y * &coef).sum(), &[&x])[0].to_dense(x.shape()).unwrap();
    let mut feeds: Vec<_> = [("labels", &labels), ("in", &x), ("coef", &coef)].to_vec();
    feeds.extend(weights.as_ref().map(|weights| ("weights", weights)));
    let feeds: Vec<_> = feeds.into_iter().map(|(key, place)| (place, case.array(key).clone())).collect();
    let results = Session::new(&g).unwrap().run(&[&y, &gradient], &feeds).unwrap();
    assert_close(&case.settings.to_string(), &results[0], case.array("out"));
    assert_close(&format!("{} gradient", case.settings), &results[1], case.array("grad:in"));
}

#[test]
fn losses_agree_with_keras_and_tensorflow_1() {
    let cases = cases("losses");
    for case in &cases {
        check_loss(case, &*loss(case));
    }
    // With those of layers.jsonl, every loss is there.
    let found: BTreeSet<&str> = cases.iter().map(|case| loss(case).name()).collect();
    let others = ["absolute_difference", "huber_loss", "log_poisson_loss", "mean_squared_error"];
    let missing = |name: &&str| !found.contains(name) && !others.contains(name) && !name.contains("cross_entropy");
    let all: Vec<&str> = ALL_LOSSES.iter().map(|make| make().name()).filter(missing).collect();
    assert!(all.is_empty(), "no fixture for {all:?}");
}
