//! TensorFlow's Estimator framework, reborn in Rust.
//!
//! One model description trains, evaluates and predicts. It is a [premade] estimator over feature
//! columns, or your own model function with an optional [head]. Below it are three parts: input
//! pipelines that resume exactly where they stopped ([data]); layers, losses, metrics and columns
//! ([nn]); and the engine ([graph]), which runs symbolic graphs with gradients on a CPU executor.
//! Results do not depend on the number of threads. The book is in `docs/`.
//!
//! ```
//! use estimand::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-crate-{}", std::process::id()));
//! let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
//! let data = Dataset::from_arrays(rows).label("y").repeat(200).batch(4);
//! let classifier = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
//! classifier.train(&data)?;
//! assert_eq!(classifier.evaluate(&data)?["auc"], 1.0);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```

#![warn(clippy::return_self_not_must_use)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod adapt;
mod add_metrics;
pub mod builtin;
mod cluster;
pub mod console;
mod criterion;
mod description;
mod early_stopping;
mod estimator;
mod estimator_spec;
pub mod events;
mod every;
mod experiment;
pub mod export;
mod feeding;
mod fingerprint;
mod from_input;
pub mod head;
pub mod hook;
mod hparams;
mod input_fn;
pub mod inspect;
mod kept_rows;
pub mod keras;
pub mod learn_runner;
pub mod manifest;
mod map_graph;
mod memory;
mod model_fn;
mod model_folder;
mod optimize_loss;
mod own_entries;
pub mod premade;
pub mod report;
mod run_config;
mod running_metrics;
mod saver;
mod session;
pub mod signal;
mod stored;
pub mod summary;
pub mod sweep;
mod timeline;
mod train_and_evaluate;
mod unfinished;
mod warm_start;

pub use adapt::{Adapt, Adapted, adapt, adapt_once};
pub use add_metrics::MetricsContext;
pub use cluster::Cluster;
pub use description::OpenOptions;
pub use early_stopping::{Best, EarlyStopping};
pub use estimand_data as data;
pub use estimand_nn as nn;
pub use estimand_nn::{Input, Inputs};
pub use estimand_tensor as tensor;
pub use estimand_update as update;
pub use estimator::{
    Estimator, EstimatorBuilder, EvalSpec, Finished, Metrics, PredictSpec, Prediction, Predictions, Predictor,
    TrainSpec,
};
pub use estimator_spec::{EstimatorSpec, ExportOutput, ReadyCheck, SERVING_DEFAULT};
pub use every::{Every, Passed, Timer};
pub use experiment::{ContinuousEval, Experiment, ExperimentResult, ExportStrategy, LastEvaluation};
pub use hparams::{HParams, Value};
pub use input_fn::{InputFn, InputFnContext};
pub use map_graph::MapGraph;
pub use model_fn::{ModelFn, ModelFnContext};
pub use model_folder::{FolderLock, MissingState};
pub use optimize_loss::{AdaptiveClipping, ClipGradients, OptimizeLoss, OptimizerSummary};
pub use report::Report;
pub use run_config::{Device, RunConfig, Strategy};
pub use saver::Retention;
pub use session::TrainSession;
pub use summary::Summaries;
pub use sweep::Sweep;
pub use timeline::{Span, Timeline};
pub use train_and_evaluate::{EvalSpecs, Evaluated, Export, Exporter, Trained};
pub use warm_start::{VocabInfo, VocabSource, WarmStartSettings};

/// Graphs and their execution: symbols, gradients, optimizers, executors, sessions, checkpoints,
/// and TensorFlow's graphs.
pub mod graph {
    pub use estimand_checkpoint as checkpoint;
    pub use estimand_cpu::Cpu;
    pub use estimand_engine::{Compiled, Eval, HostProgram, Session};
    pub use estimand_graph::*;
    #[cfg(feature = "onnx")]
    pub use estimand_onnx as onnx;
    pub use estimand_reference::Reference;
    pub use estimand_tf::{graph_def, saved_model, saved_model_writer};
}

