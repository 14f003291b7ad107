//! Models that are made of the same layers and train the same weights, in turns, against tf.keras:
//! the fixture explains itself in `oracles/gen/keras_shared.py`.

use estimand::keras::{Compile, Fit, Functional, Input, Model, Sequential, SharedLayer};
use estimand::nn::LeakyRelu;
use estimand::nn::loss::SigmoidCrossEntropy;
use estimand::prelude::*;
use estimand_fixture::{Case, cases_of};

fn array(case: &Case, key: &str) -> Array {
    let found = case.array(key);
    Array::from_vec(found.dims.clone(), found.numbers::<f32>()).unwrap()
}

/// All arrays whose keys begin with the name of a model.
fn weights(case: &Case, of: &str) -> Vec<Array> {
    (0..).map(|i| format!("{of}:{i}")).take_while(|key| case.has(key)).map(|key| array(case, &key)).collect()
}

/// The rows of one batch.
fn batch(all: &Array, i: usize) -> Array {
    let (n, row) = (all.dims()[1], all.dims()[2]);
    Array::from_vec([n, row], all.as_slice::<f32>().unwrap()[i * n * row..][..n * row].to_vec()).unwrap()
}

#[track_caller]
fn assert_near(found: &Array, expected: &Array, what: &str) {
    assert_eq!(found.dims(), expected.dims(), "{what}");
    let pairs = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
    let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 2e-5, "{what} is {apart} apart");
}

#[test]
fn a_discriminator_trains_alone_and_inside_of_a_gan() {
    let case = &cases_of("keras_shared", "gan")[0];
    let generator = Sequential::new().name("generator").input([2]).add(Dense::new(4).tanh()).add(Dense::new(3));
    let judge = Sequential::new().name("judge").input([3]).add(Dense::new(4)).add(BatchNorm::new());
    let mut generator = generator.build().unwrap();
    let mut judge = judge.add(LeakyRelu::new(0.2)).add(Dense::new(1)).build().unwrap();
    let loss = || SigmoidCrossEntropy::new();
    judge.compile(Compile::new(Optimizer::keras(Sgd::default().momentum(0.9), 0.1), loss())).unwrap();
    let both = Sequential::new().name("both").input([2]).add_model(&generator).add_model(&judge);
    let mut both = both.build().unwrap();
    both.set_layer_trainable("judge", false).unwrap();
    both.compile(Compile::new(Optimizer::keras(RmsProp::default(), 0.01), loss())).unwrap();
    generator.set_weights(&weights(case, "generator")).unwrap();
    judge.set_weights(&weights(case, "judge")).unwrap();

    let (noise, real, losses) = (array(case, "noise"), array(case, "real"), case.numbers::<f32>("losses"));
    let labels = Array::from_vec([16, 1], (0..16).map(|i| if i < 8 { 1f32 } else { 0.0 }).collect()).unwrap();
    let ones = Array::from_vec([8, 1], vec![1f32; 8]).unwrap();
    for round in 0..5 {
        let (z, x) = (batch(&noise, round), batch(&real, round));
        let made = generator.predict(&z).unwrap();
        let rows = [x.as_slice::<f32>().unwrap(), made.as_slice::<f32>().unwrap()].concat();
        let rows = Array::from_vec([16, 3], rows).unwrap();
        let found = [judge.train_on_batch((&rows, &labels)).unwrap(), both.train_on_batch((&z, &ones)).unwrap()];
        for (found, expected) in found.iter().zip(&losses[round * 2..]) {
            assert!((found["loss"] - f64::from(*expected)).abs() < 1e-5, "round {round}: {found:?}, {expected}");
        }
    }
    for model in [&generator, &judge] {
        let of = format!("last {}", model.name());
        for ((found, expected), name) in
            model.get_weights().unwrap().iter().zip(weights(case, &of)).zip(model.weight_names())
        {
            assert_near(found, &expected, name);
        }
    }
    assert_eq!(both.get_layer("judge").unwrap().get_weights().unwrap(), judge.get_weights().unwrap());
}

#[test]
fn models_of_the_same_values_share_their_layers() {
    let case = &cases_of("keras_shared", "encoder")[0];
    let x = Input::new([4]).tensor();
    let code = Dense::new(2).tanh().name("code").on(&x);
    let mut whole = Model::named("whole", &x, &Dense::new(4).name("decoded").on(&code)).unwrap();
    let mut part = Model::named("part", &x, &code).unwrap();
    whole.compile(Compile::new(Optimizer::keras(Sgd::default(), 0.1), "mse")).unwrap();
    part.compile(Compile::new(Optimizer::keras(Sgd::default().momentum(0.5), 0.2), "mse")).unwrap();
    whole.set_weights(&weights(case, "whole")).unwrap();
    let (rows, codes) = (array(case, "x"), array(case, "codes"));
    let (losses, predicted) = (case.numbers::<f32>("losses"), array(case, "predicted"));
    for round in 0..3 {
        for (i, (model, y)) in [(&mut whole, &rows), (&mut part, &codes)].into_iter().enumerate() {
            let fit = Fit::new((&rows, y)).batch_size(4).epochs(2).shuffle(false).verbose(0);
            let loss = model.fit(fit).unwrap()["loss"][1];
            let expected = f64::from(losses[round * 2 + i]);
            assert!((loss - expected).abs() < 1e-5, "round {round}, model {i}: {loss}, {expected}");
        }
        assert_near(&part.predict(&rows).unwrap(), &batch(&predicted, round), "predictions");
    }
    for (found, expected) in whole.get_weights().unwrap().iter().zip(weights(case, "last whole")) {
        assert_near(found, &expected, "a weight");
    }
}

