//! A signature of a saved model, read and ready to run.

use std::collections::HashSet;
use std::path::PathBuf;

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec, nearest_name};
use estimand_wire::saved_model::Encoding;
use estimand_wire::{DataType, SignatureDef, TensorInfo, TensorShapeProto};

use super::call::dtype;
use super::nodes::{Nodes, Reference};
use super::reader::{Reader, Surroundings};
use super::variables::Checkpoint;
use super::{Named, SavedModel};
use crate::graph::Graph;
use crate::session::Session;
use crate::tensor::Tensor;

/// What a signature takes and returns, as the export describes it: `f32[-1, 3]`, `string[?]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What sort of request it answers, such as `tensorflow/serving/predict`.
    pub method: String,
    /// Names and descriptions of what is fed.
    pub inputs: Vec<(String, String)>,
    /// Names and descriptions of what comes out.
    pub outputs: Vec<(String, String)>,
}

impl Signature {
    pub(super) fn of(def: &SignatureDef) -> Signature {
        let list = |tensors: &std::collections::BTreeMap<String, TensorInfo>| {
            tensors.iter().map(|(name, info)| (name.clone(), describe(info))).collect()
        };
        Signature { method: def.method_name.clone(), inputs: list(&def.inputs), outputs: list(&def.outputs) }
    }
}

fn describe(info: &TensorInfo) -> String {
    let dtype = dtype(info.dtype).map_or_else(|_| DataType::describe(info.dtype), |dtype| dtype.to_string());
    let sizes = info.tensor_shape.as_ref().and_then(TensorShapeProto::sizes);
    match sizes {
        Some(sizes) => format!("{dtype}{:?}", sizes.collect::<Vec<_>>()),
        None => format!("{dtype}[?]"),
    }
}

/// A signature as a graph of ours, with a session that holds its variables.
pub struct SignatureModel {
    session: Session,
    inputs: Named<Tensor>,
    outputs: Named<Tensor>,
}

impl SignatureModel {
    pub(super) fn read(model: &SavedModel, signature: &SignatureDef) -> Result<SignatureModel> {
        let nodes = Nodes::new(model.graph_def()?)?;
        let checkpoint = Checkpoint::of(&model.folder, &nodes);
        let folder = Folder { model, checkpoint: &checkpoint };
        let mut reader = Reader::new(&nodes, &folder, &model.limits);
        let mut inputs = Named::new();
        let parsed = parsed(&nodes);
        for (name, info) in &signature.inputs {
            for (name, tensor, info) in parts(name, info)? {
                let place = |e: Error| e.context(format!("input `{name}`"));
                let reference = nodes.find(&tensor).map_err(place)?;
                let spec = placeholder_spec(model, &parsed, &name, &info, reference).map_err(place)?;
                let tensor = reader.graph.placeholder(&name, spec.dtype, spec.shape);
                reader.graph.check()?;
                reader.give(reference, tensor.clone());
                inputs.insert(name, tensor);
            }
        }
        let mut wanted = Vec::new();
        for (name, info) in &signature.outputs {
            for (name, tensor, _) in parts(name, info)? {
                let reference = nodes.find(&tensor).map_err(|e| e.context(format!("output `{name}`")))?;
                wanted.push((name, reference));
            }
        }
        reader.read(&wanted.iter().map(|(_, reference)| *reference).collect::<Vec<_>>())?;
        let mut outputs = Named::new();
        for (name, reference) in wanted {
            let tensor = reader.tensor(reference).map_err(|e| e.context(format!("output `{name}`")))?;
            outputs.insert(name, tensor);
        }
        let mut session = Session::new(&reader.graph)?;
        checkpoint.restore(&reader.variables, &mut session)?;
        Ok(SignatureModel { session, inputs, outputs })
    }

    /// The graph, to be looked at or built upon.
    pub fn graph(&self) -> &Graph {
        self.session.graph()
    }

    /// The placeholders of the inputs, by name.
    pub fn inputs(&self) -> &Named<Tensor> {
        &self.inputs
    }

    /// The tensors of the outputs, by name.
    pub fn outputs(&self) -> &Named<Tensor> {
        &self.outputs
    }

