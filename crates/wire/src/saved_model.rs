//! Exported models: `saved_model.pb` and the messages it is made of.
//!
//! A [`SavedModel`] holds graphs for different purposes, told apart by tags; what an Estimator
//! exports has one, tagged `serve`. A [`SignatureDef`] names the tensors of that graph which a
//! caller feeds and fetches. What only Python's loader reads (the object graph, type specs) is kept
//! as the bytes it came as.

use std::collections::BTreeMap;

use estimand_tensor::{Error, Result};
use prost::Message;

use crate::collection_def::{Any, Collection, CollectionDef};
use crate::function_def::OpList;
use crate::graph_def::GraphDef;
use crate::tensor_proto::{DataType, TensorProto, TensorShapeProto};

/// The collection of assets in the graph of a session.
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
    /// The graph that has exactly these tags, in any order.
    pub fn meta_graph(&self, tags: &[&str]) -> Result<&MetaGraphDef> {
        let wanted = sorted(tags.iter().copied());
        self.meta_graphs.iter().find(|graph| sorted(graph.tags()) == wanted).ok_or_else(|| {
            let available: Vec<_> = self.meta_graphs.iter().map(|graph| graph.tags().collect::<Vec<_>>()).collect();
            Error::config(format!("the saved model has no graph with the tags {tags:?}"))
                .help(format!("its graphs are tagged {available:?}"))
        })
    }
}

fn sorted<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut tags: Vec<_> = tags.collect();
    tags.sort_unstable();
    tags
}

/// A graph with what is needed to use it: signatures, assets, how to restore its variables.
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
    /// What callers feed and fetch, by name.
    #[prost(btree_map = "string, message", tag = "5")]
    pub signature_def: BTreeMap<String, SignatureDef>,
    /// Files in `assets/` and the tensors that stand for their paths.
    #[prost(message, repeated, tag = "6")]
    pub asset_file_def: Vec<AssetFileDef>,
    /// Python's objects: an encoded `SavedObjectGraph`, kept as it came.
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
    /// TensorFlow 2 lists them in `asset_file_def`, a session's graph in a collection.
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

    /// The signature of a name.
    pub fn signature(&self, name: &str) -> Result<&SignatureDef> {
        self.signature_def.get(name).ok_or_else(|| {
            Error::unknown("signature", name, self.signature_def.keys().map(String::as_str))
                .context("in the saved model")
        })
    }
}

/// About a [`MetaGraphDef`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetaInfoDef {
    /// The user's own version.
    #[prost(string, tag = "1")]
    pub meta_graph_version: String,
    /// Signatures of the ops that the graph uses.
    #[prost(message, optional, tag = "2")]
    pub stripped_op_list: Option<OpList>,
    /// The user's own message.
    #[prost(message, optional, tag = "3")]
    pub any_info: Option<Any>,
    /// What the graph is for, such as `serve`.
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
    /// The TensorFlow that wrote it.
    #[prost(string, tag = "5")]
    pub tensorflow_version: String,
    /// Its commit.
    #[prost(string, tag = "6")]
    pub tensorflow_git_version: String,
    /// Whether attributes that have their default value were left out of the nodes.
    #[prost(bool, tag = "7")]
    pub stripped_default_attrs: bool,
    /// Names users gave to functions: from the function's name in the graph.
    #[prost(btree_map = "string, string", tag = "8")]
    pub function_aliases: BTreeMap<String, String>,
}

/// The nodes that save and restore the variables of a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SaverDef {
    /// The tensor that is fed the checkpoint's prefix.
    #[prost(string, tag = "1")]
    pub filename_tensor_name: String,
    /// The tensor whose evaluation saves.
    #[prost(string, tag = "2")]
    pub save_tensor_name: String,
    /// The operation that restores.
    #[prost(string, tag = "3")]
    pub restore_op_name: String,
    /// How many checkpoints to keep.
    #[prost(int32, tag = "4")]
    pub max_to_keep: i32,
    /// Whether each device writes a data file of its own.
    #[prost(bool, tag = "5")]
    pub sharded: bool,
    /// After how many hours one more checkpoint is kept for good.
    #[prost(float, tag = "6")]
    pub keep_checkpoint_every_n_hours: f32,
    /// Format of the checkpoint.
    #[prost(enumeration = "CheckpointFormatVersion", tag = "7")]
    pub version: i32,
}

/// Formats of checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum CheckpointFormatVersion {
    /// Of the first TensorFlow.
    Legacy = 0,
    /// One table that holds the values too.
    V1 = 1,
    /// An index and data files.
    V2 = 2,
}

/// What a caller feeds and fetches.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SignatureDef {
    /// Tensors to feed, by the name the caller uses.
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, TensorInfo>,
    /// Tensors to fetch, by the name the caller uses.
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, TensorInfo>,
    /// What sort of request it answers, such as `tensorflow/serving/predict`.
    #[prost(string, tag = "3")]
    pub method_name: String,
    /// Values of inputs that the caller may leave out.
    #[prost(btree_map = "string, message", tag = "4")]
    pub defaults: BTreeMap<String, TensorProto>,
}

/// A tensor of a graph, as a signature names it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorInfo {
    /// Element type.
    #[prost(enumeration = "DataType", tag = "2")]
    pub dtype: i32,
    /// Shape, -1 where unknown.
    #[prost(message, optional, tag = "3")]
    pub tensor_shape: Option<TensorShapeProto>,
    /// Which tensor, or tensors, of the graph.
    #[prost(oneof = "Encoding", tags = "1, 4, 5")]
    pub encoding: Option<Encoding>,
}

/// How a tensor is represented in a graph.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Encoding {
    /// One dense tensor: `node:output`.
    #[prost(string, tag = "1")]
    Name(String),
    /// Three tensors of a sparse one.
    #[prost(message, tag = "4")]
    CooSparse(CooSparse),
    /// Tensors that Python puts together.
    #[prost(message, tag = "5")]
    CompositeTensor(CompositeTensor),
}

/// The three tensors of a sparse tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CooSparse {
    /// The values.
    #[prost(string, tag = "1")]
    pub values_tensor_name: String,
    /// Where they are, one row each.
    #[prost(string, tag = "2")]
    pub indices_tensor_name: String,
    /// The sizes of the whole.
    #[prost(string, tag = "3")]
    pub dense_shape_tensor_name: String,
}

/// Several tensors that are one value in Python.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompositeTensor {
    /// How to put them together: an encoded `TypeSpecProto`, kept as it came.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub type_spec: Option<Vec<u8>>,
    /// The tensors.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<TensorInfo>,
}

impl TensorInfo {
    /// A dense tensor: `name` is `node:output`.
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
