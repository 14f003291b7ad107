//! Our side of recurrent models that TensorFlow and Estimand train in turns (oracles/live/rnn.py).
//!
//! `train NAME FOLDER ROWS.tfrecord BATCH MAX_STEPS` trains in a model folder until the step;
//! `evaluate NAME FOLDER ROWS.tfrecord` prints every metric as `key = value`;
//! `export NAME FOLDER EXPORTS` exports the model over tf.Examples and prints the folder.

use estimand::console::{self, Level};
use estimand::export::Receiver;
use estimand::nn::column::{
    make_parse_example_spec, sequence_categorical_column_with_vocabulary_list, sequence_numeric_column,
};
use estimand::prelude::*;
use estimand::premade::CellType;

const WORDS: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::config(format!("`{text}` is no number")))
}

fn sequence() -> Columns {
    let words = sequence_categorical_column_with_vocabulary_list("word", WORDS);
    columns![embedding_column(words, 4), sequence_numeric_column("price")]
}

fn context() -> Columns {
    let group = categorical_column_with_identity("group", 3);
    columns![numeric_column("age"), embedding_column(group, 2)]
}

/// The label of a model: of a row, or of each step.
fn label(name: &str) -> (&'static str, FeatureSpec) {
    match name.starts_with("steps") {
        true => ("tag", FeatureSpec::ragged(DType::I64)),
        false => ("class", FeatureSpec::dense(DType::I64, [1])),
    }
}

fn rnn(name: &str, folder: &str) -> Result<Estimator> {
    let rnn = RnnClassifier::new(sequence()).model_dir(folder);
    match name {
        "simple" => rnn.units([8]),
        "lstm_layer" => rnn.units(8).cell_type(CellType::Lstm).n_classes(3).optimizer("Adam"),
        "gru_stacked" => rnn.units([8, 6]).cell_type(CellType::Gru).context_feature_columns(context()),
        "steps" => rnn.units([8, 6]).cell_type(CellType::Lstm).return_sequences(true),
        "steps_context" => {
            let rnn = rnn.units(8).cell_type(CellType::Gru).context_feature_columns(context());
            rnn.n_classes(3).return_sequences(true).sequence_mask("there")
        }
        _ => return Err(Error::config(format!("there is no model `{name}`"))),
    }
    .build()
}

fn rows(name: &str, path: &str) -> Result<Dataset> {
    let (label, spec) = label(name);
    let mut features = make_parse_example_spec([&sequence()[..], &context()[..]].concat())?;
    features.insert(label.to_string(), spec);
    Ok(Dataset::from_tfrecord(path, features).label(label))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", name, folder, path, batch, max_steps] => {
            let batches = rows(name, path)?.repeat_forever().batch(number(batch)? as usize);
            rnn(name, folder)?.train(TrainSpec::new(batches).max_steps(number(max_steps)?))?;
        }
        ["evaluate", name, folder, path] => {
            for (key, value) in rnn(name, folder)?.evaluate(rows(name, path)?.batch(1_000))?.iter() {
                println!("{key} = {value}");
            }
        }
        ["export", name, folder, exports] => {
            let receiver = Receiver::columns([&sequence()[..], &context()[..]].concat())?;
            println!("{}", rnn(name, folder)?.export_saved_model(exports, receiver)?.display());
        }
        _ => {
            let help = "train NAME FOLDER ROWS BATCH MAX_STEPS, evaluate NAME FOLDER ROWS, export NAME FOLDER EXPORTS";
            return Err(Error::config("what to do?").help(help));
        }
    }
    Ok(())
}
