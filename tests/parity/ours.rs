//! Our names on the page, as paths: a path that does not exist does not compile.

use std::collections::BTreeSet;

use estimand::graph::Combiner;
use estimand::head::{LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead};
use estimand::nn::Reduction;
use estimand::nn::column::{
    ColumnKey, LinearModel, default_embedding_column, linear_model, make_parse_example_spec, sequence_numeric_column,
    shared_embeddings, weighted_categorical_column,
};
use estimand::prelude::*;
use estimand::premade::{BaselineEstimator, DnnEstimator, DnnLinearCombinedEstimator, LinearEstimator};
use estimand::{
    Cluster, EstimatorBuilder, Export, ExportOutput, Exporter, InputFn, Metrics, MetricsContext, Prediction, Strategy,
    Timer, TrainSession, VocabInfo, VocabSource, data, export, head, hook, keras, nn, premade, tensor, update,
};

/// Types, by their paths.
macro_rules! types {
    ($($path:path),* $(,)?) => { [$({ fn _exists(_: &$path) {} stringify!($path) }),*] };
}

/// Traits, by their paths.
macro_rules! traits {
    ($($path:path),* $(,)?) => { [$({ fn _exists(_: impl $path) {} stringify!($path) }),*] };
}

/// Variants of enums, by their paths.
macro_rules! variants {
    ($($path:path),* $(,)?) => { [$({ let _ = |value: &_| matches!(value, $path { .. }); stringify!($path) }),*] };
}

/// Functions and methods, by their paths; where they are generic, with types that they take.
macro_rules! functions {
    ($($path:path $(as $signature:ty)?),* $(,)?) => { [$({ let _ = $path $(as $signature)?; stringify!($path) }),*] };
}

/// All names of ours that the page has.
pub fn names() -> BTreeSet<String> {
    let all = [
        &types()[..],
        &traits(),
        &variants(),
        &estimator(),
        &hooks(),
        &premades(),
        &heads(),
        &columns(),
        &inputs(),
        &keras_names(),
    ];
    all.concat().into_iter().map(|path| path.replace(' ', "")).collect()
}

