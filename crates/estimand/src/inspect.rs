//! What is in the files of a model, without loading it: checkpoints here, exports in
//! [`saved_model`].
//!
//! ```
//! use estimand::inspect;
//! use estimand::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-inspect-{}", std::process::id()));
//! let rows = [("x", Array::from([1f32, 2.0])), ("y", Array::from([2f32, 4.0]))];
//! let data = Dataset::from_arrays(rows).label("y").batch(2);
//! let model = LinearRegressor::new([numeric_column("x").into()]).model_dir(&folder).build()?;
//! model.train(data.repeat(3))?;
//! let contents = inspect::checkpoint(&folder)?;
//! assert_eq!(contents.global_step, Some(3));
//! assert_eq!(contents.tensor("linear/linear_model/x/weights")?.dims, [1, 1]);
//! println!("{contents}");
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use estimand_checkpoint::{BundleReader, latest_checkpoint};
use estimand_tensor::{DType, Error, Result};
pub use estimand_tf::saved_model::{Contents, GraphContents, SignatureContents, TensorContents};

use crate::manifest::{self, Manifest};
use crate::model_fn::GLOBAL_STEP;
use crate::own_entries::{global_step, is_own};

/// Reads what is in a SavedModel, of this library or of TensorFlow. Its text is that of
/// `saved_model_cli show --all`.
pub fn saved_model(folder: impl AsRef<Path>) -> Result<Contents> {
    estimand_tf::saved_model::inspect(folder)
}

/// What is in a checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckpointContents {
    /// The prefix of its files, such as `model/model.ckpt-100`.
    pub prefix: PathBuf,
    /// The step, if it has one.
    pub global_step: Option<u64>,
    /// The tensors, sorted by name.
    pub tensors: Vec<CheckpointTensor>,
    /// The number of entries of this library beside the tensors: seed, position, states of hooks.
    pub n_own: usize,
    /// The meaning of the model, if this library has written the checkpoint.
    pub manifest: Option<Manifest>,
}

/// One tensor of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointTensor {
    /// Its name.
    pub name: String,
    /// The element type; `None` if arrays do not support it.
    pub dtype: Option<DType>,
    /// The sizes of its axes.
    pub dims: Vec<usize>,
    /// The number of bytes of its elements; 0 for strings, whose size is not stored.
    pub n_bytes: u64,
}

/// Reads the index of a checkpoint, of this library or of TensorFlow. A folder stands for its
/// newest checkpoint.
pub fn checkpoint(path: impl AsRef<Path>) -> Result<CheckpointContents> {
    let path = path.as_ref();
    let prefix = match path.is_dir() {
        true => latest_checkpoint(path)?.ok_or_else(|| {
            Error::config(format!("there is no checkpoint in {}", path.display()))
                .help("name a model folder, or the prefix of a checkpoint: model/model.ckpt-100")
        })?,
        false => path.to_path_buf(),
    };
    let reader = BundleReader::open(&prefix)?;
    let mut tensors = Vec::new();
    for name in reader.names().filter(|name| !is_own(name)) {
        tensors.push(match reader.spec(name) {
            Ok((dtype, dims)) => {
                let n_bytes = dims.iter().map(|&n| n as u64).product::<u64>() * dtype.size() as u64;
                CheckpointTensor { name: name.to_string(), dtype: Some(dtype), dims: dims.to_vec(), n_bytes }
            }
            Err(_) => CheckpointTensor { name: name.to_string(), dtype: None, dims: Vec::new(), n_bytes: 0 },
        });
    }
    Ok(CheckpointContents {
        global_step: reader.contains(GLOBAL_STEP).then(|| global_step(&reader)).transpose()?,
        tensors,
        n_own: reader.names().filter(|name| is_own(name)).count(),
        manifest: manifest::read(&reader, &prefix)?,
        prefix,
    })
}

impl CheckpointContents {
    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Result<&CheckpointTensor> {
        let found = self.tensors.iter().find(|tensor| tensor.name == name);
        found.ok_or_else(|| Error::missing_variable(name, self.tensors.iter().map(|tensor| tensor.name.as_str())))
    }
}

/// A table of the tensors, and the entries of the manifest.
impl fmt::Display for CheckpointContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.prefix.display())?;
        if let Some(step) = self.global_step {
            write!(f, ", step {step}")?;
        }
        writeln!(f)?;
        let width = self.tensors.iter().map(|tensor| tensor.name.len()).max().unwrap_or(0);
        for CheckpointTensor { name, dtype, dims, n_bytes } in &self.tensors {
            let kind = dtype.map_or("?".to_string(), |dtype| format!("{dtype}{dims:?}"));
            let bytes = if *n_bytes > 0 { format!("{n_bytes} bytes") } else { String::new() };
            writeln!(f, "  {}", format!("{name:width$}  {kind:14} {bytes:>16}").trim_end())?;
        }
        let total: u64 = self.tensors.iter().map(|tensor| tensor.n_bytes).sum();
        writeln!(f, "  {} tensors, {total} bytes; {} entries of Estimand", self.tensors.len(), self.n_own)?;
        let Some(manifest) = &self.manifest else { return writeln!(f, "  no manifest") };
        for entry in manifest.entries() {
            let values: Vec<String> = entry.values().iter().map(ToString::to_string).collect();
            writeln!(f, "  {}: {}: {}", entry.about(), entry.aspect(), values.join(", "))?;
        }
        Ok(())
    }
}
