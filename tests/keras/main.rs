//! Tests of `estimand::keras`: models, their tables, training and its mistakes.
//!
//! Training is compared with a running tf.keras in `oracles/live/keras_models.py`.

mod applications;
mod callbacks;
mod checkpoints;
mod deep;
mod estimator;
mod fit;
mod images;
mod infinities;
mod json;
mod mistakes;
mod models;
mod operations;
mod preprocessing;
mod sharing;
mod summary;
mod train_step;
