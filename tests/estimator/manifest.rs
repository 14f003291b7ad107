//! The meaning of a model is part of it: a checkpoint with other vocabularies, boundaries,
//! normalisation, hash sizes or classes is refused.

use std::path::{Path, PathBuf};

use estimand::graph::checkpoint::{BundleReader, BundleWriter};
use estimand::graph::{Combiner, LookupTable, RaggedTensor};
use estimand::manifest::Manifest;
use estimand::nn::column::ColumnKey;
use estimand::prelude::*;
use estimand::{Adapted, VocabInfo, adapt, adapt_once};

use crate::hooks::log_lines::logged;
use crate::models::Folder;

const JOB: &str = "linear/linear_model/job/weights";
const MANIFEST: &str = "_estimand/manifest";

/// Rows whose label is 1 for cooks. The job that is read most often has id 0.
fn rows(most: &str, n: usize) -> Dataset {
    let jobs: Vec<&str> = (0..n).map(|i| if i % 3 == 0 { other(most) } else { most }).collect();
    let labels: Vec<i64> = jobs.iter().map(|job| i64::from(*job == "cook")).collect();
    let ages: Vec<f32> = (0..n).map(|i| i as f32 + if most == "cook" { 0.0 } else { 0.5 }).collect();
    let jobs = Array::from_strings([n], jobs).unwrap();
    Dataset::from_arrays([("job", jobs), ("age", Array::from(ages)), ("y", Array::from(labels))]).label("y")
}

fn other(job: &str) -> &'static str {
    if job == "cook" { "clerk" } else { "cook" }
}

fn config() -> RunConfig {
    RunConfig::new().tf_random_seed(1).threads(1)
}

/// A linear model of a learnt vocabulary.
fn jobs(adapted: &Adapted, folder: &Path, config: RunConfig) -> Estimator {
    let job = adapted.vocabulary("job", 10).unwrap();
    LinearClassifier::new([job.into()]).config(config).model_dir(folder).build().unwrap()
}

/// Writes a checkpoint again, with another manifest or without one.
fn rewrite(folder: &Path, step: u64, manifest: Option<&[u8]>) {
    rewrite_without(folder, step, MANIFEST, manifest);
}

/// Writes a checkpoint again without the entries of a prefix, with another manifest or without one.
fn rewrite_without(folder: &Path, step: u64, dropped: &str, manifest: Option<&[u8]>) {
    let prefix = folder.join(format!("model.ckpt-{step}"));
    let reader = BundleReader::open(&prefix).unwrap();
    let values: Vec<(String, Array)> =
        reader.names().map(|name| (name.to_string(), reader.read(name).unwrap())).collect();
    let mut writer = BundleWriter::create(&prefix).unwrap();
    for (name, value) in values.iter().filter(|(name, _)| !name.starts_with(dropped)) {
        writer.add(name, value).unwrap();
    }
    if let Some(bytes) = manifest {
        writer.add(MANIFEST, &Array::from(bytes.to_vec())).unwrap();
    }
    writer.finish().unwrap();
}

/// What each way of loading says.
fn loads(model: &Estimator, data: &Dataset) -> [Result<()>; 4] {
    let batched = data.batch(8);
    let batch = batched.iter().next().unwrap().unwrap();
    [
        model.evaluate(&batched).map(drop),
        model.predict(&batched).collect::<Result<Vec<_>>>().map(drop),
        model.predictor(&batch).map(drop),
        model.train(&batched).map(drop),
    ]
}

fn all_refused(model: &Estimator, data: &Dataset, parts: &[&str]) {
    for (way, result) in ["evaluate", "predict", "predictor", "train"].iter().zip(loads(model, data)) {
        let error = result.err().unwrap_or_else(|| panic!("{way} loads it")).to_string();
        for part in parts {
            assert!(error.contains(part), "{way}: {error}\nshould contain {part}");
        }
    }
}

fn all_load(model: &Estimator, data: &Dataset) {
    for (way, result) in ["evaluate", "predict", "predictor", "train"].iter().zip(loads(model, data)) {
        result.unwrap_or_else(|error| panic!("{way}: {error}"));
    }
}

