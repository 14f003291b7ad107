//! Our side of the check with TensorFlow Serving's real client (oracles/live/serve.py).
//!
//! `export ROWS.tfrecord FOLDER` trains a small classifier on rows of `age`, `job` and `label`, and
//! exports it to `FOLDER/VERSION`. `serve NAME=FOLDER ..` serves models at free ports, prints the
//! ports of gRPC and REST, and ends when its input does.

use std::io::Read;
use std::time::Duration;

use estimand::export::Receiver;
use estimand::prelude::*;
use estimand::tensor::BatchSpec;
use estimand_serve::{BatchingParameters, Server};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["export", rows, folder] => export(rows, folder),
        ["serve", models @ ..] => serve(models),
        _ => Err(Error::config("usage: serve_exchange export ROWS FOLDER | serve NAME=FOLDER ..")),
    }
}

fn export(rows: &str, folder: &str) -> Result<()> {
    let spec = |name: &str, dtype: DType| (name.to_string(), FeatureSpec::dense(dtype, []));
    let features: BatchSpec =
        [spec("age", DType::F32), spec("job", DType::Str), spec("label", DType::I64)].into_iter().collect();
    let data = Dataset::from_tfrecord(rows, features).label("label").batch(50);
    let job = categorical_column_with_hash_bucket("job", 20);
    let columns = columns![numeric_column("age").default_value(40f32), embedding_column(job, 4)];
    let model = DnnClassifier::new([16, 8], columns.clone())
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(format!("{folder}-model"))
        .build()?;
    model.train(data.repeat(5))?;
    let receiver = Receiver::like(&data)?.and_examples(columns)?;
    model.export_saved_model(folder, receiver)?;
    Ok(())
}

fn serve(models: &[&str]) -> Result<()> {
    let batching = BatchingParameters::new().batch_timeout(Duration::from_micros(200));
    let mut server = Server::new().grpc_port(0).rest_port(0).poll_wait(Duration::from_millis(20)).batching(batching);
    for model in models {
        let (name, folder) =
            model.split_once('=').ok_or_else(|| Error::config(format!("`{model}` is not NAME=FOLDER")))?;
        server = server.model(name, folder);
    }
    let running = server.start()?;
    let ports = [running.grpc_address(), running.rest_address()].map(|address| address.map_or(0, |a| a.port()));
    println!("{} {}", ports[0], ports[1]);
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).map_err(|e| Error::io("the input", "read", &e))?;
    running.shutdown();
    Ok(())
}
