//! Graphs on disk: `GraphDef`, its nodes and their attributes.

use std::collections::BTreeMap;

use crate::function_def::FunctionDefLibrary;
use crate::tensor_proto::{DataType, TensorProto, TensorShapeProto};

/// A graph: nodes that name their inputs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphDef {
    /// The nodes, in any order.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeDef>,
    /// The version of the TensorFlow that wrote the graph, and the versions that may read it.
    #[prost(message, optional, tag = "4")]
    pub versions: Option<VersionDef>,
    /// The version, in graphs older than `versions`.
    #[prost(int32, tag = "3")]
    pub version: i32,
    /// The functions that nodes call.
    #[prost(message, optional, tag = "2")]
    pub library: Option<FunctionDefLibrary>,
    /// The places where nodes were created: an encoded `GraphDebugInfo`, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub debug_info: Option<Vec<u8>>,
}

/// The version of the writer of a file, and the versions of the readers it accepts.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VersionDef {
    /// Version of the code that wrote the data.
    #[prost(int32, tag = "1")]
    pub producer: i32,
    /// Readers below this version must refuse the data.
    #[prost(int32, tag = "2")]
    pub min_consumer: i32,
    /// Versions of readers that must refuse the data.
    #[prost(int32, repeated, tag = "3")]
    pub bad_consumers: Vec<i32>,
}

/// One operation of a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeDef {
    /// The name, unique in the graph; scopes are separated by `/`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Name of the operation, such as `MatMul`.
    #[prost(string, tag = "2")]
    pub op: String,
    /// The inputs: `node`, `node:output` or, for a control input, `^node`. Control inputs come
    /// last.
    #[prost(string, repeated, tag = "3")]
    pub input: Vec<String>,
    /// The device to run on; empty for any device.
    #[prost(string, tag = "4")]
    pub device: String,
    /// The attributes of the operation. Ordered, so that equal graphs have equal bytes.
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
    /// The names of the nodes it was created from: an encoded message, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "6")]
    pub experimental_debug_info: Option<Vec<u8>>,
    /// An encoded `FullTypeDef`, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub experimental_type: Option<Vec<u8>>,
}

impl NodeDef {
    /// Creates a node without inputs and attributes.
    pub fn new(name: impl Into<String>, op: impl Into<String>) -> NodeDef {
        NodeDef { name: name.into(), op: op.into(), ..Default::default() }
    }

    /// Adds an input.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> NodeDef {
        self.input.push(input.into());
        self
    }

    /// Sets an attribute.
    #[must_use]
    pub fn attr(mut self, key: impl Into<String>, value: impl Into<AttrValue>) -> NodeDef {
        self.attr.insert(key.into(), value.into());
        self
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttrValue {
    /// `None` for an attribute that is present without a value.
    #[prost(oneof = "Attr", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub value: Option<Attr>,
}

/// The kinds of attribute values.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Attr {
    /// A list of one of the other kinds.
    #[prost(message, tag = "1")]
    List(ListValue),
    /// Bytes, usually text.
    #[prost(bytes = "vec", tag = "2")]
    S(Vec<u8>),
    /// An integer.
    #[prost(int64, tag = "3")]
    I(i64),
    /// A float.
    #[prost(float, tag = "4")]
    F(f32),
    /// A boolean.
    #[prost(bool, tag = "5")]
    B(bool),
    /// The code of a [`DataType`].
    #[prost(enumeration = "DataType", tag = "6")]
    Type(i32),
    /// A shape.
    #[prost(message, tag = "7")]
    Shape(TensorShapeProto),
    /// A constant.
    #[prost(message, boxed, tag = "8")]
    Tensor(Box<TensorProto>),
    /// In the body of a function: the name of the function's attribute to use.
    #[prost(string, tag = "9")]
    Placeholder(String),
    /// A function and its attributes.
    #[prost(message, tag = "10")]
    Func(NameAttrList),
}

