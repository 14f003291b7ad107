//! Premade estimators: the specification's one-step cases by number, the names of variables, and
//! mistakes.

use estimand::graph::checkpoint::BundleWriter;
use estimand::nn::Reduction;
use estimand::nn::column::sequence_numeric_column;
use estimand::prelude::*;
use estimand::premade::LinearEstimator;

use crate::models::Folder;

fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 2e-6, "{actual} instead of {expected}");
}

fn value(estimator: &Estimator, name: &str) -> Vec<f32> {
    estimator.variable_value(name).unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn all_near(estimator: &Estimator, name: &str, expected: &[f64]) {
    let found = value(estimator, name);
    assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
    found.iter().zip(expected).for_each(|(&found, &expected)| near(found.into(), expected));
}

/// Eight rows of `x` = 1, six of them labelled 1.
fn eight() -> Dataset {
    let labels = [0i64, 1, 1, 1, 0, 1, 1, 1];
    Dataset::from_arrays([("x", Array::from(vec![1f32; 8])), ("y", Array::from(labels.to_vec()))]).label("y")
}

fn ones() -> Dataset {
    eight().repeat_forever().batch(8)
}

/// Case 77: by hand, the gradient of weight and bias is 1/2 - 6/8 = -1/4; Ftrl's accumulator is
/// 0.1 + 1/16, its linear slot the gradient, and w = 0.25 / (sqrt(0.1625) / 0.2).
#[test]
fn case_77_a_linear_classifier_s_first_step() -> Result<()> {
    let folder = Folder::new();
    let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.path()).build()?;
    model.train(TrainSpec::new(ones()).steps(1))?;
    for variable in ["linear/linear_model/x/weights", "linear/linear_model/bias_weights"] {
        all_near(&model, variable, &[0.12403473]);
        all_near(&model, &format!("training/Ftrl/{variable}/accumulator"), &[0.1625]);
        all_near(&model, &format!("training/Ftrl/{variable}/linear"), &[-0.25]);
    }
    all_near(&model, "training/Ftrl/learning_rate", &[0.2]);
    Ok(())
}

/// Case 78, version 1's sum as a loss reduction: for labels 0, 1, 1, 1 the gradient is 4/2 - 3 =
/// -1, the accumulator 1.1, and w = 1 / (sqrt(1.1) / 0.2).
#[test]
fn case_78_a_loss_that_is_a_sum() -> Result<()> {
    let folder = Folder::new();
    let model = LinearClassifier::new([numeric_column("x").into()]).loss_reduction(Reduction::Sum);
    let model = model.model_dir(folder.path()).build()?;
    let fours = eight().batch(4);
    model.train(TrainSpec::new(&fours).steps(1))?;
    all_near(&model, "linear/linear_model/x/weights", &[0.19069253]);
    all_near(&model, "linear/linear_model/bias_weights", &[0.19069253]);
    all_near(&model, "training/Ftrl/linear/linear_model/bias_weights/accumulator", &[1.1]);
    let metrics = model.evaluate(&fours)?;
    near(metrics["loss"], 2.4634943);
    near(metrics["loss"], 4.0 * metrics["average_loss"]);
    Ok(())
}

/// Case 79: the bias ends at the log odds of 3 to 1.
#[test]
fn case_79_baselines_learn_frequencies_and_means() -> Result<()> {
    let (folder, other) = (Folder::new(), Folder::new());
    let model = BaselineClassifier::new().model_dir(folder.path()).build()?;
    model.train(TrainSpec::new(ones()).steps(1))?;
    all_near(&model, "baseline/bias", &[0.18605211]);
    model.train(TrainSpec::new(ones()).max_steps(300))?;
    all_near(&model, "baseline/bias", &[1.0986115]);
    let model = BaselineRegressor::new().model_dir(other.path()).build()?;
    model.train(TrainSpec::new(ones()).steps(1))?;
    all_near(&model, "baseline/bias", &[0.29354766]);
    Ok(())
}

