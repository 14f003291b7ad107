//! `fit`, `evaluate` and `predict` on arrays and datasets.

use estimand::keras::{Callback, Compile, Evaluate, Fit, Functional, Input, Logs, Model, Predict, Sequential};
use estimand::nn::loss::MeanSquaredError;
use estimand::nn::{Concat, Reduction, Regularizer};
use estimand::prelude::*;

fn numbers(dims: &[usize], f: impl Fn(usize) -> f32) -> Array {
    Array::from_vec(dims, (0..dims.iter().product()).map(f).collect()).unwrap()
}

/// `y = w x` with w = 1.
fn linear(rate: f64) -> Model {
    let mut model = Sequential::new().input([1]).add(Dense::new(1).use_bias(false)).build().unwrap();
    model.set_weights(&[numbers(&[1, 1], |_| 1.0)]).unwrap();
    model.compile(Compile::new(Optimizer::new(Sgd::default(), rate), "mse").metric("mae")).unwrap();
    model
}

fn weight(model: &Model) -> f32 {
    model.get_weights().unwrap()[0].item::<f32>().unwrap()
}

#[test]
fn one_step_by_hand() {
    let mut model = linear(0.5);
    let (x, y) = (numbers(&[2, 1], |_| 1.0), numbers(&[2, 1], |_| 3.0));
    // The loss is (1 - 3)^2 = 4, its gradient 2 * (1 - 3) = -4.
    let logs = model.train_on_batch((&x, &y)).unwrap();
    assert_eq!(logs.iter().map(|(k, v)| (k.as_str(), *v)).collect::<Vec<_>>(), [("loss", 4.0), ("mae", 2.0)]);
    assert_eq!(weight(&model), 3.0);
    assert_eq!(model.test_on_batch((&x, &y)).unwrap()["loss"], 0.0);
    assert_eq!(model.predict_on_batch(&x).unwrap()[0], numbers(&[2, 1], |_| 3.0));
}

#[test]
fn weights_of_rows_and_classes_scale_the_loss_alone() {
    let (x, y) = (numbers(&[2, 1], |i| i as f32), numbers(&[2, 1], |_| 3.0));
    // The losses of the rows are 9 and 4, their mean with weights (0 * 9 + 2 * 4) / 2.
    let mut model = linear(0.5);
    let weights = Array::from([0f32, 2.0]);
    let logs = model.test_on_batch((&x, &y, &weights)).unwrap();
    assert_eq!((logs["loss"], logs["mae"]), (4.0, 2.5));
    // A loss by value counts rows too, though its default divides by the weights that are not 0.
    model.compile(Compile::new("sgd", MeanSquaredError::new()).weighted_metric("mae")).unwrap();
    let logs = model.test_on_batch((&x, &y, &weights)).unwrap();
    // The weighted mean of 3 and 2 is 2.
    assert_eq!((logs["loss"], logs["mae"]), (4.0, 2.0));
    model.compile(Compile::new("sgd", MeanSquaredError::new().reduction(Reduction::Sum))).unwrap();
    assert_eq!(model.test_on_batch((&x, &y, &weights)).unwrap()["loss"], 8.0);
}

#[test]
fn class_weights_are_those_of_labels() {
    let mut model = Sequential::new().input([1]).add(Dense::new(2).softmax()).build().unwrap();
    model.set_weights(&[numbers(&[1, 2], |_| 0.0), numbers(&[2], |_| 0.0)]).unwrap();
    model.compile(Compile::new("sgd", "sparse_categorical_crossentropy")).unwrap();
    let (x, y) = (numbers(&[4, 1], |_| 1.0), Array::from([0i64, 1, 1, 1]));
    // Every row has ln 2; the weights are 4, 1, 1, 1.
    let history = model.fit(Fit::new((&x, &y)).class_weight([(1, 1.0), (0, 4.0)]).verbose(0)).unwrap();
    assert!((history["loss"][0] - 7.0 / 4.0 * 2f64.ln()).abs() < 1e-6);
    let error = model.fit(Fit::new((&x, &y)).class_weight([(1, 1.0)]).verbose(0)).unwrap_err().to_string();
    assert!(error.contains("class_weight has the classes [1]; expected all from 0 on"), "{error}");
}

