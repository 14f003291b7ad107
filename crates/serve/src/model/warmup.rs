//! Requests that an export brings along to be answered before its version is served
//! (`assets.extra/tf_serving_warmup_requests`, records of `PredictionLog`).
//!
//! A version that cannot answer them is not taken in.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use estimand_tensor::{Array, Error, Result, Strings};
use estimand_wire::Message;
use estimand_wire::record::RecordReader;

use super::Loaded;
use crate::grpc::FromMessage;
use crate::grpc::messages::{ExampleRequest, LogKind, ModelSpec, PredictionLog};
use crate::grpc::predict_call::PredictCall;
use crate::grpc::{arrays, examples};
use crate::infer::{Method, example_signature};
use crate::json::UnknownKeys;
use crate::status::{Answer, Status};

const FILE: &str = "assets.extra/tf_serving_warmup_requests";
/// TensorFlow Serving refuses more records.
const MAX_RECORDS: usize = 1_000;

/// Answers the requests of an export, and returns their number.
pub(super) fn replay(loaded: &Loaded, folder: &Path) -> Result<usize> {
    let path = folder.join(FILE);
    let Ok(file) = File::open(&path) else { return Ok(0) };
    let place = |error: Error, n: usize| error.context(format!("in record {n} of {}", path.display()));
    let mut records = RecordReader::new(BufReader::new(file));
    let mut n = 0;
    while let Some(record) = records.read().map_err(|e| place(Error::config(e.to_string()), n))? {
        if n == MAX_RECORDS {
            let message = format!("{} has more than {MAX_RECORDS} records", path.display());
            return Err(Error::config(message).help("a few requests are enough to warm a model up"));
        }
        let log =
            PredictionLog::decode(record).map_err(|e| place(Error::config(format!("not a PredictionLog: {e}")), n))?;
        run(loaded, &log).map_err(|status| place(Error::config(status.message), n))?;
        n += 1;
    }
    Ok(n)
}

fn name(spec: &Option<ModelSpec>) -> &str {
    spec.as_ref().map_or("", |spec| &spec.signature_name)
}

fn run(loaded: &Loaded, log: &PredictionLog) -> Answer<()> {
    let examples_of = |request: &ExampleRequest, method: Method| {
        let signature = example_signature(loaded, name(&request.model_spec), method)?;
        let strings: Strings = examples(&request.input);
        let arrays = [Array::from(strings)];
        signature.check(&arrays)?;
        signature.compute(&arrays).map(drop)
    };
    match &log.log_type {
        Some(LogKind::Predict(log)) => {
            let request = log.request.as_ref().ok_or_else(|| Status::invalid("the log has no request"))?;
            let missing = |name: &str| Status::invalid(format!("there is no signature `{name}`"));
            let signature = loaded.signature(name(&request.model_spec), missing)?;
            let call = PredictCall::from_message(request.encode_to_vec().into())
                .map_err(|e| Status::invalid(format!("the request cannot be read: {e}")))?;
            let arrays = arrays(&signature, &call, UnknownKeys::TensorFlow)?.arrays;
            signature.check(&arrays)?;
            signature.compute(&arrays).map(drop)
        }
        Some(LogKind::Classify(log)) => examples_of(&log.request.clone().unwrap_or_default(), Method::Classify),
        Some(LogKind::Regress(log)) => examples_of(&log.request.clone().unwrap_or_default(), Method::Regress),
        None => {
            Err(Status::invalid("the log is of a kind that cannot be replayed: only predict, classify and regress"))
        }
    }
}
