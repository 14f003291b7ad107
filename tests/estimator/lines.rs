//! The lines that nodes, variables and errors name: lines of the program (this file), not of the
//! library.

use std::panic::Location;
use std::sync::{Arc, Mutex};

use estimand::hook::{BeginContext, CsvLogHook, FeedFnHook, FinalOpsHook, Hook, LoggingTensorHook};
use estimand::nn::column::sequence_categorical_column_with_identity;
use estimand::nn::metric;
use estimand::prelude::*;
use estimand::premade::CellType;

use crate::models::Folder;

type Site = &'static Location<'static>;

/// A hook that lists the lines of all nodes and variables of a run.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(String, Site)>>>);

impl Lines {
    fn all(&self) -> Vec<(String, Site)> {
        self.0.lock().unwrap().clone()
    }

    /// Nodes and variables with a line of another file.
    fn strangers(&self) -> Vec<String> {
        assert!(!self.all().is_empty());
        let strange = self.all().into_iter().filter(|(_, site)| site.file() != file!());
        strange.map(|(name, site)| format!("{name} at {site}")).collect()
    }

    /// The lines of nodes whose name ends like this.
    fn of(&self, name: &str) -> Vec<u32> {
        self.all().iter().filter(|(known, _)| known.ends_with(name)).map(|(_, site)| site.line()).collect()
    }
}

impl Hook for Lines {
    fn name(&self) -> &str {
        "lines"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        let body = cx.graph().body();
        let nodes = body.nodes().iter().map(|node| (node.name.clone(), node.site));
        let variables = body.variables().iter().map(|(_, spec)| (spec.name.clone(), spec.site));
        self.0.lock().unwrap().extend(nodes.chain(variables));
        Ok(())
    }
}

fn rows() -> Dataset {
    let rows = [
        ("x", Array::from([0f32, 1.0, 2.0, 3.0])),
        ("id", Array::from([0i64, 1, 2, 1])),
        ("y", Array::from([0i64, 1, 1, 0])),
    ];
    Dataset::from_arrays(rows).label("y").batch(2)
}

/// The lines of a training, an evaluation and a prediction.
fn lines(model: &Estimator) -> Result<Lines> {
    let lines = Lines::default();
    model.train(TrainSpec::new(rows()).hook(lines.clone()))?;
    model.evaluate(EvalSpec::new(rows()).hook(lines.clone()))?;
    model.predict(PredictSpec::new(rows()).hook(lines.clone())).try_for_each(|row| row.map(drop))?;
    Ok(lines)
}

fn columns() -> Columns {
    let id = categorical_column_with_identity("id", 3);
    [numeric_column("x").z_score(1.0, 2.0).into(), embedding_column(&id, 2).into()].into()
}

/// Makes a premade from columns for a linear model and for a deep one.
type Make = fn(&Folder, Columns, Columns) -> Result<Estimator>;

#[test]
fn premades_have_no_line_of_the_library() -> Result<()> {
    let wide = || -> Columns { [categorical_column_with_identity("id", 3).into()].into() };
    let models: [Make; 5] = [
        |folder, _, _| {
            let id = sequence_categorical_column_with_identity("id", 3);
            let model = RnnClassifier::new(columns![embedding_column(id, 2)]).units([3, 2]).cell_type(CellType::Lstm);
            model.context_feature_columns(columns![numeric_column("x")]).model_dir(folder.path()).build()
        },
        |folder, _, _| BaselineRegressor::new().model_dir(folder.path()).build(),
        |folder, wide, _| LinearClassifier::new(wide).n_classes(3).model_dir(folder.path()).build(),
        |folder, _, deep| DnnClassifier::new([3], deep).batch_norm(true).dropout(0.5).model_dir(folder.path()).build(),
        |folder, wide, deep| {
            let model = DnnLinearCombinedClassifier::new().linear_feature_columns(wide).dnn_feature_columns(deep);
            model.dnn_hidden_units([2]).slice_by("id", [1, 2]).model_dir(folder.path()).build()
        },
    ];
    for make in models {
        let folder = Folder::new();
        assert_eq!(lines(&make(&folder, wide(), columns())?)?.strangers(), [""; 0]);
        // Nor has the same model, opened again.
        assert_eq!(lines(&Estimator::open(folder.path())?)?.strangers(), [""; 0]);
    }
    Ok(())
}

