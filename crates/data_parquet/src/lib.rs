//! Parquet and Arrow as sources and writers of [`Dataset`](estimand_data::Dataset)s.
//!
//! This is a separate crate because its dependencies take minutes to build. No other crate of
//! Estimand depends on it. It adds sources through the public interfaces
//! [`Stage`](estimand_data::Stage) and [`Stream`](estimand_data::Stream).
//!
//! ```
//! use estimand_data::Dataset;
//! use estimand_data_parquet::parquet;
//! use estimand_tensor::{Array, DType, FeatureSpec, Result};
//! # let folder = std::env::temp_dir().join(format!("estimand-parquet-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("people.parquet");
//!
//! let people = Dataset::from_arrays([
//!     ("age", Array::from([39i64, 50, 38])),
//!     ("job", Array::from_strings([3], ["clerk", "chef", "nurse"])?),
//!     ("rich", Array::from([0i64, 1, 1])),
//! ]);
//! parquet::Writer::new(&path).compression(parquet::Compression::Zstd).row_group_size(2).write(&people)?;
//!
//! // Two of the columns, one of them as another type than the file's.
//! let data = parquet::read(&path)
//!     .select(["age", "rich"])
//!     .feature("age", FeatureSpec::dense(DType::F32, []))
//!     .label("rich")
//!     .dataset()
//!     .batch(2);
//! let mut batches = data.iter();
//! assert_eq!(batches.next().unwrap()?.features()["age"], Array::from([39.0f32, 50.0]).into());
//!
//! // Another day: the row group that comes next, and nothing before it.
//! let place = batches.position().to_bytes();
//! let rest = data.iter_from(&Default::default(), &estimand_data::Position::from_bytes(&place)?);
//! assert_eq!(rest.collect::<Result<Vec<_>>>()?, batches.collect::<Result<Vec<_>>>()?);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! The modules, from the bottom up: `column_type.rs` maps types. `convert.rs` and `cast.rs` turn
//! Arrow's arrays into features, and `records.rs` turns features into record batches. `columns.rs`
//! matches the user's selection with a schema. `guard.rs` catches panics of the decoders.
//! `parquet/` and `arrow/` hold the formats, and `reader.rs` is the interface that users call.

#![warn(clippy::return_self_not_must_use)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod arrow;
mod bad;
mod cast;
mod column_type;
mod columns;
mod convert;
mod guard;
pub mod parquet;
mod reader;
mod records;

// Part of this crate's own interface, in the version it was built with.
pub use arrow_array;
pub use arrow_schema;
pub use reader::Reader;
