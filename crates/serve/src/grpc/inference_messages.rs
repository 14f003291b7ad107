//! The messages of the Open Inference Protocol (`inference.GRPCInferenceService`). Field numbers
//! are facts of the protocol; the real client checks them (`oracles/live/serve.py`).

use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Nothing {}

/// The answer to `ServerLive`, `ServerReady` and `ModelReady`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct YesResponse {
    #[prost(bool, tag = "1")]
    pub(crate) is_so: bool,
}

/// A question about a version of a model; the version is empty for the newest.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelVersionRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServerMetadataResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) extensions: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelMetadataResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) platform: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) inputs: Vec<TensorMetadata>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) outputs: Vec<TensorMetadata>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InferParameter {
    #[prost(oneof = "ParameterChoice", tags = "1, 2, 3")]
    pub(crate) choice: Option<ParameterChoice>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum ParameterChoice {
    #[prost(bool, tag = "1")]
    Bool(bool),
    #[prost(int64, tag = "2")]
    Int64(i64),
    #[prost(string, tag = "3")]
    Text(String),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InferTensorContents {
    #[prost(bool, repeated, tag = "1")]
    pub(crate) bool_contents: Vec<bool>,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) int_contents: Vec<i32>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) int64_contents: Vec<i64>,
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) uint_contents: Vec<u32>,
    #[prost(uint64, repeated, tag = "5")]
    pub(crate) uint64_contents: Vec<u64>,
    #[prost(float, repeated, tag = "6")]
    pub(crate) fp32_contents: Vec<f32>,
    #[prost(double, repeated, tag = "7")]
    pub(crate) fp64_contents: Vec<f64>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(crate) bytes_contents: Vec<Vec<u8>>,
}

/// An input or an output.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InferTensor {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape: Vec<i64>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) parameters: BTreeMap<String, InferParameter>,
    #[prost(message, optional, tag = "5")]
    pub(crate) contents: Option<InferTensorContents>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InferRequestedOutput {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) parameters: BTreeMap<String, InferParameter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelInferRequest {
    #[prost(string, tag = "1")]
    pub(crate) model_name: String,
    #[prost(string, tag = "2")]
    pub(crate) model_version: String,
    #[prost(string, tag = "3")]
    pub(crate) id: String,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) parameters: BTreeMap<String, InferParameter>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) inputs: Vec<InferTensor>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) outputs: Vec<InferRequestedOutput>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub(crate) raw_input_contents: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelInferResponse {
    #[prost(string, tag = "1")]
    pub(crate) model_name: String,
    #[prost(string, tag = "2")]
    pub(crate) model_version: String,
    #[prost(string, tag = "3")]
    pub(crate) id: String,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) parameters: BTreeMap<String, InferParameter>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) outputs: Vec<InferTensor>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub(crate) raw_output_contents: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RepositoryIndexRequest {
    #[prost(string, tag = "1")]
    pub(crate) repository_name: String,
    #[prost(bool, tag = "2")]
    pub(crate) ready: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelIndex {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(string, tag = "3")]
    pub(crate) state: String,
    #[prost(string, tag = "4")]
    pub(crate) reason: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RepositoryIndexResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) models: Vec<ModelIndex>,
}

/// A `RepositoryModelLoadRequest` or a `RepositoryModelUnloadRequest`. Parameters would name files;
/// they are not read.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RepositoryModelRequest {
    #[prost(string, tag = "1")]
    pub(crate) repository_name: String,
    #[prost(string, tag = "2")]
    pub(crate) model_name: String,
}
