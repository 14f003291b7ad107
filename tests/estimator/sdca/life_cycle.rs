//! Trainings with `LinearSdca` that are resumed, logged, weighted and exported.

use std::path::Path;

use estimand::events::{EventReader, SummaryValue, What};
use estimand::export::{ExportAllSpec, Receiver, SupervisedReceiver};
use estimand::graph::checkpoint::BundleReader;
use estimand::graph::saved_model::SavedModel;
use estimand::head::LogisticRegressionHead;
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;
use estimand::premade::{LinearEstimator, LinearSdca, SdcaLoss};
use estimand_fixture::cases_of;

use super::{GAP, WEIGHTS, columns, model, rows};
use crate::fixture::array;
use crate::models::Folder;

fn state(folder: &Path, step: u64) -> Result<Array> {
    BundleReader::open(folder.join(format!("model.ckpt-{step}")))?.read("_estimand/hook/linear_sdca")
}

/// Fails after a step, as a training does that is killed: without a last checkpoint.
struct FailsAt(u64);

impl Hook for FailsAt {
    fn name(&self) -> &str {
        "fails"
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match cx.global_step() == self.0 {
            true => Err(Error::data("it was killed")),
            false => Ok(()),
        }
    }
}

/// On any number of threads, in one call or in several, killed, and from the folder alone.
#[test]
fn a_training_resumes_with_the_same_bits() -> Result<()> {
    let case = &cases_of("sdca", "data")[1];
    let data = rows(case, "number").shuffle(100, 5).repeat_forever().batch(32);
    for adaptive in [false, true] {
        let mut all = Vec::new();
        let ways: [(&[u64], usize, bool); 4] =
            [(&[60], 1, false), (&[60], 4, false), (&[7, 31, 60], 2, false), (&[20, 60], 1, true)];
        for (parts, n_threads, opens) in ways {
            let sdca = LinearSdca::new("id").symmetric_l1_regularization(0.5).symmetric_l2_regularization(2.0);
            let sdca = if adaptive { sdca.adaptive() } else { sdca };
            let folder = Folder::new();
            let config = RunConfig::new().tf_random_seed(9).threads(n_threads).save_checkpoints(Every::Steps(10));
            let model =
                LinearRegressor::new(columns(case)).optimizer(&sdca).config(config).model_dir(folder.path()).build()?;
            for (i, part) in parts.iter().enumerate() {
                let opened = if opens && i > 0 { Some(Estimator::open(folder.path())?) } else { None };
                let model = opened.as_ref().unwrap_or(&model);
                if opens && i > 0 {
                    // The checkpoint of step 40 is the last one before.
                    let killed = model.train(TrainSpec::new(&data).max_steps(*part).hook(FailsAt(47)));
                    assert!(killed.unwrap_err().to_string().contains("it was killed"));
                }
                model.train(TrainSpec::new(&data).max_steps(*part))?;
            }
            let weights = WEIGHTS.map(|name| model.variable_value(name).unwrap());
            all.push((weights, state(folder.path(), 60)?));
        }
        for other in &all[1..] {
            assert_eq!(*other, all[0]);
        }
    }
    Ok(())
}

/// Weights of classes are weights of examples.
#[test]
fn classes_have_weights() -> Result<()> {
    let case = &cases_of("sdca", "data")[2];
    let n = case.array("x").dims[0];
    let classes: Vec<f32> = case.numbers("class");
    let by_class: Vec<f32> = classes.iter().map(|class| if *class == 1.0 { 3.0 } else { 0.5 }).collect();
    let batch = rows(case, "class").batch(n).iter().next().unwrap()?;
    let (x, bin, id) = (batch.feature("x")?.dense()?, batch.feature("bin")?.dense()?, batch.feature("id")?.dense()?);
    let features = [("x", x.clone()), ("bin", bin.clone()), ("id", id.clone()), ("weight", Array::from(by_class))];
    let data = Dataset::from_arrays([&features[..], &[("y", Array::from(classes))]].concat()).label("y");
    let sdca = LinearSdca::new("id");
    let classifier =
        || LinearClassifier::new(columns(case)).optimizer(&sdca).config(RunConfig::new().tf_random_seed(1));
    let (one, two) = (Folder::new(), Folder::new());
    let one = classifier().class_weights([0.5, 3.0]).model_dir(one.path()).build()?;
    let two = classifier().weight_column("weight").model_dir(two.path()).build()?;
    for model in [&one, &two] {
        model.train(TrainSpec::new(data.repeat_forever().batch(n)).steps(20))?;
    }
    assert_eq!(one.variable_value(WEIGHTS[1])?, two.variable_value(WEIGHTS[1])?);
    assert!(two.evaluate(data.batch(n))?["auc"] > 0.9);
    Ok(())
}

