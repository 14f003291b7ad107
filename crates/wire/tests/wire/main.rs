//! What TensorFlow wrote, read and written again, and the errors of what cannot be read.

mod bad_example;
mod example;
mod fixtures;
