//! Tests of recurrent estimators, one file per topic.

mod bad_input;
mod sentences;
mod tensorflow;
mod training;
