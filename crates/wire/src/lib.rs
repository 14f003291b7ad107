//! The bytes of TensorFlow's files: protobuf messages and record framing.
//!
//! This crate does not interpret messages: `estimand-graph` turns graphs into [`GraphDef`]s and
//! variables into checkpoints, and the data pipeline reads records. The messages are written by
//! hand, without `protoc`: a field number is a fact of the format, and the fixtures that TensorFlow
//! wrote check them. Every parser is a function from bytes to a `Result`. No parser panics, and
//! none allocates a length that the input only claims.
//!
//! ```
//! use estimand_wire::{AttrValue, DataType, GraphDef, Message, NodeDef};
//!
//! let node = NodeDef::new("x", "Placeholder").attr("dtype", DataType::Float);
//! let bytes = GraphDef { node: vec![node], ..Default::default() }.encode_to_vec();
//!
//! let graph = GraphDef::decode(bytes.as_slice())?;
//! assert_eq!(graph.node[0].attr["dtype"], AttrValue::from(DataType::Float));
//! # Ok::<(), estimand_wire::DecodeError>(())
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod bundle;
pub mod checkpoint_state;
pub mod collection_def;
pub mod crc;
pub mod event;
pub mod example;
pub mod function_def;
pub mod graph_def;
mod graph_text;
pub mod plugin;
pub mod record;
pub mod saved_model;
pub mod scan;
pub mod temporary;
mod tensor_array;
pub mod tensor_bytes;
pub mod tensor_proto;
mod text;
pub mod varint;

pub use checkpoint_state::CheckpointState;
pub use event::Event;
pub use example::{ExampleBuilder, ExampleParser, SequenceExampleParser};
pub use function_def::{FunctionDef, FunctionDefLibrary};
pub use graph_def::{AttrValue, GraphDef, ListValue, NameAttrList, NodeDef, VersionDef};
pub use prost::{DecodeError, Message};
pub use saved_model::{AssetFileDef, MetaGraphDef, SavedModel, SignatureDef, TensorInfo, VariableDef};
pub use tensor_array::REPETITION_LIMIT;
pub use tensor_proto::{DataType, TensorProto, TensorShapeProto};
