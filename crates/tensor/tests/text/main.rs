//! String kernels and vocabularies against TensorFlow, and against hostile input.

mod counts;
mod cross;
mod expressions;
mod fixture;
mod hash;
mod ops;
mod vocabulary;
