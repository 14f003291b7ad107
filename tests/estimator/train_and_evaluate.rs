//! Training with evaluations in between. Case numbers are those of the inventory of TensorFlow's
//! behaviour.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::events::{EventReader, SummaryValue, What, read_eval_metrics};
use estimand::hook::{Hook, HookContext, InMemoryEvaluatorHook};
use estimand::prelude::*;
use estimand::{Cluster, Export, Exporter, Metrics};

use crate::models::{Folder, line, linear, network, points};

fn estimator(folder: &Folder, config: RunConfig) -> Estimator {
    Estimator::new(linear).model_dir(folder.path()).config(config).build().unwrap()
}

fn every(n: u64) -> RunConfig {
    RunConfig::new().save_checkpoints(Every::Steps(n)).tf_random_seed(1)
}

fn endless() -> Dataset {
    line(10).repeat_forever().batch(4)
}

fn rows() -> Dataset {
    line(10).batch(4)
}

/// One call of an exporter: the step, whether it was the best and the last, and whether the
/// checkpoint was there.
type Call = (u64, bool, bool);

/// Writes down what it is called with.
#[derive(Clone, Default)]
struct Recording(Rc<RefCell<Vec<Call>>>);

impl Exporter for Recording {
    fn name(&self) -> &str {
        "recording"
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        let step = export.metrics.global_step();
        assert!(export.path.ends_with("export/recording"), "{}", export.path.display());
        assert!(export.checkpoint.ends_with(format!("model.ckpt-{step}")), "{}", export.checkpoint.display());
        let stored = export.estimator.evaluate(EvalSpec::new(rows()).checkpoint(export.checkpoint))?;
        assert_eq!(&stored, export.metrics, "the model in memory is that of the checkpoint");
        self.0.borrow_mut().push((step, export.is_best, export.is_final));
        Ok(export.is_final.then(|| export.path.clone()))
    }
}

fn steps(history: &[Metrics]) -> Vec<u64> {
    history.iter().map(Metrics::global_step).collect()
}

/// Cases 105 and 106.
#[test]
fn evaluates_with_checkpoints_as_often_as_it_may() -> Result<()> {
    for (throttle, expected) in [(0.0, vec![2, 4, 6]), (600.0, vec![2, 6])] {
        let (folder, calls) = (Folder::new(), Recording::default());
        let model = estimator(&folder, every(2));
        let evaluate = || EvalSpec::new(rows()).throttle_secs(throttle).exporter(calls.clone());
        let trained = model.train_and_evaluate(TrainSpec::new(endless()).max_steps(6), evaluate())?;
        assert_eq!(steps(&trained.evaluations[0].history), expected);
        // The loss falls at every step, so each evaluation is the best.
        let flags: Vec<Call> = expected.iter().map(|&step| (step, true, step == 6)).collect();
        assert_eq!(*calls.0.borrow(), flags);
        assert_eq!(trained.exports, [folder.path().join("export/recording")]);
        assert_eq!(trained.metrics().map(Metrics::global_step), Some(6));
        assert_eq!(trained.metrics().unwrap(), &model.evaluate(rows())?);

        let again = model.train_and_evaluate(TrainSpec::new(endless()).max_steps(6), evaluate())?;
        assert_eq!((again.metrics(), again.exports.len()), (None, 0));
        assert_eq!(calls.0.borrow().len(), expected.len());
        assert!(again.finished.reason.contains("was reached before"), "{}", again.finished.reason);
    }
    Ok(())
}

/// Case 107: without a last step nothing is the last export.
#[test]
fn trains_to_the_end_of_the_input() -> Result<()> {
    let (folder, calls) = (Folder::new(), Recording::default());
    let input = line(8).batch(4);
    let evaluate = EvalSpec::new(rows()).throttle_secs(0.0).exporter(calls.clone());
    let trained = estimator(&folder, every(1)).train_and_evaluate(input, evaluate)?;
    assert_eq!(steps(&trained.evaluations[0].history), [1, 2]);
    assert_eq!(*calls.0.borrow(), [(1, true, false), (2, true, false)]);
    assert_eq!(trained.finished.reason, "the input ended");
    Ok(())
}

/// Without checkpoints the last step is evaluated all the same.
#[test]
fn evaluates_at_the_end_without_checkpoints() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(0));
    let trained = model.train_and_evaluate(TrainSpec::new(endless()).steps(3), rows())?;
    assert_eq!(steps(&trained.evaluations[0].history), [3]);
    let error = model
        .train_and_evaluate(TrainSpec::new(endless()).steps(3), EvalSpec::new(rows()).exporter(Recording::default()))
        .unwrap_err();
    assert!(error.to_string().contains("no checkpoints are saved"), "{error}");
    Ok(())
}

