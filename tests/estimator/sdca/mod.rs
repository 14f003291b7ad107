//! `LinearSdca`: here its optima and its gap; `tensorflow.rs` has its steps and folders,
//! `life_cycle.rs` its state, logs and exports, `mistakes.rs` its errors.

mod life_cycle;
mod mistakes;
mod tensorflow;

use std::path::Path;

use estimand::head::PoissonRegressionHead;
use estimand::prelude::*;
use estimand::premade::{LinearEstimator, LinearSdca, SdcaLoss, SdcaProgress};
use estimand_fixture::{Case, cases_of};

use crate::fixture::array;
use crate::models::Folder;

const GAP: f64 = 1e-6;
const WEIGHTS: [&str; 3] =
    ["linear/linear_model/bin/weights", "linear/linear_model/x/weights", "linear/linear_model/bias_weights"];

/// The rows of a case with one of its labels, and ids.
fn rows(case: &Case, label: &str) -> Dataset {
    let n = case.array("x").dims[0];
    rows_with(case, label, Array::from_strings([n], (0..n).map(|i| format!("row {i}"))).unwrap())
}

fn rows_with(case: &Case, label: &str, ids: Array) -> Dataset {
    let feature = |name: &'static str| (name, array(&case.array(name)));
    let label = array(&case.array(label));
    Dataset::from_arrays([("id", ids), feature("x"), feature("bin"), feature("weight"), ("y", label)]).label("y")
}

fn columns(case: &Case) -> Columns {
    let width = case.array("x").dims[1];
    let bins = categorical_column_with_identity("bin", case.setting("n_bins"));
    columns![numeric_column("x").shape([width]), bins]
}

/// A linear model for a loss.
fn model(case: &Case, loss: SdcaLoss, sdca: &LinearSdca, weighted: bool, folder: &Path) -> Result<Estimator> {
    let config = RunConfig::new().tf_random_seed(3);
    match loss {
        SdcaLoss::Squared => {
            let model = LinearRegressor::new(columns(case)).optimizer(sdca).config(config).model_dir(folder);
            if weighted { model.weight_column("weight").build() } else { model.build() }
        }
        SdcaLoss::Poisson => {
            let head = PoissonRegressionHead::new();
            let head = if weighted { head.weight_column("weight") } else { head };
            LinearEstimator::new(head, columns(case)).optimizer(sdca).config(config).model_dir(folder).build()
        }
        SdcaLoss::Logistic | SdcaLoss::Hinge | SdcaLoss::SmoothHinge => {
            let model = LinearClassifier::new(columns(case)).optimizer(sdca).config(config).model_dir(folder);
            if weighted { model.weight_column("weight").build() } else { model.build() }
        }
    }
}

fn label_of(loss: SdcaLoss) -> &'static str {
    match loss {
        SdcaLoss::Squared => "number",
        SdcaLoss::Poisson => "count",
        SdcaLoss::Logistic | SdcaLoss::Hinge | SdcaLoss::SmoothHinge => "class",
    }
}

fn loss_named(name: &str) -> SdcaLoss {
    match name {
        "logistic_loss" => SdcaLoss::Logistic,
        "squared_loss" => SdcaLoss::Squared,
        "hinge_loss" => SdcaLoss::Hinge,
        "poisson_loss" => SdcaLoss::Poisson,
        other => panic!("{other}"),
    }
}

/// Trains with all rows in each step until the gap is small.
fn train_to_gap(model: &Estimator, sdca: &LinearSdca, data: &Dataset, n: usize) -> Result<SdcaProgress> {
    let batches = data.repeat_forever().batch(n);
    for _ in 0..40 {
        model.train(TrainSpec::new(&batches).steps(500))?;
        if sdca.progress().unwrap().duality_gap < GAP {
            break;
        }
    }
    Ok(sdca.progress().unwrap())
}

fn weights(model: &Estimator, name: &str) -> Result<Vec<f64>> {
    model.variable_value(name)?.to_f64_vec()
}

/// The sum of the losses and the regularization, from the weights of the model.
fn objective(case: &Case, model: &Estimator, loss: SdcaLoss, weighted: bool, l1: f64, l2: f64) -> Result<f64> {
    let (x, bins, y) = (case.numbers::<f64>("x"), case.numbers::<usize>("bin"), case.numbers::<f64>(label_of(loss)));
    let of_rows = case.numbers::<f64>("weight");
    let [bin, number, bias] = WEIGHTS.map(|name| weights(model, name).unwrap());
    let mut sum = 0.0;
    for (i, row) in x.chunks(number.len()).enumerate() {
        let z = row.iter().zip(&number).map(|(x, w)| x * w).sum::<f64>() + bin[bins[i]] + bias[0];
        let s = 2.0 * y[i] - 1.0;
        let loss = match loss {
            SdcaLoss::Logistic => (-z.abs()).exp().ln_1p() + z.max(0.0) - y[i] * z,
            SdcaLoss::Squared => (z - y[i]) * (z - y[i]) / 2.0,
            SdcaLoss::Hinge => (1.0 - s * z).max(0.0),
            SdcaLoss::Poisson => z.exp() - y[i] * z,
            SdcaLoss::SmoothHinge => panic!("scikit-learn has no such loss"),
        };
        sum += if weighted { of_rows[i] * loss } else { loss };
    }
    let all = [bin, number, bias].concat();
    let (absolute, squares) = (all.iter().map(|w| w.abs()).sum::<f64>(), all.iter().map(|w| w * w).sum::<f64>());
    Ok(sum + l1 * absolute + l2 / 2.0 * squares)
}

