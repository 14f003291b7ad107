//! Predictions: row by row, by batch, with hooks, and from a model in memory.

use estimand::prelude::*;

use crate::hooks::log_lines::logged;
use crate::models::{Folder, line, linear};
use crate::recorder::{Log, Recorder};

fn estimator(folder: &Folder) -> Estimator {
    Estimator::new(linear).model_dir(folder.path()).build().unwrap()
}

/// Case 98, and keys.
#[test]
fn predictions_by_row_and_by_batch() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    let data = line(5).batch(2);
    let rows: Vec<_> = model.predict(PredictSpec::new(&data).untrained()).collect::<Result<_>>()?;
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0].keys().collect::<Vec<_>>(), ["y", "twice"]);
    let batches: Vec<_> = model.predict(PredictSpec::new(&data).untrained().by_batch(true)).collect::<Result<_>>()?;
    assert_eq!(batches.iter().map(|b| b.f32("y").unwrap().len()).collect::<Vec<_>>(), [2, 2, 1]);
    let some: Vec<_> =
        model.predict(PredictSpec::new(&data).untrained().keys(["twice", "unknown"])).collect::<Result<_>>()?;
    assert_eq!(some[0].keys().collect::<Vec<_>>(), ["twice"]);
    let error =
        model.predict(PredictSpec::new(&data).untrained().keys(["thrice"])).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("thrice") && error.contains("it has y, twice"), "{error}");

    let uneven = |cx: &ModelFnContext<'_>| {
        let x = cx.feature("x");
        Ok(EstimatorSpec::new(cx).prediction("x", &x).prediction("mean", &x.mean().reshape([1])))
    };
    let model = Estimator::new(uneven).model_dir(folder.path().join("uneven")).build()?;
    let error = model.predict(&data).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("`mean`") && error.contains("by_batch(true)"), "{error}");
    assert_eq!(model.predict(PredictSpec::new(&data).by_batch(true)).count(), 3);
    Ok(())
}

/// A predictor stays in memory: no file of the model is needed any more.
#[test]
fn a_predictor_needs_no_files() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    let data = line(8).repeat(100).batch(8);
    model.train(&data)?;
    let sample = data.iter().next().unwrap()?;
    let predictor = model.predictor(&sample)?;
    let expected: Vec<_> = model.predict(line(8).batch(8)).collect::<Result<_>>()?;
    std::fs::remove_dir_all(folder.path()).unwrap();
    let found = predictor.predict(&sample)?;
    assert_eq!(found.f32("y")?[3], expected[3].f32("y")?[0]);
    assert!((expected[7].f32("y")?[0] - 3.0 * 7.0 / 8.0).abs() < 1e-2);
    assert_eq!(predictor.global_step(), 100);
    Ok(())
}

/// Eight threads ask one model at once, and clones of it: each gets the bits that one thread gets.
#[test]
fn threads_share_a_predictor() -> Result<()> {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let folder = Folder::new();
    let model = estimator(&folder);
    let data = line(8).repeat(10).batch(8);
    model.train(&data)?;
    let sample = data.iter().next().unwrap()?;
    let predictor = model.predictor(&sample)?;
    shared(&predictor);
    let alone = predictor.predict(&sample)?;
    std::thread::scope(|threads| {
        for _ in 0..8 {
            let clone = predictor.clone();
            threads.spawn(|| {
                let clone = clone;
                for _ in 0..100 {
                    assert_eq!(predictor.predict(&sample).unwrap(), alone);
                    assert_eq!(clone.predict(&sample).unwrap(), alone);
                }
            });
        }
    });
    // A training that goes on does not change it.
    model.train(TrainSpec::new(&data).steps(5))?;
    assert_eq!(predictor.predict(&sample)?, alone);
    assert_ne!(model.predictor(&sample)?.predict(&sample)?, alone);
    Ok(())
}

