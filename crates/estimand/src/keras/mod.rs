//! Keras: models of layers, with `compile`, `fit`, `evaluate` and `predict`.
//!
//! A model is a recipe of layer values. [`Sequential`] lists layers; symbolic values ([`Input`],
//! [`KerasTensor`]) make models with branches, shared layers, and several inputs and outputs.
//! The recipe (`recipe`) is replayed (`replay`) into one graph for each of training, testing and
//! prediction (`programs`), which share one state of weights. `layout` connects the columns of
//! batches with inputs and outputs; `json` writes and reads architectures. The book's chapter is
//! `docs/keras.md`.
//!
//! ```
//! use estimand::keras::{Compile, Fit, Sequential};
//! use estimand::prelude::*;
//!
//! let x = Array::from_vec([4, 2], vec![0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])?;
//! let y = Array::from([0i64, 1, 1, 0]);
//! let mut model = Sequential::new().input([2]).add(Dense::new(16).tanh()).add(Dense::new(2).softmax()).build()?;
//! let adam = Optimizer::new(Adam::default(), 0.05);
//! model.compile(Compile::new(adam, "sparse_categorical_crossentropy").metric("accuracy"))?;
//! model.fit(Fit::new((&x, &y)).epochs(200).verbose(0))?;
//! assert_eq!(model.evaluate((&x, &y))?["accuracy"], 1.0);
//! # Ok::<(), Error>(())
//! ```

pub mod applications;
mod arguments;
mod arithmetic;
mod call;
mod callback;
mod callbacks;
mod compile;
mod csr;
mod data;
mod evaluate;
#[cfg(feature = "keras_files")]
mod files;
mod fit;
mod history;
mod input;
mod json;
mod layout;
mod lazy_state;
mod model;
mod names;
mod on_batch;
#[cfg(feature = "onnx")]
mod onnx;
mod operation;
mod pad_sequences;
mod places;
mod plot;
mod programs;
mod recipe;
mod replay;
mod sequential;
mod sharing;
#[cfg_attr(not(feature = "keras_files"), allow(dead_code, reason = "only files of Keras hold it"))]
mod slots;
mod source;
mod state;
mod summary;
mod symbol;
mod to_estimator;
mod train_loop;
mod train_step;
mod verbose;
mod walk;
mod weights;

pub use arguments::CallInputs;
pub use call::Functional;
pub use callback::Callback;
pub use callbacks::{
    BackupAndRestore, CsvLogger, LambdaCallback, LearningRateScheduler, ModelCheckpoint, ReduceLrOnPlateau,
    TensorBoard, TerminateOnNan,
};
pub use compile::{Compile, LossChoice, MetricChoice};
pub use csr::CsrRows;
pub use data::{Arrays, Data};
pub use estimand_tensor::Limits;
pub use evaluate::{Evaluate, Predict};
#[cfg(feature = "keras_files")]
pub use files::{ByName, LoadModel, LoadedByName, SaveModel, load_model, load_model_with};
#[cfg(feature = "keras_files")]
pub(crate) use files::{NamedWeights, cast};
pub use fit::Fit;
pub use history::{History, Logs};
pub use input::Input;
pub use json::{KerasVersion, model_from_json};
pub use model::{Model, ModelLayer};
pub use pad_sequences::{PadSequences, Side, pad_sequences};
pub use plot::{Plot, plot_model};
pub use recipe::CallArguments;
pub use sequential::Sequential;
pub use symbol::{KerasTensor, SharedLayer, Symbols};
pub use to_estimator::model_to_estimator;
pub use train_step::{TrainStep, Trained};
pub(crate) use weights::is_hdf5;
#[cfg(not(feature = "keras_files"))]
pub(crate) use weights::without_feature;
