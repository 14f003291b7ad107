//! A hand-written model function for all three modes: classifies iris flowers with a network of two
//! hidden layers. It is the program of the article "TF.data + TF.estimator" (a custom Estimator).
//!
//! What differs from the article: the rows come from the embedded data set instead of `FILE_TRAIN`
//! and `FILE_TEST`, and their labels need no `squeeze`. The learning rate and the sizes are
//! hyper-parameters. `running_metric` stands for the article's summary of `accuracy[1]`.
//! Probabilities and logits are predicted as well, and three flowers at the end. There is no
//! `my_input_fn`: a `Dataset` is made where it is used. The model folder is a temporary one.
//!
//! `cargo run --release --example custom_iris`

use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::nn::metric;
use estimand::prelude::*;

fn my_model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    // The four measurements, side by side.
    let columns: Columns = cx.features().names().map(numeric_column).collect();
    let mut net = input_layer(cx.features(), columns);
    for units in cx.params().usizes("hidden_units")? {
        net = Dense::new(units).relu().apply(&net);
    }
    let logits = Dense::new(cx.params().usize("n_classes")?).apply(&net);
    let classes = logits.argmax(-1);

    let spec = EstimatorSpec::new(cx)
        .prediction("class_ids", &classes)
        .prediction("probabilities", &logits.softmax())
        .prediction("logits", &logits);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }

    let labels = cx.label();
    let loss = logits.sparse_softmax_cross_entropy(&labels).mean();
    let accuracy = metric::accuracy(&labels, &classes, None);
    Ok(spec
        .loss(&loss)
        .optimizer(Optimizer::new(Adagrad::default(), cx.params().f64("learning_rate")?))
        .metric("my_accuracy", accuracy.clone())
        .running_metric("my_accuracy", accuracy))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let iris = datasets::load("iris", "train")?;
    let (train, test) = iris.validation_split(0.2)?;

    let params = HParams::new().set("hidden_units", vec![10, 10]).set("n_classes", 3).set("learning_rate", 0.05);
    let classifier = Estimator::new(my_model).params(params).config(RunConfig::new().tf_random_seed(1)).build()?;

    let finished = classifier.train(train.dataset().shuffle(256, 7).repeat(500).batch(32))?;
    println!("{finished}");
    let metrics = classifier.evaluate(test.dataset().repeat(4).batch(32))?;
    println!("Evaluation results");
    for (key, value) in metrics.iter() {
        println!("   {key}, was: {value}");
    }
    println!("accuracy = {:.3}", metrics["my_accuracy"]);

    println!("Predictions on test file");
    for prediction in classifier.predict(test.dataset().batch(32)) {
        print!("{} ", prediction?.i64("class_ids")?[0]);
    }
    println!();

    // Three flowers, one of each kind.
    let names = iris.info().classes;
    let flowers = [
        ("SepalLength", Array::from([5.1f32, 5.9, 6.9])),
        ("SepalWidth", Array::from([3.3f32, 3.0, 3.1])),
        ("PetalLength", Array::from([1.7f32, 4.2, 5.4])),
        ("PetalWidth", Array::from([0.5f32, 1.5, 2.1])),
    ];
    for (prediction, expected) in classifier.predict(Dataset::from_arrays(flowers).batch(3)).zip(names) {
        let prediction = prediction?;
        let class = prediction.i64("class_ids")?[0] as usize;
        let probability = prediction.f32("probabilities")?[class];
        println!("a {} ({:.1} %), expected {expected}", names[class], 100.0 * probability);
    }
    Ok(())
}
