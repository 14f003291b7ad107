//! Our side of k-means that TensorFlow and Estimand train in turns (oracles/live/kmeans.py).
//!
//! `train SETTINGS FOLDER ROWS.csv BATCH MAX_STEPS` trains in a model folder until the step;
//! `export SETTINGS FOLDER ROWS.csv EXPORTS` exports it and prints the folder. SETTINGS is a
//! distance and `full`, or the number of mini-batches of an iteration: `cosine,3`.

use estimand::console::{self, Level};
use estimand::data::Csv;
use estimand::export::Receiver;
use estimand::prelude::*;
use estimand::premade::{DistanceMetric, KMeansEstimator};

/// As many as the folder has.
const CLUSTERS: usize = 5;

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::config(format!("`{text}` is no number")))
}

fn kmeans(settings: &str, folder: &str) -> Result<KMeansEstimator> {
    let (distance, batches) = settings.split_once(',').unwrap_or((settings, "full"));
    let kmeans = match batches {
        "full" => KMeans::new(CLUSTERS).full_batch(),
        n => KMeans::new(CLUSTERS).mini_batch_steps_per_iteration(number(n)?),
    };
    let distance = if distance == "cosine" { DistanceMetric::Cosine } else { DistanceMetric::SquaredEuclidean };
    kmeans.distance_metric(distance).model_dir(folder).build()
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", settings, folder, rows, batch, max_steps] => {
            let batches = Csv::new(rows).dataset().repeat_forever().batch(number(batch)? as usize);
            kmeans(settings, folder)?.train(TrainSpec::new(batches).max_steps(number(max_steps)?))?;
        }
        ["export", settings, folder, rows, exports] => {
            let receiver = Receiver::like(&Csv::new(rows).dataset())?;
            println!("{}", kmeans(settings, folder)?.export_saved_model(exports, receiver)?.display());
        }
        _ => {
            let help = "train SETTINGS FOLDER ROWS.csv BATCH MAX_STEPS, or export SETTINGS FOLDER ROWS.csv EXPORTS";
            return Err(Error::config("what to do?").help(help));
        }
    }
    Ok(())
}
