//! The messages of ONNX files, written by hand: a field number is a fact of the format. Only fields
//! that we write are here; a reader of protobuf skips the others.

use prost::Message;

/// A file: a graph, and the operator sets that its nodes are from.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// The version of the file format.
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    /// The program that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// The version of that program.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// The operator sets.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Facts about the model, which runtimes ignore.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A version of an operator set. The domain of ONNX itself is empty.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// The domain: empty, or `ai.onnx.ml`.
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    /// The version.
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Nodes, each after those it reads, with the values they begin from.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The name of the graph.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Weights and constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// The values that a caller feeds.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// The values that a caller gets.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// An operation with the names of its inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// The inputs; an empty name leaves out an optional one.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// The outputs; an empty name leaves out an optional one.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The name of the node.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The domain of the operator.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// The kinds of attributes that we write, as ONNX numbers them.
mod kind {
    pub const FLOAT: i32 = 1;
    pub const INT: i32 = 2;
    pub const STRING: i32 = 3;
    pub const TENSOR: i32 = 4;
    pub const GRAPH: i32 = 5;
    pub const INTS: i32 = 7;
    pub const STRINGS: i32 = 8;
}

/// A named attribute of one of several kinds.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Text.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub s: Option<Vec<u8>>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph, such as the body of a loop.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Texts.
    #[prost(bytes = "vec", repeated, tag = "9")]
    pub strings: Vec<Vec<u8>>,
    /// Which of the fields is set.
    #[prost(int32, optional, tag = "20")]
    pub r#type: Option<i32>,
}

impl AttributeProto {
    fn new(name: &str, kind: i32) -> AttributeProto {
        AttributeProto { name: name.to_string(), r#type: Some(kind), ..AttributeProto::default() }
    }

    /// A number.
    pub fn float(name: &str, value: f32) -> AttributeProto {
        AttributeProto { f: Some(value), ..AttributeProto::new(name, kind::FLOAT) }
    }

    /// An integer.
    pub fn int(name: &str, value: i64) -> AttributeProto {
        AttributeProto { i: Some(value), ..AttributeProto::new(name, kind::INT) }
    }

    /// Text.
    pub fn text(name: &str, value: impl Into<Vec<u8>>) -> AttributeProto {
        AttributeProto { s: Some(value.into()), ..AttributeProto::new(name, kind::STRING) }
    }

    /// A tensor.
    pub fn tensor(name: &str, value: TensorProto) -> AttributeProto {
        AttributeProto { t: Some(value), ..AttributeProto::new(name, kind::TENSOR) }
    }

    /// A graph.
    pub fn graph(name: &str, value: GraphProto) -> AttributeProto {
        AttributeProto { g: Some(value), ..AttributeProto::new(name, kind::GRAPH) }
    }

    /// Integers.
    pub fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> AttributeProto {
        AttributeProto { ints: values.into_iter().collect(), ..AttributeProto::new(name, kind::INTS) }
    }

    /// Texts.
    pub fn texts(name: &str, values: Vec<Vec<u8>>) -> AttributeProto {
        AttributeProto { strings: values, ..AttributeProto::new(name, kind::STRINGS) }
    }
}

/// The name and type of a value.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type. Ours are tensors.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// The type of a tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// The element type and the shape of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// The element type, as in [`TensorProto::data_type`].
    #[prost(int32, optional, tag = "1")]
    pub elem_type: Option<i32>,
    /// The shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// The sizes of axes.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// The axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// The size of an axis: a number, a name that equal sizes share, or unknown.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// The number or the name.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// What is known of a size.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionValue {
    /// The size.
    #[prost(int64, tag = "1")]
    Size(i64),
    /// The name of a size that is known at run time.
    #[prost(string, tag = "2")]
    Name(String),
}

/// A tensor with its values.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// The sizes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The element type.
    #[prost(int32, optional, tag = "2")]
    pub data_type: Option<i32>,
    /// The elements of a tensor of strings.
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub string_data: Vec<Vec<u8>>,
    /// The name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// The elements of any other tensor, little-endian.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub raw_data: Option<Vec<u8>>,
}
