//! The Open Inference Protocol (KServe v2) over REST, with the extension for binary data. The same
//! over gRPC is in `grpc/inference.rs`.
//!
//! `request.rs` reads the body of `infer`, `binary.rs` the bytes after it, `reply.rs` writes, and
//! `repository.rs` loads and unloads models.

pub(crate) mod binary;
mod reply;
mod repository;
mod request;

use std::sync::Arc;
use std::time::Instant;

use estimand_tensor::{Array, DType};

use crate::core::Core;
use crate::infer::{self, Deadline};
use crate::json::{Rows, UnknownKeys};
use crate::metrics::{Api, Entry};
use crate::model::{Choice, Loaded, Signature};
use crate::rest::{Reply, decode};
use crate::status::{Answer, Code, Status};
pub(crate) use repository::{load, state, unload};
pub(crate) use request::Asked;

/// The header that says where the JSON of a body ends and its binary data begin.
pub(crate) const JSON_LENGTH: &str = "inference-header-content-length";

/// The server's name.
pub(crate) const SERVER: &str = "estimand-serve";
/// The extensions of the protocol that the server has.
pub(crate) const EXTENSIONS: [&str; 2] = ["binary_tensor_data", "model_repository"];
/// The kind of models, by its name in the protocol.
pub(crate) const PLATFORM: &str = "tensorflow_savedmodel";

/// The element types that models have, with the protocol's names.
const DATATYPES: [(DType, &str); 7] = [
    (DType::F32, "FP32"),
    (DType::F64, "FP64"),
    (DType::I32, "INT32"),
    (DType::I64, "INT64"),
    (DType::U8, "UINT8"),
    (DType::Bool, "BOOL"),
    (DType::Str, "BYTES"),
];

pub(crate) fn datatype(dtype: DType) -> &'static str {
    DATATYPES.iter().find(|(known, _)| *known == dtype).map_or("", |(_, name)| name)
}

/// The element type with a name, or a message that lists the names.
pub(crate) fn dtype(name: &str) -> Result<DType, String> {
    let found = DATATYPES.iter().find(|(_, known)| *known == name);
    found.map(|(dtype, _)| *dtype).ok_or_else(|| {
        let known: Vec<&str> = DATATYPES.iter().map(|(_, name)| *name).collect();
        format!("the datatype `{name}` cannot be read; there are {}", known.join(", "))
    })
}

/// A path below `/v2/models/NAME`.
struct Target {
    model: String,
    choice: Choice,
    rest: String,
}

fn target(path: &str) -> Option<Target> {
    let mut parts = path.strip_prefix("/v2/models/")?.split('/').peekable();
    let model = decode(parts.next().filter(|name| !name.is_empty())?);
    let choice = match parts.next_if_eq(&"versions") {
        Some(_) => Choice::Version(parts.next()?.parse().ok()?),
        None => Choice::Latest,
    };
    let rest = parts.collect::<Vec<_>>().join("/");
    Some(Target { model, choice, rest })
}

/// Answers a request whose path begins with `/v2`.
pub(crate) async fn answer(
    core: &Core,
    method: &str,
    path: &str,
    json_length: Option<usize>,
    body: &[u8],
    deadline: Deadline,
) -> Reply {
    let is_read = matches!(method, "GET" | "HEAD");
    match path.trim_end_matches('/') {
        "/v2" if is_read => return Reply::json(reply::server()),
        "/v2/health/live" if is_read => return Reply::json(reply::flag("live", true)),
        "/v2/health/ready" if is_read => return ready("ready", core.is_ready()),
        "/v2/repository/index" if method == "POST" => return Reply::json(reply::index(&core.models)),
        _ => {}
    }
    if let Some(rest) = path.strip_prefix("/v2/repository/models/").filter(|_| method == "POST") {
        return repository::answer(core, rest, deadline).await;
    }
    let unknown = || Reply::failure_with(404, &format!("there is nothing at {method} {path}"));
    let Some(target) = target(path) else { return unknown() };
    match target.rest.as_str() {
        "" if is_read => describe(core, &target),
        "ready" if is_read => match core.models.loaded(&target.model, &target.choice) {
            Ok(_) => Reply::json(reply::model_ready(&target.model)),
            Err(status) => Reply::failure(&status),
        },
        "infer" if method == "POST" => {
            let start = Instant::now();
            let answer = infer(core, &target, json_length, body, deadline).await;
            if let Some(model) = core.models.find(&target.model) {
                let code = answer.as_ref().map_or_else(|status| status.code, |_| Code::Ok);
                model.metrics.answered(Api::Infer, Entry::Rest, code, start.elapsed());
            }
            answer.unwrap_or_else(|status| Reply::failure(&status))
        }
        _ => unknown(),
    }
}