fn ones(dims: &[usize]) -> Array {
    Array::from_vec(dims, vec![1f32; dims.iter().product()]).unwrap()
}

#[test]
fn a_model_that_is_applied_twice_is_one_layer() {
    let tower = Sequential::new().name("tower").input([2]).add(Dense::new(2)).build().unwrap();
    let (a, b) = (Input::new([2]).tensor(), Input::new([2]).tensor());
    let pair = Model::new(&[&a, &b], &[tower.on(&a), tower.on(&b)]).unwrap();
    assert_eq!(pair.weight_names().collect::<Vec<_>>(), ["tower/dense/kernel", "tower/dense/bias"]);
    assert_eq!(pair.get_weights().unwrap(), tower.get_weights().unwrap());
}

/// A new model does not change the weights that others have, whatever its seed; and the weights
/// outlive the model that trained them.
#[test]
fn weights_belong_to_layers() {
    let x = Input::new([2]).tensor();
    let hidden = Dense::new(3).on(&x);
    let mut first = Model::new(&x, &hidden).unwrap();
    first.compile(Compile::new("sgd", "mse")).unwrap();
    first.fit(Fit::new((&ones(&[4, 2]), &ones(&[4, 3]))).verbose(0)).unwrap();
    let trained = first.get_weights().unwrap();
    let second = Model::new(&x, &Dense::new(1).on(&hidden)).unwrap().seed(5).unwrap();
    assert_eq!(first.get_weights().unwrap(), trained);
    assert_eq!(second.get_weights().unwrap()[..2], trained);
    drop(first);
    let third = Model::new(&x, &hidden).unwrap();
    assert_eq!(third.get_weights().unwrap(), trained);
    // Compiled again, a model keeps what another has learned.
    let (mut second, mut third) = (second, third);
    third.set_weights(&[ones(&[2, 3]), ones(&[3])]).unwrap();
    second.compile(Compile::new("adam", "mse")).unwrap();
    second.compile(Compile::new("sgd", "mse")).unwrap();
    assert_eq!(second.get_weights().unwrap()[..2], [ones(&[2, 3]), ones(&[3])]);
}

#[test]
fn mistakes_in_sharing_are_named() {
    let dense = SharedLayer::new(Dense::new(2).name("d"));
    let (x, wide) = (Input::new([2]).tensor(), Input::new([3]).tensor());
    let _first = Model::new(&x, &dense.on(&x)).unwrap();
    let error = Model::new(&wide, &dense.on(&wide)).unwrap_err().to_string();
    assert!(error.contains("layer `d` has its weights from another model"), "{error}");
    assert!(error.contains("[2, 2]") && error.contains("[3, 2]"), "{error}");

    let inner = Model::named("inner", &x, &dense.on(&x)).unwrap();
    let error = Model::new(&x, &[inner.on(&x), dense.on(&x)]).unwrap_err().to_string();
    assert!(error.contains("has a layer twice"), "{error}");
    assert!(error.contains("`d/kernel`") && error.contains("`inner/d/kernel`"), "{error}");
}

/// A model stays in its thread, but symbolic values do not: models in two threads may train the
/// same weights.
#[test]
fn threads_may_train_the_same_weights() {
    let x = Input::new([2]).tensor();
    let hidden = Dense::new(3).on(&x);
    let first = Model::new(&x, &hidden).unwrap();
    let before = first.get_weights().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut model = Model::new(&x, &hidden).unwrap();
                model.compile(Compile::new(Optimizer::keras(Sgd::default(), 0.1), "mse")).unwrap();
                let (x, y) = (ones(&[40, 2]), ones(&[40, 3]));
                model.fit(Fit::new((&x, &y)).batch_size(2).epochs(20).verbose(0)).unwrap();
            });
        }
    });
    assert_ne!(first.get_weights().unwrap(), before);
    let mut last = Model::new(&x, &hidden).unwrap();
    assert_eq!(first.get_weights().unwrap(), last.get_weights().unwrap());
    // Both have learned that two ones make three.
    let found = last.predict(ones(&[1, 2])).unwrap();
    assert!(found.as_slice::<f32>().unwrap().iter().all(|y| (y - 1.0).abs() < 1e-3), "{found:?}");
}
