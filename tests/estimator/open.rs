//! `Estimator::open`: a folder that one process trained is opened in another, without the program,
//! and gives the same bits.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use estimand::OpenOptions;
use estimand::graph::checkpoint::BundleWriter;
use estimand::graph::{Clip, Combiner};
use estimand::head::{
    LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead, RegressionHead, SequentialHeadWrapper,
};
use estimand::nn::Reduction;
use estimand::nn::column::*;
use estimand::nn::config::{CustomObjects, Json};
use estimand::prelude::*;
use estimand::premade::{BaselineEstimator, DnnEstimator, DnnLinearCombinedEstimator, LinearEstimator};
use estimand::update::{Ftrl, Schedule};

use crate::models::{Folder, line, linear};

const FOLDER: &str = "ESTIMAND_TEST_OPEN";

/// Rows with every kind of feature, and labels by name.
fn rows() -> Dataset {
    let n = 40;
    let numbers = |f: &dyn Fn(usize) -> f32| Array::from((0..n).map(f).collect::<Vec<f32>>());
    let words: Vec<&str> = (0..n).map(|i| ["red", "green", "blue", "odd", ""][i * 7 % 5]).collect();
    Dataset::from_arrays([
        ("x", numbers(&|i| (i as f32 * 0.7).sin())),
        ("age", numbers(&|i| (i * 13 % 80) as f32)),
        ("weight", numbers(&|i| 0.5 + (i % 3) as f32)),
        ("word", Array::from_strings([n], &words).unwrap()),
        ("text", Array::from_strings([n], (0..n).map(|i| format!("t{}", i * 17 % 13))).unwrap()),
        ("id", Array::from((0..n as i64).map(|i| i * 5 % 7).collect::<Vec<i64>>())),
        ("other", Array::from((0..n as i64).map(|i| i * 3 % 7).collect::<Vec<i64>>())),
        ("two", Array::from((0..n as i64).map(|i| i * 11 % 2).collect::<Vec<i64>>())),
        ("three", Array::from_strings([n], (0..n).map(|i| ["a", "b", "c"][i * 7 % 3])).unwrap()),
        ("number", numbers(&|i| (i as f32 * 0.3).cos())),
        ("count", Array::from((0..n as i64).map(|i| i % 4).collect::<Vec<i64>>())),
    ])
}

/// The rows with one of the labels, shuffled, for ever.
fn training(label: &str) -> Dataset {
    let data = match label {
        "two and number" => rows().label("two").label("number"),
        label => rows().label(label),
    };
    data.shuffle(40, 5).repeat_forever().batch(8)
}

fn config(folder: &Path) -> RunConfig {
    RunConfig::new().model_dir(folder).tf_random_seed(3).save_checkpoints(Every::Steps(4))
}

/// Every kind of column that a deep network takes. `extra` holds a vocabulary and a checkpoint.
fn columns(extra: &Path) -> Columns {
    let id = categorical_column_with_identity("id", 7);
    let shared = shared_embeddings([&id, &categorical_column_with_identity("other", 7)], 2);
    let word = categorical_column_with_vocabulary_file("word", extra.join("words.txt")).n_oov_buckets(2);
    let mut columns: Vec<FeatureColumn> = vec![
        numeric_column("x").default_value(0.5).into(),
        numeric_column("age").z_score(40.0, 23.5).into(),
        bucketized_column(&numeric_column("age").min_max(0.0, 79.0), [0.1, 0.5]).into(),
        embedding_column(word, 3).combiner(Combiner::SqrtN).into(),
        embedding_column(categorical_column_with_hash_bucket("text", 5), 2)
            .checkpoint(extra.join("initial"), "table")
            .into(),
        indicator_column(categorical_column_with_vocabulary_list("word", ["blue", "red"])).into(),
        embedding_column(crossed_column(["word", "id"], 9).hash_key(4), 2).max_norm(0.7).into(),
    ];
    columns.extend(shared.columns().into_iter().map(FeatureColumn::from));
    columns.into()
}

