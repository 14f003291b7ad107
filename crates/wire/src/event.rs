//! Event files, which TensorBoard reads: records (see [`record`](crate::record)), each an
//! [`Event`].

use crate::tensor_proto::{DataType, TensorProto, TensorShapeProto};

/// One record of an event file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Event {
    /// The time when it was written, in seconds since 1970.
    #[prost(double, tag = "1")]
    pub wall_time: f64,
    /// The global step that it belongs to.
    #[prost(int64, tag = "2")]
    pub step: i64,
    /// The content.
    #[prost(oneof = "What", tags = "3, 4, 5, 7, 8, 9")]
    pub what: Option<What>,
    /// The writer of the event.
    #[prost(message, optional, tag = "10")]
    pub source_metadata: Option<SourceMetadata>,
}

/// The content of an [`Event`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum What {
    /// The first event in every file: [`FILE_VERSION`].
    #[prost(string, tag = "3")]
    FileVersion(String),
    /// An encoded [`GraphDef`](crate::GraphDef).
    #[prost(bytes = "vec", tag = "4")]
    GraphDef(Vec<u8>),
    /// Values by tag.
    #[prost(message, tag = "5")]
    Summary(Summary),
    /// A session started, stopped or saved.
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
    /// The costs of a run.
    #[prost(message, tag = "8")]
    TaggedRunMetadata(TaggedRunMetadata),
    /// An encoded [`MetaGraphDef`](crate::MetaGraphDef).
    #[prost(bytes = "vec", tag = "9")]
    MetaGraphDef(Vec<u8>),
}

/// The version in the first record of an event file.
pub const FILE_VERSION: &str = "brain.Event:2";

/// The program that wrote an event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SourceMetadata {
    /// Its name.
    #[prost(string, tag = "1")]
    pub writer: String,
}

/// Values of one step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Summary {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub value: Vec<Value>,
}

/// A value with its tag.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    /// Its name, such as `loss`; scopes are separated by `/`.
    #[prost(string, tag = "1")]
    pub tag: String,
    /// The node it came from; unused by TensorBoard.
    #[prost(string, tag = "7")]
    pub node_name: String,
    /// How to show a [`SummaryValue::Tensor`].
    #[prost(message, optional, tag = "9")]
    pub metadata: Option<SummaryMetadata>,
    /// The value.
    #[prost(oneof = "SummaryValue", tags = "2, 3, 4, 5, 6, 8")]
    pub value: Option<SummaryValue>,
}

impl Value {
    /// Creates a number, as TensorFlow's Estimators write it.
    pub fn scalar(tag: impl Into<String>, value: f32) -> Value {
        Value { tag: tag.into(), value: Some(SummaryValue::SimpleValue(value)), ..Value::default() }
    }

    /// Creates a text, as a tensor without axes.
    pub fn text(tag: impl Into<String>, text: impl Into<Vec<u8>>) -> Value {
        let tensor = TensorProto {
            dtype: DataType::String.into(),
            tensor_shape: Some(TensorShapeProto::of([])),
            string_val: vec![text.into()],
            ..TensorProto::default()
        };
        Value::tensor(tag, tensor)
    }

    /// Creates a value from any tensor.
    pub fn tensor(tag: impl Into<String>, tensor: TensorProto) -> Value {
        Value { tag: tag.into(), value: Some(SummaryValue::Tensor(Box::new(tensor))), ..Value::default() }
    }

    /// Sets the plugin that shows the value, and the plugin's `content`.
    pub fn shown_by(self, plugin_name: &str, content: Vec<u8>) -> Value {
        let plugin_data = Some(PluginData { plugin_name: plugin_name.to_string(), content });
        Value { metadata: Some(SummaryMetadata { plugin_data, ..SummaryMetadata::default() }), ..self }
    }
}

