//! Tests of the Estimator, one file per topic, in one binary.

mod bad_input;
mod fixture;
mod folder;
mod full_disk;
mod heads;
mod hooks;
mod input_retry;
mod killed;
mod killed_evaluation;
mod life_cycle;
mod manifest;
mod mapping;
mod metrics;
mod models;
mod not_finite;
mod on_request;
mod prediction;
mod premade;
mod profiler;
mod recorder;
mod report;
mod resume;
mod summaries;
mod tensorflow_folders;
mod train_and_evaluate;
mod warm_start;