fn wide(extra: &Path) -> Columns {
    let word = categorical_column_with_vocabulary_file("word", extra.join("words.txt")).default_value(0);
    let id = categorical_column_with_identity("id", 7);
    let cross = crossed_column([ColumnKey::from("word"), ColumnKey::from(&id)], 20);
    [word.into(), weighted_categorical_column(&id, "weight").into(), cross.into()].into()
}

type Make = fn(&Path, &Path) -> Result<Estimator>;

/// Every premade estimator, with every head and every option: its name, the label, and the program.
const MODELS: [(&str, &str, Make); 12] = [
    ("baseline classifier", "two", |folder, _| BaselineClassifier::new().config(config(folder)).build()),
    ("baseline regressor", "number", |folder, _| {
        BaselineRegressor::new().optimizer(Optimizer::new(Sgd::default(), 0.1)).config(config(folder)).build()
    }),
    ("linear classifier", "three", |folder, extra| {
        let rate = Schedule::Exponential { initial: 0.2, decay_steps: 5, decay_rate: 0.9, staircase: true }.warm_up(3);
        LinearClassifier::new(wide(extra))
            .n_classes(3)
            .label_vocabulary(["a", "b", "c"])
            .class_weights([1.0, 0.5, 2.0])
            .weight_column("weight")
            .loss_reduction(Reduction::Sum)
            .forward_feature("id")
            .slice_by("word", ["red", "blue"])
            .sparse_combiner(Combiner::Mean)
            .optimizer(Optimizer::new(Ftrl::default().l1(0.01), rate).clip(Clip::GlobalNorm(1.5)))
            .config(config(folder))
            .build()
    }),
    ("linear regressor", "number", |folder, extra| {
        LinearRegressor::new(wide(extra)).label_dimension(1).config(config(folder)).build()
    }),
    ("deep classifier", "two", |folder, extra| {
        DnnClassifier::new([8, 4], columns(extra))
            .activation_fn(Activation::Tanh)
            .dropout(0.3)
            .batch_norm(true)
            .optimizer(Optimizer::new(Adam::default().beta_1(0.8), 0.01).lazy())
            .config(config(folder))
            .build()
    }),
    ("deep regressor", "number", |folder, extra| {
        DnnRegressor::new([5], columns(extra)).optimizer("RMSProp").config(config(folder)).build()
    }),
    ("wide and deep classifier", "two", |folder, extra| {
        DnnLinearCombinedClassifier::new()
            .linear_feature_columns(wide(extra))
            .linear_optimizer("Adagrad")
            .linear_sparse_combiner(Combiner::SqrtN)
            .dnn_feature_columns(columns(extra))
            .dnn_hidden_units([4])
            .dnn_activation_fn(Activation::LeakyRelu(0.1))
            .dnn_dropout(0.1)
            .config(config(folder))
            .build()
    }),
    ("wide regressor of two parts", "number", |folder, extra| {
        DnnLinearCombinedRegressor::new().linear_feature_columns(wide(extra)).config(config(folder)).build()
    }),
    ("several labels", "three", |folder, extra| {
        let head =
            MultiLabelHead::new(3).label_vocabulary(["a", "b", "c"]).thresholds([0.25]).metrics_of_classes(["b"]);
        LinearEstimator::new(head, wide(extra)).config(config(folder)).build()
    }),
    ("several heads", "two and number", |folder, extra| {
        let head = MultiHead::new()
            .weighted_head(2.0, BinaryClassHead::new().name("two").thresholds([0.3, 0.7]))
            .head(RegressionHead::new().name("number").forward_feature("id"));
        DnnEstimator::new(head, [4], columns(extra)).config(config(folder)).build()
    }),
    ("counts", "count", |folder, extra| {
        let head = PoissonRegressionHead::new().compute_full_loss(false).name("counts");
        DnnLinearCombinedEstimator::new(head).linear_feature_columns(wide(extra)).config(config(folder)).build()
    }),
    ("probabilities", "two", |folder, _| {
        BaselineEstimator::new(LogisticRegressionHead::new()).config(config(folder)).build()
    }),
];

