//! `tf.Example` and `tf.SequenceExample`: the rows of TensorFlow's data files and of its serving
//! requests.
//!
//! An Example is a map from names to lists of floats, integers or byte strings. The parser turns
//! serialized bytes into arrays without a map in between. A spec becomes an [`ExampleParser`] once,
//! and every row is appended to the columns of the spec.
//!
//! ```
//! use estimand_tensor::{Array, DType, Feature, FeatureSpec};
//! use estimand_wire::example::{ExampleBuilder, ExampleParser};
//!
//! let rows = [
//!     ExampleBuilder::new().ints("age", &[39]).strings("tags", ["a", "b"]).build(),
//!     ExampleBuilder::new().ints("age", &[50]).build(),
//! ];
//! let parser = ExampleParser::new([
//!     ("age", FeatureSpec::dense(DType::I64, [])),
//!     ("hours", FeatureSpec::dense_or(Array::from(40.0f32))),
//!     ("tags", FeatureSpec::ragged(DType::Str)),
//! ])?;
//! let features = parser.parse(&rows)?;
//! assert_eq!(features[0], Feature::Dense(Array::from([39i64, 50])));
//! assert_eq!(features[1], Feature::Dense(Array::from([40.0f32, 40.0])));
//! let Feature::Ragged(tags) = &features[2] else { unreachable!() };
//! assert_eq!(tags.row_splits(), [0, 2, 2]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! # Parsing rules
//!
//! The values are those of `tf.io.parse_example`, checked case by case in `oracles/gen/example.py`:
//!
//! | in the row | [`Dense`](estimand_tensor::FeatureSpec::Dense) | `Ragged` | `Padded` |
//! |---|---|---|---|
//! | no such key, or a value without a list | the default, or an error | no values | no values |
//! | an empty list | an error, unless `dims` has a 0 | no values | no values |
//! | a list of another kind | an error | an error | an error |
//! | another number of values | an error | - | an error if no multiple |
//! | the key twice | the last that has a list | the last | the last that has a list |
//!
//! The parser accepts packed and unpacked numbers, entries with the value before the key, joined
//! Examples and unknown fields. Damaged bytes are an error: TensorFlow reads some messages that end
//! too early, this parser reads none. Where TensorFlow and protobuf disagree about the meaning of
//! bytes (two packed lists in one, two lists in one feature), the parser refuses them.
//!
//! From the bottom up: `cursor.rs` reads the wire format, and `values.rs` reads lists. `plan.rs` is
//! a checked spec, and `index.rs` finds names in it. `rows.rs` collects the columns. `parser.rs`
//! and `sequence.rs` parse rows, and `careful.rs` parses unusual ones. `builder.rs` writes.

mod builder;
mod careful;
mod cursor;
mod index;
mod parser;
mod plan;
mod rows;
mod sequence;
mod values;

pub use builder::{ExampleBuilder, SequenceExampleBuilder, encode_batch};
pub use parser::ExampleParser;
pub use sequence::{ListSpec, Sequence, SequenceExampleParser};
