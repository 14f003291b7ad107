//! Reads models that TensorFlow exported: the graph of a SavedModel, pruned to a signature, becomes
//! one of our graphs.
//!
//! ```no_run
//! use estimand_tf::saved_model::SavedModel;
//! use estimand_tensor::Array;
//!
//! let model = SavedModel::open("export/1700000000")?;
//! for (name, signature) in model.signatures() {
//!     println!("{name}: {:?} -> {:?}", signature.inputs, signature.outputs);
//! }
//! let predict = model.signature("predict")?;
//! let answers = predict.run(&[("examples", Array::from_strings([1], [b"serialized tf.Example"])?)])?;
//! println!("{}", answers["probabilities"]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! A model is read in this order: [`SavedModel::open`] reads `saved_model.pb`; `signature.rs` makes
//! placeholders of a signature's inputs; `inline.rs` replaces calls by the nodes of their
//! functions; `nodes.rs` orders the nodes that its outputs need; `reader.rs` reads them one by one,
//! each by its rule in `rules/`, which gets its inputs through `node_reader.rs`; `numbers.rs`
//! tracks the integers that shapes are computed from; `variables.rs` finds the values of variables
//! in the checkpoint.
//!
//! The result is a normal graph: strings, tables and sparse tensors are in the host's part, numbers
//! in the step. Control inputs are ignored. Assertions, which they wait for, are read only where
//! they are checks that we have written (`checks.rs`). A signature that changes a variable or a
//! table that its outputs read is refused (`writes.rs`). Ops that we have written as several nodes
//! become one op again (`composed.rs`).

mod checks;
mod composed;
mod graph;
mod growth;
mod inline;
mod inspect;
mod library;
mod limits;
mod node_output;
mod node_reader;
mod nodes;
mod numbers;
mod reader;
mod rules;
mod signature;
mod step;
mod step_loop;
mod variables;
mod writes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fs, io};

use estimand_graph::State;
use estimand_tensor::{Error, Result, Shape};
use estimand_wire::function_def::OpDef;
use estimand_wire::saved_model::Encoding;
use estimand_wire::{GraphDef, Message, MetaGraphDef, SavedModel as SavedModelProto, SignatureDef, TensorInfo};
use indexmap::IndexMap;

pub use graph::{ReadGraph, read_graph_def, read_graph_def_within};
pub use inspect::{Contents, GraphContents, SignatureContents, TensorContents, inspect};
pub use limits::ReadLimits;
pub use signature::{Signature, SignatureModel};
use variables::ReadValues;

/// The field path of graphs in a SavedModel: `meta_graphs`, then `graph_def`.
const GRAPHS: [u32; 2] = [2, 2];

/// The tag of graphs for serving.
const SERVE: &str = "serve";

/// TF: names of signatures that are not for callers begin so.
const INTERNAL: &str = "__saved_model_";

/// An exported model.
pub struct SavedModel {
    folder: PathBuf,
    meta_graph: MetaGraphDef,
    /// The files of asset constants, by the constant's node.
    assets: BTreeMap<String, PathBuf>,
    shapes: BTreeMap<String, Shape>,
    any_rows: bool,
    limits: ReadLimits,
    /// The values of variables that signatures have read. Each is in memory once.
    read: Mutex<ReadValues>,
}

impl SavedModel {
    /// Reads the graph of an export that is tagged `serve`, with the default [`ReadLimits`].
    ///
    /// Variables are read when a signature needs them.
    pub fn open(folder: impl AsRef<Path>) -> Result<SavedModel> {
        SavedModel::open_within(folder, ReadLimits::default())
    }

    /// Like [`SavedModel::open`], with other limits.
    pub fn open_within(folder: impl AsRef<Path>, limits: ReadLimits) -> Result<SavedModel> {
        let folder = folder.as_ref();
        let place = |e: Error| e.context(format!("in {}", path(folder).display()));
        let message = read_message(folder, &limits)?;
        let index = message.meta_graphs.iter().position(|graph| graph.tags().eq([SERVE]));
        let Some(index) = index else {
            return Err(message
                .meta_graph(&[SERVE])
                .map_or_else(place, |_| place(Error::internal("a graph that is there was not found"))));
        };
        let meta_graph = message.meta_graphs.into_iter().nth(index).unwrap_or_default();
        let assets = assets(folder, &meta_graph).map_err(place)?;
        let (folder, shapes) = (folder.to_path_buf(), BTreeMap::new());
        let read = Mutex::default();
        Ok(SavedModel { folder, meta_graph, assets, shapes, any_rows: false, limits, read })
    }

    /// The signatures by name, with their inputs and outputs. Nodes that TensorFlow lists as
    /// signatures for its own use, such as the one that fills tables, are left out.
    pub fn signatures(&self) -> impl Iterator<Item = (&str, Signature)> {
        let all = self.meta_graph.signature_def.iter().filter(|(name, _)| !name.starts_with(INTERNAL));
        all.map(|(name, def)| (name.as_str(), Signature::of(def)))
    }

