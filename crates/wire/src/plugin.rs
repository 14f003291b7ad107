//! What TensorBoard's plugins want to know beside a value: the contents of
//! [`PluginData`](crate::event::PluginData).

use std::collections::BTreeMap;

/// Of the plugin `pr_curves`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PrCurvePluginData {
    /// Always 0.
    #[prost(int32, tag = "1")]
    pub version: i32,
    /// The points of a curve.
    #[prost(uint32, tag = "2")]
    pub num_thresholds: u32,
}

/// Of the plugin `hparams`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HParamsPluginData {
    /// Always 0.
    #[prost(int32, tag = "1")]
    pub version: i32,
    /// What is told.
    #[prost(oneof = "HParamsData", tags = "2, 3, 4")]
    pub data: Option<HParamsData>,
}

/// What the plugin `hparams` is told, each under a tag of its own.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum HParamsData {
    /// What runs have in common.
    #[prost(message, tag = "2")]
    Experiment(Experiment),
    /// The parameters of a run.
    #[prost(message, tag = "3")]
    SessionStartInfo(SessionStartInfo),
    /// How a run ended.
    #[prost(message, tag = "4")]
    SessionEndInfo(SessionEndInfo),
}

/// What several runs have in common.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Experiment {
    /// What it is for.
    #[prost(string, tag = "1")]
    pub description: String,
    /// Whose it is.
    #[prost(string, tag = "2")]
    pub user: String,
    /// When it was made, in seconds since 1970.
    #[prost(double, tag = "3")]
    pub time_created_secs: f64,
    /// The parameters that are shown.
    #[prost(message, repeated, tag = "4")]
    pub hparam_infos: Vec<HParamInfo>,
    /// The metrics that are shown.
    #[prost(message, repeated, tag = "5")]
    pub metric_infos: Vec<MetricInfo>,
    /// What it is called.
    #[prost(string, tag = "6")]
    pub name: String,
}

/// A parameter of an experiment. Its domain is left out: TensorBoard asks the runs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HParamInfo {
    /// As runs call it.
    #[prost(string, tag = "1")]
    pub name: String,
    /// As people call it.
    #[prost(string, tag = "2")]
    pub display_name: String,
    /// What it does.
    #[prost(string, tag = "3")]
    pub description: String,
    /// What its values are.
    #[prost(enumeration = "HParamType", tag = "4")]
    pub r#type: i32,
}

/// What the values of a parameter are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum HParamType {
    /// Not set.
    Unset = 0,
    /// Texts.
    String = 1,
    /// Truth values.
    Bool = 2,
    /// Numbers.
    Float64 = 3,
}

/// A metric of an experiment.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricInfo {
    /// Where it is found.
    #[prost(message, optional, tag = "1")]
    pub name: Option<MetricName>,
    /// As people call it.
    #[prost(string, tag = "3")]
    pub display_name: String,
    /// What it is.
    #[prost(string, tag = "4")]
    pub description: String,
}

/// Where a metric is found.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricName {
    /// The folder below that of the run, such as `eval`.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The tag of the scalar.
    #[prost(string, tag = "2")]
    pub tag: String,
}

/// The parameters of a run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionStartInfo {
    /// Their values, by name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub hparams: BTreeMap<String, Scalar>,
    /// Where the model is.
    #[prost(string, tag = "2")]
    pub model_uri: String,
    /// Where to look at the run.
    #[prost(string, tag = "3")]
    pub monitor_url: String,
    /// Runs with the same name are repetitions of one another.
    #[prost(string, tag = "4")]
    pub group_name: String,
    /// When it started, in seconds since 1970.
    #[prost(double, tag = "5")]
    pub start_time_secs: f64,
}

/// How a run ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionEndInfo {
    /// Well or not.
    #[prost(enumeration = "RunStatus", tag = "1")]
    pub status: i32,
    /// When, in seconds since 1970.
    #[prost(double, tag = "2")]
    pub end_time_secs: f64,
}

/// How a run stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum RunStatus {
    /// Nobody knows.
    Unknown = 0,
    /// It ended well.
    Success = 1,
    /// It ended with an error.
    Failure = 2,
    /// It goes on.
    Running = 3,
}

/// One value of any simple type: `google.protobuf.Value` without its lists and structs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scalar {
    /// The value.
    #[prost(oneof = "ScalarKind", tags = "2, 3, 4")]
    pub kind: Option<ScalarKind>,
}

/// The types of a [`Scalar`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ScalarKind {
    /// A number.
    #[prost(double, tag = "2")]
    Number(f64),
    /// A text.
    #[prost(string, tag = "3")]
    String(String),
    /// A truth value.
    #[prost(bool, tag = "4")]
    Bool(bool),
}

impl From<ScalarKind> for Scalar {
    fn from(kind: ScalarKind) -> Scalar {
        Scalar { kind: Some(kind) }
    }
}