/// Hooks of the user come before those of the model, each through all of its phases in every call;
/// a hook can end the predictions.
#[test]
fn hooks_of_prediction() -> Result<()> {
    let folder = Folder::new();
    let data = line(5).batch(2);
    let log = Log::default();
    let predict =
        |spec: PredictSpec<'_>| estimator(&folder).predict(spec.untrained().hook(Recorder::new(&log))).count();
    assert_eq!(predict(PredictSpec::new(&data)), 5);
    let batch = |rows| ["before".to_string(), format!("after 0 Some({rows})")];
    let all = |batches: &[[String; 2]]| {
        [&["begin".to_string(), "created 0 None".to_string()], batches.as_flattened()].concat()
    };
    let ended = |mut notes: Vec<String>| {
        notes.extend(["before".to_string(), "end".to_string()]);
        notes
    };
    assert_eq!(log.0.take(), ended(all(&[batch(2), batch(2), batch(1)])));
    let model = estimator(&folder);
    assert_eq!(
        model
            .predict(PredictSpec::new(&data).untrained().keys(["twice"]).hook(Recorder::new(&log)))
            .next()
            .unwrap()?
            .keys()
            .len(),
        1
    );
    assert_eq!(log.0.take(), all(&[batch(2)]), "whoever stops asking gets no end");

    // Both steps of an untrained model are 0: the first batch asks for the end.
    let stopping = Recorder { stop_at: Some(0), ..Recorder::new(&log) };
    assert_eq!(model.predict(PredictSpec::new(&data).untrained().by_batch(true).hook(stopping)).count(), 1);
    assert_eq!(log.0.take().last().unwrap(), "end");
    let failing = Recorder { fail_at: Some(0), ..Recorder::new(&log) };
    let error =
        model.predict(PredictSpec::new(&data).untrained().hook(failing)).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("out of luck") && error.contains("after_run of hook `recorder`"), "{error}");
    Ok(())
}

/// A model's own hooks are made with the model: a second call has new ones.
#[test]
fn hooks_of_a_model_for_prediction() -> Result<()> {
    thread_local!(static LOG: Log = Log::default());
    let hooked = |cx: &ModelFnContext<'_>| {
        Ok(linear(cx)?.initial_value("w", Array::from(0.0f32)).prediction_hook(LOG.with(Recorder::new)))
    };
    let folder = Folder::new();
    let model = Estimator::new(hooked).model_dir(folder.path()).build()?;
    let data = line(2).batch(2);
    for _ in 0..2 {
        assert_eq!(model.predict(&data).count(), 2);
        let expected = ["begin", "created 0 None", "before", "after 0 Some(2)", "before", "end"];
        assert_eq!(LOG.with(|log| log.0.take()), expected);
    }
    model.predictor(&data.iter().next().unwrap()?)?;
    assert!(LOG.with(|log| log.0.take()).is_empty(), "a predictor has no hooks");
    Ok(())
}

/// A model without a checkpoint predicts with the values that training would begin with.
#[test]
fn initial_values_before_training() -> Result<()> {
    let doubling = |cx: &ModelFnContext<'_>| Ok(linear(cx)?.initial_value("w", Array::from(2.0f32)));
    let folder = Folder::new();
    let model = Estimator::new(doubling).model_dir(folder.path()).build()?;
    let data = line(2).batch(2);
    assert_eq!(model.predict(&data).nth(1).unwrap()?.f32("y")?, [1.0]);
    // |2 x - 3 x| of 0 and 1/2.
    assert_eq!(model.evaluate(&data)?["mae"], 0.25);
    Ok(())
}

/// Initial weights are no answer, unless somebody has chosen them. TF: it predicts with them. (case
/// 88)
#[test]
fn a_model_that_was_never_trained_does_not_predict() -> Result<()> {
    let (folder, other) = (Folder::new(), Folder::new());
    let (model, data) = (estimator(&folder), line(4).batch(4));
    let sample = data.iter().next().unwrap()?;
    let asked = model.predict(&data).next().unwrap().unwrap_err().to_string();
    for error in [asked, model.predictor(&sample).err().unwrap().to_string()] {
        for part in ["never trained", &folder.path().display().to_string(), "model_dir", "PredictSpec::untrained()"] {
            assert!(error.contains(part), "`{part}` is not in {error}");
        }
    }
    assert_eq!(model.predict(PredictSpec::new(&data).untrained()).next().unwrap()?.f32("y")?, [0.0]);
    // The model in memory was allowed; this call is not.
    assert!(model.predict(&data).next().unwrap().is_err());

    let (metrics, lines) = logged(|| model.evaluate(&data));
    assert_eq!(metrics?.global_step(), 0);
    let warned = |lines: &[String]| lines.iter().filter(|line| line.starts_with("WARN: The model was never")).count();
    assert_eq!(warned(&lines), 1, "{lines:?}");

    model.train(TrainSpec::new(line(4).repeat_forever().batch(4)).steps(3))?;
    let weight = model.predict(&data).nth(1).unwrap()?.f32("y")?[0];
    // The weights of a warm start count.
    let warm = Estimator::new(linear).model_dir(other.path()).warm_start_from(folder.path()).build()?;
    assert_eq!(warm.predict(&data).nth(1).unwrap()?.f32("y")?, [weight]);
    assert_eq!(warm.predictor(&sample)?.predict(&sample)?.f32("y")?[1], weight);
    let (metrics, lines) = logged(|| warm.evaluate(&data));
    assert_eq!((metrics?.global_step(), warned(&lines)), (0, 0), "{lines:?}");
    Ok(())
}

