//! A signature of a SavedModel, ready to run.

use std::collections::HashSet;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use estimand_cpu::Cpu;
use estimand_engine::Compiled;
use estimand_graph::{Executor, Graph, NodeId, Program, RunArgs, State, Value};
use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::saved_model::Encoding;
use estimand_wire::{DataType, SignatureDef, TensorInfo, TensorShapeProto};

use super::inline::Inlined;
use super::library::Library;
use super::node_reader::dtype;
use super::nodes::{Nodes, Reference};
use super::reader::{Reader, Surroundings};
use super::variables::Checkpoint;
use super::writes;
use super::{Named, SavedModel};

/// The inputs and outputs of a signature, as the export describes them: `f32[-1, 3]`, `string[?]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The kind of request it answers, such as `tensorflow/serving/predict`.
    pub method: String,
    /// Names and descriptions of the inputs.
    pub inputs: Vec<(String, String)>,
    /// Names and descriptions of the outputs.
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

/// TF: the signature whose output is the node that fills tables.
const INIT_OP: &str = "__saved_model_init_op";

/// A signature as a compiled program, with the values of its variables.
///
/// Threads may run it at the same time without waiting for each other. A clone shares everything.
#[derive(Clone)]
pub struct SignatureModel(Arc<Loaded>);

struct Loaded {
    compiled: Compiled,
    state: Arc<dyn State>,
    inputs: Named<Value>,
    outputs: Named<Value>,
    /// For each placeholder of the program, the index of its input.
    order: Vec<usize>,
}

impl SignatureModel {
    #[track_caller]
    pub(super) fn read(
        model: &SavedModel,
        signature: &SignatureDef,
        state: Option<Arc<dyn State>>,
    ) -> Result<SignatureModel> {
        let library = Library::new(model.graph_def()?, model.ops(), &model.limits);
        let inlined = Inlined::graph(model.graph_def()?, &library, &model.roots(signature)?)?;
        let nodes = Nodes::new(&inlined, &library)?;
        let checkpoint = Checkpoint::of(&model.folder, &nodes);
        let folder = Folder { model, checkpoint: &checkpoint };
        let mut reader = Reader::new(&nodes, &folder, &model.limits);
        let _line = reader.graph.line(Location::caller(), file!());
        let (mut inputs, mut fed) = (Named::new(), Vec::new());
        let parsed = parsed(&nodes);
        for (name, info) in &signature.inputs {
            for (name, fed_tensor, info) in parts(name, info)? {
                let place = |e: Error| e.context(format!("in input `{name}`"));
                let reference = nodes.find(&fed_tensor).map_err(place)?;
                let spec = placeholder_spec(model, &parsed, &name, &info, reference).map_err(place)?;
                let tensor = reader.graph.placeholder(&name, spec.dtype, spec.shape);
                reader.graph.check()?;
                reader.give(reference, tensor.clone());
                fed.push(fed_tensor);
                inputs.insert(name, tensor.value());
            }
        }
        let (mut wanted, mut fetched) = (Vec::new(), Vec::new());
        for (name, info) in &signature.outputs {
            for (name, tensor, _) in parts(name, info)? {
                let reference = nodes.find(&tensor).map_err(|e| e.context(format!("in output `{name}`")))?;
                wanted.push((name, reference));
                fetched.push(tensor);
            }
        }
        let fetched: Vec<&str> = fetched.iter().map(String::as_str).collect();
        let fed: Vec<&str> = fed.iter().map(String::as_str).collect();
        writes::check(model.graph_def()?, &library, &fetched, &fed)?;
        reader.read(&wanted.iter().map(|(_, reference)| *reference).collect::<Vec<_>>())?;
        let mut outputs = Named::new();
        for (name, reference) in wanted {
            let tensor = reader.tensor(reference).map_err(|e| e.context(format!("in output `{name}`")))?;
            outputs.insert(name, tensor.value());
        }
        reader.graph.check()?;
        let body = Arc::new(reader.graph.body().clone());
        let cpu = Cpu::new();
        let state = match state {
            Some(state) => state,
            None => {
                let mut read = model.read.lock().unwrap_or_else(PoisonError::into_inner);
                cpu.freeze(checkpoint.values(&reader.variables, body.variables(), &mut read)?)?
            }
        };
        let fetches: Vec<Value> = outputs.values().copied().collect();
        let compiled = Compiled::new(&cpu, Program::new(body, &fetches)?)?;
        let input = |id: &NodeId| inputs.values().position(|value| value.node == *id);
        let order = compiled.program().placeholders().iter().map(input).collect::<Option<_>>();
        let order = order.ok_or_else(|| Error::internal("a placeholder is not an input of the signature"))?;
        Ok(SignatureModel(Arc::new(Loaded { compiled, state, inputs, outputs, order })))
    }

    /// The program that it runs, with its graph.
    pub fn program(&self) -> &Program {
        self.0.compiled.program()
    }

    /// The placeholders of the inputs, by name.
    pub fn inputs(&self) -> &Named<Value> {
        &self.0.inputs
    }

