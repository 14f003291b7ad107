//! HDF5 files: the part of the format that h5py and Keras write.
//!
//! An HDF5 file is a tree. Groups hold named children, datasets hold an array, and both have
//! attributes, which are small named arrays. [`File`] reads a file, [`Writer`] writes one. Values
//! are [`Array`](estimand_tensor::Array)s: strings are byte strings, 16-bit floats become `f32`,
//! and integers become the narrowest of `u8`, `i32` and `i64` that holds all values of their type.
//!
//! ```
//! use estimand_hdf5::{File, Writer};
//! use estimand_tensor::{Array, Limits};
//!
//! let mut writer = Writer::new();
//! writer.dataset("layers/dense/vars/0", &Array::from([0.5f32, -0.5]))?;
//! writer.attribute("layers/dense/vars", "name", &Array::from_strings([], ["dense"])?)?;
//! let bytes = writer.to_bytes()?;
//!
//! let file = File::from_bytes(bytes, &Limits::default())?;
//! let vars = file.root().group("layers/dense/vars")?;
//! assert_eq!(vars.names().collect::<Vec<_>>(), ["0"]);
//! assert_eq!(vars.attribute("name")?.strings()?.next(), Some(&b"dense"[..]));
//! assert_eq!(vars.dataset("0")?.read()?.as_slice::<f32>()?, [0.5, -0.5]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! # What is read
//! - superblocks 0 to 3, object headers 1 and 2, a user block before the file;
//! - groups as symbol tables, as link messages, or in fractal heaps; attributes in headers or in
//!   fractal heaps;
//! - datasets that are contiguous, compact, or in chunks under a B-tree of version 1, with the
//!   filters deflate and shuffle;
//! - integers of 1 to 8 bytes, floats of 2, 4 and 8 bytes, both byte orders, enumerations (h5py's
//!   booleans become `bool`, all others their integers), strings of fixed and variable length;
//! - scalars and null dataspaces.
//!
//! Anything else is an error that names the object and the feature, when the object is used: the
//! chunk indexes of `libver="latest"`, soft and external links, other filters, compound types,
//! references, committed types.
//!
//! # What a hostile file can cost
//! Opening a file reads each block of metadata once, so its time and memory grow with the file's
//! length. [`Limits`](estimand_tensor::Limits) bound the rest: `entries` the number of links,
//! attributes and chunks; `unpacked_bytes`, `ratio` and `free_bytes` the size of datasets that are
//! packed or not stored. A group that is its own ancestor, or that two links name, is an error, and
//! so are datasets that share bytes.

mod checksum;
mod read;
mod write;

pub use read::{Children, Dataset, File, Group, Node};
pub use write::Writer;