#[test]
fn parts_of_a_model_function_have_its_lines() -> Result<()> {
    let folder = Folder::new();
    let model = |cx: &ModelFnContext<'_>| {
        let net = input_layer(cx.features(), columns());
        let logits = Dense::new(1).apply(&net);
        let head = BinaryClassHead::new().loss_fn(|cx| (cx.logits.tanh() - cx.labels).square());
        head.spec(cx, &logits, Optimizer::new(Adam::default(), 0.1))
    };
    let head = line!() - 2;
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    let made = line!() - 1;
    let estimator = estimator.add_metrics(|cx| {
        let labels = cx.label().cast(DType::F32);
        Ok(vec![("rmse", metric::root_mean_squared_error(&labels, &cx.prediction("logistic")?.squeeze(&[1]), None))])
    });
    let lines = lines(&estimator)?;
    assert_eq!(lines.strangers(), [""; 0]);
    // The loss function is the user's own code; the rest of the head has the line of its call.
    assert!(lines.of("Tanh").iter().all(|line| *line == head - 1), "{:?}", lines.of("Tanh"));
    assert!(lines.of("head/Sigmoid").iter().all(|line| *line == head), "{:?}", lines.of("head/Sigmoid"));
    assert!(!lines.of("Tanh").is_empty() && !lines.of("head/Sigmoid").is_empty());
    // The estimator itself adds the step and the inputs.
    assert!(lines.of("global_step").iter().all(|line| *line == made), "{:?}", lines.of("global_step"));
    Ok(())
}

/// The lines of this file that a text names.
fn lines_of(text: &str) -> Vec<u32> {
    let place = format!("{}:", file!());
    let after = text.split(&place).skip(1);
    after.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()).collect()
}

/// An error that a head returns has the line of the head, or of the premade that has it.
#[test]
fn errors_of_heads_have_the_line_of_the_model() -> Result<()> {
    let folder = Folder::new();
    let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.path()).build()?;
    let made = line!() - 1;
    let words = || -> Result<Dataset> {
        let words = Array::from_strings([2], ["no", "yes"])?;
        Ok(Dataset::from_arrays([("x", Array::from([0f32, 1.0])), ("y", words)]).label("y").batch(2))
    };
    let text = model.train(words()?).unwrap_err().to_string();
    assert!(text.contains("the labels are strings") && text.contains(".label_vocabulary"), "{text}");
    assert_eq!(lines_of(&text), [made], "{text}");

    let model = |cx: &ModelFnContext<'_>| {
        let logits = Dense::new(1).apply(&cx.feature("x").reshape([-1, 1]));
        BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))
    };
    let head = line!() - 2;
    let text = Estimator::new(model).model_dir(folder.path()).build()?.train(words()?).unwrap_err().to_string();
    assert_eq!(lines_of(&text), [head], "{text}");

    // An error of the library without a line inside the model has that of the estimator.
    let nothing = |cx: &ModelFnContext<'_>| Ok(EstimatorSpec::new(cx));
    let model = Estimator::new(nothing).model_dir(folder.path()).build()?;
    let made = line!() - 1;
    let text = model.train(rows()).unwrap_err().to_string();
    assert_eq!(lines_of(&text), [made], "{text}");
    Ok(())
}

/// Two layers on one line are told apart by their columns.
#[test]
fn layers_of_one_line_are_two_places() -> Result<()> {
    let folder = Folder::new();
    #[rustfmt::skip]
    let shifty = |cx: &ModelFnContext<'_>| {
        let mut x = cx.feature("x").reshape([-1, 1]);
        if cx.mode() == Mode::Train { x = Dense::new(1).apply(&x); } let y = Dense::new(1).apply(&x).reshape([-1]);
        let loss = (&y - cx.label().cast(DType::F32)).square().mean();
        Ok(EstimatorSpec::new(cx).prediction("y", &y).loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
    };
    let place = format!("{}:{}:", file!(), line!() - 4);
    let model = Estimator::new(shifty).model_dir(folder.path()).build()?;
    model.train(rows())?;
    let text = model.evaluate(rows()).unwrap_err().to_string();
    assert!(text.contains("variable `dense/kernel` is made at") && text.matches(&place).count() == 2, "{text}");
    let columns: Vec<&str> = text.split(&place).skip(1).map(|rest| rest.split(' ').next().unwrap()).collect();
    assert_eq!(columns, ["57", "92"], "{text}");
    Ok(())
}

