//! Checkpoints: the values of variables on disk, in TensorFlow's own file format.
//!
//! A checkpoint is a pair of files with a common prefix. `model.ckpt-100.data-00000-of-00001` holds
//! the bytes of the tensors, one after another. `model.ckpt-100.index` is a sorted table that maps
//! the name of a tensor to the offset of its bytes. The file `checkpoint` beside them names the
//! newest pair.
//!
//! From the bottom up: [`sstable`] reads and writes the table, [`BundleReader`] and
//! [`BundleWriter`] read and write the pair, and [`latest_checkpoint`] finds the newest pair. Every
//! file is written under a temporary name, synced, and renamed. So a file under its own name is
//! always complete.
//!
//! ```
//! use estimand_checkpoint::{BundleReader, BundleWriter};
//! use estimand_tensor::Array;
//!
//! let folder = std::env::temp_dir().join(format!("estimand-doc-{}", std::process::id()));
//! let prefix = folder.join("model.ckpt-100");
//!
//! let mut writer = BundleWriter::create(&prefix)?;
//! writer.add("dnn/logits/bias", &Array::from([0.5f32, -0.5]))?;
//! writer.add("global_step", &Array::from(100i64))?;
//! writer.finish()?;
//!
//! let reader = BundleReader::open(&prefix)?;
//! assert_eq!(reader.names().collect::<Vec<_>>(), ["dnn/logits/bias", "global_step"]);
//! assert_eq!(reader.read("global_step")?.item::<i64>()?, 100);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod bundle;
pub mod sstable;
mod state;

pub use bundle::{BundleIndex, BundleReader, BundleWriter, Objects, checksum};
pub use estimand_wire::CheckpointState;
pub use state::{latest_checkpoint, read_state, write_state, write_text};