/// Case 109, as decided: a cluster of one evaluates.
#[test]
fn a_chief_alone_trains_and_evaluates() -> Result<()> {
    let folder = Folder::new();
    let cluster = Cluster::parse(r#"{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}"#)?;
    let config = every(2).cluster(cluster);
    let trained = estimator(&folder, config).train_and_evaluate(TrainSpec::new(endless()).max_steps(2), rows())?;
    assert_eq!(steps(&trained.evaluations[0].history), [2]);
    Ok(())
}

fn evaluator(folder: &Folder, index: usize) -> Estimator {
    let text = format!(r#"{{"cluster": {{"chief": ["a:1"]}}, "task": {{"type": "evaluator", "index": {index}}}}}"#);
    estimator(folder, every(2).cluster(Cluster::parse(&text).unwrap()))
}

/// Case 110.
#[test]
fn an_evaluator_evaluates_what_others_train() -> Result<()> {
    let (folder, calls) = (Folder::new(), Recording::default());
    estimator(&folder, every(2)).train(TrainSpec::new(endless()).max_steps(6))?;
    let train = || TrainSpec::new(endless()).max_steps(6);
    let evaluate = || EvalSpec::new(rows()).start_delay_secs(0.0).exporter(calls.clone());
    let model = evaluator(&folder, 0);
    let trained = model.train_and_evaluate(train(), evaluate())?;
    assert_eq!(steps(&trained.evaluations[0].history), [6]);
    assert_eq!((trained.finished.global_step, trained.finished.n_steps), (6, 0));
    assert_eq!(*calls.0.borrow(), [(6, true, true)]);
    // The same again is not better, in another process neither.
    evaluator(&folder, 0).train_and_evaluate(train(), evaluate())?;
    assert_eq!(*calls.0.borrow(), [(6, true, true), (6, false, true)]);

    for (model, evaluate, text) in [
        (evaluator(&folder, 1), evaluate(), "evaluator 1"),
        (evaluator(&folder, 0), evaluate().every(Every::Steps(1)), "use throttle_secs"),
        (
            evaluator(&folder, 0),
            evaluate().early_stopping(EarlyStopping::lower_is_better("loss")),
            "stop_if_no_increase",
        ),
    ] {
        let error = model.train_and_evaluate(train(), evaluate).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert!(model.train(train()).unwrap_err().to_string().contains("does not train"));
    Ok(())
}

/// An evaluator in a thread beside a training in another: it sees the last checkpoint, whatever it
/// has missed.
#[test]
fn an_evaluator_beside_a_training() -> Result<()> {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        let training =
            scope.spawn(|| estimator(&folder, every(50)).train(TrainSpec::new(endless()).max_steps(2000)).unwrap());
        let evaluate = EvalSpec::new(rows()).start_delay_secs(0.0).throttle_secs(0.0);
        let trained = evaluator(&folder, 0).train_and_evaluate(TrainSpec::new(endless()).max_steps(2000), evaluate)?;
        training.join().unwrap();
        assert_eq!(trained.metrics().map(Metrics::global_step), Some(2000));
        assert!(steps(&trained.evaluations[0].history).is_sorted());
        Ok(())
    })
}

/// The steps of an evaluation's event file.
fn evaluated_steps(model: &Estimator, name: &str) -> Result<Vec<i64>> {
    let file = std::fs::read_dir(model.eval_dir(Some(name))).unwrap().next().unwrap().unwrap().path();
    let mut steps = Vec::new();
    for event in EventReader::open(file)? {
        let event = event?;
        if let Some(What::Summary(summary)) = &event.what
            && summary.value.iter().any(|v| v.tag == "mae" && matches!(v.value, Some(SummaryValue::SimpleValue(_))))
        {
            steps.push(event.step);
        }
    }
    Ok(steps)
}

/// Two inputs with periods of their own, in folders of their own, and checkpoints at other steps.
#[test]
fn several_inputs_by_steps_of_their_own() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(7));
    let trained = model.train_and_evaluate(
        TrainSpec::new(endless()).max_steps(10),
        [
            EvalSpec::new(rows()).name("near").every(Every::Steps(3)),
            EvalSpec::new(line(20).batch(5)).name("far").every(Every::Steps(4)).steps(2),
        ],
    )?;
    assert_eq!(steps(&trained.evaluation("near")?.history), [3, 6, 9, 10]);
    assert_eq!(steps(&trained.evaluation("far")?.history), [4, 8, 10]);
    assert!(trained.evaluation("nar").unwrap_err().to_string().contains("did you mean `near`?"));
    for (name, expected) in [("near", vec![3, 6, 9, 10]), ("far", vec![4, 8, 10])] {
        assert_eq!(evaluated_steps(&model, name)?, expected, "{name}");
    }
    let text = trained.to_string();
    assert!(text.contains("near: 4 evaluations, the last at step 10; best (lowest loss) at step 10: loss"), "{text}");
    Ok(())
}