/// A name that does not exist: the error has the line that named it.
#[test]
fn names_are_reported_with_the_line_that_gave_them() -> Result<()> {
    let folder = Folder::new();
    let model = |cx: &ModelFnContext<'_>| {
        let logits = Dense::new(cx.params().usize("units")?).apply(&cx.feature("x").reshape([-1, 1]));
        BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))
    };
    let units = line!() - 3;
    let build = |params: HParams| Estimator::new(model).params(params).model_dir(folder.path()).build();
    let says = |text: String, lines: &[u32], parts: &[&str]| {
        assert_eq!(lines_of(&text), lines, "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
    };
    let text = build(HParams::new().set("units", "one"))?.train(rows()).unwrap_err().to_string();
    says(text, &[units], &["`units` is a string (one), but it is read as an integer", ".set(\"units\", ..)"]);
    let text = build(HParams::new().set("unit", 1))?.train(rows()).unwrap_err().to_string();
    says(text, &[units], &["there is no hyper-parameter `units`", "did you mean `unit`?"]);
    let text = build(HParams::new().set("units", -1))?.train(rows()).unwrap_err().to_string();
    says(text, &[units], &["`units` is -1"]);

    let model = build(HParams::new().set("units", 1))?;
    let train = |hook: Box<dyn Hook>| model.train(TrainSpec::new(rows()).hook(hook)).unwrap_err().to_string();
    let tensor = ["there is no tensor `kernel`", "did you mean `dense/kernel`?"];
    let hook = LoggingTensorHook::new(Every::Steps(1)).named("kernel");
    says(train(Box::new(hook)), &[line!() - 1], &tensor);
    let hook = CsvLogHook::new(folder.path().join("log.csv"), Every::Steps(1)).named("kernel");
    says(train(Box::new(hook)), &[line!() - 1], &tensor);
    let hook = FinalOpsHook::new().named("kernel");
    says(train(Box::new(hook)), &[line!() - 1], &tensor);
    let hook = FinalOpsHook::new().feed("kernel", Array::from([1f32]));
    says(train(Box::new(hook)), &[line!() - 1], &tensor);
    let hook = FeedFnHook::new().named("kernel", |_| Ok(Array::from([1f32])));
    says(train(Box::new(hook)), &[line!() - 1], &tensor);

    model.train(rows())?;
    let text = model.variable_value("dense/kernal").unwrap_err().to_string();
    says(text, &[], &["there is no variable `dense/kernal`", "did you mean `dense/kernel`?"]);
    let row = model.predict(rows()).next().unwrap()?;
    let keys = ["no prediction `probabilitis`", "did you mean `probabilities`? the predictions are", "logistic"];
    let text = row.f32("probabilitis").unwrap_err().to_string();
    says(text, &[line!() - 1], &keys);
    let text = row.i64("probabilities").unwrap_err().to_string();
    says(text, &[line!() - 1], &["is f32[2], not i64"]);
    let wanted = PredictSpec::new(rows()).keys(["probabilitis"]);
    let text = model.predict(wanted).next().unwrap().unwrap_err().to_string();
    says(text, &[], &["none of the predictions probabilitis", "did you mean `probabilities`? it has"]);
    let model = model.add_metrics(|cx| {
        let wrong = cx.prediction("logistics")?;
        Ok(vec![("mean", metric::mean(wrong, None))])
    });
    let text = model.evaluate(rows()).unwrap_err().to_string();
    says(text, &[line!() - 4], &["there is no prediction `logistics`", "did you mean `logistic`?"]);
    Ok(())
}

/// A feature that no name is near to is not a typo: the error lists the features.
#[test]
fn a_missing_feature_is_no_typo_of_any_other() -> Result<()> {
    let folder = Folder::new();
    let model = DnnRegressor::new([2], [numeric_column("fare").into()]).model_dir(folder.path()).build()?;
    let made = line!() - 1;
    let people = [("age", Array::from([1f32])), ("sex", Array::from([0i64])), ("y", Array::from([1f32]))];
    let text = model.train(Dataset::from_arrays(people).label("y").batch(1)).unwrap_err().to_string();
    assert!(text.starts_with("there is no feature `fare`\n") && text.ends_with("help: there are age, sex"), "{text}");
    assert_eq!(lines_of(&text), [made], "{text}");
    Ok(())
}
