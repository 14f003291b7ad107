//! `tensorflow.serving.ModelService` and `grpc.health.v1.Health`.

use std::path::Path;

use super::messages::*;
use super::prediction::{choice, spec};
use crate::core::{Core, statuses};
use crate::infer::Deadline;
use crate::model::{Choice, ModelConfig, VersionPolicy};
use crate::status::{Answer, Code, Status};

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

/// Changes which versions of the models are served, and their labels. A model that is left out is
/// dropped. Folders stay those of the server's own configuration: no client chooses a path.
pub(super) async fn reload(core: &Core, request: ReloadConfigRequest, _: Deadline) -> Answer<ReloadConfigResponse> {
    let list = request.config.and_then(|config| config.model_config_list);
    let list = list.ok_or_else(|| Status::invalid("the request has no model_config_list"))?;
    let models = list.config.iter().map(|asked| configured(core, asked)).collect::<Answer<Vec<_>>>()?;
    core.models.configure(models)?;
    Ok(ReloadConfigResponse { status: Some(StatusProto::default()) })
}

/// A model as a client wants it.
fn configured(core: &Core, asked: &ModelConfigProto) -> Answer<ModelConfig> {
    let refused = |message: String| Err(Status::new(Code::PermissionDenied, message));
    let Some(known) = core.models.find(&asked.name) else {
        return refused(format!("model `{}` is not configured: only the server's owner adds models", asked.name));
    };
    let folder = &known.config.base_path;
    if !asked.base_path.is_empty() && Path::new(&asked.base_path) != folder {
        return refused(format!("the folder of model `{}` can only be changed by the server's owner", asked.name));
    }
    if !["", "tensorflow"].contains(&asked.model_platform.as_str()) {
        return Err(Status::invalid(format!("the platform {:?} is not known", asked.model_platform)));
    }
    let choice = asked.model_version_policy.as_ref().and_then(|policy| policy.choice.as_ref());
    let policy = match choice {
        None => VersionPolicy::default(),
        Some(PolicyChoice::Latest(latest)) => VersionPolicy::Latest(latest.num_versions.max(1) as usize),
        Some(PolicyChoice::All(_)) => VersionPolicy::All,
        Some(PolicyChoice::Specific(specific)) => VersionPolicy::Specific(specific.versions.clone()),
    };
    let mut model = ModelConfig::new(&asked.name, folder).policy(policy);
    model.max_requests = known.config.max_requests;
    Ok(asked.version_labels.iter().fold(model, |model, (label, &version)| model.label(label, version)))
}

/// The health of the server, or of one of its services.
pub(super) async fn health(core: &Core, request: HealthCheckRequest, _: Deadline) -> Answer<HealthCheckResponse> {
    let known = [
        "",
        "tensorflow.serving.PredictionService",
        "tensorflow.serving.ModelService",
        "inference.GRPCInferenceService",
    ];
    if !known.contains(&request.service.as_str()) {
        return Err(Status::not_found(format!("there is no service {}", request.service)));
    }
    Ok(HealthCheckResponse { status: if core.is_ready() { SERVING } else { NOT_SERVING } })
}
