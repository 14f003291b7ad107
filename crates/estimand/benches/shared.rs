//! What it costs to share: `cargo bench -p estimand --bench shared` prints lines `name = value`.
//!
//! - `predict_threads`: rows a second that 8 threads get from one census model, a row at a time,
//!   over those of one thread for the same rows. Two cores: the bound is 2, the target 1.8.
//! - `one_row_us`: microseconds for a census row with its strings.
//! - `evaluation_memory`: the peak of `train_and_evaluate` with a table of 1 GB over that of
//!   `train`. The target is 1.15.
//! - `late_steps`: an MLP 784-512-10 (Adam, batch 128) on rows that it memorises; the time of steps
//!   1,500 to 2,000 over that of steps 0 to 500. Gradients fall below 1e-38 meanwhile. The target
//!   is 1.1.
//! - `census_cpu_us_per_row`: processor time of a census training, CSV and all, for each row.
//!
//! An argument chooses one of them.
#![allow(clippy::print_stdout)] // a bench prints

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use estimand::data::Csv;
use estimand::graph::Cpu;
use estimand::prelude::*;
use estimand::tensor::Batch;

#[path = "../../../benches/census.rs"]
mod census;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let Some(mode) = arguments.first().and_then(|argument| argument.strip_prefix("peak-of-")) {
        return print_peak(mode == "evaluation");
    }
    type Bench = fn() -> Result<()>;
    let all: [(&str, Bench); 4] =
        [("predict", predict), ("evaluation", evaluation_memory), ("late", late_steps), ("census", census_cpu)];
    for (name, bench) in all {
        if arguments.iter().all(|argument| name.starts_with(&**argument)) {
            bench()?;
        }
    }
    Ok(())
}

/// A folder of this process.
fn folder(name: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("estimand-shared-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "make", &e))?;
    Ok(folder)
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).map_err(|e| Error::io(folder, "remove", &e))
}

/// The model and the input of `benches/compare/run.sh`.
fn census_model(folder: &Path) -> Result<(Estimator, Dataset)> {
    let path = folder.join("adult_train.csv");
    census::write_csv("train", &path)?;
    let estimator = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(census::wide())
        .dnn_feature_columns(census::deep(false))
        .dnn_hidden_units([100, 50])
        .label_vocabulary(["<=50K", ">50K"])
        .model_dir(folder.join("model"))
        .config(RunConfig::new().tf_random_seed(1))
        .build()?;
    Ok((estimator, Csv::new(&path).label("income").dataset()))
}

/// The time in which predictions are counted.
const COUNTED: Duration = Duration::from_millis(250);

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn predict() -> Result<()> {
    let folder = folder("predict")?;
    let (estimator, rows) = census_model(&folder)?;
    estimator.train(TrainSpec::new(rows.batch(512).drop_remainder()).steps(20))?;
    // Each of eight threads has rows of its own, as each request has. One thread takes all of them:
    // an eighth alone would stay in its cache.
    let rows = rows.batch(1).take(256);
    let batches: Vec<Vec<Batch>> = (0..8).map(|_| rows.iter().collect::<Result<_>>()).collect::<Result<_>>()?;
    let predictor = estimator.predictor(&batches[0][0])?;
    // Rows a second of some threads together, in windows of equal length: a thread that ends before
    // the others would leave a core idle. The windows take turns, and the median of the ratios of
    // neighbours counts: the processor's speed changes between them less than over the whole.
    let throughput = |n_threads: usize| {
        let is_over = AtomicBool::new(false);
        let count = |own: &[Vec<Batch>]| -> usize {
            let mut n = 0;
            for row in own.iter().flatten().cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                predictor.predict(row).expect("a prediction");
                n += 1;
            }
            n
        };
        std::thread::scope(|threads| {
            let (count, start) = (&count, Instant::now());
            let running: Vec<_> =
                batches.chunks(batches.len() / n_threads).map(|own| threads.spawn(move || count(own))).collect();
            std::thread::sleep(COUNTED);
            is_over.store(true, Ordering::Relaxed);
            let seconds = start.elapsed().as_secs_f64();
            running.into_iter().map(|thread| thread.join().expect("rows")).sum::<usize>() as f64 / seconds
        })
    };
    let turns: Vec<_> = (0..15).map(|_| (throughput(1), throughput(8))).collect();
    let of_turns = |value: fn(&(f64, f64)) -> f64| median(&mut turns.iter().map(value).collect::<Vec<_>>());
    let (one, eight) = (of_turns(|turn| turn.0), of_turns(|turn| turn.1));
    println!("one_row_us = {:.1}", 1e6 / one);
    let ratio = of_turns(|turn| turn.1 / turn.0);
    println!("predict_threads = {ratio:.2}    {one:.0} rows a second by one thread, {eight:.0} by eight");
    remove(&folder)
}