/// Labels may be probabilities with a head that takes them. Those of two classes train the same
/// weights as a classifier.
#[test]
fn probabilities_are_labels() -> Result<()> {
    let case = &cases_of("sdca", "data")[0];
    let n = case.array("x").dims[0];
    let sdca = LinearSdca::new("id");
    let config = || RunConfig::new().tf_random_seed(3);
    let logistic = |folder: &Folder| {
        let model = LinearEstimator::new(LogisticRegressionHead::new(), columns(case)).optimizer(&sdca);
        model.config(config()).model_dir(folder.path()).build()
    };
    let (one, two, three) = (Folder::new(), Folder::new(), Folder::new());
    let classes = rows(case, "class").repeat_forever().batch(n);
    let (one, two) = (model(case, SdcaLoss::Logistic, &sdca, false, one.path())?, logistic(&two)?);
    for model in [&one, &two] {
        model.train(TrainSpec::new(&classes).steps(10))?;
    }
    assert_eq!(one.variable_value(WEIGHTS[1])?, two.variable_value(WEIGHTS[1])?);

    let shares: Vec<f32> = case.numbers::<f32>("class").iter().map(|class| 0.3 + 0.5 * class).collect();
    let feature = |name: &'static str| (name, array(&case.array(name)));
    let ids = Array::from((0..n as i64).collect::<Vec<_>>());
    let data = Dataset::from_arrays([("id", ids), feature("x"), feature("bin"), ("y", Array::from(shares))]).label("y");
    let model = logistic(&three)?;
    model.train(TrainSpec::new(data.repeat_forever().batch(n)).steps(600))?;
    assert!(sdca.progress().unwrap().duality_gap < GAP, "{:?}", sdca.progress());
    let (mean, means) = (model.evaluate(data.batch(n))?, ["prediction/mean", "label/mean"]);
    assert!((mean[means[0]] - mean[means[1]]).abs() < 0.01, "{mean:?}");
    Ok(())
}

#[test]
fn the_gap_is_logged_and_written() -> Result<()> {
    let case = &cases_of("sdca", "data")[0];
    let n = case.array("x").dims[0];
    let (sdca, folder) = (LinearSdca::new("id"), Folder::new());
    assert_eq!(sdca.progress(), None);
    let config = RunConfig::new().log_step_count_steps(10).save_summary_steps(10);
    let model =
        LinearClassifier::new(columns(case)).optimizer(&sdca).config(config).model_dir(folder.path()).build()?;
    let data = rows(case, "class").repeat_forever().batch(n);
    let (finished, lines) = crate::hooks::log_lines::logged(|| model.train(TrainSpec::new(&data).steps(25)));
    assert_eq!(finished?.n_steps, 25);
    let gaps: Vec<&String> = lines.iter().filter(|line| line.contains("duality gap = ")).collect();
    assert_eq!(gaps.len(), 3, "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("symmetric_l2_regularization")), "{lines:?}");
    assert!(gaps[2].contains(&format!("examples = {n}, step = 25")), "{gaps:?}");
    let file = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.to_string_lossy().contains("tfevents")).unwrap();
    let mut written = Vec::new();
    for event in EventReader::open(file)? {
        let event = event?;
        if let Some(What::Summary(summary)) = event.what {
            for value in summary.value.into_iter().filter(|value| value.tag == "approximate_duality_gap") {
                if let Some(SummaryValue::SimpleValue(gap)) = value.value {
                    written.push((event.step, gap));
                }
            }
        }
    }
    assert_eq!(written.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [10, 20, 25]);
    assert!(written.is_sorted_by(|a, b| a.1 >= b.1), "{written:?}");
    assert_eq!(written[2].1, sdca.progress().unwrap().duality_gap as f32);
    // TensorFlow warns of little regularization.
    let (little, folder) = (LinearSdca::new("id").symmetric_l2_regularization(0.5), Folder::new());
    let model = LinearClassifier::new(columns(case)).optimizer(little).model_dir(folder.path()).build()?;
    let (_, lines) = crate::hooks::log_lines::logged(|| model.train(TrainSpec::new(&data).steps(1)));
    assert!(lines.iter().any(|line| line.contains("symmetric_l2_regularization is 0.5")), "{lines:?}");
    Ok(())
}