/// The fault of version 0.1.0: learnt anew on other data, ids are swapped, and a model that was
/// always right is always wrong.
#[test]
fn a_vocabulary_that_was_learnt_anew_is_refused() -> Result<()> {
    let folder = Folder::new();
    let (then, now) = (rows("cook", 30), rows("clerk", 30));
    let model = jobs(&adapt(&then)?, folder.path(), config());
    model.train(then.repeat(20).batch(10))?;
    assert_eq!(model.evaluate(then.batch(30))?["accuracy"], 1.0);
    let changed = adapt(&now)?;
    let parts = ["column `job`: vocabulary: id 0 was `cook`, is `clerk`; id 1 was `clerk`, is `cook`", "adapt_once"];
    all_refused(&jobs(&changed, folder.path(), config()), &now, &parts);
    // The only way to the wrong answers is to ask for them.
    let accepted = jobs(&changed, folder.path(), config().accept_changed_meaning(true));
    assert_eq!(accepted.evaluate(now.batch(30))?["accuracy"], 0.0);
    // What the program was trained with is still loaded.
    assert_eq!(jobs(&adapt(&then)?, folder.path(), config()).evaluate(now.batch(30))?["accuracy"], 1.0);
    // And what was accepted is what the next checkpoint says.
    accepted.train(now.batch(10))?;
    all_load(&jobs(&changed, folder.path(), config()), &now);
    Ok(())
}

/// The natural program, run twice: the second run finds what the first has learnt, whatever the
/// data is by then.
#[test]
fn a_program_that_adapts_once_goes_on_with_other_data() -> Result<()> {
    let folder = Folder::new();
    let run = |data: &Dataset| -> Result<f64> {
        let model = jobs(&adapt_once(folder.path(), data)?, folder.path(), config());
        model.train(data.repeat(20).batch(10))?;
        Ok(model.evaluate(data.batch(30))?["accuracy"])
    };
    assert_eq!(run(&rows("cook", 30))?, 1.0);
    assert_eq!(run(&rows("clerk", 30))?, 1.0);
    assert!(folder.files().contains(&"adapted.json".to_string()));
    // Asked to adapt anew, it does, and the checkpoint is refused.
    let anew = adapt_once(folder.path(), &rows("clerk", 30))?.anew()?;
    all_refused(&jobs(&anew, folder.path(), config()), &rows("clerk", 30), &["id 0 was `cook`, is `clerk`"]);
    Ok(())
}

/// A model of one column, trained in a folder.
fn one(column: impl Into<FeatureColumn>, folder: &Folder) -> Estimator {
    let build = DnnClassifier::new([2], [column.into()]).config(config()).model_dir(folder.path());
    build.build().unwrap()
}

