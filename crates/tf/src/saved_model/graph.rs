//! Reads a GraphDef without a SavedModel folder, so without values of variables and asset files.

use std::panic::Location;
use std::path::PathBuf;

use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, DType, Error, Result, Shape};
use estimand_wire::GraphDef;

use super::Named;
use super::inline::Inlined;
use super::library::Library;
use super::limits::ReadLimits;
use super::node_reader::dtype;
use super::nodes::Nodes;
use super::reader::{Reader, Surroundings};
use super::writes;

/// A graph read from a [`GraphDef`].
#[derive(Debug)]
pub struct ReadGraph {
    /// The nodes that the outputs need. Variables keep their names and start with zeros.
    pub graph: Graph,
    /// The placeholders, by name.
    pub inputs: Named<Tensor>,
    /// The requested outputs, by name.
    pub outputs: Named<Tensor>,
}

/// Reads the nodes of a [`GraphDef`] that some outputs need. Outputs are tensors named `node` or
/// `node:1`.
///
/// Each input is a placeholder with its shape: an axis may be
/// [`Dim::BATCH`](estimand_tensor::Dim::BATCH) or [`Graph::ANY`].
///
/// ```
/// use estimand_engine::Session;
/// use estimand_graph::{Graph, Initializer};
/// use estimand_tf::graph_def;
/// use estimand_tf::saved_model::read_graph_def;
/// use estimand_tensor::{Array, DType, Dim, Shape};
///
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
/// let y = x.square().sum();
/// let written = graph_def::graph_def(&g.body(), &[y.value()])?;
///
/// let read = read_graph_def(&written, &[("x", Shape::from([Dim::BATCH]))], &["Sum"])?;
/// let feeds = [(&read.inputs["x"], Array::from([3f32, 4.0]))];
/// assert_eq!(Session::new(&read.graph)?.run(&[&read.outputs["Sum"]], &feeds)?[0].item::<f32>()?, 25.0);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn read_graph_def(def: &GraphDef, inputs: &[(&str, Shape)], outputs: &[&str]) -> Result<ReadGraph> {
    read_graph_def_within(def, inputs, outputs, &ReadLimits::default())
}

/// Like [`read_graph_def`], with other limits.
#[track_caller]
pub fn read_graph_def_within(
    def: &GraphDef,
    inputs: &[(&str, Shape)],
    outputs: &[&str],
    limits: &ReadLimits,
) -> Result<ReadGraph> {
    limits.check_graph(def)?;
    let library = Library::new(def, &[], limits);
    let roots: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    let inlined = Inlined::graph(def, &library, &roots)?;
    let nodes = Nodes::new(&inlined, &library)?;
    let mut reader = Reader::new(&nodes, &Alone, limits);
    let _line = reader.graph.line(Location::caller(), file!());
    let mut placeholders = Named::new();
    for (name, shape) in inputs {
        let place = |e: Error| e.context(format!("in input `{name}`"));
        let reference = nodes.find(name).map_err(place)?;
        let code = nodes.def(reference.node).attr.get("dtype").and_then(|attr| attr.data_type());
        let code =
            code.ok_or_else(|| place(Error::config("the node is not a placeholder: it has no attribute `dtype`")))?;
        let tensor = reader.graph.placeholder(name, dtype(code.into()).map_err(place)?, shape.clone());
        reader.graph.check()?;
        reader.give(reference, tensor.clone());
        placeholders.insert(name.to_string(), tensor);
    }
    let wanted = outputs.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let fed: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    writes::check(def, &library, outputs, &fed)?;
    reader.read(&wanted)?;
    let mut results = Named::new();
    for (name, reference) in outputs.iter().zip(wanted) {
        results.insert(name.to_string(), reader.tensor(reference)?);
    }
    Ok(ReadGraph { graph: reader.graph, inputs: placeholders, outputs: results })
}

/// A graph without a folder.
struct Alone;

impl Surroundings for Alone {
    fn variable(&self, _node: &str, _shared_name: &str) -> Result<Option<(DType, Vec<usize>)>> {
        Ok(None)
    }

    fn saved(&self, name: &str) -> Result<Array> {
        Err(Error::config(format!("`{name}` is in a checkpoint, and a graph alone has none"))
            .help("open the folder of the model with SavedModel::open"))
    }

    fn asset(&self, _node: &str) -> Option<PathBuf> {
        None
    }
}
