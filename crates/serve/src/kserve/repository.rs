//! The repository of models: each model of the configuration can be unloaded, and loaded again.
//! No request can name a folder.

use crate::core::Core;
use crate::infer::Deadline;
use crate::model::State;
use crate::rest::{Reply, decode};
use crate::status::{Answer, Code, Status};

/// The protocol's name of a state.
pub(crate) fn state(state: State) -> &'static str {
    match state {
        State::Available => "READY",
        State::Start | State::Loading => "LOADING",
        State::Unloading => "UNLOADING",
        State::End => "UNAVAILABLE",
    }
}

/// Answers `/v2/repository/models/NAME/load` and `../unload`; `rest` begins with the name.
pub(super) async fn answer(core: &Core, rest: &str, deadline: Deadline) -> Reply {
    let done = match rest.split_once('/') {
        Some((name, "load")) => load(core, &decode(name), deadline).await,
        Some((name, "unload")) => unload(core, &decode(name), deadline).await,
        _ => return Reply::failure_with(404, &format!("there is nothing at POST /v2/repository/models/{rest}")),
    };
    match done {
        Ok(()) => Reply::json(Vec::new()),
        Err(status) => Reply::failure(&status),
    }
}

/// Looks for the versions of a model now, and returns when they are loaded. A version that failed
/// is tried again.
pub(crate) async fn load(core: &Core, name: &str, deadline: Deadline) -> Answer<()> {
    let model = core.models.find(name).ok_or_else(|| not_configured(name))?;
    let ticket = core.models.want(&model, true);
    deadline.wait(core.models.looked(ticket)).await?;
    match model.not_loaded() {
        None => Ok(()),
        Some(reason) => {
            Err(Status::new(Code::FailedPrecondition, format!("model `{name}` could not be loaded: {reason}")))
        }
    }
}

/// Drops the versions of a model until it is loaded again. Requests that have begun are answered.
pub(crate) async fn unload(core: &Core, name: &str, deadline: Deadline) -> Answer<()> {
    let model = core.models.find(name).ok_or_else(|| not_configured(name))?;
    let ticket = core.models.want(&model, false);
    deadline.wait(core.models.looked(ticket)).await
}

fn not_configured(name: &str) -> Status {
    Status::not_found(format!("model `{name}` is not configured: only the server's owner adds models"))
}