#[test]
fn every_setting_of_a_column_is_compared() -> Result<()> {
    type Make = fn() -> FeatureColumn;
    let cases: [(Make, Make, &str); 14] = [
        (
            || bucketized_column(&numeric_column("age"), [10, 20]).into(),
            || bucketized_column(&numeric_column("age"), [10, 25]).into(),
            "column `age_bucketized`: boundaries: boundary 1 was 20, is 25",
        ),
        (
            || numeric_column("age").z_score(15.0, 5.0).into(),
            || numeric_column("age").z_score(15.5, 5.0).into(),
            "column `age`: mean: was 15, is 15.5",
        ),
        (
            || numeric_column("age").z_score(15.0, 5.0).into(),
            || numeric_column("age").z_score(15.0, 6.0).into(),
            "column `age`: deviation: was 5, is 6",
        ),
        (
            || numeric_column("age").min_max(0.0, 30.0).into(),
            || numeric_column("age").min_max(0.0, 40.0).into(),
            "column `age`: high end of the range: was 30, is 40",
        ),
        (
            || numeric_column("age").normalizer(|x| x / 30.0).into(),
            || numeric_column("age").normalizer(|x| x / 40.0).into(),
            "column `age`: numbers of the normaliser: number 0 was 30, is 40",
        ),
        (
            || numeric_column("age").default_value(1.0f32).into(),
            || numeric_column("age").default_value(2.0f32).into(),
            "column `age`: default: number 0 was 1, is 2",
        ),
        (
            || indicator_column(categorical_column_with_vocabulary_list("job", ["cook", "clerk"])).into(),
            || indicator_column(categorical_column_with_vocabulary_list("job", ["clerk", "cook"])).into(),
            "column `job_indicator`: vocabulary: id 0 was `cook`, is `clerk`",
        ),
        (
            || indicator_column(categorical_column_with_vocabulary_list("job", ["cook"]).n_oov_buckets(2)).into(),
            || {
                indicator_column(categorical_column_with_vocabulary_list("job", ["cook", "clerk"]).n_oov_buckets(1))
                    .into()
            },
            "column `job_indicator`: out-of-vocabulary buckets: was 2, is 1",
        ),
        (
            || embedding_column(categorical_column_with_vocabulary_list("job", ["cook"]).default_value(0), 2).into(),
            || embedding_column(categorical_column_with_vocabulary_list("job", ["cook"]), 2).into(),
            "column `job_embedding`: id of unknown terms: was 0, is -1",
        ),
        (
            || embedding_column(categorical_column_with_hash_bucket("job", 7), 2).into(),
            || embedding_column(categorical_column_with_hash_bucket("job", 7), 2).combiner(Combiner::Sum).into(),
            "column `job_embedding`: combiner: was `mean`, is `sum`",
        ),
        (
            || embedding_column(categorical_column_with_hash_bucket("job", 7), 2).max_norm(1.0).into(),
            || embedding_column(categorical_column_with_hash_bucket("job", 7), 2).max_norm(2.0).into(),
            "column `job_embedding`: max norm: was 1, is 2",
        ),
        (
            || indicator_column(crossed(["job", "age"], 0)).into(),
            || indicator_column(crossed(["age", "job"], 0)).into(),
            "keys in order of `age`, `job`: was `job, age_bucketized`, is `age_bucketized, job`",
        ),
        (
            || indicator_column(crossed(["job", "age"], 1)).into(),
            || indicator_column(crossed(["job", "age"], 2)).into(),
            "hash key of `age`, `job`: was `1`, is `2`",
        ),
        (
            || indicator_column(cross_of([10, 20], [5, 6])).into(),
            || indicator_column(cross_of([5, 6], [10, 20])).into(),
            "boundaries of `age`: boundary 0 was 10, is 5",
        ),
    ];
    let data = rows("cook", 16);
    let twice = data.map(|batch| {
        let age = batch.feature("age")?.clone();
        batch.with_feature("hours", age)
    });
    for (was, is, expected) in cases {
        let folder = Folder::new();
        one(was(), &folder).train(twice.batch(8))?;
        let refused = one(is(), &folder).evaluate(twice.batch(8)).map(drop);
        let error = refused.err().unwrap_or_else(|| panic!("{expected}")).to_string();
        assert!(error.contains(expected), "{error}\nshould contain {expected}");
        one(was(), &folder).evaluate(twice.batch(8))?;
    }
    Ok(())
}

fn crossed(keys: [&str; 2], hash_key: u64) -> estimand::nn::column::CrossedColumn {
    let key = |key: &str| match key {
        "age" => ColumnKey::from(bucketized_column(&numeric_column("age"), [10, 20])),
        key => key.into(),
    };
    crossed_column(keys.map(key), 9).hash_key(hash_key)
}

fn cross_of(age: [i32; 2], hours: [i32; 2]) -> estimand::nn::column::CrossedColumn {
    let column = |key: &str, boundaries| ColumnKey::from(bucketized_column(&numeric_column(key), boundaries));
    crossed_column([column("age", age), column("hours", hours)], 9)
}