/// A vocabulary, and a checkpoint that initializes a table.
fn extra() -> Result<Folder> {
    let folder = Folder::new();
    std::fs::write(folder.path().join("words.txt"), "green\nred\nblue\n").unwrap();
    let mut writer = BundleWriter::create(folder.path().join("initial"))?;
    let table = Array::from_vec([5, 2], (0..10).map(|i| i as f32 / 10.0).collect())?;
    writer.add("table", &table)?;
    writer.finish()?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => {
                std::fs::create_dir_all(&target).unwrap();
                copy(&entry.path(), &target);
            }
            false => drop(std::fs::copy(entry.path(), &target).unwrap()),
        }
    }
}

/// Predictions and metrics, with all digits.
fn answers(model: &Estimator, label: &str) -> Result<String> {
    let data = match label {
        "two and number" => rows().label("two").label("number"),
        label => rows().label(label),
    };
    let data = data.batch(16);
    let predictions = model.predict(&data).collect::<Result<Vec<_>>>()?;
    Ok(format!("{predictions:?}\n{:?}", model.evaluate(&data)?))
}

/// What the other process does: opens the folder, answers, and goes on training.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder of the model"));
    let label = std::fs::read_to_string(folder.join("label")).unwrap();
    let opened = Estimator::open(&folder)?;
    std::fs::write(folder.join("answers"), answers(&opened, &label)?).unwrap();
    opened.train(TrainSpec::new(training(&label)).max_steps(20))?;
    Ok(())
}

fn run_child(folder: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "open::child", "--ignored", "--test-threads=1"]).env(FOLDER, folder);
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn every_premade_is_opened_by_another_process_with_the_same_bits() -> Result<()> {
    for (name, label, make) in MODELS {
        let place = |e: Error| e.context(format!("in the model `{name}`"));
        let (folder, moved, extra) = (Folder::new(), Folder::new(), extra()?);
        let trained = make(folder.path(), extra.path()).map_err(place)?;
        trained.train(TrainSpec::new(training(label)).max_steps(10)).map_err(place)?;
        // The folder is all that the other process has: it is moved, and the files beside it go.
        copy(folder.path(), moved.path());
        let expected = answers(&trained, label).map_err(place)?;
        trained.train(TrainSpec::new(training(label)).max_steps(20)).map_err(place)?;
        drop(extra);
        std::fs::write(moved.path().join("label"), label).unwrap();
        run_child(moved.path());
        let found = std::fs::read_to_string(moved.path().join("answers")).unwrap();
        assert!(found == expected, "{name}\n{found}\n{expected}");
        let data = |folder: &Folder| std::fs::read(folder.path().join("model.ckpt-20.data-00000-of-00001")).unwrap();
        assert!(data(&folder) == data(&moved), "{name} went on to other weights");
        // What the opened model says of itself is what its program said, but for the checkpoint
        // that its table does not need any more.
        let described = |folder: &Folder| -> Json {
            let text = std::fs::read_to_string(folder.path().join("estimator.json")).unwrap();
            let mut json: Json = text.parse().unwrap();
            estimand::nn::config::visit_objects(&mut json, "Checkpoint", &mut |initial| {
                *initial = Json::Null;
                Ok(())
            })
            .unwrap();
            json
        };
        assert_eq!(described(&folder), described(&moved), "{name}");
    }
    Ok(())
}

/// A classifier of one number.
fn small(folder: &Path) -> DnnClassifier {
    DnnClassifier::new([3], [numeric_column("x").into()]).config(config(folder))
}

fn small_rows() -> Dataset {
    rows().label("two").batch(8)
}

/// The error of opening a folder.
fn refused(folder: &Path) -> String {
    Estimator::open(folder).unwrap_err().to_string()
}

