//! Images against TensorFlow's, and their folders.

mod fixture;
mod functions;
