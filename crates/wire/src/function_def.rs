//! Functions inside a graph: `FunctionDefLibrary`, its functions, and the signatures (`OpDef`) of
//! functions and ops.
//!
//! A graph's nodes call functions by name (`PartitionedCall` and similar ops); the bodies are here.
//! Parts that only a running TensorFlow understands (full types, handle data) are kept as encoded
//! bytes, so that rewriting a library loses nothing.

use std::collections::BTreeMap;

use crate::graph_def::{AttrValue, NodeDef};
use crate::tensor_proto::DataType;

/// The functions that the nodes of a graph call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionDefLibrary {
    /// The functions, in any order.
    #[prost(message, repeated, tag = "1")]
    pub function: Vec<FunctionDef>,
    /// The pairs of functions and their gradients.
    #[prost(message, repeated, tag = "2")]
    pub gradient: Vec<GradientDef>,
    /// Gradients registered under their own names.
    #[prost(message, repeated, tag = "3")]
    pub registered_gradients: Vec<RegisteredGradient>,
}

impl FunctionDefLibrary {
    /// The function with a name.
    pub fn function(&self, name: &str) -> Option<&FunctionDef> {
        self.function.iter().find(|function| function.signature.as_ref().is_some_and(|s| s.name == name))
    }
}

/// One function: its arguments, its results, and the nodes between them.
///
/// In the body, an input is an argument's name or `node:output:index`, where `output` is the
/// output's name in the op.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionDef {
    /// Name, arguments, results.
    #[prost(message, optional, tag = "1")]
    pub signature: Option<OpDef>,
    /// Attributes of the function.
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
    /// Attributes of its arguments, by their position.
    #[prost(btree_map = "uint32, message", tag = "7")]
    pub arg_attr: BTreeMap<u32, ArgAttrs>,
    /// Arguments that refer to the same resource have the same number.
    #[prost(btree_map = "uint32, uint32", tag = "8")]
    pub resource_arg_unique_id: BTreeMap<u32, u32>,
    /// The body.
    #[prost(message, repeated, tag = "3")]
    pub node_def: Vec<NodeDef>,
    /// For each result, by name, the value of the body that it returns.
    #[prost(btree_map = "string, string", tag = "4")]
    pub ret: BTreeMap<String, String>,
    /// For each control output of the signature, the node of the body that must have run.
    #[prost(btree_map = "string, string", tag = "6")]
    pub control_ret: BTreeMap<String, String>,
}

/// The attributes of one argument.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArgAttrs {
    /// The attributes, by name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub attr: BTreeMap<String, AttrValue>,
}

/// A function and its gradient.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GradientDef {
    /// Name of the function.
    #[prost(string, tag = "1")]
    pub function_name: String,
    /// Name of the function that computes its gradient.
    #[prost(string, tag = "2")]
    pub gradient_func: String,
}

/// A gradient registered under its own name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RegisteredGradient {
    /// Name of the function that computes it.
    #[prost(string, tag = "1")]
    pub gradient_func: String,
    /// The name.
    #[prost(string, tag = "2")]
    pub registered_op_type: String,
}

/// The signatures of several ops.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpList {
    /// The ops.
    #[prost(message, repeated, tag = "1")]
    pub op: Vec<OpDef>,
}

/// The signature of an op or a function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpDef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Inputs.
    #[prost(message, repeated, tag = "2")]
    pub input_arg: Vec<ArgDef>,
    /// Outputs.
    #[prost(message, repeated, tag = "3")]
    pub output_arg: Vec<ArgDef>,
    /// Names of control outputs; functions only.
    #[prost(string, repeated, tag = "20")]
    pub control_output: Vec<String>,
    /// Parameters.
    #[prost(message, repeated, tag = "4")]
    pub attr: Vec<AttrDef>,
    /// The deprecation notice: an encoded `OpDeprecation`, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "8")]
    pub deprecation: Option<Vec<u8>>,
    /// One line of documentation.
    #[prost(string, tag = "5")]
    pub summary: String,
    /// Documentation.
    #[prost(string, tag = "6")]
    pub description: String,
    /// `op(a, b) = op(b, a)`
    #[prost(bool, tag = "18")]
    pub is_commutative: bool,
    /// Inputs of one type may be grouped in any way, as in a sum.
    #[prost(bool, tag = "16")]
    pub is_aggregate: bool,
    /// It has state or side effects.
    #[prost(bool, tag = "17")]
    pub is_stateful: bool,
    /// It accepts an uninitialized input, as an assignment does for its target.
    #[prost(bool, tag = "19")]
    pub allows_uninitialized_input: bool,
    /// It communicates with other machines.
    #[prost(bool, tag = "21")]
    pub is_distributed_communication: bool,
}

/// An input or output of an [`OpDef`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArgDef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Documentation.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Element type, if it is fixed.
    #[prost(enumeration = "DataType", tag = "3")]
    pub r#type: i32,
    /// The attribute that holds the element type, if it is not fixed.
    #[prost(string, tag = "4")]
    pub type_attr: String,
    /// The attribute that holds the number of tensors of the type.
    #[prost(string, tag = "5")]
    pub number_attr: String,
    /// The attribute that lists the types of several tensors.
    #[prost(string, tag = "6")]
    pub type_list_attr: String,
    /// The target of a resource handle: encoded messages, kept as bytes.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub handle_data: Vec<Vec<u8>>,
    /// Whether it is a reference, as in old graphs.
    #[prost(bool, tag = "16")]
    pub is_ref: bool,
    /// An encoded `FullTypeDef`, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "17")]
    pub experimental_full_type: Option<Vec<u8>>,
}

/// A parameter of an [`OpDef`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttrDef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its kind, such as `int` or `list(type)`.
    #[prost(string, tag = "2")]
    pub r#type: String,
    /// The default, for nodes that do not set the attribute.
    #[prost(message, optional, tag = "3")]
    pub default_value: Option<AttrValue>,
    /// Documentation.
    #[prost(string, tag = "4")]
    pub description: String,
    /// Whether `minimum` applies.
    #[prost(bool, tag = "5")]
    pub has_minimum: bool,
    /// The smallest integer, or the smallest length of a list.
    #[prost(int64, tag = "6")]
    pub minimum: i64,
    /// The allowed values, as a list.
    #[prost(message, optional, tag = "7")]
    pub allowed_values: Option<AttrValue>,
}