#[test]
fn a_folder_that_cannot_be_opened_says_what_is_missing() -> Result<()> {
    let folder = Folder::new();
    let text = refused(&folder.path().join("nothing"));
    assert!(text.contains("there is no folder") && text.contains("nothing"), "{text}");
    let text = refused(folder.path());
    assert!(text.contains("has no description of its model: ") && text.contains("estimator.json is missing"), "{text}");

    // A folder of version 0.1.0, or of TensorFlow, has checkpoints and no description.
    small(folder.path()).build()?.train(small_rows())?;
    let description = folder.path().join("estimator.json");
    let written = std::fs::read(&description).unwrap();
    std::fs::remove_file(&description).unwrap();
    let text = refused(folder.path());
    assert!(text.contains("estimator.json is missing") && text.contains("train it for one step"), "{text}");
    // Its program writes the description when it trains again.
    small(folder.path()).build()?.train(TrainSpec::new(small_rows()).steps(1))?;
    assert!(std::fs::read(&description).unwrap() == written);
    Estimator::open(folder.path())?;

    // A description alone is no model.
    let empty = Folder::new();
    std::fs::copy(&description, empty.path().join("estimator.json")).unwrap();
    assert!(refused(empty.path()).contains("there is no checkpoint in"));
    Ok(())
}

#[test]
fn what_a_program_alone_knows_is_named() -> Result<()> {
    // A model function is opened by giving it.
    let folder = Folder::new();
    let data = line(20).batch(5);
    let trained = Estimator::new(linear).config(config(folder.path())).build()?;
    trained.train(&data)?;
    let text = refused(folder.path());
    assert!(
        text.contains("cannot be opened without its program: the model function is a part of the program"),
        "{text}"
    );
    assert!(text.contains("give its model function to OpenOptions"), "{text}");
    let opened = OpenOptions::new().model_fn(linear).open(folder.path())?;
    assert_eq!(opened.evaluate(&data)?, trained.evaluate(&data)?);
    let params = HParams::new().set("rate", 0.5);
    assert_eq!(OpenOptions::new().model_fn(linear).params(params.clone()).open(folder.path())?.params(), &params);

    // Functions in a premade estimator: of a column, an optimizer, a head.
    let column = numeric_column("x").normalizer(|x| x * 2.0);
    let one: Columns = [numeric_column("x").into()].into();
    let of_head = RegressionHead::new().inverse_link_fn(|x| x.exp());
    for (build, label, part) in [
        (DnnClassifier::new([3], [column.into()]).build()?, "two", "a normalizer that is a function of the program"),
        (
            DnnClassifier::new([3], &one).optimizer(|| Optimizer::new(Sgd::default(), 0.1)).build()?,
            "two",
            "an optimizer that a function of the program makes",
        ),
        (LinearEstimator::new(of_head, &one).build()?, "number", "the head's `inverse_link_fn` is a function"),
    ] {
        build.train(rows().label(label).batch(8))?;
        let text = refused(build.model_dir());
        assert!(text.contains("cannot be opened without its program") && text.contains(part), "{text}");
    }
    Ok(())
}

/// A program whose model does not fit the folder leaves the description as it is.
#[test]
fn a_refused_training_leaves_the_description() -> Result<()> {
    let folder = Folder::new();
    small(folder.path()).build()?.train(small_rows())?;
    let before = std::fs::read(folder.path().join("estimator.json")).unwrap();
    let other = DnnClassifier::new([4], [numeric_column("x").into()]).config(config(folder.path())).build()?;
    assert!(other.train(small_rows()).is_err());
    assert!(std::fs::read(folder.path().join("estimator.json")).unwrap() == before);
    Estimator::open(folder.path()).map(drop)
}

