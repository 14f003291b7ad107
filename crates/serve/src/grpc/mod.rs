//! TensorFlow Serving's gRPC interface.
use crate::core::Core;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response};
use std::sync::Arc;
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}
pub(crate) async fn answer(_core: Arc<Core>, _request: Request<Incoming>) -> Response<tonic::body::Body> {
    tonic::Status::unimplemented("").into_http()
}
