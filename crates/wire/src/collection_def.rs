//! The lists that a graph has in addition to its nodes: variables, initializers of tables, assets.

/// A list of a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CollectionDef {
    /// `None` for an empty list.
    #[prost(oneof = "Collection", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<Collection>,
}

/// The kinds of lists.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Collection {
    /// Names of nodes and tensors.
    #[prost(message, tag = "1")]
    NodeList(NodeList),
    /// Encoded messages, such as `VariableDef`s.
    #[prost(message, tag = "2")]
    BytesList(BytesList),
    /// Integers.
    #[prost(message, tag = "3")]
    Int64List(Int64List),
    /// Floats.
    #[prost(message, tag = "4")]
    FloatList(FloatList),
    /// Messages with their type.
    #[prost(message, tag = "5")]
    AnyList(AnyList),
}

/// Names of nodes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeList {
    /// The names.
    #[prost(string, repeated, tag = "1")]
    pub value: Vec<String>,
}

/// Byte strings.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BytesList {
    /// The strings.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

/// Integers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Int64List {
    /// The integers.
    #[prost(int64, repeated, tag = "1")]
    pub value: Vec<i64>,
}

/// Floats.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FloatList {
    /// The floats.
    #[prost(float, repeated, tag = "1")]
    pub value: Vec<f32>,
}

/// Messages of any type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyList {
    /// The messages.
    #[prost(message, repeated, tag = "1")]
    pub value: Vec<Any>,
}

/// A message and its type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    /// The full name of the type, after the last `/`.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}