    /// The messages of the signatures, by name: the tensors of the graph that a caller feeds and
    /// fetches.
    pub fn signature_defs(&self) -> &BTreeMap<String, SignatureDef> {
        &self.meta_graph.signature_def
    }

    /// Sets the shape of an input that the export leaves open. By default an unknown first axis is
    /// the batch, and other unknown axes may have any size.
    pub fn with_shape(mut self, input: &str, shape: impl Into<Shape>) -> SavedModel {
        self.shapes.insert(input.to_string(), shape.into());
        self
    }

    /// Lets inputs have different numbers of rows. By default an unknown first axis is the batch,
    /// which all inputs share.
    pub fn any_rows(mut self) -> SavedModel {
        self.any_rows = true;
        self
    }

    /// Reads the nodes of a signature and the values of its variables. Values that another
    /// signature of this model has read are shared.
    #[track_caller]
    pub fn signature(&self, name: &str) -> Result<SignatureModel> {
        self.read_signature(name, None)
    }

    /// Reads the nodes of a signature, to run on the variables of a state. The values in the folder
    /// are not read.
    #[track_caller]
    pub fn signature_on(&self, name: &str, state: Arc<dyn State>) -> Result<SignatureModel> {
        self.read_signature(name, Some(state))
    }

    /// Reads a signature with more outputs: tensors of the graph, such as
    /// `age_bucketized/Bucketize:0`, each with the name that it gets among the outputs.
    #[track_caller]
    pub fn signature_with(&self, name: &str, more: &[(String, String)]) -> Result<SignatureModel> {
        let mut signature = self.meta_graph.signature(name)?.clone();
        let info =
            |tensor: &String| TensorInfo { encoding: Some(Encoding::Name(tensor.clone())), ..TensorInfo::default() };
        signature.outputs.extend(more.iter().map(|(output, tensor)| (output.clone(), info(tensor))));
        SignatureModel::read(self, &signature, None).map_err(|e| self.place(e, name))
    }

    #[track_caller]
    fn read_signature(&self, name: &str, state: Option<Arc<dyn State>>) -> Result<SignatureModel> {
        let signature = self.meta_graph.signature(name)?;
        SignatureModel::read(self, signature, state).map_err(|e| self.place(e, name))
    }

    fn place(&self, error: Error, signature: &str) -> Error {
        error.context(format!("while reading signature `{signature}` of {}", self.folder.display()))
    }

    /// The signatures of the ops that the graph uses.
    fn ops(&self) -> &[OpDef] {
        let info = self.meta_graph.meta_info_def.as_ref();
        info.and_then(|info| info.stripped_op_list.as_ref()).map_or(&[], |list| &list.op)
    }

    fn graph_def(&self) -> Result<&GraphDef> {
        self.meta_graph.graph_def.as_ref().ok_or_else(|| Error::config("the saved model has no graph"))
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("saved_model.pb")
}

/// Reads the message of a SavedModel.
fn read_message(folder: &Path, limits: &ReadLimits) -> Result<SavedModelProto> {
    let path = path(folder);
    let no_file = |e: io::Error| {
        Error::io(&path, "read", &e).help("give the folder of a SavedModel, which has the file saved_model.pb in it")
    };
    let place = |e: Error| e.context(format!("in {}", path.display()));
    limits.check_file(fs::metadata(&path).map_err(no_file)?.len()).map_err(place)?;
    let bytes = fs::read(&path).map_err(no_file)?;
    limits.check_messages(&bytes, &GRAPHS).map_err(place)?;
    SavedModelProto::decode(bytes.as_slice())
        .map_err(|e| place(Error::config(format!("the file is damaged or not a SavedModel: {e}"))))
}

/// The files in `assets/`, by the node of the constant that holds their path.
fn assets(folder: &Path, meta_graph: &MetaGraphDef) -> Result<BTreeMap<String, PathBuf>> {
    let mut assets = BTreeMap::new();
    for asset in meta_graph.assets()? {
        let Some(tensor) = asset.tensor_info.as_ref().and_then(|info| info.name()) else {
            return Err(Error::config(format!("the asset `{}` does not name a tensor", asset.filename)));
        };
        let name = Path::new(&asset.filename);
        // The name comes from the file, so it must not lead to another folder.
        let plain = name.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !plain || asset.filename.is_empty() {
            return Err(Error::config(format!("the asset `{}` is not in the folder of the model", asset.filename)));
        }
        let node = tensor.split(':').next().unwrap_or(tensor);
        assets.insert(node.to_string(), folder.join("assets").join(name));
    }
    Ok(assets)
}

/// Values by name, in the order of the file.
pub type Named<T> = IndexMap<String, T>;
