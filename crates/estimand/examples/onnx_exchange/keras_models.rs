//! Keras models: a list of layers, branches with several inputs and outputs, a language model.

use std::path::{Path, PathBuf};

use estimand::keras::{Compile, Fit, Functional, Input, Model, Sequential, SharedLayer};
use estimand::nn::{BatchNorm, Concat, GlobalAvgPool1d, Gru, MultiHeadAttention};
use estimand::prelude::*;

use crate::Rows;

/// The folder of an export, and the answers by output.
type Answers = (PathBuf, Vec<(String, Array)>);

fn model(case: &str) -> Result<Option<Model>> {
    Ok(Some(match case {
        "keras_sequential" => Sequential::new()
            .input([8, 8, 2])
            .add(Conv2d::new(6, 3).same().use_bias(false))
            .add(BatchNorm::new())
            .add(Activation::Relu)
            .add(MaxPool2d::new(2))
            .add(Flatten::new())
            .add(Dropout::new(0.3))
            .add(Dense::new(3).softmax())
            .build()?,
        "keras_functional" => {
            let (left, right) = (Input::new([6]).name("left").tensor(), Input::new([4]).name("right").tensor());
            let encode = SharedLayer::new(Dense::new(5).tanh());
            let joined = Concat::new().on(&[&encode.on(&left), &Dense::new(5).on(&right)]);
            let hidden = BatchNorm::new().on(&Dense::new(8).activation(Activation::Elu).on(&joined));
            let first = Dense::new(1).name("price").on(&hidden);
            let second = Dense::new(3).softmax().name("kind").on(&hidden);
            Model::new(&[&left, &right], &[&first, &second])?
        }
        "keras_gru" => Sequential::new()
            .input(Input::new([7]).dtype(DType::I64))
            .add(Embedding::new(10, 3).mask_zero(true))
            .add(Gru::new(5).return_sequences(true))
            .add(Lstm::new(4))
            .add(Dense::new(1).sigmoid())
            .build()?,
        "keras_attention" => {
            let x = Input::new([6, 4]).name("x").tensor();
            let seen = MultiHeadAttention::new(2, 3).on(&[&x, &x]);
            let y = Dense::new(2).on(&GlobalAvgPool1d::new().on(&seen));
            Model::new(&x, &y)?
        }
        _ => return Ok(None),
    }))
}

/// Trains a model for one epoch, exports it and predicts; `None` if the case is none of Keras.
pub fn run(case: &str, rows: &Rows, folder: &Path) -> Result<Option<Answers>> {
    let Some(mut model) = model(case)? else { return Ok(None) };
    let inputs = model.input_names().into_iter().map(str::to_string).collect::<Vec<_>>();
    let inputs = inputs.iter().map(|name| rows.array(name)).collect::<Result<Vec<_>>>()?;
    let names = model.output_names();
    let labels = names.iter().map(|name| rows.array(name)).collect::<Result<Vec<_>>>()?;
    model.compile(Compile::new("adam", "mse"))?;
    model.fit(Fit::new((inputs.clone(), labels)).verbose(0))?;
    let answers = model.predict_on_batch(inputs)?;
    let export = model.export_onnx(folder.join("onnx"))?;
    Ok(Some((export, names.into_iter().zip(answers).collect())))
}
