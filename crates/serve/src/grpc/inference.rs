//! `inference.GRPCInferenceService`: the Open Inference Protocol over gRPC, with the calls of
//! Triton's clients for the repository.

use estimand_tensor::{Array, DType, Strings, TensorSpec};

use super::inference_messages::*;
use crate::core::Core;
use crate::infer::{self, Deadline};
use crate::kserve;
use crate::metrics::Api;
use crate::model::{Choice, Loaded, Signature};
use crate::status::{Answer, Status};

/// The version of a request: a number, or nothing for the newest.
fn choice(version: &str) -> Answer<Choice> {
    match version {
        "" => Ok(Choice::Latest),
        text => text
            .parse()
            .map(Choice::Version)
            .map_err(|_| Status::invalid(format!("the version is `{text}`; expected a number"))),
    }
}

pub(super) async fn live(_: &Core, _: Nothing, _: Deadline) -> Answer<YesResponse> {
    Ok(YesResponse { is_so: true })
}

pub(super) async fn ready(core: &Core, _: Nothing, _: Deadline) -> Answer<YesResponse> {
    Ok(YesResponse { is_so: core.is_ready() })
}

pub(super) async fn model_ready(core: &Core, request: ModelVersionRequest, _: Deadline) -> Answer<YesResponse> {
    Ok(YesResponse { is_so: core.models.loaded(&request.name, &choice(&request.version)?).is_ok() })
}

pub(super) async fn server_metadata(_: &Core, _: Nothing, _: Deadline) -> Answer<ServerMetadataResponse> {
    Ok(ServerMetadataResponse {
        name: kserve::SERVER.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        extensions: kserve::EXTENSIONS.map(String::from).to_vec(),
    })
}

fn tensor(name: &str, spec: &TensorSpec) -> TensorMetadata {
    let sizes = spec.shape.dims().iter().map(|dim| dim.known().and_then(|size| i64::try_from(size).ok()).unwrap_or(-1));
    TensorMetadata { name: name.into(), datatype: kserve::datatype(spec.dtype).into(), shape: sizes.collect() }
}

pub(super) async fn model_metadata(
    core: &Core,
    request: ModelVersionRequest,
    _: Deadline,
) -> Answer<ModelMetadataResponse> {
    let (model, loaded) = core.models.loaded(&request.name, &choice(&request.version)?)?;
    let signature = kserve::signature(&loaded, "")?;
    let inputs = signature.inputs.iter().zip(&signature.specs).map(|(input, spec)| tensor(&input.name, spec));
    Ok(ModelMetadataResponse {
        name: request.name,
        versions: model.served().keys().map(i64::to_string).collect(),
        platform: kserve::PLATFORM.into(),
        inputs: inputs.collect(),
        outputs: signature.outputs.iter().map(|(name, spec)| tensor(name, spec)).collect(),
    })
}

pub(super) async fn infer(core: &Core, request: ModelInferRequest, deadline: Deadline) -> Answer<ModelInferResponse> {
    let (model, loaded) = core.models.loaded(&request.model_name, &choice(&request.model_version)?)?;
    let name = match request.parameters.get("signature_name").and_then(|parameter| parameter.choice.as_ref()) {
        None => "",
        Some(ParameterChoice::Text(name)) => name,
        Some(_) => return Err(Status::invalid("the parameter `signature_name` is not a string")),
    };
    let signature = kserve::signature(&loaded, name)?;
    let inputs = arrays(&request)?;
    let rows = kserve::rows(&signature, inputs, core.settings.unknown_keys)?;
    let wanted = wanted(&signature, &request.outputs)?;
    let outputs = infer::run_rows(core, &model, &signature, rows, deadline, Api::Infer).await?;
    respond(request, &loaded, &signature, &wanted, &outputs)
}

/// The outputs of an answer, by their places: those that were asked for, or all.
fn wanted(signature: &Signature, asked: &[InferRequestedOutput]) -> Answer<Vec<usize>> {
    let asked = kserve::Asked { outputs: asked.iter().map(|one| (one.name.clone(), None)).collect(), is_binary: true };
    Ok(kserve::wanted(signature, &asked)?.into_iter().map(|(i, _)| i).collect())
}

