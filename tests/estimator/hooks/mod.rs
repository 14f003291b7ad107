//! Tests of hooks, each in a real training.

mod contract;
mod csv_log;
mod early_stopping;
mod feeding;
mod global_step_waiter;
mod iterator_initializer;
pub mod log_lines;
mod stop_if;

use estimand::prelude::*;

use crate::models::{Folder, line, linear};

/// The model of one weight, with a checkpoint every so many steps.
fn estimator(folder: &Folder, every: u64) -> Estimator {
    let config = RunConfig::new().save_checkpoints(Every::Steps(every)).tf_random_seed(1);
    Estimator::new(linear).model_dir(folder.path()).config(config).build().unwrap()
}

/// Batches without end.
fn endless() -> Dataset {
    line(10).repeat_forever().batch(4)
}
