//! Writes SavedModels as TensorFlow's Estimator does: a graph for a session, with the nodes that
//! initialize, save and restore its variables, and a signature for each way to call it.
//!
//! [`meta_graph`] makes one graph of several, which share their variables and tables, and
//! [`write()`] writes the folder. [`meta_graphs`] makes a graph for each of several purposes, such
//! as serving and training. The same graphs and values give the same bytes.
//!
//! ```
//! use estimand_graph::{Graph, Initializer};
//! use estimand_tensor::{Array, DType, Dim};
//! use estimand_tf::saved_model::SavedModel;
//! use estimand_tf::saved_model_writer::{self, SERVE, SignatureOf, SignedGraph};
//!
//! let graph = Graph::new();
//! let x = graph.placeholder("x", DType::F32, [Dim::BATCH]);
//! let y = &x * &graph.variable("w", [], Initializer::Zeros);
//! let body = graph.body();
//! let signature = SignatureOf {
//!     name: "serving_default".to_string(),
//!     method: saved_model_writer::PREDICT.to_string(),
//!     inputs: vec![("x".to_string(), x.value())],
//!     outputs: vec![("y".to_string(), y.value())],
//!     ..SignatureOf::default()
//! };
//! let graphs = [SignedGraph { body: &body, signatures: vec![signature], variables: Vec::new() }];
//! let meta_graph = saved_model_writer::meta_graph(&[SERVE], &graphs)?;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-saved-model-{}", std::process::id()));
//! saved_model_writer::write(&folder, &[meta_graph], |_| Ok(Array::scalar(3f32)))?;
//! let model = SavedModel::open(&folder)?.signature("serving_default")?;
//! assert_eq!(model.run(&[("x", Array::from([1f32, 2.0]))])?["y"].as_slice::<f32>()?, [3.0, 6.0]);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod collections;
mod nodes;
mod signature;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use estimand_checkpoint::BundleWriter;
use estimand_graph::{Body, Value, VarId};
use estimand_tensor::{Array, Error, Result};
use estimand_wire::saved_model::{CheckpointFormatVersion, MetaInfoDef, SaverDef};
use estimand_wire::temporary::write_whole;
use estimand_wire::{AssetFileDef, DataType, Message, MetaGraphDef, SavedModel, TensorInfo, TensorShapeProto};

use crate::graph_def::{Asset, AssetText, Handle, Names, Part, export_all};
use collections::Collections;
use nodes::Saver;
pub use signature::SignatureOf;

/// The tag of graphs for serving.
pub const SERVE: &str = "serve";
/// The tag of graphs for evaluation, and the name of their signature.
pub const EVAL: &str = "eval";
/// The tag of graphs for training, and the name of their signature.
pub const TRAIN: &str = "train";
/// The method of a signature with any inputs and outputs.
pub const PREDICT: &str = "tensorflow/serving/predict";
/// The method of a signature that takes Examples and returns scores of classes.
pub const CLASSIFY: &str = "tensorflow/serving/classify";
/// The method of a signature that takes Examples and returns one number per row.
pub const REGRESS: &str = "tensorflow/serving/regress";
/// The method of a signature of a graph for evaluation.
pub const SUPERVISED_EVAL: &str = "tensorflow/supervised/eval";
/// The method of a signature of a graph for training.
pub const SUPERVISED_TRAINING: &str = "tensorflow/supervised/training";

/// The version of TensorFlow whose ops the nodes are written for.
const TENSORFLOW: &str = "2.15.1";

/// A graph and the ways to call it.
#[derive(Clone, Debug)]
pub struct SignedGraph<'a> {
    /// The graph.
    pub body: &'a Body,
    /// Its signatures.
    pub signatures: Vec<SignatureOf>,
    /// Variables to save even if no signature needs them.
    pub variables: Vec<VarId>,
}

/// One graph of a SavedModel, ready to be written.
#[derive(Clone, Debug)]
pub struct WrittenGraph {
    message: MetaGraphDef,
    variables: Vec<Handle>,
    /// The files of the assets by their names in the folder.
    assets: BTreeMap<String, PathBuf>,
    /// The names of the nodes of each graph that it was made of.
    names: Vec<Names>,
}

