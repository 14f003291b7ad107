//! `model_to_estimator`.

use std::path::PathBuf;

use estimand::export::Receiver;
use estimand::graph::saved_model::SavedModel;
use estimand::keras::{Compile, Functional, Input, Model, Sequential, model_to_estimator};
use estimand::nn::Concat;
use estimand::prelude::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("estimand-keras-estimator-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn numbers(dims: &[usize], f: impl Fn(usize) -> f32) -> Array {
    Array::from_vec(dims, (0..dims.iter().product()).map(f).collect()).unwrap()
}

/// Two inputs, two outputs, with weights that depend on the seed.
fn two() -> Model {
    let (a, b) = (Input::new([3]).name("a").tensor(), Input::new([2]).name("b").tensor());
    let both = Dense::new(4).tanh().on(&Concat::new().on(&[&a, &b]));
    let (score, kind) = (Dense::new(1).name("score").on(&both), Dense::new(2).softmax().name("kind").on(&both));
    let mut model = Model::new(&[&a, &b], &[&score, &kind]).unwrap().seed(7).unwrap();
    let compile = Compile::new("rmsprop", "mse")
        .loss_of("kind", "sparse_categorical_crossentropy")
        .metric_of("score", "mae")
        .metric_of("kind", "accuracy");
    model.compile(compile).unwrap();
    model
}

fn rows() -> Dataset {
    let a = numbers(&[12, 3], |i| (i % 7) as f32 / 7.0);
    let b = numbers(&[12, 2], |i| (i % 5) as f32 / 5.0);
    let kinds = Array::from_vec([12], (0..12).map(|i| i64::from(i % 3 == 0)).collect()).unwrap();
    let score = numbers(&[12], |i| i as f32 / 12.0);
    Dataset::from_arrays([("a", a), ("b", b), ("score", score), ("kind", kinds)]).label("score").label("kind")
}

/// Case 126 of the specification.
#[test]
fn it_predicts_like_the_model_before_training() {
    let mut model = two();
    let expected = model.predict_all(rows().batch(5)).unwrap();
    let weights = model.get_weights().unwrap();
    let folder = folder("predict");
    let estimator = model_to_estimator(model).unwrap().model_dir(&folder).build().unwrap();
    let data = rows().batch(5);
    let found: Vec<_> = estimator.predict(&data).collect::<Result<_>>().unwrap();
    assert_eq!(found.len(), 12);
    for (i, row) in found.iter().enumerate() {
        assert_eq!(row.keys().collect::<Vec<_>>(), ["score", "kind"]);
        assert_eq!(row.f32("score").unwrap(), &expected[0].as_slice::<f32>().unwrap()[i..=i]);
        assert_eq!(row.f32("kind").unwrap(), &expected[1].as_slice::<f32>().unwrap()[2 * i..][..2]);
    }
    let before = estimator.evaluate(&data).unwrap();
    for key in ["loss", "score_loss", "kind_loss", "score_mae", "kind_accuracy"] {
        before.get(key).unwrap();
    }
    estimator.train(rows().repeat(30).batch(6)).unwrap();
    let after = estimator.evaluate(&data).unwrap();
    assert!(after["loss"] < before["loss"], "{after:?} {before:?}");
    assert_eq!(after.global_step(), 60);
    assert_ne!(estimator.variable_value("dense/kernel").unwrap(), weights[0]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The Estimator's steps are those of the legacy optimizer, which differ from those of `fit`.
#[test]
fn it_trains_with_the_legacy_optimizer() {
    let make = || {
        let mut model = Sequential::new().input([1]).add(Dense::new(1).use_bias(false)).build().unwrap();
        model.set_weights(&[numbers(&[1, 1], |_| 1.0)]).unwrap();
        let adagrad = Optimizer::keras(Adagrad::default().epsilon(1.0).initial_accumulator(0.5), 0.1);
        model.compile(Compile::new(adagrad, "mse")).unwrap();
        model
    };
    let rows = [("dense_input", Array::from([1f32])), ("y", Array::from([3f32]))];
    let data = Dataset::from_arrays(rows).label("y").batch(1);
    let mut fitted = make();
    fitted.fit(&data).unwrap();
    // The gradient is 2 * (1 - 3) = -4, the accumulator 16.5. Newer: sqrt(16.5 + 1), legacy:
    // sqrt(16.5) + 1.
    let newer = 1.0 + 0.1 * 4.0 / 17.5f32.sqrt();
    assert!((fitted.get_weights().unwrap()[0].item::<f32>().unwrap() - newer).abs() < 1e-6);
    let estimator = model_to_estimator(make()).unwrap().build().unwrap();
    estimator.train(&data).unwrap();
    let legacy = 1.0 + 0.1 * 4.0 / (16.5f32.sqrt() + 1.0);
    assert!((estimator.variable_value("dense/kernel").unwrap().item::<f32>().unwrap() - legacy).abs() < 1e-6);
}

#[test]
fn train_and_evaluate_and_exports_work() {
    let folder = folder("export");
    let estimator = model_to_estimator(two()).unwrap().model_dir(&folder).build().unwrap();
    let (train, test) = (rows().repeat(20).batch(6), rows().batch(6));
    estimator.train_and_evaluate(TrainSpec::new(&train).max_steps(30), EvalSpec::new(&test)).unwrap();
    assert!(folder.join("eval").exists());
    let features = Dataset::from_arrays([("a", numbers(&[2, 3], |i| i as f32)), ("b", numbers(&[2, 2], |i| i as f32))]);
    let features = features.batch(2);
    let receiver = Receiver::like(&features).unwrap();
    let export = estimator.export_saved_model(folder.join("export"), receiver).unwrap();
    let signature = SavedModel::open(&export).unwrap().signature("serving_default").unwrap();
    let inputs = [("a", numbers(&[2, 3], |i| i as f32)), ("b", numbers(&[2, 2], |i| i as f32))];
    let served = signature.run(&inputs).unwrap();
    let rows: Vec<_> = estimator.predict(&features).collect::<Result<_>>().unwrap();
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row.f32("score").unwrap(), &served["score"].as_slice::<f32>().unwrap()[i..=i]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn mistakes_are_named() {
    let model = Sequential::new().input([1]).add(Dense::new(1)).build().unwrap();
    let error = model_to_estimator(model).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("has not been compiled"), "{error}");
    let mut model = Sequential::new().input([1]).add(Dense::new(1)).build().unwrap();
    model.compile(Compile::new(Optimizer::keras(Sgd::default(), 0.1).weight_decay(0.1), "mse")).unwrap();
    let error = model_to_estimator(model).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`weight_decay`, which those of Estimators do not have"), "{error}");
    let estimator = model_to_estimator(two()).unwrap().build().unwrap();
    let rows = Dataset::from_arrays([("a", numbers(&[2, 3], |_| 0.0)), ("c", numbers(&[2, 2], |_| 0.0))]);
    let error = estimator.predict(rows.batch(2)).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("input `b` of the model has no feature in the data, which has a, c"), "{error}");
}
