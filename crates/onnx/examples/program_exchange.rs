//! Writes random programs as ONNX models with our results, for onnxruntime to run
//! (`oracles/live/onnx_programs.py`).
//!
//!     program_exchange FOLDER FIRST_SEED COUNT
//!
//! One in three programs is one of the host: strings, ragged features, tables, lookups. A folder
//! `SEED` has `model.onnx`, `input_0.pb`, .. and `output_0.pb`, ... Results that ONNX cannot say
//! are left out; `refused.txt` has a line for each, the kind of its op and the error.

use std::env;
use std::fs;
use std::path::Path;

use estimand_graph::{Body, Tensor, Value};
use estimand_onnx::{Interface, encode, onnx_model, tensor_proto};
use estimand_reference::Reference;
use estimand_tensor::{Array, Error, Result};
use estimand_testing::{RandomProgram, generate, generate_preprocessing};
use estimand_wire::Message;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().collect();
    let number = |text: &String| text.parse::<u64>().ok();
    let usage = || Error::config("usage: program_exchange FOLDER FIRST_SEED COUNT");
    let [_, folder, first, count] = &args[..] else { return Err(usage()) };
    let (Some(first), Some(count)) = (number(first), number(count)) else { return Err(usage()) };
    let mut refused = String::new();
    for seed in first..first + count {
        let program = if seed % 3 == 2 { generate_preprocessing(seed)? } else { generate(seed)? };
        let place = |e: Error| e.context(format!("program {seed}"));
        write(&program, &Path::new(folder).join(seed.to_string()), &mut refused).map_err(place)?;
    }
    let path = Path::new(folder).join("refused.txt");
    fs::write(&path, refused).map_err(|e| Error::io(&path, "write", &e))
}

fn write(program: &RandomProgram, folder: &Path, refused: &mut String) -> Result<()> {
    let RandomProgram { graph, feeds, fetches, .. } = program;
    let body = graph.body();
    let input = |(i, (tensor, _)): (usize, &(Tensor, Array))| (format!("input_{i}"), tensor.value());
    let inputs: Vec<(String, Value)> = feeds.iter().enumerate().map(input).collect();
    let variable = |name: &str| initial(&body, name);
    let mut outputs: Vec<(String, Value)> = Vec::new();
    let mut kept = Vec::new();
    for (i, fetch) in fetches.iter().enumerate() {
        let one = (format!("output_{i}"), fetch.value());
        let interface = Interface { inputs: inputs.clone(), outputs: vec![one.clone()] };
        match onnx_model(&body, &interface, variable) {
            Ok(_) => {
                outputs.push(one);
                kept.push(fetch.clone());
            }
            Err(error) => refused.push_str(&format!("{}\n", error.to_string().replace('\n', " "))),
        }
    }
    let answers = program.run(&Reference, &kept, true)?;
    let model = onnx_model(&body, &Interface { inputs: inputs.clone(), outputs: outputs.clone() }, variable)?;
    fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", &e))?;
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|e| Error::io(&path, "write", &e))
    };
    for ((name, _), (_, array)) in inputs.iter().zip(feeds) {
        file(&format!("{name}.pb"), &bytes(name, array))?;
    }
    for ((name, _), array) in outputs.iter().zip(&answers) {
        file(&format!("{name}.pb"), &bytes(name, array))?;
    }
    file("model.onnx", &encode(&model)?)
}

/// A tensor as a file. ONNX has no text that is not UTF-8; such programs have an empty file.
fn bytes(name: &str, array: &Array) -> Vec<u8> {
    tensor_proto(name, array).map_or_else(|_| Vec::new(), |tensor| tensor.encode_to_vec())
}

fn initial(body: &Body, name: &str) -> Result<Array> {
    let found = body.variables().iter().find(|(_, spec)| spec.name == name);
    let (id, _) = found.ok_or_else(|| Error::internal(format!("there is no variable `{name}`")))?;
    body.variables().initial(id, 0)
}