type Text = &'static str;
type Hidden = [usize; 1];
type Transform = fn(&Tensor) -> Tensor;
type StopFn = fn(&hook::HookContext<'_>) -> Result<Option<String>>;
type FeedFn = fn(&hook::HookContext<'_>) -> Result<Array>;
type ReceiveFn = fn(&Graph) -> Result<export::ServingInputReceiver>;
type LossFn = fn(&head::LossContext<'_>) -> Tensor;

fn types() -> Vec<Text> {
    types![
        Activation,
        BaselineClassifier,
        BaselineEstimator,
        BaselineRegressor,
        BinaryClassHead,
        ColumnKey,
        Combiner,
        DnnClassifier,
        DnnEstimator,
        DnnLinearCombinedClassifier,
        DnnLinearCombinedEstimator,
        DnnLinearCombinedRegressor,
        DnnRegressor,
        Estimator,
        EstimatorBuilder,
        EstimatorSpec,
        Every,
        Export<'_>,
        ExportOutput,
        HParams,
        LinearClassifier,
        LinearEstimator,
        LinearModel,
        LinearRegressor,
        LogisticRegressionHead,
        Metrics,
        MetricsContext<'_>,
        Mode,
        ModelFnContext<'_>,
        MultiClassHead,
        MultiHead,
        MultiLabelHead,
        Prediction,
        PoissonRegressionHead,
        PredictSpec<'_>,
        Reduction,
        RegressionHead,
        RunConfig,
        Strategy,
        Timer,
        TrainSpec<'_>,
        VocabInfo,
        VocabSource,
        WarmStartSettings,
        head::LabelledBatch,
        head::LossContext<'_>,
        export::BestExporter,
        export::ExportAllSpec,
        export::ExportSpec,
        export::FinalExporter,
        export::LatestExporter,
        export::MetricOps,
        export::ServingInputReceiver,
        export::SupervisedInputReceiver,
        export::SupervisedOutput,
        export::SupervisedReceiver,
        hook::BeginContext<'_>,
        hook::CheckpointSaverHook,
        hook::FeedFnHook<'_>,
        hook::FinalOpsHook,
        hook::GlobalStepWaiterHook,
        hook::HookContext<'_>,
        hook::InMemoryEvaluatorHook<'_>,
        hook::LoggingTensorHook,
        hook::NanTensorHook,
        hook::ProfilerHook,
        hook::StepCounterHook,
        hook::StopAtStepHook,
        hook::StopIfHook,
        hook::SummarySaverHook,
        nn::column::LinearOutput,
        premade::OptimizerChoice,
    ]
    .map(|path| path.trim_end_matches("<'_>"))
    .to_vec()
}

fn traits() -> Vec<Text> {
    traits![Exporter, Head, HeadSpec, InputFn, hook::CheckpointListener, hook::Hook].to_vec()
}

fn variants() -> Vec<Text> {
    variants![
        Every::Never,
        Every::Secs,
        Every::Steps,
        ExportOutput::Classification,
        ExportOutput::Predict,
        ExportOutput::Regression,
        Mode::Eval,
        Mode::Predict,
        Mode::Train,
        head::Training::Optimizer,
        head::Training::TrainOp,
        tensor::ErrorKind::Diverged,
    ]
    .to_vec()
}

fn estimator() -> Vec<Text> {
    let estimator = functions![
        Estimator::experimental_export_all_saved_models as fn(&_, Text, _) -> _,
        Estimator::export_saved_model as fn(&_, Text, export::Receiver) -> _,
        export::BestExporter::exports_to_keep as fn(_, usize) -> _,
        export::BestExporter::compare as fn(_, fn(&Metrics, &Metrics) -> bool) -> _,
        export::LatestExporter::exports_to_keep as fn(_, usize) -> _,
        export::Receiver::columns as fn(Columns) -> _,
        export::Receiver::like,
        export::Receiver::of as fn(ReceiveFn) -> _,
        export::Receiver::parsing,
        export::Receiver::raw,
        export::Receiver::tensor,
        export::ServingInputReceiver::alternative as fn(_, Text, [(String, Tensor); 1]) -> _,
        export::SupervisedOutput::as_eval_signature_def,
        export::SupervisedOutput::as_train_signature_def,
        export::SupervisedReceiver::like,
        export::SupervisedReceiver::raw,
        Estimator::new as fn(fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>) -> _,
        EstimatorBuilder::config,
        EstimatorBuilder::model_dir as fn(_, Text) -> _,
        EstimatorBuilder::params,
        EstimatorBuilder::warm_start_from as fn(_, Text) -> _,
        Estimator::add_metrics as fn(_, fn(&MetricsContext<'_>) -> Result<Vec<(Text, nn::metric::Metric)>>) -> _,
        Estimator::config,
        Estimator::eval_dir,
        Estimator::evaluate as fn(&Estimator, Dataset) -> _,
        Estimator::latest_checkpoint,
        Estimator::model_dir,
        Estimator::params,
        Estimator::predict as fn(&'static Estimator, Dataset) -> _,
        Estimator::predictor,
        Estimator::train as fn(&Estimator, Dataset) -> _,
        Estimator::train_and_evaluate as fn(&'static Estimator, Dataset, Dataset) -> _,
        Estimator::variable_names,
        Estimator::variable_value,
        TrainSpec::new as fn(Dataset) -> _,
        TrainSpec::hook as fn(_, hook::NanTensorHook) -> _,
        TrainSpec::listener as fn(_, Listener) -> _,
        TrainSpec::max_steps,
        TrainSpec::steps,
        EvalSpec::new as fn(Dataset) -> _,
        Exporter::export as fn(&mut NoExport, &Export<'_>) -> _,
        Exporter::name as fn(&NoExport) -> &str,
        EvalSpec::best,
        EvalSpec::best_of as fn(_, Text) -> _,
        EvalSpec::checkpoint as fn(_, Text) -> _,
        EvalSpec::every,
        EvalSpec::exporter as fn(_, NoExport) -> _,
        EvalSpec::hook as fn(_, hook::NanTensorHook) -> _,
        EvalSpec::name as fn(_, Text) -> _,
        EvalSpec::start_delay_secs,
        EvalSpec::steps,
        EvalSpec::throttle_secs,
        PredictSpec::new as fn(Dataset) -> _,
        PredictSpec::by_batch,
        PredictSpec::best,
        PredictSpec::best_of as fn(_, Text) -> _,
        PredictSpec::checkpoint as fn(_, Text) -> _,
        PredictSpec::untrained,
        PredictSpec::hook as fn(_, hook::NanTensorHook) -> _,
        PredictSpec::keys as fn(_, Vec<Text>) -> _,
    ];
    let warm_start = functions![
        VocabInfo::axis,
        VocabInfo::backup_initializer,
        VocabInfo::n_oov_buckets,
        VocabInfo::new as fn(Text, Text) -> _,
        VocabInfo::new_vocab_size,
        VocabInfo::old_vocab_size,
        WarmStartSettings::apply,
        WarmStartSettings::named_vars as fn(_, [Text; 1]) -> _,
        WarmStartSettings::new as fn(Text) -> _,
        WarmStartSettings::only_vocab_vars,
        WarmStartSettings::optimizer_slots,
        WarmStartSettings::prev_var_name as fn(_, Text, Text) -> _,
        WarmStartSettings::saved_vars as fn(_, [Text; 1]) -> _,
        WarmStartSettings::vars as fn(_, Text) -> _,
        WarmStartSettings::vocab_info as fn(_, Text, _) -> _,
    ];
    let spec = functions![
        EstimatorSpec::new,
        EstimatorSpec::evaluation_hook as fn(_, hook::NanTensorHook) -> _,
        EstimatorSpec::export_output as fn(_, Text, _) -> _,
        ExportOutput::as_signature_def as fn(&_, Text, &_) -> _,
        EstimatorSpec::initial_value as fn(_, Text, _) -> _,
        EstimatorSpec::loss,
        EstimatorSpec::metric as fn(_, Text, _) -> _,
        EstimatorSpec::running_metric as fn(_, Text, _) -> _,
        EstimatorSpec::optimizer,
        EstimatorSpec::prediction as fn(_, Text, &Tensor) -> _,
        EstimatorSpec::prediction_hook as fn(_, hook::NanTensorHook) -> _,
        EstimatorSpec::ready_check as fn(_, fn(&TrainSession) -> Result<()>) -> _,
        EstimatorSpec::retention,
        EstimatorSpec::single_prediction,
        EstimatorSpec::train_op,
        EstimatorSpec::training_chief_hook as fn(_, hook::NanTensorHook) -> _,
        EstimatorSpec::training_hook as fn(_, hook::NanTensorHook) -> _,
        ModelFnContext::global_step,
        Graph::regularization_losses,
        Graph::updates,
    ];
    let config = functions![
        RunConfig::checkpoint_save_graph_def,
        RunConfig::cluster,
        RunConfig::device,
        RunConfig::eval_distribute,
        RunConfig::input_threads,
        RunConfig::keep_checkpoint_every_n_hours,
        RunConfig::keep_checkpoint_max as fn(_, usize) -> _,
        RunConfig::log_step_count_steps as fn(_, u64) -> _,
        RunConfig::max_worker_delay_secs as fn(_, f64) -> _,
        RunConfig::model_dir as fn(_, Text) -> _,
        RunConfig::running_metrics as fn(_, [Text; 1]) -> _,
        RunConfig::save_checkpoints,
        RunConfig::save_summary_steps,
        RunConfig::tf_random_seed,
        RunConfig::threads,
        RunConfig::train_distribute,
        RunConfig::check,
        Cluster::addresses,
        Cluster::eval_master,
        Cluster::global_id,
        Cluster::is_chief,
        Cluster::jobs,
        Cluster::master,
        Cluster::n_ps,
        Cluster::n_workers,
        Cluster::service,
        Cluster::task_index,
        Cluster::task_type,
    ];
    [&estimator[..], &warm_start, &spec, &config].concat()
}

/// Stands for an exporter of one's own.
struct NoExport;

impl Exporter for NoExport {
    fn name(&self) -> Text {
        "none"
    }

    fn export(&mut self, _export: &Export<'_>) -> Result<Option<std::path::PathBuf>> {
        Ok(None)
    }
}

/// Stands for a listener of one's own.
struct Listener;

impl hook::CheckpointListener for Listener {}

fn hooks() -> Vec<Text> {
    functions![
        hook::BeginContext::feed,
        hook::BeginContext::fetch,
        hook::BeginContext::fetch_named,
        hook::CheckpointListener::after_save as fn(&mut Listener, &TrainSession, u64) -> _,
        hook::CheckpointListener::begin as fn(&mut Listener) -> _,
        hook::CheckpointListener::before_save as fn(&mut Listener, &TrainSession, u64) -> _,
        hook::CheckpointListener::end as fn(&mut Listener, &TrainSession, u64) -> _,
        hook::CheckpointSaverHook::listener as fn(_, Listener) -> _,
        hook::CheckpointSaverHook::new,
        hook::EarlyStoppingHook::every as fn(hook::EarlyStoppingHook<StopFn>, Every) -> _,
        hook::EarlyStoppingHook::new as fn(StopFn) -> _,
        hook::FeedFnHook::named as fn(_, Text, FeedFn) -> _,
        hook::FeedFnHook::tensor as fn(_, &Tensor, FeedFn) -> _,
        hook::FinalOpsHook::feed as fn(_, Text, Array) -> _,
        hook::FinalOpsHook::named as fn(_, Text) -> _,
        hook::FinalOpsHook::tensor as fn(_, Text, &Tensor) -> _,
        hook::FinalOpsHook::values,
        hook::GlobalStepWaiterHook::new,
        hook::Hook::after_create_session as fn(&mut hook::NanTensorHook, &mut hook::HookContext<'_>) -> _,
        hook::Hook::after_run as fn(&mut hook::NanTensorHook, &mut hook::HookContext<'_>) -> _,
        hook::Hook::before_run as fn(&mut hook::NanTensorHook, &mut hook::HookContext<'_>) -> _,
        hook::Hook::begin as fn(&mut hook::NanTensorHook, &mut hook::BeginContext<'_>) -> _,
        hook::Hook::end as fn(&mut hook::NanTensorHook, &mut hook::HookContext<'_>) -> _,
        hook::InMemoryEvaluatorHook::every_n_iter,
        hook::InMemoryEvaluatorHook::new as fn(&'static Estimator, Dataset) -> _,
        hook::HookContext::feed,
        hook::HookContext::global_step,
        hook::HookContext::loss,
        hook::HookContext::request_stop as fn(&mut hook::HookContext<'static>, Text),
        hook::HookContext::session,
        hook::HookContext::value,
        hook::LoggingTensorHook::at_end,
        hook::LoggingTensorHook::loss_and_step,
        hook::LoggingTensorHook::named as fn(_, Text) -> _,
        hook::LoggingTensorHook::new,
        hook::LoggingTensorHook::tensor as fn(_, Text, &Tensor) -> _,
        hook::NanTensorHook::fail_on_nan_loss,
        hook::NanTensorHook::new,
        hook::ProfilerHook::every,
        hook::ProfilerHook::output_dir as fn(_, Text) -> _,
        hook::StepCounterHook::new,
        hook::StopAtStepHook::after_steps,
        hook::StopAtStepHook::at_step,
        hook::StopIfHook::eval_dir as fn(_, Text) -> _,
        hook::StopIfHook::every,
        hook::StopIfHook::higher as fn(Text, f64) -> _,
        hook::StopIfHook::lower as fn(Text, f64) -> _,
        hook::StopIfHook::min_steps,
        hook::StopIfHook::no_decrease as fn(Text, u64) -> _,
        hook::StopIfHook::no_increase as fn(Text, u64) -> _,
        hook::SummarySaverHook::new,
        hook::SummarySaverHook::output_dir as fn(_, Text) -> _,
        hook::SummarySaverHook::summaries,
        Timer::is_due,
        Timer::last_step,
        Timer::new,
        Timer::reset,
        Timer::trigger,
        TrainSession::take_timeline,
        TrainSession::time_next_run,
    ]
    .to_vec()
}

fn premades() -> Vec<Text> {
    functions![
        BaselineClassifier::new,
        BaselineEstimator::new as fn(BinaryClassHead) -> _,
        BaselineRegressor::new,
        LinearClassifier::new as fn(Columns) -> _,
        LinearEstimator::new as fn(BinaryClassHead, Columns) -> _,
        LinearRegressor::new as fn(Columns) -> _,
        DnnClassifier::new as fn(Hidden, Columns) -> _,
        DnnEstimator::new as fn(BinaryClassHead, Hidden, Columns) -> _,
        DnnRegressor::new as fn(Hidden, Columns) -> _,
        DnnLinearCombinedClassifier::new,
        DnnLinearCombinedEstimator::new as fn(BinaryClassHead) -> _,
        DnnLinearCombinedRegressor::new,
        premade::Premade::config as fn(DnnEstimator, _) -> _,
        premade::Premade::model_dir as fn(DnnEstimator, Text) -> _,
        premade::Premade::warm_start_from as fn(DnnEstimator, Text) -> _,
        premade::Premade::n_classes as fn(DnnClassifier, _) -> _,
        premade::Premade::label_vocabulary as fn(DnnClassifier, Vec<Text>) -> _,
        premade::Premade::label_dimension as fn(DnnRegressor, _) -> _,
        DnnClassifier::weight_column as fn(_, Text) -> _,
        DnnRegressor::weight_column as fn(_, Text) -> _,
        DnnClassifier::loss_reduction,
        DnnRegressor::loss_reduction,
        BaselineClassifier::optimizer as fn(_, Text) -> _,
        LinearClassifier::optimizer as fn(_, Text) -> _,
        DnnClassifier::optimizer as fn(_, Text) -> _,
        DnnClassifier::batch_norm,
        DnnLinearCombinedClassifier::batch_norm,
        premade::Premade::sparse_combiner as fn(LinearEstimator, _) -> _,
        premade::Premade::activation_fn as fn(DnnEstimator, _) -> _,
        premade::Premade::dropout as fn(DnnEstimator, _) -> _,
        premade::Premade::linear_feature_columns as fn(DnnLinearCombinedEstimator, Columns) -> _,
        premade::Premade::linear_optimizer as fn(DnnLinearCombinedEstimator, Text) -> _,
        premade::Premade::linear_sparse_combiner as fn(DnnLinearCombinedEstimator, _) -> _,
        premade::Premade::dnn_feature_columns as fn(DnnLinearCombinedEstimator, Columns) -> _,
        premade::Premade::dnn_hidden_units as fn(DnnLinearCombinedEstimator, Hidden) -> _,
        premade::Premade::dnn_optimizer as fn(DnnLinearCombinedEstimator, Text) -> _,
        premade::Premade::dnn_activation_fn as fn(DnnLinearCombinedEstimator, _) -> _,
        premade::Premade::dnn_dropout as fn(DnnLinearCombinedEstimator, _) -> _,
        premade::Network::logits as fn(&premade::Linear, &ModelFnContext<'_>, usize) -> _,
    ]
    .to_vec()
}

fn heads() -> Vec<Text> {
    functions![
        BinaryClassHead::new,
        BinaryClassHead::label_vocabulary as fn(_, Vec<Text>) -> _,
        BinaryClassHead::loss_fn as fn(_, LossFn) -> _,
        BinaryClassHead::loss_reduction,
        BinaryClassHead::name as fn(_, Text) -> _,
        BinaryClassHead::thresholds as fn(_, Vec<f64>) -> _,
        BinaryClassHead::weight_column as fn(_, Text) -> _,
        MultiClassHead::new,
        MultiClassHead::label_vocabulary as fn(_, Vec<Text>) -> _,
        MultiClassHead::loss_fn as fn(_, LossFn) -> _,
        MultiClassHead::loss_reduction,
        MultiClassHead::name as fn(_, Text) -> _,
        MultiClassHead::weight_column as fn(_, Text) -> _,
        MultiLabelHead::new,
        MultiLabelHead::label_vocabulary as fn(_, Vec<Text>) -> _,
        MultiLabelHead::loss_fn as fn(_, LossFn) -> _,
        MultiLabelHead::loss_reduction,
        MultiLabelHead::metrics_of_classes as fn(_, Vec<Text>) -> _,
        MultiLabelHead::name as fn(_, Text) -> _,
        MultiLabelHead::thresholds as fn(_, Vec<f64>) -> _,
        MultiLabelHead::weight_column as fn(_, Text) -> _,
        RegressionHead::new,
        RegressionHead::inverse_link_fn as fn(_, Transform) -> _,
        RegressionHead::label_dimension,
        RegressionHead::loss_fn as fn(_, LossFn) -> _,
        RegressionHead::loss_reduction,
        RegressionHead::name as fn(_, Text) -> _,
        RegressionHead::weight_column as fn(_, Text) -> _,
        PoissonRegressionHead::new,
        PoissonRegressionHead::compute_full_loss,
        PoissonRegressionHead::label_dimension,
        PoissonRegressionHead::loss_reduction,
        PoissonRegressionHead::name as fn(_, Text) -> _,
        PoissonRegressionHead::weight_column as fn(_, Text) -> _,
        LogisticRegressionHead::new,
        LogisticRegressionHead::loss_reduction,
        LogisticRegressionHead::name as fn(_, Text) -> _,
        LogisticRegressionHead::weight_column as fn(_, Text) -> _,
        MultiHead::new,
        MultiHead::head as fn(_, BinaryClassHead) -> _,
        MultiHead::weighted_head as fn(_, _, BinaryClassHead) -> _,
        Head::logits_dimension as fn(&MultiHead) -> _,
        Head::measures as fn(&MultiHead, &head::LabelledBatch, &Tensor) -> _,
        Head::name as fn(&MultiHead) -> _,
        Head::predictions as fn(&MultiHead, &Tensor) -> _,
        HeadSpec::spec as fn(&MultiHead, &ModelFnContext<'_>, &Tensor, Optimizer) -> _,
        head::Measures::loss,
        head::Measures::metrics,
    ]
    .to_vec()
}

fn columns() -> Vec<Text> {
    functions![
        numeric_column as fn(Text) -> _,
        nn::column::NumericColumn::default_value as fn(_, Array) -> _,
        nn::column::NumericColumn::dtype,
        nn::column::NumericColumn::log,
        nn::column::NumericColumn::min_max,
        nn::column::NumericColumn::normalizer as fn(_, Transform) -> _,
        nn::column::NumericColumn::shape as fn(_, Hidden) -> _,
        nn::column::NumericColumn::z_score,
        bucketized_column as fn(&nn::column::NumericColumn, [i32; 1]) -> _,
        categorical_column_with_hash_bucket as fn(Text, _) -> _,
        nn::column::HashBucketColumn::dtype,
        categorical_column_with_identity as fn(Text, _) -> _,
        nn::column::IdentityColumn::default_value,
        categorical_column_with_vocabulary_file as fn(Text, Text) -> _,
        nn::column::VocabularyFileColumn::default_value,
        nn::column::VocabularyFileColumn::dtype,
        nn::column::VocabularyFileColumn::n_oov_buckets,
        nn::column::VocabularyFileColumn::vocabulary_size,
        categorical_column_with_vocabulary_list as fn(Text, [Text; 1]) -> _,
        nn::column::VocabularyListColumn::default_value,
        nn::column::VocabularyListColumn::n_oov_buckets,
        crossed_column as fn([Text; 2], _) -> _,
        nn::column::CrossedColumn::hash_key,
        weighted_categorical_column as fn(FeatureColumn, Text) -> _,
        nn::column::WeightedColumn::dtype,
        indicator_column as fn(FeatureColumn) -> _,
        default_embedding_column as fn(FeatureColumn) -> _,
        embedding_column as fn(FeatureColumn, _) -> _,
        nn::column::EmbeddingColumn::checkpoint as fn(_, Text, Text) -> _,
        nn::column::EmbeddingColumn::combiner,
        nn::column::EmbeddingColumn::initializer,
        nn::column::EmbeddingColumn::max_norm,
        nn::column::EmbeddingColumn::trainable,
        shared_embeddings as fn([FeatureColumn; 2], _) -> _,
        nn::column::SharedEmbeddings::checkpoint as fn(_, Text, Text) -> _,
        nn::column::SharedEmbeddings::columns,
        nn::column::SharedEmbeddings::combiner,
        nn::column::SharedEmbeddings::initializer,
        nn::column::SharedEmbeddings::max_norm,
        nn::column::SharedEmbeddings::shared_embedding_collection_name as fn(_, Text) -> _,
        nn::column::SharedEmbeddings::trainable,
        sequence_numeric_column as fn(Text) -> _,
        nn::column::SequenceNumericColumn::default_value,
        nn::column::SequenceNumericColumn::dtype,
        nn::column::SequenceNumericColumn::normalizer as fn(_, Transform) -> _,
        nn::column::SequenceNumericColumn::shape as fn(_, Hidden) -> _,
        nn::column::SequenceCategoricalColumn::of as fn(nn::column::IdentityColumn) -> _,
        nn::column::sequence_categorical_column_with_hash_bucket as fn(Text, _) -> _,
        nn::column::sequence_categorical_column_with_identity as fn(Text, _) -> _,
        nn::column::sequence_categorical_column_with_vocabulary_file as fn(Text, Text) -> _,
        nn::column::sequence_categorical_column_with_vocabulary_list as fn(Text, [Text; 1]) -> _,
        input_layer as fn(&nn::Inputs, Columns) -> _,
        linear_model as fn(&nn::Inputs, Columns) -> _,
        LinearModel::new as fn(Columns) -> _,
        LinearModel::sparse_combiner,
        LinearModel::trainable,
        LinearModel::units,
        make_parse_example_spec as fn(Columns) -> _,
        nn::column::classifier_parse_example_spec as fn(Columns, &str, _, _, Option<&str>) -> _,
        nn::column::regressor_parse_example_spec as fn(Columns, &str, _, _, Option<&str>) -> _,
    ]
    .to_vec()
}

fn inputs() -> Vec<Text> {
    functions![
        data::input_fn::arrays as fn(Array) -> _,
        data::input_fn::ArraysInput::batch_size,
        data::input_fn::ArraysInput::labels as fn(_, Array) -> _,
        data::input_fn::ArraysInput::n_epochs,
        data::input_fn::ArraysInput::shuffle,
    ]
    .to_vec()
}

type Rows = (Array, Array);
type StepFn = fn(&keras::TrainStep<'_>) -> Result<keras::Trained>;

fn keras_names() -> Vec<Text> {
    let types = types![
        Adagrad,
        Adam,
        EarlyStopping,
        Ftrl,
        RmsProp,
        Schedule,
        Sgd,
        keras::BackupAndRestore,
        keras::Compile,
        keras::CsvLogger,
        keras::Evaluate<'_>,
        keras::Fit<'_>,
        keras::History,
        keras::LambdaCallback<'_>,
        keras::LearningRateScheduler<'_>,
        keras::ModelCheckpoint,
        keras::Predict<'_>,
        keras::ReduceLrOnPlateau,
        keras::TensorBoard,
        keras::TerminateOnNan,
        keras::TrainStep<'_>,
        keras::Trained,
        update::Adadelta,
        update::Adamax,
        update::Lion,
        update::Nadam,
    ]
    .map(|path| path.trim_end_matches("<'_>"));
    let variants = variants![
        Schedule::Cosine,
        Schedule::CosineRestarts,
        Schedule::Exponential,
        Schedule::InverseTime,
        Schedule::Piecewise,
        Schedule::Polynomial,
    ];
    let functions = functions![
        Optimizer::clip,
        Optimizer::ema,
        Optimizer::keras as fn(Sgd, f64) -> _,
        Optimizer::new as fn(Sgd, f64) -> _,
        Optimizer::weight_decay,
        keras::Compile::new as fn(Text, Text) -> _,
        keras::Fit::verbose,
        keras::Model::call,
        keras::Model::compile,
        keras::Model::evaluate as fn(_, Rows) -> _,
        keras::Model::fit as fn(_, Rows) -> _,
        keras::Model::get_layer,
        keras::Model::get_weights,
        keras::Model::layers,
        keras::Model::load_weights as fn(_, Text) -> _,
        keras::Model::predict as fn(_, Array) -> _,
        keras::Model::predict_all as fn(_, Array) -> _,
        keras::Model::predict_on_batch as fn(_, Array) -> _,
        keras::Model::save_weights as fn(_, Text) -> _,
        keras::Model::set_train_step as fn(_, StepFn),
        keras::Model::set_weights,
        keras::Model::summary,
        keras::Model::test_on_batch as fn(_, Rows) -> _,
        keras::Model::weight_names,
        keras::Model::train_on_batch as fn(_, Rows) -> _,
        keras::ModelLayer::is_trainable,
        keras::model_to_estimator,
        nn::optimizer::from_json,
        nn::optimizer::to_json,
    ];
    [&types[..], &variants, &functions, &traits![keras::Callback]].concat()
}