/// The items that most programs use.
///
/// Other layers, losses, columns and heads are in [`nn`], [`nn::loss`], [`nn::column`] and
/// [`head`]; rules and constraints in [`update`]; ragged tensors, tables and options of ops in
/// [`graph`].
pub mod prelude {
    pub use crate::head::{BinaryClassHead, Head, HeadSpec, MultiClassHead, RegressionHead};
    pub use crate::premade::{
        BaselineClassifier, BaselineRegressor, DnnClassifier, DnnLinearCombinedClassifier, DnnLinearCombinedRegressor,
        DnnRegressor, KMeans, LinearClassifier, LinearRegressor, RnnClassifier,
    };
    pub use crate::{
        EarlyStopping, Estimator, EstimatorSpec, EvalSpec, Every, HParams, InputFnContext, MapGraph, ModelFnContext,
        PredictSpec, RunConfig, TrainSpec, WarmStartSettings,
    };
    pub use estimand_data::Dataset;
    pub use estimand_engine::{Eval, Session};
    pub use estimand_graph::{Graph, Initializer, Optimizer, Tensor, gradients};
    pub use estimand_nn::column::{
        Columns, FeatureColumn, bucketized_column, categorical_column_with_hash_bucket,
        categorical_column_with_identity, categorical_column_with_vocabulary_file,
        categorical_column_with_vocabulary_list, crossed_column, embedding_column, indicator_column, input_layer,
        numeric_column,
    };
    pub use estimand_nn::columns;
    pub use estimand_nn::{
        Activation, BatchNorm, Conv2d, Dense, Dropout, Embedding, Flatten, Layer, LayerInputs, Loss, Lstm, MaxPool2d,
        MeanSquaredError, RecurrentLayer, SigmoidCrossEntropy, SoftmaxCrossEntropy, SparseSoftmaxCrossEntropy,
    };
    pub use estimand_tensor::{Array, DType, Dim, Error, FeatureSpec, Mode, Result};
    pub use estimand_update::{Adagrad, Adam, Ftrl, RmsProp, Schedule, Sgd};
}

/// Mutations of input bytes for parser tests, shared with the fuzz targets.
#[cfg(test)]
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;

/// The README's and the book's programs are compiled and run as tests.
#[cfg(doctest)]
mod book {
    macro_rules! chapters {
        ($($name:ident => $path:literal),* $(,)?) => {$(
            #[doc = include_str!($path)]
            mod $name {}
        )*};
    }
    chapters! {
        readme => "../../../README.md",
        first_model => "../../../docs/first_model.md",
        your_csv => "../../../docs/your_csv.md",
        your_model => "../../../docs/your_model.md",
        train_and_evaluate => "../../../docs/train_and_evaluate.md",
        predict => "../../../docs/predict.md",
        export => "../../../docs/export.md",
        resume => "../../../docs/resume.md",
        promises => "../../../docs/promises.md",
        ops => "../../../docs/ops.md",
        graphs => "../../../docs/graphs.md",
        training => "../../../docs/training.md",
        layers => "../../../docs/layers.md",
        losses_and_metrics => "../../../docs/losses_and_metrics.md",
        keras => "../../../docs/keras.md",
        transfer_learning => "../../../docs/transfer_learning.md",
        preprocessing => "../../../docs/preprocessing.md",
        columns => "../../../docs/columns.md",
        features => "../../../docs/features.md",
        files => "../../../docs/files.md",
        data => "../../../docs/data.md",
        model_fn => "../../../docs/model_fn.md",
        input_fn => "../../../docs/input_fn.md",
        checkpoints => "../../../docs/checkpoints.md",
        profiling => "../../../docs/profiling.md",
        config => "../../../docs/config.md",
        evaluation => "../../../docs/evaluation.md",
        experiment => "../../../docs/experiment.md",
        hooks => "../../../docs/hooks.md",
        report => "../../../docs/report.md",
        sweep => "../../../docs/sweep.md",
        heads => "../../../docs/heads.md",
        premade => "../../../docs/premade.md",
        tensorboard => "../../../docs/tensorboard.md",
        warm_start => "../../../docs/warm_start.md",
    }
    #[cfg(feature = "keras_files")]
    chapters! {
        bring_keras => "../../../docs/bring_keras.md",
    }
}
