//! Recurrent estimators against TensorFlow's, step by step.

use std::collections::BTreeSet;
use std::path::Path;

use estimand::graph::checkpoint::{BundleWriter, write_text};
use estimand::head::{MultiHead, PoissonRegressionHead, SequentialHeadWrapper};
use estimand::nn::column::{
    sequence_categorical_column_with_identity, sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
};
use estimand::nn::{GruCell, LstmCell, Reduction, StackedRnnCells};
use estimand::prelude::*;
use estimand::premade::{CellType, Premade, RnnEstimator, RnnModel, Units};
use estimand::tensor::{Feature, Ragged};
use estimand_fixture::{Case, cases_of};

use crate::fixture::array;
use crate::models::Folder;

/// The column that a description stands for.
fn column(told: &Case) -> FeatureColumn {
    let (kind, key): (String, String) = (told.setting("kind"), told.setting("key"));
    let vectors = |ids: FeatureColumn| -> FeatureColumn {
        match kind.ends_with("embedding") {
            true => embedding_column(ids, told.setting("dimension")).into(),
            false => indicator_column(ids).into(),
        }
    };
    match kind.as_str() {
        "sequence_numeric" => sequence_numeric_column(&key)
            .shape([told.setting("shape")])
            .default_value(told.option("default").unwrap_or(0.0))
            .into(),
        "numeric" => numeric_column(&key).into(),
        _ if kind.starts_with("sequence_") => vectors(match told.option::<Vec<String>>("terms") {
            Some(terms) => sequence_categorical_column_with_vocabulary_list(&key, terms).into(),
            None => sequence_categorical_column_with_identity(&key, told.setting("buckets")).into(),
        }),
        _ => vectors(categorical_column_with_identity(&key, told.setting("buckets")).into()),
    }
}

fn columns(told: &[Case]) -> Columns {
    told.iter().map(column).collect()
}

fn lstm(told: &Case) -> LstmCell {
    let cell = LstmCell::new(told.setting("units"))
        .use_bias(told.option("use_bias").unwrap_or(true))
        .unit_forget_bias(told.option("unit_forget_bias").unwrap_or(true));
    match told.option::<String>("activation").as_deref() {
        None => cell,
        Some("relu") => cell.activation(Activation::Relu),
        Some(other) => panic!("{other}"),
    }
}

fn gru(told: &Case) -> GruCell {
    GruCell::new(told.setting("units")).reset_after(told.option("reset_after").unwrap_or(true))
}

/// The settings that classifiers and estimators share.
fn shared<H>(mut rnn: Premade<RnnModel, H>, told: &Case) -> Premade<RnnModel, H> {
    if told.has("context") {
        rnn = rnn.context_feature_columns(columns(&told.objects("context")));
    }
    if told.has("units") {
        rnn = rnn.units(match told.json("units").is_array() {
            true => Units::Cells(told.setting("units")),
            false => Units::Layer(told.setting("units")),
        });
    }
    rnn = match told.option::<String>("cell_type").as_deref() {
        None => rnn,
        Some("simple_rnn") => rnn.cell_type(CellType::SimpleRnn),
        Some("lstm") => rnn.cell_type(CellType::Lstm),
        Some("gru") => rnn.cell_type(CellType::Gru),
        Some(other) => panic!("{other}"),
    };
    if told.has("cells") {
        rnn = match &told.objects("cells")[..] {
            [one] => rnn.rnn_cell(lstm(one)),
            [below, above] => rnn.rnn_cell(StackedRnnCells::new().cell(gru(below)).cell(lstm(above))),
            more => panic!("{} cells", more.len()),
        };
    }
    match told.option::<String>("optimizer").as_deref() {
        None => rnn,
        Some("sgd_value") => rnn.optimizer(Optimizer::new(Sgd::default(), 0.01)),
        Some(name) => rnn.optimizer(name),
    }
}

