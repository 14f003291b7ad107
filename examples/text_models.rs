//! Is a review kind or unkind? Three models of text, each with its model function: a bag of words,
//! a convolution and an LSTM. A port of a tutorial with TensorFlow's Estimator that classifies
//! movie reviews.
//!
//! The reviews are made up of a small vocabulary by a formula: a review is kind if its last opinion
//! is. An opinion is `good` or `bad`, and `not` before it reverses it. A bag of words cannot see
//! the order, a convolution sees three words at a time, and the LSTM reads from the first to the
//! last.
//!
//!     cargo run --release --example text_models

use estimand::console::{self, Level};
use estimand::nn::{Conv1d, GlobalAvgPool1d, GlobalMaxPool1d};
use estimand::prelude::*;

const WORDS: [&str; 12] = ["", "not", "good", "great", "bad", "awful", "the", "film", "plot", "was", "and", "actor"];
const LENGTH: usize = 16;

type Model = fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>;

/// Returns reviews as ids of words, padded with 0, their lengths and labels.
fn reviews(n: usize, seed: u64) -> Result<Dataset> {
    let mut state = seed;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let (mut ids, mut lengths, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let (mut review, mut is_kind) = (Vec::new(), false);
        for _ in 0..1 + random(3) {
            review.extend((0..1 + random(3)).map(|_| 6 + random(6)));
            let (opinion, is_reversed) = (2 + random(4), random(3) == 0);
            if is_reversed {
                review.push(1);
            }
            review.push(opinion);
            is_kind = (opinion < 4) != is_reversed;
        }
        lengths.push(review.len() as i64);
        labels.push(i64::from(is_kind));
        review.resize(LENGTH, 0);
        ids.extend(review.into_iter().map(|id| id as i64));
    }
    let columns = [
        ("words", Array::from_vec([n, LENGTH], ids)?),
        ("length", Array::from(lengths)),
        ("kind", Array::from(labels)),
    ];
    Ok(Dataset::from_arrays(columns).label("kind"))
}

/// The words as vectors: `[batch, LENGTH, 16]`.
fn embedded(cx: &ModelFnContext<'_>) -> Tensor {
    Embedding::new(WORDS.len(), 16).apply(&cx.feature("words"))
}

fn bag_of_words(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let logits = Dense::new(1).apply(&GlobalAvgPool1d::new().apply(&embedded(cx)));
    BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Adam::default(), 0.01))
}

fn cnn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let dropped = Dropout::new(0.2).apply(&embedded(cx));
    let windows = Conv1d::new(32, 3).same().relu().apply(&dropped);
    let hidden = Dense::new(32).relu().apply(&GlobalMaxPool1d::new().apply(&windows));
    let logits = Dense::new(1).apply(&hidden);
    BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Adam::default(), 0.01))
}

fn lstm(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let words = embedded(cx);
    let last = Lstm::new(32).apply(&LayerInputs::of(&words).lengths(&cx.feature("length")));
    let logits = Dense::new(1).apply(&last);
    BinaryClassHead::new().spec(cx, &logits, Optimizer::new(Adam::default(), 0.01))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let (train, test) = (reviews(4_000, 1)?, reviews(1_000, 2)?);
    let rows = train.shuffle(4_000, 7).repeat_forever().batch(64);

    let text = "the film was not good";
    let mut ids: Vec<i64> = Vec::new();
    for word in text.split(' ') {
        let id = WORDS.iter().position(|known| *known == word);
        ids.push(id.ok_or_else(|| Error::internal("a word of the vocabulary"))? as i64);
    }
    let length = ids.len() as i64;
    ids.resize(LENGTH, 0);
    let question = [("words", Array::from_vec([1, LENGTH], ids)?), ("length", Array::from([length]))];
    let question = Dataset::from_arrays(question).batch(1);

    let models: [(&str, Model); 3] = [("bag_of_words", bag_of_words), ("cnn", cnn), ("lstm", lstm)];
    for (name, model) in models {
        let classifier = Estimator::new(model).config(RunConfig::new().tf_random_seed(1)).build()?;
        classifier.train_and_evaluate(
            TrainSpec::new(&rows).max_steps(1_000),
            EvalSpec::new(test.batch(250)).every(Every::Steps(200)).highest_is_best("accuracy"),
        )?;
        for answer in classifier.predict(PredictSpec::new(&question).best()) {
            println!("{name}: `{text}` is kind with {:.3}", answer?.f32("probabilities")?[1]);
        }
        let metrics = classifier.evaluate(EvalSpec::new(test.batch(250)).best())?;
        println!("{name}_accuracy = {:.3}", metrics["accuracy"]);
    }
    Ok(())
}
