//! Exported models: `saved_model.pb` and its messages.
//!
//! A [`SavedModel`] holds graphs for different purposes, distinguished by tags. An Estimator
//! exports one graph, tagged `serve`. A [`SignatureDef`] names the tensors of that graph that a
//! caller feeds and fetches. Parts that only Python's loader reads (the object graph, type specs)
//! are kept as encoded bytes.

use std::collections::BTreeMap;

use estimand_tensor::{Error, Result};
use prost::Message;

use crate::collection_def::{Any, Collection, CollectionDef};
use crate::function_def::OpList;
use crate::graph_def::GraphDef;
use crate::tensor_proto::{DataType, TensorProto, TensorShapeProto};

/// The name of the collection of assets in the graph of a session.
const ASSETS: &str = "saved_model_assets";

/// The contents of `saved_model.pb`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedModel {
    /// Version of this format; 1.
    #[prost(int64, tag = "1")]
    pub saved_model_schema_version: i64,
    /// The graphs.
    #[prost(message, repeated, tag = "2")]
    pub meta_graphs: Vec<MetaGraphDef>,
}

impl SavedModel {
    /// Returns the graph that has exactly these tags, in any order.
    pub fn meta_graph(&self, tags: &[&str]) -> Result<&MetaGraphDef> {
        let wanted = sorted(tags.iter().copied());
        self.meta_graphs.iter().find(|graph| sorted(graph.tags()) == wanted).ok_or_else(|| {
            let available: Vec<_> = self.meta_graphs.iter().map(|graph| graph.tags().collect::<Vec<_>>()).collect();
            Error::config(format!("the saved model has no graph with the tags {tags:?}"))
                .help(format!("use one of the tags that its graphs have: {available:?}"))
        })
    }
}

fn sorted<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut tags: Vec<_> = tags.collect();
    tags.sort_unstable();
    tags
}

/// A graph with the information to use it: signatures, assets, and how to restore its variables.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetaGraphDef {
    /// Tags and versions.
    #[prost(message, optional, tag = "1")]
    pub meta_info_def: Option<MetaInfoDef>,
    /// The graph.
    #[prost(message, optional, tag = "2")]
    pub graph_def: Option<GraphDef>,
    /// The nodes that save and restore variables.
    #[prost(message, optional, tag = "3")]
    pub saver_def: Option<SaverDef>,
    /// Lists by name, such as the variables and the initializers of tables.
    #[prost(btree_map = "string, message", tag = "4")]
    pub collection_def: BTreeMap<String, CollectionDef>,
    /// The signatures, by name.
    #[prost(btree_map = "string, message", tag = "5")]
    pub signature_def: BTreeMap<String, SignatureDef>,
    /// The files in `assets/`, and the tensors that hold their paths.
    #[prost(message, repeated, tag = "6")]
    pub asset_file_def: Vec<AssetFileDef>,
    /// Python's objects: an encoded `SavedObjectGraph`, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub object_graph_def: Option<Vec<u8>>,
}

impl MetaGraphDef {
    /// The graph's tags.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.meta_info_def.iter().flat_map(|info| info.tags.iter().map(String::as_str))
    }

    /// The files in `assets/` and the tensors that must hold their paths.
    ///
    /// TensorFlow 2 lists them in `asset_file_def`; a session's graph lists them in a collection.
    pub fn assets(&self) -> Result<Vec<AssetFileDef>> {
        let mut assets = self.asset_file_def.clone();
        if let Some(Collection::AnyList(list)) = self.collection_def.get(ASSETS).and_then(|c| c.kind.as_ref()) {
            for any in &list.value {
                let asset = AssetFileDef::decode(any.value.as_slice()).map_err(|e| {
                    Error::config(format!("an entry of the collection `{ASSETS}` is not an asset: {e}"))
                })?;
                if !assets.contains(&asset) {
                    assets.push(asset);
                }
            }
        }
        Ok(assets)
    }

    /// The signature with a name.
    pub fn signature(&self, name: &str) -> Result<&SignatureDef> {
        self.signature_def.get(name).ok_or_else(|| {
            Error::unknown("signature", name, self.signature_def.keys().map(String::as_str))
                .context("in the saved model")
        })
    }
}

/// Tags and versions of a [`MetaGraphDef`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetaInfoDef {
    /// A version set by the user.
    #[prost(string, tag = "1")]
    pub meta_graph_version: String,
    /// Signatures of the ops that the graph uses.
    #[prost(message, optional, tag = "2")]
    pub stripped_op_list: Option<OpList>,
    /// A message set by the user.
    #[prost(message, optional, tag = "3")]
    pub any_info: Option<Any>,
    /// The purpose of the graph, such as `serve`.
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
    /// The version of TensorFlow that wrote it.
    #[prost(string, tag = "5")]
    pub tensorflow_version: String,
    /// The git commit of that version.
    #[prost(string, tag = "6")]
    pub tensorflow_git_version: String,
    /// Whether attributes with default values were left out of the nodes.
    #[prost(bool, tag = "7")]
    pub stripped_default_attrs: bool,
    /// The names that users gave to functions, by the function's name in the graph.
    #[prost(btree_map = "string, string", tag = "8")]
    pub function_aliases: BTreeMap<String, String>,
}