fn head(told: &Case) -> Box<dyn Head> {
    let kind: String = told.setting("kind");
    let dimension = told.option("label_dimension").unwrap_or(1);
    let name: Option<String> = told.option("name");
    match kind.as_str() {
        "sequential" => {
            let mask: String = told.setting("mask");
            Box::new(SequentialHeadWrapper::new(head(&told.object("head"))).sequence_length_mask(mask))
        }
        "multi" => Box::new(told.objects("heads").iter().fold(MultiHead::new(), |all, one| all.head(head(one)))),
        "poisson" => Box::new(PoissonRegressionHead::new()),
        "regression" => {
            let head = RegressionHead::new().label_dimension(dimension);
            Box::new(name.into_iter().fold(head, |head, name| head.name(name)))
        }
        "multi_class" => {
            let head = MultiClassHead::new(told.setting("n_classes"));
            Box::new(name.into_iter().fold(head, |head, name| head.name(name)))
        }
        other => panic!("{other}"),
    }
}

/// The estimator of a case's settings.
fn rnn(told: &Case, folder: &Path) -> Result<Estimator> {
    let sequence = columns(&told.objects("sequence"));
    let steps = told.option("return_sequences").unwrap_or(false);
    if told.has("head") {
        let rnn = RnnEstimator::new(head(&told.object("head")), sequence).return_sequences(steps);
        return shared(rnn, told).model_dir(folder).build();
    }
    let mut rnn = shared(RnnClassifier::new(sequence), told)
        .return_sequences(steps)
        .n_classes(told.option("n_classes").unwrap_or(2));
    if let Some(weights) = told.option::<String>("weight_column") {
        rnn = rnn.weight_column(weights);
    }
    if let Some(terms) = told.option::<Vec<String>>("label_vocabulary") {
        rnn = rnn.label_vocabulary(terms);
    }
    if let Some(mask) = told.option::<String>("sequence_mask") {
        rnn = rnn.sequence_mask(mask);
    }
    if let Some(reduction) = told.option::<String>("loss_reduction") {
        assert_eq!(reduction, "sum");
        rnn = rnn.loss_reduction(Reduction::Sum);
    }
    rnn.model_dir(folder).build()
}

/// A feature of a case: an array, or values and the number of them in each row.
fn feature(told: &Case) -> Feature {
    let values = array(&told.array("values"));
    if !told.has("lengths") {
        return values.into();
    }
    let mut splits = vec![0i64];
    for length in told.numbers::<i64>("lengths") {
        splits.push(splits[splits.len() - 1] + length);
    }
    Ragged::new(values, splits).unwrap().into()
}

/// The rows of a case. A label without a name is called `label`.
fn rows(case: &Case) -> Dataset {
    let name = |told: &Case| match told.setting::<String>("name") {
        name if name.is_empty() => "label".to_string(),
        name => name,
    };
    let labels = case.objects("labels");
    let all = case.objects("features").into_iter().chain(labels.clone());
    let data = Dataset::from_arrays(all.map(|told| (name(&told), feature(&told))));
    labels.iter().fold(data, |data, told| data.label(&name(told)))
}

pub fn near(what: &str, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let largest = theirs.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= 5e-6 * largest, "{what}: {ours} instead of {theirs}");
    }
}

/// Compares all variables of the newest checkpoint with those of a case's object.
fn same_variables(what: &str, estimator: &Estimator, expected: &[(String, estimand_fixture::Array)]) -> Result<()> {
    let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(estimator.variable_names()?, names, "{what}");
    for (name, theirs) in expected {
        let (ours, theirs) = (estimator.variable_value(name)?, array(theirs));
        assert_eq!((ours.dtype(), ours.dims()), (theirs.dtype(), theirs.dims()), "{what}: {name}");
        near(&format!("{what}: {name}"), &ours.to_f64_vec()?, &theirs.to_f64_vec()?);
    }
    Ok(())
}

