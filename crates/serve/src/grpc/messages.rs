//! The messages of TensorFlow Serving's services. Field numbers are facts of the protocol; the real
//! client checks them (`oracles/live/serve.py`).

use std::collections::BTreeMap;

use estimand_wire::collection_def::Any;
use estimand_wire::{SignatureDef, TensorProto};

/// The model that a request is for.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelSpec {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(oneof = "VersionChoice", tags = "2, 4")]
    pub(crate) version_choice: Option<VersionChoice>,
    #[prost(string, tag = "3")]
    pub(crate) signature_name: String,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum VersionChoice {
    #[prost(message, tag = "2")]
    Version(Int64Value),
    #[prost(string, tag = "4")]
    VersionLabel(String),
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Int64Value {
    #[prost(int64, tag = "1")]
    pub(crate) value: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PredictRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) inputs: BTreeMap<String, TensorProto>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) output_filter: Vec<String>,
}

#[allow(dead_code, reason = "clients read it; the server writes a `PredictReply`")]
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PredictResponse {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) outputs: BTreeMap<String, TensorProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) model_spec: Option<ModelSpec>,
}

/// Examples. They are kept as bytes: the model parses them itself.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Input {
    #[prost(oneof = "InputKind", tags = "1, 2")]
    pub(crate) kind: Option<InputKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum InputKind {
    #[prost(message, tag = "1")]
    ExampleList(ExampleList),
    #[prost(message, tag = "2")]
    ExampleListWithContext(ExampleListWithContext),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExampleList {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) examples: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExampleListWithContext {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) examples: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) context: Vec<u8>,
}

/// A `ClassificationRequest` or a `RegressionRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExampleRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(message, optional, tag = "2")]
    pub(crate) input: Option<Input>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Class {
    #[prost(string, tag = "1")]
    pub(crate) label: String,
    #[prost(float, tag = "2")]
    pub(crate) score: f32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Classifications {
    #[prost(message, repeated, tag = "1")]
    pub(crate) classes: Vec<Class>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClassificationResult {
    #[prost(message, repeated, tag = "1")]
    pub(crate) classifications: Vec<Classifications>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClassificationResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<ClassificationResult>,
    #[prost(message, optional, tag = "2")]
    pub(crate) model_spec: Option<ModelSpec>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Regression {
    #[prost(float, tag = "1")]
    pub(crate) value: f32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RegressionResult {
    #[prost(message, repeated, tag = "1")]
    pub(crate) regressions: Vec<Regression>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RegressionResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<RegressionResult>,
    #[prost(message, optional, tag = "2")]
    pub(crate) model_spec: Option<ModelSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InferenceTask {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(string, tag = "2")]
    pub(crate) method_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MultiInferenceRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) tasks: Vec<InferenceTask>,
    #[prost(message, optional, tag = "2")]
    pub(crate) input: Option<Input>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InferenceResult {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(oneof = "TaskResult", tags = "2, 3")]
    pub(crate) result: Option<TaskResult>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum TaskResult {
    #[prost(message, tag = "2")]
    Classification(ClassificationResult),
    #[prost(message, tag = "3")]
    Regression(RegressionResult),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MultiInferenceResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) results: Vec<InferenceResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetModelMetadataRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) metadata_field: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetModelMetadataResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) metadata: BTreeMap<String, Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SignatureDefMap {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) signature_def: BTreeMap<String, SignatureDef>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetModelStatusRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusProto {
    #[prost(int32, tag = "1")]
    pub(crate) error_code: i32,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelVersionStatus {
    #[prost(int64, tag = "1")]
    pub(crate) version: i64,
    #[prost(int32, tag = "2")]
    pub(crate) state: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<StatusProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetModelStatusResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) model_version_status: Vec<ModelVersionStatus>,
}

/// The question of a load balancer (`grpc.health.v1`).
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
}

/// A request that was logged, or that an export brings along.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PredictionLog {
    #[prost(oneof = "LogKind", tags = "2, 3, 6")]
    pub(crate) log_type: Option<LogKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum LogKind {
    #[prost(message, tag = "2")]
    Classify(ExampleLog),
    #[prost(message, tag = "3")]
    Regress(ExampleLog),
    #[prost(message, tag = "6")]
    Predict(PredictLog),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExampleLog {
    #[prost(message, optional, tag = "1")]
    pub(crate) request: Option<ExampleRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PredictLog {
    #[prost(message, optional, tag = "1")]
    pub(crate) request: Option<PredictRequest>,
}

/// New models, policies and labels.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReloadConfigRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<ModelServerConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelServerConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_config_list: Option<ModelConfigList>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelConfigList {
    #[prost(message, repeated, tag = "1")]
    pub(crate) config: Vec<ModelConfigProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelConfigProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) base_path: String,
    #[prost(string, tag = "4")]
    pub(crate) model_platform: String,
    #[prost(message, optional, tag = "7")]
    pub(crate) model_version_policy: Option<PolicyProto>,
    #[prost(btree_map = "string, int64", tag = "8")]
    pub(crate) version_labels: BTreeMap<String, i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PolicyProto {
    #[prost(oneof = "PolicyChoice", tags = "100, 101, 102")]
    pub(crate) choice: Option<PolicyChoice>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum PolicyChoice {
    #[prost(message, tag = "100")]
    Latest(LatestProto),
    #[prost(message, tag = "101")]
    All(AllProto),
    #[prost(message, tag = "102")]
    Specific(SpecificProto),
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct LatestProto {
    #[prost(uint32, tag = "1")]
    pub(crate) num_versions: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct AllProto {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SpecificProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) versions: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReloadConfigResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<StatusProto>,
}
