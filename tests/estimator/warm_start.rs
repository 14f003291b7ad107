//! Warm start: section 9 of the specification (cases 114 and 124), slots, TensorFlow's files, and
//! mistakes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use estimand::VocabInfo;
use estimand::graph::checkpoint::{BundleReader, BundleWriter};
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;

use crate::models::{Folder, line, linear, network, points};

const WEIGHTS: &str = "linear/linear_model/job/weights";
const BIAS: &str = "linear/linear_model/bias_weights";

/// Writes a checkpoint of these values.
fn checkpoint(folder: &Folder, values: &[(&str, Vec<usize>, Vec<f32>)]) -> PathBuf {
    let prefix = folder.path().join("old.ckpt");
    let mut writer = BundleWriter::create(&prefix).unwrap();
    for (name, dims, values) in values {
        writer.add(name, &Array::from_vec(dims, values.clone()).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    prefix
}

/// The old model of the specification's example: terms a, b and c.
fn abc(folder: &Folder) -> PathBuf {
    let weights = vec![0.0727, 0.0727, 0.1826];
    checkpoint(folder, &[(BIAS, vec![1], vec![0.5]), (WEIGHTS, vec![3, 1], weights)])
}

fn job_rows() -> Dataset {
    let jobs = Array::from_strings([2], ["a", "zzz"]).unwrap();
    Dataset::from_arrays([("job", jobs), ("y", Array::from([0i64, 1]))]).label("y").batch(2)
}

/// A model of the terms c, d, a and one bucket that learns nothing, so that its checkpoint has what
/// it began with.
fn cda(folder: &Folder, settings: impl Into<WarmStartSettings>) -> Result<Estimator> {
    let job = categorical_column_with_vocabulary_list("job", ["c", "d", "a"]).n_oov_buckets(1);
    let model = LinearClassifier::new([job.into()]).optimizer(Optimizer::new(Sgd::default(), 0.0));
    model.warm_start_from(settings).model_dir(inside(folder)).build()
}

/// A folder of its own in another.
fn inside(folder: &Folder) -> PathBuf {
    let path = folder.path().join(format!("model-{}", std::fs::read_dir(folder.path()).unwrap().count()));
    std::fs::create_dir(&path).unwrap();
    path
}

fn values(model: &Estimator, name: &str) -> Vec<f32> {
    model.variable_value(name).unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn trained(model: &Estimator, name: &str) -> Result<Vec<f32>> {
    model.train(job_rows())?;
    Ok(values(model, name))
}

/// Case 114: the example of a vocabulary that has changed, with terms as lists and as files.
#[test]
fn case_114_rows_follow_their_terms() -> Result<()> {
    let folder = Folder::new();
    let from = abc(&folder);
    let files = [("old.txt", "a\nb\nc\n"), ("new.txt", "c\nd\na\nnever used\n")];
    let [old, new] = files.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let settings = |info: VocabInfo| WarmStartSettings::new(&from).vocab_info(WEIGHTS, info.n_oov_buckets(1));
    let lists = || VocabInfo::new(["c", "d", "a"], ["a", "b", "c"]);
    let by_file = || VocabInfo::new(&new, old.as_path()).new_vocab_size(3);
    for info in [lists(), by_file()] {
        assert_eq!(trained(&cda(&folder, settings(info))?, WEIGHTS)?, [0.1826, 0.0, 0.0727, 0.0]);
    }
    for info in [lists().old_vocab_size(1), by_file().old_vocab_size(1)] {
        assert_eq!(trained(&cda(&folder, settings(info))?, WEIGHTS)?, [0.0, 0.0, 0.0727, 0.0]);
    }
    let backup = settings(lists().backup_initializer(Initializer::Constant(9.0)));
    assert_eq!(trained(&cda(&folder, &backup)?, WEIGHTS)?, [0.1826, 9.0, 0.0727, 9.0]);
    assert_eq!(trained(&cda(&folder, backup)?, BIAS)?, [0.5], "the others come as they are");
    // Before the first training too. By hand, the logits of the rows are 0.5 + 0.0727 (a) and 0.5
    // (the bucket), their probabilities 0.639386 and 0.622459.
    let untrained = cda(&folder, settings(lists()))?;
    let logistic: Vec<f32> =
        untrained.predict(job_rows()).map(|row| row.unwrap().f32("logistic").unwrap()[0]).collect();
    assert!((logistic[0] - 0.639386).abs() < 1e-6 && (logistic[1] - 0.622459).abs() < 1e-6, "{logistic:?}");
    Ok(())
}

/// Case 114: columns, where the terms are classes; a bias has one axis.
#[test]
fn case_114_columns_follow_their_classes() -> Result<()> {
    let folder = Folder::new();
    // Old classes no, yes; new classes yes, maybe, no.
    let from = checkpoint(
        &folder,
        &[("linear/linear_model/x/weights", vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]), (BIAS, vec![2], vec![5.0, 6.0])],
    );
    let classes =
        || VocabInfo::new(["yes", "maybe", "no"], ["no", "yes"]).backup_initializer(Initializer::Constant(-1.0));
    let settings = WarmStartSettings::new(from)
        .vocab_info("linear/linear_model/x/weights", classes().axis(1))
        .vocab_info(BIAS, classes());
    let model = LinearClassifier::new([numeric_column("x").shape([2]).into()]).n_classes(3);
    let model = model.optimizer(Optimizer::new(Sgd::default(), 0.0)).warm_start_from(settings);
    let model = model.model_dir(folder.path().join("model")).build()?;
    let x = Array::from_vec([1, 2], vec![1f32, 1.0])?;
    model.train(Dataset::from_arrays([("x", x), ("y", Array::from([0i64]))]).label("y").batch(1))?;
    assert_eq!(values(&model, "linear/linear_model/x/weights"), [2.0, -1.0, 1.0, 4.0, -1.0, 3.0]);
    assert_eq!(values(&model, BIAS), [6.0, -1.0, 5.0]);
    Ok(())
}

/// A network that has learnt for three steps, and one that begins with some of its values and
/// learns nothing.
fn old_and_new(settings: impl FnOnce(&Path) -> WarmStartSettings) -> Result<(Folder, Estimator, Folder, Estimator)> {
    let (first, second) = (Folder::new(), Folder::new());
    let config = |seed| RunConfig::new().tf_random_seed(seed);
    let old = Estimator::new(network).config(config(1)).model_dir(first.path()).build()?;
    old.train(TrainSpec::new(points(50).repeat_forever().batch(8)).steps(3))?;
    let new = Estimator::new(network).config(config(2)).warm_start_from(settings(first.path()));
    let new = new.model_dir(second.path()).build()?;
    Ok((first, old, second, new))
}

/// Keeps the values that a training begins with.
#[derive(Default)]
struct Begun(Arc<Mutex<Vec<(String, Array)>>>);

impl Hook for Begun {
    fn name(&self) -> &str {
        "begun"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        for name in cx.session().variable_names() {
            self.0.lock().unwrap().push((name.clone(), cx.session().value(&name)?));
        }
        Ok(())
    }
}

/// What a model begins with, from a training of one step.
fn begun(model: &Estimator, data: Dataset) -> Result<Vec<(String, Array)>> {
    let hook = Begun::default();
    let values = hook.0.clone();
    model.train(TrainSpec::new(data).steps(1).hook(hook))?;
    Ok(std::mem::take(&mut values.lock().unwrap()))
}

/// The names of the variables that begin with what the old model has.
fn warm(old: &Estimator, new: &Estimator) -> Result<Vec<String>> {
    let begun = begun(new, points(50).batch(8))?;
    let same = |(name, value): &(String, Array)| old.variable_value(name).is_ok_and(|old| old == *value);
    Ok(begun.into_iter().filter(same).map(|(name, _)| name).collect())
}

/// Case 114: which variables a pattern, a list of patterns, names, or nothing means.
#[test]
fn case_114_which_variables() -> Result<()> {
    let (_first, old, _second, new) = old_and_new(|path| WarmStartSettings::new(path).vars("dense/.*"))?;
    assert_eq!(warm(&old, &new)?, ["dense/kernel", "dense/bias"], "from the start of names, trainable ones only");
    let (_first, old, _second, new) = old_and_new(|path| WarmStartSettings::new(path).vars("dense"))?;
    let dense = ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"];
    assert_eq!(warm(&old, &new)?, dense, "a match need not reach the end");
    let (_first, old, _second, new) =
        old_and_new(|path| WarmStartSettings::new(path).saved_vars([r"dense_\d/bias", ".*moving_mean$"]))?;
    assert_eq!(warm(&old, &new)?, ["batch_normalization/moving_mean", "dense_1/bias"]);
    let (_first, old, _second, new) = old_and_new(|path| WarmStartSettings::new(path).named_vars(["dense/bias"]))?;
    assert_eq!(warm(&old, &new)?, ["dense/bias"]);
    let info = || VocabInfo::new(["p", "q", "r", "s"], ["p", "q", "r", "s"]);
    let (_first, old, _second, new) =
        old_and_new(|path| WarmStartSettings::new(path).only_vocab_vars().vocab_info("dense/kernel", info()))?;
    assert_eq!(warm(&old, &new)?, ["dense/kernel"]);
    Ok(())
}

/// Case 124: the step is counted from 0 unless patterns of all saved variables take it along.
#[test]
fn case_124_the_step() -> Result<()> {
    let (first, second, third) = (Folder::new(), Folder::new(), Folder::new());
    let data = line(8).repeat_forever().batch(8);
    let model = |folder: &Folder| Estimator::new(linear).model_dir(folder.path());
    let one_step = |estimator: &Estimator| estimator.train(TrainSpec::new(&data).steps(1)).map(|f| f.global_step);
    model(&first).build()?.train(TrainSpec::new(&data).steps(2))?;
    let plain = model(&second).warm_start_from(first.path()).build()?;
    assert_eq!(plain.evaluate(line(8).batch(8))?.global_step(), 0);
    assert_eq!(one_step(&plain)?, 1);
    let all = model(&third).warm_start_from(WarmStartSettings::new(first.path()).saved_vars([".*"])).build()?;
    assert_eq!(all.evaluate(line(8).batch(8))?.global_step(), 2);
    assert_eq!(one_step(&all)?, 3);
    assert_eq!(all.variable_value("global_step")?.item::<i64>()?, 3);
    // Once there is a checkpoint, it is gone on from, whatever the settings say.
    std::fs::remove_dir_all(first.path()).unwrap();
    assert_eq!((one_step(&plain)?, one_step(&all)?), (2, 4));
    Ok(())
}

/// With all of the old state, the next step is the one that the old training would have done.
#[test]
fn a_warm_start_with_everything_goes_on_like_the_old_training() -> Result<()> {
    let x: Vec<f32> = (0..32).map(|i| (i as f32 * 0.7).sin()).collect();
    let rows = [("x", Array::from_vec([8, 4], x)?), ("y", Array::from([0i64, 1, 2, 0, 1, 2, 0, 1]))];
    let data = Dataset::from_arrays(rows).label("y").repeat_forever().batch(8);
    let (first, second) = (Folder::new(), Folder::new());
    let model =
        |folder: &Folder| Estimator::new(network).config(RunConfig::new().tf_random_seed(1)).model_dir(folder.path());
    let old = model(&first).build()?;
    old.train(TrainSpec::new(&data).steps(3))?;
    let new = model(&second).warm_start_from(WarmStartSettings::new(first.path()).saved_vars([".*"])).build()?;
    new.train(TrainSpec::new(&data).steps(1))?;
    old.train(TrainSpec::new(&data).steps(1))?;
    for name in old.variable_names()? {
        assert_eq!(old.variable_value(&name)?, new.variable_value(&name)?, "{name}");
    }
    Ok(())
}

/// Slots follow the terms of their variables, also under another name; new rows have the slot's own
/// beginning (0.1 and 0 for Ftrl), and steps are counted anew.
#[test]
fn slots_follow_their_variables() -> Result<()> {
    let (first, second) = (Folder::new(), Folder::new());
    let model = |key: &str, terms: &[&str], folder: &Folder| {
        let column = categorical_column_with_vocabulary_list(key, terms).n_oov_buckets(1);
        LinearClassifier::new([column.into()]).model_dir(folder.path())
    };
    let old = model("job", &["a", "b"], &first).build()?;
    old.train(job_rows())?;
    let work = "linear/linear_model/work/weights";
    let settings = WarmStartSettings::new(first.path())
        .vocab_info(work, VocabInfo::new(["c", "a"], ["a", "b"]).n_oov_buckets(1))
        .prev_var_name(work, WEIGHTS)
        .optimizer_slots(true);
    let new = model("work", &["c", "a"], &second).warm_start_from(settings).build()?;
    let work_rows = Dataset::from_arrays([("work", Array::from_strings([1], ["a"])?), ("y", Array::from([1i64]))]);
    let begun = begun(&new, work_rows.label("y").batch(1))?;
    let at = |name: &str| begun.iter().find(|(own, _)| own == name).unwrap().1.clone();
    let old_values = |name: &str| values(&old, name);
    for (slot, fresh) in [("accumulator", 0.1), ("linear", 0.0)] {
        let before = old_values(&format!("training/Ftrl/{WEIGHTS}/{slot}"));
        assert_ne!(before[0], fresh, "the term has been trained");
        let after = at(&format!("training/Ftrl/{work}/{slot}"));
        assert_eq!(after.as_slice::<f32>()?, [fresh, before[0], fresh]);
        let bias = format!("training/Ftrl/{BIAS}/{slot}");
        assert_eq!(at(&bias).as_slice::<f32>()?, old_values(&bias));
    }
    assert_eq!(at(work).as_slice::<f32>()?, [0.0, old_values(WEIGHTS)[0], 0.0]);
    assert_eq!(at("global_step").item::<i64>()?, 0);
    // An evaluation has no slots, and none are missed.
    let again = Folder::new();
    let settings = WarmStartSettings::new(first.path()).optimizer_slots(true);
    model("job", &["a", "b"], &again).warm_start_from(settings).build()?.evaluate(job_rows())?;
    Ok(())
}

/// TensorFlow's files: a variable in three partitions, and the variables of a SavedModel.
#[test]
fn from_files_of_tensorflow() -> Result<()> {
    let folder = Folder::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures");
    let work = "linear/linear_model/job/weights";
    let column = || categorical_column_with_vocabulary_list("job", ["c", "d", "a"]).n_oov_buckets(1);
    let model = |n_classes, settings: WarmStartSettings| {
        let model = LinearClassifier::new([column().into()]).n_classes(n_classes);
        let model = model.optimizer(Optimizer::new(Sgd::default(), 0.0)).warm_start_from(settings);
        model.model_dir(inside(&folder)).build()
    };
    let info = || VocabInfo::new(["c", "d", "a"], ["a", "b", "c", "d"]).n_oov_buckets(1);
    // `rows` is 0 1, 2 3, 4 5, 6 7, 8 9 (oracles/gen/bundle.py); a model of two columns is made by
    // hand.
    let partitioned =
        WarmStartSettings::new(fixtures.join("bundle_tf")).vocab_info("w", info()).prev_var_name("w", "rows");
    let table = |cx: &ModelFnContext<'_>| {
        let w = cx.graph().variable("w", [4, 2], Initializer::Ones);
        let loss = (w.sum() - cx.label()).square().mean();
        Ok(EstimatorSpec::new(cx).prediction("w", &w).loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.0)))
    };
    let by_hand = Estimator::new(table).warm_start_from(partitioned).model_dir(inside(&folder)).build()?;
    by_hand.train(line(1).batch(1))?;
    assert_eq!(values(&by_hand, "w"), [4.0, 5.0, 6.0, 7.0, 0.0, 1.0, 0.0, 0.0]);

    let saved = fixtures.join("saved_model_linear");
    let stored = BundleReader::open(saved.join("variables/variables"))?.read(work)?;
    let stored = stored.as_slice::<f32>()?;
    assert!(stored.iter().all(|weight| *weight != 0.0), "{stored:?}");
    let settings = WarmStartSettings::new(&saved).vars(".*job").vocab_info(work, info());
    let found = trained(&model(3, settings)?, work)?;
    assert_eq!(found, [&stored[6..9], &stored[9..12], &stored[0..3], &[0.0; 3]].concat());
    Ok(())
}

