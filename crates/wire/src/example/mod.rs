//! `tf.Example` and `tf.SequenceExample`: the rows of TensorFlow's data files and of its serving
//! requests.
//!
//! An Example is a map from names to lists of floats, integers or byte strings. The parser goes
//! from the serialized bytes to arrays without a map in between: a spec becomes an
//! [`ExampleParser`] once, and every row is appended to the columns it describes.
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
//! # What is read how
//!
//! The values are those of `tf.io.parse_example`, case by case in `oracles/gen/example.py`:
//!
//! | in the row | [`Dense`](estimand_tensor::FeatureSpec::Dense) | `Ragged` | `Padded` |
//! |---|---|---|---|
//! | no such key, or a value without a list | the default, or an error | no values | no values |
//! | an empty list | an error, unless `dims` has a 0 | no values | no values |
//! | a list of another kind | an error | an error | an error |
//! | another number of values | an error | - | an error if no multiple |
//! | the key twice | the last that has a list | the last | the last that has a list |
//!
//! Packed and unpacked numbers, entries with the value before the key, joined Examples and fields
//! we do not know are read. What is damaged is an error: TensorFlow reads some messages that end
//! too early, we read none. Where TensorFlow and protobuf disagree about the meaning of bytes (two
//! packed lists in one, two lists in one feature) we refuse.
//!
//! From the bottom: `cursor.rs` reads the wire format, `values.rs` lists; `plan.rs` is a checked
//! spec, `index.rs` finds names in it; `rows.rs` is the columns in the making; `parser.rs` and
//! `sequence.rs` read rows, `careful.rs` those that are out of the ordinary; `builder.rs` writes.

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
