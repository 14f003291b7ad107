//! `tensorflow.serving.ModelService` and `grpc.health.v1.Health`.

use super::messages::*;
use super::prediction::{choice, spec};
use crate::core::{Core, statuses};
use crate::infer::Deadline;
use crate::model::Choice;
use crate::status::{Answer, Status};

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

pub(super) async fn status(core: &Core, request: GetModelStatusRequest, _: Deadline) -> Answer<GetModelStatusResponse> {
    let asked = spec(&request.model_spec)?;
    let model = core
        .models
        .find(&asked.name)
        .ok_or_else(|| Status::not_found(format!("Could not find any versions of model {}", asked.name)))?;
    let version = match choice(asked) {
        Choice::Latest => None,
        Choice::Version(version) => Some(version),
        Choice::Label(label) => Some(model.version_of(&label)?),
    };
    let model_version_status = statuses(&model, version)?
        .into_iter()
        .map(|one| {
            let error = one.error.as_ref();
            let status = StatusProto {
                error_code: error.map_or(0, |error| error.code as i32),
                error_message: error.map(|error| error.message.clone()).unwrap_or_default(),
            };
            ModelVersionStatus { version: one.version, state: one.state as i32, status: Some(status) }
        })
        .collect();
    Ok(GetModelStatusResponse { model_version_status })
}

/// The health of the server, or of one of its services.
pub(super) async fn health(core: &Core, request: HealthCheckRequest, _: Deadline) -> Answer<HealthCheckResponse> {
    let known = ["", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"];
    if !known.contains(&request.service.as_str()) {
        return Err(Status::not_found(format!("there is no service {}", request.service)));
    }
    Ok(HealthCheckResponse { status: if core.is_ready() { SERVING } else { NOT_SERVING } })
}