/// A model whose metric is what the test wants: its evaluations come with the values of a list, one
/// for each step.
fn scripted(values: &'static [f32]) -> impl Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync + 'static {
    move |cx| {
        let w = cx.graph().variable("w", [], Initializer::Zeros);
        let y = cx.feature("x") * &w;
        let at = cx.global_step().cast(DType::I64).reshape([1]);
        let value = cx.graph().constant(values.to_vec()).gather(&at);
        let score = estimand::nn::metric::mean(&value, None);
        let spec = EstimatorSpec::new(cx).prediction("y", &y).loss(&(&y - cx.label()).square().mean());
        Ok(spec.optimizer(Optimizer::new(Sgd::default(), 0.01)).metric("score", score))
    }
}

/// Best and patience are those of all runs, also when the runs are stopped in between.
#[test]
fn the_best_and_early_stopping_survive_restarts() -> Result<()> {
    const SCORES: &[f32] = &[0.0, 0.5, 0.7, 0.6, 0.69, 0.65, 0.8, 0.0];
    let run = |folder: &Folder, pieces: &[u64]| -> Result<_> {
        let mut last = None;
        let calls = Recording::default();
        for &max_steps in pieces {
            // A process of its own for each.
            let model = Estimator::new(scripted(SCORES)).model_dir(folder.path()).config(every(1)).build()?;
            let stopping = EarlyStopping::higher_is_better("score").patience(3);
            let evaluate = EvalSpec::new(rows()).throttle_secs(0.0).early_stopping(stopping).exporter(calls.clone());
            last = Some(model.train_and_evaluate(TrainSpec::new(endless()).max_steps(max_steps), evaluate)?);
        }
        Ok((last.unwrap(), calls.0.take()))
    };
    let (at_once, calls) = run(&Folder::new(), &[7])?;
    assert_eq!(at_once.finished.global_step, 5);
    let why = "early stopping: `score` has not got better than 0.7 of step 2 in 3 evaluations";
    assert!(at_once.finished.reason.starts_with(why), "{}", at_once.finished.reason);
    // The last one is final although max_steps is not reached: nothing comes after it.
    assert_eq!(calls, [(1, true, false), (2, true, false), (3, false, false), (4, false, false), (5, false, true)]);
    assert_eq!(at_once.evaluations[0].best.as_ref().map(Metrics::global_step), Some(2));

    let folder = Folder::new();
    let (in_pieces, calls) = run(&folder, &[1, 3, 7])?;
    assert_eq!(in_pieces.finished, estimand::Finished { n_steps: 2, ..at_once.finished.clone() });
    assert_eq!(calls.iter().filter(|call| call.1).map(|call| call.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(in_pieces.evaluations[0].best, at_once.evaluations[0].best);

    // Whoever trains on after early stopping gets what was asked for (case 113, as decided):
    // patience begins anew.
    let (on, calls) = run(&folder, &[7])?;
    assert_eq!((on.finished.global_step, on.finished.n_steps), (7, 2));
    assert_eq!(calls, [(6, true, false), (7, false, true)]);
    Ok(())
}

/// Evaluations only look: with dropout, batch normalisation and shuffling, not a bit of the
/// training changes.
#[test]
fn evaluations_change_no_bit_of_a_training() -> Result<()> {
    let (alone, evaluated) = (Folder::new(), Folder::new());
    let model = |folder: &Folder| Estimator::new(network).model_dir(folder.path()).config(every(10)).build();
    let input = || points(50).repeat_forever().batch(8);
    model(&alone)?.train(TrainSpec::new(input()).max_steps(30))?;
    let sets = [
        EvalSpec::new(points(30).batch(7)).every(Every::Steps(4)),
        EvalSpec::new(points(20).batch(7)).name("other").throttle_secs(0.0).highest_is_best("accuracy"),
    ];
    model(&evaluated)?.train_and_evaluate(TrainSpec::new(input()).max_steps(30), sets)?;
    let (alone, evaluated) = (model(&alone)?, model(&evaluated)?);
    assert_eq!(alone.variable_names()?, evaluated.variable_names()?);
    for name in alone.variable_names()? {
        assert_eq!(alone.variable_value(&name)?, evaluated.variable_value(&name)?, "{name}");
    }
    Ok(())
}

#[test]
fn mistakes_are_told_before_the_first_step() {
    let folder = Folder::new();
    let model = estimator(&folder, every(1));
    let spec = || EvalSpec::new(rows());
    let empty = || line(10).take(0).batch(4);
    for (specs, text) in [
        (vec![], "was given nothing to evaluate on"),
        (vec![spec(), spec()], "two evaluations without a name"),
        (vec![spec().name("a"), spec().name("a")], "two evaluations named `a`"),
        (vec![spec().name("a/b")], "has no slashes"),
        (vec![spec().steps(0)], "the evaluation has 0 steps"),
        (vec![spec().checkpoint("x")], "call evaluate to evaluate one checkpoint"),
        (vec![spec().every(Every::Never)], "would never run"),
        (vec![spec().every(Every::Secs(f64::NAN))], "a period of NaN seconds"),
        (vec![spec().every(Every::Steps(1)).throttle_secs(1.0)], "remove one of the two"),
        (vec![spec().throttle_secs(-1.0)], "throttle_secs is -1"),
        (vec![spec().start_delay_secs(f64::INFINITY)], "start_delay_secs is inf"),
        (vec![EvalSpec::new(empty()).name("none")], "in evaluation `none`"),
        (vec![EvalSpec::new(empty())], "nothing to evaluate"),
        (vec![spec().highest_is_best("mea")], "did you mean `mae`?"),
        (vec![spec().early_stopping(EarlyStopping::lower_is_better("los"))], "did you mean `loss`?"),
        (vec![spec().early_stopping(EarlyStopping::lower_is_better("loss").patience(0))], "the patience is 0"),
        (
            vec![spec().name("a").exporter(Recording::default()), spec().name("b").exporter(Recording::default())],
            "that no other has",
        ),
    ] {
        let error = model.train_and_evaluate(TrainSpec::new(endless()).steps(1), specs).unwrap_err().to_string();
        assert!(error.contains(text), "`{text}` is not in: {error}");
    }
    for (spec, text) in [
        (spec().exporter(Recording::default()), "exporters"),
        (spec().every(Every::Steps(1)), "every"),
        (spec().throttle_secs(1.0), "throttle_secs"),
        (spec().early_stopping(EarlyStopping::lower_is_better("loss")), "early_stopping"),
    ] {
        let error = model.evaluate(spec).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("call train_and_evaluate"), "{error}");
    }
}

/// An evaluation that fails ends the training, and the checkpoint that it was made for is written
/// all the same.
#[test]
fn an_evaluation_that_fails_loses_nothing() -> Result<()> {
    let folder = Folder::new();
    let opened = Arc::new(AtomicUsize::new(0));
    let input = {
        let opened = opened.clone();
        move |_: &InputFnContext<'_>| match opened.fetch_add(1, Ordering::Relaxed) {
            // The look at its first batch, and the first evaluation.
            0 | 1 => Ok(rows()),
            _ => Err(Error::config("the disk of the test set is gone")),
        }
    };
    let model = estimator(&folder, every(2));
    let evaluate = EvalSpec::new(input).name("test").throttle_secs(0.0);
    let error = model.train_and_evaluate(TrainSpec::new(endless()).max_steps(6), evaluate).unwrap_err().to_string();
    for part in ["the disk of the test set is gone", "in evaluation `test`", "before_save of hook `evaluations`"] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert_eq!(folder.steps(), [0, 2, 4]);
    assert_eq!(model.train(TrainSpec::new(endless()).max_steps(6))?.n_steps, 2);
    Ok(())
}

/// An evaluation between two steps reads the variables of the training where they are: it may not
/// change them.
#[test]
fn an_evaluation_cannot_change_the_variables_of_a_training() -> Result<()> {
    struct Meddling;
    impl Hook for Meddling {
        fn name(&self) -> &str {
            "meddling"
        }
        fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
            let names = cx.session().variable_names();
            let name = names.iter().find(|name| *name != "global_step").unwrap();
            let value = cx.session().value(name)?;
            cx.session().set_value(name, &value)
        }
    }
    let folder = Folder::new();
    let evaluate = EvalSpec::new(rows()).throttle_secs(0.0).hook(Meddling);
    let error = estimator(&folder, every(2))
        .train_and_evaluate(TrainSpec::new(endless()).max_steps(4), evaluate)
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot set variables") && error.contains("hook `meddling`"), "{error}");
    // An evaluation of a checkpoint has variables of its own.
    estimator(&folder, every(2)).evaluate(EvalSpec::new(rows()).hook(Meddling))?;
    Ok(())
}