    /// The session that holds the variables.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Computes all outputs from a value for each input.
    pub fn run(&mut self, inputs: &[(&str, Array)]) -> Result<Named<Array>> {
        let mut feeds = Vec::with_capacity(inputs.len());
        for (name, array) in inputs {
            let tensor = self.inputs.get(*name).ok_or_else(|| self.no_input(name))?;
            feeds.push((tensor, array.clone()));
        }
        let fetches: Vec<&Tensor> = self.outputs.values().collect();
        let arrays = self.session.run(&fetches, &feeds)?;
        Ok(self.outputs.keys().cloned().zip(arrays).collect())
    }

    fn no_input(&self, name: &str) -> Error {
        let error = Error::config(format!("the signature has no input `{name}`"));
        match nearest_name(name, self.inputs.keys().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("its inputs are {:?}", self.inputs.keys().collect::<Vec<_>>())),
        }
    }
}

/// What surrounds the graph of a saved model.
struct Folder<'a> {
    model: &'a SavedModel,
    checkpoint: &'a Checkpoint,
}

impl Surroundings for Folder<'_> {
    fn variable(&self, node: &str, shared_name: &str) -> Result<Option<(DType, Vec<usize>)>> {
        self.checkpoint.spec(node, shared_name).map(Some)
    }

    fn asset(&self, node: &str) -> Option<PathBuf> {
        self.model.assets.get(node).cloned()
    }
}

/// The dense tensors of an entry of a signature: itself, or the three of a sparse one.
fn parts(name: &str, info: &TensorInfo) -> Result<Vec<(String, String, TensorInfo)>> {
    match &info.encoding {
        Some(Encoding::Name(tensor)) => Ok(vec![(name.to_string(), tensor.clone(), info.clone())]),
        Some(Encoding::CooSparse(sparse)) => {
            let rank = info.tensor_shape.as_ref().and_then(|s| s.sizes().map(|sizes| sizes.len() as i64)).unwrap_or(2);
            let part = |role: &str, tensor: &str, dtype: i32, sizes: Vec<i64>| {
                let shape = Some(TensorShapeProto::of(sizes));
                let info =
                    TensorInfo { dtype, tensor_shape: shape, encoding: Some(Encoding::Name(tensor.to_string())) };
                (format!("{name}/{role}"), tensor.to_string(), info)
            };
            let i64_code = DataType::Int64.into();
            Ok(vec![
                part("indices", &sparse.indices_tensor_name, i64_code, vec![ANY_SIZE, rank]),
                part("values", &sparse.values_tensor_name, info.dtype, vec![ANY_SIZE]),
                part("dense_shape", &sparse.dense_shape_tensor_name, i64_code, vec![rank]),
            ])
        }
        _ => Err(Error::unsupported(format!("`{name}` is put together by Python from several tensors"))
            .help("export the tensors themselves")),
    }
}

/// An unknown size that is not the batch's.
const ANY_SIZE: i64 = -2;

fn placeholder_spec(
    model: &SavedModel,
    parsed: &HashSet<Reference>,
    name: &str,
    info: &TensorInfo,
    reference: Reference,
) -> Result<TensorSpec> {
    let dtype = dtype(info.dtype)?;
    if let Some(shape) = model.shapes.get(name) {
        return Ok(TensorSpec { dtype, shape: shape.clone() });
    }
    let sizes: Option<Vec<i64>> = info.tensor_shape.as_ref().and_then(|shape| Some(shape.sizes()?.collect()));
    let sizes = match sizes {
        Some(sizes) => sizes,
        None if dtype == DType::Str && parsed.contains(&reference) => vec![-1],
        None => {
            return Err(Error::shape("the export does not say how many axes it has")
                .help(format!("give its shape: SavedModel::open(..)?.with_shape(\"{name}\", [Dim::BATCH, ..])")));
        }
    };
    let size = |(axis, &size): (usize, &i64)| match usize::try_from(size) {
        Ok(size) => Dim::Known(size),
        Err(_) if axis == 0 && size == -1 && !model.any_rows => Dim::BATCH,
        Err(_) => Graph::ANY,
    };
    Ok(TensorSpec { dtype, shape: sizes.iter().enumerate().map(size).collect::<Shape>() })
}

/// What serialized examples are read from.
fn parsed(nodes: &Nodes<'_>) -> HashSet<Reference> {
    let parsers = nodes.iter().filter(|(_, def)| def.op.starts_with("ParseExample"));
    parsers.filter_map(|(_, def)| nodes.inputs_of(def).ok()?.first().copied()).collect()
}