/// The kinds of values.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SummaryValue {
    /// A number.
    #[prost(float, tag = "2")]
    SimpleValue(f32),
    /// A histogram in the format before 2015, kept as bytes.
    #[prost(bytes = "vec", tag = "3")]
    OldHistogram(Vec<u8>),
    /// An image.
    #[prost(message, tag = "4")]
    Image(Image),
    /// A distribution.
    #[prost(message, tag = "5")]
    Histo(HistogramProto),
    /// An audio clip.
    #[prost(message, tag = "6")]
    Audio(Audio),
    /// Any other value; its metadata describe it.
    #[prost(message, boxed, tag = "8")]
    Tensor(Box<TensorProto>),
}

/// The TensorBoard plugin that shows a value, and its options.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SummaryMetadata {
    /// The plugin.
    #[prost(message, optional, tag = "1")]
    pub plugin_data: Option<PluginData>,
    /// The display name.
    #[prost(string, tag = "2")]
    pub display_name: String,
    /// A description, in Markdown.
    #[prost(string, tag = "3")]
    pub summary_description: String,
    /// The kind of data: scalar 1, tensor 2, blob sequence 3.
    #[prost(int32, tag = "4")]
    pub data_class: i32,
}

/// A plugin and its data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginData {
    /// Its name, such as `scalars`.
    #[prost(string, tag = "1")]
    pub plugin_name: String,
    /// Bytes in the plugin's own format.
    #[prost(bytes = "vec", tag = "2")]
    pub content: Vec<u8>,
}

/// A histogram: the number of values in each bucket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HistogramProto {
    /// The smallest value.
    #[prost(double, tag = "1")]
    pub min: f64,
    /// The largest value.
    #[prost(double, tag = "2")]
    pub max: f64,
    /// The number of values.
    #[prost(double, tag = "3")]
    pub num: f64,
    /// Their sum.
    #[prost(double, tag = "4")]
    pub sum: f64,
    /// The sum of their squares.
    #[prost(double, tag = "5")]
    pub sum_squares: f64,
    /// The upper limit of each bucket.
    #[prost(double, repeated, tag = "6")]
    pub bucket_limit: Vec<f64>,
    /// The number of values in each bucket.
    #[prost(double, repeated, tag = "7")]
    pub bucket: Vec<f64>,
}

/// An image, encoded as PNG or a similar format.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Image {
    /// The height in pixels.
    #[prost(int32, tag = "1")]
    pub height: i32,
    /// The width in pixels.
    #[prost(int32, tag = "2")]
    pub width: i32,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    #[prost(int32, tag = "3")]
    pub colorspace: i32,
    /// The bytes of the file.
    #[prost(bytes = "vec", tag = "4")]
    pub encoded_image_string: Vec<u8>,
}

/// An audio clip, encoded as WAV or a similar format.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Audio {
    /// Samples per second.
    #[prost(float, tag = "1")]
    pub sample_rate: f32,
    /// The number of channels.
    #[prost(int64, tag = "2")]
    pub num_channels: i64,
    /// The number of samples in each channel.
    #[prost(int64, tag = "3")]
    pub length_frames: i64,
    /// The bytes of the file.
    #[prost(bytes = "vec", tag = "4")]
    pub encoded_audio_string: Vec<u8>,
    /// Their type, such as `audio/wav`.
    #[prost(string, tag = "5")]
    pub content_type: String,
}

/// A session started, stopped or saved.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionLog {
    /// The status of the session.
    #[prost(enumeration = "SessionStatus", tag = "1")]
    pub status: i32,
    /// The path of the checkpoint.
    #[prost(string, tag = "2")]
    pub checkpoint_path: String,
    /// A message with more information.
    #[prost(string, tag = "3")]
    pub msg: String,
}

/// The status of a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum SessionStatus {
    /// Not set.
    Unspecified = 0,
    /// It started. TensorBoard then drops events of later steps that an earlier run had written.
    Start = 1,
    /// It stopped.
    Stop = 2,
    /// It saved a checkpoint.
    Checkpoint = 3,
}

/// The costs of a run: an encoded `RunMetadata`, with its tag.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TaggedRunMetadata {
    /// Its name.
    #[prost(string, tag = "1")]
    pub tag: String,
    /// The encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub run_metadata: Vec<u8>,
}
