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
use estimand_serve::Server;

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

/// An example of the model's input: rows of rising numbers.
fn rows(model: &Model, n: usize) -> Result<Array> {
    let sizes = model.input_shapes()[0].dims()[1..].iter().map(|dim| dim.known().unwrap_or(4));
    let dims: Vec<usize> = [n].into_iter().chain(sizes).collect();
    let len = dims.iter().product::<usize>();
    Array::from_vec(dims, (0..len).map(|i| i as f32 / len as f32).collect())
}

/// Writes the model as a SavedModel, which also TensorFlow Serving loads.
fn export(file: &Path, folder: &Path) -> Result<()> {
    let mut model = load_model(file, &CustomObjects::new())?;
    let input = model.input_names()[0].to_string();
    let sample = Dataset::from_arrays([(input.as_str(), rows(&model, 1)?)]).batch(1);
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
    let x = rows(&model, 1)?;
    let numbers: Vec<String> = x.as_slice::<f32>()?.chunks(x.dims()[2]).map(|step| format!("{step:?}")).collect();
    let answer = ask(address, &format!("{{\"instances\": [[{}]]}}", numbers.join(", ")))?;
    let expected = model.predict(x)?.as_slice::<f32>()?[0];
    println!("the server answers {answer}; the model predicts {expected}");
    let digits = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == 'e';
    let found: f32 = answer.split(|c| !digits(c)).find_map(|word| word.parse().ok()).unwrap_or(f32::NAN);
    println!("same = {}", i32::from((found - expected).abs() < 1e-4 * expected.abs()));
    running.shutdown();
    std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))
}

/// The predictions for a request.
fn ask(address: SocketAddr, body: &str) -> Result<String> {
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
    Ok(body.split_whitespace().collect())
}
