//! The messages in the index of a checkpoint (a "tensor bundle"): one header, then one entry per
//! tensor.

use crate::graph_def::VersionDef;
use crate::tensor_proto::{DataType, TensorShapeProto};

/// The value of the empty key, which is the first of the index.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BundleHeaderProto {
    /// Number of data files.
    #[prost(int32, tag = "1")]
    pub num_shards: i32,
    /// Byte order of the data.
    #[prost(enumeration = "Endianness", tag = "2")]
    pub endianness: i32,
    /// Version of the bundle format.
    #[prost(message, optional, tag = "3")]
    pub version: Option<VersionDef>,
}

/// Byte order of the data files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Endianness {
    /// Least significant byte first.
    Little = 0,
    /// Most significant byte first.
    Big = 1,
}

/// The location of the bytes of one tensor, or of one slice of a partitioned tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BundleEntryProto {
    /// Element type.
    #[prost(enumeration = "DataType", tag = "1")]
    pub dtype: i32,
    /// Shape of the whole tensor.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    /// The index of the data file.
    #[prost(int32, tag = "3")]
    pub shard_id: i32,
    /// The offset of the first byte in the data file.
    #[prost(int64, tag = "4")]
    pub offset: i64,
    /// Number of bytes.
    #[prost(int64, tag = "5")]
    pub size: i64,
    /// Masked checksum of the bytes.
    #[prost(fixed32, tag = "6")]
    pub crc32c: u32,
    /// If not empty, the tensor is partitioned: each of these slices has its own entry, and this
    /// entry has no data.
    #[prost(message, repeated, tag = "7")]
    pub slices: Vec<TensorSliceProto>,
}

/// A block of a tensor, one extent per dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorSliceProto {
    /// The extents, outermost dimension first.
    #[prost(message, repeated, tag = "1")]
    pub extent: Vec<Extent>,
}

/// A range in one dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Extent {
    /// First index.
    #[prost(int64, tag = "1")]
    pub start: i64,
    /// Number of indices; all of the dimension if absent.
    // A `oneof` with a single field is an optional field on the wire.
    #[prost(int64, optional, tag = "2")]
    pub length: Option<i64>,
}

/// The object graph of an object-based checkpoint, as Keras writes it: the keys under which the
/// values of objects are stored.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackableObjectGraph {
    /// The objects.
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<TrackableObject>,
}

/// One object.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackableObject {
    /// The objects that it holds.
    #[prost(message, repeated, tag = "1")]
    pub children: Vec<ObjectReference>,
    /// The values of the object.
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<SerializedTensor>,
}

/// An object that another holds, by the name of the attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ObjectReference {
    /// The place of the object in the list of all.
    #[prost(int32, tag = "1")]
    pub node_id: i32,
    /// The name of the attribute.
    #[prost(string, tag = "2")]
    pub local_name: String,
}

/// One value of an object.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SerializedTensor {
    /// The role of the value in the object: `VARIABLE_VALUE`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The name of the variable; empty if it has none.
    #[prost(string, tag = "2")]
    pub full_name: String,
    /// The name of the tensor in the checkpoint.
    #[prost(string, tag = "3")]
    pub checkpoint_key: String,
}