/// `linear` predicts `y` and `twice`. The file has the key and the label of each row before them.
#[test]
fn predictions_are_written_with_their_keys() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    model.train(line(8).repeat(100).batch(8))?;
    let ids = Array::from_strings([5], ["a", "b, c", "d", "e", "f"])?;
    let x: Vec<f32> = (0..5).map(|i| i as f32 / 8.0).collect();
    let x = Array::from(x);
    let data =
        Dataset::from_arrays([("id", ids.clone()), ("x", x.clone()), ("truth", x.clone())]).label("truth").batch(5);
    let spec = || PredictSpec::new(&data).forward(["id", "truth"]).keys(["y"]);

    let rows: Vec<_> = model.predict(spec()).collect::<Result<_>>()?;
    assert_eq!(rows[1].keys().collect::<Vec<_>>(), ["id", "truth", "y"]);
    assert_eq!((rows[1].text("id")?, rows[1].f32("truth")?), ("b, c", &[0.125f32][..]));
    let path = folder.path().join("predictions.csv");
    let written = model.predict(spec()).write_csv(&path)?;
    assert_eq!(written.n_rows, 5);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut expected = "id,truth,y\n".to_string();
    for (row, id) in rows.iter().zip(["a", "\"b, c\"", "d", "e", "f"]) {
        expected += &format!("{id},{:?},{:?}\n", row.f32("truth")?[0], row.f32("y")?[0]);
    }
    assert_eq!(text, expected);
    // The same rows in other batches, in another format, read by a dataset.
    let halves = Dataset::from_arrays([("id", ids), ("x", x)]).batch(2);
    let batched = model.predict(PredictSpec::new(&halves).forward(["id"]).keys(["y"])).dataset()?;
    let again = folder.path().join("predictions.tfrecord");
    assert_eq!(batched.write_tfrecord(&again)?.n_rows, 5);
    let features = [("id", FeatureSpec::dense(DType::Str, [])), ("y", FeatureSpec::dense(DType::F32, []))];
    let read = Dataset::from_tfrecord(&again, features).batch(5).iter().next().unwrap()?;
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let ours: Vec<f32> = rows.iter().map(|row| row.f32("y").unwrap()[0]).collect();
    let estimand::tensor::Feature::Dense(y) = read.feature("y")? else { panic!("dense") };
    assert_eq!(bits(y.as_slice::<f32>()?), bits(&ours));
    Ok(())
}

/// A classifier's predictions have one or several numbers per row: `[n, 1]` is one column.
#[test]
fn columns_of_a_classifier() -> Result<()> {
    let folder = Folder::new();
    let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
    let data = Dataset::from_arrays(rows).label("y");
    let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.path()).build()?;
    model.train(data.repeat(200).batch(4))?;
    let path = folder.path().join("predictions.csv");
    model.predict(PredictSpec::new(data.batch(3)).keys(["classes", "class_ids", "probabilities"])).write_csv(&path)?;
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("probabilities_0,probabilities_1,class_ids,classes"));
    let ends: Vec<&str> = lines.map(|line| line.splitn(3, ',').nth(2).unwrap()).collect();
    assert_eq!(ends, ["0,0", "0,0", "1,1", "1,1"]);
    Ok(())
}

#[test]
fn forwarding_what_cannot_be_forwarded() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    model.train(line(8).repeat(2).batch(8))?;
    let data = line(8).batch(4);
    let error = |spec: PredictSpec<'_>| model.predict(spec).next().unwrap().unwrap_err().to_string();
    let missing = error(PredictSpec::new(&data).forward(["xx"]));
    assert!(missing.starts_with("there is no feature or label `xx`\n  in PredictSpec::forward"), "{missing}");
    let twice = Dataset::from_arrays([("x", Array::from([1f32])), ("twice", Array::from([1f32]))]).batch(1);
    let taken = error(PredictSpec::new(&twice).forward(["twice"]));
    assert!(taken.contains("has a prediction `twice`") && taken.contains("keys(..)"), "{taken}");
    assert!(model.predict(PredictSpec::new(&twice).forward(["twice"]).keys(["y"])).next().unwrap().is_ok());
    // An error leaves no file behind.
    let path = folder.path().join("predictions.csv");
    assert!(model.predict(PredictSpec::new(&data).forward(["xx"])).write_csv(&path).is_err());
    assert!(!path.exists());
    let log = Log::default();
    let hooked = model.predict(PredictSpec::new(&data).hook(Recorder::new(&log))).dataset();
    assert!(hooked.unwrap_err().to_string().contains("with hooks cannot be a dataset"));
    Ok(())
}
