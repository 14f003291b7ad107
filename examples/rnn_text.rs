//! Is a word written forwards or backwards? Learnt from the words of *Alice in Wonderland*.
//!
//! Both have the same letters, so a model that only counts them is right half of the time: a GRU
//! reads them one after the other. A row is a list of letters; a sequence column makes vectors of
//! them, and the classifier skips the steps that a shorter word does not have.
//!
//!     cargo run --release --example rnn_text

use std::collections::BTreeSet;

use estimand::console::{self, Level};
use estimand::nn::GruCell;
use estimand::nn::column::sequence_categorical_column_with_vocabulary_list;
use estimand::prelude::*;
use estimand::tensor::{Feature, Ragged};

/// Lewis Carroll's book of 1865, which is in the public domain.
const BOOK: &str = include_str!("data/alice.txt");

/// The words of five letters and more, each once, without names.
fn words() -> BTreeSet<&'static str> {
    let words = BOOK.split(|c: char| !c.is_ascii_alphabetic());
    words.filter(|word| word.len() >= 5 && word.chars().all(|c| c.is_ascii_lowercase())).collect()
}

/// Words as lists of letters.
fn letters(words: &[String]) -> Result<Feature> {
    let letters: Vec<String> = words.iter().flat_map(|word| word.chars().map(String::from)).collect();
    let mut splits = vec![0i64];
    splits.extend(words.iter().scan(0, |end, word| {
        *end += word.len() as i64;
        Some(*end)
    }));
    Ok(Ragged::new(Array::from_strings([letters.len()], &letters)?, splits)?.into())
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
        let rows = [("letters", letters(&texts)?), ("forwards", Array::from(labels).into())];
        Ok(Dataset::from_arrays(rows).label("forwards"))
    });
    Ok([learn?, ask?])
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let [learn, ask] = datasets()?;
    let alphabet: Vec<String> = ('a'..='z').map(String::from).collect();
    let ids = sequence_categorical_column_with_vocabulary_list("letters", alphabet);
    let classifier = RnnClassifier::new(columns![embedding_column(ids, 16)])
        .rnn_cell(GruCell::new(32).dropout(0.1).recurrent_dropout(0.2))
        .optimizer(Optimizer::new(Adam::default(), 0.005))
        .config(RunConfig::new().tf_random_seed(1))
        .build()?;
    let finished = classifier.train(learn.shuffle(10_000, 7).repeat(16).batch(32))?;
    println!("{finished}");
    let metrics = classifier.evaluate(ask.batch(256))?;
    println!("\n{metrics}\n");

    let words = ["training", "gniniart"].map(String::from);
    let questions = Dataset::from_arrays([("letters", letters(&words)?)]).batch(2);
    for (word, prediction) in words.iter().zip(classifier.predict(questions)) {
        let way = if prediction?.i64("class_ids")?[0] == 1 { "forwards" } else { "backwards" };
        println!("{word} is written {way}");
    }
    println!("accuracy = {:.3}", metrics["accuracy"]);
    Ok(())
}