/// A vocabulary that was changed in the folder is noticed: the checkpoint knows what its weights
/// mean.
#[test]
fn a_changed_asset_is_refused() -> Result<()> {
    let (folder, extra) = (Folder::new(), extra()?);
    LinearRegressor::new(wide(extra.path())).config(config(folder.path())).build()?.train(training_rows())?;
    let assets = folder.path().join("assets");
    let kept = std::fs::read_dir(&assets).unwrap().next().unwrap().unwrap().path().join("words.txt");
    assert_eq!(std::fs::read(&kept).unwrap(), b"green\nred\nblue\n");
    std::fs::write(&kept, "red\ngreen\nblue\n").unwrap();
    let error = Estimator::open(folder.path())?.evaluate(training_rows()).unwrap_err().to_string();
    assert!(error.contains("word"), "{error}");
    // The next training of the program puts it right.
    let model = LinearRegressor::new(wide(extra.path())).config(config(folder.path())).build()?;
    model.train(TrainSpec::new(training_rows()).steps(1))?;
    assert_eq!(std::fs::read(&kept).unwrap(), b"green\nred\nblue\n");
    Estimator::open(folder.path())?;
    // A link does not lead out of the folder.
    std::fs::remove_file(&kept).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(extra.path().join("words.txt"), &kept).unwrap();
        assert!(refused(folder.path()).contains("is not inside the model folder"));
        std::fs::remove_file(&kept).unwrap();
    }
    assert!(refused(folder.path()).contains("words.txt"));
    Ok(())
}

/// A vocabulary that is gone when training begins: the model trains, and the folder says why it
/// cannot be opened.
#[test]
fn a_vocabulary_that_is_gone_does_not_stop_a_training() -> Result<()> {
    let (folder, extra) = (Folder::new(), extra()?);
    let model = LinearRegressor::new(wide(extra.path())).config(config(folder.path())).build()?;
    drop(extra);
    model.train(training_rows())?;
    let text = refused(folder.path());
    assert!(text.contains("words.txt is not a file that can be copied into the model folder"), "{text}");
    Ok(())
}

fn training_rows() -> Dataset {
    rows().label("number").batch(8)
}

