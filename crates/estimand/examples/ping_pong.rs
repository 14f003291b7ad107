//! Our side of a training that TensorFlow's Estimator and ours do in turns
//! (oracles/live/ping_pong.py).
//!
//! `OPTIMIZER FOLDER DATA.npz MAX_STEPS` trains the classifier of that program in a model folder
//! until the step, and prints the loss over all rows.

use estimand::console::{self, Level};
use estimand::prelude::*;
use estimand::update::{Adadelta, Adamax, Nadam};

fn optimizer(name: &str) -> Result<Optimizer> {
    Ok(match name {
        "SGD" => Optimizer::new(Sgd::default().momentum(0.9).nesterov(true), 0.05),
        "Adagrad" => Optimizer::new(Adagrad::default(), 0.05),
        "Adam" => Optimizer::new(Adam::default().amsgrad(true), 0.01),
        "Ftrl" => Optimizer::new(Ftrl::default().l1(0.01).l2(0.02).beta(0.1), 0.1),
        "RMSprop" => Optimizer::new(RmsProp::default().momentum(0.5).centered(true), 0.01),
        "Adadelta" => Optimizer::new(Adadelta::default(), 0.5),
        "Adamax" => Optimizer::new(Adamax::default(), 0.01),
        "Nadam" => Optimizer::new(Nadam::default(), 0.01),
        "Schedule" => {
            let rate = Schedule::Exponential { initial: 0.1, decay_steps: 7, decay_rate: 0.5, staircase: true };
            Optimizer::new(Sgd::default(), rate)
        }
        _ => return Err(Error::config(format!("no optimizer `{name}`"))),
    })
}

fn classifier(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let hidden = Dense::new(8).activation(Activation::Tanh).apply(&cx.feature("x"));
    let hidden = BatchNorm::new().momentum(0.9).apply(&hidden);
    let logits = Dense::new(3).apply(&hidden);
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(optimizer(cx.params().str("optimizer")?)?))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [optimizer, folder, data, max_steps] = &arguments[..] else {
        return Err(Error::config("expected OPTIMIZER FOLDER DATA.npz MAX_STEPS"));
    };
    let max_steps = max_steps.parse().map_err(|_| Error::config(format!("`{max_steps}` is no step")))?;
    let params = HParams::new().set("optimizer", optimizer.as_str());
    let estimator = Estimator::new(classifier).model_dir(folder).params(params).build()?;
    let rows = Dataset::from_npz(data).label("y");
    estimator.train(TrainSpec::new(rows.repeat_forever().batch(16)).max_steps(max_steps))?;
    println!("{}", estimator.evaluate(rows.batch(1000))?["loss"]);
    Ok(())
}
