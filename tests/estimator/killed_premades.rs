//! Trainings that keep a state of their own beside the variables, or more than one loop, are killed
//! at any moment and started again: k-means, dual coordinate ascent, an `Experiment`, a recurrent
//! classifier. They end with the bits of undisturbed ones.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use estimand::nn::column::sequence_categorical_column_with_identity;
use estimand::prelude::*;
use estimand::premade::{InitialClusters, LinearSdca};
use estimand::{Experiment, ExperimentResult};

use crate::killed::newest_step;
use crate::models::{Folder, network, points};

const STEPS: u64 = 400;
const NAME: &str = "ESTIMAND_TEST_KILLED_NAME";
const FOLDER: &str = "ESTIMAND_TEST_KILLED_FOLDER";

/// Trains the model of a name in a folder, from where it is up to the last step.
fn train(name: &str, folder: &Path) -> Result<()> {
    let config = RunConfig::new().tf_random_seed(11).threads(2).save_checkpoints(Every::Steps(7));
    let spec = |data: Dataset| TrainSpec::new(data.repeat_forever().batch(8)).max_steps(STEPS);
    match name {
        "kmeans" => {
            let initial = InitialClusters::KMeansPlusPlus;
            let kmeans = KMeans::new(4).initial_clusters(initial).mini_batch_steps_per_iteration(3);
            kmeans.config(config).model_dir(folder).build()?.train(spec(places())).map(drop)
        }
        "sdca" => {
            let sdca = LinearSdca::new("id").symmetric_l1_regularization(0.5).symmetric_l2_regularization(2.0);
            let columns = columns![numeric_column("x").shape([2])];
            let model = LinearRegressor::new(columns).optimizer(sdca.adaptive()).config(config).model_dir(folder);
            model.build()?.train(spec(examples())).map(drop)
        }
        "rnn" => {
            let id = sequence_categorical_column_with_identity("ids", 6);
            let columns = columns![embedding_column(id, 3)];
            let model = RnnClassifier::new(columns).units([4]).config(config).model_dir(folder);
            model.build()?.train(spec(sequences())).map(drop)
        }
        _ => {
            let estimator = Estimator::new(network).config(config).model_dir(folder).build()?;
            let experiment = Experiment::new(estimator, points(70).repeat_forever().batch(8), points(70).batch(8));
            let mut experiment = experiment.train_steps(STEPS).min_eval_frequency(20).check_interval_secs(0.0);
            let result: ExperimentResult = experiment.train_and_evaluate()?;
            assert!(result.metrics.is_some_and(|metrics| metrics.global_step() == STEPS));
            Ok(())
        }
    }
}

/// Four places, with rows around each.
fn places() -> Dataset {
    let near = |i: usize, axis: usize| ((i >> axis) % 2 * 50) as f32 + ((i * 7 + axis * 3) % 11) as f32 * 0.1;
    let values = (0..90).flat_map(|i| [near(i, 0), near(i, 1)]).collect();
    Dataset::from_arrays([("point", Array::from_vec([90, 2], values).unwrap())]).shuffle(30, 3)
}

/// Rows of y = x0 - 2 x1 + noise, with ids.
fn examples() -> Dataset {
    const N: usize = 100;
    let x = |i: usize| [(i * 37 % N) as f32 / 50.0, (i * 53 % N) as f32 / 50.0];
    let y = (0..N).map(|i| x(i)[0] - 2.0 * x(i)[1] + (i * 29 % 7) as f32 / 10.0).collect::<Vec<f32>>();
    let ids = Array::from_strings([N], (0..N).map(|i| format!("row {i}"))).unwrap();
    let x = Array::from_vec([N, 2], (0..N).flat_map(x).collect()).unwrap();
    Dataset::from_arrays([("id", ids), ("x", x), ("y", Array::from(y))]).label("y").shuffle(40, 5)
}

/// Sequences of ids, and whether the first is above the last.
fn sequences() -> Dataset {
    const N: usize = 60;
    let id = |i: usize| (i * i * 31 % 6) as i64;
    let class = (0..N).map(|i| i64::from(id(5 * i) > id(5 * i + 4))).collect::<Vec<i64>>();
    let ids = Array::from_vec([N, 5], (0..5 * N).map(id).collect()).unwrap();
    Dataset::from_arrays([("ids", ids), ("class", Array::from(class))]).label("class")
}

/// What the killed process runs.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    let of = |name: &str| std::env::var(name).expect("the name and the folder of the training");
    train(&of(NAME), Path::new(&of(FOLDER)))
}

fn start(name: &str, folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed_premades::child", "--ignored", "--test-threads=1"]);
    command.env(NAME, name).env(FOLDER, folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn killed_trainings_of_all_kinds_end_as_if_nothing_had_happened() -> Result<()> {
    for name in ["kmeans", "sdca", "rnn", "experiment"] {
        let (undisturbed, disturbed) = (Folder::new(), Folder::new());
        train(name, undisturbed.path())?;
        let mut steps = Vec::new();
        let mut delay = 7_u64;
        for _ in 0..10 {
            let mut child = start(name, disturbed.path());
            delay = delay.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis(15 + (delay >> 33) % 80));
            child.kill().unwrap();
            child.wait().unwrap();
            steps.push(newest_step(disturbed.path()));
        }
        assert!(steps.windows(2).all(|pair| pair[0] <= pair[1]), "{name} never goes backwards: {steps:?}");
        assert!(start(name, disturbed.path()).wait().unwrap().success(), "{name}, killed at {steps:?}");
        for file in [format!("model.ckpt-{STEPS}.index"), format!("model.ckpt-{STEPS}.data-00000-of-00001")] {
            let read = |folder: &Folder| std::fs::read(folder.path().join(&file)).unwrap();
            assert!(read(&disturbed) == read(&undisturbed), "{name}: {file} differs; killed at {steps:?}");
        }
        println!("{name}: killed at {steps:?}");
    }
    Ok(())
}
