//! What is read and written, and the law of exact resume over it.

mod bad_input;
mod datasets;
mod input_fn;
mod resume;
mod rows;
mod types;
mod writers;