/// Defects 16.1 and 16.2 of the original (case 120), not ours: several features, and weights as a
/// feature.
#[test]
fn case_120_baselines_take_any_features_and_weights() -> Result<()> {
    let folder = Folder::new();
    let model = BaselineClassifier::new().weight_column("w").model_dir(folder.path()).build()?;
    let rows = [
        ("a", Array::from([1f32, 2.0])),
        ("b", Array::from_strings([2], ["u", "v"])?),
        ("w", Array::from([3f32, 1.0])),
        ("y", Array::from([1i64, 0])),
    ];
    let data = Dataset::from_arrays(rows).label("y").repeat(300).batch(2);
    model.train(&data)?;
    // Three to one again.
    near(value(&model, "baseline/bias")[0].into(), 1.0986115);
    let predictions =
        model.predict(Dataset::from_arrays([("a", Array::from([1f32])), ("w", Array::from([1f32]))]).batch(1));
    for prediction in predictions {
        near(prediction?.f32("logistic")?[0].into(), 0.75);
    }
    Ok(())
}

/// Six ones and two zeros that count three times each: even odds.
#[test]
fn classes_with_weights() -> Result<()> {
    let folder = Folder::new();
    let model = BaselineClassifier::new().class_weights([3.0, 1.0]).model_dir(folder.path()).build()?;
    model.train(TrainSpec::new(ones()).steps(300))?;
    assert!(value(&model, "baseline/bias")[0].abs() < 1e-4, "{:?}", value(&model, "baseline/bias"));
    // Metrics count rows as they are.
    near(model.evaluate(EvalSpec::new(ones()).steps(1))?["label/mean"], 0.75);
    let error = BaselineClassifier::new().n_classes(3).class_weights([1.0]).model_dir(folder.path()).build();
    assert!(error.is_err_and(|e| e.to_string().contains("1 class weights for 3 classes")));
    Ok(())
}

/// The network and the rows of cases 80 and 81.
struct Case80 {
    folder: Folder,
}

impl Case80 {
    fn new() -> Case80 {
        let case = Case80 { folder: Folder::new() };
        std::fs::create_dir_all(case.folder.path()).unwrap();
        let mut start = BundleWriter::create(case.start()).unwrap();
        for (name, dims, values) in [
            ("dnn/hiddenlayer_0/bias", vec![3], vec![0.01f32, 0.02, 0.03]),
            ("dnn/hiddenlayer_0/kernel", vec![2, 3], vec![0.1, -0.2, 0.3, 0.4, 0.5, -0.6]),
            ("dnn/logits/bias", vec![1], vec![0.05]),
            ("dnn/logits/kernel", vec![3, 1], vec![0.7, -0.8, 0.9]),
            ("linear/linear_model/bias_weights", vec![1], vec![0.0]),
            ("linear/linear_model/x/weights", vec![2, 1], vec![0.0, 0.0]),
        ] {
            start.add(name, &Array::from_vec(dims, values).unwrap()).unwrap();
        }
        start.finish().unwrap();
        case
    }

    fn start(&self) -> std::path::PathBuf {
        self.folder.path().join("start.ckpt")
    }

