//! Runs the ONNX files that this library writes, to check an export before it is published.
//!
//! One node runs after the other, in the order of the file. The operators are those of ONNX's
//! definition, not ours, so that a wrong attribute of the writer is found. Operators and attributes
//! that the writer does not use are errors. It is not made to serve requests.
//!
//! - `values.rs`: arrays as numbers, elements by their places, shapes that are broadcast;
//! - `call.rs`: one node with its inputs and attributes;
//! - a file for each family of operators.

mod call;
mod elementwise;
mod image;
mod index;
mod movement;
mod product;
mod reduce;
mod resize;
mod text;
mod values;

use std::collections::HashMap;

use estimand_tensor::{Array, DType, Error, Result};

use crate::message::{DimensionValue, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::tensor::{array_of, dtype_of};
use crate::writer::ML;
use crate::{ML_OPSET, OPSET};
use call::Call;
use values::Numbers;

/// The floats that a run computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Those of the file.
    AsWritten,
    /// f64 in place of every f32. The difference is what rounding does to the answers.
    Double,
}

/// A model that is ready to run.
///
/// ```
/// use estimand_graph::{Graph, Initializer};
/// use estimand_onnx::{Interface, Precision, Runner, onnx_model};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let graph = Graph::new();
/// let x = graph.placeholder("x", DType::F32, [Dim::BATCH]);
/// let y = &x * &graph.variable("w", [1], Initializer::Zeros);
/// let interface = Interface { inputs: vec![("x".into(), x.value())], outputs: vec![("y".into(), y.value())] };
/// let model = onnx_model(&graph.body(), &interface, |_| Ok(Array::from([3f32])))?;
/// let outputs = Runner::new(&model, Precision::AsWritten)?.run(&[("x", Array::from([1f32, 2.0]))])?;
/// assert_eq!(outputs[0], ("y".to_string(), Array::from([3f32, 6.0])));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct Runner<'m> {
    graph: &'m GraphProto,
    constants: HashMap<&'m str, Array>,
    precision: Precision,
}

/// The values of a graph that runs, and those of the graphs around it.
struct Scope<'m, 's> {
    values: HashMap<&'m str, Array>,
    outer: Option<&'s Scope<'m, 's>>,
}

impl Scope<'_, '_> {
    fn get(&self, name: &str) -> Option<&Array> {
        self.values.get(name).or_else(|| self.outer?.get(name))
    }
}

impl<'m> Runner<'m> {
    /// Reads the weights and constants of a model.
    pub fn new(model: &'m ModelProto, precision: Precision) -> Result<Runner<'m>> {
        for opset in &model.opset_import {
            let domain = opset.domain.as_deref().unwrap_or_default();
            let expected = if domain.is_empty() { OPSET } else { ML_OPSET };
            if !matches!(domain, "" | ML) || opset.version != Some(expected) {
                let version = opset.version.unwrap_or_default();
                return Err(Error::unsupported(format!("the model has version {version} of the operators `{domain}`"))
                    .help(format!("this library runs what it writes: version {OPSET}, and {ML_OPSET} of {ML}")));
            }
        }
        let graph = model.graph.as_ref().ok_or_else(|| Error::data("the model has no graph"))?;
        let mut runner = Runner { graph, constants: HashMap::new(), precision };
        for tensor in &graph.initializer {
            let array = array_of(tensor).map_err(|e| e.context(format!("in the constant `{}`", tensor.name)))?;
            runner.constants.insert(&tensor.name, runner.precise(array)?);
        }
        Ok(runner)
    }

    /// Computes the outputs, by their names in the order of the file.
    pub fn run(&self, inputs: &[(&str, Array)]) -> Result<Vec<(String, Array)>> {
        let mut given = Vec::new();
        for info in &self.graph.input {
            let names = || inputs.iter().map(|(name, _)| *name);
            let found = inputs.iter().find(|(name, _)| *name == info.name);
            let (_, array) = found.ok_or_else(|| Error::unknown("input", &info.name, names()))?;
            check_type(info, array).map_err(|e| e.context(format!("in the input `{}`", info.name)))?;
            given.push(self.precise(array.clone())?);
        }
        let outputs = self.graph_of(self.graph, given, None)?;
        let mut named = Vec::new();
        for (info, array) in self.graph.output.iter().zip(outputs) {
            if self.precision == Precision::AsWritten {
                check_type(info, &array).map_err(|e| e.context(format!("in the output `{}`", info.name)))?;
            }
            named.push((info.name.clone(), array));
        }
        Ok(named)
    }

    /// Computes the outputs, or `None` if an image is smaller than a window: ONNX does not define
    /// the result then, and runtimes differ.
    pub fn run_if_defined(&self, inputs: &[(&str, Array)]) -> Result<Option<Vec<(String, Array)>>> {
        match self.run(inputs) {
            Err(error) if image::is_too_small(&error) => Ok(None),
            outputs => outputs.map(Some),
        }
    }

    /// The array in the floats of the run.
    fn precise(&self, array: Array) -> Result<Array> {
        match (self.precision, array.dtype()) {
            (Precision::Double, DType::F32) => Numbers::of(&array)?.array(DType::F64, array.dims()),
            _ => Ok(array),
        }
    }

    /// Runs a graph on its inputs. Values are dropped after the last node that reads them.
    fn graph_of(&self, graph: &'m GraphProto, given: Vec<Array>, outer: Option<&Scope<'m, '_>>) -> Result<Vec<Array>> {
        let mut reads: HashMap<&str, usize> = HashMap::new();
        for name in graph.node.iter().flat_map(names_read).chain(graph.output.iter().map(|info| info.name.as_str())) {
            *reads.entry(name).or_default() += 1;
        }
        let inputs = graph.input.iter().map(|info| info.name.as_str());
        let mut scope = Scope { values: inputs.zip(given).collect(), outer };
        for node in &graph.node {
            let place = |e: Error| e.context(format!("in node `{}` ({}) of the ONNX model", node.name, node.op_type));
            let results = self.node(node, &scope).map_err(place)?;
            if results.len() != node.output.len() {
                let text = format!("the operator has {} outputs, the node {}", results.len(), node.output.len());
                return Err(place(Error::config(text)));
            }
            scope.values.extend(node.output.iter().map(String::as_str).zip(results));
            for name in names_read(node) {
                let left = reads.entry(name).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    scope.values.remove(name);
                }
            }
        }
        graph.output.iter().map(|info| self.value(&info.name, &scope)).collect()
    }