/// A custom model function: hashes folded into a table of ten rows, a vocabulary, boundaries, and a
/// number of its own.
fn custom(
    n_hashed: i64,
    terms: [&'static str; 2],
    boundary: f32,
    mean: f64,
) -> impl Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync + 'static {
    move |cx: &ModelFnContext<'_>| {
        let table = |name: &str, ids: &Tensor| {
            let rows = RaggedTensor::from_rows(&ids.cast(DType::I64));
            cx.graph().variable(name, [10, 1], Initializer::Zeros).lookup(&rows, Combiner::Sum)
        };
        let job = cx.feature("job");
        let hashed = table("hashed", &job.hash_bucket(n_hashed).floor_mod(10));
        let listed = table("listed", &LookupTable::from_list(terms)?.n_oov_buckets(1)?.lookup(&job));
        let ranges = table("ranges", &cx.feature("age").bucketize(&[boundary]));
        let age = (cx.feature("age") - mean) / 10.0;
        age.means("mean", mean);
        let scaled = age.expand_dims(1) * &cx.graph().variable("slope", [1], Initializer::Zeros);
        let logits = hashed + &listed + &ranges + &scaled;
        BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))
    }
}

#[test]
fn custom_model_functions_are_covered() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 16);
    let model = |n, terms, boundary, mean| {
        Estimator::new(custom(n, terms, boundary, mean)).config(config()).model_dir(folder.path()).build().unwrap()
    };
    let terms = ["cook", "clerk"];
    model(100, terms, 8.0, 7.5).train(data.batch(8))?;
    all_refused(&model(50, terms, 8.0, 7.5), &data, &["feature `job`: hash buckets: was 100, is 50"]);
    all_refused(
        &model(100, ["clerk", "cook"], 8.0, 7.5),
        &data,
        &["feature `job`: vocabulary: id 0 was `cook`, is `clerk`"],
    );
    all_refused(&model(100, terms, 9.0, 7.5), &data, &["feature `age`: boundaries: boundary 0 was 8, is 9"]);
    all_refused(&model(100, terms, 8.0, 7.75), &data, &["feature `age`: mean: was 7.5, is 7.75"]);
    all_load(&model(100, terms, 8.0, 7.5), &data);
    Ok(())
}

#[test]
fn a_label_vocabulary_that_was_permuted_is_refused() -> Result<()> {
    let folder = Folder::new();
    let labels = Array::from_strings([4], ["no", "yes", "no", "yes"])?;
    let data = Dataset::from_arrays([("x", Array::from([0f32, 1.0, 0.0, 1.0])), ("y", labels)]).label("y");
    let model = |terms: [&str; 2]| {
        let model = LinearClassifier::new([numeric_column("x").into()]).label_vocabulary(terms);
        model.config(config()).model_dir(folder.path()).build().unwrap()
    };
    model(["no", "yes"]).train(data.repeat(10).batch(4))?;
    let changed = model(["yes", "no"]);
    all_refused(&changed, &data, &["vocabulary: id 0 was `no`, is `yes`"]);
    let error = changed.evaluate(data.batch(4)).unwrap_err().to_string();
    assert!(error.contains("label: vocabulary: id 0") && error.contains("predictions: vocabulary: id 0"), "{error}");
    Ok(())
}

/// A folder of black and white images, one of each for every class.
fn images(base: &Folder, name: &str, classes: &[&str]) -> PathBuf {
    // A black pixel in RGB, by Python: signature, then IHDR, IDAT and IEND with
    // `zlib.compress(bytes(4))` and `zlib.crc32`.
    const PIXEL: &[u8] = &[
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 144, 119,
        83, 222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 96, 96, 96, 0, 0, 0, 4, 0, 1, 246, 23, 56, 85, 0, 0, 0, 0,
        73, 69, 78, 68, 174, 66, 96, 130,
    ];
    let folder = base.path().join(name);
    for class in classes {
        std::fs::create_dir_all(folder.join(class)).unwrap();
        std::fs::write(folder.join(class).join("0.png"), PIXEL).unwrap();
    }
    folder
}