    fn model_dir(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn columns() -> Columns {
        [numeric_column("x").shape([2]).into()].into()
    }

    fn rows() -> Dataset {
        let x = Array::from_vec([2, 2], vec![1f32, 2.0, 3.0, -1.0]).unwrap();
        Dataset::from_arrays([("x", x), ("y", Array::from([1i64, 0]))]).label("y").batch(2)
    }
}

/// Case 80: logits, and one step with the default optimizer and with gradient descent.
#[test]
fn case_80_a_deep_classifier_s_first_step() -> Result<()> {
    let case = Case80::new();
    let plain = || DnnClassifier::new([3], Case80::columns()).warm_start_from(case.start());
    let by_sgd = plain().optimizer(Optimizer::new(Sgd::default(), 0.1));
    for (name, premade, loss, bias) in
        [("adagrad", plain(), 1.15657103, 0.04955510), ("sgd", by_sgd, 0.94497216, 0.03429086)]
    {
        let model = premade.model_dir(case.model_dir(name)).build()?;
        model.train(Case80::rows())?;
        near(model.evaluate(Case80::rows())?["loss"], loss);
        all_near(&model, "dnn/logits/bias", &[bias]);
    }
    Ok(())
}

/// Case 81: the same deep part with a linear part beside it.
#[test]
fn case_81_a_wide_and_deep_classifier_s_first_step() -> Result<()> {
    let case = Case80::new();
    let model = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(Case80::columns())
        .dnn_feature_columns(Case80::columns())
        .dnn_hidden_units([3])
        .warm_start_from(case.start())
        .model_dir(case.model_dir("combined"))
        .build()?;
    model.train(Case80::rows())?;
    all_near(&model, "linear/linear_model/x/weights", &[-0.00475068, 0.00471465]);
    all_near(&model, "linear/linear_model/bias_weights", &[-0.00222448]);
    near(model.evaluate(Case80::rows())?["loss"], 1.14745140);
    // The deep part is counted by the global step, the linear one by itself.
    assert_eq!(model.variable_value("training/Ftrl/iter")?.item::<i64>()?, 1);
    assert_eq!(model.variable_value("global_step")?.item::<i64>()?, 1);
    assert!(model.variable_value("training/Adagrad/iter").is_err());
    Ok(())
}

/// Case 82: the learning rates that a checkpoint holds.
#[test]
fn case_82_default_learning_rates() -> Result<()> {
    let folder = Folder::new();
    let columns = || Columns::from([numeric_column("x").into()]);
    let rate = |name: &str, model: Result<Estimator>, variable: &str, expected: f64| {
        let model = model?;
        model.train(TrainSpec::new(ones()).steps(1)).map_err(|e| e.context(name.to_string()))?;
        all_near(&model, &format!("training/{variable}/learning_rate"), &[expected]);
        Ok::<(), Error>(())
    };
    let at = |name: &str| folder.path().join(name);
    rate("dnn", DnnClassifier::new([2], columns()).model_dir(at("dnn")).build(), "Adagrad", 0.001)?;
    rate("sgd", DnnClassifier::new([2], columns()).optimizer("SGD").model_dir(at("sgd")).build(), "SGD", 0.01)?;
    rate("linear", LinearRegressor::new(columns()).model_dir(at("linear")).build(), "Ftrl", 0.2)?;
    rate("wide", LinearClassifier::new(columns()).optimizer("SGD").model_dir(at("wide")).build(), "SGD", 0.2)?;
    rate("baseline", BaselineRegressor::new().model_dir(at("baseline")).build(), "Ftrl", 0.3)?;
    let both = DnnLinearCombinedRegressor::new().linear_feature_columns(columns()).dnn_feature_columns(columns());
    rate("both", both.dnn_hidden_units([2]).model_dir(at("both")).build(), "Adagrad", 0.001)?;
    let again = DnnLinearCombinedRegressor::new().linear_feature_columns(columns());
    rate("again", again.model_dir(at("again")).build(), "Ftrl", 0.005)
}

/// Case 83 through a deep network whose layer hands its input on: mean and variance of the columns
/// of [[1, 2], [3, -1]] are (2, 0.5) and (1, 2.25); after one step at momentum 0.999 a thousandth
/// of each counts.
#[test]
fn case_83_batch_norm_in_a_deep_network() -> Result<()> {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path()).unwrap();
    let mut start = BundleWriter::create(folder.path().join("start.ckpt"))?;
    for (name, dims, values) in [
        ("dnn/hiddenlayer_0/batchnorm_0/beta", vec![2], vec![0f32, 0.0]),
        ("dnn/hiddenlayer_0/batchnorm_0/gamma", vec![2], vec![1.0, 1.0]),
        ("dnn/hiddenlayer_0/bias", vec![2], vec![0.0, 0.0]),
        ("dnn/hiddenlayer_0/kernel", vec![2, 2], vec![1.0, 0.0, 0.0, 1.0]),
        ("dnn/logits/bias", vec![1], vec![0.0]),
        ("dnn/logits/kernel", vec![2, 1], vec![1.0, 1.0]),
    ] {
        start.add(name, &Array::from_vec(dims, values)?)?;
    }
    start.finish()?;
    let model = DnnClassifier::new([2], Case80::columns())
        .activation_fn(Activation::Linear)
        .batch_norm(true)
        .warm_start_from(folder.path().join("start.ckpt"))
        .model_dir(folder.path().join("model"))
        .build()?;
    model.train(Case80::rows())?;
    all_near(&model, "dnn/hiddenlayer_0/batchnorm_0/moving_mean", &[0.002, 0.0005]);
    all_near(&model, "dnn/hiddenlayer_0/batchnorm_0/moving_variance", &[1.0, 1.00125]);
    Ok(())
}