fn respond(
    request: ModelInferRequest,
    loaded: &Loaded,
    signature: &Signature,
    wanted: &[usize],
    arrays: &[Array],
) -> Answer<ModelInferResponse> {
    let (mut outputs, mut raw) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
    for &i in wanted {
        let array = &arrays[i];
        let mut bytes = Vec::new();
        kserve::binary::write(array, &mut bytes)?;
        raw.push(bytes);
        outputs.push(InferTensor {
            name: signature.outputs[i].0.clone(),
            datatype: kserve::datatype(array.dtype()).into(),
            shape: array.dims().iter().map(|&size| size as i64).collect(),
            ..InferTensor::default()
        });
    }
    Ok(ModelInferResponse {
        model_name: request.model_name,
        model_version: loaded.version.to_string(),
        id: request.id,
        outputs,
        raw_output_contents: raw,
        ..ModelInferResponse::default()
    })
}

/// The inputs of a request: all as bytes, or each in its own fields.
pub(crate) fn arrays(request: &ModelInferRequest) -> Answer<Vec<(String, Array)>> {
    let (n, raw) = (request.inputs.len(), &request.raw_input_contents);
    if !raw.is_empty() && raw.len() != n {
        return Err(Status::invalid(format!("the request has {n} inputs, but {} raw_input_contents", raw.len())));
    }
    let read = |(i, input): (usize, &InferTensor)| {
        let name = &input.name;
        let dtype =
            kserve::dtype(&input.datatype).map_err(|text| Status::invalid(format!("input `{name}`: {text}")))?;
        let size = |&size: &i64| {
            usize::try_from(size)
                .map_err(|_| Status::invalid(format!("input `{name}` has the shape {:?}", input.shape)))
        };
        let shape = input.shape.iter().map(size).collect::<Answer<Vec<usize>>>()?;
        let array = match (raw.get(i), &input.contents) {
            (Some(_), Some(_)) => {
                return Err(Status::invalid(format!("input `{name}` has both contents and raw_input_contents")));
            }
            (Some(bytes), None) => kserve::binary::read(name, dtype, &shape, bytes)?,
            (None, Some(contents)) => values(contents, dtype, &shape)
                .map_err(|status| Status::invalid(format!("input `{name}`: {}", status.message)))?,
            (None, None) => return Err(Status::invalid(format!("input `{name}` has no contents"))),
        };
        Ok((name.clone(), array))
    };
    request.inputs.iter().enumerate().map(read).collect()
}

fn values(contents: &InferTensorContents, dtype: DType, shape: &[usize]) -> Answer<Array> {
    let array = match dtype {
        DType::F32 => Array::from_slice(shape, &contents.fp32_contents),
        DType::F64 => Array::from_slice(shape, &contents.fp64_contents),
        DType::I32 => Array::from_slice(shape, &contents.int_contents),
        DType::I64 => Array::from_slice(shape, &contents.int64_contents),
        DType::Bool => Array::from_slice(shape, &contents.bool_contents),
        DType::U8 => {
            let byte = |&value: &u32| u8::try_from(value).map_err(|_| Status::invalid(format!("{value} is no UINT8")));
            Array::from_vec(shape, contents.uint_contents.iter().map(byte).collect::<Answer<Vec<u8>>>()?)
        }
        DType::Str => {
            let mut strings = Strings::with_capacity(contents.bytes_contents.len());
            contents.bytes_contents.iter().for_each(|bytes| strings.push(bytes));
            Array::from_string_list(shape, strings)
        }
    };
    Ok(array?)
}

pub(super) async fn index(
    core: &Core,
    request: RepositoryIndexRequest,
    _: Deadline,
) -> Answer<RepositoryIndexResponse> {
    let mut models = Vec::new();
    for (name, model) in core.models.all().iter() {
        for one in model.statuses() {
            let state = kserve::state(one.state);
            if request.ready && state != "READY" {
                continue;
            }
            let reason = one.error.map(|error| error.message).unwrap_or_default();
            models.push(ModelIndex {
                name: name.clone(),
                version: one.version.to_string(),
                state: state.into(),
                reason,
            });
        }
    }
    Ok(RepositoryIndexResponse { models })
}

pub(super) async fn load(core: &Core, request: RepositoryModelRequest, deadline: Deadline) -> Answer<Nothing> {
    kserve::load(core, &request.model_name, deadline).await.map(|()| Nothing {})
}

pub(super) async fn unload(core: &Core, request: RepositoryModelRequest, deadline: Deadline) -> Answer<Nothing> {
    kserve::unload(core, &request.model_name, deadline).await.map(|()| Nothing {})
}