#[test]
fn classes_of_an_image_folder_are_compared() -> Result<()> {
    let (folder, base) = (Folder::new(), Folder::new());
    let model = || {
        let image = numeric_column("image").shape([1, 1, 3]).dtype(DType::U8);
        let model = LinearClassifier::new([image.into()]).n_classes(2);
        model.config(config()).model_dir(folder.path()).build().unwrap()
    };
    let data = |path: PathBuf| Dataset::from_image_folder(path).repeat(2).batch(2);
    model().train(data(images(&base, "train", &["cat", "dog"])))?;
    model().evaluate(data(images(&base, "test", &["cat", "dog"])))?;
    // Without cats, dogs are number 0.
    let error = model().evaluate(data(images(&base, "ants", &["ant", "cat"]))).unwrap_err().to_string();
    assert!(
        error.contains("input: classes of the labels: id 0 was `cat`, is `ant`; id 1 was `dog`, is `cat`"),
        "{error}"
    );
    let error = model().train(data(images(&base, "more", &["cat", "dog", "eel"]))).unwrap_err().to_string();
    assert!(error.contains("had 2 terms, has 3; id 2 is `eel`"), "{error}");
    // Whoever predicts knows no labels.
    assert_eq!(model().predict(data(base.path().join("ants"))).count(), 4);
    // Evaluations inside a training are compared, too.
    let train = TrainSpec::new(data(base.path().join("train"))).max_steps(4);
    let eval = EvalSpec::new(data(base.path().join("ants")));
    let error = model().train_and_evaluate(train, eval).unwrap_err().to_string();
    assert!(error.contains("id 0 was `cat`, is `ant`"), "{error}");
    Ok(())
}

/// Laws: what does not change the meaning is not asked about.
#[test]
fn a_program_of_equal_meaning_loads() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 16);
    let columns = || -> Vec<FeatureColumn> {
        let age = numeric_column("age").z_score(7.5, 4.5);
        let job = categorical_column_with_vocabulary_list("job", ["cook", "clerk"]);
        let ranges = bucketized_column(&numeric_column("age"), [5, 10]);
        vec![age.into(), indicator_column(&job).into(), ranges.into(), embedding_column(&job, 2).into()]
    };
    let model = |columns: Vec<FeatureColumn>, rate: f64| {
        let model = DnnClassifier::new([3], columns).optimizer(Optimizer::new(Adagrad::default(), rate));
        model.config(config()).model_dir(folder.path()).build().unwrap()
    };
    model(columns(), 0.1).train(data.batch(8))?;
    let reversed: Vec<FeatureColumn> = columns().into_iter().rev().collect();
    let other = model(reversed, 0.05);
    all_load(&other, &data.shuffle(100, 3));
    other.train(data.batch(3))?;
    // A file with the terms of the list is the same vocabulary.
    let path = folder.path().join("jobs.txt");
    std::fs::write(&path, "cook\nclerk\n").unwrap();
    let mut from_file = columns();
    let job = categorical_column_with_vocabulary_file("job", &path);
    from_file[1] = indicator_column(&job).into();
    from_file[3] = embedding_column(&job, 2).into();
    all_load(&model(from_file, 0.1), &data);
    Ok(())
}

#[test]
fn a_training_that_goes_on_finds_every_entry_again() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 16);
    // Neither form has a variable of its own, so that names and shapes agree.
    let model = |normalised: bool| {
        let age = if normalised { numeric_column("age").z_score(7.5, 4.5) } else { numeric_column("age") };
        LinearClassifier::new([age.into()]).config(config()).model_dir(folder.path()).build().unwrap()
    };
    model(false).train(data.batch(8))?;
    let error = model(true).train(data.batch(8)).unwrap_err().to_string();
    assert!(error.contains("column `age`: mean: is 7.5, and was not there"), "{error}");
    Ok(())
}

#[test]
fn a_long_vocabulary_is_told_by_its_digest() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 16);
    let model = |changed: usize| {
        let term = |i: usize| if i == changed { "another".to_string() } else { format!("term {i}") };
        let job = categorical_column_with_vocabulary_list("job", (0..5_000).map(term).collect::<Vec<_>>());
        LinearClassifier::new([job.into()]).config(config()).model_dir(folder.path()).build().unwrap()
    };
    model(7).train(data.batch(8))?;
    all_load(&model(7), &data);
    all_refused(&model(4_999), &data, &["column `job`: vocabulary: id 4999 was `term 4999`, is `another`"]);
    all_refused(&model(8), &data, &["column `job`: vocabulary: values that are not kept here have changed"]);
    let size = BundleReader::open(model(7).latest_checkpoint()?.unwrap())?.read(MANIFEST)?.len();
    assert!(size < 10_000, "{size} bytes");
    Ok(())
}