impl WrittenGraph {
    /// The name of a value of one of the graphs that it was made of, such as `dense/BiasAdd:0`.
    /// `None` if no signature needs the value.
    pub fn tensor_name(&self, graph: usize, value: Value) -> Option<String> {
        let node = self.names.get(graph)?.node(value.node);
        let nodes = &self.message.graph_def.as_ref()?.node;
        nodes.iter().any(|def| def.name == node).then(|| format!("{node}:{}", value.output))
    }

    /// The variables that the graph saves.
    pub fn variables(&self) -> &[Handle] {
        &self.variables
    }
}

/// A graph of a SavedModel before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Tagged<'a> {
    /// The tags by which loaders find the graph, such as [`SERVE`].
    pub tags: &'a [&'a str],
    /// The graphs that it is made of. They share their variables and tables.
    pub graphs: &'a [SignedGraph<'a>],
    /// The op of a training step, of the first graph.
    pub train_op: Option<Value>,
}

/// Joins graphs that share their variables and tables to one graph with the signatures of all.
pub fn meta_graph(tags: &[&str], graphs: &[SignedGraph<'_>]) -> Result<WrittenGraph> {
    joined(&Tagged { tags, graphs, train_op: None }, &mut BTreeMap::new())
}

/// Makes the graphs of a SavedModel that has several. They share the files of `assets/`, and
/// [`write()`] gives them the same variables.
pub fn meta_graphs(all: &[Tagged<'_>]) -> Result<Vec<WrittenGraph>> {
    let mut assets = BTreeMap::new();
    all.iter().map(|tagged| joined(tagged, &mut assets)).collect()
}

/// Makes one graph. `assets` has the names of files that are taken.
fn joined(tagged: &Tagged<'_>, assets: &mut BTreeMap<String, PathBuf>) -> Result<WrittenGraph> {
    let Tagged { tags, graphs, train_op } = *tagged;
    let mut fetches: Vec<Vec<Value>> =
        graphs.iter().map(|graph| graph.signatures.iter().flat_map(SignatureOf::values).collect()).collect();
    if let Some(first) = fetches.first_mut() {
        first.extend(train_op);
    }
    let parts: Vec<Part<'_>> = graphs
        .iter()
        .zip(&fetches)
        .map(|(graph, fetches)| Part { body: graph.body, fetches, variables: &graph.variables })
        .collect();
    let (export, names) = export_all(&parts, AssetText::Fed)?;
    let mut graph_def = export.graph_def;
    let signature_def = signature::messages(&mut graph_def, graphs, &names)?;
    let mut variables = export.variables;
    variables.sort_by(|a, b| a.variable.cmp(&b.variable));
    let variables = nodes::initializers(&mut graph_def, variables)?;
    let local = variables.iter().filter(|(handle, _)| handle.is_local).map(|(_, initial)| &initial.assign);
    let main_op = nodes::main_op(&mut graph_def, export.initializers.iter().chain(local));
    let saver = Saver::add(&mut graph_def, &variables)?;

    let files = export.assets.iter().map(|asset| asset_file(assets, asset)).collect::<Result<Vec<_>>>()?;
    let mut collections = Collections::default();
    collections.variables(&variables);
    collections.nodes("saved_model_main_op", vec![main_op]);
    let train_op = train_op.zip(names.first()).map(|(train_op, names)| names.node(train_op.node).to_string());
    collections.nodes("saved_model_train_op", train_op.into_iter().collect());
    collections.nodes("table_initializer", export.initializers);
    collections.assets(&export.assets, &files);
    let meta_info_def = MetaInfoDef {
        tags: tags.iter().map(|tag| (*tag).to_string()).collect(),
        tensorflow_version: TENSORFLOW.to_string(),
        ..MetaInfoDef::default()
    };
    let message = MetaGraphDef {
        meta_info_def: Some(meta_info_def),
        graph_def: Some(graph_def),
        saver_def: Some(saver.message()),
        collection_def: collections.into_inner(),
        signature_def,
        ..MetaGraphDef::default()
    };
    let saved = variables.into_iter().map(|(handle, _)| handle).filter(|handle| !handle.is_local).collect();
    let paths = export.assets.into_iter().map(|asset| asset.path);
    let assets = files.into_iter().map(|file| file.filename).zip(paths).collect();
    Ok(WrittenGraph { message, variables: saved, assets, names })
}

/// Writes a SavedModel to a folder that does not exist yet. `value` returns the value of a
/// variable; each is asked for once. Returns the [checksums](estimand_checkpoint::checksum) of the
/// values by name.
pub fn write(
    folder: &Path,
    graphs: &[WrittenGraph],
    mut value: impl FnMut(&str) -> Result<Array>,
) -> Result<BTreeMap<String, u32>> {
    let made = |path: &Path| fs::create_dir_all(path).map_err(|e| Error::io(path, "make", &e));
    let (variables, assets) = (folder.join("variables"), folder.join("assets"));
    made(&variables)?;
    let mut specs: BTreeMap<&str, Vec<&Handle>> = BTreeMap::new();
    for handle in graphs.iter().flat_map(|graph| &graph.variables) {
        specs.entry(&handle.variable).or_default().push(handle);
    }
    let mut checksums = BTreeMap::new();
    if !specs.is_empty() {
        let mut bundle = BundleWriter::create(variables.join("variables"))?;
        for (name, handles) in specs {
            let array = value(name)?;
            let fits = |handle: &&Handle| array.dtype() == handle.dtype && array.dims() == &handle.dims[..];
            if let Some(other) = handles.into_iter().find(|handle| !fits(handle)) {
                let (dtype, dims) = (array.dtype(), array.dims());
                return Err(Error::shape(format!(
                    "variable `{name}` is {dtype}{dims:?}; the graph has {}{:?}",
                    other.dtype,
                    &other.dims[..]
                )));
            }
            checksums.insert(name.to_string(), bundle.add(name, &array)?);
        }
        bundle.finish()?;
    }
    let all_assets: BTreeMap<&String, &PathBuf> = graphs.iter().flat_map(|graph| &graph.assets).collect();
    for (name, path) in all_assets {
        made(&assets)?;
        let to = assets.join(name);
        fs::copy(path, &to).map_err(|e| Error::io(path, "copy", &e))?;
        let file = fs::File::open(&to).and_then(|file| file.sync_all());
        file.map_err(|e| Error::io(&to, "write", &e))?;
    }
    let meta_graphs = graphs.iter().map(|graph| graph.message.clone()).collect();
    let message = SavedModel { saved_model_schema_version: 1, meta_graphs };
    let (bytes, path) = (message.encode_to_vec(), folder.join("saved_model.pb"));
    // TensorFlow refuses a larger message.
    if bytes.len() > i32::MAX as usize {
        return Err(Error::unsupported(format!("the graph has {} bytes; TensorFlow reads at most 2 GB", bytes.len()))
            .help("put large constants into variables, and vocabularies into files"));
    }
    write_whole(&path, &bytes)?;
    Ok(checksums)
}

/// Describes a file of `assets/`.
fn asset_file(assets: &mut BTreeMap<String, PathBuf>, asset: &Asset) -> Result<AssetFileDef> {
    let filename = asset_name(assets, &asset.path)?;
    let tensor_info = TensorInfo::dense(&asset.tensor, DataType::String, TensorShapeProto::of([0; 0]));
    Ok(AssetFileDef { tensor_info: Some(tensor_info), filename })
}

/// Chooses the name of a file in `assets/`: that of the file, with a number if another file has it.
fn asset_name(assets: &mut BTreeMap<String, PathBuf>, path: &Path) -> Result<String> {
    let base = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::config(format!("the vocabulary {} has no name that is text", path.display())))?;
    let mut name = base.to_string();
    for n in 1.. {
        match assets.get(&name) {
            Some(known) if known != path => name = format!("{base}_{n}"),
            _ => break,
        }
    }
    assets.insert(name.clone(), path.to_path_buf());
    Ok(name)
}

impl Saver {
    fn message(&self) -> SaverDef {
        SaverDef {
            filename_tensor_name: self.filename.clone(),
            save_tensor_name: self.save.clone(),
            restore_op_name: self.restore.clone(),
            max_to_keep: 5,
            sharded: false,
            keep_checkpoint_every_n_hours: 10_000.0,
            version: CheckpointFormatVersion::V2.into(),
        }
    }
}