    fn value(&self, name: &str, scope: &Scope<'m, '_>) -> Result<Array> {
        let found = scope.get(name).or_else(|| self.constants.get(name));
        found.cloned().ok_or_else(|| Error::config(format!("no node before computes `{name}`")))
    }

    fn node(&self, node: &'m NodeProto, scope: &Scope<'m, '_>) -> Result<Vec<Array>> {
        let input = |name: &String| (!name.is_empty()).then(|| self.value(name, scope)).transpose();
        let call = Call::new(node, node.input.iter().map(input).collect::<Result<_>>()?);
        let results = match (node.domain.as_str(), node.op_type.as_str()) {
            ("", "Loop") => self.repeat(&call, scope)?,
            ("", "Cast") => vec![elementwise::cast(&call, self.precision == Precision::Double)?],
            (domain, op) => operator(domain, op, &call)?,
        };
        call.check_read()?;
        Ok(results)
    }

    /// `Loop`: (the number of steps, whether to begin, values) -> (values, lists of results). The
    /// body is (step, condition, values) -> (condition, values, results).
    fn repeat(&self, call: &Call<'m>, scope: &Scope<'m, '_>) -> Result<Vec<Array>> {
        let (body, n_steps) = (call.graph("body")?, call.int_of(0)?);
        let mut goes_on = call.x(1)?.item::<bool>()?;
        let mut values: Vec<Array> = call.all()?[2..].iter().map(|array| (*array).clone()).collect();
        let n = values.len();
        if body.input.len() != n + 2 || body.output.len() < n + 1 || !body.initializer.is_empty() {
            return Err(Error::config(format!("the body does not fit a loop over {n} values")));
        }
        let mut lists: Vec<Vec<Array>> = vec![Vec::new(); body.output.len() - n - 1];
        let mut step = 0;
        while step < n_steps && goes_on {
            let mut given = vec![Array::scalar(step), Array::scalar(goes_on)];
            given.append(&mut values);
            let mut results = self.graph_of(body, given, Some(scope))?;
            let stacked = results.split_off(n + 1);
            values = results.split_off(1);
            goes_on = results[0].item::<bool>()?;
            lists.iter_mut().zip(stacked).for_each(|(list, result)| list.push(result));
            step += 1;
        }
        for (list, info) in lists.iter().zip(&body.output[n + 1..]) {
            values.push(self.stacked(list, info)?);
        }
        Ok(values)
    }

    /// One array of the results of all steps. Without steps, sizes that the file does not tell are
    /// 0.
    fn stacked(&self, list: &[Array], info: &ValueInfoProto) -> Result<Array> {
        let Some(first) = list.first() else {
            let (dtype, sizes) = declared(info)?;
            let dims: Vec<usize> = [Some(0)].into_iter().chain(sizes).map(Option::unwrap_or_default).collect();
            return self.precise(Array::zeros(dtype, dims)?);
        };
        let dims = [&[1], first.dims()].concat();
        let parts = list.iter().map(|array| array.reshape(&dims)).collect::<Result<Vec<Array>>>()?;
        movement::joined(&parts.iter().collect::<Vec<_>>(), 0)
    }
}

