//! Writes SavedModels as TensorFlow's Estimator does: a graph for a session, with the nodes that
//! initialize, save and restore its variables, and a signature for each way to call it.
//!
//! [`meta_graph`] makes one graph of several, which share their variables and tables, and
//! [`write()`] writes the folder. The same graphs and values give the same bytes.
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

mod nodes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use estimand_checkpoint::BundleWriter;
use estimand_graph::{Body, Value, VarId};
use estimand_tensor::{Array, Error, Result, TensorSpec};
use estimand_wire::collection_def::{Any, AnyList, BytesList, Collection, CollectionDef, NodeList};
use estimand_wire::saved_model::{CheckpointFormatVersion, MetaInfoDef, SaverDef};
use estimand_wire::temporary::write_whole;
use estimand_wire::{
    AssetFileDef, DataType, Message, MetaGraphDef, SavedModel, SignatureDef, TensorInfo, TensorShapeProto, VariableDef,
};

use crate::graph_def::{AssetText, Handle, Names, Part, export_all};
use nodes::Saver;

/// The tag of graphs for serving.
pub const SERVE: &str = "serve";
/// The method of a signature with any inputs and outputs.
pub const PREDICT: &str = "tensorflow/serving/predict";
/// The method of a signature that takes Examples and returns scores of classes.
pub const CLASSIFY: &str = "tensorflow/serving/classify";
/// The method of a signature that takes Examples and returns one number per row.
pub const REGRESS: &str = "tensorflow/serving/regress";

/// The version of TensorFlow whose ops the nodes are written for.
const TENSORFLOW: &str = "2.15.1";

/// A way to call a graph.
#[derive(Clone, Debug)]
pub struct SignatureOf {
    /// The name of the signature.
    pub name: String,
    /// The kind of request that it answers, such as [`PREDICT`].
    pub method: String,
    /// The values to feed, by the names that callers use.
    pub inputs: Vec<(String, Value)>,
    /// The values to fetch, by the names that callers use.
    pub outputs: Vec<(String, Value)>,
}

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