/// A disk that has no room before a checkpoint is saved: a hook as that of the CSV log finds out.
struct FullDisk {
    at: u64,
}

impl Hook for FullDisk {
    fn name(&self) -> &str {
        "full_disk"
    }

    fn before_save(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match cx.global_step() == self.at {
            true => Err(Error::config("no space left")),
            false => Ok(()),
        }
    }
}

/// The hooks after the one that fails still see the checkpoint: the next run finds its evaluation
/// in it, and ends in the bytes of a run that nothing disturbed.
#[test]
fn a_hook_that_fails_before_a_checkpoint_costs_no_evaluation() -> Result<()> {
    for at in [2, 4] {
        let (disturbed, quiet) = (Folder::new(), Folder::new());
        let train = || TrainSpec::new(endless()).max_steps(4);
        let evaluate = || EvalSpec::new(rows()).throttle_secs(0.0);
        let error = estimator(&disturbed, every(2))
            .train_and_evaluate(train().hook(FullDisk { at }), evaluate())
            .unwrap_err()
            .to_string();
        assert!(error.contains("no space left") && error.contains("hook `full_disk`"), "{error}");
        let after = estimator(&disturbed, every(2)).train_and_evaluate(train(), evaluate())?;
        let expected = estimator(&quiet, every(2)).train_and_evaluate(train(), evaluate())?;
        assert_eq!(after.metrics(), expected.metrics(), "step {at}");
        assert_eq!(after.evaluations[0].best, expected.evaluations[0].best, "step {at}");
        let read = |folder: &Folder| std::fs::read(folder.path().join("model.ckpt-4.data-00000-of-00001")).unwrap();
        assert!(read(&disturbed) == read(&quiet), "step {at}");
        let curve = |folder: &Folder| read_eval_metrics(folder.path().join("eval"));
        assert_eq!(curve(&disturbed)?, curve(&quiet)?, "step {at}");
    }
    Ok(())
}