/// Starts with the variables of TensorFlow's step 0. Each step is a training of its own that
/// resumes the one before.
fn trains_as_tensorflow(case: &Case) -> Result<()> {
    let what = case.setting::<String>("what");
    let folder = Folder::new();
    let mut start = BundleWriter::create(folder.path().join("model.ckpt-0"))?;
    for (name, value) in case.arrays("before") {
        start.add(&name, &array(&value))?;
    }
    start.finish()?;
    write_text(folder.path().join("checkpoint"), "model_checkpoint_path: \"model.ckpt-0\"\n")?;
    let rnn = rnn(&case.object("settings"), folder.path())?;
    let data = rows(case);
    let batches = data.repeat_forever().batch(case.setting("batch"));
    for (step, expected) in case.objects("steps").iter().enumerate() {
        let finished = rnn.train(TrainSpec::new(&batches).max_steps(step as u64 + 1))?;
        let loss = f64::from(finished.loss.unwrap());
        near(&format!("{what}: loss of step {step}"), &[loss], &[expected.setting("loss")]);
        same_variables(&format!("{what}: after step {step}"), &rnn, &expected.arrays("variables"))?;
    }

    let all = data.batch(8);
    let (metrics, expected) = (rnn.evaluate(&all)?, case.object("evaluated"));
    let theirs: BTreeSet<&str> = expected.keys().filter(|key| *key != "global_step").collect();
    assert_eq!(metrics.iter().map(|(key, _)| key).collect::<BTreeSet<&str>>(), theirs, "{what}");
    for key in theirs {
        near(&format!("{what}: {key}"), &[metrics.get(key)?], &[expected.setting(key)]);
    }
    let predictions = rnn.predict(PredictSpec::new(&all).by_batch(true)).next().unwrap()?;
    let expected = case.arrays("predicted");
    let theirs: BTreeSet<&str> = expected.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(predictions.keys().collect::<BTreeSet<&str>>(), theirs, "{what}");
    for (key, theirs) in &expected {
        let (ours, theirs) = (predictions.array(key)?, array(theirs));
        assert_eq!((ours.dtype(), ours.dims()), (theirs.dtype(), theirs.dims()), "{what}: {key}");
        match theirs.dtype() {
            DType::F32 => near(&format!("{what}: {key}"), &ours.to_f64_vec()?, &theirs.to_f64_vec()?),
            _ => assert_eq!(*ours, theirs, "{what}: {key}"),
        }
    }
    Ok(())
}

#[test]
fn trains_evaluates_and_predicts_as_tensorflow() -> Result<()> {
    let cases = cases_of("rnn", "train");
    assert_eq!(cases.len(), 29);
    cases.iter().try_for_each(|case| trains_as_tensorflow(case).map_err(|error| error.context(case.to_string())))
}

#[test]
fn a_folder_of_tensorflow_goes_on() -> Result<()> {
    let case = &cases_of("rnn", "folder")[0];
    let folder = Folder::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures");
    for part in ["index", "data-00000-of-00001"] {
        let to = folder.path().join(format!("model.ckpt-2.{part}"));
        std::fs::copy(fixtures.join(format!("rnn_tf.{part}")), to).unwrap();
    }
    write_text(folder.path().join("checkpoint"), "model_checkpoint_path: \"model.ckpt-2\"\n")?;
    let rnn = rnn(&case.object("settings"), folder.path())?;
    let names = case.object("names");
    assert_eq!(rnn.variable_names()?, names.keys().collect::<Vec<_>>());
    let batches = rows(case).repeat_forever().batch(case.setting("batch"));
    assert_eq!(rnn.train(TrainSpec::new(batches).steps(2))?.global_step, 4);
    same_variables("after", &rnn, &case.arrays("after"))
}

/// TensorFlow shows how long sequences are.
#[test]
fn summaries_have_tensorflows_tags() -> Result<()> {
    let case = &cases_of("rnn", "train")[0];
    let tags: Vec<String> = cases_of("rnn", "summaries")[0].setting("tags");
    let folder = Folder::new();
    let rnn = rnn(&case.object("settings"), folder.path())?;
    rnn.train(TrainSpec::new(rows(case).repeat_forever().batch(4)).steps(1))?;
    let events: Vec<u8> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("tfevents"))
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect();
    let has = |tag: &str| events.windows(tag.len()).any(|bytes| bytes == tag.as_bytes());
    let histogram = tags.iter().find(|tag| tag.ends_with("sequence_length")).unwrap();
    assert!(has(histogram), "{histogram}");
    Ok(())
}
