//! Parameters of runs for TensorBoard's HParams page. The metadata holds everything; the values are
//! empty tensors.

use estimand_wire::event::Value;
use estimand_wire::plugin::{
    Experiment, HParamInfo, HParamType, HParamsData, HParamsPluginData, MetricInfo, MetricName, RunStatus, Scalar,
    ScalarKind, SessionEndInfo, SessionStartInfo,
};
use estimand_wire::{DataType, Message, TensorProto, TensorShapeProto};

use crate::HParams;
use crate::hparams::Value as Param;

fn value(tag: &str, data: HParamsData) -> Value {
    let nothing = TensorProto {
        dtype: DataType::Float.into(),
        tensor_shape: Some(TensorShapeProto::of([0])),
        ..TensorProto::default()
    };
    let content = HParamsPluginData { version: 0, data: Some(data) };
    Value::tensor(format!("_hparams_/{tag}"), nothing).shown_by("hparams", content.encode_to_vec())
}

/// The event that a run with these parameters started.
pub(crate) fn session_start(params: &HParams, time: f64) -> Value {
    let hparams = params.iter().map(|(name, param)| (name.to_string(), scalar(param))).collect();
    let info = SessionStartInfo { hparams, start_time_secs: time, ..SessionStartInfo::default() };
    value("session_start_info", HParamsData::SessionStartInfo(info))
}

/// The event that a run ended.
pub(crate) fn session_end(status: RunStatus, time: f64) -> Value {
    let info = SessionEndInfo { status: status.into(), end_time_secs: time };
    value("session_end_info", HParamsData::SessionEndInfo(info))
}

/// The description of all runs: the parameters and metrics to show.
pub(crate) fn experiment(params: &HParams, metrics: &[(&str, &str)], time: f64) -> Value {
    let kind = |param: &Param| match param {
        Param::Bool(_) => HParamType::Bool,
        Param::Int(_) | Param::Float(_) => HParamType::Float64,
        _ => HParamType::String,
    };
    let param = |(name, param): (&str, &Param)| HParamInfo {
        name: name.to_string(),
        r#type: kind(param).into(),
        ..HParamInfo::default()
    };
    let metric = |&(group, tag): &(&str, &str)| {
        let name = Some(MetricName { group: group.to_string(), tag: tag.to_string() });
        MetricInfo { name, ..MetricInfo::default() }
    };
    let experiment = Experiment {
        time_created_secs: time,
        hparam_infos: params.iter().map(param).collect(),
        metric_infos: metrics.iter().map(metric).collect(),
        ..Experiment::default()
    };
    value("experiment", HParamsData::Experiment(experiment))
}

/// Converts a parameter. TensorBoard supports numbers, strings and booleans; lists become strings.
fn scalar(param: &Param) -> Scalar {
    match param {
        Param::Bool(value) => ScalarKind::Bool(*value),
        Param::Int(value) => ScalarKind::Number(*value as f64),
        Param::Float(value) => ScalarKind::Number(*value),
        Param::Str(text) => ScalarKind::String(text.clone()),
        list => ScalarKind::String(list.to_string()),
    }
    .into()
}
