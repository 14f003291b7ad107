//! Mistakes in model functions and inputs: the message of the error, and the line it names.

use estimand::prelude::*;

use crate::models::{Folder, line, linear};

fn train_error(model: impl Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync + 'static) -> String {
    let folder = Folder::new();
    let estimator = Estimator::new(model).model_dir(folder.path()).build().unwrap();
    estimator.train(line(8).batch(4)).unwrap_err().to_string()
}

#[test]
fn a_spec_without_what_its_mode_needs() {
    let zero = |cx: &ModelFnContext<'_>| cx.graph().constant(0.0f32);
    assert!(train_error(|cx| Ok(EstimatorSpec::new(cx))).contains("neither an optimizer nor a train op in mode train"));
    let text = train_error(|cx| Ok(EstimatorSpec::new(cx).optimizer(Optimizer::new(Sgd::default(), 0.1))));
    assert!(text.contains("the model has no loss in mode train"), "{text}");
    let text = train_error(|cx| Ok(linear(cx)?.loss(&cx.feature("x"))));
    assert!(text.contains("the loss is") && text.contains("expected one number"), "{text}");
    let text = train_error(move |cx| Ok(linear(cx)?.train_op(&zero(cx))));
    assert!(text.contains("both a train op and an optimizer"), "{text}");
    let text = train_error(|cx| {
        let mae = estimand::nn::metric::mean(&cx.feature("x"), None);
        Ok(linear(cx)?.metric("loss", mae))
    });
    assert!(text.contains("a metric is named `loss`"), "{text}");
    let text = train_error(|cx| Ok(linear(cx)?.prediction("alien", &Graph::new().constant(1.0f32))));
    assert!(text.contains("`alien` belongs to another graph"), "{text}");

    let folder = Folder::new();
    let silent = |cx: &ModelFnContext<'_>| Ok(EstimatorSpec::new(cx));
    let estimator = Estimator::new(silent).model_dir(folder.path()).build().unwrap();
    let data = line(8).batch(4);
    assert!(estimator.evaluate(&data).unwrap_err().to_string().contains("no loss in mode eval"));
    assert!(estimator.predict(&data).next().unwrap().unwrap_err().to_string().contains("no predictions in mode infer"));
}

#[test]
fn metrics_that_are_none() {
    use estimand::nn::metric::Metric;
    let error = |metric: fn(&Tensor) -> Metric| {
        let folder = Folder::new();
        let model = move |cx: &ModelFnContext<'_>| Ok(linear(cx)?.metric("odd", metric(&cx.feature("x"))));
        let estimator = Estimator::new(model).model_dir(folder.path()).build().unwrap();
        estimator.evaluate(line(10).batch(4)).unwrap_err().to_string()
    };
    // The last batch is shorter than the first.
    let text = error(|x| Metric::new([x.clone()], |sums| sums[0].sum()));
    assert!(
        text.contains("have the shapes [[2]]; those of the first batch had [[4]]") && text.contains("in metric `odd`"),
        "{text}"
    );
}

#[test]
fn features_and_labels_that_are_not_there() {
    let text = train_error(|cx| {
        cx.feature("xx");
        linear(cx)
    });
    assert!(
        text.contains("no feature `xx`") && text.contains("did you mean `x`?") && text.contains("bad_input.rs:"),
        "{text}"
    );

    let folder = Folder::new();
    let estimator = Estimator::new(|cx| {
        cx.label();
        linear(cx)
    });
    let estimator = estimator.model_dir(folder.path()).build().unwrap();
    let text = estimator.predict(line(8).batch(4)).next().unwrap().unwrap_err().to_string();
    assert!(text.contains("labels were asked for in prediction"), "{text}");
    let text = estimator.train(line(8)).unwrap_err().to_string();
    assert!(text.contains("not batched"), "{text}");
    let text = estimator.evaluate(line(8).take(0).batch(4)).unwrap_err().to_string();
    assert!(text.contains("nothing to evaluate"), "{text}");
}

#[test]
fn inputs_that_never_end_or_have_no_batch() -> Result<()> {
    let folder = Folder::new();
    let estimator = Estimator::new(linear).model_dir(folder.path()).build()?;
    for input in
        [line(9).batch(100).drop_remainder(), line(9).take(0).batch(2), line(9).batch(100).drop_remainder().repeat(3)]
    {
        let text = estimator.train(&input).unwrap_err().to_string();
        assert!(
            text.contains("nothing to train on: the input has no batch") && text.contains("drop_remainder"),
            "{text}"
        );
    }
    assert!(!folder.path().join("checkpoint").exists());
    estimator.train(TrainSpec::new(line(9).batch(3)).steps(2))?;

    let endless = line(9).repeat_forever().batch(3);
    let text = estimator.evaluate(&endless).unwrap_err().to_string();
    assert!(text.contains("never ends") && text.contains("set EvalSpec::steps"), "{text}");
    let text = estimator.predict(&endless).next().unwrap().unwrap_err().to_string();
    assert!(text.contains("the input of the prediction never ends") && text.contains("`take(n)`"), "{text}");
    let text = estimator.train_and_evaluate(TrainSpec::new(&endless).steps(1), &endless).unwrap_err().to_string();
    assert!(text.contains("never ends") && text.contains("in the evaluation"), "{text}");
    estimator.evaluate(EvalSpec::new(&endless).steps(2))?;
    assert_eq!(estimator.predict(endless.take(2)).count(), 6);
    Ok(())
}