/// liblinear for logistic and hinge losses, Ridge, ElasticNet, SAGA and PoissonRegressor for the
/// others.
#[test]
fn optima_are_those_of_scikit_learn() -> Result<()> {
    let data = cases_of("sdca", "data");
    let optima = cases_of("sdca", "optimum");
    assert_eq!((data.len(), optima.len()), (3, 30));
    for optimum in &optima {
        let case =
            data.iter().find(|case| case.setting::<String>("name") == optimum.setting::<String>("data")).unwrap();
        let (l1, l2, weighted) = (optimum.setting("l1"), optimum.setting("l2"), optimum.setting("weighted"));
        let loss = loss_named(&optimum.setting::<String>("loss"));
        let sdca = LinearSdca::new("id").symmetric_l1_regularization(l1).symmetric_l2_regularization(l2).loss(loss);
        let folder = Folder::new();
        let model = model(case, loss, &sdca, weighted, folder.path())?;
        let n = case.array("x").dims[0];
        let progress = train_to_gap(&model, &sdca, &rows(case, label_of(loss)), n)?;
        assert!(progress.duality_gap < GAP && progress.duality_gap > -1e-9, "{optimum}: {progress:?}");
        assert_eq!(progress.examples_seen, n);
        let (ours, theirs) = (objective(case, &model, loss, weighted, l1, l2)?, optimum.setting::<f64>("objective"));
        assert!((ours - theirs).abs() <= 1e-4 * theirs.abs(), "{optimum}: {ours} instead of {theirs}");
        // The gap bounds the distance to the minimum, which scikit-learn is not below.
        let total = if weighted { case.numbers::<f64>("weight").iter().sum() } else { n as f64 };
        assert!(ours - theirs <= GAP * total + 1e-6 * theirs.abs(), "{optimum}: {ours} instead of {theirs}");
        assert!(
            (progress.primal_objective * total - ours).abs() <= 1e-5 * ours.abs(),
            "{optimum}: {progress:?}, {ours}"
        );
    }
    Ok(())
}

/// Problems without an oracle: the gap is the proof.
#[test]
fn every_loss_closes_the_gap() -> Result<()> {
    let mut n_zeros = 0;
    for case in &cases_of("sdca", "data") {
        let n = case.array("x").dims[0];
        let all = [SdcaLoss::Logistic, SdcaLoss::Squared, SdcaLoss::Hinge, SdcaLoss::SmoothHinge, SdcaLoss::Poisson];
        for loss in all {
            for adaptive in [false, true] {
                let sdca =
                    LinearSdca::new("id").loss(loss).symmetric_l1_regularization(1.0).symmetric_l2_regularization(5.0);
                let sdca = if adaptive { sdca.adaptive() } else { sdca };
                let folder = Folder::new();
                let model = model(case, loss, &sdca, adaptive, folder.path())?;
                let progress = train_to_gap(&model, &sdca, &rows(case, label_of(loss)), n)?;
                assert!(progress.duality_gap < GAP, "{case}, {loss:?}, adaptive: {adaptive}, {progress:?}");
                let weights = WEIGHTS.map(|name| weights(&model, name).unwrap()).concat();
                assert!(weights.iter().any(|w| *w != 0.0), "{loss:?}: {weights:?}");
                n_zeros += weights.iter().filter(|w| **w == 0.0).count();
            }
        }
    }
    assert!(n_zeros > 0, "L1 regularization has made no weight 0");
    Ok(())
}

/// Batches of some rows, careful steps, a table in parts, and ids as integers lead to the same
/// model.
#[test]
fn all_ways_lead_to_one_model() -> Result<()> {
    let case = &cases_of("sdca", "data")[0];
    let n = case.array("x").dims[0];
    let data = rows(case, "class");
    let trained = |sdca: LinearSdca, data: Dataset, batch: usize| -> Result<Vec<f64>> {
        let folder = Folder::new();
        let model = model(case, SdcaLoss::Logistic, &sdca, false, folder.path())?;
        model.train(TrainSpec::new(data.repeat_forever().batch(batch)).steps((300 * n / batch) as u64))?;
        assert!(sdca.progress().unwrap().duality_gap.abs() < 1e-5, "{:?}", sdca.progress());
        Ok(WEIGHTS.map(|name| weights(&model, name).unwrap()).concat())
    };
    let sdca = || LinearSdca::new("id").symmetric_l2_regularization(5.0);
    let whole = trained(sdca(), data.clone(), n)?;
    let numbered = rows_with(case, "class", Array::from((0..n as i64).collect::<Vec<_>>()));
    let others = [
        trained(sdca(), data.clone(), 17)?,
        trained(sdca().num_loss_partitions(2), data.clone(), n)?,
        trained(sdca().num_table_shards(5), data.shuffle(n, 3), 40)?,
        trained(sdca(), numbered, n)?,
    ];
    for other in others {
        for (one, two) in whole.iter().zip(&other) {
            assert!((one - two).abs() < 2e-3, "{whole:?} {other:?}");
        }
    }
    Ok(())
}
