//! The weights of a layer in a legacy file.

use estimand_hdf5::Group;
use estimand_tensor::{Array, Result};

/// A layer of a file that has weights.
pub(in crate::keras::files) struct Stored<'a> {
    pub name: String,
    pub(super) group: Group<'a>,
    /// The names of its weights in the file, such as `dense/kernel:0`.
    pub weights: Vec<String>,
}

impl Stored<'_> {
    /// Reads one of the weights.
    pub fn read(&self, weight: &str) -> Result<Array> {
        self.group.dataset(weight)?.read()
    }

    /// The sizes of one of the weights.
    pub fn shape(&self, weight: &str) -> Result<Vec<usize>> {
        Ok(self.group.dataset(weight)?.shape().to_vec())
    }

    /// The path of one of the weights in the file.
    pub(super) fn path_of(&self, weight: &str) -> String {
        format!("{}/{weight}", self.group.path().trim_matches('/'))
    }
}
