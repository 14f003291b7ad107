//! The mode of a model: training, evaluation or prediction.

use std::fmt;

/// The purpose that a model and its input are built for: training, evaluation or prediction.
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

/// TensorFlow's word for the mode.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Train => "train",
            Mode::Eval => "eval",
            Mode::Predict => "infer",
        })
    }
}
