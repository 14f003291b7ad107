//! The gRPC interfaces of TensorFlow Serving and KServe, without generated code: a path names the
//! function that answers, `unary.rs` reads and writes its messages, which are in `messages.rs`,
//! `predict_call.rs` and `inference_messages.rs`, and `reflection/` describes them to clients.

pub(crate) mod inference;
pub(crate) mod inference_messages;
pub(crate) mod messages;
mod model_service;
pub(crate) mod predict_call;
mod prediction;
mod reflection;
mod unary;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response};

use crate::core::Core;
use crate::infer::Deadline;
use crate::metrics::Api;
use crate::status::{Answer, Code, Status};
use inference_messages::*;
use messages::*;
use predict_call::{PredictCall, PredictReply};
pub(crate) use prediction::{arrays, examples};
pub(crate) use unary::{FromMessage, ReplyBody};
use unary::{Rpc, failure};

/// The method by which load balancers ask. It needs no token.
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// Whether a request is one of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a request.
pub(crate) async fn answer(core: Arc<Core>, request: Request<Incoming>) -> Response<ReplyBody> {
    let allowed = match request.uri().path() == HEALTH {
        true => Ok(()),
        false => core.settings.tokens.check(request.headers()),
    };
    let share = match allowed.and_then(|()| core.admit()) {
        Ok(share) => share,
        Err(status) => return failure(status),
    };
    let limit = timeout(request.headers()).unwrap_or(core.settings.timeout);
    let deadline = Deadline::after(Some(limit));
    // A slow client must not hold the request longer than its limit either.
    let answer = deadline.wait(dispatch(Arc::clone(&core), request, deadline)).await;
    drop(share);
    answer.unwrap_or_else(failure)
}

/// The future of the method that a request is for. In a box: futures of other methods are larger.
fn dispatch(core: Arc<Core>, request: Request<Incoming>, deadline: Deadline) -> Boxed<Response<ReplyBody>> {
    match request.uri().path() {
        "/tensorflow.serving.PredictionService/Predict" => Box::pin(unary::answer::<Predict>(core, request, deadline)),
        "/tensorflow.serving.PredictionService/Classify" => {
            Box::pin(unary::answer::<Classify>(core, request, deadline))
        }
        "/tensorflow.serving.PredictionService/Regress" => Box::pin(unary::answer::<Regress>(core, request, deadline)),
        "/tensorflow.serving.PredictionService/MultiInference" => {
            Box::pin(unary::answer::<MultiInference>(core, request, deadline))
        }
        "/tensorflow.serving.PredictionService/GetModelMetadata" => {
            Box::pin(unary::answer::<Metadata>(core, request, deadline))
        }
        "/tensorflow.serving.ModelService/GetModelStatus" => {
            Box::pin(unary::answer::<ModelStatus>(core, request, deadline))
        }
        "/tensorflow.serving.ModelService/HandleReloadConfigRequest" => {
            Box::pin(unary::answer::<Reload>(core, request, deadline))
        }
        "/inference.GRPCInferenceService/ServerLive" => Box::pin(unary::answer::<Live>(core, request, deadline)),
        "/inference.GRPCInferenceService/ServerReady" => Box::pin(unary::answer::<Ready>(core, request, deadline)),
        "/inference.GRPCInferenceService/ModelReady" => Box::pin(unary::answer::<ModelReady>(core, request, deadline)),
        "/inference.GRPCInferenceService/ServerMetadata" => {
            Box::pin(unary::answer::<ServerMetadata>(core, request, deadline))
        }
        "/inference.GRPCInferenceService/ModelMetadata" => {
            Box::pin(unary::answer::<ModelMetadata>(core, request, deadline))
        }
        "/inference.GRPCInferenceService/ModelInfer" => Box::pin(unary::answer::<ModelInfer>(core, request, deadline)),
        "/inference.GRPCInferenceService/RepositoryIndex" => Box::pin(unary::answer::<Index>(core, request, deadline)),
        "/inference.GRPCInferenceService/RepositoryModelLoad" => {
            Box::pin(unary::answer::<Load>(core, request, deadline))
        }
        "/inference.GRPCInferenceService/RepositoryModelUnload" => {
            Box::pin(unary::answer::<Unload>(core, request, deadline))
        }
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
            Box::pin(async move { reflection::answer(request).await.map(ReplyBody::Other) })
        }
        HEALTH => Box::pin(unary::answer::<Health>(core, request, deadline)),
        path => {
            let unknown = Status::new(Code::Unimplemented, format!("there is no method {path}"));
            Box::pin(std::future::ready(failure(unknown)))
        }
    }
}