#[test]
fn hostile_descriptions_are_errors_that_name_the_place() -> Result<()> {
    let folder = Folder::new();
    small(folder.path()).build()?.train(small_rows())?;
    let path = folder.path().join("estimator.json");
    let good: Json = std::fs::read_to_string(&path).unwrap().parse().unwrap();
    let changed = |pointer: &str, value: Json| {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        document.to_string()
    };
    let word = |file: &str| {
        let column = r#"{"class_name": "VocabularyFileCategoricalColumn", "config": {"key": "word", "vocabulary_file":
            {"class_name": "File", "config": {"path": "PATH"}}}}"#;
        let columns = format!("[{}]", column.replace("PATH", file));
        changed(
            "/network",
            format!(r#"{{"class_name": "Linear", "config": {{"feature_columns": {columns}}}}}"#).parse().unwrap(),
        )
    };
    let deep = format!(r#"{{"version": 1, "network": {}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for (text, part, place) in [
        (String::new(), "not JSON", ""),
        ("{}".into(), "it has no version", ""),
        (changed("/version", 2.into()), "version 2; this library reads up to 1", ""),
        (r#"{"version": 1}"#.into(), "there is no `network`", "at $"),
        (deep, "nested more than 100 deep", "at $.network"),
        (changed("/network/class_name", "Dn".into()), "there is no network `Dn`", "at $.network.class_name"),
        (changed("/network/config/hidden_units", "3".into()), "expected an array", "at $.network.config.hidden_units"),
        (changed("/network/config/hidden_units/0", 0.into()), "layer 0 has 0 units", "at $.network"),
        (changed("/network/config/feature_columns", Json::Array(vec![])), "no feature columns", "at $.network"),
        (changed("/network/config/dropout", 1.5.into()), "the dropout rate is 1.5", "at $.network"),
        (changed("/network/config/optimizer", "Adm".into()), "did you mean `Adam`?", "at $.network"),
        (
            changed("/network/config/feature_columns/0/config/key", 7.into()),
            "expected a text, found 7",
            "at $.network.config.feature_columns[0].config.key",
        ),
        (changed("/head/class_name", "BinaryHead".into()), "there is no head `BinaryHead`", "at $.head.class_name"),
        (changed("/head/config/loss_reduction", "none".into()), "training needs one number", "at $.head"),
        (changed("/head/config/label_vocabulary", Json::Array(vec!["a".into()])), "1 terms for 2 classes", "at $.head"),
        (word("/etc/hostname"), "`/etc/hostname` is not inside the model folder", ""),
        (word("assets/../../../secret"), "is not inside the model folder", ""),
        (word("."), "is not inside the model folder", ""),
        (word("absent.txt"), "absent.txt", "at $.network.config.feature_columns[0]"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let error = refused(folder.path());
        assert!(
            error.contains(part) && error.contains(place) && error.contains("estimator.json"),
            "{text:.300}\n{error}"
        );
    }
    // Every part of the file that is not the whole is an error.
    let text = good.to_string();
    for end in (0..text.len()).step_by(7) {
        std::fs::write(&path, &text[..end]).unwrap();
        assert!(Estimator::open(folder.path()).is_err());
    }
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(refused(folder.path()).contains("not UTF-8"));
    Ok(())
}

/// Metrics that the program adds are not in the description; opening says so, and the model is the
/// same.
#[test]
fn added_metrics_are_left_out_and_named() -> Result<()> {
    let folder = Folder::new();
    let model = small(folder.path())
        .build()?
        .add_metrics(|cx| Ok(vec![("mean", estimand::nn::metric::mean(cx.prediction("logits")?, None))]));
    model.train(small_rows())?;
    let json: Json = std::fs::read_to_string(folder.path().join("estimator.json")).unwrap().parse().unwrap();
    assert_eq!(json["left_out"][0], "metrics that `add_metrics` adds");
    let (all, without) = (model.evaluate(small_rows())?, Estimator::open(folder.path())?.evaluate(small_rows())?);
    assert!(all.get("mean").is_ok() && without.get("mean").is_err());
    assert_eq!(all["loss"], without["loss"]);
    Ok(())
}

/// A head of the user's own class is read by the function that is given for it.
#[test]
fn heads_of_users_are_opened_if_they_are_known() -> Result<()> {
    use estimand::head::{Head, LabelledBatch, Measures, Predictions, Reporting};
    use estimand::nn::config::{self, Described, Fields};
    use std::sync::Arc;

    /// A regression of which the loss is a multiple.
    #[derive(Clone, Debug)]
    struct Times(f64, RegressionHead);

    impl Described for Times {
        const CLASS: &'static str = "Times";

        fn template() -> Times {
            Times(1.0, RegressionHead::new())
        }

        fn fields(&self, fields: &mut Fields<'_>) -> Times {
            Times(fields.required("factor", &self.0), self.1.clone())
        }
    }

    impl Head for Times {
        fn name(&self) -> Option<String> {
            Head::name(&self.1)
        }
        fn logits_dimension(&self) -> usize {
            1
        }
        fn reporting(&self) -> &Reporting {
            self.1.reporting()
        }
        fn check(&self) -> Result<()> {
            self.1.check()
        }
        fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
            self.1.predictions(logits)
        }
        fn export_outputs(
            &self,
            predictions: &Predictions,
        ) -> Result<indexmap::IndexMap<String, estimand::ExportOutput>> {
            self.1.export_outputs(predictions)
        }
        fn to_json(&self) -> Result<Json> {
            config::write("my_package", self)
        }
        fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
            let measures = self.1.measures(batch, logits)?;
            Ok(Measures::new(measures.loss() * self.0, move |rows| measures.metrics(rows)))
        }
    }

    let folder = Folder::new();
    let head = Times(3.0, RegressionHead::new());
    let trained = BaselineEstimator::new(head).config(config(folder.path())).build()?;
    trained.train(training_rows())?;
    assert!(refused(folder.path()).contains("there is no head `Times`"));
    let objects =
        CustomObjects::new().object::<Arc<dyn Head>>("Times", |node| Ok(Arc::new(config::read::<Times>(node)?)));
    let opened = OpenOptions::new().custom_objects(objects).open(folder.path())?;
    assert_eq!(opened.evaluate(training_rows())?, trained.evaluate(training_rows())?);
    Ok(())
}

