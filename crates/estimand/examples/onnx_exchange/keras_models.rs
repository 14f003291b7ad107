//! Keras models: a list of layers, branches with several inputs and outputs, a language model.

use std::path::{Path, PathBuf};

use estimand::keras::{Compile, Fit, Functional, Input, Model, Sequential, SharedLayer};
use estimand::nn::{
    AvgPool2d, BatchNorm, Concat, Conv1d, Conv3d, DepthwiseConv2d, GlobalAvgPool1d, GlobalAvgPool2d, GlobalAvgPool3d,
    GlobalMaxPool2d, Gru, MaxPool1d, MultiHeadAttention,
};
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
        "keras_dilated" => {
            let sound = Input::new([Graph::ANY, 3.into()]).name("sound").tensor();
            let image = Input::new([Graph::ANY, Graph::ANY, 2.into()]).name("image").tensor();
            let volume = Input::new([4.into(), Graph::ANY, Graph::ANY, 2.into()]).name("volume").tensor();
            let heard = Conv1d::new(4, 3).same().dilation(2).activation(Activation::Relu).on(&sound);
            let heard = Conv1d::new(2, 2).same().dilation(3).on(&heard);
            let seen = Conv2d::new(4, (3, 2)).same().dilation((2, 3)).activation(Activation::Tanh).on(&image);
            let seen = DepthwiseConv2d::new(3).same().dilation(2).on(&seen);
            let inside = Conv3d::new(3, (2, 3, 2)).same().dilation((1, 2, 3)).on(&volume);
            let first = GlobalAvgPool1d::new().name("heard").on(&heard);
            let second = GlobalAvgPool2d::new().name("seen").on(&seen);
            let third = GlobalAvgPool3d::new().name("inside").on(&inside);
            Model::new(&[&sound, &image, &volume], &[&first, &second, &third])?
        }
        "keras_windows" => {
            let sound = Input::new([Graph::ANY, 3.into()]).name("sound").tensor();
            let image = Input::new([Graph::ANY, Graph::ANY, 2.into()]).name("image").tensor();
            let heard = MaxPool1d::new(2).on(&Conv1d::new(4, 5).activation(Activation::Tanh).on(&sound));
            let heard = Conv1d::new(2, 2).strides(4).same().on(&heard);
            let seen = Conv2d::new(4, (2, 3)).strides(2).activation(Activation::Tanh).on(&image);
            let seen = AvgPool2d::new(2).strides(3).same().on(&MaxPool2d::new(1).strides(2).same().on(&seen));
            let first = GlobalAvgPool1d::new().name("heard").on(&heard);
            let second = GlobalMaxPool2d::new().name("seen").on(&seen);
            Model::new(&[&sound, &image], &[&first, &second])?
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
