//! Mistakes of models, compile and data: what was passed, what was expected, where.

use estimand::keras::{Compile, Fit, Functional, Input, Model, Sequential};
use estimand::nn::Add;
use estimand::prelude::*;

fn zeros(dims: &[usize]) -> Array {
    Array::zeros(DType::F32, dims).unwrap()
}

#[track_caller]
fn refused<T>(result: Result<T>, parts: &[&str]) {
    let text = match result {
        Ok(_) => panic!("expected an error with {parts:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(text.contains(part), "expected {part:?} in:\n{text}");
    }
}

#[test]
fn layers_that_do_not_fit_name_the_layer_both_shapes_and_the_line() {
    let stack = Sequential::new().input([4]).add(Dense::new(3)).add(Conv2d::new(2, 3));
    refused(
        stack.build(),
        &[
            "layer `conv2d` got",
            "[batch, 3]",
            "expected [batch",
            "in layer 1 (conv2d) of model `sequential`",
            "mistakes.rs:",
        ],
    );
    let (a, b) = (Input::new([4]).tensor(), Input::new([5]).tensor());
    let sum = Dense::new(1).on(&Add::new().on(&[&a, &b]));
    refused(Model::new(&[&a, &b], &sum), &["[batch, 4]", "[batch, 5]", "mistakes.rs:"]);
    let inner = Sequential::new().name("inner").input([7]).add(Dense::new(1)).build().unwrap();
    refused(Model::new(&a, &inner.on(&a)), &["of model `inner` got f32[batch, 4]; expected f32[batch, 7]"]);
}

#[test]
fn models_need_inputs_outputs_and_names() {
    refused(Sequential::new().add(Dense::new(1)).build(), &["model `sequential` has no input shape", ".input([..])"]);
    refused(Sequential::new().input([1]).build(), &["model `sequential` has no layers"]);
    let (a, b) = (Input::new([4]).tensor(), Input::new([4]).name("b").tensor());
    let sum = Add::new().on(&[&a, &b]);
    refused(Model::new(&a, &sum), &["model `model` needs", "which is not among its inputs"]);
    refused(Model::new(&[&sum], &sum), &["which a layer has made; expected an Input"]);
    let twice = Dense::new(1).name("d").on(&Dense::new(1).name("d").on(&a));
    refused(Model::new(&a, &twice), &["two layers of model `model` are called `d`"]);
    let model = Model::new(&a, &Dense::new(1).name("score").on(&a)).unwrap();
    refused(model.get_layer("scor"), &["did you mean `score`?"]);
}

#[test]
fn names_are_suggested() {
    let mut model = Sequential::new().input([4]).add(Dense::new(3)).build().unwrap();
    refused(model.compile(Compile::new("adm", "mse")), &["there is no optimizer `adm`", "did you mean `adam`?"]);
    refused(model.compile(Compile::new("adam", "msee")), &["there is no loss `msee`", "did you mean `mse`?"]);
    let compile = |metric: &str| Compile::new("adam", "mse").metric(metric);
    refused(model.compile(compile("acuracy")), &["there is no metric `acuracy`", "did you mean `accuracy`?"]);
    refused(model.compile(Compile::new("adam", "mse").loss_of("dens", "mse")), &["did you mean `dense`?"]);
    refused(model.compile(Compile::new("adafactr", "mse")), &["did you mean `adafactor`?"]);
}

#[test]
fn data_that_does_not_fit() {
    let mut model = Sequential::new().input([4]).add(Dense::new(3)).build().unwrap();
    let (x, y) = (zeros(&[2, 4]), zeros(&[2, 3]));
    refused(model.fit((&x, &y)), &["model `sequential` has not been compiled", "model.compile("]);
    refused(model.evaluate((&x, &y)), &["has not been compiled"]);
    model.compile(Compile::new("adam", "mse")).unwrap();
    let fit = |x: &Array, y: &Array| Fit::new((x, y)).verbose(0);
    refused(
        model.fit(fit(&zeros(&[2, 5]), &y)),
        &["input `dense_input` of model `sequential` got f32[batch, 5]; expected f32[batch, 4]", "in fit of model"],
    );
    refused(model.fit(fit(&x, &zeros(&[3, 3]))), &["the numbers of rows differ: x has [2], y has [3]"]);
    refused(model.fit(fit(&x, &zeros(&[2, 2]))), &["[batch, 2]", "[batch, 3]", "in the loss of output `dense`"]);
    refused(model.fit(Fit::new(&x).verbose(0)), &["has no labels", "pass (x, y)"]);
    refused(model.fit(fit(&x, &y).batch_size(0)), &["batch_size is 0"]);
    refused(model.fit(fit(&x, &y).verbose(3)), &["verbose is 3; expected 0, 1 or 2"]);
    refused(model.fit(fit(&x, &y).validation_split(1.0)), &["validation_split is 1"]);
    refused(model.fit(fit(&zeros(&[0, 4]), &zeros(&[0, 3]))), &["no batches"]);
    refused(model.predict([&x, &x]), &["the model has 1 inputs (dense_input); got 2 arrays"]);
    let data = Dataset::from_arrays([("x", x.clone()), ("y", y.clone())]).label("y").batch(2);
    refused(model.fit(Fit::new(&data).batch_size(2).verbose(0)), &["the data is a dataset, which has batches"]);
    let rows = Dataset::from_arrays([("x", x.clone()), ("y", y.clone())]).label("y");
    refused(model.fit(Fit::new(&rows).verbose(0)), &["the dataset has single rows; expected batches"]);
    refused(model.fit(Fit::new(data.repeat_forever()).verbose(0)), &["never ends", "steps_per_epoch"]);
}

#[test]
fn a_label_out_of_range_is_named() {
    let mut model = Sequential::new().input([1]).add(Dense::new(3).softmax()).build().unwrap();
    model.compile(Compile::new("adam", "sparse_categorical_crossentropy")).unwrap();
    let before = model.get_weights().unwrap();
    let fit = Fit::new((&zeros(&[2, 1]), &Array::from([0i64, 3]))).shuffle(false).verbose(0);
    refused(model.fit(fit), &["label 3 in row 1 is not a class; expected 0 or more and less than 3", "mistakes.rs:"]);
    assert_eq!(model.get_weights().unwrap(), before);
}

/// Files of Keras need a feature, and the error says so.
#[cfg(not(feature = "keras_files"))]
#[test]
fn files_of_keras_need_a_feature() -> Result<()> {
    let mut model = Sequential::new().input([2]).add(Dense::new(1)).build()?;
    for path in ["w.weights.h5", "w.h5", "w.keras"] {
        for error in [model.save_weights(path).unwrap_err(), model.load_weights(path).unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains(path) && text.contains("keras_files"), "{text}");
        }
    }
    Ok(())
}
