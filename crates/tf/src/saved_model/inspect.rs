//! What is in a SavedModel, without loading it: what `saved_model_cli show --all` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use estimand_tensor::Result;
use estimand_wire::saved_model::Encoding;
use estimand_wire::{DataType, MetaGraphDef, SignatureDef, TensorInfo, TensorShapeProto};

use super::{ReadLimits, read_message};

/// The graphs of a SavedModel and their signatures. Its text is that of
/// `saved_model_cli show --all`.
///
/// ```no_run
/// println!("{}", estimand_tf::saved_model::inspect("export/1700000000")?);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// The graphs, in the order of the file.
    pub graphs: Vec<GraphContents>,
}

/// One graph of a SavedModel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphContents {
    /// The tags by which it is chosen, sorted.
    pub tags: Vec<String>,
    /// The version of TensorFlow that its ops belong to.
    pub tensorflow_version: String,
    /// The signatures by name.
    pub signatures: BTreeMap<String, SignatureContents>,
    /// The names of the ops that its nodes and functions use.
    pub ops: BTreeSet<String>,
    /// The number of nodes, without those of functions.
    pub n_nodes: usize,
    /// The files in `assets/`.
    pub assets: Vec<String>,
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureContents {
    /// The kind of request it answers, such as `tensorflow/serving/predict`.
    pub method: String,
    /// The inputs by name.
    pub inputs: BTreeMap<String, TensorContents>,
    /// The outputs by name.
    pub outputs: BTreeMap<String, TensorContents>,
}

/// One tensor of a signature, in TensorFlow's words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorContents {
    /// The element type: `DT_FLOAT`.
    pub dtype: String,
    /// The shape: `(-1, 3)`, or `unknown_rank`.
    pub shape: String,
    /// The name in the graph: `dense/BiasAdd:0`.
    pub name: String,
}

/// Reads what is in a SavedModel. Nothing but `saved_model.pb` is read.
pub fn inspect(folder: impl AsRef<Path>) -> Result<Contents> {
    let message = read_message(folder.as_ref(), &ReadLimits::default())?;
    Ok(Contents { graphs: message.meta_graphs.iter().map(graph).collect::<Result<_>>()? })
}

fn graph(graph: &MetaGraphDef) -> Result<GraphContents> {
    let mut tags: Vec<String> = graph.tags().map(str::to_string).collect();
    tags.sort();
    let def = graph.graph_def.as_ref();
    let functions = def.and_then(|def| def.library.as_ref()).into_iter().flat_map(|library| &library.function);
    let nodes = def.into_iter().flat_map(|def| &def.node).chain(functions.flat_map(|function| &function.node_def));
    Ok(GraphContents {
        tags,
        tensorflow_version: graph.meta_info_def.as_ref().map_or(String::new(), |info| info.tensorflow_version.clone()),
        signatures: graph.signature_def.iter().map(|(name, def)| (name.clone(), signature(def))).collect(),
        ops: nodes.map(|node| node.op.clone()).collect(),
        n_nodes: def.map_or(0, |def| def.node.len()),
        assets: graph.assets()?.into_iter().map(|asset| asset.filename).collect(),
    })
}

fn signature(def: &SignatureDef) -> SignatureContents {
    let tensors = |all: &BTreeMap<String, TensorInfo>| all.iter().map(|(n, info)| (n.clone(), tensor(info))).collect();
    SignatureContents { method: def.method_name.clone(), inputs: tensors(&def.inputs), outputs: tensors(&def.outputs) }
}

fn tensor(info: &TensorInfo) -> TensorContents {
    let sizes = info.tensor_shape.as_ref().and_then(TensorShapeProto::sizes);
    let shape = match sizes.map(Iterator::collect::<Vec<i64>>) {
        None => "unknown_rank".to_string(),
        Some(sizes) => format!("({})", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let name = match &info.encoding {
        Some(Encoding::Name(name)) => name.clone(),
        Some(Encoding::CooSparse(sparse)) => sparse.values_tensor_name.clone(),
        _ => String::new(),
    };
    TensorContents { dtype: DataType::describe(info.dtype), shape, name }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for graph in &self.graphs {
            let tags: Vec<String> = graph.tags.iter().map(|tag| format!("'{tag}'")).collect();
            writeln!(f, "\nMetaGraphDef with tag-set: {} contains the following SignatureDefs:", tags.join(", "))?;
            for (name, signature) in &graph.signatures {
                write!(f, "\nsignature_def['{name}']:\n{signature}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SignatureContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, tensors) in [("input", &self.inputs), ("output", &self.outputs)] {
            writeln!(f, "  The given SavedModel SignatureDef contains the following {what}(s):")?;
            for (name, TensorContents { dtype, shape, name: tensor }) in tensors {
                writeln!(f, "    {what}s['{name}'] tensor_info:")?;
                writeln!(f, "        dtype: {dtype}\n        shape: {shape}\n        name: {tensor}")?;
            }
        }
        writeln!(f, "  Method name is: {}", self.method)
    }
}