#[test]
fn at_most_eight_differences_are_listed() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 16);
    let model = |n: i64| {
        let tables = move |cx: &ModelFnContext<'_>| {
            let mut logits = cx.graph().variable("bias", [1], Initializer::Zeros);
            for i in 0..12 {
                let ids = RaggedTensor::from_rows(&cx.feature("job").hash_bucket(n + i).floor_mod(10));
                let table = cx.graph().variable(&format!("table_{i}"), [10, 1], Initializer::Zeros);
                logits = &logits + &table.lookup(&ids, Combiner::Sum);
            }
            BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))
        };
        Estimator::new(tables).config(config()).model_dir(folder.path()).build().unwrap()
    };
    model(100).train(data.batch(8))?;
    let error = model(200).evaluate(data.batch(8)).unwrap_err().to_string();
    assert_eq!(error.matches("hash buckets: was 1").count(), 8, "{error}");
    assert!(error.contains("and 4 more"), "{error}");
    Ok(())
}

#[test]
fn a_folder_of_version_0_1_0_loads_with_one_warning() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 30);
    let model = || jobs(&adapt(&data).unwrap(), folder.path(), config());
    model().train(data.batch(10))?;
    rewrite(folder.path(), 3, None);
    let (result, lines) = logged(|| model().evaluate(data.batch(10)));
    result?;
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["has no manifest, as checkpoints of version 0.1.0", "cannot be checked", "vocabulary of column `job`"]
    {
        assert!(warnings[0].contains(part), "{}", warnings[0]);
    }
    all_load(&model(), &data);
    // The training that went on has written a manifest.
    let reader = BundleReader::open(model().latest_checkpoint()?.unwrap())?;
    assert!(reader.contains(MANIFEST));
    Ok(())
}

#[test]
fn a_folder_of_tensorflow_loads_without_a_warning() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 30);
    let model = || jobs(&adapt(&data).unwrap(), folder.path(), config());
    model().train(data.batch(10))?;
    rewrite_without(folder.path(), 3, "_estimand/", None);
    let (result, lines) = logged(|| model().evaluate(data.batch(10)));
    result?;
    assert!(lines.iter().any(|line| line.contains("is TensorFlow's and has no manifest")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("WARN")), "{lines:?}");
    Ok(())
}