/// A future that a connection may move to another thread.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

macro_rules! rpc {
    ($name:ident, $request:ty => $response:ty, $api:expr, $model:expr, $answer:expr) => {
        struct $name;

        impl Rpc for $name {
            type Request = $request;
            type Response = $response;
            const API: Option<Api> = $api;

            fn model(request: &$request) -> Option<&str> {
                let model: fn(&$request) -> Option<&str> = $model;
                model(request)
            }

            fn answer(
                core: &Arc<Core>,
                request: $request,
                deadline: Deadline,
            ) -> impl Future<Output = Answer<$response>> + Send {
                $answer(core, request, deadline)
            }
        }
    };
}

fn name(spec: Option<&ModelSpec>) -> Option<&str> {
    spec.map(|spec| spec.name.as_str())
}

rpc!(Predict, PredictCall => PredictReply, Some(Api::Predict), |r| name(r.model_spec.as_ref()), prediction::predict);
rpc!(Classify, ExampleRequest => ClassificationResponse, Some(Api::Classify), |r| name(r.model_spec.as_ref()), prediction::classify);
rpc!(Regress, ExampleRequest => RegressionResponse, Some(Api::Regress), |r| name(r.model_spec.as_ref()), prediction::regress);
rpc!(
    MultiInference,
    MultiInferenceRequest => MultiInferenceResponse,
    Some(Api::MultiInference),
    |r| name(r.tasks.first().and_then(|task| task.model_spec.as_ref())),
    prediction::multi_inference
);
rpc!(Metadata, GetModelMetadataRequest => GetModelMetadataResponse, None, |_| None, prediction::metadata);
rpc!(ModelStatus, GetModelStatusRequest => GetModelStatusResponse, None, |_| None, model_service::status);
rpc!(Reload, ReloadConfigRequest => ReloadConfigResponse, None, |_| None, model_service::reload);
rpc!(Health, HealthCheckRequest => HealthCheckResponse, None, |_| None, model_service::health);
rpc!(Live, Nothing => YesResponse, None, |_| None, inference::live);
rpc!(Ready, Nothing => YesResponse, None, |_| None, inference::ready);
rpc!(ModelReady, ModelVersionRequest => YesResponse, None, |_| None, inference::model_ready);
rpc!(ServerMetadata, Nothing => ServerMetadataResponse, None, |_| None, inference::server_metadata);
rpc!(ModelMetadata, ModelVersionRequest => ModelMetadataResponse, None, |_| None, inference::model_metadata);
rpc!(ModelInfer, ModelInferRequest => ModelInferResponse, Some(Api::Infer), |r| Some(r.model_name.as_str()), inference::infer);
rpc!(Index, RepositoryIndexRequest => RepositoryIndexResponse, None, |_| None, inference::index);
rpc!(Load, RepositoryModelRequest => Nothing, None, |_| None, inference::load);
rpc!(Unload, RepositoryModelRequest => Nothing, None, |_| None, inference::unload);

impl From<Status> for tonic::Status {
    fn from(status: Status) -> tonic::Status {
        tonic::Status::new(tonic::Code::from(status.code as i32), status.message)
    }
}

/// The time limit that a client sends, such as `250m`.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    // The protocol allows at most eight digits.
    if digits.len() > 8 {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(n * 3_600),
        "M" => Duration::from_secs(n * 60),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}