#[test]
fn the_history_has_keras_keys_in_order() {
    let (a, b) = (Input::new([2]).name("a").tensor(), Input::new([3]).name("b").tensor());
    let hidden = Concat::new().on(&[&a, &b]);
    let (score, class) = (Dense::new(1).name("score").on(&hidden), Dense::new(3).softmax().name("class").on(&hidden));
    let mut model = Model::new(&[&a, &b], &[&score, &class]).unwrap();
    let compile = Compile::new("adam", "mse")
        .loss_of("class", "sparse_categorical_crossentropy")
        .loss_weight("class", 0.5)
        .metric_of("score", "mae")
        .metric_of("class", "accuracy");
    model.compile(compile).unwrap();
    let x = [numbers(&[10, 2], |i| i as f32 / 20.0), numbers(&[10, 3], |i| i as f32 / 30.0)];
    let y = [numbers(&[10], |i| i as f32), Array::from([0i64, 1, 2, 0, 1, 2, 0, 1, 2, 0])];
    let fit = Fit::new((x.clone(), y.clone())).epochs(3).initial_epoch(1).batch_size(4).verbose(0);
    let history = model.fit(fit.validation_data((x.clone(), y.clone())).validation_freq(2)).unwrap();
    let keys = ["loss", "score_loss", "class_loss", "score_mae", "class_accuracy"];
    let all: Vec<String> = keys.iter().map(|k| k.to_string()).chain(keys.iter().map(|k| format!("val_{k}"))).collect();
    assert_eq!(history.keys().collect::<Vec<_>>(), all);
    assert_eq!(history.epoch, [1, 2]);
    assert_eq!((history["loss"].len(), history["val_loss"].len()), (2, 1));
    let logs = model.evaluate(Evaluate::new((x.clone(), y)).batch_size(3)).unwrap();
    assert!((logs["loss"] - (logs["score_loss"] + 0.5 * logs["class_loss"])).abs() < 1e-5);
    let outputs = model.predict_all(Predict::new(x).batch_size(3)).unwrap();
    assert_eq!((outputs[0].dims(), outputs[1].dims()), (&[10, 1][..], &[10, 3][..]));
}

#[test]
fn regularizers_count_in_training_and_in_tests() {
    let mut model = Sequential::new()
        .input([1])
        .add(Dense::new(1).use_bias(false).kernel_regularizer(Regularizer::l2(0.5)))
        .build()
        .unwrap();
    model.set_weights(&[numbers(&[1, 1], |_| 2.0)]).unwrap();
    model.compile(Compile::new("sgd", "mse")).unwrap();
    // (2 - 1)^2 + 0.5 * 2^2
    let (x, y) = (numbers(&[1, 1], |_| 1.0), numbers(&[1, 1], |_| 1.0));
    assert_eq!(model.test_on_batch((&x, &y)).unwrap()["loss"], 3.0);
    assert_eq!(model.train_on_batch((&x, &y)).unwrap()["loss"], 3.0);
}

#[test]
fn epochs_are_means_over_rows_and_the_last_batch_counts_less() {
    let mut model = linear(0.0);
    // Losses 4, 4, 0 in batches of two: the mean of rows is 8/3, that of batches 2.
    let (x, y) = (numbers(&[3, 1], |_| 1.0), Array::from_vec([3, 1], vec![3f32, 3.0, 1.0]).unwrap());
    let history = model.fit(Fit::new((&x, &y)).batch_size(2).shuffle(false).verbose(0)).unwrap();
    assert!((history["loss"][0] - 8.0 / 3.0).abs() < 1e-6);
}

