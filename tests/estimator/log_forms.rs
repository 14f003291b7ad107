//! The lines that training, evaluation and prediction log have TensorFlow's forms, in its order.

use estimand::prelude::*;
use estimand_fixture::cases_of;

use crate::hooks::log_lines::logged;
use crate::models::Folder;

/// Beginnings of TensorFlow's lines about what Estimand does not have: sessions, listeners of a
/// saver, a coordinator, and its own text of the settings.
const THEIRS: [&str; 9] = [
    "Using config: ",
    "Using default config.",
    "Create CheckpointSaverHook.",
    "Running local_init_op.",
    "Done running local_init_op.",
    "Calling checkpoint listeners ",
    "Not using Distribute Coordinator.",
    "Running training and evaluation locally ",
    "Start train and evaluate loop. ",
];
/// Beginnings of our lines that TensorFlow does not have.
const OURS: [&str; 4] =
    ["Using config: ", "Hooks, in order: ", "training ended at step ", "tf_random_seed is not set; "];
/// TensorFlow makes a graph and a session for each evaluation of `train_and_evaluate`, and reads
/// the checkpoint. We make the graph once, and evaluate the variables of the training.
const OF_SESSIONS: [&str; 4] =
    ["Calling model_fn.", "Done calling model_fn.", "Graph was finalized.", "Restoring parameters from "];

fn without(lines: &[String], beginnings: &[&str]) -> Vec<String> {
    let is_left_out = |line: &String| beginnings.iter().any(|beginning| line.starts_with(beginning));
    lines.iter().filter(|line| !is_left_out(line)).cloned().collect()
}

/// A line with `N` for its numbers, as the fixture has it.
pub fn form(line: &str, folder: &Folder) -> String {
    let line = line.replace(&*folder.path().to_string_lossy(), "DIR");
    line.split(' ').map(form_of_word).collect::<Vec<_>>().join(" ")
}

fn form_of_word(word: &str) -> String {
    if let Some((name, number)) = word.split_once('=') {
        return format!("{name}={}", form_of_word(number));
    }
    let is_mark = |c: char| matches!(c, '(' | ')' | ',' | ':' | 's' | '.');
    let core = word.trim_matches(is_mark);
    let place = word.find(core).unwrap_or(0);
    let (start, end) = (&word[..place], &word[place + core.len()..]);
    let is_time = core.len() == 19 && core.chars().filter(|c| c.is_ascii_digit()).count() == 14;
    let found = match core.rsplit_once("model.ckpt-") {
        Some((folder, step)) if step.parse::<u64>().is_ok() => format!("{folder}model.ckpt-N"),
        _ if is_time => "TIME".to_string(),
        _ if core.parse::<f64>().is_ok() => "N".to_string(),
        _ => core.to_string(),
    };
    format!("{start}{found}{end}")
}

/// The lines at `INFO`, in their forms.
fn forms(code: impl FnOnce(), folder: &Folder) -> Vec<String> {
    let ((), lines) = logged(code);
    let lines: Vec<String> =
        lines.iter().filter_map(|line| line.strip_prefix("INFO: ")).map(|line| form(line, folder)).collect();
    without(&lines, &OURS)
}

/// TensorFlow's lines of a case.
fn theirs(case: &str) -> Vec<String> {
    let lines: Vec<String> = cases_of("log_lines", case).remove(0).setting("lines");
    without(&lines, &THEIRS)
}

fn rows() -> Dataset {
    let x = Array::from([1f32, 2.0, 3.0, 4.0]);
    Dataset::from_arrays([("x", x), ("y", Array::from([0i64, 0, 1, 1]))]).label("y")
}

fn batches(n: u64) -> Dataset {
    rows().batch(4).repeat(n)
}

fn classifier(folder: &Folder, name: &str, config: RunConfig) -> Estimator {
    let model = LinearClassifier::new([numeric_column("x").into()]).config(config.tf_random_seed(1));
    model.model_dir(folder.path().join(name)).build().unwrap()
}

fn model_fn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let logits = Dense::new(2).apply(&cx.feature("x").expand_dims(1));
    let spec = EstimatorSpec::new(cx).prediction("class", &logits.argmax(-1));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    let accuracy = estimand::nn::metric::sparse_categorical_accuracy(&cx.label(), &logits, None);
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)).metric("accuracy", accuracy))
}

/// Trains, evaluates, and predicts one batch.
fn use_all(estimator: &Estimator) {
    estimator.train(TrainSpec::new(rows().batch(4).repeat_forever()).steps(250)).unwrap();
    estimator.evaluate(batches(20)).unwrap();
    estimator.predict(batches(1)).next().unwrap().unwrap();
}

#[test]
fn a_premade_estimator_logs_the_lines_of_tensorflow() {
    let folder = Folder::new();
    assert_eq!(forms(|| use_all(&classifier(&folder, "premade", RunConfig::new())), &folder), theirs("premade"));
    let estimator = classifier(&folder, "premade", RunConfig::new());
    let more = || drop(estimator.train(TrainSpec::new(rows().batch(4).repeat_forever()).steps(10)).unwrap());
    // TensorFlow writes the checkpoint again that it goes on from; we do not.
    let mut expected = theirs("again");
    let first = expected.iter().position(|line| line.starts_with("Saving checkpoints for ")).unwrap();
    expected.remove(first);
    assert_eq!(forms(more, &folder), expected);
    let done = || drop(estimator.train(TrainSpec::new(batches(1)).max_steps(100)).unwrap());
    // TensorFlow's one line, but ours also says which steps.
    assert_eq!(theirs("done"), ["Skipping training since max_steps has already saved."]);
    assert_eq!(forms(done, &folder), ["Skipping training since step N was reached before, and max_steps is N"]);
}

#[test]
fn a_model_function_logs_the_lines_of_tensorflow() {
    let folder = Folder::new();
    let estimator = || Estimator::new(model_fn).model_dir(folder.path().join("model_fn")).build().unwrap();
    assert_eq!(forms(|| use_all(&estimator()), &folder), theirs("model_fn"));
}

#[test]
fn train_and_evaluate_logs_the_lines_of_tensorflow() {
    let folder = Folder::new();
    let config = RunConfig::new().save_checkpoints(Every::Steps(100));
    let train = TrainSpec::new(rows().batch(4).repeat_forever()).max_steps(250);
    let eval = EvalSpec::new(batches(3)).throttle_secs(0.0).start_delay_secs(0.0);
    let run = || drop(classifier(&folder, "together", config).train_and_evaluate(train, eval).unwrap());
    // TensorFlow evaluates a checkpoint that it has saved. Ours is saved after the evaluation,
    // because it has the results, so the lines are in another order.
    let [mut found, mut theirs] = [forms(run, &folder), theirs("together")].map(|lines| without(&lines, &OF_SESSIONS));
    found.sort();
    theirs.sort();
    assert_eq!(found, theirs);
}