/// Every head with every setting goes to JSON and back.
#[test]
fn every_head_goes_to_json_and_back() -> Result<()> {
    use estimand::head::{self, ALL_HEADS, Head};
    let again = |head: &dyn Head| head::from_json(&head.to_json()?.to_string(), &CustomObjects::new());
    for (make, _) in ALL_HEADS {
        let head = make();
        assert_eq!(format!("{:?}", again(&*head)?), format!("{head:?}"));
        assert_eq!(again(&*head)?.to_json()?, head.to_json()?);
    }
    let classes = ["a", "b", "c", "d"];
    let with_all_settings: Vec<Box<dyn Head>> = vec![
        Box::new(
            BinaryClassHead::new()
                .name("n")
                .weight_column("w")
                .loss_reduction(Reduction::Mean)
                .forward_feature("id")
                .slice_by("word", ["red"])
                .slice_by("id", [1, 2])
                .label_vocabulary([7, 5])
                .class_weights([0.5, 2.0])
                .thresholds([0.1, 0.9]),
        ),
        Box::new(
            MultiClassHead::new(4)
                .name("n")
                .weight_column("w")
                .loss_reduction(Reduction::Sum)
                .forward_feature("id")
                .slice_by("word", ["red"])
                .label_vocabulary(classes)
                .class_weights([0.5, 2.0, 0.0, 1.0]),
        ),
        Box::new(
            MultiLabelHead::new(4)
                .name("n")
                .weight_column("w")
                .loss_reduction(Reduction::SumByNonzeroWeights)
                .forward_feature("id")
                .slice_by("word", ["red"])
                .label_vocabulary(classes)
                .thresholds([0.1])
                .metrics_of_classes(["b"]),
        ),
        Box::new(
            RegressionHead::new()
                .name("n")
                .weight_column("w")
                .loss_reduction(Reduction::Sum)
                .forward_feature("id")
                .slice_by("word", ["red"])
                .label_dimension(2),
        ),
        Box::new(
            PoissonRegressionHead::new()
                .name("n")
                .weight_column("w")
                .loss_reduction(Reduction::Sum)
                .forward_feature("id")
                .slice_by("word", ["red"])
                .label_dimension(2)
                .compute_full_loss(false),
        ),
        Box::new(
            LogisticRegressionHead::new()
                .name("n")
                .weight_column("w")
                .loss_reduction(Reduction::Sum)
                .forward_feature("id")
                .slice_by("word", ["red"]),
        ),
        Box::new(
            MultiHead::new()
                .weighted_head(0.5, MultiClassHead::new(2).name("c").forward_feature("id"))
                .head(MultiHead::new().head(RegressionHead::new().name("r")))
                .forward_feature("x")
                .slice_by("word", ["red"]),
        ),
        Box::new(SequentialHeadWrapper::new(MultiClassHead::new(4).forward_feature("id")).sequence_length_mask("mask")),
    ];
    let mut changed = std::collections::BTreeSet::new();
    let defaults: Vec<Json> = ALL_HEADS.iter().map(|(make, _)| make().to_json().unwrap()).collect();
    for head in &with_all_settings {
        let (json, back) = (head.to_json()?, again(&**head)?);
        assert_eq!(back.to_json()?, json);
        assert_eq!(format!("{back:?}"), format!("{head:?}"));
        let default = defaults.iter().find(|default| default["class_name"] == json["class_name"]).unwrap();
        for (key, value) in json["config"].as_object().unwrap() {
            if default["config"].get(key) != Some(value) {
                changed.insert((json["class_name"].to_string(), key.clone()));
            }
        }
    }
    for default in &defaults {
        for key in default["config"].as_object().unwrap().keys() {
            // The slices of sequences are those of the wrapped head.
            if (default["class_name"].as_str(), key.as_str()) == (Some("SequentialHeadWrapper"), "slices") {
                continue;
            }
            let class = default["class_name"].to_string();
            assert!(changed.contains(&(class.clone(), key.clone())), "no head above sets {key} of {class}");
        }
    }
    let error = BinaryClassHead::new().loss_fn(|cx| cx.logits.square()).to_json().unwrap_err().to_string();
    assert!(error.contains("the head's `loss_fn` is a function of the program"), "{error}");
    Ok(())
}
