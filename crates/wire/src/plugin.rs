//! The data of TensorBoard's plugins: the contents of [`PluginData`](crate::event::PluginData).

use std::collections::BTreeMap;

/// The data of the plugin `pr_curves`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PrCurvePluginData {
    /// Always 0.
    #[prost(int32, tag = "1")]
    pub version: i32,
    /// The number of points of a curve.
    #[prost(uint32, tag = "2")]
    pub num_thresholds: u32,
}

/// The data of the plugin `hparams`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HParamsPluginData {
    /// Always 0.
    #[prost(int32, tag = "1")]
    pub version: i32,
    /// The content.
    #[prost(oneof = "HParamsData", tags = "2, 3, 4")]
    pub data: Option<HParamsData>,
}

/// The kinds of data for the plugin `hparams`, each under its own tag.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum HParamsData {
    /// The experiment that several runs share.
    #[prost(message, tag = "2")]
    Experiment(Experiment),
    /// The start of a run: its parameters.
    #[prost(message, tag = "3")]
    SessionStartInfo(SessionStartInfo),
    /// The end of a run.
    #[prost(message, tag = "4")]
    SessionEndInfo(SessionEndInfo),
}

/// An experiment: the description that several runs share.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Experiment {
    /// A description of the experiment.
    #[prost(string, tag = "1")]
    pub description: String,
    /// The owner.
    #[prost(string, tag = "2")]
    pub user: String,
    /// The time of creation, in seconds since 1970.
    #[prost(double, tag = "3")]
    pub time_created_secs: f64,
    /// The parameters to show.
    #[prost(message, repeated, tag = "4")]
    pub hparam_infos: Vec<HParamInfo>,
    /// The metrics to show.
    #[prost(message, repeated, tag = "5")]
    pub metric_infos: Vec<MetricInfo>,
    /// The name.
    #[prost(string, tag = "6")]
    pub name: String,
}

/// A parameter of an experiment. Its domain is left out: TensorBoard finds it from the runs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HParamInfo {
    /// The name in the runs.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The display name.
    #[prost(string, tag = "2")]
    pub display_name: String,
    /// A description.
    #[prost(string, tag = "3")]
    pub description: String,
    /// The type of its values.
    #[prost(enumeration = "HParamType", tag = "4")]
    pub r#type: i32,
}

/// The type of a parameter's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum HParamType {
    /// Not set.
    Unset = 0,
    /// Strings.
    String = 1,
    /// Booleans.
    Bool = 2,
    /// Numbers.
    Float64 = 3,
}

/// A metric of an experiment.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricInfo {
    /// The place where its values are found.
    #[prost(message, optional, tag = "1")]
    pub name: Option<MetricName>,
    /// The display name.
    #[prost(string, tag = "3")]
    pub display_name: String,
    /// A description.
    #[prost(string, tag = "4")]
    pub description: String,
}

/// The place where the values of a metric are found.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricName {
    /// The sub-folder of the run's folder, such as `eval`.
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
    /// The address of the model.
    #[prost(string, tag = "2")]
    pub model_uri: String,
    /// The address for monitoring the run.
    #[prost(string, tag = "3")]
    pub monitor_url: String,
    /// The name of the group. Runs with the same name are repetitions of one another.
    #[prost(string, tag = "4")]
    pub group_name: String,
    /// The start time, in seconds since 1970.
    #[prost(double, tag = "5")]
    pub start_time_secs: f64,
}

/// The end of a run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionEndInfo {
    /// The status.
    #[prost(enumeration = "RunStatus", tag = "1")]
    pub status: i32,
    /// The end time, in seconds since 1970.
    #[prost(double, tag = "2")]
    pub end_time_secs: f64,
}

/// The status of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum RunStatus {
    /// The status is not known.
    Unknown = 0,
    /// The run succeeded.
    Success = 1,
    /// The run ended with an error.
    Failure = 2,
    /// The run is still in progress.
    Running = 3,
}

/// One value of any simple type: `google.protobuf.Value` without lists and structs.
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
    /// A string.
    #[prost(string, tag = "3")]
    String(String),
    /// A boolean.
    #[prost(bool, tag = "4")]
    Bool(bool),
}

impl From<ScalarKind> for Scalar {
    fn from(kind: ScalarKind) -> Scalar {
        Scalar { kind: Some(kind) }
    }
}