/// The names that a node reads, those in its inner graphs included.
fn names_read(node: &NodeProto) -> Vec<&str> {
    let own = node.input.iter().map(String::as_str).filter(|name| !name.is_empty());
    let inner = node.attribute.iter().filter_map(|attribute| attribute.g.as_ref());
    let inner = inner.flat_map(|graph| {
        graph.node.iter().flat_map(names_read).chain(graph.output.iter().map(|info| info.name.as_str()))
    });
    own.chain(inner).collect()
}

/// The type that the file tells: a dtype, and the sizes that are numbers.
fn declared(info: &ValueInfoProto) -> Result<(DType, Vec<Option<usize>>)> {
    let kind = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let kind = kind.ok_or_else(|| Error::data(format!("`{}` has no type", info.name)))?;
    let dims = kind.shape.iter().flat_map(|shape| &shape.dim);
    let size = |value: &Option<DimensionValue>| match value {
        Some(DimensionValue::Size(n)) => usize::try_from(*n).ok(),
        _ => None,
    };
    Ok((dtype_of(kind.elem_type.unwrap_or_default())?, dims.map(|dim| size(&dim.value)).collect()))
}

/// Compares a value with the type that the file tells.
fn check_type(info: &ValueInfoProto, array: &Array) -> Result<()> {
    let (dtype, sizes) = declared(info)?;
    let fits = |(size, &n): (&Option<usize>, &usize)| size.is_none_or(|size| size == n);
    if array.dtype() != dtype || array.rank() != sizes.len() || !sizes.iter().zip(array.dims()).all(fits) {
        let sizes: Vec<String> = sizes.iter().map(|size| size.map_or("?".to_string(), |n| n.to_string())).collect();
        let (found, expected) = (format!("{}{:?}", array.dtype(), array.dims()), sizes.join(", "));
        return Err(Error::shape(format!("the value is {found}; the file says {dtype}[{expected}]")));
    }
    Ok(())
}

fn operator(domain: &str, op: &str, call: &Call<'_>) -> Result<Vec<Array>> {
    let one = match (domain, op) {
        (ML, "LabelEncoder") => text::label_encoder(call)?,
        ("", "StringNormalizer") => text::string_normalizer(call)?,
        (
            "",
            "Neg" | "Abs" | "Sign" | "Floor" | "Ceil" | "Round" | "Exp" | "Log" | "Sqrt" | "Reciprocal" | "Sin" | "Cos"
            | "Tanh" | "Sigmoid" | "Erf" | "Softplus" | "Softsign" | "Relu" | "Elu" | "Selu",
        ) => elementwise::unary(call)?,
        ("", "Not" | "IsNaN" | "IsInf") => elementwise::test(call)?,
        ("", "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Pow" | "Max" | "Min") => elementwise::arithmetic(call)?,
        ("", "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "Equal") => elementwise::compare(call)?,
        ("", "And" | "Or" | "Xor") => elementwise::logic(call)?,
        ("", "Where") => elementwise::select(call)?,
        ("", "Clip") => elementwise::clip(call)?,
        ("", "Identity") => call.x(0)?.clone(),
        ("", "Shape") => movement::shape(call)?,
        ("", "Reshape") => movement::reshape(call)?,
        ("", "Unsqueeze") => movement::unsqueeze(call)?,
        ("", "Transpose") => movement::transpose(call)?,
        ("", "Concat") => movement::concat(call)?,
        ("", "Slice") => movement::slice(call)?,
        ("", "Gather") => movement::gather(call)?,
        ("", "Expand") => movement::expand_to(call)?,
        ("", "Tile") => movement::tile(call)?,
        ("", "Pad") => movement::pad(call)?,
        ("", "GatherND") => index::gather_nd(call)?,
        ("", "ScatterND") => index::scatter_nd(call)?,
        ("", "NonZero") => index::non_zero(call)?,
        ("", "Range") => index::range(call)?,
        ("", "Unique") => return index::unique(call),
        ("", "TopK") => return index::top_k(call),
        ("", "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd") => reduce::reduce(call)?,
        ("", "ArgMax" | "ArgMin") => reduce::arg_max(call)?,
        ("", "CumSum") => reduce::cum_sum(call)?,
        ("", "Softmax" | "LogSoftmax") => reduce::softmax(call)?,
        ("", "MatMul") => product::mat_mul(call)?,
        ("", "Gemm") => product::gemm(call)?,
        ("", "Conv") => image::conv(call)?,
        ("", "ConvTranspose") => image::conv_transpose(call)?,
        ("", "MaxPool" | "AveragePool") => image::pool(call)?,
        ("", "Resize") => resize::resize(call)?,
        _ => {
            let name = if domain.is_empty() { op.to_string() } else { format!("{domain}.{op}") };
            return Err(Error::unsupported(format!("this library does not run the operator {name}"))
                .help("it runs the operators that it writes; other files need onnxruntime"));
        }
    };
    Ok(vec![one])
}