#[test]
fn a_newer_or_damaged_manifest_is_an_error() -> Result<()> {
    let folder = Folder::new();
    let data = rows("cook", 30);
    let model = || jobs(&adapt(&data).unwrap(), folder.path(), config());
    model().train(data.batch(10))?;
    let bytes = BundleReader::open(folder.path().join("model.ckpt-3"))?.read(MANIFEST)?;
    let good = String::from_utf8(bytes.as_slice::<u8>()?.to_vec()).unwrap();
    let manifest = Manifest::from_json(&good)?;
    let vocabulary = manifest.entries().iter().find(|entry| entry.aspect() == "vocabulary").unwrap();
    assert_eq!((vocabulary.about(), vocabulary.variables()), ("column `job`", &[JOB.to_string()][..]));
    let deep = format!("{{\"version\": 1, \"entries\": {}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let huge = vec![b' '; (16 << 20) + 1];
    let newer = good.replacen("\"version\":1", "\"version\":2", 1);
    for (bytes, expected) in [
        (newer.as_bytes(), "the manifest has version 2; this library reads up to 1"),
        (&good.as_bytes()[..good.len() / 2], "the manifest cannot be read: it is not JSON"),
        (&[0xff, 0xfe], "its manifest is not UTF-8"),
        (deep.as_bytes(), "the manifest cannot be read: it is not JSON"),
        (&huge, "expected up to 16777216 bytes"),
    ] {
        rewrite(folder.path(), 3, Some(bytes));
        all_refused(&model(), &data, &[expected, "model.ckpt-3"]);
        // Whoever accepts any change gets past it.
        let accepted = jobs(&adapt(&data)?, folder.path(), config().accept_changed_meaning(true));
        accepted.evaluate(data.batch(10))?;
    }
    rewrite(folder.path(), 3, Some(good.as_bytes()));
    all_load(&model(), &data);
    Ok(())
}

#[test]
fn a_warm_start_compares_through_its_remap() -> Result<()> {
    let (old, base) = (Folder::new(), Folder::new());
    let data = rows("cook", 30);
    jobs(&adapt(&data)?, old.path(), config()).train(data.repeat(20).batch(10))?;
    let before = jobs(&adapt(&data)?, old.path(), config()).variable_value(JOB)?;
    let mut count = 0;
    let mut warm = |settings: WarmStartSettings| {
        count += 1;
        let job = categorical_column_with_vocabulary_list("job", ["clerk", "cook"]);
        let model = LinearClassifier::new([job.into()]).optimizer(Optimizer::new(Sgd::default(), 0.0));
        let model = model.warm_start_from(settings).config(config()).model_dir(base.path().join(count.to_string()));
        let model = model.build()?;
        model.train(data.batch(10))?;
        model.variable_value(JOB)
    };
    let from = || WarmStartSettings::new(old.path());
    // Another vocabulary of the same size, and nothing that moves the rows.
    let error = warm(from()).unwrap_err().to_string();
    for part in ["column `job`: vocabulary: id 0 was `cook`, is `clerk`", "vocab_info", "accept_changed_meaning"] {
        assert!(error.contains(part), "{error}");
    }
    let values = |array: &Array| array.as_slice::<f32>().unwrap().to_vec();
    let mut swapped = values(&before);
    swapped.reverse();
    // With the vocabularies rows follow their terms.
    let info = VocabInfo::new(["clerk", "cook"], ["cook", "clerk"]);
    assert_eq!(values(&warm(from().vocab_info(JOB, info))?), swapped);
    // Vocabularies that are not those of the models are found out.
    let lie = VocabInfo::new(["clerk", "cook"], ["clerk", "cook"]);
    let error = warm(from().vocab_info(JOB, lie)).unwrap_err().to_string();
    assert!(error.contains("names 2 terms (`clerk`, `cook`) for the vocabulary of the checkpoint"), "{error}");
    let lie = VocabInfo::new(["cook", "clerk"], ["cook", "clerk"]);
    let error = warm(from().vocab_info(JOB, lie)).unwrap_err().to_string();
    assert!(error.contains("for the vocabulary of the model, which has 2 terms (`clerk`, `cook`)"), "{error}");
    // Left out, or meant.
    assert_eq!(values(&warm(from().vars(".*bias.*"))?), [0.0, 0.0]);
    assert_eq!(values(&warm(from().accept_changed_meaning(true))?), values(&before));
    Ok(())
}

#[test]
fn classes_of_a_warm_start_are_moved_or_refused() -> Result<()> {
    let (old, base) = (Folder::new(), Folder::new());
    let labels = Array::from_strings([3], ["a", "b", "c"])?;
    let data = Dataset::from_arrays([("x", Array::from([0f32, 1.0, 2.0])), ("y", labels)]).label("y");
    let model = |terms: [&str; 3]| {
        let model = LinearClassifier::new([numeric_column("x").into()]).n_classes(3).label_vocabulary(terms);
        model.config(config())
    };
    model(["a", "b", "c"]).model_dir(old.path()).build()?.train(data.repeat(5).batch(3))?;
    let from = || WarmStartSettings::new(old.path());
    let warm = |settings: WarmStartSettings, name: &str| {
        let model = model(["c", "a", "b"]).warm_start_from(settings).model_dir(base.path().join(name));
        model.build()?.evaluate(data.batch(3)).map(drop)
    };
    let error = warm(from(), "plain").unwrap_err().to_string();
    assert!(error.contains("predictions: vocabulary: id 0 was `a`, is `c`"), "{error}");
    let info = || VocabInfo::new(["c", "a", "b"], ["a", "b", "c"]);
    let moved = from().vocab_info("linear/linear_model/x/weights", info().axis(1));
    // The bias has classes as well.
    assert!(warm(moved.clone(), "half").is_err());
    warm(moved.vocab_info("linear/linear_model/bias_weights", info()), "moved")?;
    Ok(())
}
