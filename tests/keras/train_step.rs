//! Training steps of one's own.

use estimand::graph::Minimize;
use estimand::keras::{Compile, Fit, Input, Model, Sequential, TrainStep, Trained};
use estimand::prelude::*;

fn numbers(dims: &[usize], f: impl Fn(usize) -> f32) -> Array {
    Array::from_vec(dims, (0..dims.iter().product()).map(f).collect()).unwrap()
}

/// A step that is written out does what the compiled one does, bit for bit.
#[test]
fn a_step_written_out_equals_the_compiled_one() {
    let make = || {
        let layers = Sequential::new().input([3]).add(Dense::new(4).tanh()).add(BatchNorm::new()).add(Dense::new(1));
        let mut model = layers.build().unwrap();
        model.compile(Compile::new(Optimizer::keras(Adam::default(), 0.01), "mse")).unwrap();
        model
    };
    let (x, y) = (numbers(&[20, 3], |i| (i % 7) as f32 / 7.0), numbers(&[20, 1], |i| i as f32 / 20.0));
    let fit = || Fit::new((&x, &y)).batch_size(8).epochs(3).verbose(0);
    let (mut plain, mut own) = (make(), make());
    own.set_train_step(|step: &TrainStep<'_>| {
        let predictions = step.call(step.inputs())?;
        let loss = (&predictions[0] - &step.labels()[0]).square().mean();
        Ok(Trained::new(&step.optimizer().minimize(&loss)).log("loss", &loss))
    });
    let (a, b) = (plain.fit(fit()).unwrap(), own.fit(fit()).unwrap());
    for (a, b) in a["loss"].iter().zip(&b["loss"]) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    for (a, b) in plain.get_weights().unwrap().iter().zip(own.get_weights().unwrap()) {
        let apart = a.as_slice::<f32>().unwrap().iter().zip(b.as_slice::<f32>().unwrap()).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-6);
    }
    own.set_learning_rate(0.0).unwrap();
    let before = own.get_weights().unwrap();
    own.train_on_batch((&x, &y)).unwrap();
    assert_eq!(own.get_weights().unwrap()[0], before[0]);
}

/// Two optimizers, each for the weights of one inner model.
fn gan() -> Model {
    let noise = Input::new([2]).name("noise").tensor();
    let generator = Sequential::new().name("generator").input([2]).add(Dense::new(8).relu()).add(Dense::new(1));
    let judge = Sequential::new().name("discriminator").input([1]).add(Dense::new(8).relu()).add(Dense::new(1));
    let made = generator.build().unwrap().on(&noise);
    let mut model = Model::new(&noise, &judge.build().unwrap().on(&made)).unwrap();
    model.compile(Compile::new("adam", "mse")).unwrap();
    model
}

#[test]
fn optimizers_train_parts_of_a_model() {
    let mut model = gan();
    model.set_train_step(|step: &TrainStep<'_>| {
        let fake = step.layer("generator", &step.inputs()[0])?;
        let judged = step.layer("discriminator", &fake)?;
        let loss = judged.mean();
        let variables = step.variables("generator")?;
        let sgd = Optimizer::new(Sgd::default(), 0.1);
        Ok(Trained::new(&sgd.minimize(Minimize::new(&loss).variables(&variables))).log("g_loss", &loss))
    });
    let weights = |model: &Model, layer: &str| model.get_layer(layer).unwrap().get_weights().unwrap();
    let (generator, judge) = (weights(&model, "generator"), weights(&model, "discriminator"));
    // There are no labels.
    let history = model.fit(Fit::new(numbers(&[12, 2], |i| i as f32 / 12.0)).batch_size(4).verbose(0)).unwrap();
    assert_eq!(history.keys().collect::<Vec<_>>(), ["g_loss"]);
    assert_ne!(weights(&model, "generator"), generator);
    assert_eq!(weights(&model, "discriminator"), judge);
}

#[test]
fn mistakes_are_named() {
    let noise = numbers(&[4, 2], |i| i as f32);
    let mut model = gan();
    model.set_train_step(|step: &TrainStep<'_>| {
        let fake = step.layer("genrator", &step.inputs()[0])?;
        Ok(Trained::new(&step.optimizer().minimize(&fake.mean())))
    });
    let error = model.fit(Fit::new(&noise).verbose(0)).unwrap_err().to_string();
    assert!(error.contains("in the train_step of model `model`"), "{error}");
    assert!(error.contains("did you mean `generator`?"), "{error}");
    model.set_train_step(|step: &TrainStep<'_>| {
        let made = step.call(step.inputs())?;
        Ok(Trained::new(&step.optimizer().minimize(&made[0].mean())).log("all", &made[0]))
    });
    let error = model.fit(Fit::new(&noise).verbose(0)).unwrap_err().to_string();
    assert!(error.contains("`all` is logged and is f32[batch, 1]; expected one f32"), "{error}");
    model.set_train_step(|step: &TrainStep<'_>| step.variables("generator").map(|v| Trained::new(&v[0])));
    let error = model.fit(Fit::new(&noise).verbose(0)).unwrap_err().to_string();
    assert!(error.contains("layer `generator` has no weights yet"), "{error}");
}
