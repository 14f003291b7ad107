//! Losses, metrics and optimizers that one side has not.

use estimand::keras::{Compile, Fit, LoadModel, LossChoice, MetricChoice, SaveModel, load_model, load_model_with};
use estimand::nn::config::{Described, Fields};
use estimand::nn::loss::Reduction;
use estimand::nn::metric::{MeanAbsoluteError, Metric, MetricValue};
use estimand::prelude::*;

use crate::{Folder, all, file, objects, rows, small, words};

/// What Estimand has not leaves the model loaded and not compiled; the file is followed if that is
/// asked for.
#[test]
fn unknown_objects_are_named() -> Result<()> {
    let mut n = 0;
    for case in all().iter().filter(|case| !case.setting::<bool>("goes_on")) {
        let unknown = case.name();
        let mut model = load_model(file(case), &objects())?;
        assert_eq!(model.predict(Array::from_vec([1, 2], vec![1f32, 2.0])?)?.dims(), [1, 1]);
        let data = || (Array::from_vec([1, 2], vec![1f32, 2.0]).unwrap(), Array::from_vec([1, 1], vec![1f32]).unwrap());
        let (x, y) = data();
        let expected = ["has not been compiled", "its file could not compile it", unknown, "call model.compile"];
        words(model.train_on_batch((&x, &y)).map(drop), &expected);
        words(model.fit(Fit::new((&x, &y)).verbose(0)).map(drop), &expected);
        let path = file(case);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        words(load_model_with(&path, &objects(), LoadModel::new().compile(true)).map(drop), &[unknown, &name]);
        let mut other = load_model_with(&path, &objects(), LoadModel::new().compile(false))?;
        let error = other.train_on_batch((&x, &y)).unwrap_err().to_string();
        assert!(!error.contains(unknown), "{error}");
        // The objects of the user are found by their names.
        let with = objects().loss::<OwnLoss>().metric::<OwnMetric>();
        let mut compiled = load_model_with(&path, &with, LoadModel::new().compile(true))?;
        assert_eq!(compiled.n_steps(), 3);
        compiled.train_on_batch((&x, &y))?;
        // A model that was not compiled by its file can be.
        model.compile(Compile::new("sgd", "mse"))?;
        model.train_on_batch((&x, &y))?;
        n += 1;
    }
    assert_eq!(n, 8);
    Ok(())
}

/// The loss of oracles/gen/keras_compiled.py.
#[derive(Clone, Debug)]
struct OwnLoss;

impl Loss for OwnLoss {
    fn name(&self) -> &'static str {
        "own_loss"
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        (labels - predictions).square()
    }

    fn loss_reduction(&self) -> Reduction {
        Reduction::SumOverBatchSize
    }
}

impl Described for OwnLoss {
    const CLASS: &'static str = "own_loss";

    fn template() -> OwnLoss {
        OwnLoss
    }

    fn fields(&self, _: &mut Fields<'_>) -> OwnLoss {
        OwnLoss
    }
}

/// The metric of oracles/gen/keras_compiled.py.
#[derive(Clone, Debug)]
struct OwnMetric;

impl MetricValue for OwnMetric {
    fn name(&self) -> &str {
        "own_metric"
    }

    fn apply(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        MeanAbsoluteError::new().apply(labels, predictions, weights)
    }
}

impl Described for OwnMetric {
    const CLASS: &'static str = "own_metric";

    fn template() -> OwnMetric {
        OwnMetric
    }

    fn fields(&self, _: &mut Fields<'_>) -> OwnMetric {
        OwnMetric
    }
}

/// What Keras has not is left out with a warning, or is an error if it must not be.
#[test]
fn what_keras_has_not_is_not_written() -> Result<()> {
    let folder = Folder::new("not");
    let path = folder.0.join("m.keras");
    let must = SaveModel::new().include_optimizer(true);
    let mut model = small()?;
    words(model.save_with(&path, must), &["has not been compiled"]);
    let adam = || Optimizer::keras(Adam::default(), 0.01);
    let warm_up = Schedule::WarmUp { steps: 3, from: 0.0, then: Box::new(Schedule::Constant(0.1)) };
    let log_loss = estimand::nn::loss::LogLoss::new();
    let sum = MeanSquaredError::new().reduction(Reduction::Sum);
    let cases: Vec<(Compile, &[&str])> = vec![
        (Compile::new(Optimizer::new(Adam::default(), 0.01), "mse"), &["Keras 3 has no legacy optimizer Adam"]),
        (Compile::new(adam().lazy(), "mse"), &["lazy"]),
        (Compile::new(Optimizer::keras(Adam::default(), warm_up), "mse"), &["Keras has no `WarmUp`"]),
        (Compile::new(adam(), log_loss), &["Keras has no `LogLoss`", "output `dense_1`"]),
        (Compile::new(adam(), LossChoice::new(OwnLoss)), &["the loss `own_loss` cannot be written"]),
        (Compile::new(adam(), sum), &["Keras has no reduction `weighted_sum`"]),
        (Compile::new(adam(), "mse").metric("huber"), &["Keras 3 has no metric `huber`"]),
        (Compile::new(adam(), "mse").metric("ce"), &["Keras 3 has no metric `ce`"]),
        (Compile::new(adam(), "mse").metric(MetricChoice::new(OwnMetric)), &["the metric `own_metric` cannot be"]),
        (
            Compile::new(adam().ema(estimand::update::Ema::default()), "mse"),
            &["begins after the first step in Keras 3"],
        ),
    ];
    for (compile, expected) in cases {
        model.compile(compile)?;
        words(model.save_with(&path, must), expected);
        assert!(!path.exists());
        model.save(&path)?;
        let mut loaded = load_model(&path, &objects())?;
        let (x, y) = rows(2);
        words(loaded.test_on_batch((&x, &y)).map(drop), &["has not been compiled"]);
        std::fs::remove_file(&path).unwrap();
    }
    model.compile(Compile::new(adam(), "mse"))?;
    model.save_with(&path, SaveModel::new().include_optimizer(false))?;
    let must = load_model_with(&path, &objects(), LoadModel::new().compile(true));
    words(must.map(drop), &["does not say how its model was compiled"]);
    Ok(())
}