/// An exporter that fails ends the training; what was learnt is safe.
#[test]
fn an_exporter_that_fails_is_named() -> Result<()> {
    struct Failing;
    impl Exporter for Failing {
        fn name(&self) -> &str {
            "failing"
        }
        fn export(&mut self, _export: &Export<'_>) -> Result<Option<PathBuf>> {
            Err(Error::config("no room"))
        }
    }
    let folder = Folder::new();
    let model = estimator(&folder, every(2));
    let evaluate = EvalSpec::new(rows()).exporter(Failing);
    let error = model.train_and_evaluate(TrainSpec::new(endless()).max_steps(6), evaluate).unwrap_err().to_string();
    assert!(error.contains("no room") && error.contains("in exporter `failing` at step 2"), "{error}");
    assert_eq!(folder.steps(), [0, 2]);
    let trained = model.train_and_evaluate(TrainSpec::new(endless()).max_steps(6), rows())?;
    assert_eq!(trained.finished.n_steps, 4);
    Ok(())
}

/// As TensorFlow's does: 10 steps, every 4.
#[test]
fn in_memory_at_the_beginning_every_n_steps_and_at_the_end() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(0));
    let hook = InMemoryEvaluatorHook::new(&model, EvalSpec::new(rows()).name("memory")).every_n_iter(4);
    model.train(TrainSpec::new(endless()).steps(10).hook(hook))?;
    assert_eq!(evaluated_steps(&model, "memory")?, [0, 4, 8, 10]);

    let spec = || EvalSpec::new(rows());
    for (hook, text) in [
        (InMemoryEvaluatorHook::new(&model, spec()).every_n_iter(0), "every_n_iter is 0"),
        (InMemoryEvaluatorHook::new(&model, spec().every(Every::Steps(3))), "every_n_iter"),
        (InMemoryEvaluatorHook::new(&model, spec().exporter(Recording::default())), "train_and_evaluate"),
        (InMemoryEvaluatorHook::new(&model, spec().steps(0)), "the evaluation has 0 steps"),
    ] {
        let error = model.train(TrainSpec::new(endless()).steps(1).hook(hook)).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("hook `in_memory_evaluator`"), "{error}");
    }
    Ok(())
}
