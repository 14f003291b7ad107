//! The gRPC interfaces of TensorFlow Serving and KServe, without generated code: a path names the
//! function that answers, `messages.rs`, `predict_call.rs` and `inference_messages.rs` hold the
//! messages, `counted.rs` counts their bytes, and `reflection/` describes them to clients.

mod counted;
pub(crate) mod inference;
pub(crate) mod inference_messages;
pub(crate) mod messages;
mod model_service;
pub(crate) mod predict_call;
mod prediction;
mod reflection;

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response};
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use crate::core::Core;
use crate::infer::Deadline;
use crate::metrics::{Api, Entry};
use crate::status::{Answer, Code, Status};
use counted::{Counted, Held};
use inference_messages::*;
use messages::*;
use predict_call::{PredictCall, PredictReply};
pub(crate) use prediction::{arrays, examples};

/// The method by which load balancers ask. It needs no token.
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// Whether a request is one of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a request.
pub(crate) async fn answer(core: Arc<Core>, request: Request<Incoming>) -> Response<tonic::body::Body> {
    let allowed = match request.uri().path() == HEALTH {
        true => Ok(()),
        false => core.settings.tokens.check(request.headers()),
    };
    let share = match allowed.and_then(|()| core.admit()) {
        Ok(share) => share,
        Err(status) => return tonic::Status::from(status).into_http(),
    };
    let limit = timeout(request.headers()).unwrap_or(core.settings.timeout);
    let deadline = Deadline::after(Some(limit));
    // A slow client must not hold the request longer than its limit either.
    let answer = deadline.wait(dispatch(&core, request, deadline)).await;
    drop(share);
    answer.unwrap_or_else(|late| tonic::Status::from(late).into_http())
}

async fn dispatch(core: &Arc<Core>, request: Request<Incoming>, deadline: Deadline) -> Response<tonic::body::Body> {
    match request.uri().path() {
        "/tensorflow.serving.PredictionService/Predict" => unary::<Predict>(core, request, deadline).await,
        "/tensorflow.serving.PredictionService/Classify" => unary::<Classify>(core, request, deadline).await,
        "/tensorflow.serving.PredictionService/Regress" => unary::<Regress>(core, request, deadline).await,
        "/tensorflow.serving.PredictionService/MultiInference" => {
            unary::<MultiInference>(core, request, deadline).await
        }
        "/tensorflow.serving.PredictionService/GetModelMetadata" => unary::<Metadata>(core, request, deadline).await,
        "/tensorflow.serving.ModelService/GetModelStatus" => unary::<ModelStatus>(core, request, deadline).await,
        "/tensorflow.serving.ModelService/HandleReloadConfigRequest" => unary::<Reload>(core, request, deadline).await,
        "/inference.GRPCInferenceService/ServerLive" => unary::<Live>(core, request, deadline).await,
        "/inference.GRPCInferenceService/ServerReady" => unary::<Ready>(core, request, deadline).await,
        "/inference.GRPCInferenceService/ModelReady" => unary::<ModelReady>(core, request, deadline).await,
        "/inference.GRPCInferenceService/ServerMetadata" => unary::<ServerMetadata>(core, request, deadline).await,
        "/inference.GRPCInferenceService/ModelMetadata" => unary::<ModelMetadata>(core, request, deadline).await,
        "/inference.GRPCInferenceService/ModelInfer" => unary::<ModelInfer>(core, request, deadline).await,
        "/inference.GRPCInferenceService/RepositoryIndex" => unary::<Index>(core, request, deadline).await,
        "/inference.GRPCInferenceService/RepositoryModelLoad" => unary::<Load>(core, request, deadline).await,
        "/inference.GRPCInferenceService/RepositoryModelUnload" => unary::<Unload>(core, request, deadline).await,
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => reflection::answer(request).await,
        HEALTH => unary::<Health>(core, request, deadline).await,
        path => tonic::Status::unimplemented(format!("there is no method {path}")).into_http(),
    }
}

/// A future that a connection may move to another thread.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A method of a service.
trait Rpc: Send + 'static {
    type Request: prost::Message + Default + 'static;
    type Response: prost::Message + Default + 'static;
    /// The name in the metrics; `None` if the method is not counted.
    const API: Option<Api>;

    /// The model that a request is for.
    fn model(request: &Self::Request) -> String;

    fn answer(core: Arc<Core>, request: Self::Request, deadline: Deadline) -> Boxed<Answer<Self::Response>>;
}

macro_rules! rpc {
    ($name:ident, $request:ty => $response:ty, $api:expr, $model:expr, $answer:expr) => {
        struct $name;

        impl Rpc for $name {
            type Request = $request;
            type Response = $response;
            const API: Option<Api> = $api;

            fn model(request: &$request) -> String {
                let model: fn(&$request) -> Option<&str> = $model;
                model(request).unwrap_or_default().to_string()
            }

            fn answer(core: Arc<Core>, request: $request, deadline: Deadline) -> Boxed<Answer<$response>> {
                Box::pin(async move { $answer(&core, request, deadline).await })
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

/// Decodes a message, answers it, and encodes the answer.
async fn unary<M: Rpc>(
    core: &Arc<Core>,
    request: Request<Incoming>,
    deadline: Deadline,
) -> Response<tonic::body::Body> {
    let limit = core.settings.max_body_bytes;
    let service = Unary::<M> { core: Arc::clone(core), deadline, method: PhantomData };
    let codec = ProstCodec::<M::Response, M::Request>::default();
    let mut grpc = Grpc::new(codec).apply_max_message_size_config(Some(limit), Some(usize::MAX));
    // The message is in memory until it is answered, longer than its body.
    let held = Arc::new(Held::new(Arc::clone(core)));
    let request = request.map(|body| Counted::new(body, Arc::clone(&held)));
    let response = grpc.unary(service, request).await;
    drop(held);
    response
}

/// A method as the service that `tonic` calls.
struct Unary<M> {
    core: Arc<Core>,
    deadline: Deadline,
    method: PhantomData<M>,
}

impl<M: Rpc> UnaryService<M::Request> for Unary<M> {
    type Response = M::Response;
    type Future = Boxed<Result<tonic::Response<M::Response>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<M::Request>) -> Self::Future {
        let (core, deadline, request) = (Arc::clone(&self.core), self.deadline, request.into_inner());
        Box::pin(async move {
            let (start, model) = (Instant::now(), M::model(&request));
            let answer = M::answer(Arc::clone(&core), request, deadline).await;
            if let (Some(api), Some(model)) = (M::API, core.models.find(&model)) {
                let code = answer.as_ref().map_or_else(|status| status.code, |_| Code::Ok);
                model.metrics.answered(api, Entry::Grpc, code, start.elapsed());
            }
            Ok(tonic::Response::new(answer?))
        })
    }
}

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
