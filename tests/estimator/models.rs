//! Small models and their training rows.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::nn::metric;
use estimand::prelude::*;

/// An empty folder, gone when this is.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("estimand-test-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The names of its files, sorted; those of events by what they are.
    pub fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.map(|name| if name.contains("tfevents") { "events".into() } else { name }).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The steps of its checkpoints.
    pub fn steps(&self) -> Vec<u64> {
        let step = |name: &String| name.strip_prefix("model.ckpt-")?.strip_suffix(".index")?.parse().ok();
        let mut steps: Vec<u64> = self.files().iter().filter_map(step).collect();
        steps.sort_unstable();
        steps
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `n` rows of y = 3 x, with x from 0 to 1.
pub fn line(n: usize) -> Dataset {
    let x: Vec<f32> = (0..n).map(|i| i as f32 / n as f32).collect();
    let y: Vec<f32> = x.iter().map(|x| 3.0 * x).collect();
    Dataset::from_arrays([("x", Array::from(x)), ("y", Array::from(y))]).label("y")
}

/// One weight, trained by gradient descent with the rate of the parameters.
pub fn linear(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("w", [], Initializer::Zeros);
    let y = cx.feature("x") * &w;
    let spec = EstimatorSpec::new(cx).prediction("y", &y).prediction("twice", &(&y * 2.0));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let label = cx.label();
    let loss = (&y - &label).square().mean();
    let rate = cx.params().f64("rate").unwrap_or(0.1);
    Ok(spec
        .loss(&loss)
        .optimizer(Optimizer::new(Sgd::default(), rate))
        .metric("mae", metric::mean_absolute_error(&label, &y, None)))
}

/// Shuffled rows of four numbers in three classes.
pub fn points(n: usize) -> Dataset {
    let x: Vec<f32> = (0..4 * n).map(|i| ((i * 37 % 101) as f32 / 101.0).sin()).collect();
    let y: Vec<i64> = (0..n).map(|i| (i * 7 % 3) as i64).collect();
    let arrays = [("x", Array::from_vec([n, 4], x).unwrap()), ("y", Array::from(y))];
    Dataset::from_arrays(arrays).label("y").shuffle(n, 3)
}

/// A network with batch normalisation and dropout, trained with Adam.
pub fn network(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = Dense::new(8).relu().apply(&cx.feature("x"));
    let x = BatchNorm::new().apply(&x);
    let x = Dropout::new(0.3).apply(&x);
    let logits = Dense::new(3).apply(&x);
    let spec = EstimatorSpec::new(cx).prediction("class", &logits.argmax(-1)).prediction("logits", &logits);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let label = cx.label();
    let loss = logits.sparse_softmax_cross_entropy(&label).mean();
    let accuracy = metric::sparse_categorical_accuracy(&label, &logits, None);
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.01)).metric("accuracy", accuracy))
}