/// Peaks are those of processes, so each is of one.
fn evaluation_memory() -> Result<()> {
    let program = std::env::current_exe().map_err(|e| Error::config(format!("this program is not found: {e}")))?;
    let peak = |mode: &str| -> Result<f64> {
        let output = Command::new(&program).arg(format!("peak-of-{mode}")).output();
        let output = output.map_err(|e| Error::io(&program, "run", &e))?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| Error::config(format!("`{text}` instead of a number of bytes")))
    };
    let (alone, evaluated) = (peak("training")?, peak("evaluation")?);
    println!(
        "evaluation_memory = {:.3}    {:.2} GB with evaluations, {:.2} GB without",
        evaluated / alone,
        evaluated / 1e9,
        alone / 1e9
    );
    Ok(())
}

/// Trains a table of 1 GB for some steps, and prints the most memory that this process ever had.
fn print_peak(evaluates: bool) -> Result<()> {
    let folder = folder("peak")?;
    let (n_rows, width) = (4_000_000, 64);
    let model = move |cx: &ModelFnContext<'_>| {
        let table = cx.graph().variable("table", [n_rows, width], Initializer::Zeros);
        let rows = table.gather(&cx.feature("id"));
        let loss = (rows.sum_axes([1]) - cx.label()).square().mean();
        Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.01)))
    };
    let n = 4_096;
    let ids = Array::from((0..n).map(|i| i * 977 % n_rows as i64).collect::<Vec<i64>>());
    let targets = Array::from((0..n).map(|i| (i % 7) as f32).collect::<Vec<f32>>());
    let data = Dataset::from_arrays([("id", ids), ("y", targets)]).label("y").batch(512).drop_remainder();
    let estimator = Estimator::new(model).model_dir(&folder).config(RunConfig::new().tf_random_seed(1)).build()?;
    let train = TrainSpec::new(data.repeat_forever()).max_steps(20);
    match evaluates {
        true => drop(estimator.train_and_evaluate(train, EvalSpec::new(&data).every(Every::Steps(10)))?),
        false => drop(estimator.train(train)?),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    println!("{}", kib.map_or("unknown".to_string(), |kib| (kib * 1024.0).to_string()));
    remove(&folder)
}

/// Steps in one window, and the windows of a training.
const WINDOW: usize = 500;
const N_WINDOWS: usize = 4;

fn late_steps() -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 784.into()]);
    let y = g.placeholder("y", DType::I64, [Dim::BATCH]);
    let logits = Dense::new(10).apply(&Dense::new(512).relu().apply(&x));
    let loss = logits.sparse_softmax_cross_entropy(&y).mean();
    let train = Optimizer::new(Adam::default(), 0.001).minimize(&loss);
    // 512 rows in four batches; most pixels are black, as those of digits are.
    let n = 512;
    let pixel = |i: usize| if (i * 7919) % 1009 < 200 { ((i * 31) % 97) as f32 / 97.0 } else { 0.0 };
    let pixels = Array::from_vec([n, 784], (0..n * 784).map(pixel).collect::<Vec<f32>>())?;
    let labels = Array::from((0..n).map(|i| (i * 13 % 10) as i64).collect::<Vec<_>>());
    let batches: Vec<_> = (0..4)
        .map(|b| Ok([(&x, pixels.rows(b * 128..(b + 1) * 128)?), (&y, labels.rows(b * 128..(b + 1) * 128)?)]))
        .collect::<Result<_>>()?;
    let mut session = Session::with(&g, Cpu::new(), 1)?;
    let (mut outputs, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..N_WINDOWS {
        // The best of parts, so that a pause of the machine in one of them does not count.
        let mut best = f64::INFINITY;
        for part in 0..10 {
            let start = Instant::now();
            for step in 0..WINDOW / 10 {
                session.run_into(&[&loss, &train], &batches[(part + step) % 4], &mut outputs)?;
            }
            best = best.min(start.elapsed().as_secs_f64() / (WINDOW / 10) as f64);
        }
        seconds.push(best);
    }
    let shown: Vec<String> = seconds.iter().map(|seconds| format!("{:.3}", seconds * 1e3)).collect();
    println!(
        "late_steps = {:.2}    ms of a step, by 500 steps: {}",
        seconds[N_WINDOWS - 1] / seconds[0],
        shown.join(", ")
    );
    Ok(())
}

fn census_cpu() -> Result<()> {
    let folder = folder("census")?;
    let (estimator, rows) = census_model(&folder)?;
    let (batch, n_steps) = (256, 3_000);
    let data = rows.shuffle(10_000, 7).repeat_forever().batch(batch).drop_remainder();
    estimator.train(TrainSpec::new(&data).steps(100))?;
    let before = cpu_seconds();
    let start = Instant::now();
    estimator.train(TrainSpec::new(&data).steps(n_steps))?;
    let n_rows = (n_steps as usize * batch) as f64;
    let per_row = (cpu_seconds() - before) / n_rows;
    println!(
        "census_cpu_us_per_row = {:.2}    {:.0} rows a second",
        per_row * 1e6,
        n_rows / start.elapsed().as_secs_f64()
    );
    remove(&folder)
}

/// The processor time of this process until now, in user and kernel mode.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: fields 14 and 15 of all are ticks, a hundred a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