/// Section 4.4 of the specification: what TensorFlow's checkpoints hold.
#[test]
fn variables_have_tensorflow_s_names() -> Result<()> {
    let folder = Folder::new();
    let colour = categorical_column_with_vocabulary_list("colour", ["red", "green"]);
    let rows = [
        ("x", Array::from([1f32, 2.0])),
        ("colour", Array::from_strings([2], ["green", "red"])?),
        ("y", Array::from([0.5f32, 1.5])),
    ];
    let data = Dataset::from_arrays(rows).label("y").batch(2);
    let model = DnnLinearCombinedRegressor::new()
        .linear_feature_columns([(&colour).into(), numeric_column("x").into()])
        .dnn_feature_columns([embedding_column(&colour, 3).into(), numeric_column("x").into()])
        .dnn_hidden_units([4, 2])
        .dnn_optimizer("Adam")
        .model_dir(folder.path())
        .build()?;
    model.train(&data)?;
    let mut expected = vec!["global_step".to_string(), "training/Ftrl/iter".to_string()];
    let deep = [
        "dnn/hiddenlayer_0/bias",
        "dnn/hiddenlayer_0/kernel",
        "dnn/hiddenlayer_1/bias",
        "dnn/hiddenlayer_1/kernel",
        "dnn/input_from_feature_columns/input_layer/colour_embedding/embedding_weights",
        "dnn/logits/bias",
        "dnn/logits/kernel",
    ];
    let wide = ["bias_weights", "colour/weights", "x/weights"].map(|name| format!("linear/linear_model/{name}"));
    for name in deep {
        expected.extend([name.to_string(), format!("training/Adam/{name}/m"), format!("training/Adam/{name}/v")]);
    }
    for name in wide {
        expected.extend([format!("training/Ftrl/{name}/accumulator"), format!("training/Ftrl/{name}/linear"), name]);
    }
    let settings = ["beta_1", "beta_2", "decay", "learning_rate"].map(|name| format!("training/Adam/{name}"));
    expected.extend(settings);
    let settings = ["beta", "decay", "l1_regularization_strength", "l2_regularization_strength", "learning_rate"];
    expected.extend(settings.map(|name| format!("training/Ftrl/{name}")));
    expected.push("training/Ftrl/learning_rate_power".to_string());
    expected.sort();
    let mut found = model.variable_names()?;
    found.sort();
    assert_eq!(found, expected);
    Ok(())
}

/// Several classes, names for them, a head of one's own.
#[test]
fn classifiers_of_many_classes_learn() -> Result<()> {
    let folder = Folder::new();
    let n = 60;
    let x: Vec<f32> = (0..n).map(|i| (i % 3) as f32).collect();
    let names: Vec<&str> = (0..n).map(|i| ["low", "mid", "high"][i % 3]).collect();
    let rows = [("x", Array::from(x)), ("y", Array::from_strings([n], names)?)];
    let data = Dataset::from_arrays(rows).label("y").shuffle(n, 1).repeat(40).batch(20);
    let column = bucketized_column(&numeric_column("x"), [0.5, 1.5]);
    let vocabulary = ["low", "mid", "high"];
    let config = || RunConfig::new().tf_random_seed(3);
    let linear = LinearClassifier::new([(&column).into()]).n_classes(3).label_vocabulary(vocabulary).config(config());
    let deep = DnnClassifier::new([8], [(&column).into()]).n_classes(3).label_vocabulary(vocabulary);
    let deep = deep.optimizer(Optimizer::new(Adam::default(), 0.05)).dropout(0.1).config(config());
    let head = MultiClassHead::new(3).label_vocabulary(vocabulary).name("size");
    let given = LinearEstimator::new(head, [(&column).into()]).config(config());
    let models = [
        ("accuracy", linear.model_dir(folder.path().join("linear")).build()?),
        ("accuracy", deep.model_dir(folder.path().join("deep")).build()?),
        ("accuracy/size", given.model_dir(folder.path().join("given")).build()?),
    ];
    for (key, model) in models {
        model.train(&data)?;
        assert_eq!(model.evaluate(&data)?[key], 1.0, "{}", model.model_dir().display());
        let first = model.predict(Dataset::from_arrays([("x", Array::from([2f32]))]).batch(1)).next();
        let prediction = first.expect("one row")?;
        assert_eq!(*prediction.array("classes")?, Array::from_strings([1], ["high"])?);
    }
    Ok(())
}

