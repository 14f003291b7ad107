//! Keras' callbacks.
//!
//! `EarlyStopping` is [`crate::EarlyStopping`], which Estimators use too: its epochs are the steps
//! of a training. The others are of Keras alone.

mod backup;
mod csv_logger;
mod early_stopping;
mod lambda;
mod learning_rate;
mod model_checkpoint;
mod tensor_board;
mod terminate_on_nan;

pub use backup::BackupAndRestore;
pub use csv_logger::CsvLogger;
pub use lambda::LambdaCallback;
pub use learning_rate::{LearningRateScheduler, ReduceLrOnPlateau};
pub use model_checkpoint::ModelCheckpoint;
pub use tensor_board::TensorBoard;
pub use terminate_on_nan::TerminateOnNan;

use estimand_tensor::warn;

use super::history::Logs;

/// The value of a watched entry of the logs. If it is not there, a warning lists those that are.
fn watched(logs: &Logs, monitor: &str, who: &str) -> Option<f64> {
    let found = logs.get(monitor).copied();
    if found.is_none() {
        let known: Vec<&str> = logs.keys().map(String::as_str).collect();
        warn!("{who} watches `{monitor}`, which the logs do not have. They have {}", known.join(", "));
    }
    found
}
