//! Runs a signature of an exported model on requests from a file (`oracles/live/saved_model.py`
//! drives it).
//!
//!     saved_model_predict MODEL SIGNATURE REQUESTS ANSWERS
//!
//! With `--any-rows` before the model, inputs may have different numbers of rows. Without the files
//! it prints the model's signatures, and the program of the chosen one:
//!
//!     saved_model_predict MODEL [SIGNATURE]
//!
//! With `--write` it writes what it has read to a file, as a graph for TensorFlow to run:
//!
//!     saved_model_predict MODEL SIGNATURE --write FILE
//!
//! FILE is a TFRecord file of a `GraphDef` and a `NameAttrList` with the tensors of `input:NAME`
//! and `output:NAME`, the values of `variable:NAME`, and the nodes of `initializers`. REQUESTS is a
//! TFRecord file of `NameAttrList`s whose attributes are the inputs by name, as tensors; ANSWERS
//! gets one for each, with the outputs by name, or with the attribute `error`.

use std::env;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

use estimand_graph::Value;
use estimand_tensor::{Error, Result};
use estimand_tf::graph_def::{self, Names};
use estimand_tf::saved_model::{SavedModel, SignatureModel};
use estimand_wire::record::{RecordReader, RecordWriter};
use estimand_wire::{Message, NameAttrList, TensorProto};

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (any_rows, args) = match args.split_first() {
        Some((&"--any-rows", rest)) => (true, rest),
        _ => (false, &args[..]),
    };
    let open = |path: &str| -> Result<SavedModel> {
        let model = SavedModel::open(path)?;
        Ok(if any_rows { model.any_rows() } else { model })
    };
    match *args {
        [model] => show(&open(model)?, None),
        [model, signature] => show(&open(model)?, Some(signature)),
        [model, signature, "--write", file] => write(open(model)?.signature(signature)?, file),
        [model, signature, requests, answers] => answer(open(model)?.signature(signature)?, requests, answers),
        _ => Err(Error::config("usage: saved_model_predict [--any-rows] MODEL [SIGNATURE [REQUESTS ANSWERS]]")),
    }
}

fn show(model: &SavedModel, signature: Option<&str>) -> Result<()> {
    let failed = |e: std::io::Error| Error::io("the output", "write", &e);
    let mut out = std::io::stdout().lock();
    for (name, signature) in model.signatures() {
        writeln!(out, "{name}: {:?} -> {:?}", signature.inputs, signature.outputs).map_err(failed)?;
    }
    if let Some(signature) = signature {
        write!(out, "{}", model.signature(signature)?.program()).map_err(failed)?;
    }
    Ok(())
}

fn answer(model: SignatureModel, requests: &str, answers: &str) -> Result<()> {
    let file = File::open(requests).map_err(|e| Error::io(requests, "read", &e))?;
    let failed = |e: std::io::Error| Error::io(answers, "write", &e);
    let mut written = RecordWriter::new(BufWriter::new(File::create(answers).map_err(failed)?));
    let mut records = RecordReader::new(BufReader::new(file));
    while let Some(record) = records.read().map_err(|e| Error::config(format!("in {requests}: {e}")))? {
        let request = NameAttrList::decode(record).map_err(|e| Error::config(format!("in {requests}: {e}")))?;
        let mut answer = NameAttrList { name: request.name.clone(), ..Default::default() };
        match run(&model, &request) {
            Ok(outputs) => answer.attr.extend(outputs.into_iter().map(|(name, value)| (name, value.into()))),
            Err(error) => drop(answer.attr.insert("error".into(), error.to_string().as_str().into())),
        }
        written.write(&answer.encode_to_vec()).map_err(failed)?;
    }
    written.flush().map_err(failed)
}

fn write(model: SignatureModel, path: &str) -> Result<()> {
    let outputs: Vec<Value> = model.outputs().values().copied().collect();
    let body = model.program().body();
    let (export, names) = (graph_def::export(body, &outputs)?, Names::new(body));
    let mut message = NameAttrList { name: "names".into(), ..Default::default() };
    let values = model.inputs().iter().map(|v| ("input", v)).chain(model.outputs().iter().map(|v| ("output", v)));
    for (role, (name, value)) in values {
        message.attr.insert(format!("{role}:{name}"), names.tensor(*value).as_str().into());
    }
    let initializers: Vec<Vec<u8>> = export.initializers.iter().map(|name| name.clone().into_bytes()).collect();
    message.attr.insert("initializers".into(), initializers.into());
    for (_, spec) in body.variables().iter() {
        let value = TensorProto::from_array(&model.variable(&spec.name)?);
        message.attr.insert(format!("variable:{}", spec.name), value.into());
    }
    let failed = |e: std::io::Error| Error::io(path, "write", &e);
    let mut records = RecordWriter::new(BufWriter::new(File::create(path).map_err(failed)?));
    records.write(&export.graph_def.encode_to_vec()).map_err(failed)?;
    records.write(&message.encode_to_vec()).map_err(failed)?;
    records.flush().map_err(failed)
}

fn run(model: &SignatureModel, request: &NameAttrList) -> Result<Vec<(String, TensorProto)>> {
    let mut inputs = Vec::new();
    for (name, value) in &request.attr {
        let tensor = value.tensor().ok_or_else(|| Error::config(format!("input `{name}` is not a tensor")))?;
        inputs.push((name.as_str(), tensor.to_array()?));
    }
    let outputs = model.run(&inputs)?;
    Ok(outputs.iter().map(|(name, array)| (name.clone(), TensorProto::from_array(array))).collect())
}