#[test]
fn datasets_and_arrays_train_alike() {
    let (x, y) = (numbers(&[7, 1], |i| i as f32 / 7.0), numbers(&[7, 1], |i| i as f32));
    let (mut one, mut two) = (linear(0.1), linear(0.1));
    one.fit(Fit::new((&x, &y)).epochs(3).batch_size(2).shuffle(false).verbose(0)).unwrap();
    let data = Dataset::from_arrays([("anything", x.clone()), ("y", y.clone())]).label("y").batch(2);
    two.fit(Fit::new(&data).epochs(3).verbose(0)).unwrap();
    assert_eq!(one.get_weights().unwrap(), two.get_weights().unwrap());
    // Twelve batches in three epochs of four, over an endless dataset.
    let mut three = linear(0.1);
    let history = three.fit(Fit::new(data.repeat_forever()).epochs(3).steps_per_epoch(4).verbose(0)).unwrap();
    assert_eq!(one.get_weights().unwrap(), three.get_weights().unwrap());
    assert_eq!(history.epoch.len(), 3);
    // Too few batches end the training.
    let history = linear(0.1).fit(Fit::new(&data).epochs(3).steps_per_epoch(3).verbose(0)).unwrap();
    assert_eq!(history.epoch.len(), 2);
}

#[test]
fn shuffling_depends_on_seed_and_epoch_alone() {
    let (x, y) = (numbers(&[40, 1], |i| i as f32 / 40.0), numbers(&[40, 1], |i| (i * i % 7) as f32));
    let train = |seed: u64, shuffle: bool| {
        let mut model = linear(0.1).seed(seed).unwrap();
        model.set_weights(&[numbers(&[1, 1], |_| 1.0)]).unwrap();
        model.fit(Fit::new((&x, &y)).epochs(2).batch_size(4).shuffle(shuffle).verbose(0)).unwrap();
        weight(&model)
    };
    assert_eq!(train(1, true), train(1, true));
    assert_ne!(train(1, true), train(2, true));
    assert_ne!(train(1, true), train(1, false));
    assert_eq!(train(1, false), train(2, false));
}

#[test]
fn a_split_leaves_the_last_rows_out() {
    let (x, y) = (numbers(&[10, 1], |_| 1.0), numbers(&[10, 1], |i| if i < 7 { 1.0 } else { 5.0 }));
    let mut model = linear(0.1);
    let history = model.fit(Fit::new((&x, &y)).validation_split(0.3).verbose(0)).unwrap();
    // The first seven rows fit exactly; each of the last three is off by 4.
    assert_eq!((history["loss"][0], history["val_loss"][0], weight(&model)), (0.0, 16.0, 1.0));
}

#[test]
fn compile_again_keeps_weights_and_drops_the_optimizer() {
    let momentum = || Optimizer::new(Sgd::default().momentum(0.9), 0.1);
    let (x, y) = (numbers(&[1, 1], |_| 1.0), numbers(&[1, 1], |_| 3.0));
    let mut model = linear(0.1);
    model.compile(Compile::new(momentum(), "mse")).unwrap();
    model.train_on_batch((&x, &y)).unwrap();
    // 1 + 0.1 * 4
    assert!((weight(&model) - 1.4).abs() < 1e-6);
    model.compile(Compile::new(momentum(), "mse")).unwrap();
    model.train_on_batch((&x, &y)).unwrap();
    // 1.4 + 0.1 * 3.2; with the old momentum it would be 0.36 more.
    assert!((weight(&model) - 1.72).abs() < 1e-6);
}

#[test]
fn whole_numbers_and_missing_axes_are_taken_as_keras_takes_them() {
    let mut model = Sequential::new().input([1]).add(Dense::new(3).softmax()).build().unwrap();
    model.compile(Compile::new("adam", "sparse_categorical_crossentropy").metric("acc")).unwrap();
    let bytes = Array::from_vec([3], vec![0u8, 1, 2]).unwrap();
    let floats = Array::from([0f32, 1.0, 2.0]);
    let by_bytes = model.test_on_batch((&bytes, &bytes)).unwrap();
    assert_eq!(by_bytes, model.test_on_batch((&floats, &floats)).unwrap());
    assert_eq!(by_bytes.keys().collect::<Vec<_>>(), ["loss", "acc"]);
}

/// Writes down what is called.
#[derive(Default)]
struct Events(Vec<String>);

