//! Writes a graph as an ONNX model: opset 17 of ONNX, and version 3 of `ai.onnx.ml` for
//! vocabularies.
//!
//! `ops/` has a file for each family of ops and `host/` one for each family of host ops: strings
//! become ids by `LabelEncoder`, ragged rows become lists with row splits, as here. Sizes that are
//! known at run time are computed in the graph (`sizes.rs`). An op that ONNX cannot express is an
//! error that names the op, the node and the column (`refuse.rs`). Variables become constants.
//! `run/` runs a file that was written, so that an export can be checked.
//!
//! ```
//! use estimand_graph::{Graph, Initializer};
//! use estimand_onnx::{Interface, onnx_model};
//! use estimand_tensor::{Array, DType, Dim};
//!
//! let graph = Graph::new();
//! let x = graph.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
//! let y = x.matmul(&graph.variable("w", [3, 1], Initializer::Zeros));
//! let interface = Interface { inputs: vec![("x".into(), x.value())], outputs: vec![("y".into(), y.value())] };
//! let model = onnx_model(&graph.body(), &interface, |_| Array::zeros(DType::F32, [3, 1]))?;
//! let ops: Vec<&str> = model.graph.iter().flat_map(|graph| &graph.node).map(|node| &*node.op_type).collect();
//! assert_eq!(ops, ["MatMul", "Identity"]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod host;
pub mod message;
mod node;
mod ops;
mod refuse;
mod run;
mod sizes;
mod tensor;
mod writer;

use estimand_graph::{Body, Value};
use estimand_tensor::{Array, Error, Result};
use estimand_wire::Message;

use message::{GraphProto, ModelProto, OperatorSetIdProto, ValueInfoProto};
pub use run::{Precision, Runner};
pub use tensor::tensor_proto;
use writer::{ML, Shared, Writer};

/// The version of the file format. Opset 17 needs 8.
const IR_VERSION: i64 = 8;
/// The version of ONNX's own operators.
pub const OPSET: i64 = 17;
/// The version of the operators of `ai.onnx.ml`.
pub const ML_OPSET: i64 = 3;
/// The most bytes of a protobuf message.
const MAX_BYTES: usize = i32::MAX as usize;

/// The inputs and outputs of a model by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The values that a caller feeds.
    pub inputs: Vec<(String, Value)>,
    /// The values that a caller gets. An output that has the name of an input is called
    /// `NAME_output`.
    pub outputs: Vec<(String, Value)>,
}

impl Interface {
    /// Returns the names that the outputs have in the model.
    pub fn output_names(&self) -> Vec<String> {
        let is_input = |name: &str| self.inputs.iter().any(|(input, _)| input == name);
        let name = |name: &String| if is_input(name) { format!("{name}_output") } else { name.clone() };
        self.outputs.iter().map(|(output, _)| name(output)).collect()
    }
}

/// Writes the nodes that the outputs need. Variables get the values that the function returns.
/// Equal graphs give equal messages.
pub fn onnx_model(
    body: &Body,
    interface: &Interface,
    mut variable: impl FnMut(&str) -> Result<Array>,
) -> Result<ModelProto> {
    let mut shared = Shared::new(&mut variable);
    let names = interface.output_names();
    for name in interface.inputs.iter().map(|(name, _)| name).chain(&names) {
        if name.is_empty() || shared.unused(name) != *name {
            return Err(Error::config(format!("two inputs or outputs of the ONNX model are called `{name}`"))
                .help("give each a name of its own"));
        }
    }
    let mut writer = Writer::new(body, &mut shared);
    for (name, value) in &interface.inputs {
        writer.feed(*value, name);
    }
    let fetches: Vec<Value> = interface.outputs.iter().map(|(_, value)| *value).collect();
    writer.write(&fetches)?;
    for (name, value) in names.iter().zip(&fetches) {
        writer.output(name, *value)?;
    }
    let node = writer.nodes;
    let info = |name: &String, value: Value| tensor::value_info(name, body.spec(value));
    let input: Vec<ValueInfoProto> = interface.inputs.iter().map(|(name, value)| info(name, *value)).collect();
    let output: Vec<ValueInfoProto> = names.iter().zip(&fetches).map(|(name, value)| info(name, *value)).collect();
    let opset =
        |domain: &str, version: i64| OperatorSetIdProto { domain: Some(domain.to_string()), version: Some(version) };
    let ml = shared.has_ml.then(|| opset(ML, ML_OPSET));
    let initializer = shared.initializers.into_values().collect();
    Ok(ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: "estimand".to_string(),
        producer_version: env!("CARGO_PKG_VERSION").to_string(),
        graph: Some(GraphProto { node, name: "estimand".to_string(), initializer, input, output }),
        opset_import: [opset("", OPSET)].into_iter().chain(ml).collect(),
        metadata_props: Vec::new(),
    })
}

/// Returns the bytes of a file. A protobuf message has at most 2 GiB.
pub fn encode(model: &ModelProto) -> Result<Vec<u8>> {
    let n = model.encoded_len();
    match n <= MAX_BYTES {
        true => Ok(model.encode_to_vec()),
        false => Err(Error::unsupported(format!("the ONNX model has {n} bytes; a file has at most {MAX_BYTES}"))
            .help("export the model with export_saved_model, whose weights are in files of their own")),
    }
}

/// Reads the bytes of a file. Fields that we do not write are skipped.
pub fn decode(bytes: &[u8]) -> Result<ModelProto> {
    ModelProto::decode(bytes).map_err(|e| Error::data(format!("the bytes are not an ONNX model: {e}")))
}