/// The nodes that save and restore the variables of a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SaverDef {
    /// The tensor to feed with the checkpoint's prefix.
    #[prost(string, tag = "1")]
    pub filename_tensor_name: String,
    /// The tensor that saves the variables when it is evaluated.
    #[prost(string, tag = "2")]
    pub save_tensor_name: String,
    /// The operation that restores the variables.
    #[prost(string, tag = "3")]
    pub restore_op_name: String,
    /// The number of checkpoints to keep.
    #[prost(int32, tag = "4")]
    pub max_to_keep: i32,
    /// Whether each device writes its own data file.
    #[prost(bool, tag = "5")]
    pub sharded: bool,
    /// The number of hours after which one more checkpoint is kept permanently.
    #[prost(float, tag = "6")]
    pub keep_checkpoint_every_n_hours: f32,
    /// Format of the checkpoint.
    #[prost(enumeration = "CheckpointFormatVersion", tag = "7")]
    pub version: i32,
}

/// A variable of a session's graph, in the collection `variables`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VariableDef {
    /// The tensor of the variable's handle.
    #[prost(string, tag = "1")]
    pub variable_name: String,
    /// The operation that gives it its initial value.
    #[prost(string, tag = "2")]
    pub initializer_name: String,
    /// The tensor that reads it.
    #[prost(string, tag = "3")]
    pub snapshot_name: String,
    /// Whether it is a resource, as in TensorFlow 2, and not a reference.
    #[prost(bool, tag = "5")]
    pub is_resource: bool,
    /// The tensor of its initial value.
    #[prost(string, tag = "6")]
    pub initial_value_name: String,
    /// Whether training changes it.
    #[prost(bool, tag = "7")]
    pub trainable: bool,
    /// When copies of it are aggregated. 0 is automatic.
    #[prost(int32, tag = "8")]
    pub synchronization: i32,
    /// How copies of it are aggregated: 0 not at all, 1 their sum, 2 their mean, 3 the first.
    #[prost(int32, tag = "9")]
    pub aggregation: i32,
}

/// Formats of checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum CheckpointFormatVersion {
    /// The format of the first TensorFlow.
    Legacy = 0,
    /// One table that also holds the values.
    V1 = 1,
    /// An index and data files.
    V2 = 2,
}

/// A signature: the tensors that a caller feeds and fetches.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SignatureDef {
    /// Tensors to feed, by the name the caller uses.
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, TensorInfo>,
    /// Tensors to fetch, by the name the caller uses.
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, TensorInfo>,
    /// The kind of request that it answers, such as `tensorflow/serving/predict`.
    #[prost(string, tag = "3")]
    pub method_name: String,
    /// Defaults of inputs that the caller may leave out.
    #[prost(btree_map = "string, message", tag = "4")]
    pub defaults: BTreeMap<String, TensorProto>,
}

/// A tensor of a graph in a signature.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorInfo {
    /// Element type.
    #[prost(enumeration = "DataType", tag = "2")]
    pub dtype: i32,
    /// Shape, -1 where unknown.
    #[prost(message, optional, tag = "3")]
    pub tensor_shape: Option<TensorShapeProto>,
    /// The tensor or tensors of the graph.
    #[prost(oneof = "Encoding", tags = "1, 4, 5")]
    pub encoding: Option<Encoding>,
}

/// The representation of a tensor in a graph.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Encoding {
    /// One dense tensor: `node:output`.
    #[prost(string, tag = "1")]
    Name(String),
    /// The three tensors of a sparse tensor.
    #[prost(message, tag = "4")]
    CooSparse(CooSparse),
    /// Several tensors that form one value in Python.
    #[prost(message, tag = "5")]
    CompositeTensor(CompositeTensor),
}

/// The three tensors of a sparse tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CooSparse {
    /// The values.
    #[prost(string, tag = "1")]
    pub values_tensor_name: String,
    /// The indices of the values, one row each.
    #[prost(string, tag = "2")]
    pub indices_tensor_name: String,
    /// The dense shape.
    #[prost(string, tag = "3")]
    pub dense_shape_tensor_name: String,
}

/// Several tensors that form one value in Python.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompositeTensor {
    /// The way to join them: an encoded `TypeSpecProto`, kept as bytes.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub type_spec: Option<Vec<u8>>,
    /// The tensors.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<TensorInfo>,
}

impl TensorInfo {
    /// Creates the information for a dense tensor; `name` is `node:output`.
    pub fn dense(name: impl Into<String>, dtype: DataType, shape: TensorShapeProto) -> TensorInfo {
        let encoding = Some(Encoding::Name(name.into()));
        TensorInfo { dtype: dtype.into(), tensor_shape: Some(shape), encoding }
    }

    /// The name of a dense tensor.
    pub fn name(&self) -> Option<&str> {
        match &self.encoding {
            Some(Encoding::Name(name)) => Some(name),
            _ => None,
        }
    }
}

/// A file in `assets/`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AssetFileDef {
    /// The string tensor that must hold the file's path.
    #[prost(message, optional, tag = "1")]
    pub tensor_info: Option<TensorInfo>,
    /// The file's name in `assets/`.
    #[prost(string, tag = "2")]
    pub filename: String,
}