/// A checkpoint of objects, as Keras writes it (oracles/gen/object_checkpoint.py): kernels and
/// biases count from 0, 100, 200 and 300, and the slots of its optimizer are found by their names
/// too.
#[test]
fn from_a_model_of_keras() -> Result<()> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/bundle_tf_objects");
    let model = |cx: &ModelFnContext<'_>| {
        let logits = Dense::new(2).apply(&Dense::new(3).apply(&cx.feature("x")));
        let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
        Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.01)))
    };
    let folder = Folder::new();
    let build = |settings: WarmStartSettings| {
        Estimator::new(model).warm_start_from(settings).model_dir(inside(&folder)).build()
    };
    let rows = || {
        let x = Array::from_vec([1, 4], vec![0f32; 4]).unwrap();
        Dataset::from_arrays([("x", x), ("y", Array::from([1i64]))]).label("y").batch(1)
    };
    let begun = begun(&build(WarmStartSettings::new(&from).optimizer_slots(true))?, rows())?;
    let mut found = Vec::new();
    for (name, value) in begun.iter().filter(|(name, _)| name.starts_with("dense")) {
        found.push((name.as_str(), value.as_slice::<f32>()?.to_vec()));
    }
    let counted = |from: usize, n: usize| (from..from + n).map(|i| i as f32).collect::<Vec<_>>();
    let expected = [
        ("dense/kernel", counted(0, 12)),
        ("dense/bias", counted(100, 3)),
        ("dense_1/kernel", counted(200, 6)),
        ("dense_1/bias", counted(300, 2)),
    ];
    assert_eq!(found, expected);
    let renamed = WarmStartSettings::new(&from).vars("dense/bias").prev_var_name("dense/bias", "dense/biased");
    let text = build(renamed)?.train(rows()).unwrap_err().to_string();
    assert!(text.contains("no variable `dense/biased`") && text.contains("did you mean `dense/bias`?"), "{text}");
    Ok(())
}

