//! A file that Keras saved, served: read, export, answer.
//!
//! ```sh
//! cargo run --release -p estimand-serve --example serve_keras -- model.keras /tmp/model
//! curl localhost:8501/v1/models/keras:predict -d '{"instances": [[1.0, 2.0, 3.0]]}'
//! ```
//!
//! Without arguments it takes a file of the tests, asks its server once, and compares the answer
//! with the model's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use estimand::data::Dataset;
use estimand::export::Receiver;
use estimand::keras::{Compile, Model, load_model, model_to_estimator};
use estimand::nn::config::CustomObjects;
use estimand::prelude::*;
use estimand::tensor::Shape;
use estimand_serve::Server;
use serde_json::{Map, Value, json};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [file, folder] => {
            export(Path::new(file), Path::new(folder))?;
            Server::new().model("keras", folder).run()
        }
        [] => once(),
        _ => Err(Error::config("expected FILE FOLDER: a file of Keras, and a folder to export it to")),
    }
}

/// An example of each input with one row: rising numbers, small ids, or words.
fn row(model: &Model) -> Result<Vec<(String, Array)>> {
    let inputs = model.input_names().into_iter().zip(model.input_shapes()).zip(model.input_dtypes());
    let example = |((name, shape), dtype): ((&str, &Shape), DType)| {
        let sizes = shape.dims()[1..].iter().map(|dim| dim.known().unwrap_or(4));
        let dims: Vec<usize> = [1].into_iter().chain(sizes).collect();
        let len = dims.iter().product::<usize>();
        let array = match dtype {
            DType::Str => Array::from_strings(dims, (0..len).map(|i| format!("word {i}")).collect::<Vec<String>>()),
            DType::F32 => Array::from_vec(dims, (0..len).map(|i| i as f32 / len as f32).collect()),
            dtype => Array::from_vec(dims, (0..len).map(|i| i as i64 % 3).collect()).and_then(|ids| ids.cast(dtype)),
        };
        array.map(|array| (name.to_string(), array))
    };
    inputs.map(example).collect()
}

/// The values of a row as JSON, a list in a list for each axis.
fn nested(array: &Array, from: usize, axis: usize) -> Result<Value> {
    let Some(&n) = array.dims().get(axis) else {
        return Ok(match array.dtype() {
            DType::F32 => json!(array.as_slice::<f32>()?[from]),
            DType::Str => json!(array.strings()?.nth(from).map(String::from_utf8_lossy)),
            _ => json!(array.cast(DType::I64)?.as_slice::<i64>()?[from]),
        });
    };
    let step = array.dims()[axis + 1..].iter().product::<usize>();
    (0..n).map(|i| nested(array, from + i * step, axis + 1)).collect::<Result<Vec<Value>>>().map(Value::Array)
}

/// Writes the model as a SavedModel, which also TensorFlow Serving loads.
fn export(file: &Path, folder: &Path) -> Result<()> {
    let mut model = load_model(file, &CustomObjects::new())?;
    let sample = Dataset::from_arrays(row(&model)?).batch(1);
    // An Estimator has a loss, though nothing is trained here.
    model.compile(Compile::new("sgd", "mse"))?;
    let export = model_to_estimator(model)?.build()?.export_saved_model(folder, Receiver::like(&sample)?)?;
    println!("exported {} to {}", file.display(), export.display());
    Ok(())
}

fn once() -> Result<()> {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/keras_files/branches_keras3.keras");
    let folder = std::env::temp_dir().join(format!("estimand-serve-keras-{}", std::process::id()));
    export(&file, &folder)?;
    let running = Server::new().model("keras", &folder).rest_port(0).grpc_port(None).start()?;
    let address = running.rest_address().ok_or_else(|| Error::config("the server has no port for REST"))?;

    let mut model = load_model(&file, &CustomObjects::new())?;
    let inputs = row(&model)?;
    let mut instance = Map::new();
    for (name, array) in &inputs {
        instance.insert(name.clone(), nested(array, 0, 0)?[0].clone());
    }
    println!("asking for {}", Value::from(instance.clone()));
    let answer = ask(address, &json!({"instances": [instance]}).to_string())?;
    let outputs = model.predict_all(inputs.into_iter().map(|(_, array)| array).collect::<Vec<Array>>())?;
    let mut same = true;
    for (name, expected) in model.output_names().iter().zip(&outputs) {
        let row = &answer["predictions"][0];
        let mut found = Vec::new();
        numbers(if outputs.len() == 1 { row } else { &row[name] }, &mut found);
        println!("the server answers {found:?} for `{name}`; the model predicts {expected}");
        let expected = expected.as_slice::<f32>()?;
        let is_near = |(a, b): (&f64, &f32)| (a - f64::from(*b)).abs() <= 1e-4 * f64::from(b.abs());
        same &= found.len() == expected.len() && found.iter().zip(expected).all(is_near);
    }
    println!("same = {}", i32::from(same));
    running.shutdown();
    std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))
}

/// All numbers of a value, in order.
fn numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| numbers(value, found)),
        value => found.extend(value.as_f64()),
    }
}

/// The answer to a request.
fn ask(address: SocketAddr, body: &str) -> Result<Value> {
    let failed = |e: std::io::Error| Error::config(format!("the server at {address} does not answer: {e}"));
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    let head = "POST /v1/models/keras:predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if !head.starts_with("HTTP/1.1 200") {
        return Err(Error::config(format!("the server answers {answer}")));
    }
    serde_json::from_str(body).map_err(|e| Error::config(format!("the server answers `{body}`: {e}")))
}