fn ready(name: &str, is_ready: bool) -> Reply {
    let status = if is_ready { 200 } else { 503 };
    Reply { status, ..Reply::json(reply::flag(name, is_ready)) }
}

/// The signature of a request: the default, or the one that a parameter names.
pub(crate) fn signature(loaded: &Loaded, name: &str) -> Answer<Arc<Signature>> {
    loaded.signature(name, |name| Status::invalid(format!("the model has no signature `{name}`")))
}

fn describe(core: &Core, target: &Target) -> Reply {
    let described = core.models.loaded(&target.model, &target.choice).and_then(|(model, loaded)| {
        let versions: Vec<i64> = model.served().keys().copied().collect();
        Ok(reply::model(&target.model, &versions, &*signature(&loaded, "")?))
    });
    described.map_or_else(|status| Reply::failure(&status), Reply::json)
}

async fn infer(
    core: &Core,
    target: &Target,
    json_length: Option<usize>,
    body: &[u8],
    deadline: Deadline,
) -> Answer<Reply> {
    let (model, loaded) = core.models.loaded(&target.model, &target.choice)?;
    let (json, rest) = match json_length {
        None => (body, &b""[..]),
        Some(n) => body.split_at_checked(n).ok_or_else(|| {
            Status::invalid(format!("{JSON_LENGTH} is {n}, but the body has only {} bytes", body.len()))
        })?,
    };
    let request = request::read(json, rest)?;
    let signature = signature(&loaded, &request.signature_name)?;
    let rows = rows(&signature, request.inputs, core.settings.unknown_keys)?;
    let wanted = wanted(&signature, &request.outputs)?;
    let outputs = infer::run_rows(core, &model, &signature, rows, deadline, Api::Infer).await?;
    let named = wanted.iter().map(|&(i, is_binary)| (signature.outputs[i].0.as_str(), &outputs[i], is_binary));
    reply::outputs(&target.model, loaded.version, request.id.as_deref(), named)
}

/// The inputs in the order of the signature. Inputs that a request leaves out take their defaults.
pub(crate) fn rows(signature: &Signature, mut given: Vec<(String, Array)>, unknown_keys: UnknownKeys) -> Answer<Rows> {
    let known = || signature.inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut found = Vec::with_capacity(signature.inputs.len());
    for input in &signature.inputs {
        let Some(i) = given.iter().position(|(name, _)| *name == input.name) else {
            if input.default.is_none() {
                return Err(Status::invalid(format!(
                    "input `{}` is missing; the inputs of signature `{}` are {}. {}",
                    input.name,
                    signature.name,
                    known(),
                    input.is_required()
                )));
            }
            found.push(None);
            continue;
        };
        let (name, array) = given.swap_remove(i);
        if array.dtype() != input.dtype {
            return Err(Status::invalid(format!(
                "input `{name}` has the datatype {}; expected {}",
                datatype(array.dtype()),
                datatype(input.dtype)
            )));
        }
        found.push(Some(array));
    }
    if let Some((name, _)) = given.first()
        && unknown_keys.is_error(false)
    {
        return Err(Status::invalid(format!("there is no input `{name}`; there are {}", known())));
    }
    Rows::filled(&signature.inputs, found, given.iter().map(|(name, _)| name.as_str()))
}

/// The outputs of an answer, and whether each is binary: those that were asked for, or all.
pub(crate) fn wanted(signature: &Signature, asked: &Asked) -> Answer<Vec<(usize, bool)>> {
    if asked.outputs.is_empty() {
        return Ok((0..signature.outputs.len()).map(|i| (i, asked.is_binary)).collect());
    }
    let find = |(name, is_binary): &(String, Option<bool>)| {
        let i = signature.outputs.iter().position(|(known, _)| known == name);
        let i = i.ok_or_else(|| {
            let known: Vec<&str> = signature.outputs.iter().map(|(name, _)| name.as_str()).collect();
            Status::invalid(format!("there is no output `{name}`; there are {}", known.join(", ")))
        })?;
        Ok((i, is_binary.unwrap_or(asked.is_binary)))
    };
    asked.outputs.iter().map(find).collect()
}

/// Reads a body of `infer`, for the fuzz target: arrays have the shapes that they claim.
pub(crate) fn read_for_fuzzing(json: &[u8], rest: &[u8]) {
    let Ok(request) = request::read(json, rest) else { return };
    for (_, array) in &request.inputs {
        assert_eq!(array.len(), array.dims().iter().product::<usize>());
    }
}

/// Whether a body of `infer` can be read, for tests that change bodies.
#[cfg(test)]
pub(crate) fn can_read(body: &[u8]) -> bool {
    request::read(body, b"").is_ok()
}
