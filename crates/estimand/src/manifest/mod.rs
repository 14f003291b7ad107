//! [`Manifest`]: the meaning of a model beyond the names and shapes of its variables.
//!
//! Weights do not record which term has id 3, where a bucket ends, or which mean was subtracted
//! from an age. The manifest does. It is built from the facts of a graph
//! ([`estimand_graph::meaning`]), is stored in every checkpoint under `_estimand/manifest`, and is
//! compared whenever a checkpoint is loaded. `entry.rs` gives facts readable names, `json.rs`
//! writes and reads them, `diff.rs` describes differences, `meant.rs` compares with a checkpoint.
//!
//! ```
//! use estimand::manifest::Manifest;
//! use estimand::graph::LookupTable;
//! use estimand::prelude::*;
//! use estimand::tensor::{DType, Dim};
//!
//! let manifest = |jobs: [&str; 2]| -> Result<Manifest> {
//!     let g = Graph::new();
//!     let job = g.placeholder("job", DType::Str, [Dim::BATCH]);
//!     LookupTable::from_list(jobs)?.lookup(&job);
//!     Ok(Manifest::of(&g.body()))
//! };
//! let (was, is) = (manifest(["cook", "clerk"])?, manifest(["clerk", "cook"])?);
//! assert_eq!(Manifest::from_json(&was.to_json())?, was);
//! let differences = was.diff(&is);
//! assert!(differences[0].to_string().ends_with("vocabulary: id 0 was `cook`, is `clerk`; id 1 was `clerk`, is `cook`"));
//! # Ok::<(), Error>(())
//! ```

mod diff;
mod entry;
mod json;
mod meant;

pub use diff::Difference;
pub use entry::Entry;
pub(crate) use json::{listed_from_json, listed_to_json};
pub(crate) use meant::{Meant, listed, read};

use estimand_graph::Body;
use estimand_graph::meaning::Listing;

/// The version that this library writes. An older manifest is compared as far as its entries go; a
/// newer one is refused.
pub const VERSION: u64 = 1;

/// The meaning of a model, as a list of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    version: u64,
    entries: Vec<Entry>,
}

impl Default for Manifest {
    /// A manifest without entries.
    fn default() -> Manifest {
        Manifest { version: VERSION, entries: Vec::new() }
    }
}

impl Manifest {
    /// Makes the manifest of a graph.
    pub fn of(body: &Body) -> Manifest {
        Manifest { version: VERSION, entries: entry::entries(body.facts()) }
    }

    /// Returns the same manifest with the names of the classes that label numbers stand for, if the
    /// input knows them.
    #[must_use]
    pub fn classes(mut self, names: Option<&[String]>) -> Manifest {
        if let Some(names) = names {
            self.entries.push(entry::classes(Listing::of_texts(names)));
        }
        self
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