#[test]
fn a_layer_of_one_mode_must_not_shift_the_names_of_others() -> Result<()> {
    let folder = Folder::new();
    let shifty = |cx: &ModelFnContext<'_>| {
        let mut x = cx.feature("x").reshape([-1, 1]);
        if cx.mode() == Mode::Train {
            x = Dense::new(1).apply(&x);
        }
        let y = Dense::new(1).apply(&x).reshape([-1]);
        let spec = EstimatorSpec::new(cx).prediction("y", &y);
        let loss = (y - cx.label()).square().mean();
        Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
    };
    let estimator = Estimator::new(shifty).model_dir(folder.path()).build()?;
    let data = line(8).batch(4);
    estimator.train(&data)?;
    let text = estimator.evaluate(&data).unwrap_err().to_string();
    for part in
        ["variable `dense/kernel` is made at", "in mode train and at", "in mode eval", "give a name to each layer"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    Ok(())
}

#[test]
fn folders_and_paths() {
    let folder = Folder::new();
    let config = RunConfig::new().model_dir(folder.path());
    let error = Estimator::new(linear).config(config).model_dir("elsewhere").build().unwrap_err().to_string();
    assert!(error.contains("elsewhere") && error.contains("set model_dir in one place"), "{error}");
    let model = Estimator::new(linear).model_dir(folder.path()).build().unwrap();
    let data = line(8).batch(4);
    let missing = folder.path().join("model.ckpt-77");
    let error = model.evaluate(EvalSpec::new(&data).checkpoint(&missing)).unwrap_err().to_string();
    assert!(error.contains("model.ckpt-77"), "{error}");
    let temporary = Estimator::new(linear).build().unwrap();
    assert!(temporary.model_dir().is_dir());
    std::fs::remove_dir_all(temporary.model_dir()).unwrap();
}

#[test]
fn a_cluster_is_refused_rather_than_ignored() {
    let folder = Folder::new();
    let of = |text: &str| {
        let cluster = estimand::Cluster::parse(text).unwrap();
        let config = RunConfig::new().cluster(cluster).model_dir(folder.path());
        Estimator::new(linear).config(config).build().unwrap().train(line(8).batch(4)).map_err(|e| e.to_string())
    };
    let cluster = r#""cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}"#;
    for (task, text) in [
        ("worker", "TF_CONFIG names 3 workers"),
        ("evaluator", "makes this process evaluator"),
        ("ps", "this version has no parameter servers"),
    ] {
        let error = of(&format!(r#"{{{cluster}, "task": {{"type": "{task}", "index": 0}}}}"#)).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
    assert!(of(r#"{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}"#).is_ok());
}

/// A worker that evaluates its shard must not report it as the whole, and least of all into the
/// folder of the whole. An evaluator is alone with the whole input, and a plan that is the same for
/// all workers is the whole for each of them.
#[test]
fn a_shard_is_not_evaluated_as_the_whole() -> Result<()> {
    let folder = Folder::new();
    let model = |task: Option<&str>| {
        let cluster = task.map_or(Ok(estimand::Cluster::default()), |task| {
            let cluster = r#""cluster": {"chief": ["a:1"], "worker": ["b:1"]}"#;
            estimand::Cluster::parse(&format!(r#"{{{cluster}, "task": {{"type": "{task}", "index": 0}}}}"#))
        });
        let config = RunConfig::new().cluster(cluster.unwrap()).model_dir(folder.path());
        Estimator::new(linear).config(config).build().unwrap()
    };
    let plain = line(8).batch(2);
    let by_worker = line(8).shard_by_worker().batch(2);
    fn by_context(cx: &InputFnContext<'_>) -> Result<Dataset> {
        Ok(line(8).shard(cx.n_workers, cx.worker).batch(2))
    }
    model(None).train(&plain)?;
    let whole = model(None).evaluate(&plain)?;
    let n_files = || std::fs::read_dir(folder.path().join("eval")).unwrap().count();
    for task in ["chief", "worker"] {
        let (before, model) = (n_files(), model(Some(task)));
        for error in [model.evaluate(&by_worker), model.evaluate(EvalSpec::new(by_context))] {
            let text = error.unwrap_err().to_string();
            for part in ["TF_CONFIG names 2 workers", task, "one shard", "evaluator"] {
                assert!(text.contains(part), "{part:?} in {text}");
            }
        }
        assert_eq!(n_files(), before);
        assert_eq!(model.evaluate(&plain)?, whole);
    }
    for model in [model(Some("evaluator")), model(None)] {
        assert_eq!(model.evaluate(&by_worker)?, whole);
        assert_eq!(model.evaluate(EvalSpec::new(by_context))?, whole);
    }
    Ok(())
}
