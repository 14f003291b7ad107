//! What a model is run for.

use std::fmt;

/// Training, evaluation or prediction: what model and input are built for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Learning from labelled batches.
    #[default]
    Train,
    /// Measuring on labelled batches.
    Eval,
    /// Answering, without labels.
    Predict,
}

/// TensorFlow's word for it.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Train => "train",
            Mode::Eval => "eval",
            Mode::Predict => "infer",
        })
    }
}