/// Another L2 goes on with the same dual variables, another loss or optimizer does not.
#[test]
fn a_folder_of_another_training_is_checked() -> Result<()> {
    let case = &cases_of("sdca", "data")[0];
    let n = case.array("x").dims[0];
    let data = rows(case, "class").repeat_forever().batch(n);
    let folder = Folder::new();
    let model = |sdca: &LinearSdca| model(case, SdcaLoss::Logistic, sdca, false, folder.path());
    model(&LinearSdca::new("id"))?.train(TrainSpec::new(&data).steps(30))?;
    let other = LinearSdca::new("id").symmetric_l2_regularization(4.0);
    model(&other)?.train(TrainSpec::new(&data).steps(200))?;
    assert!(other.progress().unwrap().duality_gap < GAP, "{:?}", other.progress());
    let hinge = LinearSdca::new("id").loss(SdcaLoss::Hinge);
    let error = model(&hinge)?.train(TrainSpec::new(&data).steps(1)).unwrap_err().to_string();
    assert!(error.contains("trained with logistic_loss, the program has hinge_loss"), "{error}");

    let gradients = Folder::new();
    let ftrl = LinearClassifier::new(columns(case)).model_dir(gradients.path()).build()?;
    ftrl.train(TrainSpec::new(&data).steps(3))?;
    let sdca = LinearSdca::new("id");
    let again = LinearClassifier::new(columns(case)).optimizer(&sdca).model_dir(gradients.path()).build()?;
    let error = again.train(TrainSpec::new(&data).steps(1)).unwrap_err().to_string();
    assert!(error.contains("LinearSdca begins with"), "{error}");
    let warm = Folder::new();
    let warm =
        LinearClassifier::new(columns(case)).optimizer(&sdca).model_dir(warm.path()).warm_start_from(gradients.path());
    let error = warm.build()?.train(TrainSpec::new(&data).steps(1)).unwrap_err().to_string();
    assert!(error.contains("without a warm start"), "{error}");
    Ok(())
}

/// Predictions and exports need no ids.
#[test]
fn an_export_is_a_plain_linear_model() -> Result<()> {
    let case = &cases_of("sdca", "data")[0];
    let n = case.array("x").dims[0];
    let (sdca, folder) = (LinearSdca::new("id"), Folder::new());
    let model = model(case, SdcaLoss::Logistic, &sdca, false, folder.path())?;
    model.train(TrainSpec::new(rows(case, "class").repeat_forever().batch(n)).steps(20))?;
    let feature = |name: &'static str| (name, array(&case.array(name)));
    let data = Dataset::from_arrays([feature("x"), feature("bin")]);
    let exported = model.export_saved_model(folder.path().join("export"), Receiver::like(&data)?)?;
    let served = SavedModel::open(&exported)?;
    let keys: Vec<&str> = served.signatures().map(|(key, _)| key).collect();
    assert_eq!(keys, ["predict", "serving_default"]);
    let answers = served.signature("predict")?.run(&[feature("x"), feature("bin")])?;
    let batch = data.batch(n).iter().next().unwrap()?;
    let expected = model.predictor(&batch)?.predict(&batch)?;
    assert_eq!(answers["logits"].to_f64_vec()?, expected.array("logits")?.to_f64_vec()?);
    assert_eq!(model.report()?.runs()[0].n_steps(), 20);
    // A training graph would not train.
    let receiver = SupervisedReceiver::like(&rows(case, "class"))?;
    let training = ExportAllSpec::new().train(receiver);
    let error = model.experimental_export_all_saved_models(folder.path().join("all"), training).unwrap_err();
    assert!(error.to_string().contains("LinearSdca trains in a hook"), "{error}");
    Ok(())
}
