//! String kernels and vocabularies against TensorFlow, and against hostile input.

mod cross;
mod fixture;
mod hash;
mod vocabulary;
