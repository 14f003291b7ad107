//! The JSON of TensorFlow Serving's REST interface: requests become arrays in one pass over the
//! text, and arrays become answers.
//!
//! `reader.rs` reads tokens (`token.rs`), `column.rs` collects the values of one input
//! (`input.rs`), `values.rs` those of all inputs, `predict.rs` and `examples.rs` read whole
//! requests, `excerpt.rs` quotes values in messages, `number.rs` and `writer.rs` write answers.

mod base64;
mod column;
mod examples;
mod excerpt;
mod input;
mod number;
mod predict;
pub(crate) mod reader;
mod token;
mod values;
mod writer;

pub(crate) use base64::{decode as decode_base64, encode as encode_base64};
pub(crate) use column::Column;
pub(crate) use examples::read_examples;
pub(crate) use input::Input;
pub use input::UnknownKeys;
pub(crate) use number::write_f64;
pub(crate) use predict::{Format, read_predict};
pub(crate) use values::Rows;
pub(crate) use writer::{Writer, classifications, predictions, regressions, write_elements};

#[cfg(test)]
mod tests;