/// A list of attribute values. One of the fields is filled, or none for the empty list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListValue {
    /// Byte strings.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub s: Vec<Vec<u8>>,
    /// Integers.
    #[prost(int64, repeated, tag = "3")]
    pub i: Vec<i64>,
    /// Floats.
    #[prost(float, repeated, tag = "4")]
    pub f: Vec<f32>,
    /// Booleans.
    #[prost(bool, repeated, tag = "5")]
    pub b: Vec<bool>,
    /// Codes of [`DataType`]s.
    #[prost(enumeration = "DataType", repeated, tag = "6")]
    pub r#type: Vec<i32>,
    /// Shapes.
    #[prost(message, repeated, tag = "7")]
    pub shape: Vec<TensorShapeProto>,
    /// Constants.
    #[prost(message, repeated, tag = "8")]
    pub tensor: Vec<TensorProto>,
    /// Functions.
    #[prost(message, repeated, tag = "9")]
    pub func: Vec<NameAttrList>,
}

/// The name of a function and the attributes to call it with.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NameAttrList {
    /// Name of the function.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its attributes.
    #[prost(btree_map = "string, message", tag = "2")]
    pub attr: BTreeMap<String, AttrValue>,
}

impl AttrValue {
    /// The element type, if the value is one that has a name.
    pub fn data_type(&self) -> Option<DataType> {
        match self.value {
            Some(Attr::Type(code)) => DataType::try_from(code).ok(),
            _ => None,
        }
    }

    /// The integer, if the value is one.
    pub fn int(&self) -> Option<i64> {
        match self.value {
            Some(Attr::I(value)) => Some(value),
            _ => None,
        }
    }

    /// The float, if the value is one.
    pub fn float(&self) -> Option<f32> {
        match self.value {
            Some(Attr::F(value)) => Some(value),
            _ => None,
        }
    }

    /// The boolean, if the value is one.
    pub fn bool(&self) -> Option<bool> {
        match self.value {
            Some(Attr::B(value)) => Some(value),
            _ => None,
        }
    }

    /// The bytes, if the value is a string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.value {
            Some(Attr::S(value)) => Some(value),
            _ => None,
        }
    }

    /// The shape, if the value is one.
    pub fn shape(&self) -> Option<&TensorShapeProto> {
        match &self.value {
            Some(Attr::Shape(value)) => Some(value),
            _ => None,
        }
    }

    /// The constant, if the value is one.
    pub fn tensor(&self) -> Option<&TensorProto> {
        match &self.value {
            Some(Attr::Tensor(value)) => Some(value),
            _ => None,
        }
    }

    /// The list, if the value is one.
    pub fn list(&self) -> Option<&ListValue> {
        match &self.value {
            Some(Attr::List(value)) => Some(value),
            _ => None,
        }
    }
}

macro_rules! attr_from {
    ($($from:ty => |$v:ident| $attr:expr),* $(,)?) => {$(
        impl From<$from> for AttrValue {
            fn from($v: $from) -> AttrValue {
                AttrValue { value: Some($attr) }
            }
        }
    )*};
}

attr_from! {
    i64 => |v| Attr::I(v),
    f32 => |v| Attr::F(v),
    bool => |v| Attr::B(v),
    &str => |v| Attr::S(v.as_bytes().to_vec()),
    Vec<u8> => |v| Attr::S(v),
    DataType => |v| Attr::Type(v.into()),
    TensorShapeProto => |v| Attr::Shape(v),
    TensorProto => |v| Attr::Tensor(Box::new(v)),
    NameAttrList => |v| Attr::Func(v),
    ListValue => |v| Attr::List(v),
    Vec<i64> => |v| Attr::List(ListValue { i: v, ..Default::default() }),
    Vec<f32> => |v| Attr::List(ListValue { f: v, ..Default::default() }),
    Vec<bool> => |v| Attr::List(ListValue { b: v, ..Default::default() }),
    Vec<DataType> => |v| Attr::List(ListValue { r#type: v.into_iter().map(i32::from).collect(), ..Default::default() }),
    Vec<TensorShapeProto> => |v| Attr::List(ListValue { shape: v, ..Default::default() }),
    Vec<Vec<u8>> => |v| Attr::List(ListValue { s: v, ..Default::default() }),
}