/// Joins graphs that share their variables and tables to one graph with the signatures of all.
pub fn meta_graph(tags: &[&str], graphs: &[SignedGraph<'_>]) -> Result<WrittenGraph> {
    let fetches: Vec<Vec<Value>> = graphs
        .iter()
        .map(|graph| graph.signatures.iter().flat_map(|s| s.inputs.iter().chain(&s.outputs)).map(|(_, v)| *v).collect())
        .collect();
    let parts: Vec<Part<'_>> = graphs
        .iter()
        .zip(&fetches)
        .map(|(graph, fetches)| Part { body: graph.body, fetches, variables: &graph.variables })
        .collect();
    let (export, names) = export_all(&parts, AssetText::Fed)?;
    let mut signature_def = BTreeMap::new();
    for (graph, names) in graphs.iter().zip(&names) {
        for signature in &graph.signatures {
            let def = signature_message(graph.body, names, signature)
                .map_err(|e| e.context(format!("in signature `{}`", signature.name)))?;
            if signature_def.insert(signature.name.clone(), def).is_some() {
                return Err(Error::config(format!("two signatures are named `{}`", signature.name)));
            }
        }
    }
    let mut graph_def = export.graph_def;
    let main_op = nodes::main_op(&mut graph_def, &export.initializers)?;
    let mut variables = export.variables;
    variables.sort_by(|a, b| a.variable.cmp(&b.variable));
    let initial = nodes::initializers(&mut graph_def, &variables)?;
    let saver = Saver::add(&mut graph_def, &variables, &initial)?;

    let mut collections = BTreeMap::new();
    let mut list = |name: &str, kind: Collection| {
        collections.insert(name.to_string(), CollectionDef { kind: Some(kind) });
    };
    let encoded = |keep: fn(&Handle) -> bool| {
        let kept = variables.iter().zip(&initial).filter(|(handle, _)| keep(handle));
        Collection::BytesList(BytesList {
            value: kept.map(|(handle, own)| own.message(handle).encode_to_vec()).collect(),
        })
    };
    if !variables.is_empty() {
        list("variables", encoded(|_| true));
        list("trainable_variables", encoded(|handle| handle.is_trainable));
    }
    list("saved_model_main_op", Collection::NodeList(NodeList { value: vec![main_op] }));
    if !export.initializers.is_empty() {
        list("table_initializer", Collection::NodeList(NodeList { value: export.initializers.clone() }));
    }
    let mut assets: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut files = Vec::new();
    for asset in &export.assets {
        let filename = asset_name(&mut assets, &asset.path)?;
        let tensor_info = TensorInfo::dense(&asset.tensor, DataType::String, TensorShapeProto::of([0; 0]));
        files.push(AssetFileDef { tensor_info: Some(tensor_info), filename });
    }
    if !files.is_empty() {
        let tensors = export.assets.iter().map(|asset| asset.tensor.clone()).collect();
        list("asset_filepaths", Collection::NodeList(NodeList { value: tensors }));
        let any = |file: &AssetFileDef| Any {
            type_url: "type.googleapis.com/tensorflow.AssetFileDef".to_string(),
            value: file.encode_to_vec(),
        };
        list("saved_model_assets", Collection::AnyList(AnyList { value: files.iter().map(any).collect() }));
    }
    let meta_info_def = MetaInfoDef {
        tags: tags.iter().map(|tag| (*tag).to_string()).collect(),
        tensorflow_version: TENSORFLOW.to_string(),
        ..MetaInfoDef::default()
    };
    let message = MetaGraphDef {
        meta_info_def: Some(meta_info_def),
        graph_def: Some(graph_def),
        saver_def: Some(saver.message()),
        collection_def: collections,
        signature_def,
        ..MetaGraphDef::default()
    };
    Ok(WrittenGraph { message, variables, assets, names })
}

/// Writes a SavedModel to a folder that does not exist yet. `value` returns the value of a
/// variable; each is asked for once.
pub fn write(folder: &Path, graphs: &[WrittenGraph], mut value: impl FnMut(&str) -> Result<Array>) -> Result<()> {
    let made = |path: &Path| fs::create_dir_all(path).map_err(|e| Error::io(path, "make", &e));
    let (variables, assets) = (folder.join("variables"), folder.join("assets"));
    made(&variables)?;
    let mut specs: BTreeMap<&str, &Handle> = BTreeMap::new();
    for handle in graphs.iter().flat_map(|graph| &graph.variables) {
        specs.insert(&handle.variable, handle);
    }
    if !specs.is_empty() {
        let mut bundle = BundleWriter::create(variables.join("variables"))?;
        for (name, handle) in specs {
            let array = value(name)?;
            if array.dtype() != handle.dtype || array.dims() != &handle.dims[..] {
                return Err(Error::shape(format!(
                    "variable `{name}` is {}{:?}; the graph has {}{:?}",
                    array.dtype(),
                    array.dims(),
                    handle.dtype,
                    &handle.dims[..]
                )));
            }
            bundle.add(name, &array)?;
        }
        bundle.finish()?;
    }
    for (name, path) in graphs.iter().flat_map(|graph| &graph.assets) {
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
    write_whole(&path, &bytes)
}

fn signature_message(body: &Body, names: &Names, signature: &SignatureOf) -> Result<SignatureDef> {
    let infos = |values: &[(String, Value)]| {
        let info = |(name, value): &(String, Value)| (name.clone(), info(body.spec(*value), &names.tensor(*value)));
        values.iter().map(info).collect()
    };
    if signature.outputs.is_empty() {
        return Err(Error::config("the signature has no outputs").help("give it at least one tensor to fetch"));
    }
    Ok(SignatureDef {
        inputs: infos(&signature.inputs),
        outputs: infos(&signature.outputs),
        method_name: signature.method.clone(),
        ..SignatureDef::default()
    })
}

/// A tensor of a signature. Sizes that are not known are -1.
fn info(spec: &TensorSpec, name: &str) -> TensorInfo {
    let name = if name.contains(':') { name.to_string() } else { format!("{name}:0") };
    let sizes = spec.shape.dims().iter().map(|dim| dim.known().map_or(-1, |n| n as i64));
    TensorInfo::dense(name, DataType::from(spec.dtype), TensorShapeProto::of(sizes))
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

impl nodes::Initial {
    fn message(&self, handle: &Handle) -> VariableDef {
        VariableDef {
            variable_name: format!("{}:0", handle.node),
            initializer_name: self.assign.clone(),
            snapshot_name: format!("{}:0", self.read),
            is_resource: true,
            initial_value_name: format!("{}:0", self.value),
            trainable: handle.is_trainable,
            ..VariableDef::default()
        }
    }
}