impl Callback for &mut Events {
    fn on_train_begin(&mut self, _: &mut Model) -> Result<()> {
        self.0.push("train".into());
        Ok(())
    }
    fn on_train_end(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.0.push(format!("end {:?}", logs.keys().collect::<Vec<_>>()));
        Ok(())
    }
    fn on_epoch_begin(&mut self, _: &mut Model, epoch: usize) -> Result<()> {
        self.0.push(format!("epoch {epoch}"));
        Ok(())
    }
    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        logs.insert("extra".into(), epoch as f64);
        if epoch == 1 {
            model.stop_training();
        }
        Ok(())
    }
    fn on_train_batch_begin(&mut self, _: &mut Model, batch: usize) -> Result<()> {
        self.0.push(format!("batch {batch}"));
        Ok(())
    }
    fn on_train_batch_end(&mut self, _: &mut Model, batch: usize, _: &Logs) -> Result<()> {
        self.0.push(format!("done {batch}"));
        Ok(())
    }
    fn on_test_begin(&mut self, _: &mut Model) -> Result<()> {
        self.0.push("test".into());
        Ok(())
    }
    fn on_test_end(&mut self, _: &mut Model, _: &Logs) -> Result<()> {
        self.0.push("tested".into());
        Ok(())
    }
    fn wants_batch_logs(&self) -> bool {
        true
    }
}

#[test]
fn callbacks_see_events_in_order_and_stop_the_training() {
    let mut events = Events::default();
    let (x, y) = (numbers(&[3, 1], |_| 1.0), numbers(&[3, 1], |_| 3.0));
    let mut model = linear(0.1);
    let fit = Fit::new((&x, &y)).epochs(5).batch_size(2).validation_data((&x, &y)).verbose(0);
    let history = model.fit(fit.callback(&mut events)).unwrap();
    let epoch = |n: usize| {
        [
            format!("epoch {n}"),
            "batch 0".into(),
            "done 0".into(),
            "batch 1".into(),
            "done 1".into(),
            "test".into(),
            "tested".into(),
        ]
    };
    let end = r#"end ["loss", "mae", "val_loss", "val_mae", "extra"]"#.to_string();
    let expected: Vec<String> =
        ["train".to_string()].into_iter().chain(epoch(0)).chain(epoch(1)).chain([end]).collect();
    assert_eq!(events.0, expected);
    assert_eq!(history["extra"], [0.0, 1.0]);
}

/// CSR rows train as the same dense rows do, bit for bit.
#[test]
fn csr_rows_are_made_dense() {
    use estimand::keras::CsrRows;
    let dense = numbers(&[10, 3], |i| if i % 4 == 0 { i as f32 / 10.0 } else { 0.0 });
    let (mut indptr, mut indices, mut data) = (vec![0i64], Vec::new(), Vec::new());
    for row in dense.as_slice::<f32>().unwrap().chunks(3) {
        for (column, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            indices.push(column as i64);
            data.push(*value);
        }
        indptr.push(indices.len() as i64);
    }
    let csr = CsrRows::new(3, indptr, indices, data).unwrap();
    let y = numbers(&[10, 1], |i| i as f32);
    let make = || {
        let mut model = Sequential::new().input([3]).add(Dense::new(2)).add(Dense::new(1)).build().unwrap();
        model.compile(Compile::new("adam", "mse")).unwrap();
        model
    };
    let (mut a, mut b) = (make(), make());
    let one = a.fit(Fit::new((&dense, &y)).batch_size(4).epochs(3).validation_split(0.3).verbose(0)).unwrap();
    let two = b.fit(Fit::new((csr.clone(), &y)).batch_size(4).epochs(3).validation_split(0.3).verbose(0)).unwrap();
    assert_eq!(one, two);
    assert_eq!(a.get_weights().unwrap(), b.get_weights().unwrap());
    assert_eq!(a.predict(&dense).unwrap(), b.predict(csr).unwrap());
    let error = CsrRows::new(2, vec![0, 1], vec![2], vec![1.0]).unwrap_err().to_string();
    assert!(error.contains("the column 2; they have 2 columns"), "{error}");
}
