//! Our side of warm starts that TensorFlow's Estimators and ours do from the same checkpoints
//! (oracles/live/warm_start.py).
//!
//! `words KEY NEW.txt NEW_SIZE N_OOV OLD.txt OLD_SIZE OLD_KEY SLOTS FROM FOLDER` begins a wide and
//! deep model of one column of words, whose column had another name and another vocabulary;
//! `classes NEW.txt OLD.txt FROM FOLDER` one whose classes have changed;
//! `all KEY NEW.txt N_OOV FROM FOLDER` one that takes everything. Sizes of -1 are all terms, SLOTS
//! is 0 or 1. Each writes the checkpoint that it begins with.

use estimand::VocabInfo;
use estimand::console::{self, Level};
use estimand::prelude::*;

const KERNEL: &str = "dnn/logits/kernel";

fn number(text: &str) -> Result<usize> {
    text.parse().map_err(|_| Error::config(format!("`{text}` is no number")))
}

/// The wide and deep model of one column of words.
fn words(key: &str, vocabulary: &str, size: Option<usize>, n_oov: usize) -> DnnLinearCombinedClassifier {
    let mut column = categorical_column_with_vocabulary_file(key, vocabulary).n_oov_buckets(n_oov);
    if let Some(size) = size {
        column = column.vocabulary_size(size);
    }
    DnnLinearCombinedClassifier::new()
        .linear_feature_columns([column.clone().into()])
        .dnn_feature_columns([embedding_column(column, 3).into()])
        .dnn_hidden_units([4])
}

/// One step: the checkpoint before it is what counts.
fn begin(model: Estimator, key: &str, value: Array) -> Result<()> {
    model.train(Dataset::from_arrays([(key, value), ("y", Array::from([0i64]))]).label("y").batch(1)).map(drop)
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["words", key, new, new_size, n_oov, old, old_size, old_key, slots, from, folder] => {
            let n_oov = number(n_oov)?;
            let mut info = VocabInfo::new(new, old).new_vocab_size(number(new_size)?).n_oov_buckets(n_oov);
            info = info.backup_initializer(Initializer::Constant(0.25));
            if old_size != "-1" {
                info = info.old_vocab_size(number(old_size)?);
            }
            let mut settings = WarmStartSettings::new(from).optimizer_slots(slots == "1");
            let table =
                |key: &str| format!("dnn/input_from_feature_columns/input_layer/{key}_embedding/embedding_weights");
            let weights = |key: &str| format!("linear/linear_model/{key}/weights");
            for (new, old) in [(table(key), table(old_key)), (weights(key), weights(old_key))] {
                settings = settings.vocab_info(&new, info.clone()).prev_var_name(&new, old);
            }
            let model = words(key, new, Some(number(new_size)?), n_oov).warm_start_from(settings);
            begin(model.model_dir(folder).build()?, key, Array::from_strings([1], ["word"])?)
        }
        ["all", key, new, n_oov, from, folder] => {
            let settings = WarmStartSettings::new(from).saved_vars([".*"]);
            let model = words(key, new, None, number(n_oov)?).warm_start_from(settings);
            begin(model.model_dir(folder).build()?, key, Array::from_strings([1], ["word"])?)
        }
        ["classes", new, old, from, folder] => {
            let info = VocabInfo::new(new, old).axis(1).backup_initializer(Initializer::Constant(-0.5));
            let settings = WarmStartSettings::new(from).vars("dnn/(hidden|.*kernel)").vocab_info(KERNEL, info);
            let n_classes = std::fs::read_to_string(new).map_err(|e| Error::io(new, "read", &e))?.lines().count();
            let model = DnnClassifier::new([4], [numeric_column("x").shape([2]).into()]).n_classes(n_classes);
            let x = Array::from_vec([1, 2], vec![1f32, 2.0])?;
            begin(model.warm_start_from(settings).model_dir(folder).build()?, "x", x)
        }
        _ => Err(Error::config("what to do?").help("words .., classes .. or all ..; see the head of the source")),
    }
}
