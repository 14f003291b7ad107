//! Trainings with everything that TensorBoard shows, for oracles/live/tensorboard_pages.py.
//!
//! `tensorboard_runs FOLDER` trains two models with parameters of their own in `FOLDER/slow` and
//! `FOLDER/quick`, 20 steps each, and evaluates them.

use estimand::nn::metric;
use estimand::prelude::*;

/// 40 pictures of 4 x 4, every second one brighter, which is its label.
fn pictures() -> Result<Dataset> {
    let brightness = |i: usize| ((i * 37 % 101) as f32 / 101.0 + if (i / 16) % 2 == 1 { 0.5 } else { 0.0 }) / 1.5;
    let pixels = Array::from_vec([40, 4, 4, 1], (0..40 * 16).map(brightness).collect())?;
    let labels: Vec<i64> = (0..40).map(|i| i % 2).collect();
    Ok(Dataset::from_arrays([("picture", pixels), ("bright", Array::from(labels))]).label("bright"))
}

fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let picture = cx.feature("picture");
    cx.summary().image("picture", &picture, 3);
    let hidden =
        Dense::new(cx.params().usize("hidden_units")?).relu().name("hidden").apply(&Flatten::new().apply(&picture));
    cx.summary().histogram("hidden", &hidden).scalar("hidden/mean", &hidden.mean());
    let logits = Dense::new(1).name("logits").apply(&hidden);
    let probability = logits.sigmoid().reshape([-1]);
    let spec = EstimatorSpec::new(cx).prediction("probability", &probability);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let label = cx.label();
    cx.summary().text("label", &label.as_string());
    cx.summary().pr_curve("bright", &label, &probability, 11, None);
    let loss = SigmoidCrossEntropy::new().apply(&label.cast(DType::F32).reshape([-1, 1]), &logits);
    let accuracy = metric::binary_accuracy(&label, &probability, 0.5, None);
    let rate = cx.params().f64("learning_rate")?;
    Ok(spec.loss(&loss).metric("accuracy", accuracy).optimizer(Optimizer::new(Adam::default(), rate)))
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("in which folder?"))?;
    for (name, rate, units, optimizer) in [("slow", 0.001, 3, "adam"), ("quick", 0.1, 8, "adam")] {
        let params = HParams::new().set("learning_rate", rate).set("hidden_units", units).set("optimizer", optimizer);
        let config = RunConfig::new().tf_random_seed(1).save_summary_steps(5).log_step_count_steps(Some(5));
        let estimator =
            Estimator::new(model).params(params).config(config).model_dir(format!("{folder}/{name}")).build()?;
        let train = pictures()?.repeat_forever().batch(8).drop_remainder();
        for steps in [10, 10] {
            estimator.train(TrainSpec::new(&train).steps(steps))?;
            estimator.evaluate(pictures()?.batch(16))?;
        }
    }
    Ok(())
}