    /// The values of the outputs, by name.
    pub fn outputs(&self) -> &Named<Value> {
        &self.0.outputs
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Result<Array> {
        self.program().body().variables().find(name)?;
        self.0.state.read(name)
    }

    /// Computes all outputs from a value for each input.
    pub fn run(&self, inputs: &[(&str, Array)]) -> Result<Named<Array>> {
        let Loaded { compiled, inputs: known, outputs, order, .. } = &*self.0;
        if let Some((name, _)) = inputs.iter().find(|(name, _)| !known.contains_key(*name)) {
            let known = known.keys().map(String::as_str);
            return Err(Error::unknown("input", name, known).context("in the signature"));
        }
        let fed = |&i: &usize| {
            let (wanted, value) = known.get_index(i).ok_or_else(|| Error::internal("an input is unknown"))?;
            let input = inputs.iter().find(|(name, _)| name == wanted);
            input.map(|(_, array)| array.clone()).ok_or_else(|| {
                let spec = compiled.program().spec(*value);
                Error::config(format!("input `{wanted}` {spec} was not fed"))
            })
        };
        let feeds = order.iter().map(fed).collect::<Result<Vec<_>>>()?;
        Ok(outputs.keys().cloned().zip(self.forward(&feeds)?).collect())
    }

    /// Computes all outputs, in the order of [`outputs`](SignatureModel::outputs), from a value for
    /// each input, in the order of [`inputs`](SignatureModel::inputs).
    pub fn run_in_order(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let Loaded { inputs: known, order, .. } = &*self.0;
        if inputs.len() != known.len() {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let (n, names) = (inputs.len(), names.join(", "));
            return Err(Error::config(format!("{n} values were fed to the inputs {names}; expected one for each")));
        }
        let feeds: Vec<Array> = order.iter().map(|&i| inputs[i].clone()).collect();
        self.forward(&feeds)
    }

    fn forward(&self, feeds: &[Array]) -> Result<Vec<Array>> {
        let Loaded { compiled, state, .. } = &*self.0;
        let mut arrays = Vec::new();
        compiled.forward(&**state, RunArgs { feeds, ..RunArgs::default() }, &mut arrays)?;
        Ok(arrays)
    }
}

/// Access to the folder of a SavedModel.
struct Folder<'a> {
    model: &'a SavedModel,
    checkpoint: &'a Checkpoint,
}

impl Surroundings for Folder<'_> {
    fn variable(&self, node: &str, shared_name: &str) -> Result<Option<(DType, Vec<usize>)>> {
        self.checkpoint.spec(node, shared_name).map(Some)
    }

    fn saved(&self, name: &str) -> Result<Array> {
        self.checkpoint.saved(name)
    }

    fn asset(&self, node: &str) -> Option<PathBuf> {
        self.model.assets.get(node).cloned()
    }
}

impl SavedModel {
    /// The nodes that reading a signature begins with: its outputs, the node that fills tables, and
    /// the node that restores variables.
    fn roots(&self, signature: &SignatureDef) -> Result<Vec<String>> {
        let mut roots = Vec::new();
        for (name, info) in &signature.outputs {
            roots.extend(parts(name, info)?.into_iter().map(|(_, tensor, _)| tensor));
        }
        let init = self.meta_graph.signature_def.get(INIT_OP).into_iter().flat_map(|def| def.outputs.values());
        roots.extend(init.filter_map(TensorInfo::name).map(|node| format!("^{node}")));
        let restore = self.meta_graph.saver_def.iter().map(|saver| &saver.restore_op_name);
        roots.extend(restore.filter(|node| !node.is_empty()).map(|node| format!("^{node}")));
        Ok(roots)
    }
}

/// The dense tensors of a signature entry: the entry itself, or the three tensors of a sparse one.
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
        _ => Err(Error::unsupported(format!("`{name}` is a composite of several tensors, which cannot be read"))
            .help("export the tensors themselves")),
    }
}

/// An unknown size that is not the batch size.
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
            return Err(Error::shape("the SavedModel does not say how many axes the input has")
                .help(format!("give its shape with SavedModel::open(..)?.with_shape(\"{name}\", [Dim::BATCH, ..])")));
        }
    };
    let size = |(axis, &size): (usize, &i64)| match usize::try_from(size) {
        Ok(size) => Dim::Known(size),
        Err(_) if axis == 0 && size == -1 && !model.any_rows => Dim::BATCH,
        Err(_) => Graph::ANY,
    };
    Ok(TensorSpec { dtype, shape: sizes.iter().enumerate().map(size).collect::<Shape>() })
}

/// The tensors that hold serialized examples.
fn parsed(nodes: &Nodes<'_>) -> HashSet<Reference> {
    let parsers = nodes.iter().filter(|(_, def)| def.op.starts_with("ParseExample"));
    parsers.filter_map(|(_, def)| nodes.inputs_of(def).ok()?.first().copied()).collect()
}
