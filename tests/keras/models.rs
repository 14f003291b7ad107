//! Models as recipes: shared layers, inner models, weights, freezing, graphs of model functions.

use estimand::graph::Graph;
use estimand::keras::{CallInputs, Compile, Fit, Functional, Input, KerasTensor, Model, Sequential, SharedLayer};
use estimand::nn::{Add, Conv1d, MaxPool1d, MultiHeadAttention, Subtract};
use estimand::prelude::*;

fn rows(dims: &[usize], f: impl Fn(usize) -> f32) -> Array {
    Array::from_vec(dims, (0..dims.iter().product()).map(f).collect()).unwrap()
}

fn f32s(array: &Array) -> Vec<f32> {
    array.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_shared_layer_has_one_set_of_weights() {
    let (left, right) = (Input::new([2]).tensor(), Input::new([2]).tensor());
    let tower = SharedLayer::new(Dense::new(1).use_bias(false));
    let distance = Subtract::new().on(&[tower.on(&left), tower.on(&right)]);
    let mut model = Model::new(&[&left, &right], &distance).unwrap();
    assert_eq!(model.input_names(), ["input_1", "input_2"]);
    assert_eq!(model.count_params(), 2);
    model.set_weights(&[rows(&[2, 1], |i| i as f32 + 1.0)]).unwrap();
    let (a, b) = (rows(&[1, 2], |_| 3.0), rows(&[1, 2], |_| 1.0));
    // (3 + 2 * 3) - (1 + 2 * 1)
    assert_eq!(f32s(&model.predict([&a, &b]).unwrap()), [6.0]);
    // By name, in any order.
    assert_eq!(f32s(&model.predict([("input_2", &a), ("input_1", &b)]).unwrap()), [-6.0]);
}

#[test]
fn an_inner_model_keeps_its_weights_and_trains_with_the_outer_one() {
    let mut inner = Sequential::new().name("inner").input([2]).add(Dense::new(2)).build().unwrap();
    inner.set_weights(&[rows(&[2, 2], |i| i as f32), rows(&[2], |_| 0.5)]).unwrap();
    let input = Input::new([2]).tensor();
    let shared = inner.shared();
    let output = Dense::new(1).on(&shared.on(&shared.on(&input)));
    let mut model = Model::new(&input, &output).unwrap();
    assert_eq!(
        model.weight_names().collect::<Vec<_>>(),
        ["inner/dense/kernel", "inner/dense/bias", "dense/kernel", "dense/bias"]
    );
    assert_eq!(f32s(&model.get_layer("inner").unwrap().get_weights().unwrap()[0]), [0.0, 1.0, 2.0, 3.0]);
    model.compile(Compile::new("sgd", "mse")).unwrap();
    let (x, y) = (rows(&[4, 2], |i| i as f32 / 8.0), rows(&[4, 1], |i| i as f32));
    model.fit(Fit::new((&x, &y)).verbose(0)).unwrap();
    assert_ne!(f32s(&model.get_layer("inner").unwrap().get_weights().unwrap()[0]), [0.0, 1.0, 2.0, 3.0]);
}

/// `output_names` of tf.keras 2.15. Every output keeps a name of its own, even if a number that a
/// name gets is another layer's name.
#[test]
fn outputs_of_one_layer_are_numbered() {
    let x = Input::new([3]).name("x").tensor();
    let (first, second) = (SharedLayer::new(Dense::new(2).name("d")), SharedLayer::new(Dense::new(2).name("d_1")));
    let names = |outputs: &[KerasTensor]| Model::new(&x, &outputs.to_vec()).unwrap().output_names();
    let (d, e) = (|| first.on(&x), || second.on(&x));
    assert_eq!(names(&[d(), e(), d(), d()]), ["d", "d_1", "d_2", "d_3"]);
    assert_eq!(names(&[e(), d(), d()]), ["d_1", "d", "d_2"]);
    assert_eq!(names(&[d(), d(), e()]), ["d", "d_1", "d_1_1"]);
}

/// In tf.keras 2.15 the results have the shapes (2, 0, 3) and (2, 0, 2).
#[test]
fn windows_with_borders_over_sequences_without_steps() {
    let x = Input::new([Graph::ANY, 2.into()]).name("x").tensor();
    let none = Array::zeros(DType::F32, [2, 0, 2]).unwrap();
    let shape = |y: KerasTensor| Model::new(&x, &y).unwrap().predict(&none).unwrap().dims().to_vec();
    for strides in [1, 4] {
        assert_eq!(shape(Conv1d::new(3, 2).strides(strides).same().on(&x)), [2, 0, 3]);
        assert_eq!(shape(MaxPool1d::new(3).strides(strides).same().on(&x)), [2, 0, 2]);
    }
}

#[test]
fn several_outputs_of_an_inner_model() {
    let input = Input::new([3]).name("x").tensor();
    let two = Model::named("two", &input, &[Dense::new(2).on(&input), Dense::new(2).on(&input)]).unwrap();
    let outer = Input::new([3]).tensor();
    let both = two.shared().on_all(&outer);
    let model = Model::new(&outer, &Add::new().on(&both)).unwrap();
    assert_eq!(model.output_shapes()[0].to_string(), "[batch, 2]");
    assert_eq!(model.count_params(), 16);
}

#[test]
fn frozen_layers_stay_and_frozen_batch_norm_uses_its_statistics() {
    let net = Sequential::new().input([3]).add(Dense::new(4)).add(BatchNorm::new()).add(Dense::new(1));
    let mut model = net.build().unwrap();
    model.compile(Compile::new("sgd", "mse")).unwrap();
    let (x, y) = (rows(&[8, 3], |i| (i % 5) as f32), rows(&[8, 1], |i| i as f32));
    model.set_layer_trainable("dense", false).unwrap();
    model.set_layer_trainable("batch_normalization", false).unwrap();
    let before = model.get_weights().unwrap();
    let frozen = model.test_on_batch((&x, &y)).unwrap()["loss"];
    // With its moving statistics, a training step computes what a test computes.
    assert_eq!(model.train_on_batch((&x, &y)).unwrap()["loss"], frozen);
    let after = model.get_weights().unwrap();
    assert_eq!(before[..6], after[..6]);
    assert_ne!(before[6], after[6]);
    model.set_layer_trainable("batch_normalization", true).unwrap();
    assert_ne!(model.train_on_batch((&x, &y)).unwrap()["loss"], model.test_on_batch((&x, &y)).unwrap()["loss"]);
    model.set_trainable(false).unwrap();
    let error = model.train_on_batch((&x, &y)).unwrap_err().to_string();
    assert!(error.contains("model `sequential` has no weights to train"), "{error}");
}

/// The two parts of transfer learning: first the new layer, then the last layer of the base, too.
#[test]
fn a_frozen_base_is_thawed_layer_by_layer() {
    let base = Sequential::new().name("base").input([3]).add(Dense::new(4).name("first"));
    let mut base = base.add(Dense::new(2).name("last").trainable(false)).build().unwrap();
    let build = |base: &Model| {
        let mut model = Sequential::new().input([3]).add_model(base).add(Dense::new(1).name("top")).build().unwrap();
        model.compile(Compile::new("sgd", "mse")).unwrap();
        model
    };
    let (x, y) = (rows(&[4, 3], |i| i as f32 / 7.0), rows(&[4, 1], |i| i as f32));
    // The weights that a step changes.
    let changed = |model: &mut Model| -> Vec<String> {
        let before = model.get_weights().unwrap();
        model.train_on_batch((&x, &y)).unwrap();
        let names: Vec<String> = model.weight_names().map(str::to_string).collect();
        let weights = before.into_iter().zip(model.get_weights().unwrap());
        let found = names.into_iter().zip(weights).filter(|(_, (before, after))| before != after);
        let found: Vec<String> = found.map(|(name, _)| name).collect();
        assert_eq!(found, model.trainable_weights().collect::<Vec<_>>());
        found
    };
    let (first, last, top) =
        (["base/first/kernel", "base/first/bias"], ["base/last/kernel", "base/last/bias"], ["top/kernel", "top/bias"]);
    // A layer that was made frozen.
    assert_eq!(changed(&mut build(&base)), [first, top].concat());
    base.set_trainable(false).unwrap();
    let mut model = build(&base);
    assert!(!model.get_layer("base").unwrap().is_trainable());
    assert_eq!(changed(&mut model), top);
    // As in Keras, all layers of a model inside follow it.
    model.set_layer_trainable("base", true).unwrap();
    assert_eq!(changed(&mut model), [first, last, top].concat());
    model.set_layer_trainable("base/first", false).unwrap();
    assert_eq!(changed(&mut model), [last, top].concat());
    model.set_trainable(false).unwrap();
    model.set_layer_trainable("base/last", true).unwrap();
    assert_eq!(changed(&mut model), last);
    model.set_trainable(true).unwrap();
    assert_eq!(changed(&mut model), [first, last, top].concat());
    let error = model.set_layer_trainable("base/lost", true).unwrap_err().to_string();
    assert!(error.contains("`base/lost`") && error.contains("base/last"), "{error}");
    assert!(model.set_layer_trainable("top/base", true).is_err());
}

/// Keras' `base(x, training=False)`: batch norm is trained and uses its moving statistics.
#[test]
fn calls_say_whether_they_train() {
    let (x, y) = (rows(&[8, 3], |i| (i % 5) as f32), rows(&[8, 1], |i| i as f32));
    let base = Sequential::new().input([3]).add(BatchNorm::new()).build().unwrap();
    for training in [None, Some(false)] {
        let input = Input::new([3]).tensor();
        let inputs = CallInputs::of(&input);
        let inputs = training.map_or(inputs.clone(), |training| inputs.training(training));
        let mut model = Model::new(&input, &Dense::new(1).on(&base.on(&inputs))).unwrap();
        model.compile(Compile::new("sgd", "mse")).unwrap();
        let (before, tested) = (model.get_weights().unwrap(), model.test_on_batch((&x, &y)).unwrap()["loss"]);
        let trained = model.train_on_batch((&x, &y)).unwrap()["loss"];
        let after = model.get_weights().unwrap();
        assert_ne!(before[..2], after[..2], "gamma and beta are trained");
        // The moving statistics follow the batches of a training alone.
        assert_eq!((trained == tested, before[2..4] == after[2..4]), (training.is_some(), training.is_some()));
    }
    // Dropout that stays in predictions: each number is 0 or twice what it was.
    let input = Input::new([500]).tensor();
    let dropped = Dropout::new(0.5).on(&CallInputs::of(&input).training(true));
    let found = f32s(&Model::new(&input, &dropped).unwrap().predict(rows(&[1, 500], |_| 3.0)).unwrap());
    let n_zeros = found.iter().filter(|x| **x == 0.0).count();
    assert!(found.iter().all(|x| *x == 0.0 || *x == 6.0) && (150..350).contains(&n_zeros), "{n_zeros}");
}

/// With a causal mask the first step sees only itself: later steps do not change its result.
#[test]
fn calls_say_that_attention_is_causal() {
    let first_of = |causal: bool, last: f32| {
        let x = Input::new([3, 2]).tensor();
        let inputs = CallInputs::of(&[&x, &x]).use_causal_mask(causal);
        let mut model = Model::new(&x, &MultiHeadAttention::new(1, 2).on(&inputs)).unwrap();
        let steps = rows(&[1, 3, 2], |i| if i < 2 { 1.0 } else { last });
        f32s(&model.predict(steps).unwrap())[..2].to_vec()
    };
    assert_eq!(first_of(true, 5.0), first_of(true, -1.0));
    assert_ne!(first_of(false, 5.0), first_of(false, -1.0));
    // The arguments of a call in a list count for the call.
    let x = Input::new([3, 2]).tensor();
    let inputs = [CallInputs::of(&x).use_causal_mask(true), CallInputs::of(&x)];
    let model = Model::new(&x, &MultiHeadAttention::new(1, 2).on(&inputs)).unwrap();
    assert!(model.to_json().unwrap().to_string().contains(r#""kwargs":{"use_causal_mask":true}"#));

    let causal = CallInputs::of(&x).use_causal_mask(true);
    let error = |result: Result<Model>| result.unwrap_err().to_string();
    let found = error(Model::new(&x, &Dense::new(1).on(&causal)));
    assert!(found.contains("`use_causal_mask`, which it does not take"), "{found}");
    let base = Sequential::new().name("base").input([3, 2]).add(Dense::new(1)).build().unwrap();
    let found = error(Model::new(&x, &base.on(&causal)));
    assert!(found.contains("model `base` got `use_causal_mask`"), "{found}");
    let found = error(Model::new(&x, &CallInputs::of(&x).training(true)));
    assert!(found.contains("got arguments of a call with its inputs or outputs"), "{found}");
}

#[test]
fn a_recipe_replays_into_any_graph() {
    let model = Sequential::new().input([3]).add(Dense::new(4).relu()).add(Dropout::new(0.5)).build().unwrap();
    for (training, ops) in [(true, true), (false, false)] {
        let g = Graph::with_mode(Mode::Predict);
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
        let y = model.call(&LayerInputs::of(&x).training(training)).unwrap();
        assert_eq!(y[0].shape().to_string(), "[batch, 4]");
        assert!(g.body().variables().find("dense/kernel").is_ok());
        let mut session = Session::new(&g).unwrap();
        let out = session.run(&[&y[0]], &[(&x, rows(&[64, 3], |i| (i % 7) as f32))]).unwrap();
        let again = session.run(&[&model_relu(&g, &x)], &[(&x, rows(&[64, 3], |i| (i % 7) as f32))]).unwrap();
        assert_eq!(out[0] != again[0], ops, "dropout changes the result in training only");
    }
}

/// The same without dropout, from the variables of the graph.
fn model_relu(g: &Graph, x: &Tensor) -> Tensor {
    (x.matmul(&g.get_variable("dense/kernel")) + g.get_variable("dense/bias")).relu()
}

#[test]
fn steps_of_unknown_number_stay_related() {
    // The sum of two sequences needs to know that they are of the same length.
    let steps = Input::new([Graph::ANY, 4.into()]).tensor();
    // Layers of one kind have different names in the model.
    let twice = Lstm::new(2).on(&Lstm::new(3).return_sequences(true).on(&steps));
    assert_eq!(Model::new(&steps, &twice).unwrap().count_params(), 12 * (4 + 3 + 1) + 8 * (3 + 2 + 1));
    let x = Dense::new(4).on(&steps);
    let sum = Add::new().on(&[&steps, &x]);
    let mut model = Model::new(&steps, &Lstm::new(2).on(&sum)).unwrap();
    for n in [3, 5] {
        assert_eq!(model.predict(rows(&[2, n, 4], |i| i as f32)).unwrap().dims(), [2, 2]);
    }
}

#[test]
fn weights_are_set_whole_or_not_at_all() {
    let mut model = Sequential::new().input([2]).add(Dense::new(2)).build().unwrap();
    let before = model.get_weights().unwrap();
    let error = model.set_weights(&[rows(&[2, 2], |_| 9.0), rows(&[3], |_| 9.0)]).unwrap_err().to_string();
    assert!(error.contains("weight `dense/bias` of model `sequential` got the shape [3]; expected [2]"), "{error}");
    let error = model.set_weights(&[rows(&[2, 2], |_| 9.0)]).unwrap_err().to_string();
    assert!(error.contains("got 1 weights; it has 2"), "{error}");
    assert_eq!(model.get_weights().unwrap(), before);
    let error = model.set_layer_weights("dense", &[rows(&[2, 2], |_| 9.0)]).unwrap_err().to_string();
    assert!(error.contains("layer `dense` got 1 weights; it has 2"), "{error}");
    model.set_layer_weights("dense", &[rows(&[2, 2], |_| 9.0), rows(&[2], |_| 1.0)]).unwrap();
    assert_eq!(model.get_weights().unwrap(), [rows(&[2, 2], |_| 9.0), rows(&[2], |_| 1.0)]);
    // 9 + 9 + 1
    let x = rows(&[1, 2], |_| 1.0);
    assert_eq!(f32s(&model.predict(&x).unwrap()), [19.0, 19.0]);
    // Of equal numbers, the first counts.
    assert_eq!(model.predict_classes(&x).unwrap(), Array::from([0i64]));
}

#[test]
fn the_seed_decides_the_weights() {
    let make = |seed| Sequential::new().input([2]).add(Dense::new(2)).build().unwrap().seed(seed).unwrap();
    assert_eq!(make(1).get_weights().unwrap(), make(1).get_weights().unwrap());
    assert_ne!(make(1).get_weights().unwrap(), make(2).get_weights().unwrap());
}