fn refused(model: Result<Estimator>, parts: &[&str]) {
    let text = match model {
        Ok(_) => panic!("expected {parts:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn mistakes_are_told_when_an_estimator_is_built() {
    let x = || Columns::from([numeric_column("x").into()]);
    let none = Columns::default;
    refused(LinearClassifier::new(none()).build(), &["a linear model was given no feature columns"]);
    refused(DnnClassifier::new([3], none()).build(), &["a deep network was given no feature columns"]);
    refused(DnnClassifier::new([3, 0], x()).build(), &["hidden_units is [3, 0]", "layer 1"]);
    refused(DnnRegressor::new([3], x()).dropout(1.0).build(), &["the dropout rate is 1"]);
    refused(DnnClassifier::new([3], x()).optimizer("Adamm").build(), &["no optimizer `Adamm`", "did you mean `Adam`?"]);
    refused(BaselineClassifier::new().optimizer("sgd").build(), &["no optimizer `sgd`", "did you mean `SGD`?"]);
    refused(DnnClassifier::new([3], x()).n_classes(1).build(), &["1"]);
    let both = DnnLinearCombinedClassifier::new;
    refused(both().build(), &["no feature columns", "linear_feature_columns, dnn_feature_columns, or both"]);
    refused(both().dnn_feature_columns(x()).build(), &["dnn_feature_columns is set, but dnn_hidden_units is not"]);
    refused(
        both().linear_feature_columns(x()).dnn_hidden_units([3]).build(),
        &["dnn_hidden_units is set, but dnn_feature_columns is not"],
    );
    let unsorted = bucketized_column(&numeric_column("x"), [2.0, 1.0]);
    refused(LinearClassifier::new([unsorted.into()]).build(), &["premade.rs"]);
    let words = || Columns::from([categorical_column_with_hash_bucket("words", 10).into()]);
    let remedy = ["`words`", "indicator_column or embedding_column", "premade.rs"];
    refused(DnnClassifier::new([3], words()).build(), &remedy);
    refused(both().dnn_feature_columns(words()).dnn_hidden_units([3]).build(), &remedy);
    let steps = || Columns::from([sequence_numeric_column("x").into()]);
    refused(LinearClassifier::new(steps()).build(), &["`x`", "sequence_input_layer", "premade.rs"]);
    refused(both().linear_feature_columns(steps()).build(), &["`x`", "sequence_input_layer"]);
    // A feature that two columns read in different ways is no mistake.
    let id = indicator_column(categorical_column_with_identity("x", 3));
    let folder = Folder::new();
    let two = DnnClassifier::new([3], [numeric_column("x").into(), id.into()]);
    two.model_dir(folder.path()).build().unwrap();
}

/// Every column is taken by the networks that can use its sides, and refused with a remedy by the
/// others.
#[test]
fn columns_are_taken_where_they_fit() {
    let folder = Folder::new();
    for make in estimand::nn::column::ALL_COLUMNS {
        let column = make();
        let (dense, ids) = (column.dense().is_some(), column.categorical().is_some());
        let deep = DnnRegressor::new([3], [column.clone()]).model_dir(folder.path()).build();
        assert_eq!(deep.is_ok(), dense, "{column:?}");
        let linear = LinearRegressor::new([column.clone()]).model_dir(folder.path()).build();
        assert_eq!(linear.is_ok(), dense || ids, "{column:?}");
        for error in [deep.err(), linear.err()].into_iter().flatten() {
            assert!(error.to_string().contains("help"), "{error}");
        }
    }
}

/// A feature that the input does not have.
#[test]
fn mistakes_are_told_when_a_model_is_built() {
    let folder = Folder::new();
    let model = LinearClassifier::new([numeric_column("heigth").into()]).model_dir(folder.path()).build().unwrap();
    let rows = [("height", Array::from([1f32])), ("y", Array::from([1i64]))];
    let text = model.train(Dataset::from_arrays(rows).label("y").batch(1)).unwrap_err().to_string();
    assert!(text.contains("`heigth`") && text.contains("did you mean `height`?"), "{text}");
}

/// Every network as a classifier of three classes with weighted rows: rows of the last class weigh
/// nothing, so that it is never predicted; and every one begins with another's values when it is
/// told to. The optimizer comes from a function.
#[test]
fn every_network_is_multi_class_weighted_and_warm_startable() -> Result<()> {
    let folder = Folder::new();
    let rows = [
        ("x", Array::from([0f32, 1.0, 2.0, 0.0, 1.0, 2.0])),
        ("w", Array::from([1f32, 2.0, 0.0, 1.0, 2.0, 0.0])),
        ("y", Array::from([0i64, 1, 2, 0, 1, 2])),
    ];
    let data = Dataset::from_arrays(rows).label("y").repeat(60).batch(6);
    let columns = || Columns::from([numeric_column("x").into()]);
    let adam = || Optimizer::new(Adam::default(), 0.1);
    let config = || RunConfig::new().tf_random_seed(2);
    type Make<'a> = Box<dyn Fn(&std::path::Path, Option<&std::path::Path>) -> Result<Estimator> + 'a>;
    macro_rules! classifier {
        ($premade:expr) => {
            Box::new(|to: &std::path::Path, from: Option<&std::path::Path>| {
                let premade = $premade.n_classes(3).weight_column("w").config(config()).model_dir(to);
                match from {
                    Some(from) => premade.warm_start_from(from).build(),
                    None => premade.build(),
                }
            })
        };
    }
    let makes: [(&str, Make<'_>); 4] = [
        ("baseline/bias", classifier!(BaselineClassifier::new().optimizer(adam))),
        ("linear/linear_model/x/weights", classifier!(LinearClassifier::new(columns()).optimizer(adam))),
        ("dnn/hiddenlayer_0/kernel", classifier!(DnnClassifier::new([4], columns()).optimizer(adam))),
        (
            "linear/linear_model/x/weights",
            classifier!(
                DnnLinearCombinedClassifier::new()
                    .linear_feature_columns(columns())
                    .linear_optimizer(adam)
                    .dnn_feature_columns(columns())
                    .dnn_hidden_units([4])
                    .dnn_optimizer(adam)
            ),
        ),
    ];
    for (i, (variable, make)) in makes.into_iter().enumerate() {
        let (first, second) = (folder.path().join(format!("{i}")), folder.path().join(format!("{i}-again")));
        let model = make(&first, None)?;
        model.train(&data)?;
        for prediction in model.predict(data.take(1)) {
            assert_ne!(prediction?.i64("class_ids")?[0], 2, "{variable}");
        }
        let warm = make(&second, Some(&first))?;
        let (ours, theirs) = (warm.evaluate(&data)?["average_loss"], model.evaluate(&data)?["average_loss"]);
        assert_eq!(ours, theirs, "{variable}");
        warm.train(TrainSpec::new(&data).steps(1))?;
        let (before, after) = (value(&model, variable), value(&warm, variable));
        // One step of Adam at 0.1 moves a weight by about that much, from where the other had left
        // it.
        assert!(before.iter().zip(&after).all(|(b, a)| (a - b).abs() < 0.11), "{variable}: {before:?} to {after:?}");
    }
    Ok(())
}
