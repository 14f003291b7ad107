//! Is a word written forwards or backwards? Learnt from the words of *Alice in Wonderland*.
//!
//! Both have the same letters, so a model that only counts them is right half of the time: a GRU
//! reads them one after the other. The model function is given raw text; the host cuts it into
//! letters and numbers them, and the lengths of words tell the GRU which steps count.
//!
//!     cargo run --release --example rnn_text

use std::collections::BTreeSet;

use estimand::console::{self, Level};
use estimand::graph::LookupTable;
use estimand::nn::Gru;
use estimand::nn::metric;
use estimand::prelude::*;

/// Lewis Carroll's book of 1865, which is in the public domain.
const BOOK: &str = include_str!("data/alice.txt");

/// The words of five letters and more, each once, without names.
fn words() -> BTreeSet<&'static str> {
    let words = BOOK.split(|c: char| !c.is_ascii_alphabetic());
    words.filter(|word| word.len() >= 5 && word.chars().all(|c| c.is_ascii_lowercase())).collect()
}

/// Returns words forwards (1) and backwards (0): training words, and every fourth one for
/// evaluation.
fn datasets() -> Result<[Dataset; 2]> {
    let mut parts = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (i, word) in words().into_iter().enumerate() {
        let (texts, labels) = &mut parts[usize::from(i % 4 == 3)];
        texts.extend([word.to_string(), word.chars().rev().collect()]);
        labels.extend([1i64, 0]);
    }
    let [learn, ask] = parts.map(|(texts, labels)| -> Result<Dataset> {
        let columns = [("word", Array::from_strings([texts.len()], &texts)?), ("forwards", Array::from(labels))];
        Ok(Dataset::from_arrays(columns).label("forwards"))
    });
    Ok([learn?, ask?])
}

fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let letters = cx.feature("word").regex_replace("(.)", r"\1 ").string_split("", -1);
    let alphabet = LookupTable::from_list(('a'..='z').map(String::from))?;
    let ids = letters.with_values(alphabet.lookup_known(&letters.values, "letter"));
    let lengths = letters.row_lengths();
    let steps = ids.to_steps(&lengths.max().maximum(0), &[], 0);

    let x = Embedding::new(26, 16).apply(&steps);
    let gru = Gru::new(32).dropout(0.1).recurrent_dropout(0.2);
    let last = gru.apply(&LayerInputs::of(&x).lengths(&lengths));
    let logits = Dense::new(2).apply(&last);
    let forwards = logits.argmax(-1);
    let spec = EstimatorSpec::new(cx).prediction("forwards", &forwards);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    Ok(spec
        .loss(&loss)
        .optimizer(Optimizer::new(Adam::default(), 0.005))
        .metric("accuracy", metric::accuracy(&cx.label(), &forwards, None)))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let [learn, ask] = datasets()?;
    let classifier = Estimator::new(model).config(RunConfig::new().tf_random_seed(1)).build()?;
    let finished = classifier.train(learn.shuffle(10_000, 7).repeat(16).batch(32))?;
    println!("{finished}");
    let metrics = classifier.evaluate(ask.batch(256))?;
    println!("\n{metrics}\n");

    let words = ["training", "gniniart"];
    let questions = Dataset::from_arrays([("word", Array::from_strings([2], words)?)]).batch(2);
    for (word, prediction) in words.iter().zip(classifier.predict(questions)) {
        let way = if prediction?.i64("forwards")?[0] == 1 { "forwards" } else { "backwards" };
        println!("{word} is written {way}");
    }
    println!("accuracy = {:.3}", metrics["accuracy"]);
    Ok(())
}