/// Every mistake is named before anything is trained.
#[test]
fn mistakes() -> Result<()> {
    let folder = Folder::new();
    let from = abc(&folder);
    let info = || VocabInfo::new(["c", "d", "a"], ["a", "b", "c"]).n_oov_buckets(1);
    let plain = || WarmStartSettings::new(&from);
    let short = folder.path().join("short.txt");
    std::fs::write(&short, "a\nb\n").unwrap();
    let cases: Vec<(WarmStartSettings, &[&str])> = vec![
        (WarmStartSettings::new(""), &["the path of the warm start is empty"]),
        (WarmStartSettings::new(folder.path().join("gone")), &["gone.index"]),
        (WarmStartSettings::new(folder.path()), &["there is no checkpoint in"]),
        (plain(), &["f32[3, 1] in the checkpoint and f32[4, 1] in the model", "vocab_info"]),
        (plain().vars("("), &["invalid regular expression \"(\""]),
        (plain().saved_vars(["linear", "[z"]), &["invalid regular expression \"[z\""]),
        (plain().vars("job"), &["no variable's name begins with a match of \"job\"", WEIGHTS, BIAS]),
        (plain().saved_vars([".*bias", "dnn/.*"]), &["match of \"dnn/.*\"", "global_step"]),
        (plain().named_vars(["linear/linear_model/bias_weight"]), &["no variable", "did you mean", BIAS]),
        (
            plain().only_vocab_vars().vocab_info("job/weights", info()),
            &["vocab_info is given for `job/weights`", WEIGHTS],
        ),
        (plain().vars(".*bias").vocab_info(WEIGHTS, info()), &["not a variable of the warm start", "there are", BIAS]),
        (
            plain().vars(".*bias").prev_var_name("linear/bias_weights", "b"),
            &["prev_var_name", "linear/bias_weights", BIAS],
        ),
        (
            plain().vars(".*bias").prev_var_name(BIAS, "linear/bias"),
            &["no variable `linear/bias`", "in checkpoint", BIAS],
        ),
        (plain().vocab_info(WEIGHTS, info().axis(2)), &["the vocabulary is along axis 2", WEIGHTS, "axis 1"]),
        (plain().vocab_info(WEIGHTS, info().axis(1)), &["axis 1 has the size 1"]),
        (
            plain().vocab_info(WEIGHTS, info().n_oov_buckets(2)),
            &["5 terms and buckets, but axis 0 has the size 4", "n_oov_buckets"],
        ),
        (
            plain().vocab_info(WEIGHTS, info().new_vocab_size(4)),
            &["the vocabulary size is 4, but the list has 3 terms", "new vocabulary", WEIGHTS],
        ),
        (plain().vocab_info(WEIGHTS, info().old_vocab_size(0)), &["the vocabulary size is 0", "old vocabulary"]),
        (
            plain().vocab_info(WEIGHTS, VocabInfo::new(["c", "d", "a"], &short).n_oov_buckets(1).old_vocab_size(3)),
            &["short.txt", "old vocabulary"],
        ),
        (
            plain().vocab_info(WEIGHTS, VocabInfo::new(["c", "d", "a"], ["x", "y", "z", "d"]).n_oov_buckets(1)),
            &["term 3 of the old vocabulary is outside axis 0, which has the size 3", "old_vocab_size"],
        ),
        (
            plain()
                .vocab_info(WEIGHTS, info())
                .vocab_info(BIAS, VocabInfo::new(["p"], ["p"]).backup_initializer(Initializer::Identity { gain: 1.0 })),
            &["the identity initializer needs a matrix", BIAS],
        ),
    ];
    for (settings, parts) in cases {
        let shown = format!("{settings:?}");
        let error = match cda(&folder, settings) {
            Err(error) => error,
            Ok(model) => {
                let error = model.train(job_rows()).expect_err(&shown);
                assert!(model.latest_checkpoint()?.is_none(), "nothing is saved: {shown}");
                error
            }
        };
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
    }
    let error = cda(&folder, plain().vocab_info(WEIGHTS, info()).optimizer_slots(true))?.train(job_rows());
    assert!(error.is_ok(), "gradient descent has no slots");
    let job = categorical_column_with_vocabulary_list("job", ["c", "b", "a"]);
    let model = LinearClassifier::new([job.into()]).warm_start_from(plain().optimizer_slots(true));
    let text = model.model_dir(folder.path().join("slots")).build()?.train(job_rows()).unwrap_err().to_string();
    assert!(text.contains("training/Ftrl") && text.contains("leave out optimizer_slots"), "{text}");
    Ok(())
}
